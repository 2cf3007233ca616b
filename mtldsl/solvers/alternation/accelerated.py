"""Joint steps with Anderson acceleration: each step minimises a convex majoriser of the profile, which touches it where it is."""

from __future__ import annotations

import numpy as np

from mtldsl.compile.majorization import Remembered
from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.compile.terms.structure import Structures, learned_matrices
from mtldsl.solvers.alternation.blocks import assert_descent
from mtldsl.solvers.linear_algebra.anderson import Anderson
from mtldsl.solvers.linear_algebra.layout import Layout
from mtldsl.solvers.solver import Point, Watch
from mtldsl.solvers.watches import Rhythm

__all__ = ["accelerate"]

_MEMORY = 10

#: The accuracy of a step's convex model, first and as a share of the residual asked for.
_FIRST_ACCURACY, _SHARE, _BEST_ACCURACY = 1e-4, 0.1, 1e-14


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
        if moved == 0.0 and accuracy <= _BEST_ACCURACY:  # rounding: no step moves any more
            watch(image)
            return image
        if moved**2 <= 10.0 * accuracy:  # steps are no longer than their errors
            accuracy = max(0.01 * accuracy, _BEST_ACCURACY, min(_SHARE * tol, 1e-6) ** 2)
    return image
