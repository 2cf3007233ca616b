"""Routes in turns: a solver that makes no progress gives way, comes back with more patience, and goes on from where it stood."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.solvers import asking, registry
from mtldsl.solvers.point import Point
from mtldsl.solvers.progress import Progress
from mtldsl.solvers.solver import Solver
from mtldsl.solvers.turns import Turns
from mtldsl.solvers.watcher import Watcher


class Stuck(Solver):
    """Shows one point for ever, zero unless given; `starts` are those that it was given."""

    summary = "goes nowhere"

    def __init__(self, name, blocks=None):
        self.name, self.blocks, self.starts, self.taken = name, blocks, [], []

    def refuses(self, form):
        return None

    def patience(self, form):
        return 100

    def solve(self, form, *, tol, max_iter, start, watch):
        self.starts.append(start)
        for iteration in range(1, max_iter + 1):
            state = {"solver": self.name, "at": len(self.starts)}
            point = Point(self.blocks or form.zeros(), iteration=iteration, state=state)
            if watch(point):
                break
        self.taken.append(iteration)
        return point


class Late(Stuck):
    """The solution, at its `iteration`."""

    def __init__(self, name, point, needs):
        super().__init__(name)
        self.point, self.needs = point, needs

    def solve(self, form, *, tol, max_iter, start, watch):
        self.starts.append(start)
        for iteration in range(1, max_iter + 1):
            solved = iteration >= self.needs
            point = self.point if solved else Point(form.zeros(), iteration=iteration)
            if watch(point):
                break
        self.taken.append(iteration)
        return point


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    tasks = mtl.Tasks.shared(rng.normal(size=(30, 5)), rng.normal(size=(30, 2)))
    W = mtl.Weights(tasks)
    return mtl.minimize(mtl.absolute_loss(W, tasks) + 3 * mtl.l21_norm(W))


def with_solvers(monkeypatch, *solvers):
    """These, and no reference after them."""
    monkeypatch.setattr(asking, "_SMALL_ENOUGH_FOR_REFERENCE", 0)
    monkeypatch.setattr(registry, "SOLVERS", {solver.name: solver for solver in solvers})


def test_turns_alternate_with_growing_patience(problem, monkeypatch):
    """The second solver needs 1,500 iterations: what the first spends meanwhile stays below what the second does."""
    solved = problem.solve(tol=1e-7)
    assert solved.status == "optimal"
    stuck, late = Stuck("stuck"), Late("late", solved.state, 1500)
    with_solvers(monkeypatch, stuck, late)
    again = problem.solve(tol=1e-6)
    assert again.status == "optimal" and again.solver == "late"
    np.testing.assert_array_equal(again.W, solved.W)
    assert stuck.taken == [103, 403, 1603] and late.taken == [103, 403, 1500]
    assert "stuck stopped at a relative gap of" in again.reason and again.reason.count("stuck stopped") == 1


def test_a_solver_goes_on_from_where_it_stood_unless_another_is_further(problem, monkeypatch):
    first, second = Stuck("first", problem.solve(tol=1e-2).blocks), Stuck("second")
    with_solvers(monkeypatch, first, second)
    assert problem.solve(tol=1e-9).status == "stalled"
    assert first.starts[0] is None
    # the best point is `first`'s, so it finds its own state again; `second` has the best point and no inner state
    assert [start.state for start in first.starts[1:]] == [
        {"solver": "first", "at": k} for k in range(1, len(first.starts))
    ]
    assert all(start.state == {} for start in second.starts)
    # in the end each had the patience that a solver has alone, and no more
    assert max(first.taken) == max(second.taken) == 3003


def test_a_solver_that_is_asked_for_or_alone_is_not_hurried(problem, monkeypatch):
    stuck = Stuck("stuck")
    with_solvers(monkeypatch, stuck, Stuck("other"))
    problem.solve(solver="stuck")
    assert stuck.taken == [3003]


def test_multipliers_travel_with_the_best_point(problem, monkeypatch):
    """A solver that takes over gets the multipliers of the best bound, so that its first certificate is no worse."""
    half = problem.solve(solver="admm", tol=0.3)
    second = Stuck("second")
    with_solvers(monkeypatch, Late("first", half.state, 1), second)
    problem.solve(tol=1e-9)
    start = second.starts[0]
    np.testing.assert_array_equal(start.blocks["W"], half.W)
    assert start.loss_duals is not None and start.function_duals is not None


def test_names_are_asked_for_one_by_one():
    asked = []

    def names():
        for name in ("a", "b", "c"):
            asked.append(name)
            yield name

    turns = Turns(names(), {"a": 1, "b": 1, "c": 1}.get)
    assert turns.next().name == "a" and asked == ["a"]
    assert turns and asked == ["a", "b"]
    assert [turns.next().name, turns.next().name] == ["b", "c"] and not turns


def test_the_same_solver_may_go_on_at_once():
    turns = Turns(["a", "b"], {"a": 7, "b": 1}.get)
    first = turns.next()
    assert turns  # which looks ahead
    turns.again(first)
    assert [turns.next().name, turns.next().name] == ["a", "b"] and not turns


def test_rounds_that_grow_dear_count_for_more():
    """Work, not rounds, is what a turn may take: the same gaps are progress where rounds cost alike, and not where later ones cost more."""
    rng = np.random.default_rng(0)
    tasks = mtl.Tasks.shared(rng.normal(size=(9, 3)), rng.normal(size=(9, 2)))
    W = mtl.Weights(tasks)
    form = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l1_norm(W)).form()
    watcher = Watcher(form, 1e-12, None)
    ends = []
    for price in (1.0, 10.0):
        watcher.begin("planes", Progress(10, 0.5))
        shown = [(1, 9.0), (5, 8.9), (8, 8.8)]
        points = [Point({"W": np.full((3, 2), w)}, iteration=k, effort=k * price) for k, w in shown]
        ends.append([watcher(point) for point in points])
    assert ends == [[False, False, False], [False, True, True]]


def test_a_shift_ends_a_first_turn_whatever_its_progress():
    class Certificate:
        stationarity, violation, distance = 0.0, 0.0, 1.0
        objective, dual_bound = 1.0, 0.0

    seen, limited, free = Certificate(), Progress(300, 0.5, most=60), Progress(300, 0.5)
    ends = []
    for iteration in range(10, 130, 10):  # the gap halves with every look
        seen.distance *= 0.4
        ends.append((limited.is_over(iteration, seen), free.is_over(iteration, seen)))
    assert next(10 * k for k, (ended, _) in enumerate(ends, 1) if ended) == 70
    assert not any(ended for _, ended in ends)


def test_each_shift_is_four_times_as_long():
    turns = Turns(
        ["gradient", "splitting"],
        {"gradient": 300, "splitting": 300}.get,
        {"gradient": 60, "splitting": np.inf}.get,
    )
    first = turns.next()
    turns.wait(first, Point({}))
    second = turns.next()
    turns.wait(second, Point({}))
    assert (first.most, second.most, turns.next().most) == (60, np.inf, 240)


@pytest.mark.parametrize("iterations, then", [(70, "splitting"), (50, "reference")])
def test_the_last_resort_waits_for_those_whose_first_turn_was_cut_short(iterations, then):
    """At 70 iterations `splitting` was sent away for its shift of 60; at 50 because nothing came of it."""
    names, patience = (
        ["splitting", "newton", "reference"],
        {"splitting": 300, "newton": 50, "reference": 50}.get,
    )
    turns = Turns(
        names, patience, {"splitting": 60, "newton": np.inf, "reference": np.inf}.get, last="reference"
    )
    for taken in (iterations, 100):
        turns.wait(turns.next(), Point({}, iteration=taken))
    first = turns.next()
    assert first.name == then
    turns.wait(first, Point({}, iteration=1000))
    # owed once: after that, everyone in turn
    assert turns.next().name == ("reference" if then == "splitting" else "splitting")


def test_many_features_of_few_rows_are_no_reason_against_splitting():
    """Its systems are then of the rows' size: 4,000 features, which Newton steps take tens of times as long for."""
    rng = np.random.default_rng(0)
    tasks = mtl.Tasks.shared(rng.normal(size=(40, 4000)), np.sign(rng.normal(size=(40, 3))))
    W = mtl.Weights(tasks)
    problem = mtl.minimize(mtl.hinge_loss(W, tasks) + 2 * mtl.l21_norm(W))
    assert problem.explain().chosen == "admm"
    assert problem.solve(tol=1e-5).status == "optimal"


