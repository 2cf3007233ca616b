"""The process that measures: a line of JSON in is a problem to do, lines of JSON out are rows. What breaks it breaks nothing else."""

from __future__ import annotations

import json
import os
import sys

__all__ = ["main"]

_GIGABYTES = 10


def main(data_folder: str) -> None:
    """Serve until the input ends."""
    _bound_memory()
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # solvers in other languages print there
    from .measure import Plan, measure
    from .problems import problems

    every = {
        problem.id: problem for problem in problems(data_folder)
    }  # which files are left out was said already
    for line in sys.stdin:
        asked = json.loads(line)
        plan = Plan(
            limit=asked["limit"],
            patience=asked["patience"],
            tolerances=tuple(asked["tolerances"]),
            routes=tuple(asked["routes"]),
            done=frozenset(map(tuple, asked["done"])),
        )
        try:
            for row in measure(every[asked["problem"]], plan, asked["before"]):
                out.write(json.dumps(row) + "\n")
        except Exception as error:
            out.write(json.dumps({"failed": f"{type(error).__name__}: {error}"}) + "\n")
        out.write('{"ended": true}\n')


def _bound_memory() -> None:
    """A cone program of a large problem ends with a MemoryError here, not with the machine."""
    try:
        import resource
    except ImportError:
        return
    most = int(_GIGABYTES * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))
