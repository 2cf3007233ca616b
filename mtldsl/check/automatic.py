"""The cross-check that a solve makes by itself: `solve(cross_check=...)`, and what `mtl.defaults` says where that is not given."""

from __future__ import annotations

from mtldsl.errors import CrossCheckError, MTLError
from mtldsl.solution.solution import Solution
from mtldsl.system import stops
from mtldsl.system.defaults import default_cross_check

__all__ = ["attach"]

#: Scalars of input data, as the workload counts them, that are compared by "subsample": some seconds at most.
SUBSAMPLE = 100_000

_TIME = "the time was up"


def attach(problem, solution: Solution, asked: bool | str | None, max_seconds: float | None) -> None:
    """Sets `solution.cross_check`: what the comparison found, or a sentence why there is none.

    asked       : as typed in `solve(cross_check=...)`; None: the default, which leaves alone what is large or beyond the reference
    max_seconds : of the whole solve: the check has what is left of them

    Raises CrossCheckError on disagreement, and, where the check was asked for in the call, what `cross_check` raises of a model that it
    cannot compare. The error has the solution as `.solution`, so that nothing is lost.
    """
    how = default_cross_check() if asked is None else asked
    if how == "never":
        return
    left = None if max_seconds is None else max_seconds - solution.seconds - solution.compile_seconds
    try:
        found = _why_not(solution, left)
        if found is None and asked is None and how is True:
            found = _too_large(problem, solution)
        if found is None:
            found = _compared(problem, solution, how, left)
    except MTLError as error:
        error.solution = solution
        if asked is not None:
            raise
        found = str(error)
    solution.cross_check = f"not made: {found}" if isinstance(found, str) else found
    if not isinstance(found, str) and not found.agrees:
        error = CrossCheckError(str(found))
        error.solution = solution
        raise error


def _why_not(solution: Solution, left: float | None) -> str | None:
    """Why there is nothing to compare, or no time to."""
    if solution.interrupted:
        return "the solve was interrupted"
    if not solution.is_certified:
        return f"the solution is not certified ({solution.status})"
    return _TIME if left is not None and left <= 0 else None


def _too_large(problem, solution: Solution) -> str | None:
    from mtldsl.check.cross_check import MAX_SIZE
    from mtldsl.check.touching import stated
    from mtldsl.reference.workload import workload

    form = problem.form()
    if not form.in_memory:
        return "the rows are elsewhere"
    size = workload(stated(form, solution))
    return None if size <= MAX_SIZE else f"the model is too large (workload {size:,} > {MAX_SIZE:,})"


def _compared(problem, solution: Solution, how: bool | str, left: float | None):
    """What both sides say; a sentence where that was cut short."""
    from mtldsl.check.cross_check import MAX_SIZE, compared

    size = SUBSAMPLE if how == "subsample" else MAX_SIZE
    try:
        return compared(problem, solution, max_size=size, max_seconds=left)
    except stops.TimeIsUp:
        return _TIME
    except KeyboardInterrupt:  # Ctrl-C ends what is left to do; the solution is there
        solution.interrupted = True
        return "it was interrupted"
