"""The best point is never lost: whatever was given or seen, a solution is no worse."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import mtldsl as mtl
from mtldsl.normal_form.best_constants import best_constants
from mtldsl.solvers.monitor import Incumbent, IncumbentTracker, Monitor
from mtldsl.solvers.routes import candidates, get_solver
from mtldsl.solvers.solver import Point
from tests.loops import for_each
from tests.models import MODELS, shared, with_weights
from tests.test_mixed_nonconvex import MODELS as NONCONVEX


def assert_never_rises(solution):
    """The law of histories. Only a point below a proven bound, which owes that to what it misses of its constraints, may give way."""
    best, bound = np.inf, -np.inf
    for row in solution.history:
        bound = max(bound, row["dual_bound"])
        size = max(abs(best), abs(bound)) if np.isfinite(best) and np.isfinite(bound) else 0.0
        assert row["best_objective"] <= max(best, bound) + 1e-12 * size
        assert row["best_objective"] <= row["objective"] or row["violation"] > 0
        best = row["best_objective"]


def fast(form):
    return [name for name in candidates(form) if name != "cvxpy"]


def feasible_points(problem, rng):
    """Points for which the promise is made: warm starts near and far that meet the constraints."""
    form = problem.form()
    near = problem.solve(candidates(form)[0], tol=1e-3).blocks
    points = [near, {k: v + 0.1 * rng.normal(size=v.shape) for k, v in near.items()}]
    return [x for x in points if form.violation(x) == 0.0]


@pytest.mark.by_default(
    "a_metric_of_its_own_for_every_task_group_sparse", "two_structured_losses_share_an_intercept_and_a_ridge"
)
@pytest.mark.parametrize("name", MODELS)
def test_a_run_cut_short_is_no_worse_than_where_it_began(name):
    """Whichever solver runs, however short; from nothing, no worse than zero and than the best constants."""
    problem = MODELS[name]()
    form, rng = problem.form(), np.random.default_rng(0)
    for x in feasible_points(problem, rng):
        for solver in fast(form):
            solution = problem.solve(solver, max_iter=2, warm_start=x)
            assert solution.violation <= 1e-6
            below = max(0.0, -solution.gap.absolute) + 1e-6 * abs(solution.objective)
            allowed = below if solution.violation > 0 else 1e-12 * abs(solution.objective)
            assert solution.objective <= form.value(x) + allowed
            assert_never_rises(solution)
    for solver in fast(form)[:1]:
        solution = problem.solve(solver, max_iter=1)
        assert np.isfinite(solution.objective)
        for x in (form.zeros(), best_constants(form) or form.zeros()):
            if form.violation(x) == 0.0:
                assert solution.objective <= form.value(x) * (1 + 1e-12) and solution.violation <= 1e-6


@pytest.mark.by_default("two_spectral_penalties_and_a_ridge")
@pytest.mark.parametrize("name", NONCONVEX)
def test_a_nonconvex_solution_is_no_worse_than_its_warm_start(name):
    problem = NONCONVEX[name]()
    form, rng = problem.form(), np.random.default_rng(1)
    first = problem.solve()
    for scale in (0.0, 0.3):
        x = {k: v + scale * np.std(v) * rng.normal(size=v.shape) for k, v in first.blocks.items()}
        if form.violation(x) > 1e-6:
            continue
        for limits in ({}, {"max_iter": 2}):
            solution = problem.solve(warm_start=x, **limits)
            assert solution.objective <= form.value(x) + 1e-6 * abs(form.value(x))
            rows = [row["best_objective"] for row in solution.history]
            assert np.all(np.diff(rows) <= 1e-12 * np.abs(rows[:-1]))


def test_the_warm_start_of_a_structured_hinge_is_not_lost():
    """Labels that overlap, features of very different size, a loss that counts much."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 20))
    Y = np.sign(X @ rng.normal(size=(20, 3)) / np.sqrt(20) + 2 * rng.normal(size=(120, 3)))
    t, W = with_weights(mtl.Tasks.shared(X * 10 ** rng.uniform(-0.5, 0.5, size=20), Y))
    problem = mtl.minimize(mtl.trace_norm(W) + 100 * mtl.structured_hinge(W, t, metric=mtl.metrics.FScore()))
    before = problem.solve("admm", max_iter=60)
    assert before.status == "iteration_limit"  # so that there is something to lose
    again = problem.solve("admm", warm_start={"W": before.W}, max_iter=3)
    assert again.objective <= before.objective
    assert min(row["objective"] for row in again.history) > before.objective  # the solver itself lost it
    assert_never_rises(again)


