"""First-order conditions with multipliers: zero where optimality is proven otherwise, positive elsewhere, and not to be deceived."""

from functools import cache

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.certificates.stationarity import first_order_residuals
from tests.loops import for_each
from tests.models import MODELS, separate, shared, with_weights

#: Convex models whose optimum another certificate proves, the duality gap; terms without an exact prox apart.
CONVEX = [
    "robust_multi_task_low_rank_plus_outlier_tasks", "sparse_group_lasso_nonnegative",
    "hinge_low_rank_with_intercept_and_missing_labels", "quantile_loss_in_a_trace_norm_ball",
    "square_root_loss_low_rank", "square_root_loss_group_sparse_plus_sparse", "poisson_group_sparse_ridge",
    "sparse_separate_logistic_l12_and_bounds", "squared_trace_norm_and_frobenius_ball",
    "absolute_deviation_frobenius_elastic", "low_rank_offset_from_known_weights",
]  # fmt: skip


@cache
def solved(name):
    problem = MODELS[name]()
    solution = problem.solve(solver="admm", tol=1e-10)
    assert solution.status == "optimal"
    form, point = problem.form(), solution.state
    return form, solution, point.loss_duals, point.function_duals


def residual(form, blocks, *duals):
    found = first_order_residuals(form, blocks, *duals)
    return max(found.values())


@pytest.mark.slow
@for_each("name", CONVEX)
def test_zero_at_a_proven_optimum(name):
    form, solution, *duals = solved(name)
    found = first_order_residuals(form, solution.blocks, *duals)
    assert found is not None and max(found.values()) <= 1e-4
    named = {loss.typed for loss in form.losses if not loss.atom.smooth}
    named |= {f.typed for f in form.functions if f.is_constraint or not f.atom.is_smooth}
    assert set(found) == named | {"balance"}


@for_each("name", CONVEX)
def test_positive_away_from_it(name):
    form, solution, *duals = solved(name)
    rng = np.random.default_rng(0)
    for scale in (1e-2, 1e-1, 1.0):
        moved = {k: b + scale * rng.normal(size=b.shape) for k, b in solution.blocks.items()}
        assert residual(form, moved, *duals) > 1e-3
        guessed = first_order_residuals(form, moved)  # None where two terms of a block lack a multiplier
        assert guessed is None or max(guessed.values()) > 1e-3


@for_each("name", CONVEX)
def test_wrong_multipliers_are_caught(name):
    """At the optimum itself: multipliers prove something, or they do not; none are taken on trust."""
    form, solution, losses, functions = solved(name)
    right, rng = residual(form, solution.blocks, losses, functions), np.random.default_rng(1)
    rough = [k for k, loss in enumerate(form.losses) if not loss.atom.smooth]
    if rough:
        size = np.linalg.norm(np.asarray(losses[rough[0]]))
        wrong = [
            np.asarray(u) + 0.3 * size / np.sqrt(np.size(u)) * rng.normal(size=np.shape(u)) for u in losses
        ]
        assert residual(form, solution.blocks, wrong, functions) > max(1e-3, 10 * right)
        assert residual(form, solution.blocks, [0.5 * np.asarray(u) for u in losses], functions) > 1e-2
    kinks = [k for k, f in enumerate(form.functions) if f.is_constraint or not f.atom.is_smooth]
    if len(kinks) > 1 and len(form.weight_blocks) == 1:  # a block's only term takes what balances the others
        wrong = list(functions)
        v = np.asarray(wrong[kinks[0]])
        wrong[kinks[0]] = v + (0.5 * np.linalg.norm(v) + 0.1) / np.sqrt(v.size) * rng.normal(size=v.shape)
        assert residual(form, solution.blocks, losses, wrong) > max(1e-3, 10 * right)


def test_the_subgradients_of_the_log_rank():
    """U1 diag(1/(1+s)) V1^T + Z: with Z of norm <= 1 it is one, with a larger Z, or another slope, it is none."""
    tasks, W = with_weights(separate(0))
    problem = mtl.minimize(mtl.square_root_loss(W, tasks) + 3.0 * mtl.log_rank(W, eps=0))
    form, solution = problem.form(), problem.solve(tol=1e-9)
    assert solution.status == "stationary"
    U, s, Vt = np.linalg.svd(solution.W)
    rank = int(np.sum(s > 1e-8))
    assert 0 < rank < len(s)
    (f,), (loss,) = form.functions, form.losses
    u = loss.gradient(loss.predictions(solution.blocks))
    assert max(first_order_residuals(form, solution.blocks, [u]).values()) <= 1e-8
    kept = (U[:, :rank] * s[:rank]) @ Vt[:rank]
    pulled = form.zeros()
    loss.add_adjoint(u, pulled)
    Z = U[:, rank:].T @ pulled["W"] @ Vt[rank:].T / f.coefficient
    assert np.linalg.norm(Z, 2) < 1
    # a singular value that vanishes, or one that appears, is a step away from the conditions
    for change in (1e-2, 1e-1):
        more = kept + change * np.outer(U[:, rank], Vt[rank])
        less = kept - change * s[rank - 1] * np.outer(U[:, rank - 1], Vt[rank - 1])
        for W in (more, less):
            assert residual(form, {"W": W}) > 1e-3 * change
    assert residual(form, {"W": (U[:, : rank - 1] * s[: rank - 1]) @ Vt[: rank - 1]}) > 1e-3


