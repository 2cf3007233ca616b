"""Runs of a solver in the span of the samples, where these are few: every step is cheaper, and the points shown are those of the model given."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mtldsl.compile.normal_form import NormalForm
from mtldsl.compile.reductions.spanned import Spanned
from mtldsl.solvers.solver import Point, Solver, Watch
from mtldsl.solvers.watches import Translated

__all__ = ["pays", "solve_in_span", "solver_of"]

#: Samples: what makes the coordinates, n^2 d multiplications, stays small against the passes over n d numbers a task that they save.
_MOST, _MOST_A_TASK, _FEWER = 1000, 400, 2.0


def pays(form: NormalForm) -> bool:
    """Whether there are so few samples that steps in their span pay for its coordinates."""
    if not form.is_convex or len(form.losses) != 1 or form.losses[0].atom.quadratic is not None:
        return False
    tasks = form.losses[0].tasks
    if not tasks.is_shared or tasks.is_sparse:
        return False
    n, d = tasks.X.shape
    return (
        _FEWER * n <= d and n <= min(_MOST, _MOST_A_TASK * tasks.n_tasks) and Spanned().accepts(form) is None
    )


def solver_of(solver: Solver, form: NormalForm, options: dict) -> Callable[..., Point]:
    """The solver's `solve`; in the span where that pays, and nothing is asked of the run that is about the model as given."""
    inside = solver.takes_spans and not options and pays(form)
    return partial(solve_in_span, solver) if inside else solver.solve


def solve_in_span(
    solver: Solver, form: NormalForm, *, tol: float, max_iter: int, start: Point | None, watch: Watch
) -> Point:
    """`solver.solve` on the smaller model; what it shows and returns is of the form as given."""
    smaller, span = Spanned().apply(form)
    inside = None if start is None else Spanned().restricted(start, span)
    shown = Translated(watch, partial(Spanned().invert, span=span))
    return Spanned().invert(
        solver.solve(smaller, tol=tol, max_iter=max_iter, start=inside, watch=shown), span
    )