class Bad:
    """Shows what it is told to, and nothing good; `ends` is an interruption that comes then."""

    def __init__(self, *points, ends=None):
        self.points, self.ends = points, ends

    def __call__(self, form, *, watch, start=None, **_):
        self.start = start
        for k, blocks in enumerate(self.points):
            point = Point(blocks, iteration=k + 1)
            if watch(point):
                break
        if self.ends is not None:
            raise self.ends
        return point


def lasso(lam=3.0, **options):
    t, W = with_weights(shared(4), **options)
    return mtl.minimize(mtl.squared_loss(W, t) + lam * mtl.l1_norm(W))


def test_what_a_solver_shows_cannot_push_out_the_warm_start(monkeypatch):
    problem = lasso()
    good = problem.solve(tol=1e-2).W
    bad = {"W": 5.0 + good}
    monkeypatch.setattr("mtldsl.solvers.admm.admm.SOLVER.solve", Bad(bad, bad))
    solution = problem.solve("admm", warm_start={"W": good}, tol=1e-9)
    assert np.array_equal(solution.W, good) and solution.status in ("stalled", "iteration_limit")
    assert [row["best_objective"] for row in solution.history] == [solution.objective] * 2
    assert np.isfinite(solution.dual_bound)  # of the multipliers that were shown
    monkeypatch.setattr("mtldsl.solvers.admm.admm.SOLVER.solve", Bad(bad, ends=KeyboardInterrupt()))
    solution = problem.solve("admm", warm_start={"W": good})
    assert solution.status == "interrupted" and np.array_equal(solution.W, good)


def test_the_next_solver_starts_at_the_best_point(monkeypatch):
    problem = lasso(intercept=True)
    names = candidates(problem.form())
    good, bad = problem.solve(tol=1e-2).blocks, problem.form().zeros()
    bad["W"] += 7.0
    first, second = Bad(good, bad), Bad(bad)
    monkeypatch.setattr(get_solver(names[0]), "solve", first, raising=False)
    monkeypatch.setattr(get_solver(names[1]), "solve", second, raising=False)
    for name in names[2:]:
        monkeypatch.setattr(get_solver(name), "solve", Bad(bad), raising=False)
    solution = problem.solve(tol=1e-9)
    assert np.array_equal(second.start.blocks["W"], good["W"]) and first.start is None
    assert np.array_equal(solution.W, good["W"])


def test_a_warm_start_outside_its_constraints_is_moved_into_them():
    t, W = with_weights(shared(4))
    problem = mtl.minimize(mtl.squared_loss(W, t) + mtl.l1_norm(W), subject_to=[W >= 0, W <= 1])
    near = problem.solve(tol=1e-3).W
    outside = np.where(near == 0.0, -5.0, near)
    solution = problem.solve("admm", max_iter=1, warm_start={"W": outside})
    assert solution.violation == 0.0
    assert solution.objective <= problem.form().value({"W": np.clip(outside, 0, 1)})


#: points in the order in which they come: objective, violation, bound, and the objective that is kept then
OFFERS = {
    "a smaller violation before a larger one, however low": [
        (5.0, 0.2, -np.inf, 5.0), (9.0, 0.1, -np.inf, 9.0), (4.0, 0.2, -np.inf, 9.0),
        (7.0, 0.0, -np.inf, 7.0), (1.0, 0.05, -np.inf, 7.0), (6.0, 1e-7, -np.inf, 6.0),
        (8.0, 0.0, -np.inf, 6.0), (np.nan, 0.0, -np.inf, 6.0),
    ],
    # the last one is nearer to the bound than 9.0 is, and worse than what was there
    "one below the bound gives way to the best that meets its constraints": [(10.1, 0.0, 0.0, 10.1),
     (9.0, 1e-7, 0.0, 9.0), (10.9, 1e-7, 10.0, 10.1)],
}  # fmt: skip


