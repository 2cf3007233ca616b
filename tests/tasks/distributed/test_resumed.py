"""A scheduler that is killed in a solve: an error at once, and the same call goes on by threads of this process."""

import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress

import dask
import distributed
import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.distributed.dask_inputs import of_loaders
from mtldsl.errors import LostClusterError
from tests.models import with_weights

pytestmark = pytest.mark.cluster

RNG = np.random.default_rng(5)
X = RNG.normal(size=(200, 5))
Y = np.sign(X @ RNG.normal(size=(5, 2)) + RNG.normal(size=(200, 2)))
SOLVER = "newton_by_passes"
AFTER, TOL = 17, 1e-6  # passes, gap


def part(k):
    """Rows of a part, which take a worker longer than it takes to kill the scheduler."""
    with suppress(ValueError):  # of threads of this process
        distributed.get_worker()
        time.sleep(0.02)
    return X[100 * k : 100 * k + 100], Y[100 * k : 100 * k + 100]


def model():
    tasks, W = with_weights(of_loaders([dask.delayed(part)(k) for k in range(2)], keep=False))
    return mtl.minimize(mtl.hinge_loss(W, tasks) + 2 * mtl.l21_norm(W)), tasks.parts


@contextmanager
def a_cluster_of_processes():
    """Its scheduler, a process of its own."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    address, here = f"tcp://127.0.0.1:{port}", ["--host", "127.0.0.1", "--no-dashboard"]
    start = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", str(port), *here]
    work = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny"]
    both = [subprocess.Popen(one, stderr=subprocess.DEVNULL) for one in (start, [*work, *here])]
    try:
        with distributed.Client(address, timeout=60) as client:
            client.wait_for_workers(1, timeout=60)
            yield both[0]
    finally:
        for process in both:
            process.kill()
            process.wait()


@pytest.mark.slow
def test_the_same_call_goes_on_without_the_cluster(tmp_path):
    killed, later = [], []
    with a_cluster_of_processes() as scheduler:
        problem, parts = model()
        run, first = parts.run, parts.passes

        def kill():
            scheduler.kill()
            killed.append(True)

        def counted(*typed, **named):
            later.extend(killed)
            if parts.passes - first == AFTER and not killed:
                threading.Timer(0.02, kill).start()
            return run(*typed, **named)

        parts.run = counted
        with pytest.raises(
            LostClusterError,
            match=r"the connection to Dask's scheduler was lost.* with checkpoint=folder goes on",
        ):
            problem.solve(SOLVER, tol=TOL, checkpoint=tmp_path)
        assert len(later) <= 1  # nothing is tried again and again
    problem, parts = model()
    first = parts.passes
    wanted = problem.solve(SOLVER, tol=TOL)
    whole = parts.passes - first
    problem, parts = model()
    first = parts.passes
    found = problem.solve(SOLVER, tol=TOL, checkpoint=tmp_path)
    assert found.status == wanted.status == "optimal" and found.gap <= TOL
    assert abs(found.objective - wanted.objective) <= 2 * TOL * wanted.objective
    assert parts.passes - first < whole - AFTER // 3
    assert list(tmp_path.glob("rows-*"))
