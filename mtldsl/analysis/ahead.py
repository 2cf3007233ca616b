"""Where a path goes on to: the start of the next solve, on the curve through the last solutions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.solution.solution import Solution

__all__ = ["Past", "Start", "ahead"]

#: a step further ahead than so many of the last one is guessed too roughly to help; so is one to less than half the value or more than
#: twice (measured: logistic losses still gain by it, those with kinks in their slopes lose)
_FARTHEST, _COARSEST = 2.0, math.log(2.0)
#: the same of parabolas: over one value that is left out
_FARTHEST_OF_SMOOTH = 2.1
#: points that a parabola goes through, and those between them
_LOOKS_BACK = 5


@dataclass(frozen=True)
class Start:
    """What `solve(warm_start=...)` reads of a solution."""

    blocks: Blocks
    state: object


@dataclass(frozen=True)
class Past:
    """The weights at values that a path has been at, the last ones: not all else that solutions hold."""

    points: tuple[tuple[float, Blocks, bool], ...] = ()

    def then(self, value: float, solution: Solution) -> Past:
        """With one more, and whether its solver moved at all from where it began."""
        return Past((*self.points[1 - _LOOKS_BACK :], (value, solution.blocks, solution.iterations > 0)))


def ahead(form: NormalForm, past: Past, last: Solution | None, value: float) -> Solution | Start | None:
    """Weights for `value` on the curve through those of the last values before it, in the logarithm of the value; zeros stay zero.

    A parabola through three where the losses have two derivatives, else a line through two. (Measured on weights that a norm holds at
    zero too: four fifths to all of the line's iterations.)
    The last solution itself where that curve means nothing: values that turn back or are zero, a model that is not convex or has
    constraints, which the curve may leave, and a solver with a state of its own, which it goes on from.
    """
    if last is None or len(past.points) < 2:
        return last
    (a, _, _), (b, _, _) = past.points[-2:]
    if not form.is_convex or form.constraints or min(a, b, value) <= 0.0 or a == b:
        return last
    point: Any = last.state  # a Point
    if point is None or point.state:
        return last
    step = math.log(value / b)
    if not 0.0 < step / math.log(b / a) <= _FARTHEST or abs(step) > _COARSEST:
        return last
    known = _of_smooth(past, value) if _is_smooth(form) else None
    known = past.points[-2:] if known is None else known
    shares = _shares([math.log(each / value) for each, _, _ in known])
    blocks = {}
    for name, B in last.blocks.items():
        moved = sum(share * one[name] for share, (_, one, _) in zip(shares, known, strict=True))
        blocks[name] = np.where(B != 0.0, moved, 0.0)
    return Start(blocks, point)


def _is_smooth(form: NormalForm) -> bool:
    """Whether no loss has a kink, nor its slope one."""
    atoms = [loss.atom for loss in form.losses]
    return all(atom.smooth and (atom.quadratic is not None or not atom.piecewise_quadratic) for atom in atoms)


def _of_smooth(past: Past, value: float) -> tuple[tuple[float, Blocks, bool], ...] | None:
    """The last three that a solver has moved: a start that was good enough as it was is off by more, which a parabola makes three times of.
    None where there are none, or no parabola leads so far."""
    moved = tuple(one for one in past.points if one[2])[-3:]
    places = [*(each for each, _, _ in moved), value]
    if len(moved) < 3 or min(places) <= 0.0:
        return None
    steps = np.diff(np.log(places))
    is_near = (steps * steps[-1] > 0.0).all() and np.abs(steps).max() <= _FARTHEST_OF_SMOOTH * np.abs(
        steps
    ).min()
    return moved if is_near else None


def _shares(at: list[float]) -> list[float]:
    """Lagrange's, of the polynomial through values at these places, at zero."""
    return [math.prod(-other / (one - other) for other in at if other is not one) for one in at]
