"""Sparse inputs by features, stored twice or not: products, columns, sums."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.tasks import by_features
from mtldsl.tasks.by_features import ByFeatures, squared_products
from mtldsl.tasks.gram import gram


@pytest.fixture(params=[(5000, 30), (40, 600)])
def X(request):
    X = sparse.random_array(request.param, density=0.01, rng=np.random.default_rng(2), format="csr")
    for row in (0, 7):
        X.data[X.indptr[row] : X.indptr[row + 1]] = 0.0
    X.data[X.indices == 3] = 0.0
    X.eliminate_zeros()
    return X


@pytest.mark.parametrize("stored", [0, 10**9])
@pytest.mark.parametrize("slab", [1 << 5, 1 << 18])
def test_agrees_with_dense_inputs(X, stored, slab, monkeypatch):
    monkeypatch.setattr(by_features, "_SLAB", slab)
    found, dense, rng = ByFeatures(X, stored), X.toarray(), np.random.default_rng(0)
    n, d = X.shape
    for V in (rng.normal(size=n), rng.normal(size=(n, 1)), rng.normal(size=(5, n)).T):
        np.testing.assert_allclose(found @ V, dense.T @ V, atol=1e-12)
        np.testing.assert_allclose(found.squared_products(V), np.square(dense).T @ V, atol=1e-12)
    for W in (rng.normal(size=(d, 1)), rng.normal(size=(5, d)).T):
        np.testing.assert_allclose(found.image(W), (dense @ W).T, atol=1e-12)
        few = np.where(np.arange(d)[:, None] % 40 == 1, W, 0.0)
        np.testing.assert_allclose(found.image(few), (dense @ few).T, atol=1e-12)
        assert (
            found.image(np.zeros_like(W)).shape == (W.shape[1], n) and not found.image(np.zeros_like(W)).any()
        )
    np.testing.assert_allclose(found.squares, np.square(dense).sum(axis=0), atol=1e-12)
    np.testing.assert_array_equal(found.counts, (dense != 0).sum(axis=0))
    rows = np.array([2, 3, 11, 12, 29])
    np.testing.assert_array_equal(found[rows].toarray(), dense.T[rows])
    columns, places = found.places(rows)
    np.testing.assert_array_equal(columns[places].toarray(), dense.T[rows])
    V = rng.normal(size=(n, 2))
    for some in (V, V[:, 0], sparse.csr_array(V)):
        expected = np.square(dense.T[rows]) @ (V if sparse.issparse(some) else some)
        np.testing.assert_allclose(squared_products(found[rows], some), expected, atol=1e-12)


@pytest.mark.parametrize("slab", [100, 1 << 20])
def test_gram_matrices_in_slabs(X, slab, monkeypatch):
    monkeypatch.setattr("mtldsl.tasks.gram._SLAB", slab)
    dense, weights = X.toarray(), np.random.default_rng(1).random(X.shape[0])
    for one, other in ((X, dense), (X.T, dense.T)):
        np.testing.assert_allclose(gram(one), other.T @ other, atol=1e-12)
    np.testing.assert_allclose(gram(X, weights), dense.T @ (weights[:, None] * dense), atol=1e-12)


MODELS = {
    "lasso": lambda W, tasks: mtl.squared_loss(W, tasks) + 0.3 * mtl.l1_norm(W),
    "ridge": lambda W, tasks: mtl.squared_loss(W, tasks) + 0.3 * mtl.ridge(W),
    "logistic + l21": lambda W, tasks: mtl.logistic_loss(W, tasks) + 0.3 * mtl.l21_norm(W),
    "logistic + ridge": lambda W, tasks: mtl.logistic_loss(W, tasks) + 0.3 * mtl.ridge(W),
    "hinge + l1": lambda W, tasks: mtl.hinge_loss(W, tasks) + 0.3 * mtl.l1_norm(W),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("shape", [(400, 250), (60, 250)])
def test_large_inputs_are_not_stored_twice_and_have_the_same_solutions(model, shape, monkeypatch):
    rng = np.random.default_rng(3)
    X = sparse.random_array(shape, density=0.05, rng=rng, format="csr")
    Y = np.sign(X @ rng.normal(size=(shape[1], 3)) + 0.1)
    found = []
    for stored in (1 << 20, 0):
        monkeypatch.setattr(ByFeatures.__init__, "__defaults__", (stored,))
        tasks = mtl.Tasks.shared(X, Y)
        assert tasks.by_features.is_stored == (stored > 0)
        W = mtl.Weights(tasks, intercept=True)
        found.append(mtl.minimize(MODELS[model](W, tasks)).solve(tol=1e-6))
    assert [one.status for one in found] == ["optimal", "optimal"]
    assert found[0].objective == pytest.approx(found[1].objective, rel=2e-6)


def test_working_sets_that_are_much_of_a_large_matrix_are_left_to_steps_without(monkeypatch):
    from mtldsl.solvers.proximal import proximal_gradient

    rng, asked = np.random.default_rng(4), []
    X = sparse.random_array((600, 200), density=0.1, rng=rng, format="csr")
    Y = np.where(X @ rng.normal(size=(200, 3)) > 0.5, 1.0, -1.0)
    whole = proximal_gradient.solve_whole
    monkeypatch.setattr(proximal_gradient, "solve_whole", lambda *rest: asked.append(1) or whole(*rest))
    found = []
    for stored in (1 << 20, 0):
        monkeypatch.setattr(ByFeatures.__init__, "__defaults__", (stored,))
        tasks = mtl.Tasks.shared(X, Y)
        W, lam = mtl.Weights(tasks), mtl.Parameter(1.0)
        problem = mtl.minimize(mtl.logistic_loss(W, tasks) + lam * mtl.l21_norm(W))
        first = problem.solve(solver="proximal_gradient", tol=1e-7)
        lam.value = 0.5
        found.append((first, problem.solve(solver="proximal_gradient", tol=1e-7, warm_start=first)))
        assert len(asked) == (0 if stored else 2)
    for one, other in zip(*found, strict=True):
        assert one.status == other.status == "optimal"
        assert one.objective == pytest.approx(other.objective, rel=2e-7)