@for_each("offers", OFFERS.values(), ids=OFFERS)
def test_which_point_is_kept(offers):
    form = lasso().form()
    best = IncumbentTracker(form, 1e-6)
    for objective, violation, bound, kept in offers:
        best.offer(Incumbent(form.zeros(), objective, violation), bound)
        assert best.incumbent.objective == kept


@for_each("loss, labels", [
    ("squared_loss", "real"), ("absolute_loss", "real"), ("quantile_loss", "real"), ("huber_loss", "real"),
    ("logistic_loss", "sign"), ("hinge_loss", "sign"), ("squared_hinge_loss", "sign"), ("poisson_loss", "count"),
])  # fmt: skip
def test_the_best_constants(loss, labels):
    """Against a search in one number a task."""
    rng = np.random.default_rng(2)
    X, Y = rng.normal(size=(40, 3)), 100.0 + 10 * rng.normal(size=(40, 3))
    if labels == "sign":
        Y = np.where(rng.random(Y.shape) < [0.2, 0.5, 0.7], 1.0, -1.0)
    elif labels == "count":
        Y = rng.poisson(3.0, size=Y.shape).astype(float)
    Y[rng.random(Y.shape) < 0.2] = np.nan
    t, W = with_weights(mtl.Tasks.shared(X, Y), intercept=True)
    form = mtl.minimize(getattr(mtl, loss)(W, t) + mtl.ridge(W)).form()
    found = best_constants(form)
    assert not found["W"].any()
    for i in range(3):

        def at(b, i=i):
            x = {name: block.copy() for name, block in found.items()}
            x["W.intercept"][0, i] = b
            return form.value(x)

        searched = minimize_scalar(at, bounds=(-300, 300), method="bounded", options={"xatol": 1e-10}).fun
        assert form.value(found) <= searched + 1e-12 * abs(searched)


def test_constants_where_the_slope_never_changes_sign():
    """Counts that are all zero, and rankings, to which a constant is nothing; without intercepts there are none."""
    assert best_constants(lasso().form()) is None
    rng = np.random.default_rng(3)
    X = rng.normal(size=(12, 2))
    t, W = with_weights(mtl.Tasks.shared(X, np.zeros((12, 1))), intercept=True)
    form = mtl.minimize(mtl.poisson_loss(W, t) + mtl.ridge(W)).form()
    assert form.value(best_constants(form)) <= 1e-12
    t, W = with_weights(mtl.Tasks.shared(X, np.sign(X[:, :1])), intercept=True)
    form = mtl.minimize(mtl.structured_hinge(W, t, metric=mtl.metrics.ROCArea()) + mtl.ridge(W)).form()
    assert not best_constants(form)["W.intercept"].any()


def test_multipliers_come_from_the_best_bound_if_need_be():
    strong = lasso(10 * np.abs(lasso().form().slope_at_zero)).form()
    monitor = Monitor(strong, 1e-6, None)
    monitor.set_trial_points(None)
    monitor.look_at_guesses()
    u = [np.full(strong.losses[0].tasks.n_samples, 1e-3)]
    assert monitor.incumbent.is_guess and monitor.duals == (None, None)
    monitor(Point({"W": np.ones((6, 4))}, u, None, 1))
    assert monitor.incumbent.is_guess and monitor.duals[0] is u
    bound = monitor.bound
    monitor(Point({"W": np.ones((6, 4))}, [1e4 * u[0]], None, 2))
    assert monitor.history[-1]["dual_bound"] < bound == monitor.bound and monitor.duals[0] is u


@pytest.mark.slow
def test_a_penalty_that_is_flat_far_out_beside_separable_labels():
    """The weights grow until the losses' curvature is gone; step sizes that follow it ran off to zero and to infinity."""
    rng = np.random.default_rng(18)
    n, d, m = rng.integers(5, 40), rng.integers(2, 12), rng.integers(1, 6)
    X = 10 ** rng.uniform(-2, 3) * rng.normal(size=(n, d))
    t, W = with_weights(mtl.Tasks.shared(X, np.sign(X @ rng.normal(size=(d, m)) + 1e-9)), intercept=False)
    problem = mtl.minimize(mtl.logistic_loss(W, t) + 61.0 * mtl.capped_trace_norm(W, 1, eps=0.01))
    solution = problem.solve(max_iter=10)
    assert solution.objective <= problem.form().value(problem.form().zeros())
