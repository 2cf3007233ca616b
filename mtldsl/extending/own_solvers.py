"""Solvers of one's own."""

from __future__ import annotations

import inspect
import warnings
from typing import Any, cast

from mtldsl.errors import SolverError
from mtldsl.solvers.registry import LAST, SOLVERS
from mtldsl.solvers.solver import Solver

__all__ = ["register_solver", "unregister_solver"]

_OWN: set[str] = set()

_MEMBERS = (
    "name",
    "summary",
    "options",
    "choices",
    "writes",
    "max_iter",
    "takes_nonconvex",
    "needs_rows",
    "takes_spans",
    "below_guesses",
    "refuses",
    "solves_only",
    "yields",
    "patience",
    "pace",
    "shift",
    "solve",
)


def register_solver(solver: Solver, before: str | None = None) -> Solver:
    """Enter a solver of one's own, and return it: problem.solve("its name"), explain(), `[solve] solver = "..."` know it from then on.

    solver : an object with all members of `mtldsl.extending.Solver`, which a subclass has; `mtldsl.testing.check_solver` runs the laws
    before : the name of a solver that solver="auto" shall try after this one; None: all of the language are tried first, so that
             what "auto" does today it does tomorrow

    SolverError where the name is taken (again from the same class: it takes the place of the former), `before` is not known, or
    members are missing: the message lists them.

    >>> from mtldsl import register_solver
    >>> class Nothing:
    ...     name = "nothing"
    >>> register_solver(Nothing())
    Traceback (most recent call last):
    mtldsl.errors.SolverError: register_solver(Nothing()): it lacks summary, options, choices, writes, max_iter, takes_nonconvex, needs_rows, takes_spans, below_guesses, refuses, solves_only, yields, patience, pace, shift, solve; a subclass of mtldsl.extending.Solver has all but name, summary, refuses and solve
    """
    shown = f"{type(solver).__name__}()"
    if isinstance(solver, type):
        raise SolverError(
            f"register_solver({solver.__name__}): this is a class; write register_solver({solver.__name__}())"
        )
    if hasattr(solver, "takes_distributed"):  # its name until 0.2
        warnings.warn(
            f"register_solver({shown}): takes_distributed = {solver.takes_distributed} is now written needs_rows = {not solver.takes_distributed}",
            DeprecationWarning,
            stacklevel=2,
        )
        cast(Any, solver).needs_rows = not solver.takes_distributed
    missing = [member for member in _MEMBERS if not hasattr(solver, member)]
    missing += [
        name
        for name in ("refuses", "solve")
        if name not in missing and _is_bare(getattr(type(solver), name, None))
    ]
    if missing:
        raise SolverError(
            f"register_solver({shown}): it lacks {', '.join(missing)}; a subclass of mtldsl.extending.Solver has all but name, "
            "summary, refuses and solve"
        )
    name = solver.name
    taken = SOLVERS.get(name)
    again = (
        name in _OWN
        and type(taken).__qualname__ == type(solver).__qualname__
        and type(taken).__module__ == type(solver).__module__
    )
    if (
        not (isinstance(name, str) and name.isidentifier())
        or name == "auto"
        or (taken is not None and not again)
    ):
        why = "a solver of this name is there" if taken is not None else "a solver's name is one word"
        raise SolverError(f"register_solver({shown}): name = {name!r}: {why}; choose another name")
    successor = LAST if before is None else before
    if successor not in SOLVERS:
        raise SolverError(
            f"register_solver({shown}, before={before!r}): there is no such solver; write one of {', '.join(SOLVERS)}"
        )
    _OWN.add(name)
    SOLVERS.pop(name, None)
    order = list(SOLVERS.items())
    at = [key for key, _ in order].index(successor)
    order.insert(at, (name, solver))
    SOLVERS.clear()
    SOLVERS.update(order)
    return solver


def unregister_solver(name: str) -> None:
    """Take a solver of one's own out again; SolverError where it is none that `register_solver` entered."""
    if name not in _OWN:
        raise SolverError(f"unregister_solver({name!r}): no solver of this name was registered")
    _OWN.remove(name)
    del SOLVERS[name]


def _is_bare(method) -> bool:
    return inspect.isfunction(method) and getattr(method, "__isabstractmethod__", False)
