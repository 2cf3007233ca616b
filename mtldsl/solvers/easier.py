"""A form as solvers see it: without equations that are solved beforehand. Points that they show are those of the form as given."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from mtldsl.compile.normal_form import NormalForm
from mtldsl.compile.reductions.null_space import Coordinates, NullSpace
from mtldsl.solvers import spans
from mtldsl.solvers.solver import Point, Solver, Watch
from mtldsl.solvers.watches import Translated

__all__ = ["Easier"]


class Easier:
    """The easier form of one form, which is the form itself where there is no other."""

    def __init__(self, given: NormalForm):
        self.form: NormalForm = given
        self.recipe: Coordinates | None = None
        if NullSpace().accepts(given) is None:
            self.form, self.recipe = NullSpace().apply(given)

    def solve(
        self, solver: Solver, options: dict, *, tol: float, max_iter: int, start: Point | None, watch: Watch
    ) -> Point:
        """The solver's last point, of the form given, as all that it shows to `watch`."""
        inner = spans.solver_of(solver, self.form, options)
        run = partial(inner, self.form, tol=tol, max_iter=max_iter, **options)
        if self.recipe is None:
            return run(start=start, watch=watch)
        back = partial(_taken_back, recipe=self.recipe)
        if start is not None:  # matrices of the given size are none of this form
            start = NullSpace().restricted(replace(start, structures=None), self.recipe)
        return back(run(start=start, watch=Translated(watch, back)))


def _taken_back(point: Point, recipe: Coordinates) -> Point:
    """With its matrices those that are best for the weights."""
    steps = (
        replace(step, before=recipe.out(step.before), after=recipe.out(step.after))
        for step in point.majorizations
    )
    found = NullSpace().invert(point, recipe)
    return replace(found, structures=None, majorizations=tuple(steps))
