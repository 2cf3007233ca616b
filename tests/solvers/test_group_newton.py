"""Newton steps on groups of features: against the reference, and the model against its optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest

import mtldsl as mtl
from tests.loops import for_each
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


@for_each(
    "loss, intercept, ridge, level",
    pairwise_cases(["logistic", "squared hinge", "poisson"], [False, True], [0.0, 0.7], [8.0, 1.0]),
)
def test_it_agrees_with_the_reference(loss, intercept, ridge, level):
    problem = _problem(loss, intercept, ridge, level)
    solution = problem.solve(solver="proximal_gradient", tol=1e-8, max_iter=300)
    assert solution.status == "optimal"
    reference = problem.solve(solver="cvxpy", tol=1e-7)
    assert solution.objective == pytest.approx(reference.objective, rel=2e-6)
