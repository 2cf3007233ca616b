"""Which solver fits: the first that does not refuse, in order of measured speed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from mtldsl.compile.normal_form import NormalForm
from mtldsl.errors import SolverError

if TYPE_CHECKING:
    from mtldsl.solvers.solver import Solver

__all__ = [
    "LAST",
    "SOLVERS",
    "Answer",
    "answers",
    "candidates",
    "get_solver",
    "in_turn",
    "nearest",
    "refusal",
]

#: name -> where its object `SOLVER` lives, fastest first; the reference comes last and takes everything convex. Solvers of one's own
#: stand here themselves (mtldsl.extending)
SOLVERS: dict[str, str | Solver] = {
    "closed_form": "mtldsl.solvers.closed_form",
    "coordinate_descent": "mtldsl.solvers.rows.coordinate_descent",
    "dual_ascent": "mtldsl.solvers.dual_ascent",
    "clique_generation": "mtldsl.solvers.labellings.clique_generation",
    "multipliers": "mtldsl.solvers.multipliers.multipliers",
    "admm": "mtldsl.solvers.admm.admm",
    "proximal_gradient": "mtldsl.solvers.proximal.proximal_gradient",
    "ascent_by_passes": "mtldsl.solvers.passes.ascent",
    "consensus": "mtldsl.solvers.passes.consensus",
    "majorization": "mtldsl.solvers.passes.majorization",
    "newton_by_passes": "mtldsl.solvers.passes.newton",
    "planes_by_passes": "mtldsl.solvers.passes.planes",
    "alternating": "mtldsl.solvers.alternation.alternating",
    "cvxpy": "mtldsl.reference.solver",
}

#: the reference is the last resort, whatever the others yield
LAST = "cvxpy"


@dataclass(frozen=True)
class Answer:
    """One solver's word on a form: `refusal` None where it accepts; `yields` says why it would rather let another go first.

    `solves_only` names the kind of models that the solver is for, where this form is not of that kind: then the refusal tells
    nothing that would change it. None where the form is of the kind, so that a refusal says what stands in the way.
    """

    name: str
    summary: str
    refusal: str | None
    yields: str | None = None
    solves_only: str | None = None


def get_solver(name: str) -> Solver:
    """The solver of that name; SolverError for an unknown one."""
    if name not in SOLVERS:
        near = get_close_matches(name.lower(), SOLVERS, n=1)
        raise SolverError(
            "there is no such solver",
            term=f"solver={name!r}",
            write_instead=f"did you mean {near[0]!r}?"
            if near
            else f"write one of 'auto', {', '.join(map(repr, SOLVERS))}",
        )
    found = SOLVERS[name]
    return _imported(found) if isinstance(found, str) else found


@cache
def _imported(module: str) -> Solver:
    return import_module(module).SOLVER


def _wants_convexity(solver: Solver, form: NormalForm) -> bool:
    return not form.is_convex and not solver.takes_nonconvex


def _kind(solver: Solver, form: NormalForm) -> str | None:
    """The kind of models that a solver is for, where the form is of another one."""
    if _wants_convexity(solver, form):
        return "convex models"
    if solver.needs_rows and not form.in_memory:
        return "rows that are here"
    return solver.solves_only(form)


def refusal(solver: Solver, form: NormalForm) -> str | None:
    """Why a solver does not take a form, or None; most are for convex models only."""
    if _wants_convexity(solver, form):
        culprit = next(f for f in form.functions if not f.atom.convex)
        return f"{culprit.typed} is not convex."
    if solver.needs_rows and not form.in_memory:
        return f"the rows of {form.elsewhere[0].typed} are elsewhere."
    try:
        return solver.refuses(form)
    except SolverError as error:  # even the question is too large for the memory there is
        return f"{error}."


def answers(form: NormalForm, names: Iterable[str] = SOLVERS) -> list[Answer]:
    """What every solver says to this form, in the order in which solver="auto" would try them."""
    found = []
    for name in names:
        solver = get_solver(name)
        reason = refusal(solver, form)
        if reason is not None and form.in_memory and not solver.needs_rows:
            continue  # nobody who has all rows here needs to know of it
        if reason is None:
            found.append(Answer(name, solver.summary, None, solver.yields(form)))
        else:
            found.append(Answer(name, solver.summary, reason, None, _kind(solver, form)))
    return sorted(found, key=lambda answer: _place(answer.name, answer.yields))


def candidates(form: NormalForm) -> list[str]:
    """All solvers that accept, in the order of `answers`."""
    fast = list(in_turn(form))
    return fast if refusal(get_solver(LAST), form) is not None else [*fast, LAST]


def in_turn(form: NormalForm) -> Iterator[str]:
    """Those that accept, in order, but for the reference, which is slow even to import. A solver is asked only when all before it have
    been taken; one that yields waits until no other accepts. The first is remembered with the form.
    """
    registered = tuple(SOLVERS.items())
    first, yielding = form.remembered.get(registered), []
    if first is not None:
        yield first
    for name, _ in registered:
        if name in (LAST, first) or refusal(solver := get_solver(name), form) is not None:
            continue
        if solver.yields(form) is None:
            if first is None:
                first = form.remembered[registered] = name
            yield name
        else:
            yielding.append(name)
    yield from yielding


def nearest(form: NormalForm) -> list[str]:
    """Those whose refusals say best what stands in the way where no solver takes the form."""
    names = [name for name, found in SOLVERS.items() if isinstance(found, str) and name != LAST]
    return [
        name
        for name in names
        if (solver := get_solver(name)).needs_rows == form.in_memory and solver.is_nearest(form)
    ]


def _place(name: str, yielded: str | None) -> int:
    """Before or after others: a solver may accept and still know that another, where there is one, is faster for this form."""
    return (yielded is not None) + (name == LAST) * 2
