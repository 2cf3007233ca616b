"""A scheduler that is killed in the middle of a solve: an error at once, and the same call goes on with another cluster."""

import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import dask
import distributed
import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.errors import LostClusterError
from mtldsl.tasks.distributed.given import of_loaders

pytestmark = pytest.mark.cluster

RNG = np.random.default_rng(5)
X = RNG.normal(size=(200, 5))
Y = np.sign(X @ RNG.normal(size=(5, 2)) + RNG.normal(size=(200, 2)))
LOSSES = {"multipliers": "hinge_loss", "smooth": "logistic_loss"}
SOLVER = "newton_by_passes"


def part(k):
    time.sleep(0.02)
    return X[50 * k : 50 * k + 50], Y[50 * k : 50 * k + 50]


def model(loss, keep=False):
    tasks = of_loaders([dask.delayed(part)(k) for k in range(4)], keep=keep)
    W = mtl.Weights(tasks)
    return mtl.minimize(getattr(mtl, loss)(W, tasks) + 2 * mtl.l21_norm(W)), tasks.parts


@contextmanager
def a_cluster_of_processes():
    """Its scheduler, a process of its own."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    address, here = f"tcp://127.0.0.1:{port}", ["--host", "127.0.0.1", "--no-dashboard"]
    start = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", str(port), *here]
    work = [
        sys.executable,
        "-m",
        "distributed.cli.dask_worker",
        address,
        "--nthreads",
        "1",
        "--no-nanny",
        *here,
    ]
    both = [subprocess.Popen(one, stderr=subprocess.DEVNULL) for one in (start, work)]
    try:
        with distributed.Client(address, timeout=60) as client:
            client.wait_for_workers(1, timeout=60)
            yield both[0]
    finally:
        for process in both:
            process.kill()
            process.wait()


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "after", "in_a_pass"), [("multipliers", 17, True), ("smooth", 5, False)])
def test_the_same_call_goes_on_with_another_cluster(tmp_path, two_workers, loss, after, in_a_pass):
    killed, later = [], []
    with a_cluster_of_processes() as scheduler:
        problem, parts = model(LOSSES[loss])
        run, first = parts.run, parts.passes

        def kill():
            scheduler.kill()
            killed.append(True)

        def counted(*typed, **named):
            later.extend(killed)
            if parts.passes - first == after and not killed:
                threading.Timer(0.02, kill).start()
                time.sleep(0.0 if in_a_pass else 1.0)
            return run(*typed, **named)

        parts.run = counted
        with pytest.raises(
            LostClusterError,
            match=r"the connection to Dask's scheduler was lost.* with checkpoint=folder goes on",
        ):
            problem.solve(SOLVER, tol=1e-6, checkpoint=tmp_path)
        assert len(later) <= 1  # nothing is tried again and again
    with distributed.Client(two_workers):
        problem, parts = model(LOSSES[loss])
        first = parts.passes
        wanted = problem.solve(SOLVER, tol=1e-6)
        whole = parts.passes - first
        problem, parts = model(LOSSES[loss])
        first = parts.passes
        found = problem.solve(SOLVER, tol=1e-6, checkpoint=tmp_path)
        assert found.status == wanted.status == "optimal" and found.gap <= 1e-6
        assert abs(found.objective - wanted.objective) <= 2e-6 * wanted.objective
        assert parts.passes - first < whole - after // 3
        assert (list(tmp_path.glob("rows-*")) != []) == (loss == "multipliers")
