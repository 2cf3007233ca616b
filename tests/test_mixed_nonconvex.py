"""Mixed models that are not convex, none of them from a paper: solved to a stationary point, and cross-checked block by block."""

from functools import cache

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.solvers.routes import candidates
from tests.models import kept_in, separate, shared, with_weights

MODELS = {}
model = kept_in(MODELS)


@model
def calibrated_low_rank_with_intercept_and_missing_labels():
    t, W = with_weights(shared(1, missing=0.2), intercept=True)
    return mtl.minimize(mtl.square_root_loss(W, t) + 0.8 * mtl.log_rank(W))


@model
def exact_log_rank_plus_outlier_tasks():
    t = separate(2)
    L, S = mtl.Weights(t, name="L"), mtl.Weights(t, name="S")
    return mtl.minimize(mtl.square_root_loss(L + S, t) + mtl.log_rank(L, eps=0) + mtl.l12_norm(S))


@model
def smoothed_log_rank_plus_sparse():
    t = separate(3)
    L, S = mtl.Weights(t, name="L"), mtl.Weights(t, name="S")
    return mtl.minimize(mtl.squared_loss(L + S, t) + 2.0 * mtl.log_rank(L) + 1.5 * mtl.l1_norm(S))


@model
def logistic_schatten_with_sample_weights():
    t, W = with_weights(shared(4, n=40, labels="sign", sample_weights=True), intercept=True)
    return mtl.minimize(mtl.logistic_loss(W, t) + 1.5 * mtl.schatten_norm(W, 0.5) + 0.1 * mtl.ridge(W))


@model
def nonnegative_log_rank():
    t, W = with_weights(shared(5))
    return mtl.minimize(mtl.squared_loss(W, t) + 2.0 * mtl.log_rank(W), subject_to=[W >= 0])


@model
def bounded_rank_with_a_huber_loss():
    t, W = with_weights(separate(6))
    return mtl.minimize(mtl.huber_loss(W, t) + 0.5 * mtl.ridge(W), subject_to=[mtl.rank(W) <= 1])


@model
def log_rank_of_shared_inputs_with_graph_and_rows():
    t, W = with_weights(shared(7))
    path = np.diag([1.0, 2, 2, 1]) - np.diag(np.ones(3), 1) - np.diag(np.ones(3), -1)
    return mtl.minimize(
        mtl.squared_loss(W, t) + 2.0 * mtl.log_rank(W) + mtl.graph_laplacian(W, path) + mtl.l21_norm(W)
    )


@model
def poisson_log_rank():
    t, W = with_weights(shared(8, labels="count"), intercept=True)
    return mtl.minimize(mtl.poisson_loss(W, t) + 2.0 * mtl.log_rank(W))


@model
def two_spectral_penalties_and_a_ridge():
    t, W = with_weights(separate(9), intercept=True)
    return mtl.minimize(
        mtl.sum_of_squares(W, t)
        + 2.0 * mtl.log_rank(W)
        + 1.0 * mtl.schatten_norm(W, 0.7)
        + 0.5 * mtl.ridge(W)
    )


@model
def two_losses_and_one_log_rank():
    real, sign = shared(10), shared(10, labels="sign")
    W = mtl.Weights(real)
    return mtl.minimize(mtl.squared_loss(W, real) + 2.0 * mtl.logistic_loss(W, sign) + 2.0 * mtl.log_rank(W))


@model
def log_rank_of_differences_of_tasks():
    t, W = with_weights(shared(11))
    B = np.array([[1.0, 0, 0], [-1, 1, 0], [0, -1, 1], [0, 0, -1]])
    return mtl.minimize(mtl.squared_loss(W, t) + 2.0 * mtl.log_rank(W @ B) + 0.5 * mtl.ridge(W))


@model
def a_penalty_of_ones_own_on_some_rows():
    t, W = with_weights(shared(12))
    own = mtl.spectral_penalty(W[:4, :], lambda x: np.log1p(x), lambda x: 1.0 / (1.0 + x), eps=0.05)
    return mtl.minimize(mtl.squared_loss(W, t) + 2.0 * own + 1.0 * mtl.l1_norm(W[4:, :]) + 0.1 * mtl.ridge(W))


@model
def log_rank_beside_a_learned_covariance():
    t = separate(13)
    W, Omega = mtl.Weights(t), mtl.TaskCovariance(t, "Omega")
    return mtl.minimize(
        mtl.squared_loss(W, t) + 1.0 * mtl.log_rank(W) + 2.0 * mtl.task_covariance_norm(W, Omega),
        subject_to=[Omega.trace() <= 1],
    )


@cache
def solved(name):
    problem = MODELS[name]()
    return problem, problem.solve(tol=1e-7)


@pytest.mark.by_default("nonnegative_log_rank")
@pytest.mark.parametrize("name", MODELS)
def test_stationary_cross_checked_and_no_step_leads_down(name):
    problem, solution = solved(name)
    assert not problem.is_convex
    assert solution.status == "stationary", f"{solution!r}\n{problem.explain()}"
    assert solution.stationarity.residual <= 1e-6 and solution.violation <= 1e-6
    check = problem.cross_check(solution)
    assert check.agrees, check.disagreements
    form, rng = problem.form(), np.random.default_rng(0)
    bound = {k: np.abs(block).max() for k, block in solution.blocks.items()}
    for scale in (1e-2, 1e-4):
        for _ in range(5):
            blocks = {k: b + scale * bound[k] * rng.normal(size=b.shape) for k, b in solution.blocks.items()}
            if name == "nonnegative_log_rank":
                blocks["W"] = np.maximum(blocks["W"], 0.0)
            if name == "bounded_rank_with_a_huber_loss":
                U, s, Vt = np.linalg.svd(blocks["W"])
                blocks["W"] = s[0] * np.outer(U[:, 0], Vt[0])
            assert form.value(blocks) > solution.objective - 1e-6 * scale * abs(solution.objective)


CASES = [
    (name, solver)
    for name in MODELS
    for solver in list(candidates(MODELS[name]().form()))[1:]
    if solver not in ("cvxpy",)
]


@pytest.mark.by_default("nonnegative_log_rank-admm")
@pytest.mark.parametrize("name, solver", CASES)
def test_every_solver_that_accepts_ends_no_higher(name, solver):
    """The solvers may end at different stationary points; from the other's point none finds its way up."""
    problem, best = solved(name)
    solution = problem.solve(solver=solver, tol=1e-5, warm_start=best)
    assert solution.is_certified, solution
    assert solution.objective <= best.objective + 1e-7 * abs(best.objective)
