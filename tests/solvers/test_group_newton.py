"""Newton steps on groups of features: against the reference, and the model against its optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.solvers.proximal import proximal_gradient
from mtldsl.solvers.smooth import group_newton
from mtldsl.solvers.smooth.group_newton import GroupModel, GroupPenalty

N, D = 70, 90
GROUPS = [[k, k + 30, k + 60] for k in range(12)] + [list(range(12, 30)), list(range(42, 60))]
GROUPS += [[k] for k in range(72, 88)] + [[88, 89]]


def _problem(loss, intercept, ridge=0.0, level=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D)) * (1.0 + 3.0 * rng.random(D))
    X[:, 5] = 0.0
    z = X[:, :4] @ rng.normal(size=4) / 3.0 + 0.5 * rng.normal(size=N)
    y = (
        rng.poisson(np.exp(np.clip(z, -3, 2))).astype(float)
        if loss == "poisson"
        else np.where(z > 0.4, 1.0, -1.0)
    )
    tasks = mtl.Tasks.shared(X, y[:, None])
    W = mtl.Weights(tasks, intercept=intercept)
    weights = 0.5 + rng.random(len(GROUPS))
    term = {
        "logistic": mtl.logistic_loss,
        "squared hinge": mtl.squared_hinge_loss,
        "poisson": mtl.poisson_loss,
    }[loss]
    objective = term(W, tasks) + level * mtl.group_norm(W, GROUPS, weights=list(weights))
    return mtl.minimize(objective + ridge * mtl.ridge(W) if ridge else objective)


@pytest.mark.parametrize("level", [8.0, 1.0], ids=["strong", "weak"])
@pytest.mark.parametrize("ridge", [0.0, 0.7], ids=["", "ridge"])
@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("loss", ["logistic", "squared hinge", "poisson"])
def test_it_agrees_with_the_reference(loss, intercept, ridge, level):
    problem = _problem(loss, intercept, ridge, level)
    assert group_newton.why_not(problem.form()) is None
    solution = problem.solve(solver="proximal_gradient", tol=1e-8, max_iter=300)
    assert solution.status == "optimal"
    reference = problem.solve(solver="cvxpy", tol=1e-7)
    assert solution.objective == pytest.approx(reference.objective, rel=2e-6)


def test_a_warm_start_is_where_it_ends():
    problem = _problem("logistic", True)
    first = problem.solve(solver="proximal_gradient", tol=1e-8)
    again = problem.solve(solver="proximal_gradient", tol=1e-6, warm_start=first)
    assert again.status == "optimal"
    assert again.iterations <= 1


def test_working_sets_that_are_too_large_are_left_to_gradient_steps(monkeypatch):
    problem, asked = _problem("logistic", True, level=0.5), []
    best = problem.solve(solver="proximal_gradient", tol=1e-7)
    whole = proximal_gradient.solve_whole
    monkeypatch.setattr(proximal_gradient, "solve_whole", lambda *rest: asked.append(1) or whole(*rest))
    monkeypatch.setattr(group_newton, "_MOST_ROWS", 30)
    other = problem.solve(solver="proximal_gradient", tol=1e-7)
    assert asked
    assert other.status == "optimal"
    assert other.objective == pytest.approx(best.objective, rel=2e-7)


@pytest.mark.parametrize("ridge", [0.0, 0.3], ids=["", "ridge"])
def test_the_model_is_minimised_in_turned_coordinates(ridge):
    rng = np.random.default_rng(1)
    labels = np.array([2, 0, 1, 2, 0, 2, 3, 3, 0, 4])
    penalty = GroupPenalty(labels, np.array([0.5, 1.0, 0.8, 30.0, 0.2]), ridge)
    A = rng.normal(size=(20, 10))
    H, gradient, W = A.T @ A, 5.0 * rng.normal(size=(1, 10)), rng.normal(size=(1, 10))
    model = GroupModel(H.copy(), gradient, penalty, W)
    np.testing.assert_allclose(model.weights, W, atol=1e-12)
    start = model.objective(model.W, model.carried)
    model.descend(1e-9)
    found = model.weights
    slope = gradient + (found - W) @ H + ridge * found
    norms = penalty.norms(found)
    assert norms[3] == 0.0
    for g in range(5):
        own = labels == g
        if norms[g] > 0:
            np.testing.assert_allclose(
                slope[0, own], -penalty.thresholds[g] * found[0, own] / norms[g], atol=1e-6
            )
        else:
            assert np.linalg.norm(slope[0, own]) <= penalty.thresholds[g]
    value = lambda V: gradient[0] @ (V - W)[0] + 0.5 * (V - W)[0] @ H @ (V - W)[0] + penalty.value(V)  # noqa: E731
    change = model.objective(model.W, model.carried) - start
    assert change == pytest.approx(value(found) - value(W), abs=1e-8)


def test_a_part_of_the_groups():
    labels = np.array([2, 0, 1, 2, 0, 2])
    penalty = GroupPenalty(labels, np.array([1.0, 2.0, 3.0]), 0.5)
    part = penalty.on(np.array([0, 3, 5, 2]))
    np.testing.assert_array_equal(part.labels, [1, 1, 1, 0])
    np.testing.assert_array_equal(part.thresholds, [2.0, 3.0])
    W = np.array([[1.0, 0.0, 2.0, -1.0, 0.0, 3.0]])
    assert part.value(W[:, [0, 3, 5, 2]]) == pytest.approx(penalty.value(W))
