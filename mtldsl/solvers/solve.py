"""From a normal form to its outcome: the warm start checked, far labels and columns moved to zero, one start or several, and back."""

from __future__ import annotations

from typing import Any

from mtldsl.compile.normal_form import NormalForm
from mtldsl.compile.reductions.centred import Centred, moved
from mtldsl.solvers.drive import Outcome, as_typed, drive
from mtldsl.solvers.easier import Easier
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
    asked = _tasks_asked(form)
    return (
        _solved(form, warm_start, how)
        if asked is None
        else asked.apply_solving(_solved, form, warm_start, how)
    )


def seen_by_solvers(form: NormalForm) -> NormalForm:
    """The form that solvers are asked about: with rows that its tasks have in place of others, or without equations that are solved
    beforehand."""
    asked = _tasks_asked(form)
    known = None if asked is None else asked.presolved(form)
    return Easier(form).form if known is None else known


def _tasks_asked(form: NormalForm) -> Any:
    """The tasks whose hooks a solve goes by: where rows are not in this process, theirs; None without a loss."""
    return next((loss.tasks for loss in (*form.elsewhere, *form.losses)), None)


def _solved(form: NormalForm, warm_start, how: dict[str, Any], resumed: Point | None = None) -> Outcome:
    """Solve the form as it is. `resumed`: where an earlier run was, which goes before a warm start."""
    starts, first = checked_starts(form, how["starts"], how["random_state"]), starting_point(form, warm_start)
    solved, moves = Centred().apply(form)
    if first is not None:
        first.blocks = moved(first.blocks, moves, -1.0)
    first = resumed or first

    def run(start: Point | None) -> Outcome:
        return drive(
            solved, solver=how["solver"], tol=how["tol"], max_iter=how["max_iter"], max_seconds=how["max_seconds"],
            start=start, listener=how["listener"], options=how["options"], simple_guesses=start is first,
        )  # fmt: skip

    if starts == 1:
        outcome = run(first)
    else:
        outcome = from_several_starts(solved, starts, how["random_state"], run, first, how["verbose"])
    return as_typed(outcome, solved, form, moves, how["tol"])
