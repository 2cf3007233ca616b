"""Coordinate descent through the columns of sparse inputs: the solution of the same inputs written out."""

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.solvers.rows.designs import make_design
from mtldsl.solvers.rows.penalty import RowPenalty
from mtldsl.solvers.rows.sparse_state import SparseState
from mtldsl.tasks.by_features import row_sums


def inputs(n=150, d=400, m=1, seed=0):
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n, d), density=0.05, rng=rng, format="csr")
    X.data += 1.0
    W = np.zeros((d, m))
    W[:40] = rng.normal(size=(40, m))
    Y = X @ W + 0.1 * rng.normal(size=(n, m)) + 2.0
    return X, Y


TERMS = {
    "l1": lambda W: (mtl.l1_norm(W), []),
    "l1 + ridge": lambda W: (mtl.l1_norm(W) + 0.5 * mtl.ridge(W), []),
    "l21": lambda W: (mtl.l21_norm(W), []),
    "l1 + l21, W >= 0": lambda W: (0.5 * mtl.l1_norm(W) + 0.5 * mtl.l21_norm(W), [W >= 0]),
}


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("term", TERMS)
def test_agrees_with_dense_inputs(term, m, intercept):
    X, Y = inputs(m=m)
    found = []
    for one in (X, X.toarray()):
        tasks = mtl.Tasks.shared(one, Y)
        W = mtl.Weights(tasks, intercept=intercept)
        penalty, constraints = TERMS[term](W)
        problem = mtl.minimize(mtl.squared_loss(W, tasks) + 0.1 * penalty, subject_to=constraints)
        found.append(problem.solve(solver="coordinate_descent", tol=1e-9))
    assert [solution.status for solution in found] == ["optimal", "optimal"]
    assert found[0].objective == pytest.approx(found[1].objective, rel=2e-9)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("m", [1, 3])
def test_sweeps_descend_and_carry_what_they_say(m, intercept):
    X, Y = inputs(m=m, seed=1)
    tasks = mtl.Tasks.shared(X, Y)
    W = mtl.Weights(tasks, intercept=intercept)
    form = mtl.minimize(mtl.squared_loss(W, tasks) + 0.3 * mtl.l1_norm(W) + 0.2 * mtl.l21_norm(W)).form()
    design = make_design(form.losses[0])
    rows = np.arange(3, 390)
    assert SparseState.pays(design, rows)
    state = SparseState(design, RowPenalty.of(form.functions, (400, m)), rows, np.zeros((m, rows.size)))
    dense = X.toarray()
    dense = (dense - dense.mean(axis=0) if intercept else dense)[:, rows]
    before = np.inf
    for _ in range(12):
        now = state.objective(state.W, state.carried)
        assert now <= before * (1 + 1e-12)
        before = now
        R = design.Y - state.W @ dense.T
        np.testing.assert_allclose(state.pull(), R @ dense, atol=1e-10)
        np.testing.assert_allclose(state.moments(), (np.vdot(R, R), np.vdot(R, design.Y)), rtol=1e-10)
        state.sweep()


def test_sums_of_rows_with_empty_ones():
    X = sparse.random_array((5000, 300), density=0.003, rng=np.random.default_rng(2), format="csr")
    X = sparse.csr_array(sparse.vstack([sparse.csr_array((3, 300)), X, sparse.csr_array((3, 300))]))
    np.testing.assert_allclose(row_sums(X), X.toarray().sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(row_sums(X, squared=True), (X.toarray() ** 2).sum(axis=1), atol=1e-12)
