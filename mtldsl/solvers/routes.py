"""Routes: the solvers in order, and which of them accept a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from itertools import chain
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from mtldsl.errors import ModelError, SolverError
from mtldsl.normal_form.form import NormalForm
from mtldsl.solvers.route_table import PATTERNS, SETTINGS, RoutePattern
from mtldsl.solvers.scheduler import RoundRobin, Slot
from mtldsl.solvers.solver import MethodSolver, single_method
from mtldsl.utils.validation import quoted

if TYPE_CHECKING:
    from mtldsl.solvers.solver import Solver


# --------------------------------------------------------------------------------------------------------------
# Which solver fits: the first that does not refuse, in the order of the table.

#: name -> where its object `SOLVER` lives, in the order in which they are tried; the reference comes last and takes everything convex. Solvers
#: of one's own stand here themselves (mtldsl.extending)
SOLVERS: dict[str, str | Solver] = {
    "closed_form": "mtldsl.solvers.linear_systems.closed_form",
    "coordinate_descent": "mtldsl.solvers.coordinate_descent.coordinate_descent",
    "clique_generation": "mtldsl.solvers.label_graphs.clique_generation",
    "multipliers": "mtldsl.solvers.augmented_lagrangian.augmented_lagrangian",
    "proximal_gradient": "mtldsl.solvers.proximal_gradient.proximal_gradient",
    "alternating": "mtldsl.solvers.nonconvex.alternating",
    "dual_ascent": "mtldsl.solvers.sdca.sdca",
    "admm": "mtldsl.solvers.admm.admm",
    "consensus": "mtldsl.distributed.consensus",
    "majorization": "mtldsl.distributed.distributed_majorization",
    "newton_by_passes": "mtldsl.distributed.distributed_newton",
    "planes_by_passes": "mtldsl.distributed.distributed_planes",
    "cvxpy": "mtldsl.reference.solver",
}

#: Module of the patterns of models whose rows are elsewhere.
DISTRIBUTED_PATTERNS = "mtldsl.distributed.route_patterns"

#: the reference is the last resort
LAST = "cvxpy"


@dataclass(frozen=True)
class RouteVerdict:
    """One solver's word on a form: `refusal` None where it accepts; `pattern` says why the table puts it first, `method` which of its
    methods begins.

    `solves_only` names the kind of models that the solver is for, where this form is not of that kind: then the refusal tells
    nothing that would change it. None where the form is of the kind, so that a refusal says what stands in the way.
    """

    name: str
    summary: str
    refusal: str | None
    pattern: str | None = None
    solves_only: str | None = None
    method: str | None = None


def get_solver(name: str) -> Solver:
    """The solver of that name, or one of its methods as "solver.method"; SolverError for an unknown one."""
    solver, _, method = name.partition(".")
    if method and solver in SOLVERS:
        return _single_method(get_solver(solver), method)
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


def is_solver(name: object) -> bool:
    """Tell whether that is the name of a solver, or of one of its methods."""
    try:
        return isinstance(name, str) and get_solver(name) is not None
    except SolverError:
        return False


@cache
def _imported(module: str) -> Solver:
    return import_module(module).SOLVER


@cache
def _single_method(solver: Solver, name: str) -> Solver:
    methods = {one.name: one for one in solver.methods} if isinstance(solver, MethodSolver) else {}
    if isinstance(solver, MethodSolver) and name in methods:
        return single_method(solver, methods[name])
    known = ", ".join(repr(f"{solver.name}.{one}") for one in methods)
    raise SolverError(
        f"{solver.name} has no such method",
        term=f"solver={f'{solver.name}.{name}'!r}",
        write_instead=f"write {solver.name!r}" + (f", or one of {known}" if known else ""),
    )


def refusal(solver: Solver, form: NormalForm) -> str | None:
    """Why a solver does not take a form, or None; most are for convex models only."""
    if not (form.is_convex or solver.takes_nonconvex):
        culprit = next(f for f in form.functions if not f.atom.convex)
        return f"{culprit.typed} is not convex."
    if solver.needs_rows and not form.in_memory:
        return f"the rows of {form.elsewhere[0].typed} are elsewhere."
    try:
        return solver.refuses(form)
    except SolverError as error:  # even the question is too large for the memory there is
        return f"{error}."


def _kind(solver: Solver, form: NormalForm) -> str | None:
    """The kind of models that a solver is for, where the form is of another one."""
    if not (form.is_convex or solver.takes_nonconvex):
        return "convex models"
    if solver.needs_rows and not form.in_memory:
        return "rows that are here"
    return solver.solves_only(form)


def answers(form: NormalForm, names: Iterable[str] = SOLVERS) -> list[RouteVerdict]:
    """Return what every solver says to this form, in the order in which solver="auto" would try them."""
    order, found = ordered_routes(form), []
    for name in [name for name in order.names if name.partition(".")[0] in names]:
        solver = get_solver(name)
        reason = refusal(solver, form)
        if reason is not None and form.in_memory and not solver.needs_rows:
            continue  # nobody who has all rows here needs to know of it
        if reason is None:
            method = None
            if isinstance(solver, MethodSolver) and len(solver.methods) > 1:
                method = solver.method_for(form)
            by = None if method is None else f"{name}.{method.name} ({method.summary})"
            found.append(RouteVerdict(name, solver.summary, None, order.reasons.get(name), method=by))
        else:
            found.append(RouteVerdict(name, solver.summary, reason, None, _kind(solver, form)))
    return found


def candidates(form: NormalForm) -> list[str]:
    """All solvers that accept, in the order of `answers`."""
    fast = list(accepting_routes(form))
    return fast if refusal(get_solver(LAST), form) is not None else [*fast, LAST]


@dataclass
class RouteOrder:
    """Names of all solvers in the order of the table for a form, the reasons of those that a pattern puts first, and what those said that
    were asked."""

    names: list[str]
    reasons: dict[str, str] = field(default_factory=dict)
    refusals: dict[str, str | None] = field(default_factory=dict)


def ordered_routes(form: NormalForm) -> RouteOrder:
    """Return the order of the table for this form. It is remembered with what solvers say of it, by the solvers and coefficients there are."""
    sizes = (*(loss.coefficients.tobytes() for loss in form.losses), *(f.coefficient for f in form.functions))
    known = tuple((name, id(solver)) for name, solver in SOLVERS.items()), sizes
    if known not in form.remembered:
        order = form.remembered[known] = RouteOrder(list(SOLVERS))
        for pattern in reversed(patterns_of(form)):
            if pattern.holds(form):
                moved = {*pattern.first, *pattern.later, LAST}
                first, later = (
                    [name for name in some if name.partition(".")[0] in SOLVERS]
                    for some in (pattern.first, pattern.later)
                )
                order.names = [*first, *(name for name in order.names if name not in moved), *later, LAST]
                order.reasons |= dict.fromkeys(first, pattern.reason)
    return form.remembered[known]


def patterns_of(form: NormalForm) -> Sequence[RoutePattern]:
    """Return the patterns of models in memory, or of those whose rows are elsewhere."""
    return PATTERNS if form.in_memory else import_module(DISTRIBUTED_PATTERNS).PATTERNS


def accepting_routes(form: NormalForm) -> Iterator[str]:
    """Those that accept, in order, but for the reference, which is slow even to import. A solver is asked only when all before it have
    been taken, and once.
    """
    order = ordered_routes(form)
    for name in order.names:
        if name not in order.refusals and name != LAST:
            order.refusals[name] = refusal(get_solver(name), form)
        if order.refusals.get(name, "") is None:
            yield name


def nearest(form: NormalForm) -> list[str]:
    """Those whose refusals say best what stands in the way where no solver takes the form."""
    names = [name for name, found in SOLVERS.items() if isinstance(found, str) and name != LAST]
    return [
        name
        for name in names
        if (solver := get_solver(name)).needs_rows == form.in_memory and solver.is_nearest(form)
    ]


# --------------------------------------------------------------------------------------------------------------
# Which solvers are tried on a form. They are asked as late as possible: most runs end with the first that takes it.

#: What `Problem.solve` takes beside the options of a solver, and what other libraries call it.
_WORDS = (
    "solver",
    "tol",
    "max_iter",
    "max_seconds",
    "warm_start",
    "starts",
    "random_state",
    "n_jobs",
    "verbose",
    "callback",
)
_MEANT = {
    "max_iters": "max_iter", "n_iter": "max_iter", "maxiter": "max_iter", "iterations": "max_iter", "eps": "tol", "epsilon": "tol", "rtol": "tol", "tolerance": "tol",
    "time_limit": "max_seconds", "timeout": "max_seconds", "seed": "random_state", "n_starts": "starts", "restarts": "starts",
    "x0": "warm_start", "init": "warm_start", "method": "solver", "threads": "n_jobs", "verbosity": "verbose",
}  # fmt: skip

_OF_SAMPLES = "write Tasks.shared(X, Y, sample_weights=...); the estimators take class_weight='balanced'"
_OF_PARAMETERS = (
    "write lam = Parameter(1.0) and lam * l1_norm(W) in the model, and set lam.value = 0.1 before solve()"
)
_OF_SETS = "write minimize(objective, subject_to=[W >= 0])"

#: What belongs to a model or its data and is asked of `solve`.
_OF_MODELS = {
    "class_weight": _OF_SAMPLES, "sample_weight": _OF_SAMPLES, "sample_weights": _OF_SAMPLES, "lam": _OF_PARAMETERS, "lambda_": _OF_PARAMETERS,
    "alpha": _OF_PARAMETERS, "C": _OF_PARAMETERS, "constraints": _OF_SETS, "subject_to": _OF_SETS,
}  # fmt: skip


def candidate_routes(form: NormalForm, solver: str, options: dict) -> Iterator[str]:
    """The names of the solvers for `Problem.solve(solver=..., **options)`.

    ModelError, at once, where no solver takes the form, or not the one that was named; SolverError for its options.
    """
    if not isinstance(solver, str):
        raise SolverError(
            term=f"solve(solver={quoted(solver)})",
            write_instead='write "auto", or a name that explain() lists',
        )
    if solver == "auto":
        if options and not set(options) <= _common_options(form):
            raise SolverError(
                "options belong to one solver",
                term=f"solve({', '.join(f'{key}=...' for key in options)})",
                write_instead=_instead(options),
            )
        coming = _automatic(form)
        if options:
            coming = (name for name in coming if set(options) <= set(get_solver(name).options))
        return chain([next(coming)], coming)
    chosen = get_solver(solver)
    reason = refusal(chosen, form)
    if reason is not None:
        accepted = ", ".join(candidates(form)) or "none"
        raise ModelError(
            f"solver={solver!r} does not take this model: {reason} Solvers that take it: {accepted}."
        )
    unknown = [key for key in options if key not in chosen.options]
    if unknown:
        known = ", ".join(f"{key}={value!r}" for key, value in chosen.options.items()) or "none"
        raise SolverError(
            f"unknown option; {solver} takes {known}", term=f"solve(solver={solver!r}, {unknown[0]}=...)"
        )
    return iter([solver])


def schedule_for(form: NormalForm, solver: str, options: dict) -> RoundRobin:
    """Return those solvers, in slots where "auto" tries several on a convex model; else one after another."""
    names = candidate_routes(form, solver, options)
    if not form.is_convex or solver != "auto":
        return RoundRobin(names, are_resumed=False)
    return RoundRobin(names, last=LAST)


def limit_of(slot: Slot, form: NormalForm) -> Callable[[], float] | None:
    """Return the flops of a first slot: those that the route that waits is expected to take in all; None where no route waits."""
    if slot.is_lone:
        return None

    @cache
    def limit() -> float:
        with np.errstate(all="warn"):  # a step that overflows in the running route is an error there
            name = slot.next()
        return get_solver(name).expected_flops(form) if name and name != LAST else inf

    return limit


def refuse_parameters(options: dict, names: Iterable[str]) -> None:
    """SolverError for a parameter of the model among the options of a solver."""
    for name in names:
        if name in options:
            raise SolverError(
                f"{name} is a Parameter of the model, not an option of a solver",
                term=f"solve({name}=...)",
                write_instead=f"set its value first, {name}.value = {quoted(options[name])}",
            )


def _instead(options: Iterable[str]) -> str:
    """Return what to write where an option is not one of every solver: the word that was meant, or the solver to name."""
    for key in options:
        if key in _OF_MODELS:
            return _OF_MODELS[key]
        meant = _MEANT.get(key) or next(iter(get_close_matches(key, _WORDS, n=1, cutoff=0.75)), None)
        if meant is not None:
            return f"write {meant}= in place of {key}="
    return "name it with solver=..."


def _common_options(form: NormalForm) -> set[str]:
    """The options that "auto" hands on: files that solvers without need of rows write, whichever of them solves the form."""
    accepting = map(get_solver, accepting_routes(form))
    return {key for solver in accepting if not solver.needs_rows for key in solver.writes}


def _automatic(form: NormalForm) -> Iterator[str]:
    """Every fast solver that takes the form; then the reference, which is slow even to import and takes convex models only."""
    taken = False
    for name in accepting_routes(form):
        taken = True
        yield name
    if taken:
        if form.is_convex and form.in_memory and form.data_size <= SETTINGS.max_reference_entries:
            yield LAST
        return
    last = refusal(get_solver(LAST), form) if form.is_convex else None
    if last is None and form.is_convex:
        yield LAST
        return
    reasons = [f"{name}: {refusal(get_solver(name), form)}" for name in nearest(form)]
    raise ModelError(
        f"no solver takes this model. {' '.join(reasons)}" + (f" {LAST}: {last}" if last else "")
    )
