"""`cvxpy.Problem.solve` for Clarabel, SCS and OSQP, with the backend in a process that can be stopped."""

from __future__ import annotations

import atexit
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from weakref import WeakKeyDictionary

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.reductions.solvers.conic_solvers.scs_conif import dims_to_solver_dict

from mtldsl.utils import interrupts

# --------------------------------------------------------------------------------------------------------------
# cvxpy's backends in a process of their own, so that Ctrl-C and a time limit are heard while they run.
#
# cvxpy states the cone program and reads the solution here; only the backend's own work is done there. The process is kept for the next
# solve, and killed where one is not waited for.


@dataclass(frozen=True)
class BackendSettings:
    """Limits of the processes that solve."""

    # time after which a backend that looks at its own clock, between long iterations, is killed
    grace_seconds: float = 0.4
    idle_processes: int = 2  # idle processes that are kept: solves in several threads have one each
    # part of the time that is left for the way back and for the certificate of that point
    proof_share: float = 0.1


SETTINGS = BackendSettings()


class ProcessDied(Exception):
    """Its text says how."""


class _BackendProcess:
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

    def ask(self, request: tuple, seconds: float | None) -> tuple[str, object]:
        """(kind, answer); queue.Empty after so many seconds. A thread has the exchange, which may block for ever, so that the one who
        waits for it hears signals.
        """
        threading.Thread(target=self._exchange, args=[request], daemon=True).start()
        return self.answers.get(timeout=seconds)

    def _exchange(self, request: tuple) -> None:
        try:
            if self.greeting is not None:
                pickle.dump(self.greeting, self.process.stdin)
                self.greeting = None
            pickle.dump(request, self.process.stdin, protocol=pickle.HIGHEST_PROTOCOL)
            self.process.stdin.flush()
            self.answers.put(pickle.load(self.process.stdout))
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            self.answers.put(("died", None))

    def end(self) -> int:
        """Its exit code, where it had ended by itself."""
        self.process.kill()
        code = self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError, ValueError):  # what was on its way is lost with it
                pipe.close()
        return code


_idle: list[_BackendProcess] = []


def ask(backend: str, request: dict, seconds: float) -> object:
    """Return what the function of that name in `backend_worker` returns for these arguments.

    queue.Empty where it takes longer than `seconds` and a little; ProcessDied where the process is no more; RuntimeError with its
    text for an error there.
    """
    process = _idle.pop() if _idle else _BackendProcess()
    try:
        kind, answer = process.ask(
            (backend, request),
            None if seconds == float("inf") else max(seconds, 0.0) + SETTINGS.grace_seconds,
        )
        if kind == "died":
            process.process.wait()  # it is about to end
            raise ProcessDied(_of_death(backend, process.process.returncode))
    except BaseException:
        process.end()
        raise
    if len(_idle) < SETTINGS.idle_processes:
        _idle.append(process)
    else:
        process.end()
    if kind == "failed":
        raise RuntimeError(answer)
    return answer


def _of_death(backend: str, code: int) -> str:
    if code == -signal.SIGKILL:
        return f"the process of {backend} was killed, as a system does when memory runs out; solve on less data, or with another backend"
    how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
    return f"the process of {backend} ended {how}"


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

#: What a backend calls its own time limit: it comes back with the point that it has.
TIME_LIMITS = {"CLARABEL": "time_limit", "SCS": "time_limit_secs", "OSQP": "time_limit"}


#: Where a problem's last solve ended, for backends that can go on from there.
_ends: WeakKeyDictionary = WeakKeyDictionary()


def solve(problem: cp.Problem, *, solver: str, **options) -> None:
    """`problem.solve(solver=solver, ignore_dpp=True, **options)`, with the options of the backend.

    It ends at the time limit of `mtldsl.utils.interrupts` too: with the backend's point, or else with TimeIsUp. Raises cvxpy's SolverError where
    the backend fails, and where its process dies.
    """
    data, chain, inverse = problem.get_problem_data(solver, ignore_dpp=True, solver_opts=options)
    seconds, name = interrupts.remaining_seconds(), chain.solver.name()
    if name not in REQUESTS:  # nothing is unknown: cvxpy evaluates it
        problem.unpack_results(chain.solve_via_data(problem, data, solver_opts={}), chain, inverse)
        return
    if seconds <= 0.0:
        raise interrupts.TimeIsUp
    request = REQUESTS[name](data, options) | {"start": _ends.get(problem, {}).get(name)}
    if np.isfinite(seconds):  # as a point in time, which is the same in all processes: there is a way to go
        request["ends"] = TIME_LIMITS[name], time.monotonic() + (1.0 - SETTINGS.proof_share) * seconds
    try:
        raw = ask(name, request, seconds)
    except queue.Empty:
        raise interrupts.TimeIsUp from None
    except (ProcessDied, RuntimeError) as error:
        raise cp.error.SolverError(str(error)) from error
    problem.unpack_results(raw if name == "SCS" else SimpleNamespace(**raw), chain, inverse)
    if problem.status == cp.OPTIMAL:
        _ends[problem] = {name: {key: np.asarray(raw[key]) for key in "xys" if key in raw}}


def solve_accurately(
    problem: cp.Problem, run: Callable, accuracies: Iterable[float] = (1e-11, 1e-9, 1e-7)
) -> None:
    """Solve by Clarabel, to the first of these accuracies that it reaches, else the last that it has: the caller knows how good it is.

    run : `solve`, or cvxpy's own, which no time limit ends
    The solver's error where it has no point at all.
    """
    failed = None
    for accuracy in accuracies:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the last digits it is not sure
            try:
                run(problem, solver="CLARABEL", tol_gap_abs=accuracy, tol_gap_rel=accuracy, tol_feas=accuracy)
            except cp.error.SolverError as error:
                failed = error
        if problem.status == cp.OPTIMAL:
            return
    if problem.value is None and failed is not None:
        raise failed


def _of_clarabel(data: dict, options: dict) -> dict:
    dims, q = data["dims"], data["c"]
    cones = [("ZeroConeT", dims.zero)] if dims.zero else []
    cones += [("NonnegativeConeT", dims.nonneg)] if dims.nonneg else []
    cones += [("SecondOrderConeT", n) for n in dims.soc]
    cones += [("PSDTriangleConeT", n) for n in dims.psd]
    cones += [("ExponentialConeT",)] * dims.exp
    cones += [("PowerConeT", power) for power in dims.p3d]
    P = data["P"] if "P" in data else sp.csc_array((q.size, q.size))
    program = {"P": sp.triu(P).tocsc(), "q": q, "A": data["A"], "b": data["b"]}
    return program | {"cones": cones, "options": {"verbose": False} | options}


def _of_scs(data: dict, options: dict) -> dict:
    program = {"A": data["A"], "b": data["b"], "c": data["c"]} | ({"P": data["P"]} if "P" in data else {})
    cones = dims_to_solver_dict(data["dims"])
    return {"program": program, "cones": cones, "options": {"verbose": False} | options}


def _of_osqp(data: dict, options: dict) -> dict:
    upper = np.concatenate([data["b"], data["G"]])
    lower = np.concatenate([data["b"], np.full(data["G"].shape, -np.inf)])
    A = sp.csc_matrix(sp.vstack([data["A"], data["F"]]))
    program = {"P": sp.csc_matrix(data["P"]), "q": data["q"], "A": A, "l": lower, "u": upper}
    return program | {"options": {"verbose": False} | options}


#: backend -> its arguments in `backend_worker`, as cvxpy hands them to it
REQUESTS = {"CLARABEL": _of_clarabel, "SCS": _of_scs, "OSQP": _of_osqp}
