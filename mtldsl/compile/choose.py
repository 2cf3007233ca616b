"""Which solver fits: the first that does not refuse, in order of measured speed."""

from __future__ import annotations

from importlib import import_module

from mtldsl.compile.normal_form import NormalForm
from mtldsl.errors import SolverError

__all__ = ["SOLVERS", "answers", "candidates", "get_solver"]

#: name -> where its object `SOLVER` lives, fastest first; the reference comes last and takes everything convex
SOLVERS = {
    "closed_form": "mtldsl.solvers.closed_form",
    "coordinate_descent": "mtldsl.solvers.coordinate_descent",
    "proximal_gradient": "mtldsl.solvers.proximal_gradient",
    "admm": "mtldsl.solvers.admm",
    "cvxpy": "mtldsl.reference.solver",
}


def get_solver(name: str):
    """The solver of that name; SolverError for an unknown one."""
    if name not in SOLVERS:
        raise SolverError(
            f"solver={name!r}: there is no such solver; write one of 'auto', {', '.join(map(repr, SOLVERS))}"
        )
    return import_module(SOLVERS[name]).SOLVER


def answers(form: NormalForm) -> list[tuple[str, str, str | None]]:
    """(name, one-line summary, None or the sentence with which it refuses) of every solver, in order."""
    return [(name, get_solver(name).summary, get_solver(name).refuses(form)) for name in SOLVERS]


def candidates(form: NormalForm) -> list[str]:
    """The solvers that accept, in order."""
    return [name for name, _, refusal in answers(form) if refusal is None]