def test_zero_is_stationary_only_under_a_steep_penalty():
    """-[X_i^T theta_i] = mu Z with ||Z||_2 <= 1: from lambda_max on, and not below."""
    tasks, W = with_weights(separate(3))
    theta = [-y / np.linalg.norm(y) for y in tasks.per_task(tasks.targets)]
    pulled = np.column_stack([X.T @ u for X, u in zip(tasks.inputs, theta, strict=True)])
    largest = np.linalg.norm(pulled, 2)
    for share, stationary in ((1.001, True), (0.99, False), (0.5, False)):
        problem = mtl.minimize(mtl.square_root_loss(W, tasks) + share * largest * mtl.log_rank(W, eps=0))
        form = problem.form()
        found = residual(form, form.zeros())
        assert (found <= 1e-12) == stationary, (share, found)


def test_a_task_fitted_exactly_takes_any_multiplier_in_the_ball():
    X, y = [np.eye(3), np.eye(3)], [np.array([1.0, 2.0, 2.0]), np.zeros(3)]
    tasks, W = with_weights(mtl.Tasks.separate(X, y))
    form = mtl.minimize(mtl.square_root_loss(W, tasks) + 0.5 * mtl.l1_norm(W)).form()
    at = {"W": np.column_stack([y[0], y[1]])}
    good = np.concatenate([-0.5 * np.ones(3), np.zeros(3)])  # ||(.5, .5, .5)|| = 0.87
    assert max(first_order_residuals(form, at, [good]).values()) <= 1e-15
    too_long = np.concatenate([-0.8 * np.ones(3), np.zeros(3)])  # 1.39
    assert residual(form, at, [too_long]) > 0.05
    steep = mtl.minimize(mtl.square_root_loss(W, tasks) + 0.8 * mtl.l1_norm(W)).form()
    assert residual(steep, at, [too_long]) > 0.05  # balanced, and longer than a subgradient may be


def test_what_has_no_multiplier_and_no_prox_is_not_measured():
    tasks, W = with_weights(shared(0))
    two = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.log_rank(W, eps=0) + mtl.l1_norm(W)).form()
    assert first_order_residuals(two, two.zeros()) is None
    given = [np.zeros(two.shapes["W"]), None]
    assert set(first_order_residuals(two, two.zeros(), None, given)) == {
        "log_rank(W, eps=0)", "l1_norm(W)", "balance",
    }  # fmt: skip


def test_losses_that_are_flat_where_they_are():
    """A hinge whose margins all hold has the multiplier zero; that is not a number to divide by."""
    X = np.eye(3)
    tasks, W = with_weights(mtl.Tasks.shared(X, np.array([[1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]])))
    form = mtl.minimize(mtl.hinge_loss(W, tasks) + 0.5 * mtl.rank(W)).form()
    at = {"W": 5.0 * tasks.targets.reshape(2, 3).T}
    with np.errstate(all="raise"):
        found = first_order_residuals(form, at)
    assert (
        all(np.isfinite(value) for value in found.values()) and max(found.values()) <= 1e-6
    )  # rounding of W over the least gradient that counts


def test_a_block_without_a_term_is_balanced_by_the_losses():
    """Nothing takes what the multipliers leave of an intercept: it is measured, and a wrong intercept is seen."""
    tasks, W = with_weights(shared(3), intercept=True)
    problem = mtl.minimize(mtl.huber_loss(W, tasks) + 2.0 * mtl.log_rank(W))
    solution = problem.solve(tol=1e-6)
    form, blocks = problem.form(), solution.blocks
    assert first_order_residuals(form, blocks)["balance"] <= 1e-6
    wrong = blocks | {"W.intercept": blocks["W.intercept"] + 1.0}
    assert first_order_residuals(form, wrong)["balance"] > 1e-2


@for_each("beside, holds", [(1e-4, True), (-1e-4, False)])
def test_a_point_beside_a_cap_has_the_slope_of_its_side(beside, holds):
    """Above the cap the penalty is flat, however near the cap is; below it the slope is one."""
    labels = np.diag([2.0, 1.0 + beside])
    tasks, W = with_weights(mtl.Tasks.shared(np.eye(2), labels))
    form = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.capped_trace_norm(W, 1.0)).form()
    found = first_order_residuals(form, {"W": labels})
    assert (max(found.values()) <= 1e-9) == holds
    assert holds or max(found.values()) >= 0.1
