"""From a normal form to its outcome: the warm start checked, far labels moved to zero, one start or several, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mtldsl.compile.normal_form import NormalForm
from mtldsl.compile.reductions.centred import Centred, moved
from mtldsl.compile.reductions.gathered import Gathered
from mtldsl.errors import SolverError
from mtldsl.solvers.drive import Outcome, as_typed, drive
from mtldsl.solvers.passes.checkpoint import Folder
from mtldsl.solvers.solver import Point
from mtldsl.solvers.starts import checked_starts, from_several_starts
from mtldsl.solvers.warm_start import Solved, starting_point
from mtldsl.system.told import Listener

__all__ = ["seen_by_solvers", "solve_form"]


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
    if not form.elsewhere or "checkpoint" not in options:
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
    solved, lacking = Centred().apply(form)
    if first is not None:
        first.blocks = moved(first.blocks, lacking, -1.0)
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
    return as_typed(outcome, solved, lacking, how["tol"])


def seen_by_solvers(form: NormalForm) -> NormalForm:
    """The form that solvers are asked about: a few rows in place of those that are elsewhere, where squares allow it."""
    return Gathered().apply(form)[0] if Gathered().accepts(form) is None else form


def _gathered(form: NormalForm, warm_start, how: dict[str, Any], folder: Folder | None) -> Outcome:
    first, gathered = starting_point(form, warm_start), Gathered()
    here, recipe = gathered.apply(form)
    if folder is not None:
        folder.keep_moments()
    start = None if first is None else {block.name: first.blocks[block.name] for block in here.blocks}
    outcome = solve_form(here, warm_start=start, **how)
    return replace(
        outcome, blocks=gathered.with_intercepts(outcome.blocks, recipe), duals=(None, outcome.duals[1])
    )
