"""Routes in turns: a solver that makes no progress gives way, comes back with more patience, and goes on from where it stood."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.certificates.certificate import Certificate
from mtldsl.solvers import routes
from mtldsl.solvers.scheduler import SETTINGS, StallRule
from mtldsl.solvers.solver import Point, Solver
from tests.models import with_weights


class Shows(Solver):
    """Zero, and a given point from an iteration on; `starts` is what it was given, `taken` the iterations of its turns."""

    summary, max_iter = "goes nowhere for long", 1000

    def __init__(self, name, point=None, needs=math.inf):
        self.name, self.point, self.needs, self.starts, self.taken = name, point, needs, [], []

    def refuses(self, form):
        return None

    def flops(self, form):
        """So many that the fewest iterations without progress end a first slot."""
        return SETTINGS.patience / SETTINGS.iterations

    def solve(self, form, *, tol, max_iter, start, watch):
        self.starts.append(start)
        for iteration in range(1, max_iter + 1):
            shown = self.point if iteration >= self.needs else Point(form.zeros())
            point = replace(shown, iteration=iteration)
            if watch(point):
                break
        self.taken.append(iteration)
        return point


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    tasks, W = with_weights(mtl.Tasks.shared(rng.normal(size=(12, 3)), rng.normal(size=(12, 2))))
    return mtl.minimize(mtl.absolute_loss(W, tasks) + 3 * mtl.l21_norm(W))


def with_solvers(monkeypatch, *solvers):
    """These, and no reference after them."""
    monkeypatch.setattr(routes, "SETTINGS", replace(routes.SETTINGS, max_reference_entries=0))
    monkeypatch.setattr(routes, "SOLVERS", {solver.name: solver for solver in solvers})


@pytest.mark.slow
def test_a_solver_that_goes_nowhere_gives_way(problem, monkeypatch):
    """What it spends stays below twice what the other does, which needs 300 iterations."""
    solved = problem.solve(tol=1e-7)
    stuck, late = Shows("stuck"), Shows("late", solved.state, 300)
    with_solvers(monkeypatch, stuck, late)
    again = problem.solve(tol=1e-6)
    assert again.status == "optimal" and again.solver == "late"
    np.testing.assert_array_equal(again.W, solved.W)
    assert sum(stuck.taken) <= 2 * sum(late.taken)
    assert again.reason.count("stuck stopped at a relative gap of") == 1


def test_multipliers_travel_with_the_best_point(problem, monkeypatch):
    """A solver that takes over gets the multipliers of the best bound, so that its first certificate is no worse."""
    half, solved = problem.solve(solver="admm", tol=0.3), problem.solve(tol=1e-7)
    first, second = Shows("first", half.state, 1), Shows("second", solved.state, 1)
    first.max_iter = 30
    with_solvers(monkeypatch, first, second)
    assert problem.solve(tol=1e-6).solver == "second"
    start = second.starts[0]
    np.testing.assert_array_equal(start.blocks["W"], half.W)
    assert start.loss_duals is not None and start.function_duals is not None


def test_a_falling_gap_is_progress_beside_an_optimum_of_zero():
    """The relative gap stays near 1 there until the end; a gap that stands still is none."""
    falling, standing = StallRule(patience=1.0, share=0.5), StallRule(patience=1.0, share=0.5)
    looks = [(2.0**k, Certificate(0.4**k, 1e-9, 0.0, scale=1e-9)) for k in range(10)]
    assert not any(falling.is_stalled(work, seen) for work, seen in looks)
    assert any(standing.is_stalled(work, replace(seen, objective=1.0)) for work, seen in looks)


def test_gradient_steps_on_jumping_slopes_hand_over():
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.normal(size=(60, 200)), axis=1) / 10
    tasks = mtl.Tasks.shared(X, X[:, :3] @ rng.normal(size=(3, 5)) + rng.standard_t(2, size=(60, 5)))
    W, lam = mtl.Weights(tasks), mtl.Parameter(1.0)
    problem = mtl.minimize(mtl.huber_loss(W, tasks) + lam * mtl.trace_norm(W))
    lam.value = 1e-3 * float(problem.lambda_max(lam))
    assert problem.solve().status == "optimal"


@pytest.mark.slow
def test_two_solvers_that_go_nowhere_end(problem, monkeypatch):
    """Their fourth slots end after 3,000 iterations without progress, not at their `max_iter`."""
    monkeypatch.setattr(Shows, "max_iter", 1_000_000)
    first, second = Shows("first"), Shows("second")
    with_solvers(monkeypatch, first, second)
    assert problem.solve().status == "stalled"
    assert len(first.taken) == len(second.taken) == SETTINGS.slots
    assert sum(first.taken) < 20_000 and sum(second.taken) < 20_000


def test_the_order_follows_a_parameter():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    tasks = mtl.Tasks.shared(X, np.sign(X[:, :2] + rng.normal(size=(200, 2))))
    W, lam = mtl.Weights(tasks), mtl.Parameter(0.01, name="lam")
    problem = mtl.minimize(mtl.hinge_loss(W, tasks) + lam * mtl.ridge(W))
    chosen = []
    for lam.value in (0.01, 1e6, 0.01):
        chosen.append(problem.explain().chosen)
    assert chosen == ["multipliers", "dual_ascent", "multipliers"]


def test_sparse_data_begin_with_the_route_of_their_shape():
    cases = {
        ("squared_hinge_loss", "ridge", 80, 40): "dual_ascent", ("squared_hinge_loss", "ridge", 200, 40): "proximal_gradient",
        ("huber_loss", "ridge", 80, 40): "proximal_gradient", ("hinge_loss", "l1_norm", 2000, 1000): "multipliers.newton",
        ("hinge_loss", "trace_norm", 2000, 1000): "multipliers.newton", ("hinge_loss", "trace_norm", 1000, 1000): "admm",
    }  # fmt: skip
    rng = np.random.default_rng(0)
    for (loss, penalty, n, d), route in cases.items():
        X = sparse.random_array((n, d), density=8 / d, rng=rng, format="csr") + sparse.eye_array(
            n, d, format="csr"
        )
        tasks = mtl.Tasks.shared(X, rng.choice([-1.0, 1.0], size=(n, 2)))
        W = mtl.Weights(tasks)
        problem = mtl.minimize(getattr(mtl, loss)(W, tasks) + getattr(mtl, penalty)(W))
        assert problem.explain().chosen == route, (loss, penalty, n)


def test_dear_newton_steps_are_looked_at():
    """A route that is judged by its looks may not work for long without one: steps here take some 200 products each."""
    rng = np.random.default_rng(0)
    rows, columns = np.repeat(np.arange(3000), 30), (2000 * rng.random(90_000) ** 3).astype(int)
    X = sparse.coo_array((rng.random(90_000), (rows, columns)), (3000, 2000)).tocsr()
    tasks = mtl.Tasks.shared(X, rng.choice([-1.0, 1.0], size=(3000, 1)))
    W = mtl.Weights(tasks)
    found = mtl.minimize(mtl.squared_hinge_loss(W, tasks) + 0.01 * mtl.ridge(W)).solve(
        solver="proximal_gradient", max_iter=5
    )
    assert len(found.history) >= 2
