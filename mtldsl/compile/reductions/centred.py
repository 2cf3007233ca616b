"""Labels and columns far from zero, moved there: with an intercept the model is the same, and rounding no longer hides the signal.

A loss of residuals z - y takes y - c with the intercept b - c for y with b. Labels of 1e12 + signal (a time stamp, an amount of money
in cents) leave four digits of the signal in z and y, and all of them in z - c and y - c: the subtraction is exact. Any loss takes
X - 1 a^T with the intercept b + a^T w for X with b: of seconds since 1970 what differs stays, and a constant column becomes zeros.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mtldsl.compile.normal_form import Blocks, LinearMap, LossTerm, NormalForm
from mtldsl.compile.reductions.reduction import Point, Promise
from mtldsl.compile.terms.few_rows import exact_sums

__all__ = ["Centred", "Moves", "Shift", "moved"]

#: a median this many times as large as the labels are wide is taken off them
_FAR = 1e4


@dataclass(frozen=True, eq=False)
class Shift:
    """b = b' + centre - a^T W on the rows `columns` of W = map(x): b' the intercept beside what was moved."""

    centre: np.ndarray  # (1, m)
    map: LinearMap
    columns: np.ndarray  # (k,)
    distances: np.ndarray  # (k, m), a of every task

    def applied(self, blocks: Blocks, intercept: np.ndarray, sign: float) -> np.ndarray:
        """The intercept (1, m) with `sign` times the shift added, rounded once."""
        shift = sign * self.centre
        if not self.columns.size:
            return intercept + shift
        W = self.map.forward(blocks)[self.columns]
        return exact_sums(-sign * self.distances, W, np.vstack([intercept, shift]))[None, :]


#: {intercept: by what it moves}
Moves = Mapping[str, Shift]


class Centred:
    """Labels far from zero lose the median of their task, columns their mean, and intercepts take it. A form that has none stays as it is."""

    promise: ClassVar[Promise] = Promise.EXACT

    def accepts(self, form: NormalForm) -> str | None:
        return None if _moves(form) else "beside an intercept of its own, nothing lies far from zero"

    def apply(self, form: NormalForm) -> tuple[NormalForm, Moves]:
        """The recipe is {intercept: by what it moves}."""
        free = _free_intercepts(form)
        known = form.remembered.get(Centred)  # by all values of a path
        if known is None or known[0] != form.losses or known[1] != free:
            moves = _moves(form)
            near = _near_zero(form.losses, moves) if moves else form.losses
            known = form.remembered[Centred] = (form.losses, free, near, moves, {})
        *_, near, moves, remembered = known
        if not moves:
            return form, {}
        easier = replace(form, losses=near)
        easier.share(remembered)
        return easier, moves

    def invert(self, point: Point, recipe: Moves) -> Point:
        """Residuals are the same, and so are all multipliers."""
        return replace(point, blocks=moved(point.blocks, recipe))


def moved(blocks: Blocks, by: Moves, sign: float = 1.0) -> Blocks:
    """A point with its intercepts moved; `sign` -1: back."""
    return blocks | {name: shift.applied(blocks, blocks[name], sign) for name, shift in by.items()}


def _free_intercepts(form: NormalForm) -> set[str]:
    """Those that no function sees."""
    names = {name for loss in form.losses for name in loss.intercepts}
    return names - {name for f in form.functions for name in f.map.blocks}


def _moves(form: NormalForm) -> dict[str, Shift]:
    """Find what lies far from zero beside each free intercept that stands alone in its losses."""
    found = {}
    for name in _free_intercepts(form):
        sharing = [loss for loss in form.losses if name in loss.intercepts]
        if any(len(loss.intercepts) > 1 or not loss.tasks.in_memory for loss in sharing):
            continue
        first = sharing[0]
        far = first.tasks.near_zero if all(_has_inputs_of(first, loss) for loss in sharing) else None
        columns, distances = (np.zeros(0, int), np.zeros((0, 0))) if far is None else far[1:]
        centre = np.zeros(first.tasks.n_tasks)
        if all(loss.atom.of_residuals for loss in sharing):
            centre = _centres(sharing)
        if centre.any() or columns.size:
            found[name] = Shift(centre[None, :], first.map, columns, distances)
    return found


def _near_zero(losses: Sequence[LossTerm], moves: Moves) -> tuple[LossTerm, ...]:
    """The losses with labels and columns moved; those of the same tasks keep them in common."""
    known: dict = {}

    def near(loss: LossTerm) -> LossTerm:
        shift = moves.get(loss.intercepts[0]) if loss.intercepts else None
        if shift is None:
            return loss
        key = loss.intercepts[0], id(loss.tasks)
        if key not in known:
            found = loss.tasks.near_zero if shift.columns.size else None
            known[key] = loss.tasks if found is None else found[0]
            if shift.centre.any():
                centre = np.repeat(shift.centre[0], loss.tasks.counts)
                known[key] = known[key].with_targets(loss.tasks.targets - centre)
        return replace(loss, tasks=known[key])

    return tuple(map(near, losses))


def _has_inputs_of(first: LossTerm, loss: LossTerm) -> bool:
    """Tell whether the same weights meet the same inputs in both."""
    same = loss.map is first.map or loss.map.identity_of == first.map.identity_of is not None
    return same and loss.tasks is first.tasks


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
