"""From a normal form to its outcome: the warm start checked, far labels moved to zero, one start or several, and back."""

from __future__ import annotations

from mtldsl.compile.normal_form import NormalForm
from mtldsl.compile.reductions.centred import Centred, moved
from mtldsl.solvers.drive import Outcome, as_typed, drive
from mtldsl.solvers.solver import Point
from mtldsl.solvers.starts import checked_starts, from_several_starts
from mtldsl.solvers.warm_start import Solved, starting_point

__all__ = ["solve_form"]


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
    verbose: bool,
    options: dict,
) -> Outcome:
    """The arguments are those of `Problem.solve`; `options` those of the solver."""
    starts, first = checked_starts(form, starts, random_state), starting_point(form, warm_start)
    solved, lacking = Centred().apply(form)
    if first is not None:
        first.blocks = moved(first.blocks, lacking, -1.0)

    def run(start: Point | None) -> Outcome:
        return drive(
            solved, solver=solver, tol=tol, max_iter=max_iter, max_seconds=max_seconds,
            start=start, verbose=verbose, options=options, simple_guesses=start is first,
        )  # fmt: skip

    outcome = run(first) if starts == 1 else from_several_starts(solved, starts, random_state, run, first)
    return as_typed(outcome, solved, lacking, tol)
