"""cvxpy's backends in a process of their own, so that Ctrl-C and a time limit are heard while they run.

cvxpy states the cone program and reads the solution here; only the backend's own work is done there. The process is kept for the next
solve, and killed where one is not waited for.
"""

from __future__ import annotations

import atexit
import logging
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.reductions.solvers.conic_solvers.scs_conif import dims_to_solver_dict

__all__ = ["TIME_LIMITS", "TimeIsUp", "run_apart"]

log = logging.getLogger("mtldsl")

#: What a backend calls its own time limit: it comes back with the point that it has.
TIME_LIMITS = {"CLARABEL": "time_limit", "SCS": "time_limit_secs", "OSQP": "time_limit"}

#: A backend looks at its clock between iterations, which may be long: after so many seconds more it is killed.
GRACE = 0.3

#: Idle processes that are kept: solves in several threads have one each.
MOST_IDLE = 2


class TimeIsUp(Exception):
    """The backend was killed at its time limit, and has left no point."""


def run_apart(problem: cp.Problem, *, solver: str, seconds: float = np.inf, ignore_dpp=True, **options):
    """`problem.solve(solver=..., **options)` for "CLARABEL", "SCS" or "OSQP", in a process that can be stopped.

    TimeIsUp after so many seconds; cvxpy's SolverError where the backend fails, and where its process dies.
    """
    data, chain, inverse = problem.get_problem_data(solver, ignore_dpp=ignore_dpp, solver_opts=options)
    name = chain.solver.name()
    if np.isfinite(seconds):
        limit = TIME_LIMITS[solver]
        options = options | {limit: min(seconds, options.get(limit, np.inf))}
    if name not in REQUESTS:  # nothing is unknown: cvxpy evaluates constants itself
        raw = chain.solve_via_data(problem, data, solver_opts={})
    else:
        raw = _answer(name, REQUESTS[name](data, options), seconds)
    problem.unpack_results(raw if name == "SCS" else SimpleNamespace(**raw) if isinstance(raw, dict) else raw, chain, inverse)


# ------------------------------------------------------------------------------- what a backend is asked, as cvxpy asks it


def _of_clarabel(data: dict, options: dict) -> dict:
    dims, q = data["dims"], data["c"]
    cones = [("ZeroConeT", dims.zero)] if dims.zero else []
    cones += [("NonnegativeConeT", dims.nonneg)] if dims.nonneg else []
    cones += [("SecondOrderConeT", n) for n in dims.soc]
    cones += [("PSDTriangleConeT", n) for n in dims.psd]
    cones += [("ExponentialConeT",)] * dims.exp
    cones += [("PowerConeT", power) for power in dims.p3d]
    P = data["P"] if "P" in data else sp.csc_array((q.size, q.size))
    return {"P": P, "q": q, "A": data["A"], "b": data["b"], "cones": cones, "options": {"verbose": False} | options}


def _of_scs(data: dict, options: dict) -> dict:
    given = {"A": data["A"], "b": data["b"], "c": data["c"]} | ({"P": data["P"]} if "P" in data else {})
    return {"data": given, "cones": dims_to_solver_dict(data["dims"]), "options": {"verbose": False} | options}


def _of_osqp(data: dict, options: dict) -> dict:
    A = sp.csc_matrix(sp.vstack([data["A"], data["F"]]))
    upper = np.concatenate([data["b"], data["G"]])
    lower = np.concatenate([data["b"], np.full(data["G"].shape, -np.inf)])
    P = sp.csc_matrix(data["P"])
    return {"P": P, "q": data["q"], "A": A, "l": lower, "u": upper, "options": {"verbose": False} | options}


REQUESTS = {"CLARABEL": _of_clarabel, "SCS": _of_scs, "OSQP": _of_osqp}


# ------------------------------------------------------------------------------------------------------ the process


class _Process:
    def __init__(self):
        self.process = subprocess.Popen(
            # -P: the worker's own folder, whose files have everyday names, stays off the path
            [sys.executable, "-P", str(Path(__file__).with_name("backend_worker.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # a terminal's Ctrl-C is for the process that waits
        )
        self.answers: queue.SimpleQueue = queue.SimpleQueue()
        self.greeting: list | None = list(sys.path)

    def ask(self, request: tuple, seconds: float) -> tuple[str, object]:
        """(kind, answer). The exchange is a thread's: it may block for ever, where the one that waits for it hears signals."""
        threading.Thread(target=self._exchange, args=[request], daemon=True).start()
        try:
            return self.answers.get(timeout=None if np.isinf(seconds) else max(seconds, 0.0) + GRACE)
        except queue.Empty:
            raise TimeIsUp from None

    def _exchange(self, request: tuple) -> None:
        try:
            if self.greeting is not None:
                pickle.dump(self.greeting, self.process.stdin)
                self.greeting = None
            pickle.dump(request, self.process.stdin, protocol=pickle.HIGHEST_PROTOCOL)
            self.process.stdin.flush()
            self.answers.put(pickle.load(self.process.stdout))
        except (OSError, EOFError, pickle.UnpicklingError, ValueError):
            self.answers.put(("died", None))

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                pipe.close()
            except (OSError, ValueError):  # what was not yet read there
                pass


_idle: list[_Process] = []


def _answer(name: str, request: dict, seconds: float):
    process = _idle.pop() if _idle else _Process()
    try:
        kind, answer = process.ask((name, {"warm_start": None} | request), seconds)
    except BaseException:
        process.end()
        raise
    if kind == "died":
        process.process.wait()
        code = process.process.returncode
        process.end()
        raise cp.error.SolverError(_of_death(name, code))
    if len(_idle) < MOST_IDLE:
        _idle.append(process)
    else:
        process.end()
    if kind == "failed":
        raise cp.error.SolverError(str(answer))
    return answer


def _of_death(name: str, code: int) -> str:
    if code == -signal.SIGKILL:
        return f"the process of {name} was killed, as a system does that has run out of memory; solve it on less data"
    how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
    return f"the process of {name} ended {how}"


@atexit.register
def _end_all() -> None:
    while _idle:
        _idle.pop().end()


def _forget() -> None:
    """In a fork: they are the other process's."""
    for one in _idle:
        one.process.returncode = 0
    _idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
