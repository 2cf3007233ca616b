"""Accelerated proximal gradient: its optimality, hard starts, and what it refuses."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.solvers.proximal_gradient import SOLVER
from tests.models import shared

rng = np.random.default_rng(0)


def test_optimality_conditions_by_hand():
    """Multi-task lasso: on rows that are used the pull is exactly lam W_r / ||W_r||, elsewhere it is at most lam."""
    tasks = shared(3, n=40)
    W, lam = mtl.Weights(tasks), 4.0
    solution = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.l21_norm(W)).solve(
        solver="proximal_gradient", tol=1e-12
    )
    Y = tasks.targets.reshape(tasks.n_tasks, -1).T
    pull = tasks.X.T @ (Y - tasks.X @ solution.W)
    used = np.linalg.norm(solution.W, axis=1) > 0
    assert 0 < used.sum() < used.size
    rows = solution.W[used]
    np.testing.assert_allclose(
        pull[used], lam * rows / np.linalg.norm(rows, axis=1, keepdims=True), atol=1e-4
    )
    assert np.linalg.norm(pull[~used], axis=1).max() <= lam * (1 + 1e-6)


def test_a_step_from_far_away_survives_an_overflow():
    """exp overflows on the first trial steps of a Poisson model with large inputs; backtracking must get over it."""
    counts = rng.poisson(3.0, size=(20, 2)).astype(float)
    tasks = mtl.Tasks.shared(300 * rng.normal(size=(20, 3)), counts)
    W = mtl.Weights(tasks, intercept=True)
    problem = mtl.minimize(mtl.poisson_loss(W, tasks) + 5.0 * mtl.l1_norm(W))
    solution = problem.solve(solver="proximal_gradient", tol=1e-6)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(problem.solve(solver="cvxpy", tol=1e-6).objective, rel=2e-6)


def test_smooth_penalties_go_where_they_cost_least():
    tasks = shared(4)
    W = mtl.Weights(tasks)
    laplacian = 2 * np.eye(4) - np.ones((4, 4)) / 2
    alone = mtl.minimize(mtl.huber_loss(W, tasks) + mtl.graph_laplacian(W, laplacian) + mtl.ridge(W))
    beside = mtl.minimize(mtl.huber_loss(W, tasks) + mtl.graph_laplacian(W, laplacian) + mtl.l1_norm(W))
    through = mtl.minimize(mtl.huber_loss(W, tasks) + mtl.ridge(W @ np.ones((4, 2))) + mtl.l1_norm(W))
    for problem in (alone, beside, through):
        assert SOLVER.refuses(problem.form()) is None
        solution = problem.solve(solver="proximal_gradient", tol=1e-8)
        assert solution.status == "optimal"
        assert solution.objective == pytest.approx(problem.solve(solver="admm", tol=1e-8).objective, rel=2e-8)


@pytest.mark.parametrize(
    "build, pieces",
    [
        (lambda W, t: mtl.absolute_loss(W, t) + mtl.ridge(W), ["absolute_loss(W, tasks)", "not smooth"]),
        (
            lambda W, t: mtl.squared_loss(W, t) + mtl.l1_norm(W) + 2 * mtl.trace_norm(W),
            ["l1_norm", "2 * trace_norm(W)", "singular values"],
        ),
        (
            lambda W, t: mtl.squared_loss(W, t) + mtl.l1_norm(W @ np.ones((4, 2))),
            ["l1_norm(W @ array(4, 2))", "not a function of one weight matrix itself"],
        ),
    ],
)
def test_refusals_name_the_term(build, pieces):
    tasks = shared(5)
    refusal = SOLVER.refuses(mtl.minimize(build(mtl.Weights(tasks), tasks)).form())
    for piece in pieces:
        assert piece in refusal


def test_large_models_go_to_proximal_gradient_and_explain_says_why():
    wide = mtl.Tasks.shared(
        rng.normal(size=(6, 3000)),
        np.where(rng.normal(size=(6, 2)) > 0, 1.0, -1.0) * [[1], [-1], [1], [1], [1], [-1]],
    )
    W = mtl.Weights(wide)
    explanation = mtl.minimize(mtl.logistic_loss(W, wide) + mtl.trace_norm(W)).explain()
    assert explanation.chosen == "proximal_gradient"
    assert (
        "3000 unknowns a task" in dict((name, reason) for name, _, reason in explanation.verdicts())["admm"]
    )
