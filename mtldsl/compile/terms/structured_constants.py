"""The best constant of a structured hinge: one convex, piecewise linear function of one number in every task."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtldsl.compile.terms.structured import StructuredTerm

__all__ = ["Lowest", "lowest_constants"]

#: Brackets grow fourfold, from 1 on, so many times at most; kinks are found after a few meetings of two planes.
_GROWTHS, _MEETINGS = 30, 100

#: A plane that is no higher than this part of the heights is the one that meets there.
_ROUNDING = 1e-13


class Lowest(NamedTuple):
    """constants and values (m,), coefficients included; u (N,): a subgradient there whose sum over every task is zero, where one is found;
    met (m,): whether it was."""

    constants: np.ndarray
    values: np.ndarray
    u: np.ndarray
    met: np.ndarray


def lowest_constants(term: StructuredTerm, z: np.ndarray, near=None, step: float = 1.0) -> Lowest:
    """argmin over b of the hinge at z + b, task by task: where the planes from both sides meet, their mixture is level.

    near : (m,) where to look first (None: at zero); step: how far to go from there before going fourfold.
    """
    m = term.tasks.n_tasks
    found = Lowest(np.zeros(m), np.zeros(m), np.zeros(z.size), np.zeros(m, dtype=bool))
    for i, (rows, c, metric, y, classes) in enumerate(term.tasks_apart):

        def look(b, own=z[rows], metric=metric, y=y, classes=classes):
            plane = metric.most_violated(own + b, y, classes)
            slope = plane.gradient(y)
            return b, plane.value, float(slope.sum()), slope

        b, value, slope, met = _lowest(look, 0.0 if near is None else float(near[i]), step)
        found.constants[i], found.values[i], found.u[rows], found.met[i] = b, c * value, c * slope, met
    return found


def _lowest(look, start: float, step: float):
    middle = look(start)
    if abs(middle[2]) <= _ROUNDING * np.abs(middle[3]).sum():  # rankings, too
        return start, middle[1], middle[3], True
    side, far = (-1.0 if middle[2] > 0 else 1.0), middle
    near = middle
    for k in range(_GROWTHS):
        far = look(start + side * step * 4.0**k)
        if far[2] * near[2] <= 0:
            break
        near = far
    else:  # the constant may grow without end
        return far[0], far[1], far[3], False
    left, right = (far, near) if side < 0 else (near, far)
    at = left
    for _ in range(_MEETINGS):
        meeting = (left[1] - right[1] + right[2] * right[0] - left[2] * left[0]) / (right[2] - left[2])
        height = left[1] + left[2] * (meeting - left[0])
        at = look(meeting)
        if at[2] == 0.0 or at[1] <= height + _ROUNDING * max(abs(height), abs(left[2] * meeting), 1e-300):
            break
        left, right = (at, right) if at[2] < 0 else (left, at)
    if at[2] == 0.0:
        return at[0], at[1], at[3], True
    share = right[2] / (right[2] - left[2])
    return at[0], at[1], share * left[3] + (1.0 - share) * right[3], True
