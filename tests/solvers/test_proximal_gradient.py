"""Proximal gradient, first and second order: low rank on every layout, hard starts, and what it refuses."""

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.solvers.proximal_gradient.proximal_gradient import SOLVER
from tests.loops import for_each
from tests.models import separate, shared, with_weights
from tests.pairs import pairwise_cases

LOSSES = {
    "squared": (mtl.squared_loss, "real"),
    "huber": (mtl.huber_loss, "real"),
    "logistic": (mtl.logistic_loss, "sign"),
    "squared hinge": (mtl.squared_hinge_loss, "sign"),
    "poisson": (mtl.poisson_loss, "count"),
}


@pytest.mark.slow
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
def test_low_rank_models_are_proven_to_ten_digits(name, layout, intercept):
    word, labels = LOSSES[name]
    options = {"missing": {"missing": 0.2}, "weighted": {"sample_weights": True}, "sparse": {"density": 0.5}}
    tasks = (
        separate(1, labels, sizes=(30, 17, 29, 25))
        if layout == "separate"
        else shared(1, 40, labels, **options.get(layout, {}))
    )
    W = mtl.Weights(tasks, intercept=intercept)
    problem = mtl.minimize(word(W, tasks) + 1.5 * mtl.trace_norm(W))
    solution = problem.solve("proximal_gradient", tol=1e-10)
    assert solution.status == "optimal" and solution.relative_gap <= 1e-10


@for_each("word", [mtl.huber_loss, mtl.squared_hinge_loss, mtl.poisson_loss])
def test_a_start_where_the_losses_are_flat_or_steep(word):
    """Far from its targets a Huber loss has no curvature, and its model no minimiser; a count loss has too much of it."""
    labels = {"huber_loss": "real", "poisson_loss": "count"}.get(word.__name__, "sign")
    tasks, W = with_weights(shared(12, n=40, labels=labels))
    problem = mtl.minimize(word(W, tasks) + 0.5 * mtl.trace_norm(W))
    solution = problem.solve("proximal_gradient", tol=1e-8)
    far = np.full((6, 4), 3.0 if word is mtl.poisson_loss else -100.0)
    from_far = problem.solve("proximal_gradient", tol=1e-8, warm_start={"W": far})
    assert solution.status == from_far.status == "optimal"
    assert from_far.objective == pytest.approx(solution.objective, rel=2e-8)


def test_a_start_outside_the_constraints():
    """Zero is infeasible, and has a lower objective than every feasible point."""
    tasks, W = with_weights(shared(11, n=40, labels="sign"))
    problem = mtl.minimize(mtl.logistic_loss(W, tasks) + mtl.ridge(W), subject_to=[W >= 2.0])
    assert problem.form().value({"W": np.zeros((6, 4))}) < problem.form().value({"W": np.full((6, 4), 2.0)})
    solution = problem.solve("proximal_gradient", tol=1e-8)
    assert solution.status == "optimal"
    assert solution.violation <= 1e-8


def test_a_step_from_far_away_survives_an_overflow():
    """exp overflows on the first trial steps of a Poisson model with large inputs; backtracking must get over it."""
    rng = np.random.default_rng(0)
    counts = rng.poisson(3.0, size=(20, 2)).astype(float)
    tasks, W = with_weights(mtl.Tasks.shared(300 * rng.normal(size=(20, 3)), counts), intercept=True)
    problem = mtl.minimize(mtl.poisson_loss(W, tasks) + 5.0 * mtl.l1_norm(W))
    solution = problem.solve(solver="proximal_gradient", tol=1e-6)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(problem.solve(solver="cvxpy", tol=1e-6).objective, rel=2e-6)


def test_smooth_penalties_go_where_they_cost_least():
    tasks, W = with_weights(shared(4))
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


@for_each("build, pieces", [
    (lambda W, t: mtl.absolute_loss(W, t) + mtl.ridge(W), ["absolute_loss(W, tasks)", "not smooth"]),
    (lambda W, t: mtl.squared_loss(W, t) + mtl.l1_norm(W) + 2 * mtl.trace_norm(W),
     ["l1_norm", "2 * trace_norm(W)", "singular values"]),
    (lambda W, t: mtl.squared_loss(W, t) + mtl.l1_norm(W @ np.ones((4, 2))),
     ["l1_norm(W @ array(4, 2))", "not a function of one weight matrix itself"]),
])  # fmt: skip
def test_refusals_name_the_term(build, pieces):
    tasks = shared(5)
    refusal = SOLVER.refuses(mtl.minimize(build(mtl.Weights(tasks), tasks)).form())
    for piece in pieces:
        assert piece in refusal


