"""Joint steps with Anderson acceleration: each step minimises a convex majoriser of the profile, which touches it where it is."""

from __future__ import annotations

import numpy as np

from mtldsl.compile.majorization import Remembered
from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.compile.single_block import single_block
from mtldsl.compile.terms.structure import Structures, learned_matrices
from mtldsl.solvers.alternation.blocks import assert_descent
from mtldsl.solvers.linear_algebra.anderson import Anderson
from mtldsl.solvers.linear_algebra.layout import Layout
from mtldsl.solvers.multipliers.at_rank import settle_at_rank, why_not_at_rank
from mtldsl.solvers.multipliers.descent import descend
from mtldsl.solvers.multipliers.scores import is_piecewise_linear
from mtldsl.solvers.multipliers.tilted import reweighted_of
from mtldsl.solvers.solver import Point, Watch
from mtldsl.solvers.watches import Rhythm

__all__ = ["accelerate"]

_MEMORY = 10

#: The accuracy of a step's convex model, first and as a share of the residual asked for.
_FIRST_ACCURACY, _SHARE, _BEST_ACCURACY = 1e-4, 0.1, 1e-14

#: Steps before the first descent, and the Newton steps that it may take; both are doubled from one to the next.
_FIRST_DESCENT, _NEWTON_STEPS = 1, 40


class Descents:
    """Newton steps of the method of multipliers on the model itself, from where the steps are, after 1, 2, 4, 8, ... of them.

    Where losses have kinks a step is a convex model with kinks, and dozens of steps follow one another; near a solution a descent takes
    as long as a few of them.
    """

    def __init__(self, form: NormalForm, tol: float, watch: Watch):
        self.form, self.tol, self.watch = form, tol, watch
        self.is_small = why_not_at_rank(form) is None
        facts = single_block(form)
        has_kinks = not isinstance(facts, str) and is_piecewise_linear(facts.loss)
        self.concave = reweighted_of(form) if has_kinks else None
        self.due, self.limit = _FIRST_DESCENT, _NEWTON_STEPS

    def after(self, point: Point) -> Point | None:
        """The last point of a descent with which the run ends, else None."""
        if point.iteration < self.due or not (self.is_small or self.concave):
            return None
        start = Point(point.blocks, point.loss_duals)
        found = settle_at_rank(self.form, start, tol=self.tol, watch=self.watch) if self.is_small else None
        if found is None and self.concave is not None:
            found, _ = descend(
                self.form, self.concave, start, tol=self.tol, taken=0, limit=self.limit, watch=self.watch
            )
        self.due, self.limit = 2 * self.due, 2 * self.limit
        if found is not None:
            found.iteration += point.iteration
        return found


def accelerate(
    step, form: NormalForm, x: Blocks, structures: Structures, *, tol: float, max_iter: int, watch: Watch
) -> Point:
    """Weights, then all matrices together. An extrapolation from earlier steps is kept where it leads lower than the plain step."""
    layout, anderson = Layout(form), Anderson(_MEMORY, growth=np.inf)
    accuracy = _FIRST_ACCURACY
    plain = step.solve(structures, x, accuracy)
    here, value = layout.flat(plain.blocks), step.value(plain.blocks)
    size, looks = step.size(plain.blocks), Rhythm(watch, max_iter)
    remembered = Remembered(any(f.atom.is_reweighted for f in form.functions), reweights_losses=False)
    descents = Descents(form, tol, watch)
    for iteration in range(1, max_iter + 1):
        image = step.solve(learned_matrices(form, layout.blocks(here)), layout.blocks(here), accuracy)
        flat, best = layout.flat(image.blocks), step.value(image.blocks)
        assert_descent(value, best, iteration, step.rise * size)
        remembered.add(iteration, layout.blocks(here), image.blocks, accuracy)
        moved = np.linalg.norm(flat - here) / max(np.linalg.norm(flat), np.finfo(float).tiny)
        leap = anderson.step(here, flat, 1.0)
        if not np.array_equal(leap, flat):
            further = step.solve(learned_matrices(form, layout.blocks(leap)), image.blocks, accuracy)
            at = step.value(further.blocks)
            if at < best:
                image, flat, best = further, layout.flat(further.blocks), at
            else:
                anderson.reset()
        here, value = flat, best
        image.iteration, image.majorizations = iteration, remembered.steps
        if looks(image):
            return image
        found = descents.after(image)
        if found is not None:
            return found
        if moved == 0.0 and accuracy <= _BEST_ACCURACY:  # rounding: no step moves any more
            watch(image)
            return image
        if moved**2 <= 10.0 * accuracy:  # steps are no longer than their errors
            accuracy = max(0.01 * accuracy, _BEST_ACCURACY, min(_SHARE * tol, 1e-6) ** 2)
    return image
