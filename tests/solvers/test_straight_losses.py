"""Solvers named by hand where the losses have no curvature at the start, and penalties a number an entry."""

import numpy as np

import mtldsl as mtl
from tests.loops import for_each


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


@for_each("solver", ["auto", "multipliers"])
@for_each("loss", ["quantile_loss", "absolute_loss", "hinge_loss"])
def test_a_ridge_with_a_weight_an_entry(loss, solver):
    """A bare ValueError of numpy, before: the truth value of an array."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(14, 3))
    Y = X @ rng.normal(size=(3, 2)) + rng.normal(size=(14, 2))
    tasks = mtl.Tasks.shared(X, np.sign(Y) if loss == "hinge_loss" else Y)
    W = mtl.Weights(tasks)
    ridge = mtl.ridge(W, weights=np.exp(rng.normal(size=(3, 2))))
    for lam in (1e-6, 1e-2, 1.0):
        solution = mtl.minimize(getattr(mtl, loss)(W, tasks) + lam * ridge).solve(solver)
        assert solution.status == "optimal" and solution.relative_gap <= 1e-6
