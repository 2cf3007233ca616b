"""Coordinate descent through the columns of sparse inputs: the solution of the same inputs written out."""

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.solvers.kernels import row_rounds
from mtldsl.solvers.rows.designs import SharedRows, make_design
from mtldsl.solvers.rows.penalty import RowPenalty
from mtldsl.solvers.rows.sparse_state import SparseState
from mtldsl.solvers.rows.states import GramState


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
@pytest.mark.parametrize("stored", [True, False])
def test_rounds_descend_and_carry_what_they_say(stored, m, intercept):
    X, Y = inputs(m=m, seed=1)
    tasks = mtl.Tasks.shared(X, Y)
    tasks.by_features.is_stored = stored
    W = mtl.Weights(tasks, intercept=intercept)
    form = mtl.minimize(mtl.squared_loss(W, tasks) + 0.3 * mtl.l1_norm(W) + 0.2 * mtl.l21_norm(W)).form()
    design = make_design(form.losses[0])
    rows = np.arange(3, 390)
    assert SparseState.pays(design, rows)
    penalty = RowPenalty.of(form.functions, (400, m))
    state = SparseState(design, penalty, rows, np.zeros((m, rows.size)))
    dense = X.toarray()
    dense = (dense - dense.mean(axis=0) if intercept else dense)[:, rows]
    before = np.inf
    for _ in range(500):
        _, said, _ = state.rounds(1, 1e-6)
        R = design.Y - state.W @ dense.T
        np.testing.assert_allclose(state.centred(state.W, state.carried).T, R, atol=1e-10)
        now = 0.5 * np.vdot(R, R) + penalty.on(rows).value(state.W)
        assert now <= before * (1 + 1e-12)
        before = now
        gap = (now - bound_of_residual(design.Y, dense, penalty.on(rows), state.dual_W)) / now
        assert gap > -1e-12 and said > -1e-12 and (said <= 1e-6) == (gap <= 1e-6)
        if said <= 1e-6:
            return
    pytest.fail("500 rounds did not reach a gap of 1e-6")


@pytest.mark.parametrize("intercept", [False, True])
def test_a_residual_that_is_too_large_to_remember_is_that_of_the_weights(intercept):
    """Extrapolations of it are made from the columns."""
    X, Y = inputs(n=50_000, d=60, m=3, seed=2)
    tasks = mtl.Tasks.shared(X, Y)
    W = mtl.Weights(tasks, intercept=intercept)
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + 50.0 * mtl.l1_norm(W))
    design = make_design(problem.form().losses[0])
    state = SparseState(
        design, RowPenalty.of(problem.form().functions, (60, 3)), np.arange(60), np.zeros((3, 60))
    )
    assert state.carried.size > row_rounds._REMEMBERED
    for _ in range(4):
        state.rounds(1, 1e-9)
        np.testing.assert_allclose(state.carried, Y_of(design) - X @ state.W.T, atol=1e-9)
    assert problem.solve(solver="coordinate_descent", tol=1e-8).status == "optimal"


def Y_of(design):
    """(n, m) what a residual at no weights is."""
    return np.asarray(design.Y).T


def bound_of_residual(Y, X, penalty, W):
    """The bound that the residual of weights W (m, p) proves, scaled into the dual balls as well as it can be: written out."""
    R = Y - W @ X.T
    pull = R @ X
    if penalty.ridge.any():
        pull = pull - penalty.ridge * W
    left = np.sign(pull) * np.maximum(np.abs(pull) - penalty.l1, 0.0)
    over = np.maximum(np.sqrt((left**2).sum(axis=0)) - penalty.l21, 0.0)
    if penalty.ridge.any():
        return np.vdot(R, Y) - 0.5 * np.vdot(R, R) - taken(penalty, W, left, over)
    t = 1.0 / (1.0 + np.max(over / penalty.l21))
    t = min(t, np.vdot(R, Y) / np.vdot(R, R))
    return t * np.vdot(R, Y) - 0.5 * t * t * np.vdot(R, R)


def taken(penalty, W, left, over):
    norms = np.maximum(np.sqrt((left**2).sum(axis=0)), 1e-300)
    part = penalty.ridge * W + over / norms * left
    return 0.5 * float((part**2 / penalty.ridge).sum())


@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("ridge", [0.0, 0.7])
def test_rounds_on_a_gram_matrix_prove_what_they_say(m, ridge):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 30)) @ (np.eye(30) + 0.5)  # collinear: many rounds
    Y = X[:, :4] @ rng.normal(size=(4, m)) + rng.normal(size=(40, m))
    tasks = mtl.Tasks.shared(X, Y)
    W = mtl.Weights(tasks)
    words = 3.0 * mtl.l21_norm(W) + 2.0 * mtl.l1_norm(W)
    words = words + ridge * mtl.ridge(W) if ridge else words
    form = mtl.minimize(mtl.squared_loss(W, tasks) + words).form()
    design = make_design(form.losses[0])
    penalty, rows = RowPenalty.of(form.functions, (30, m)), np.arange(30)
    state = GramState(design, penalty, rows, np.zeros((m, 30)), X.T @ X, None)
    for _ in range(200):
        _, said, _ = state.rounds(1, 1e-6)
        np.testing.assert_allclose(state.carried, state.gradient(state.W), atol=1e-8)
        objective = 0.5 * np.sum((design.Y - state.W @ X.T) ** 2) + penalty.value(state.W)
        gap = (objective - bound_of_residual(design.Y, X, penalty, state.dual_W)) / objective
        assert gap > -1e-12 and said > -1e-12 and (said <= 1e-6) == (gap <= 1e-6)
        if said <= 1e-6:
            return
    pytest.fail("200 rounds did not reach a gap of 1e-6")


def test_columns_that_sweeps_are_slow_with_go_to_a_gram_matrix(monkeypatch):
    rng = np.random.default_rng(0)
    base = sparse.random_array((300, 30), density=0.2, rng=rng).toarray()
    noise = sparse.random_array((300, 120), density=0.2, rng=rng).toarray()
    X = np.hstack([base] * 4) + 3e-3 * noise  # each column four times, nearly
    y = X[:, :10].sum(axis=1) + 0.01 * rng.normal(size=300)
    made, gram = [], SharedRows._gram
    monkeypatch.setattr(SharedRows, "_gram", lambda *given: made.append(1) or gram(*given))
    found = []
    for one in (sparse.csr_array(X), X):
        tasks = mtl.Tasks.shared(one, y[:, None])
        W = mtl.Weights(tasks)
        problem = mtl.minimize(mtl.squared_loss(W, tasks) + 1e-3 * mtl.l1_norm(W))
        found.append(problem.solve(solver="coordinate_descent", tol=1e-7))
    assert made and [solution.status for solution in found] == ["optimal", "optimal"]
    assert found[0].objective == pytest.approx(found[1].objective, rel=2e-7)
