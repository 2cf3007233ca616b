"""`cvxpy.Problem.solve` for Clarabel, SCS and OSQP, with the backend in a process that can be stopped."""

from __future__ import annotations

import queue
import time
from types import SimpleNamespace
from weakref import WeakKeyDictionary

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.reductions.solvers.conic_solvers.scs_conif import dims_to_solver_dict

from mtldsl.system import stops

from .backend_process import ProcessDied, ask

__all__ = ["solve"]

#: What a backend calls its own time limit: it comes back with the point that it has.
TIME_LIMITS = {"CLARABEL": "time_limit", "SCS": "time_limit_secs", "OSQP": "time_limit"}

#: The share of the time that is left for the way back and for the certificate of that point.
FOR_THE_PROOF = 0.1

#: Where a problem's last solve ended, for backends that can go on from there.
_ends: WeakKeyDictionary = WeakKeyDictionary()


def solve(problem: cp.Problem, *, solver: str, **options) -> None:
    """`problem.solve(solver=solver, ignore_dpp=True, **options)`, with the options of the backend.

    It ends at the time limit of `mtldsl.system.stops` too: with the backend's point, or else with TimeIsUp. Raises cvxpy's SolverError where
    the backend fails, and where its process dies.
    """
    data, chain, inverse = problem.get_problem_data(solver, ignore_dpp=True, solver_opts=options)
    seconds, name = stops.remaining(), chain.solver.name()
    if name not in REQUESTS:  # nothing is unknown: cvxpy evaluates it
        problem.unpack_results(chain.solve_via_data(problem, data, solver_opts={}), chain, inverse)
        return
    if seconds <= 0.0:
        raise stops.TimeIsUp
    request = REQUESTS[name](data, options) | {"start": _ends.get(problem, {}).get(name)}
    if np.isfinite(seconds):  # as a point in time, which is the same in all processes: there is a way to go
        request["ends"] = TIME_LIMITS[name], time.monotonic() + (1.0 - FOR_THE_PROOF) * seconds
    try:
        raw = ask(name, request, seconds)
    except queue.Empty:
        raise stops.TimeIsUp from None
    except (ProcessDied, RuntimeError) as error:
        raise cp.error.SolverError(str(error)) from error
    problem.unpack_results(raw if name == "SCS" else SimpleNamespace(**raw), chain, inverse)
    if problem.status == cp.OPTIMAL:
        _ends[problem] = {name: {key: np.asarray(raw[key]) for key in "xys" if key in raw}}


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
