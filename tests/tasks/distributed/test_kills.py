"""Workers that are killed at random moments of a solve: the same bits, with the same proof, whatever is kept beside the rows."""

import os
import signal
import threading
import time
from contextlib import contextmanager, suppress

import dask
import distributed
import numpy as np
import pytest

import mtldsl as mtl
from mtldsl import DataError
from mtldsl.tasks.distributed.given import of_loaders

RNG = np.random.default_rng(5)
X = RNG.normal(size=(200, 5))
Y = X @ RNG.normal(size=(5, 2)) + RNG.normal(size=(200, 2))
KILLS = 4

MODELS = {
    "squares": ("auto", lambda W, tasks: mtl.squared_loss(W, tasks) + 3 * mtl.l21_norm(W)),
    "newton": ("newton_by_passes", lambda W, tasks: mtl.logistic_loss(W, tasks) + 0.3 * mtl.trace_norm(W)),
    "majorization": ("majorization", lambda W, tasks: mtl.logistic_loss(W, tasks) + 2 * mtl.l21_norm(W)),
    "multipliers": ("newton_by_passes", lambda W, tasks: mtl.hinge_loss(W, tasks) + 2 * mtl.l21_norm(W)),
}


def part(k, labels):
    time.sleep(0.02)  # so that there is a time for it to die
    rows = slice(40 * k, 40 * k + 40)
    return X[rows], (Y if labels == "real" else np.sign(Y))[rows]


def solve(name, keep, before_pass=lambda run: None):
    solver, objective = MODELS[name]
    labels = "real" if name == "squares" else "sign"
    tasks = of_loaders([dask.delayed(part)(k, labels) for k in range(5)], keep=keep)
    parts, run = tasks.parts, tasks.parts.run

    def counted(*typed, **named):
        before_pass(parts.passes)
        return run(*typed, **named)

    parts.run = counted
    W = mtl.Weights(tasks)
    return mtl.minimize(objective(W, tasks)).solve(solver, tol=1e-6)


@contextmanager
def killer(cluster, rng):
    """kill(): a random worker that lives, after a random time."""
    killed, timers = [], []
    allowed, cluster.scheduler.allowed_failures = cluster.scheduler.allowed_failures, 100  # it is we who kill

    def now():
        there = [
            nanny for nanny in cluster.workers.values() if nanny.worker_address in cluster.scheduler.workers
        ]
        ids = [nanny.process.pid for nanny in there if nanny.process.status.name == "running"]
        if ids:
            with suppress(ProcessLookupError):
                os.kill(int(rng.choice(ids)), signal.SIGKILL)
                killed.append(True)

    def kill():
        timers.append(threading.Timer(0.3 * rng.random(), now))
        timers[-1].start()

    # a LocalCluster gives a worker up that it finds missing 15 seconds after a death, be it for another one
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}):
        yield kill, killed
        for timer in timers:
            timer.join()
    cluster.scheduler.allowed_failures = allowed


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("name", "keep"),
    [("squares", True), ("newton", False), ("majorization", True), ("multipliers", False)],
)
def test_kills_change_no_bit(two_processes, client_of_processes, name, keep):
    wanted = solve(name, keep)
    assert wanted.status == "optimal"
    rng = np.random.default_rng(0)
    with killer(two_processes, rng) as (kill, killed):
        for _ in range(KILLS):  # as many solves as it takes
            found = solve(
                name,
                keep,
                lambda k: kill() if (rng.random() < 0.3 and len(killed) < KILLS) or k <= 1 else None,
            )
            assert found.W.tobytes() == wanted.W.tobytes()
            assert found.status == "optimal" and found.gap == wanted.gap
            if len(killed) >= KILLS:
                break
    assert len(killed) >= KILLS // 2


@pytest.mark.cluster
def test_a_worker_that_is_killed_while_it_starts():
    """Dask's nanny gives it up, and the rest does the work."""
    options = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "processes": True}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster,
        distributed.Client(cluster),
    ):
        killed_while_it_starts(cluster)


def killed_while_it_starts(cluster):
    wanted = solve("multipliers", True)
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

    assert solve("multipliers", True, kill).W.tobytes() == wanted.W.tobytes()


@pytest.mark.slow
def test_a_file_that_is_rewritten_while_it_is_solved_is_named(client, tmp_path):
    parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")

    def write(k, Y):
        rows = slice(100 * k, 100 * k + 100)
        table = {f"x{j}": X[rows, j] for j in range(5)} | {"y": np.sign(Y[rows, 0])}
        parquet.write_table(pyarrow.table(table), tmp_path / f"{k}.parquet")

    for k in range(2):
        write(k, Y)
    tasks = mtl.datasets.scan(tmp_path, labels="y", keep=False)
    parts, run = tasks.parts, tasks.parts.run

    def changing(*typed, **named):
        if parts.passes == 5:
            write(1, -Y)
        return run(*typed, **named)

    parts.run = changing
    W = mtl.Weights(tasks)
    with pytest.raises(DataError, match=r"^1.parquet: its numbers are not those of the first pass"):
        mtl.minimize(mtl.hinge_loss(W, tasks) + mtl.ridge(W)).solve()
