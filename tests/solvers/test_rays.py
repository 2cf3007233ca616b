"""Points on lines: no solution is worse than what a ray without any solver reaches, and what overshoots still shows the way."""

from itertools import cycle

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import mtldsl as mtl
from mtldsl.compile.constants import best_constants
from mtldsl.solvers.best_point import Kept
from mtldsl.solvers.planes.two_blocks import TwoBlocks
from mtldsl.solvers.rays import Lines, best_between, best_of_ray, plain_rays
from mtldsl.solvers.registry import candidates
from mtldsl.solvers.solver import Point
from tests.loops import for_each
from tests.models import MODELS, shared

#: Not the graphs of labels: there every point on a line asks for inferences of its own, and lines are not searched.
CONVEX = [name for name, make in MODELS.items() if Lines(make().form()).can_be_searched]


def hard(metric, regularizer, coefficient=1e4, n=300, d=30, m=3, intercept=False):
    """Labels that can be learned, columns from 1e-3 to 1e3, a loss beside which the penalty hardly counts."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, d))
    Y = np.sign(X @ rng.normal(size=(d, m)) / np.sqrt(d) + 0.5 * rng.normal(size=(n, m)))
    t = mtl.Tasks.shared(X * 10 ** rng.uniform(-3, 3, size=d), Y)
    W = mtl.Weights(t, intercept=intercept)
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


@for_each(
    "metric, regularizer, intercept",
    [
        (None, mtl.ridge, True),
        (mtl.FScore(), mtl.trace_norm, False),
        (mtl.ROCArea(), mtl.l21_norm, True),
        (mtl.ErrorRate(), mtl.ridge, False),
        (None, mtl.l21_norm, False),
        (mtl.FScore(), mtl.ridge, True),
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


@pytest.mark.slow
def test_a_ray_is_searched_to_its_lowest_point():
    rng = np.random.default_rng(0)
    for name, factor in zip(CONVEX, cycle((1e-6, 1.0, 1e6)), strict=False):
        form = MODELS[name]().form()
        x, v = best_constants(form) or form.zeros(), plain_ray(form)[1]
        if form.violation(x) > 0.0:
            continue
        direction = {k: factor * (block + 0.1 * rng.normal(size=block.shape)) for k, block in v.items()}
        lowest = min(form.value(x), along(form, x, direction))
        found = best_of_ray(form, x, direction)
        value = form.value(x if found is None else found)
        assert value <= lowest + 1e-6 * abs(lowest)
        assert found is None or form.violation(found) == 0.0


def test_the_second_plain_ray_fits_the_labels_whatever_the_units():
    """Eight steps are as many as there are unknowns here."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 8)) * 10.0 ** np.arange(-8, 8, 2)
    t = mtl.Tasks.shared(X, np.sign(rng.normal(size=(50, 1))))
    W = mtl.Weights(t)
    form = mtl.minimize(mtl.hinge_loss(W, t) + 1e-9 * mtl.ridge(W)).form()
    v = list(plain_rays(form))[1][1]["W"]
    lengths = np.linalg.norm(X, axis=0)
    fit = np.linalg.lstsq(X / lengths, t.targets, rcond=None)[0] / lengths
    assert np.allclose(v[:, 0] * lengths, fit * lengths, rtol=1e-6)


def test_zero_gradients_give_no_rays():
    t = mtl.Tasks.shared(np.ones((5, 2)), np.zeros((5, 3)))
    W = mtl.Weights(t)
    assert list(plain_rays(mtl.minimize(mtl.squared_loss(W, t) + mtl.ridge(W)).form())) == []


def test_the_way_to_a_point_far_out_is_searched():
    """1,000 times as far as the optimum: the optimum is found, not the end, and never what lies beyond."""
    t = shared(4)
    W = mtl.Weights(t)
    problem = mtl.minimize(mtl.squared_loss(W, t) + 3.0 * mtl.l1_norm(W))
    form, best = problem.form(), problem.solve(tol=1e-10)
    zero = form.zeros()
    found = best_between(form, zero, {"W": 1000.0 * best.W})
    assert form.value(found) == pytest.approx(best.objective, rel=1e-9)
    assert np.allclose(best_between(form, zero, {"W": 0.01 * best.W})["W"], 0.01 * best.W, rtol=1e-6)
    back = best_between(form, {"W": best.W}, zero)
    assert back is None or np.allclose(back["W"], best.W, atol=1e-5)


def test_label_graphs_and_nonconvex_models_are_left_alone():
    """Graphs of labels and models that are not convex are left alone."""
    left = [name for name in MODELS if name not in CONVEX]
    assert left and all(name.startswith("label_") for name in left)
    assert len(CONVEX) > 20


def test_lines_stay_within_constraints():
    t = shared(4)
    W = mtl.Weights(t)
    problem = mtl.minimize(mtl.squared_loss(W, t), subject_to=[W >= 0, mtl.trace_norm(W) <= 0.5])
    form = problem.form()
    points = list(Lines(form).plain())
    assert points
    for x in points:
        assert form.violation(x) == 0.0 and form.value(x) < form.value(form.zeros())


def test_lines_are_searched_ever_more_rarely_and_rays_once():
    """Lines are searched at ever rarer looks and plain rays once."""
    lines = Lines(hard(None, mtl.ridge, n=30, d=3).form())
    assert [k for k in range(1, 101) if lines.are_due()] == [8, 16, 32, 64]
    assert len(list(lines.plain())) == 3 and not list(lines.plain())


def test_what_lies_below_the_best_needs_no_search():
    form = hard(None, mtl.ridge, n=30, d=3).form()
    zero = Kept.guess(form, form.zeros())
    lower = Kept.guess(form, next(Lines(form).plain()))
    assert not list(Lines(form).towards(zero, lower)) and not list(Lines(form).towards(zero, None))


def test_the_penalty_of_planes_stays_within_bounds():
    """Where one residual outweighs the other for ever: it used to double without end, to inf."""
    problem = hard(mtl.FScore(), mtl.trace_norm, n=30, d=3)
    blocks = TwoBlocks(problem.form(), 1e-6, None, 1.0, 1.0, 0)
    first = blocks.mu
    blocks.Z[:] = 1.0
    for W, S, before, far in [(1.0, 2.0, 2.0, 1e9), (1.0, 1.0, 2.0, 1e-9)]:
        blocks.W[:], blocks.S[:] = W, S
        for _ in range(3000):
            blocks._balance(np.full_like(blocks.S, before))
        assert 0.4 <= blocks.mu / first / far <= 2.1


def test_a_state_goes_on_with_its_penalty():
    problem = hard(mtl.FScore(), mtl.trace_norm, n=30, d=3)
    form = problem.form()
    blocks = TwoBlocks(form, 1e-6, None, 1.0, 1.0, 0)
    blocks.mu *= 3.0
    point = blocks._point(blocks.S, 1)
    again = TwoBlocks(form, 1e-6, Point(point.blocks, state=point.state), 1.0, 1.0, 0)
    assert again.mu == blocks.mu
