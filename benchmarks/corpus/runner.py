"""Many problems at a time, each in a process that may hang, crash or be ended; what is done is not done again."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from . import rows
from .problems import Problem
from .processes import cpu_of, end_children

__all__ = ["Settings", "run"]

_ONE_THREAD = {
    name: "1"
    for name in (
        "OPENBLAS_NUM_THREADS",
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMBA_NUM_THREADS",
        "RAYON_NUM_THREADS",
    )
}
_HERE = Path(__file__).resolve().parent


@dataclass
class Settings:
    """What the command line says of a run. `seconds`: no new problem is begun after that, and those at work are ended `grace` later."""

    rows: Path
    jobs: int = 1
    limit: float = 60.0
    patience: float = 30.0
    tolerances: tuple[float, ...] = (1e-3, 1e-4, 1e-6)
    routes: tuple[str, ...] = ()
    data: str = ""
    seconds: float = float("inf")
    grace: float = 30.0
    known: list[dict] = field(default_factory=list)


class _Worker:
    """A measuring process and the lines that it writes."""

    def __init__(self, settings: Settings):
        environment = {**os.environ, **_ONE_THREAD, "PYTHONWARNINGS": "ignore"}
        self.process = subprocess.Popen(
            [sys.executable, str(_HERE), "--worker", settings.data],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment,
        )  # fmt: skip
        self._lines: deque[bytes] = deque()
        self._rest = b""
        self.problems = 0

    def ask(self, message: dict) -> None:
        self.problems += 1
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def line(self, patience: float) -> dict | None:
        """The next line; None where none came in so many seconds. EOFError where the process has ended."""
        end = time.monotonic() + patience
        while not self._lines:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                return None
            found = os.read(self.process.stdout.fileno(), 1 << 16)
            if not found:
                raise EOFError
            *whole, self._rest = (self._rest + found).split(b"\n")
            self._lines.extend(whole)
        return json.loads(self._lines.popleft())

    def cpu(self) -> float:
        return cpu_of(self.process.pid)

    def end(self) -> None:
        end_children(self.process.pid)
        with contextlib.suppress(OSError):
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()


class _Run:
    """What the threads share: the queue, the file of rows, and the clock."""

    def __init__(self, settings: Settings, queue: list[Problem]):
        self.settings, self.queue, self.total = settings, deque(queue), len(queue)
        self.lock, self.began, self.written, self.finished = threading.Lock(), time.monotonic(), 0, 0
        self.stopped = False
        self.before: dict[str, list[dict]] = {}
        for row in settings.known:
            if row["machine"] == rows.machine():
                self.before.setdefault(row["problem"], []).append(row)

    @property
    def left(self) -> float:
        return -1.0 if self.stopped else self.settings.seconds - (time.monotonic() - self.began)

    def next(self) -> Problem | None:
        with self.lock:
            return self.queue.popleft() if self.queue and self.left > 0 else None

    def keep(self, row: dict) -> None:
        row["machine"] = rows.machine()
        if not row.get("limit"):
            row["limit"] = self.settings.limit
        with self.lock:
            rows.append(self.settings.rows, [row])
            self.before.setdefault(row["problem"], []).append({**row})
            self.written += 1
            known = f"{row['seconds']:.3g} s" if row.get("seconds") == row.get("seconds") else ""
            print(
                f"[{time.monotonic() - self.began:5.0f} s  {self.finished}/{self.total} problems, {self.written} rows] "
                f"{row['problem']}  {row['route']} {row['tol']:g}: {row['status']} {known}",
                flush=True,
            )


def run(settings: Settings, queue: list[Problem]) -> None:
    """Measure what is not in the rows yet. Ctrl-C leaves whole rows."""
    shared = _Run(settings, queue)
    threads = [threading.Thread(target=_serve, args=(shared,), daemon=True) for _ in range(settings.jobs)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            while thread.is_alive():
                thread.join(0.5)
    except KeyboardInterrupt:
        shared.stopped = True
        for thread in threads:
            thread.join(10)
        print("ended by hand; the rows so far are kept", flush=True)


def _serve(shared: _Run) -> None:
    worker = None
    try:
        while (problem := shared.next()) is not None:
            if (
                worker is not None and worker.problems >= 40
            ):  # memory that a long life has gathered stays out of it
                worker.end()
                worker = None
            worker = _problem(shared, worker, problem)
            with shared.lock:
                shared.finished += 1
    finally:
        if worker is not None:
            worker.end()


def _problem(shared: _Run, worker: _Worker | None, problem: Problem) -> _Worker | None:
    """Ask until the worker says that the problem is done; after a worker was ended, the next one goes on behind what it was at."""
    given_up: set[tuple] = set()
    for _ in range(8):
        worker = worker or _Worker(shared.settings)
        worker.ask(_message(shared, problem, given_up))
        at: dict | None = None
        started_cpu, started = worker.cpu(), time.monotonic()
        try:
            while True:
                line = worker.line(1.0)
                if line is None:
                    if shared.left < -shared.settings.grace or shared.stopped:
                        worker.end()
                        return None
                    if at is not None and _too_long(worker, at, started_cpu, started):
                        raise TimeoutError
                elif "begins" in line:
                    at, started_cpu, started = line, worker.cpu(), time.monotonic()
                elif "ended" in line:
                    return worker
                elif "failed" in line:
                    print(f"{problem.id} failed: {line['failed']}", flush=True)
                    return worker
                else:
                    shared.keep(line)
        except (EOFError, TimeoutError, OSError) as error:
            worker.end()
            worker = None
            if at is None or at["begins"] == "loading":
                print(f"{problem.id} could not be loaded in time", flush=True)
                return None
            status = "killed" if isinstance(error, TimeoutError) else "crashed"
            _give_up(shared, problem, at, status, given_up)
    return worker


def _too_long(worker: _Worker, at: dict, started_cpu: float, started: float) -> bool:
    """Whether a measurement has taken more than a solver that listens would; wall time where it only waits."""
    allowed = 1.5 * at["allowance"] + 20.0
    return worker.cpu() - started_cpu > allowed or time.monotonic() - started > 6 * allowed


def _give_up(shared: _Run, problem: Problem, at: dict, status: str, given_up: set) -> None:
    """Rows for what a worker was ended at, and for the tighter tolerances of the same route."""
    nan = float("nan")
    for tol in [t for t in shared.settings.tolerances if t <= at["tol"]] or [at["tol"]]:
        own = at["kind"] in ("own", "optimum")
        version = rows.package_version() if own else at.get("version", "")
        given_up.add((at["begins"], f"{tol:g}", version))
        shared.keep(
            {
                "problem": problem.id, "route": at["begins"], "kind": at["kind"], "tol": tol, "status": status, "seconds": nan,
                "objective": nan, "bound": nan, "violation": nan, "version": version, "limit": at["allowance"],
            }
        )  # fmt: skip


def _message(shared: _Run, problem: Problem, given_up: set) -> dict:
    settings = shared.settings
    with shared.lock:
        before = list(shared.before.get(problem.id, []))
    done = {(r["route"], f"{r['tol']:g}", r["version"]) for r in before} | given_up
    return {
        "problem": problem.id, "limit": settings.limit, "patience": settings.patience, "tolerances": list(settings.tolerances),
        "routes": list(settings.routes), "done": [list(key) for key in done],
        "before": [{k: r.get(k) for k in ("status", "tol", "seconds", "kind", "violation", "objective", "bound")} for r in before],
    }  # fmt: skip
