"""solve(n_jobs=...): the same bits for any number of threads, one certificate for all tasks, and what it refuses."""

import os
import signal
import threading

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.errors import SolverError
from mtldsl.solvers.smooth.working_newton import WorkingNewton
from mtldsl.system import jobs as system_jobs
from mtldsl.system import stops
from tests.loops import for_each


def separate(n, d, m=5, seed=0):
    rng = np.random.default_rng(seed)
    inputs = [rng.normal(size=(n + 7 * i, d)) for i in range(m)]
    signs = [np.where(X[:, :6].sum(axis=1) + rng.normal(size=len(X)) > 0, 1.0, -1.0) for X in inputs]
    return mtl.Tasks.separate(inputs, signs)


def logistic(intercept=True):
    tasks = separate(60, 300)
    W = mtl.Weights(tasks, intercept=intercept)
    return mtl.minimize(mtl.logistic_loss(W, tasks) + 4 * mtl.l1_norm(W))


def lasso():
    tasks = separate(80, 1100)
    W = mtl.Weights(tasks, intercept=True)
    return mtl.minimize(mtl.squared_loss(W, tasks) + 20 * mtl.l1_norm(W), [W >= 0])


def hinge():
    """Few features are needed: tasks go one by one on working sets. Where many are, interior points take all tasks at once."""
    tasks = separate(200, 700)
    W = mtl.Weights(tasks, intercept=True)
    return mtl.minimize(mtl.hinge_loss(W, tasks) + 40 * mtl.l1_norm(W))


def huber():
    """Few features: all tasks go together, and their Gram matrices are made in threads."""
    tasks = separate(9000, 40)
    W = mtl.Weights(tasks)
    return mtl.minimize(mtl.huber_loss(W, tasks) + 50 * mtl.l1_norm(W))


@pytest.fixture
def pools(monkeypatch):
    """How many threads each pool was opened with."""
    opened = []

    class Counted(system_jobs.ThreadPoolExecutor):
        def __init__(self, threads):
            opened.append(threads)
            super().__init__(threads)

    monkeypatch.setattr(system_jobs, "ThreadPoolExecutor", Counted)
    return opened


def bits(solution):
    blocks = [solution.blocks[name].tobytes() for name in sorted(solution.blocks)]
    return blocks, solution.objective, solution.dual_bound, solution.iterations, solution.solver


@pytest.mark.by_default("lasso")
@pytest.mark.parametrize("model", [logistic, lasso, hinge, huber])
def test_any_number_of_threads_gives_the_same_bits(model, pools):
    plain, first = model().solve(), model().solve(tol=1e-2)
    warm, before = bits(model().solve(warm_start=first)), threading.active_count()
    assert plain.status == "optimal"
    for n in (1, 2, 3):
        pools.clear()
        assert bits(model().solve(n_jobs=n)) == bits(plain)
        assert set(pools) == ({n} if n > 1 else set())
        assert bits(model().solve(warm_start=first, n_jobs=n)) == warm
    short = model().solve(n_jobs=2, tol=1e-12, max_seconds=1e-4)
    assert short.status in ("time_limit", "optimal") and short.violation <= 1e-6
    assert np.isfinite(short.objective) and threading.active_count() == before


@for_each("wrong", [0, -2, 1.5, "two", True, np.nan, [2]], ids=str)
def test_what_cannot_be_a_number_of_threads(wrong):
    with pytest.raises(SolverError) as caught:
        logistic().solve(n_jobs=wrong)
    assert "solve(n_jobs=" in str(caught.value) and "positive whole number" in str(caught.value)


def test_one_thread_a_core(pools):
    assert logistic().solve(n_jobs=-1).status == "optimal"
    assert set(pools) <= {min(os.cpu_count() or 1, 5)}


def test_a_signal_ends_all_threads(monkeypatch):
    """It comes while both threads are inside a task, each of which would go on for ever."""
    monkeypatch.setattr(stops._state, "last", -np.inf)
    meeting, before = threading.Barrier(2, action=lambda: timer.start()), threading.active_count()
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    once = WorkingNewton.run

    def for_ever(self, W, b, max_iter, report, expired):
        meeting.wait(timeout=120)
        while not expired():
            pass
        return once(self, W, b, max_iter, report, expired)

    monkeypatch.setattr(WorkingNewton, "run", for_ever)
    solution = logistic().solve(n_jobs=2)
    timer.join()
    assert solution.interrupted and solution.status == "interrupted"
    assert np.isfinite(solution.objective) and solution.dual_bound <= solution.objective
    assert threading.active_count() == before


def test_coupled_tasks_take_no_notice(pools):
    tasks = separate(60, 30)
    W = mtl.Weights(tasks)
    problem = mtl.minimize(mtl.logistic_loss(W, tasks) + 3 * mtl.l21_norm(W))
    assert bits(problem.solve(n_jobs=3)) == bits(problem.solve())
    assert pools == []
