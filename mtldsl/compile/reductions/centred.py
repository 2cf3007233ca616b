"""Labels far from zero, moved there: with an intercept the model is the same, and rounding no longer hides the signal.

A loss of residuals z - y takes y - c with the intercept b - c for y with b. Labels of 1e12 + signal (a time stamp, an amount of money
in cents) leave four digits of the signal in z and y, and all of them in z - c and y - c: the subtraction is exact.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from mtldsl.compile.normal_form import Blocks, LossTerm, NormalForm
from mtldsl.compile.reductions.reduction import Point, Promise

__all__ = ["Centred", "moved"]

#: a median this many times as large as the labels are wide is taken off them
_FAR = 1e4


class Centred:
    """Labels far from zero lose the median of their task, and the intercept beside them too. A form that has none stays as it is."""

    promise: ClassVar[Promise] = Promise.EXACT

    def accepts(self, form: NormalForm) -> str | None:
        return None if _lacking(form) else "beside an intercept, no labels of residuals lie far from zero"

    def apply(self, form: NormalForm) -> tuple[NormalForm, Blocks]:
        """The recipe is {intercept: what it lacks}."""
        lacking = _lacking(form)
        if not lacking:
            return form, {}
        known: dict[int, object] = {}

        def without_centre(loss: LossTerm) -> LossTerm:
            if not lacking.keys() & set(loss.intercepts):
                return loss
            centre = np.repeat(lacking[loss.intercepts[0]][0], loss.tasks.counts)
            tasks = known.setdefault(id(loss.tasks), loss.tasks.with_targets(loss.tasks.targets - centre))
            return replace(loss, tasks=tasks)

        return replace(form, losses=tuple(without_centre(loss) for loss in form.losses)), lacking

    def invert(self, point: Point, recipe: Blocks) -> Point:
        """Residuals are the same, and so are all multipliers."""
        return replace(point, blocks=moved(point.blocks, recipe))


def _lacking(form: NormalForm) -> Blocks:
    """{intercept: the medians (1, m) of labels far from zero, 0 for the others}."""
    lacking = {}
    for name in {name for loss in form.losses for name in loss.intercepts}:
        sharing = [loss for loss in form.losses if name in loss.intercepts]
        if all(_may_move(loss) for loss in sharing):
            centres = _centres(sharing)
            if centres.any():
                lacking[name] = centres[None, :]
    return lacking


def _may_move(loss: LossTerm) -> bool:
    return loss.atom.of_residuals and len(loss.intercepts) == 1 and not loss.tasks.is_distributed


def moved(blocks: Blocks, by: Blocks, sign: float = 1.0) -> Blocks:
    """A point with `sign * by` added to its intercepts."""
    return blocks | {name: blocks[name] + sign * shift for name, shift in by.items()}


def _centres(losses: list[LossTerm]) -> np.ndarray:
    """(m,) the median label of every task whose labels are far from zero, 0 for the others."""
    found = np.zeros(losses[0].tasks.n_tasks)
    ends = [(loss.tasks.targets, loss.tasks.offsets[:-1]) for loss in losses]
    low, high = np.minimum.reduceat(*ends[0]), np.maximum.reduceat(*ends[0])
    for pair in ends[1:]:
        low = np.minimum(low, np.minimum.reduceat(*pair))
        high = np.maximum(high, np.maximum.reduceat(*pair))
    # no label is nearer to the median than half the width to both ends
    may_be_far = np.maximum(np.abs(low), np.abs(high)) > 0.5 * _FAR * (high - low)
    for i in np.flatnonzero(may_be_far):
        labels = np.concatenate([loss.tasks.per_task(loss.tasks.targets)[i] for loss in losses])
        median = np.partition(labels, labels.size // 2)[labels.size // 2]
        if abs(median) > _FAR * np.abs(labels - median).max():
            found[i] = median
    return found
