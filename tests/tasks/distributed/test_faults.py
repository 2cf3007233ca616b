"""Workers that die, lack memory or are interrupted: the same bits, or an error that says which partition."""

import os
import signal
import threading
import time

import dask.array as da
import distributed
import numpy as np
import pytest

from mtldsl import SolverError, Tasks
from mtldsl.tasks.distributed import TaskSum, dask_engine

N, D, M = 4000, 6, 2
X = da.random.default_rng(0).normal(size=(N, D), chunks=(500, D))
Y = X @ np.ones((D, M)) + 1.0


def residual_kept(part, state, W, seconds):
    """A step whose state depends on all steps before."""
    time.sleep(seconds)
    z = part.tasks.forward(part.columns(W)) - part.tasks.targets
    state = z if state is None else 0.5 * state + z
    return state, TaskSum(part.which, part.tasks.adjoint(state).T)


def descend(parts, steps):
    W, state = np.zeros((D, M)), None
    for _ in range(steps):
        state, slope = parts.run(residual_kept, W, 0.02, state=state, stateful=True)
        W = W - 1e-4 * slope.of_all(M).T
    return W


def dies(part):
    if part.index == 1:
        os._exit(1)
    return 1.0


def sleeps(part):
    time.sleep(1.5)
    return 1.0


@pytest.fixture
def no_failure_allowed(two_processes):
    allowed, two_processes.scheduler.allowed_failures = two_processes.scheduler.allowed_failures, 0
    yield
    two_processes.scheduler.allowed_failures = allowed


@pytest.mark.cluster
def test_a_worker_that_dies_each_time_names_the_partition(client_of_processes, no_failure_allowed):
    """A worker that dies each time is an error that names the partition."""
    tasks = Tasks.from_dask(X, Y)
    with pytest.raises(
        SolverError,
        match=r"^partition \d.*: a worker died .*of what was computed beside it.* smaller partitions",
    ):
        tasks.parts.run(dies)


@pytest.mark.slow
def test_an_interrupt_leaves_no_work_behind(two_workers, client):
    tasks = Tasks.from_dask(X, Y)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        tasks.parts.run(sleeps)
    timer.join()
    until = time.monotonic() + 120.0
    while any("sleeps" in str(key) or "evaluated" in str(key) for key in two_workers.scheduler.tasks):
        assert time.monotonic() < until, "work was left behind"
        time.sleep(0.05)
    assert tasks.cross().shape == (D, M)  # and the rows are still there


@pytest.mark.slow
def test_a_cluster_without_workers_is_an_error_and_no_hang(monkeypatch):
    monkeypatch.setattr(dask_engine, "_PATIENCE", 0.3)
    options = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "protocol": "tcp://"}
    empty = distributed.LocalCluster(n_workers=0, processes=False, **options)
    with (
        empty,
        distributed.Client(empty),
        pytest.raises(SolverError, match="the cluster has had no worker for"),
    ):
        Tasks.from_dask(X, Y)


@pytest.mark.slow
def test_patience_with_a_slow_pass_has_no_end(client, monkeypatch):
    monkeypatch.setattr(dask_engine, "_PATIENCE", 0.05)
    parts = Tasks.from_dask(X, Y).parts
    assert np.isfinite(descend(parts, 2)).all()