def test_a_pace_is_for_a_first_turn():
    class Certificate:
        stationarity, violation, distance = 0.0, 0.0, 1.0
        objective, dual_bound = 1.0, 0.0

    turns = Turns(
        ["planes", "newton"], {"planes": 24, "newton": 50}.get, pace={"planes": 0.2, "newton": 0.5}.get
    )
    first = turns.next()
    turns.wait(first, Point({}))
    assert (first.pace, turns.next().pace, turns.next().pace) == (0.2, 0.5, 0.5)
    seen, quick, usual = Certificate(), first.progress(), Progress(24, 0.5)
    for iteration, gap in ((1, 1.0), (8, 0.9), (16, 0.5), (32, 0.3)):  # halves, but no more
        seen.distance = gap
        ended = quick.is_over(iteration, seen), usual.is_over(iteration, seen)
    assert ended == (True, False)


def test_gradient_steps_on_slopes_that_jump_hand_over_and_the_answer_is_certified():
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.normal(size=(60, 200)), axis=1) / 10
    tasks = mtl.Tasks.shared(X, X[:, :3] @ rng.normal(size=(3, 5)) + rng.standard_t(2, size=(60, 5)))
    W, lam = mtl.Weights(tasks), mtl.Parameter(1.0)
    problem = mtl.minimize(mtl.huber_loss(W, tasks) + lam * mtl.trace_norm(W))
    lam.value = 1e-3 * float(problem.lambda_max(lam))
    solution = problem.solve()
    assert (
        solution.status == "optimal" and solution.solver == "admm" and "proximal_gradient" in solution.reason
    )
