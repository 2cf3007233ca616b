"""Ridge on one X: Cholesky factors, eigenvectors and conjugate gradients against one system written out."""

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.solvers.closed_form import SOLVER
from mtldsl.solvers.linear_algebra import shared_ridge
from mtldsl.solvers.linear_algebra.shifted import Shifted
from mtldsl.tasks.gram import gram

M = 3


def written_out(X, Y, L, scale, weights, intercept):
    """The weights and intercepts of one dense system over all tasks."""
    n, d = X.shape
    A = np.hstack([X, np.ones((n, 1))]) if intercept else X
    H = scale * A.T @ (A * weights[:, None])
    border = np.zeros(A.shape[1])
    border[:d] = 1.0
    system = np.kron(np.eye(M), H) + np.kron(L, np.diag(border))
    rhs = scale * (A.T @ (weights[:, None] * Y)).T.ravel()
    solution = np.linalg.solve(system, rhs).reshape(M, -1).T
    return solution[:d], solution[d:]


def graph(ridge):
    L = np.array([[2.0, -1.0, -1.0], [-1.0, 1.5, -0.5], [-1.0, -0.5, 1.5]])
    return L, L + ridge * np.eye(M)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(60, 9), (9, 14)])
def test_dense_inputs(shape, weighted, coupled, intercept):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=shape) + 3.0, rng.normal(size=(shape[0], M)) + 2.0
    weights = rng.uniform(0.5, 2.0, shape[0]) if weighted else np.ones(shape[0])
    tasks = mtl.Tasks.shared(X, Y, sample_weights=np.column_stack([weights] * M) if weighted else None)
    W = mtl.Weights(tasks, intercept=intercept)
    L, whole = graph(0.3)
    term = 0.3 * mtl.ridge(W) + mtl.graph_laplacian(W, L) if coupled else 0.3 * mtl.ridge(W)
    solution = mtl.minimize(2 * mtl.squared_loss(W, tasks) + term).solve(solver="closed_form", tol=1e-11)
    assert solution.status == "optimal"
    expected, b = written_out(X, Y, whole if coupled else 0.3 * np.eye(M), 2.0, weights, intercept)
    np.testing.assert_allclose(solution.W, expected, atol=1e-9)
    if intercept:
        np.testing.assert_allclose(solution["W.intercept"], b, atol=1e-8)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("shape", [(700, 520), (520, 700)])
def test_large_sparse_inputs_by_conjugate_gradients(shape, coupled, intercept):
    rng = np.random.default_rng(1)
    X = sparse.random_array(shape, density=0.01, rng=rng, format="csr")
    X.data += 1.0
    Y = rng.normal(size=(shape[0], M)) + 2.0
    tasks = mtl.Tasks.shared(X, Y)
    W = mtl.Weights(tasks, intercept=intercept)
    L, whole = graph(0.01)
    term = 0.01 * mtl.ridge(W) + mtl.graph_laplacian(W, L) if coupled else 0.01 * mtl.ridge(W)
    form = mtl.minimize(mtl.squared_loss(W, tasks) + term)
    exact = form.solve(solver="closed_form", tol=1e-10)
    assert exact.status == "optimal"
    dense = X.toarray()
    expected, _ = written_out(
        dense, Y, whole if coupled else 0.01 * np.eye(M), 1.0, np.ones(shape[0]), intercept
    )
    np.testing.assert_allclose(exact.W, expected, atol=1e-4 * np.abs(expected).max())
    assert form.solve(solver="closed_form", tol=1e-3).objective == pytest.approx(exact.objective, rel=1e-3)


