"""Workers that are killed in the middle of a solve: the same bits, with the same proof, whatever is kept beside the rows."""

import os
import signal
import threading
import time
from contextlib import suppress

import dask
import distributed
import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.distributed.dask_inputs import of_loaders
from tests.conftest import local_cluster

RNG = np.random.default_rng(5)
X = RNG.normal(size=(200, 5))
Y = np.sign(X @ RNG.normal(size=(5, 2)) + RNG.normal(size=(200, 2)))


def part(k):
    time.sleep(0.01)  # so that there is a time for it to die
    return X[40 * k : 40 * k + 40], Y[40 * k : 40 * k + 40]


def solve(keep, before_pass=lambda run: None):
    tasks = of_loaders([dask.delayed(part)(k) for k in range(5)], keep=keep)
    parts, run = tasks.parts, tasks.parts.run
    first = parts.passes

    def counted(*typed, **named):
        before_pass(parts.passes - first)
        return run(*typed, **named)

    parts.run = counted
    W = mtl.Weights(tasks)
    problem = mtl.minimize(mtl.hinge_loss(W, tasks) + 2 * mtl.l21_norm(W))
    return problem.solve("newton_by_passes", tol=1e-2)


@pytest.mark.cluster
def test_a_worker_that_is_killed_while_it_starts():
    """Dask's nanny gives it up, and the rest does the work."""
    with local_cluster(processes=True) as cluster, distributed.Client(cluster):
        killed_while_it_starts(cluster)


def killed_while_it_starts(cluster):
    wanted = solve(keep=True)
    first = next(iter(cluster.workers.values()))

    def kill(k):
        if k == 4:
            os.kill(first.process.pid, signal.SIGKILL)
            threading.Thread(target=again).start()

    def again():
        until, old = time.monotonic() + 120.0, first.process and first.process.pid
        while time.monotonic() < until:
            new = first.process and first.process.pid
            if new and new != old:
                with suppress(ProcessLookupError):
                    os.kill(new, signal.SIGKILL)
                return
            time.sleep(0.005)

    assert solve(True, kill).W.tobytes() == wanted.W.tobytes()
