"""The process in which cvxpy's backends run, because nothing stops them inside of their own loops: it is killed from outside.

Run by its path, so that it imports a backend, numpy and scipy and nothing else. On stdin comes where to import from, then requests (the
name of a backend, the arguments of its function below), on stdout go ("solved", what cvxpy reads of a solution) or ("failed", why).
"""

import os
import pickle
import sys
import threading
import time
from types import SimpleNamespace


def clarabel(P, q, A, b, cones, options, start):
    import clarabel as backend

    settings = backend.DefaultSettings()
    for name, value in options.items():
        setattr(settings, name, value)
    cones = [getattr(backend, kind)(*size) for kind, *size in cones]
    found = backend.DefaultSolver(P, q, A, b, cones, settings).solve()
    return _plain(found, "x", "z", "obj_val", "solve_time", "iterations") | {"status": str(found.status)}


def scs(program, cones, options, start):
    import scs as backend

    return backend.solve(program | (start or {}), cones, **options)


def osqp(P, q, A, l, u, options, start):
    import osqp as backend

    solver = backend.OSQP()
    solver.setup(P, q, A, l, u, **options)
    if start is not None:
        solver.warm_start(start["x"], start["y"])
    found = solver.solve(raise_error=False)
    info = _plain(found.info, "run_time", "status_val", "obj_val", "iter")
    # OSQP 1.0 has the proof of infeasibility only where there is one
    proof = ["prim_inf_cert"] if hasattr(found, "prim_inf_cert") else []
    return _plain(found, "x", "y", *proof) | {"info": SimpleNamespace(**info)}


SOLVE = {"CLARABEL": clarabel, "SCS": scs, "OSQP": osqp}


def solve(name: str, ends: tuple[str, float] | None = None, **arguments):
    """`ends`: what the backend calls its time limit, and until when it may run by `time.monotonic()`."""
    if ends is not None:
        limit, until = ends
        most = arguments["options"].get(limit, float("inf"))
        arguments["options"][limit] = min(most, max(until - time.monotonic(), 1e-3))
    return SOLVE[name](**arguments)


def _plain(found, *names) -> dict:
    """Return what an object has by these names: the object itself cannot be pickled."""
    import numpy as np

    values = {name: getattr(found, name) for name in names}
    return {name: np.asarray(v) if hasattr(v, "__len__") else v for name, v in values.items()}


def _leave_with(parent: int) -> None:
    """An orphan has nobody to answer. A backend that holds the interpreter's lock delays this to its next iteration."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def main() -> None:
    threading.Thread(target=_leave_with, args=[os.getppid()], daemon=True).start()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a backend prints is not an answer
    try:
        sys.path[:] = pickle.load(sys.stdin.buffer)
        while True:
            name, arguments = pickle.load(sys.stdin.buffer)
            try:
                answer = "solved", solve(name, **arguments)
            except BaseException as error:  # a panic of Clarabel's is not an Exception
                answer = "failed", f"{type(error).__name__}: {error}"
            pickle.dump(answer, answers, protocol=pickle.HIGHEST_PROTOCOL)
            answers.flush()
    except EOFError:  # nobody asks any more
        return


if __name__ == "__main__":
    main()
