"""Points on lines: no solution is worse than what a ray without any solver reaches, and what overshoots still shows the way."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import mtldsl as mtl
from mtldsl.normal_form.best_constants import best_constants
from mtldsl.solvers.numerics.line_search import RaySearch
from mtldsl.solvers.routes import candidates
from tests.loops import for_each
from tests.models import MODELS, with_weights

#: Not the graphs of labels: there every point on a line asks for inferences of its own, and lines are not searched.
CONVEX = [name for name, make in MODELS.items() if RaySearch(make().form()).can_be_searched]


def hard(metric, regularizer, coefficient=1e4, n=300, d=30, m=3, intercept=False):
    """Labels that can be learned, columns from 1e-3 to 1e3, a loss beside which the penalty hardly counts."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, d))
    Y = np.sign(X @ rng.normal(size=(d, m)) / np.sqrt(d) + 0.5 * rng.normal(size=(n, m)))
    t, W = with_weights(mtl.Tasks.shared(X * 10 ** rng.uniform(-3, 3, size=d), Y), intercept=intercept)
    loss = mtl.hinge_loss(W, t) if metric is None else mtl.structured_hinge(W, t, metric=metric)
    return mtl.minimize(coefficient * loss + regularizer(W))


def along(form, x, v):
    """The lowest objective on the feasible part of a ray, by a fine grid and Brent's method between its neighbours."""

    def at(log_c):
        point = {name: x[name] + np.exp(log_c) * v[name] for name in x}
        with np.errstate(over="ignore"):
            return form.value(point) if form.violation(point) == 0.0 else np.inf

    grid = np.linspace(-20.0, 20.0, 81)
    values = np.array([at(s) for s in grid])
    k = int(np.argmin(values))
    if not np.isfinite(values[max(k - 1, 0) : k + 2]).all():
        return values[k]
    found = minimize_scalar(at, bounds=(grid[max(k - 1, 0)], grid[min(k + 1, 80)]), method="bounded")
    return min(values[k], found.fun)


def plain_ray(form):
    """Written down from the definition, with the matrix of the losses column by column."""
    x, zero = best_constants(form) or form.zeros(), form.zeros()
    v = form.zeros()
    for name in v:
        for k in np.ndindex(v[name].shape):
            unit = {other: np.array(block) for other, block in zero.items()}
            unit[name][k] = 1.0
            slope = square = 0.0
            for loss in form.losses:
                column = loss.predictions(unit) - loss.predictions(zero)
                slope -= column @ np.asarray(loss.gradient(loss.predictions(x)))
                square += column @ column
            v[name][k] = slope / square if square > 0 else 0.0
    return x, v


@pytest.mark.slow
@for_each("name", CONVEX)
def test_a_run_cut_short_is_no_worse_than_the_plain_ray(name):
    problem = MODELS[name]()
    form = problem.form()
    x, v = plain_ray(form)
    if form.violation(x) > 0.0:
        return  # nothing is promised where zero violates a constraint
    lowest = along(form, x, v)
    for solver in candidates(form):
        if solver == "cvxpy":  # solves at once or not at all
            continue
        solution = problem.solve(solver, max_iter=1)
        below = max(0.0, -solution.gap.absolute) if solution.violation > 0 else 0.0
        assert solution.violation <= 1e-6
        assert solution.objective <= lowest + below + 1e-6 * abs(lowest)


@pytest.mark.slow
@for_each(
    "metric, regularizer, intercept",
    [
        (None, mtl.ridge, True),
        (mtl.metrics.FScore(), mtl.trace_norm, False),
        (mtl.metrics.ROCArea(), mtl.l21_norm, True),
        (mtl.metrics.ErrorRate(), mtl.ridge, False),
        (None, mtl.l21_norm, False),
        (mtl.metrics.FScore(), mtl.ridge, True),
    ],
)
def test_hard_hinges_do_not_end_at_zero(metric, regularizer, intercept):
    """A few steps of any solver leave them there; a least-squares fit of the labels, scaled, does far better."""
    problem = hard(metric, regularizer, intercept=intercept)
    form = problem.form()
    t = form.losses[0].tasks
    lengths = np.linalg.norm(t.X, axis=0)
    fit = np.linalg.lstsq(t.X / lengths, t.targets.reshape(t.n_tasks, -1).T, rcond=None)[0] / lengths[:, None]
    other = along(form, form.zeros(), form.zeros() | {"W": fit})
    assert other < 0.9 * form.value(form.zeros())
    ours = [solver for solver in candidates(form) if solver != "cvxpy"]
    assert ours
    for solver in ours:
        solution = problem.solve(solver, max_iter=2)
        assert solution.W.any() and solution.objective <= 1.1 * other
