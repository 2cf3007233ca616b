"""Linear programs over planes: against HiGHS, with planes that come one by one, and the whole finish."""

import numpy as np
import pytest

import mtldsl as mtl
from tests.loops import for_each


def form_of(rng, d, m, intercept=False, coefficient=1.0, scale=1.0, weights=None):
    X = rng.normal(size=(40, d)) * scale
    Y = np.where(
        X @ rng.normal(size=(d, m)) / np.abs(scale).max() + rng.normal(size=(40, m)) > 0.5, 1.0, -1.0
    )
    tasks = mtl.Tasks.shared(X, Y)
    W = mtl.Weights(tasks, intercept=intercept)
    norm = mtl.l1_norm(W) if weights is None else mtl.l1_norm(W, weights=weights)
    return mtl.minimize(coefficient * mtl.structured_hinge(W, tasks, metric=mtl.FScore()) + norm)


@pytest.mark.slow
@for_each("intercept, scale", [(True, 1.0), (False, 10.0 ** np.arange(-3, 4))])
def test_the_finish_proves_what_the_reference_says(intercept, scale):
    problem = form_of(np.random.default_rng(5), 7, 3, intercept, 3.0, scale)
    solution = problem.solve(solver="admm", tol=1e-8)
    assert solution.status == "optimal"
    reference = problem.solve(solver="cvxpy")
    assert solution.objective == pytest.approx(reference.objective, rel=1e-5)


def test_features_without_a_price():
    weights = np.tile([[1.0], [0.0], [2.0], [0.5]], 2)
    problem = form_of(np.random.default_rng(6), 4, 2, weights=weights)
    solution = problem.solve(solver="admm", tol=1e-8)
    assert solution.status == "optimal"