@for_each("name", LOSSES)
def test_turned_weights_have_the_same_optimum(name):
    """The trace norm of W is that of W Q: a loss of W @ Q, whose tasks share every column, costs no more and no less."""
    word, labels = LOSSES[name]
    tasks = shared(1, 40, labels)
    W, Q = mtl.Weights(tasks), np.linalg.qr(np.random.default_rng(2).normal(size=(4, 4)))[0]
    plain, turned = (
        mtl.minimize(word(V, tasks) + 1.5 * mtl.trace_norm(W)).solve("proximal_gradient", tol=1e-7)
        for V in (W, W @ Q)
    )
    assert plain.status == turned.status == "optimal"
    assert turned.objective == pytest.approx(plain.objective, rel=2e-7)


def squares(n, d, seed=0, kind="plain"):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if kind == "duplicates":
        X[:, d // 2 :] = X[:, : d - d // 2]
    if kind == "units":
        X = X * np.logspace(-3, 3, d)
    if kind == "sparse":
        X = sparse.csr_array(X * (rng.random((n, d)) < 0.3))
    W = rng.normal(size=(d, 2)) @ rng.normal(size=(2, 5))
    return mtl.Tasks.shared(X, X @ W + rng.normal(size=(n, 5)) + 3.0)


PENALTIES = {
    "trace": lambda W: (8 * mtl.trace_norm(W), []),
    "trace + ridge": lambda W: (6 * mtl.trace_norm(W) + 0.5 * mtl.ridge(W), []),
    "squared": lambda W: (0.3 * mtl.squared_trace_norm(W), []),
    "ball": lambda W: (0.1 * mtl.ridge(W), [mtl.trace_norm(W) <= 4.0]),
}


@pytest.mark.slow
@for_each(
    "penalty, shape, kind, intercept",
    pairwise_cases(PENALTIES, [(40, 8), (10, 25)], ["plain", "duplicates", "units", "sparse"], [False, True]),
)
def test_squares_on_one_table_agree_with_admm(penalty, shape, kind, intercept):
    tasks, W = with_weights(squares(*shape, kind=kind), intercept=intercept)
    term, constraints = PENALTIES[penalty](W)
    problem = mtl.minimize(2 * mtl.squared_loss(W, tasks) + term, subject_to=constraints)
    # lengths of columns from 1e-3 to 1e3 are beyond it at times: then others go on
    ours = problem.solve(tol=1e-6) if kind == "units" else problem.solve(solver="proximal_gradient", tol=1e-8)
    assert ours.status == "optimal"
    other = problem.solve(solver="admm", tol=1e-7)
    assert ours.objective == pytest.approx(other.objective, rel=3e-6)


def test_inputs_that_are_zero():
    tasks, W = with_weights(mtl.Tasks.shared(np.zeros((7, 3)), np.ones((7, 2))), intercept=True)
    solution = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.trace_norm(W)).solve(solver="proximal_gradient")
    assert solution.status == "optimal" and not solution.W.any()


@pytest.mark.slow
@for_each("solver", ["proximal_gradient", "auto"])
@for_each("size", [1.0, 1e3])
@for_each("seed", range(3))
def test_huber_far_out_has_newton_steps_all_the_same(solver, size, seed):
    """Labels so large that every sample lies where Huber's loss is straight: sums of squares over no curvature overflowed."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 6)) * rng.uniform(0.1, 3.0, 6) + 5.0 * rng.normal(size=6)
    tasks = mtl.Tasks.shared(X, size * (X @ rng.normal(size=(6, 3)) + rng.normal(size=(30, 3))))
    W = mtl.Weights(tasks, intercept=True)
    problem = mtl.minimize(mtl.huber_loss(W, tasks) + 0.5 * mtl.l21_norm(W))
    assert problem.solve(solver).status == "optimal"
