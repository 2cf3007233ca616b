"""solve(n_jobs=...): the same bits for any number of threads, one certificate for all tasks, and what it refuses."""

import os
import signal
import threading

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.errors import SolverError
from mtldsl.solvers.coordinate_descent.smooth_newton import WorkingNewton
from mtldsl.utils import interrupts
from mtldsl.utils import parallel as system_jobs
from tests.loops import for_each
from tests.models import with_weights


def separate(n, d, m=5, seed=0):
    rng = np.random.default_rng(seed)
    inputs = [rng.normal(size=(n + 7 * i, d)) for i in range(m)]
    signs = [np.where(X[:, :6].sum(axis=1) + rng.normal(size=len(X)) > 0, 1.0, -1.0) for X in inputs]
    return mtl.Tasks.separate(inputs, signs)


#: name -> (rows, features, intercept, loss, coefficient of the l1 norm)
MODELS = {
    "logistic": (60, 300, True, mtl.logistic_loss, 4),
    "lasso": (80, 1100, True, mtl.squared_loss, 20),
    # few features: all tasks go together, and their Gram matrices are made in threads
    "huber": (9000, 40, False, mtl.huber_loss, 50),
}


def stated(name="logistic"):
    n, d, intercept, loss, lam = MODELS[name]
    tasks, W = with_weights(separate(n, d), intercept=intercept)
    return mtl.minimize(loss(W, tasks) + lam * mtl.l1_norm(W), [W >= 0] if name == "lasso" else [])


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
@pytest.mark.parametrize("model", MODELS)
def test_any_number_of_threads_gives_the_same_bits(model, pools):
    plain, first = stated(model).solve(), stated(model).solve(tol=1e-2)
    warm, before = bits(stated(model).solve(warm_start=first)), threading.active_count()
    assert plain.status == "optimal"
    for n in (1, 2, 3):
        pools.clear()
        assert bits(stated(model).solve(n_jobs=n)) == bits(plain)
        assert set(pools) == ({n} if n > 1 else set())
        assert bits(stated(model).solve(warm_start=first, n_jobs=n)) == warm
    short = stated(model).solve(n_jobs=2, tol=1e-12, max_seconds=1e-4)
    assert short.status in ("time_limit", "optimal") and short.violation <= 1e-6
    assert np.isfinite(short.objective) and threading.active_count() == before


@for_each("wrong", [0, -2, 1.5, "two", True, np.nan, [2]], ids=str)
def test_what_cannot_be_a_number_of_threads(wrong):
    with pytest.raises(SolverError) as caught:
        stated().solve(n_jobs=wrong)
    assert "solve(n_jobs=" in str(caught.value) and "positive whole number" in str(caught.value)


def test_one_thread_a_core(pools):
    assert stated().solve(n_jobs=-1).status == "optimal"
    assert set(pools) <= {min(os.cpu_count() or 1, 5)}


def test_a_signal_ends_all_threads(monkeypatch):
    """It comes while both threads are inside a task, each of which would go on for ever."""
    monkeypatch.setattr(interrupts._state, "last", -np.inf)
    meeting, before = threading.Barrier(2, action=lambda: timer.start()), threading.active_count()
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    once = WorkingNewton.run

    def for_ever(self, W, b, max_iter, report, expired):
        meeting.wait(timeout=120)
        while not expired():
            pass
        return once(self, W, b, max_iter, report, expired)

    monkeypatch.setattr(WorkingNewton, "run", for_ever)
    solution = stated().solve(n_jobs=2)
    timer.join()
    assert solution.interrupted and solution.status == "interrupted"
    assert np.isfinite(solution.objective) and solution.dual_bound <= solution.objective
    assert threading.active_count() == before


def test_coupled_tasks_take_no_notice(pools):
    tasks, W = with_weights(separate(60, 30))
    problem = mtl.minimize(mtl.logistic_loss(W, tasks) + 3 * mtl.l21_norm(W))
    assert bits(problem.solve(n_jobs=3)) == bits(problem.solve())
    assert pools == []


@pytest.mark.slow
@for_each("intercept", [False, True])
def test_threads_over_tasks_of_dual_ascent_change_no_bit(intercept):
    """Inputs so large that passes over samples go by tasks at the same time."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 2300))
    tasks = mtl.Tasks.shared(X, np.where(X[:, :3] + rng.normal(size=(900, 3)) > 0, 1.0, -1.0))
    W = mtl.Weights(tasks, intercept=intercept)
    problem = mtl.minimize(3 * mtl.hinge_loss(W, tasks) + mtl.ridge(W))
    one, *more = (bits(problem.solve("dual_ascent", n_jobs=threads, max_iter=4)) for threads in (1, 2, 3))
    assert more == [one, one]
