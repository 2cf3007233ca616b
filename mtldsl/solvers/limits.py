"""How exactly and how long to solve, as typed into `solve`."""

from __future__ import annotations

import os
from math import inf

from mtldsl.errors import SolverError
from mtldsl.values.number import as_float, as_whole, quoted
from mtldsl.values.option import as_flag

__all__ = ["checked_jobs", "checked_limits"]


def checked_jobs(n_jobs) -> int | None:
    """How many threads, -1 being one a core; None where nobody said. SolverError for everything else."""
    if n_jobs is None:
        return None
    whole = as_whole(n_jobs)
    if whole is None or (whole < 1 and whole != -1):
        raise SolverError(
            term=f"solve(n_jobs={quoted(n_jobs)})",
            write_instead="write a positive whole number of threads, -1 for one a core, or None",
        )
    return (os.cpu_count() or 1) if whole == -1 else whole


def checked_limits(tol, max_iter, max_seconds, verbose) -> tuple[float, int | None, float | None, bool]:
    """The four, as Python's own types; SolverError where one of them cannot be meant."""
    gap, seconds, iterations = as_float(tol), as_float(max_seconds), as_whole(max_iter)
    if gap is None or not 0 < gap < 1:
        raise SolverError(
            "tol is a relative gap between 0 and 1, such as 1e-6", term=f"solve(tol={quoted(tol)})"
        )
    if max_iter is not None and (iterations is None or iterations < 1):
        raise SolverError(
            term=f"solve(max_iter={quoted(max_iter)})", write_instead="write a positive whole number, or None"
        )
    if max_seconds is not None and not 0 < (seconds or 0) <= inf:
        raise SolverError(
            term=f"solve(max_seconds={quoted(max_seconds)})",
            write_instead="write a positive number of seconds, or None",
        )
    seconds = None if seconds is not None and seconds > 1e9 else seconds  # longer than a life
    return gap, iterations, seconds, as_flag(verbose, "solve(verbose", SolverError)
