"""Groups of features, with weights, ridges and intercepts: Newton steps and coordinate descent."""

import numpy as np
import pytest

import mtldsl as mtl
from tests.loops import for_each
from tests.models import with_weights
from tests.pairs import pairwise_cases

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
        if loss == "poisson_loss"
        else np.where(z > 0.4, 1.0, -1.0)
    )
    tasks, W = with_weights(mtl.Tasks.shared(X, y[:, None]), intercept=intercept)
    weights = 0.5 + rng.random(len(GROUPS))
    objective = getattr(mtl, loss)(W, tasks) + level * mtl.group_norm(W, GROUPS, weights=list(weights))
    return mtl.minimize(objective + ridge * mtl.ridge(W) if ridge else objective)


@pytest.mark.slow
@for_each(
    "loss, intercept, ridge, level",
    pairwise_cases(
        ["logistic_loss", "squared_hinge_loss", "poisson_loss"], [False, True], [0.0, 0.7], [8.0, 1.0]
    ),
)
def test_it_agrees_with_the_reference(loss, intercept, ridge, level):
    problem = _problem(loss, intercept, ridge, level)
    solution = problem.solve(solver="proximal_gradient", tol=1e-8, max_iter=300)
    assert solution.status == "optimal"
    reference = problem.solve(solver="cvxpy", tol=1e-7)
    assert solution.objective == pytest.approx(reference.objective, rel=2e-6)


FEW_GROUPS = [[0, 5, 7], [1], [2, 3, 4, 6, 8, 9], [10, 11], [12, 13, 14, 15, 16, 17, 18, 19]]


def squares(n=60, m=1, duplicates=False):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 20))
    if duplicates:
        X[:, 7], X[:, 13], X[:, 18] = X[:, 0], 2.0 * X[:, 12], 0.0
    W = np.zeros((20, m))
    W[[0, 5, 7, 12, 15]] = rng.normal(size=(5, m))
    return mtl.Tasks.shared(X, X @ W + 0.5 * rng.normal(size=(n, m)) + 2.0)


@pytest.mark.slow
@for_each("intercept", [False, True])
@for_each("ridge, m", [(0.0, 3), (0.4, 1), (0.0, 1)])
@for_each("case", [{}, {"duplicates": True}, {"n": 12}])
def test_descent_agrees_with_admm(case, m, ridge, intercept):
    tasks, W = with_weights(squares(m=m, **case), intercept=intercept)
    for strength in (30.0, 3.0, 0.1):
        norm = strength * mtl.group_norm(W, FEW_GROUPS, weights=[1.0, 0.3, 2.0, 1.5, 0.7])
        objective = 2 * mtl.squared_loss(W, tasks) + norm
        problem = mtl.minimize(objective + ridge * mtl.ridge(W) if ridge else objective)
        ours = problem.solve(solver="coordinate_descent", tol=1e-9)
        assert ours.status == "optimal"
        assert ours.objective == pytest.approx(problem.solve(solver="admm", tol=1e-8).objective, rel=1e-7)
