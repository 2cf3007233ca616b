"""From a normal form to its outcome: the warm start checked, far labels and columns moved to zero, one start or several, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.compile.reductions.centred import Centred, moved
from mtldsl.compile.reductions.gathered import Gathered, Recipe, can_be_reflected
from mtldsl.errors import SolverError
from mtldsl.solvers.drive import COARSE_INTERCEPTS, Outcome, as_typed, drive
from mtldsl.solvers.easier import Easier
from mtldsl.solvers.passes.checkpoint import Folder
from mtldsl.solvers.passes.forecast import Forecast
from mtldsl.solvers.solver import Point
from mtldsl.solvers.starts import checked_starts, from_several_starts
from mtldsl.solvers.warm_start import Solved, starting_point
from mtldsl.system import passes
from mtldsl.system.told import Listener, say

__all__ = ["seen_by_solvers", "solve_form"]

#: How a solve ends that nothing from outside has cut short.
_ENDED = ("optimal", "stationary", "stalled", "uncertified")


def solve_form(
    form: NormalForm,
    *,
    solver: str,
    tol: float,
    max_iter: int | None,
    max_seconds: float | None,
    warm_start: Solved | dict | None,
    starts: int,
    random_state,
    listener: Listener | None,
    options: dict,
    verbose: bool = False,
) -> Outcome:
    """The arguments are those of `Problem.solve`; `options` those of the solver."""
    how: dict[str, Any] = {
        "solver": solver, "tol": tol, "max_iter": max_iter, "max_seconds": max_seconds, "starts": starts,
        "random_state": random_state, "listener": listener, "options": options, "verbose": verbose,
    }  # fmt: skip
    if not form.elsewhere:
        return _solved(form, warm_start, how, None)
    how["listener"] = forecast = _forecast(form, tol, listener, verbose)
    with passes.heard_by(forecast):
        return _elsewhere(form, warm_start, how)


def _forecast(form: NormalForm, tol: float, listener: Listener | None, verbose: bool) -> Forecast:
    """Whoever tells what passes over the rows will take; the lines of looks are written by the listener."""
    rows = max(
        tasks.n_rows or tasks.n_samples for tasks in (cast(Any, loss.tasks) for loss in form.elsewhere)
    )
    return Forecast(rows, tol, listener, say if verbose else None)


def _elsewhere(form: NormalForm, warm_start, how: dict[str, Any]) -> Outcome:
    """Solve a form whose rows are elsewhere, with a checkpoint or without."""
    options, starts = how["options"], how["starts"]
    if "checkpoint" not in options:
        return _solved(form, warm_start, how, None)
    how["options"] = {key: value for key, value in options.items() if key != "checkpoint"}
    if options["checkpoint"] is None:
        return _solved(form, warm_start, how, None)
    if starts != 1:
        raise SolverError(
            f"solve(checkpoint=..., starts={starts!r}): a checkpoint is of one start",
            write_instead="write starts=1",
        )
    with Folder(options["checkpoint"], form) as folder:
        return _solved(form, warm_start, how, folder)


def _solved(form: NormalForm, warm_start, how: dict[str, Any], folder: Folder | None) -> Outcome:
    if folder is not None:
        folder.recall_moments()
    if Gathered().accepts(form) is None:
        return _gathered(form, warm_start, how, folder)
    starts, first = checked_starts(form, how["starts"], how["random_state"]), starting_point(form, warm_start)
    solved, moves = Centred().apply(form)
    if first is not None:
        first.blocks = moved(first.blocks, moves, -1.0)
    options = how["options"]
    if folder is not None:
        first, options = folder.point() or first, options | {"checkpoint": folder}

    def run(start: Point | None) -> Outcome:
        return drive(
            solved, solver=how["solver"], tol=how["tol"], max_iter=how["max_iter"], max_seconds=how["max_seconds"],
            start=start, listener=how["listener"], options=options, simple_guesses=start is first,
        )  # fmt: skip

    if starts == 1:
        outcome = run(first)
    else:
        outcome = from_several_starts(solved, starts, how["random_state"], run, first, how["verbose"])
    return as_typed(outcome, solved, form, moves, how["tol"])


def seen_by_solvers(form: NormalForm) -> NormalForm:
    """The form that solvers are asked about: a few rows in place of those that are elsewhere, where squares allow it; without equations
    that are solved beforehand."""
    return Gathered().apply(form)[0] if Gathered().accepts(form) is None else Easier(form).form


def _gathered(form: NormalForm, warm_start, how: dict[str, Any], folder: Folder | None) -> Outcome:
    """On a few rows made of sums of products; where float64 cannot tell on these, on those made by reflections, in one more pass."""
    first = starting_point(form, warm_start)
    passes.expect("squares", (1, 1))
    here, recipe = Gathered().apply(form)
    if folder is not None:
        folder.keep_moments()
    outcome = _on_few_rows(here, recipe, None if first is None else first.blocks, how)
    hidden = outcome.certificate.relative_rounding > how["tol"]
    if not hidden or outcome.interrupted or outcome.status not in _ENDED or not can_be_reflected(form):
        return outcome
    limit = how["max_seconds"]
    left = None if limit is None else limit - outcome.seconds
    if left is not None and left <= 0.0:
        return outcome
    here, reflected = Gathered(reflected=True).apply(form)
    if reflected is recipe:
        return outcome
    again = _on_few_rows(here, reflected, outcome.blocks, how | {"max_seconds": left})
    seconds, iterations = outcome.seconds + again.seconds, outcome.iterations + again.iterations
    return replace(again, seconds=seconds, iterations=iterations)


def _on_few_rows(here: NormalForm, recipe: Recipe, start: Blocks | None, how: dict[str, Any]) -> Outcome:
    """What comes of few rows, as an answer for the rows given: with the intercepts as they are rounded, and what sums over these rows may hide."""
    start = None if start is None else {block.name: start[block.name] for block in here.blocks}
    outcome = solve_form(here, warm_start=start, **how)
    blocks = recipe.with_intercepts(outcome.blocks)
    above, rounding = recipe.misplaced(blocks)
    found = outcome.certificate
    certificate = replace(
        found,
        objective=found.objective + above,
        dual_bound=found.dual_bound - rounding,
        rounding=found.rounding + rounding,
    )
    status, tells = outcome.status, certificate.relative_rounding <= how["tol"]
    if (status == "optimal" and not certificate.within(how["tol"])) or (status == "stationary" and not tells):
        status = "stalled"
        certificate = replace(certificate, note=COARSE_INTERCEPTS if tells else "")
    return replace(
        outcome, blocks=blocks, certificate=certificate, status=status, duals=(None, outcome.duals[1])
    )
