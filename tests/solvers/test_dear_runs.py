"""Inputs as neighbouring as the points of a time series: what has become dear yields, and what rounding spoils is refined."""

import numpy as np
import pytest

import mtldsl as mtl
from tests.loops import for_each


def series(n, d, m, seed=0, near=0.98):
    """Rows like those of a time series: a feature is its neighbour and little else."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    for j in range(1, d):
        X[:, j] = near * X[:, j - 1] + np.sqrt(1.0 - near**2) * X[:, j]
    Y = X[:, ::7] @ rng.normal(size=(len(range(0, d, 7)), m)) + rng.normal(size=(n, m))
    return X, Y


MODELS = {
    "l21": lambda W, tasks: mtl.squared_loss(W, tasks) + 0.5 * mtl.l21_norm(W),
    "logistic": lambda W, tasks: mtl.logistic_loss(W, tasks) + 0.02 * mtl.l21_norm(W),
}


@pytest.mark.slow
@for_each("name, intercept", [("l21", True), ("logistic", False)])
def test_a_dear_run_hands_over_and_ends_at_the_same_weights(name, intercept):
    # Newton systems are dear before they have more rows than there are samples
    X, Y = series(300, 250, 4) if name == "logistic" else series(120, 200, 5, near=0.995)
    tasks = mtl.Tasks.shared(X, np.sign(Y) if name == "logistic" else Y)
    W = mtl.Weights(tasks, intercept=intercept)
    problem = mtl.minimize(MODELS[name](W, tasks))
    first = "proximal_gradient" if name == "logistic" else "coordinate_descent"
    tol = 1e-7  # far enough for sweeps and Newton systems to become dear
    solution = problem.solve(tol=tol)
    assert solution.status == "optimal"
    other = problem.solve(solver=first, tol=tol)
    # each is within tol of the optimum
    assert solution.objective == pytest.approx(other.objective, rel=2 * tol)
    assert np.array_equal(solution.coef, problem.solve(tol=tol).coef)  # the same input takes the same turns


# systems of the features' size, and of the rows'
@for_each("d, norm, lam", [(400, "half_squared_group_norm", 1e-3), (500, "l21_norm", 0.1)])
def test_weak_penalties_beside_steep_squares_are_proven(d, norm, lam):
    """Gaps stood still at 1e-3 to 1e-5: the loss's gradient multiplied what rounding had left in the weights."""
    X, Y = series(80, d, 6, near=0.999)
    tasks = mtl.Tasks.shared(100.0 * X, Y)
    W = mtl.Weights(tasks)
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + lam * getattr(mtl, norm)(W))
    solution = problem.solve(solver="admm", tol=1e-6)  # below the gaps that stood still
    assert solution.status == "optimal"
