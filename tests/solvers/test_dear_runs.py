"""Inputs as neighbouring as the points of a time series: what has become dear yields, and what rounding spoils is refined."""

import numpy as np
import pytest

import mtldsl as mtl
from tests.loops import for_each
from tests.models import with_weights


def series(n, d, m, seed=0, near=0.98):
    """Rows like those of a time series: a feature is its neighbour and little else."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    for j in range(1, d):
        X[:, j] = near * X[:, j - 1] + np.sqrt(1.0 - near**2) * X[:, j]
    Y = X[:, ::7] @ rng.normal(size=(len(range(0, d, 7)), m)) + rng.normal(size=(n, m))
    return X, Y


# Newton systems are dear before they have more rows than there are samples
@pytest.mark.slow
@for_each(
    "inputs, loss, lam, first",
    [
        (series(120, 200, 5, near=0.995), mtl.squared_loss, 0.5, "coordinate_descent"),
        (series(300, 250, 4), mtl.logistic_loss, 0.02, "proximal_gradient"),
    ],
    ids=["squares", "logistic"],
)
def test_a_dear_run_hands_over_and_ends_at_the_same_weights(inputs, loss, lam, first):
    X, Y = inputs
    squares = first == "coordinate_descent"
    tasks, W = with_weights(mtl.Tasks.shared(X, Y if squares else np.sign(Y)), intercept=squares)
    problem = mtl.minimize(loss(W, tasks) + lam * mtl.l21_norm(W))
    tol = 1e-7  # far enough for sweeps and Newton systems to become dear
    solution = problem.solve(tol=tol)
    assert solution.status == "optimal"
    other = problem.solve(solver=first, tol=tol)
    # each is within tol of the optimum
    assert solution.objective == pytest.approx(other.objective, rel=2 * tol)
    assert np.array_equal(solution.coef, problem.solve(tol=tol).coef)  # the same input takes the same turns


# systems of the features' size, and of the rows'
@pytest.mark.slow
@for_each("d, norm, lam", [(400, "half_squared_group_norm", 1e-3), (500, "l21_norm", 0.1)])
def test_weak_penalties_beside_steep_squares_are_proven(d, norm, lam):
    """Gaps stood still at 1e-3 to 1e-5: the loss's gradient multiplied what rounding had left in the weights."""
    X, Y = series(80, d, 6, near=0.999)
    tasks, W = with_weights(mtl.Tasks.shared(100.0 * X, Y))
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + lam * getattr(mtl, norm)(W))
    solution = problem.solve(solver="admm", tol=1e-6)  # below the gaps that stood still
    assert solution.status == "optimal"
