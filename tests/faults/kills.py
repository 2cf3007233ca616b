"""kill -9 at random moments while files are written: `python -m tests.faults.kills FOLDER N SEED` kills N times for each kind of file.

Afterwards the old file or the new one must be there, whole, its lock free, and the same call must bring the work to its end. Prints how many kills
found the process at work.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

import mtldsl as mtl
from mtldsl.errors import DataError
from mtldsl.solvers.sdca.sdca import Checkpoint
from mtldsl.utils.files import atomic_file, remove_leftovers, sole_use


def killed(work, wait: float, at_work: Path) -> bool:
    """Run work() in a child process that is killed after `wait` seconds of it. Whether it was still at work."""
    child = os.fork()
    if child == 0:
        try:
            at_work.touch()
            work()
        finally:
            os._exit(0)
    while not at_work.exists():
        time.sleep(0.0005)
    time.sleep(wait)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    at_work.unlink()
    return os.WIFSIGNALED(status)


def solutions():
    """Two solutions of the same kind, large enough for a file of several blocks."""
    rng = np.random.default_rng(0)
    tasks = mtl.Tasks.shared(rng.normal(size=(30, 400)), rng.normal(size=(30, 50)))
    W = mtl.Weights(tasks)
    return [mtl.minimize(mtl.squared_loss(W, tasks) + c * mtl.ridge(W)).solve() for c in (1.0, 2.0)]


def of_save(folder: Path):
    both, path = solutions(), folder / "solution.npz"
    both[0].save(path)

    def work():
        while True:
            for solution in both[::-1]:
                solution.save(path)

    def check():
        found = mtl.Solution.load(path)
        assert any(np.array_equal(found.W, one.W) and found.objective == one.objective for one in both)
        remove_leftovers(path)

    return work, check, 0.08


def of_text(folder: Path):
    path, texts = folder / "report.html", [letter * 300_000 for letter in "ab"]
    path.write_text(texts[0])

    def work():
        while True:
            for text in texts:
                with atomic_file(path) as file:
                    file.write(text.encode())

    def check():
        assert path.read_text() in texts
        remove_leftovers(path)

    return work, check, 0.02


def of_checkpoint(folder: Path):
    path, identity = folder / "run.npz", {"model": "m"}
    with Checkpoint(path, identity) as file:
        assert file.write({"u": np.zeros(50_000)}, now=True)

    def work():
        with Checkpoint(path, identity) as file:
            for k in range(10**6):
                file.write({"u": np.full(50_000, float(k))}, now=True)

    def check():
        with Checkpoint(path, identity) as file:  # the lock of a process that is dead is free
            u = file.read({"u": np.zeros(50_000)})["u"]
        assert (u == u[0]).all()
        assert sorted(found.name for found in folder.iterdir()) == ["run.npz"]  # leftovers are removed

    return work, check, 0.03


def of_store(folder: Path):
    rng, number = np.random.default_rng(0), [0]
    parts = folder / "parts"
    parts.mkdir()
    for k in range(4):
        X, y = rng.normal(size=(300, 20)), rng.normal(size=300)
        np.savez(parts / f"{k}.npz", X=X, y=y, task=rng.integers(0, 9, 300))
    mtl.datasets.store(parts, folder / "first")  # what is imported and compiled comes with it
    started = time.perf_counter()
    whole = mtl.datasets.store(parts, folder / "whole").fingerprint()
    span = time.perf_counter() - started

    def work():
        mtl.datasets.store(parts, folder / f"result{number[0]}")

    def check():
        result = folder / f"result{number[0]}"
        try:
            assert mtl.datasets.stored(result, check=True).fingerprint() == whole
            number[0] += 1
        except DataError as error:  # not finished: it says so, and the next round goes on with this folder
            assert any(words in str(error) for words in ("interrupted", "no such folder")), error
        if number[0] % 5 == 4:  # by now and then to the end, from wherever it is
            assert mtl.datasets.store(parts, result).fingerprint() == whole
            number[0] += 1
        with sole_use(result, AssertionError("the lock of a process that is dead is free")):
            pass

    return work, check, span


#: kind -> what is written, how it is checked, and the seconds in which most of it happens
KINDS = {"save": of_save, "report": of_text, "checkpoint": of_checkpoint, "store": of_store}


def main(folder: str, n: str, seed: str) -> None:
    rng = random.Random(int(seed))
    for kind, make in KINDS.items():
        here = Path(folder) / kind
        here.mkdir()
        work, check, span = make(here)
        found = tried = 0
        while tried < int(n) or (
            not found and tried < int(n) + 20
        ):  # on a busy machine the first may come too soon or too late
            found += killed(work, rng.uniform(0, span), Path(folder) / "at_work")
            check()
            tried += 1
        print(f"{kind}: {found} of {tried} killed at work")
        assert found


if __name__ == "__main__":
    main(*sys.argv[1:])
