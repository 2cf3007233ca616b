"""Which solvers are tried on a form. They are asked as late as possible: most runs end with the first that takes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from itertools import chain

from mtldsl.compile.normal_form import NormalForm
from mtldsl.errors import ModelError, SolverError
from mtldsl.solvers.registry import LAST, candidates, get_solver, in_turn, nearest, refusal
from mtldsl.solvers.turns import Turns
from mtldsl.values.number import quoted

__all__ = ["refuse_parameters", "to_try", "turns_of"]

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

#: the reference is tried after a fast solver stalls only up to this many scalars of data and unknowns
_SMALL_ENOUGH_FOR_REFERENCE = 200_000


def to_try(form: NormalForm, solver: str, options: dict) -> Iterator[str]:
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
        coming = (name for name in _automatic(form) if set(options) <= set(get_solver(name).options))
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


def turns_of(form: NormalForm, solver: str, options: dict, first: str = "") -> Turns:
    """Those solvers, each with the patience that it asks for where "auto" tries several on a convex model; else one after another.

    first : one that goes before the others there, if it takes the form
    """
    names: Iterable[str] = to_try(form, solver, options)
    if not form.is_convex or solver != "auto":
        return Turns(names, None)
    if first and refusal(get_solver(first), form) is None:
        names = chain([first], (name for name in names if name != first))
    return Turns(
        names,
        lambda name: get_solver(name).patience(form),
        lambda name: get_solver(name).shift(form),
        lambda name: get_solver(name).pace(form),
        LAST,
    )


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
    """What to write where an option is not one of every solver: the word that was meant, or the solver to name."""
    for key in options:
        if key in _OF_MODELS:
            return _OF_MODELS[key]
        meant = _MEANT.get(key) or next(iter(get_close_matches(key, _WORDS, n=1, cutoff=0.75)), None)
        if meant is not None:
            return f"write {meant}= in place of {key}="
    return "name it with solver=..."


def _common_options(form: NormalForm) -> set[str]:
    """The options that "auto" hands on: files that solvers without need of rows write, whichever of them solves the form."""
    accepting = map(get_solver, in_turn(form))
    return {key for solver in accepting if not solver.needs_rows for key in solver.writes}


def _automatic(form: NormalForm) -> Iterator[str]:
    """Every fast solver that takes the form; then the reference, which is slow even to import and takes convex models only."""
    taken = False
    for name in in_turn(form):
        taken = True
        yield name
    if taken:
        if form.is_convex and form.in_memory and form.data_size <= _SMALL_ENOUGH_FOR_REFERENCE:
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