@pytest.mark.parametrize("shape", [(700, 520), (520, 700)])
def test_many_tasks_of_sparse_inputs_share_one_factor(shape, monkeypatch):
    """Where it costs less than conjugate gradients for all of them; both ways lead to the same weights."""
    rng = np.random.default_rng(1)
    X = sparse.random_array(shape, density=0.02, rng=rng, format="csr")
    tasks = mtl.Tasks.shared(X, rng.normal(size=(shape[0], 40)))
    W = mtl.Weights(tasks, intercept=True)
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + 0.01 * mtl.ridge(W))
    called = []
    by_products = shared_ridge.conjugate_solutions
    monkeypatch.setattr(
        shared_ridge, "conjugate_solutions", lambda *args: called.append(True) or by_products(*args)
    )
    first = problem.solve(solver="closed_form", tol=1e-9)
    assert first.status == "optimal" and not called
    monkeypatch.setattr(shared_ridge, "_STEPS", 0)
    second = problem.solve(solver="closed_form", tol=1e-9)
    assert second.status == "optimal" and called
    # a gap of 1e-9 leaves the weights its root, some 3e-5 of their size
    np.testing.assert_allclose(first.W, second.W, atol=1e-4 * np.abs(first.W).max())


def test_ill_conditioned_inputs_are_refined_or_left_to_singular_values():
    rng = np.random.default_rng(2)
    Q = np.linalg.qr(rng.normal(size=(80, 12)))[0]
    for condition, lam in ((1e4, 1e-6), (1e7, 1e-9), (1e9, 1e-12)):
        X = Q * np.geomspace(1.0, 1.0 / condition, 12) @ np.linalg.qr(rng.normal(size=(12, 12)))[0]
        tasks = mtl.Tasks.shared(X, rng.normal(size=(80, M)))
        W = mtl.Weights(tasks)
        solution = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.ridge(W)).solve(tol=1e-9)
        assert solution.status == "optimal" and solution.solver == SOLVER.name


@pytest.mark.parametrize("shifts", [[0.5, 0.5, 0.5], [0.5, 2.0, 0.1], np.geomspace(0.1, 9.0, 20)])
def test_shifted_systems(shifts):
    rng = np.random.default_rng(3)
    A, shifts = rng.normal(size=(30, 8)), np.array(shifts)
    B = rng.normal(size=(len(shifts), 8))
    system = Shifted(A.T @ A, shifts, room=1e6)
    expected = [np.linalg.solve(A.T @ A + s * np.eye(8), b) for s, b in zip(shifts, B, strict=True)]
    assert system.is_regular
    np.testing.assert_allclose(system.solve(B), expected, atol=1e-12)
    assert np.all(system.error(B) > 0)
    singular = np.outer(np.ones(4), np.ones(4))
    assert not Shifted(singular.copy(), np.array([0.0]), 1e6).is_regular
    assert Shifted(singular.copy(), np.array([1e-3]), 1e6).is_regular


def test_gram_of_sparse_inputs_in_slabs(monkeypatch):
    X = sparse.random_array((40, 30), density=0.2, rng=np.random.default_rng(4), format="csr")
    weights = np.arange(40.0)
    monkeypatch.setattr("mtldsl.tasks.gram._SLAB", 100)
    dense = X.toarray()
    np.testing.assert_allclose(gram(X), dense.T @ dense, atol=1e-12)
    np.testing.assert_allclose(gram(X, weights), dense.T @ (dense * weights[:, None]), atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mean", [0.5, 50.0, 5000.0])
def test_labels_far_from_zero_beside_an_intercept(mean, weighted):
    """Their means are taken off the sums where that costs no digits, and off the labels elsewhere."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 9)), rng.normal(size=(60, M)) + mean
    weights = rng.uniform(0.5, 2.0, 60) if weighted else np.ones(60)
    tasks = mtl.Tasks.shared(X, Y, sample_weights=weights if weighted else None)
    W = mtl.Weights(tasks, intercept=True)
    solution = mtl.minimize(mtl.squared_loss(W, tasks) + 0.3 * mtl.ridge(W)).solve(tol=1e-9)
    expected, intercepts = written_out(X, Y, 0.3 * np.eye(M), 1.0, weights, True)
    assert solution.status == "optimal" and solution.solver == "closed_form"
    np.testing.assert_allclose(solution.W, expected, rtol=0, atol=1e-13 * mean + 1e-13)
    np.testing.assert_allclose(solution.intercept, intercepts[0], rtol=1e-12)
