"""Workers that die, lack memory or are interrupted: the same bits, or an error that says which partition."""

import os
import signal
import threading
import time
from dataclasses import replace

import dask
import dask.array as da
import distributed
import numpy as np
import pytest

import mtldsl as mtl
from mtldsl import SolverError, Tasks
from mtldsl.distributed import dask_backend
from mtldsl.distributed.dask_inputs import of_loaders
from tests.conftest import local_cluster
from tests.models import with_weights

N, D, M = 4000, 6, 2
X = da.random.default_rng(0).normal(size=(N, D), chunks=(500, D))
Y = X @ np.ones((D, M)) + 1.0


class KilledWorker(Exception):
    """Dask's own, by its name: it gives a task up."""

    task, allowed_failures = "mtldsl_dies-1", 1


def slow(part):
    time.sleep(0.04)
    return {"rows": part.tasks.n_samples}


@pytest.mark.cluster
def test_a_worker_killed_in_a_solve_changes_no_bit():
    """The rows that it held are read again by the other one, until Dask has started it anew."""
    with local_cluster(processes=True) as cluster, distributed.Client(cluster):
        pid = next(iter(cluster.workers.values())).process.pid
        assert solved_on_processes(pid).tobytes() == solved_on_processes().tobytes()


def solved_on_processes(killed=None):
    tasks, W = with_weights(of_loaders([dask.delayed(loaded)(k) for k in range(4)], keep=True))
    parts, run, first = tasks.parts, tasks.parts.run, tasks.parts.passes

    def counted(*typed, **named):
        if killed is not None and parts.passes - first == 4:
            os.kill(killed, signal.SIGKILL)
        return run(*typed, **named)

    parts.run = counted
    problem = mtl.minimize(mtl.hinge_loss(W, tasks) + 2 * mtl.l21_norm(W))
    found = problem.solve("newton_by_passes", tol=1e-2)
    assert parts.passes - first > 5
    return found.W


def dies(part):
    if part.index == 1:
        raise KilledWorker


def test_a_worker_that_dies_each_time_names_the_partition(client):
    tasks = Tasks.from_dask(X.rechunk((2000, D)), Y.rechunk((2000, M)))
    with pytest.raises(
        SolverError,
        match=r"^partition 1: 2 workers, one after another, died .*of what was computed beside it.* smaller partitions",
    ):
        tasks.parts.run(dies)


def interrupt(seconds):
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


def assert_nothing_is_left(cluster):
    until = time.monotonic() + 120.0
    while any("evaluated" in str(key) for key in cluster.scheduler.tasks):
        assert time.monotonic() < until, "work was left behind"
        time.sleep(0.05)


def loaded(k):
    time.sleep(0.02)
    rows = np.random.default_rng(k).normal(size=(50, 4))
    return rows, np.sign(rows @ np.ones((4, 2)) + np.random.default_rng(9 + k).normal(size=(50, 2)))


@pytest.mark.slow
@pytest.mark.parametrize(("passes", "times"), [(14, 1), (0, 2)], ids=["once", "twice before a point"])
def test_ctrl_c_returns_the_best_certified_point(two_workers, client, passes, times):
    """A second one ends the solve where there is no point yet; the cluster works as before."""
    tasks, W = with_weights(of_loaders([dask.delayed(loaded)(k) for k in range(4)], keep=False))
    problem = mtl.minimize(mtl.hinge_loss(W, tasks) + 3 * mtl.l21_norm(W))
    parts, run = tasks.parts, tasks.parts.run
    first, timers = parts.passes, []

    def signalled(*typed, **named):
        if parts.passes - first == passes and not timers:
            timers.extend(interrupt(0.05 + 0.1 * k) for k in range(times))
        return run(*typed, **named)

    parts.run = signalled
    if times == 1:
        found = problem.solve(tol=1e-12)
        assert found.status == "interrupted" and found.interrupted and 0.0 < found.gap < 0.5
        assert parts.passes - first == passes  # what was under way is given up, and no pass is added
    else:
        with pytest.raises(KeyboardInterrupt):
            problem.solve(tol=1e-12)
    for timer in timers:
        timer.cancel()
    parts.run = run
    assert_nothing_is_left(two_workers)
    assert client.submit(sum, [1, 2]).result(timeout=60) == 3 and problem.solve(tol=0.5).status == "optimal"


@pytest.mark.slow
def test_a_cluster_without_workers_is_an_error_and_no_hang(monkeypatch):
    monkeypatch.setattr(dask_backend, "SETTINGS", replace(dask_backend.SETTINGS, patience_seconds=0.3))
    with (
        local_cluster(n_workers=0) as empty,
        distributed.Client(empty),
        pytest.raises(SolverError, match="the cluster has had no worker for"),
    ):
        Tasks.from_dask(X, Y)


@pytest.mark.slow
def test_patience_with_a_slow_pass_has_no_end(client, monkeypatch):
    monkeypatch.setattr(dask_backend, "SETTINGS", replace(dask_backend.SETTINGS, patience_seconds=0.05))
    assert Tasks.from_dask(X, Y).parts.run(slow)["rows"] == M * N
