"""A program that test_interrupts.py starts: a solve over Dask's workers, and Ctrl-C in the middle of it."""

import json
import os
import signal
import sys
import threading
import time

import dask
import distributed
import numpy as np

import mtldsl as mtl
from mtldsl.tasks.distributed.given import of_loaders

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
Y = np.sign(X @ RNG.normal(size=(4, 2)) + RNG.normal(size=(200, 2)))


def part(k):
    time.sleep(0.05)
    return X[50 * k : 50 * k + 50], Y[50 * k : 50 * k + 50]


def later(seconds):
    """As a terminal does: to all processes of the program."""
    threading.Timer(seconds, os.killpg, (os.getpgid(0), signal.SIGINT)).start()


def main(after_passes: int, times: int) -> dict:
    told: dict = {}
    options = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "processes": True}
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        tasks = of_loaders([dask.delayed(part)(k) for k in range(4)], keep=False)
        W = mtl.Weights(tasks)
        problem = mtl.minimize(mtl.hinge_loss(W, tasks) + 3 * mtl.l21_norm(W))
        parts, run = tasks.parts, tasks.parts.run
        first, sent = parts.passes, []

        def signalled(*typed, **named):
            # other looks at the rows come before the first pass too
            if parts.passes - first == after_passes and not sent:
                sent.append(True)
                for k in range(times):
                    later(0.05 + 0.1 * k)
            return run(*typed, **named)

        parts.run = signalled
        try:
            solution = problem.solve(tol=1e-12)
            told |= {
                "status": solution.status,
                "gap": solution.gap,
                "objective": solution.objective,
                "interrupted": solution.interrupted,
            }
        except KeyboardInterrupt:
            told["status"] = "KeyboardInterrupt"
        parts.run = run
        told["passes"] = parts.passes - first
        until = time.monotonic() + 120.0
        while time.monotonic() < until and any("evaluated" in str(key) for key in cluster.scheduler.tasks):
            time.sleep(0.05)
        told["left"] = [str(key) for key in cluster.scheduler.tasks if "evaluated" in str(key)]
        told["works"] = client.submit(sum, [1, 2]).result(timeout=60)
        told["again"] = problem.solve(tol=0.5).status
    return told


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background may ignore it
    print(json.dumps(main(*map(int, sys.argv[1:]))))
