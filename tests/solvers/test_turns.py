"""Routes in turns: a solver that makes no progress gives way, comes back with more patience, and goes on from where it stood."""

from dataclasses import replace

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.solvers import asking, registry
from mtldsl.solvers.point import Point
from mtldsl.solvers.solver import Solver


class Stuck(Solver):
    """Shows one point for ever, zero unless given; `starts` are those that it was given."""

    summary = "goes nowhere"

    def __init__(self, name, blocks=None):
        self.name, self.blocks, self.starts, self.taken = name, blocks, [], []

    def refuses(self, form):
        return None

    def patience(self, form):
        return 20

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
            point = (
                replace(self.point, iteration=iteration)
                if solved
                else Point(form.zeros(), iteration=iteration)
            )
            if watch(point):
                break
        self.taken.append(iteration)
        return point


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    tasks = mtl.Tasks.shared(rng.normal(size=(12, 3)), rng.normal(size=(12, 2)))
    W = mtl.Weights(tasks)
    return mtl.minimize(mtl.absolute_loss(W, tasks) + 3 * mtl.l21_norm(W))


def with_solvers(monkeypatch, *solvers):
    """These, and no reference after them."""
    monkeypatch.setattr(asking, "_SMALL_ENOUGH_FOR_REFERENCE", 0)
    monkeypatch.setattr(registry, "SOLVERS", {solver.name: solver for solver in solvers})


@pytest.mark.slow
def test_turns_alternate_with_growing_patience(problem, monkeypatch):
    """The second solver needs 300 iterations: what the first spends meanwhile stays below what the second does."""
    solved = problem.solve(tol=1e-7)
    assert solved.status == "optimal"
    stuck, late = Stuck("stuck"), Late("late", solved.state, 300)
    with_solvers(monkeypatch, stuck, late)
    again = problem.solve(tol=1e-6)
    assert again.status == "optimal" and again.solver == "late"
    np.testing.assert_array_equal(again.W, solved.W)
    assert len(stuck.taken) > 1 and stuck.taken == sorted(stuck.taken) and late.taken[-1] == 300
    assert sum(stuck.taken) <= 2 * sum(late.taken)
    assert "stuck stopped at a relative gap of" in again.reason and again.reason.count("stuck stopped") == 1


@pytest.mark.slow
def test_multipliers_travel_with_the_best_point(problem, monkeypatch):
    """A solver that takes over gets the multipliers of the best bound, so that its first certificate is no worse."""
    half, solved = problem.solve(solver="admm", tol=0.3), problem.solve(tol=1e-7)
    second = Late("second", solved.state, 1)
    first = Late("first", half.state, 1)
    first.patience = lambda form: 5
    with_solvers(monkeypatch, first, second)
    assert problem.solve(tol=1e-6).solver == "second"
    start = second.starts[0]
    np.testing.assert_array_equal(start.blocks["W"], half.W)
    assert start.loss_duals is not None and start.function_duals is not None


def test_gradient_steps_on_jumping_slopes_hand_over():
    """Gradient steps on slopes that jump hand over and the answer is certified."""
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.normal(size=(60, 200)), axis=1) / 10
    tasks = mtl.Tasks.shared(X, X[:, :3] @ rng.normal(size=(3, 5)) + rng.standard_t(2, size=(60, 5)))
    W, lam = mtl.Weights(tasks), mtl.Parameter(1.0)
    problem = mtl.minimize(mtl.huber_loss(W, tasks) + lam * mtl.trace_norm(W))
    lam.value = 1e-3 * float(problem.lambda_max(lam))
    solution = problem.solve()
    assert solution.status == "optimal"
