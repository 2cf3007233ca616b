"""Proximal gradient, first and second order: optimality conditions derived here, hard starts, and what it refuses."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.solvers.proximal.proximal_gradient import SOLVER
from tests.loops import for_each
from tests.models import separate, shared

rng = np.random.default_rng(0)


LOSSES = {
    "squared": (mtl.squared_loss, "real", lambda z, y: z - y),
    "huber": (mtl.huber_loss, "real", lambda z, y: np.clip(z - y, -1, 1)),
    "logistic": (mtl.logistic_loss, "sign", lambda z, y: -y / (1 + np.exp(y * z))),
    "squared hinge": (mtl.squared_hinge_loss, "sign", lambda z, y: -2 * y * np.maximum(1 - y * z, 0)),
    "poisson": (mtl.poisson_loss, "count", lambda z, y: np.exp(z) - y),
}


def pulls(solution, tasks, slope):
    """-X_i^T l'(X_i w_i + b_i, y_i) column by column, and the sums of l'."""
    b = np.zeros(tasks.n_tasks) if solution.intercept is None else solution.intercept
    columns, sums = [], []
    for i, (X, y) in enumerate(zip(tasks.inputs, tasks.per_task(tasks.targets), strict=True)):
        s = 1.0 if tasks.sample_weights is None else tasks.per_task(tasks.sample_weights)[i]
        u = s * slope(X @ solution.W[:, i] + b[i], y)
        columns.append(-(X.T @ u))
        sums.append(np.sum(u))
    return np.column_stack(columns), np.array(sums)


@for_each("intercept", [False, True])
@for_each(
    "name, layout",
    [
        (name, layout)
        for name in LOSSES
        for layout in ("shared", "missing", "weighted", "sparse", "separate")
        if (name, layout) != ("poisson", "separate")  # tests.models makes no such data
    ],
)
def test_low_rank_models_satisfy_their_optimality_conditions(name, layout, intercept):
    """-gradient = lam (U V^T + Z) with U^T Z = 0, Z V = 0, ||Z||_2 <= 1, and the intercepts' derivatives are zero."""
    word, labels, slope = LOSSES[name]
    options = {"missing": {"missing": 0.2}, "weighted": {"sample_weights": True}, "sparse": {"density": 0.5}}
    tasks = (
        separate(1, labels, sizes=(30, 17, 29, 25))
        if layout == "separate"
        else shared(1, 40, labels, **options.get(layout, {}))
    )
    W, lam = mtl.Weights(tasks, intercept=intercept), 1.5
    problem = mtl.minimize(word(W, tasks) + lam * mtl.trace_norm(W))
    solution = problem.solve("proximal_gradient", tol=1e-10)
    assert solution.status == "optimal"
    pull, sums = pulls(solution, tasks, slope)
    U, s, Vt = np.linalg.svd(solution.W)
    rank = int(np.count_nonzero(s > 1e-8 * s[0]))
    rotated = U.T @ pull @ Vt.T
    np.testing.assert_allclose(rotated[:rank, :rank], lam * np.eye(rank), atol=1e-3)
    assert rank == 4 or np.linalg.norm(rotated[rank:, rank:], 2) <= lam * (1 + 1e-7)
    assert np.abs(rotated[:rank, rank:]).max(initial=0.0) < 1e-3
    if intercept:
        assert np.abs(sums).max() < 1e-3


@for_each("word", [mtl.huber_loss, mtl.squared_hinge_loss, mtl.poisson_loss])
def test_a_start_where_the_losses_are_flat_or_steep(word):
    """Far from its targets a Huber loss has no curvature, and its model no minimiser; a count loss has too much of it."""
    labels = {"huber_loss": "real", "poisson_loss": "count"}.get(word.__name__, "sign")
    tasks = shared(12, n=40, labels=labels)
    W = mtl.Weights(tasks)
    problem = mtl.minimize(word(W, tasks) + 0.5 * mtl.trace_norm(W))
    solution = problem.solve("proximal_gradient", tol=1e-8)
    far = np.full((6, 4), 3.0 if word is mtl.poisson_loss else -100.0)
    from_far = problem.solve("proximal_gradient", tol=1e-8, warm_start={"W": far})
    assert solution.status == from_far.status == "optimal"
    assert from_far.objective == pytest.approx(solution.objective, rel=2e-8)


def test_a_start_outside_the_constraints():
    """Zero is infeasible, and has a lower objective than every feasible point."""
    tasks = shared(11, n=40, labels="sign")
    W = mtl.Weights(tasks)
    problem = mtl.minimize(mtl.logistic_loss(W, tasks) + mtl.ridge(W), subject_to=[W >= 2.0])
    assert problem.form().value({"W": np.zeros((6, 4))}) < problem.form().value({"W": np.full((6, 4), 2.0)})
    solution = problem.solve("proximal_gradient", tol=1e-8)
    assert solution.status == "optimal"
    assert solution.violation <= 1e-8


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
    for penalty in (
        mtl.graph_laplacian(W, laplacian) + mtl.ridge(W),
        mtl.graph_laplacian(W, laplacian) + mtl.l1_norm(W),
        mtl.ridge(W @ np.ones((4, 2))) + mtl.l1_norm(W),
    ):
        problem = mtl.minimize(mtl.huber_loss(W, tasks) + penalty)
        solution = problem.solve(solver="proximal_gradient", tol=1e-8)
        assert solution.status == "optimal"
        assert solution.objective == pytest.approx(problem.solve(solver="admm", tol=1e-8).objective, rel=2e-8)


@for_each(
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


@for_each("name", LOSSES)
def test_turned_weights_have_the_same_optimum(name):
    """The trace norm of W is that of W Q: a loss of W @ Q, whose tasks share every column, costs no more and no less."""
    word, labels, _ = LOSSES[name]
    tasks = shared(1, 40, labels)
    W, Q = mtl.Weights(tasks), np.linalg.qr(np.random.default_rng(2).normal(size=(4, 4)))[0]
    plain, turned = (
        mtl.minimize(word(V, tasks) + 1.5 * mtl.trace_norm(W)).solve("proximal_gradient", tol=1e-7)
        for V in (W, W @ Q)
    )
    assert plain.status == turned.status == "optimal"
    assert turned.objective == pytest.approx(plain.objective, rel=2e-7)
