"""Where a path goes on to: the start of the next solve, on the line through the last two solutions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.solution.solution import Solution

__all__ = ["Start", "ahead"]

#: a step further ahead than so many of the last one is guessed too roughly to help; so is one to less than half the value or more than
#: twice (measured: logistic losses still gain by it, those with kinks in their slopes lose)
_FARTHEST, _COARSEST = 2.0, math.log(2.0)


@dataclass(frozen=True)
class Start:
    """What `solve(warm_start=...)` reads of a solution."""

    blocks: Blocks
    state: object


def ahead(
    form: NormalForm, earlier: tuple[float, Solution], last: tuple[float, Solution], value: float
) -> Solution | Start:
    """Weights for `value` on the line through those of two values before it, in the logarithm of the value; zeros stay zero.

    The last solution itself where that line means nothing: values that turn back or are zero, a model that is not convex or has
    constraints, which the line may leave, and a solver with a state of its own, which it goes on from.
    """
    (a, one), (b, two) = earlier, last
    if not form.is_convex or form.constraints or min(a, b, value) <= 0.0 or a == b:
        return two
    point: Any = two.state  # a Point
    if point is None or point.state:
        return two
    step = math.log(value / b)
    t = step / math.log(b / a)
    if not 0.0 < t <= _FARTHEST or abs(step) > _COARSEST:
        return two
    blocks = {name: np.where(B != 0.0, B + t * (B - one.blocks[name]), 0.0) for name, B in two.blocks.items()}
    return Start(blocks, point)
