"""Coordinate descent on groups of features: the optimum of other solvers, groups of any sizes, with weights, ridges and intercepts."""

import numpy as np
import pytest

import mtldsl as mtl
from tests.loops import for_each

GROUPS = [[0, 5, 7], [1], [2, 3, 4, 6, 8, 9], [10, 11], [12, 13, 14, 15, 16, 17, 18, 19]]
WEIGHTS = [1.0, 0.3, 2.0, 1.5, 0.7]


def data(n=60, m=1, duplicates=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 20))
    if duplicates:
        X[:, 7], X[:, 13], X[:, 18] = X[:, 0], 2.0 * X[:, 12], 0.0
    W = np.zeros((20, m))
    W[[0, 5, 7, 12, 15]] = rng.normal(size=(5, m))
    return mtl.Tasks.shared(X, X @ W + 0.5 * rng.normal(size=(n, m)) + 2.0)


@for_each("intercept", [False, True])
@for_each("ridge, m", [(0.0, 3), (0.4, 1), (0.0, 1)])
@for_each("case", [{}, {"duplicates": True}, {"n": 12}])
def test_agrees_with_admm(case, m, ridge, intercept):
    tasks = data(m=m, **case)
    W = mtl.Weights(tasks, intercept=intercept)
    for strength in (30.0, 3.0, 0.1):
        objective = 2 * mtl.squared_loss(W, tasks) + strength * mtl.group_norm(W, GROUPS, weights=WEIGHTS)
        problem = mtl.minimize(objective + ridge * mtl.ridge(W) if ridge else objective)
        ours = problem.solve(solver="coordinate_descent", tol=1e-9)
        assert ours.status == "optimal"
        assert ours.objective == pytest.approx(problem.solve(solver="admm", tol=1e-8).objective, rel=1e-7)
