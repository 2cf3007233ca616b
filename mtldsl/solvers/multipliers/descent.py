"""Descent by the method of multipliers, with one function of the spectrum as it is: near a solution as fast as for convex models.

Under a penalty M that is larger than its weak convexity the function's Moreau envelope is differentiable, so that the augmented Lagrangian
is too, and Newton's method finds a stationary point of it; then the multipliers step. Far from a solution nothing is sure: whoever descends
has another method that is.

Source: Rockafellar, "Convergence of augmented Lagrangian methods in extensions beyond nonlinear programming", Math. Program. 199 (2023);
Hang and Sarabi, "Local convergence analysis of augmented Lagrangian methods for piecewise linear-quadratic composite optimization problems",
SIAM J. Optim. 31 (2021).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mtldsl.compile.normal_form import NormalForm
from mtldsl.solvers.multipliers.newton import State
from mtldsl.solvers.multipliers.outer import Outer
from mtldsl.solvers.multipliers.run import Run
from mtldsl.solvers.multipliers.tilted import Concave, ConcavePart, relaxed
from mtldsl.solvers.solver import Point, Watch

__all__ = ["NEAR", "descend"]

#: What is missing, as a multiple of tol, from which on a point is worth a look; below the share of tol a look that is not content is the last.
NEAR, _SETTLED = 30.0, 1e-2

#: A descent is over after so many outer steps that neither halve what is missing nor lower the objective by the share.
_PATIENCE, _LOWER = 12, 1e-5


def descend(
    form: NormalForm,
    concave: Concave,
    start: Point,
    *,
    tol: float,
    taken: int,
    limit: int,
    watch: Watch,
    at: State | None = None,
) -> tuple[Point | None, int]:
    """(the last point where the run ends with it, the Newton steps taken so far), from `start` or the state that belongs to it.

    Not beyond `limit` Newton steps, of which `taken` are.
    """
    run = Run(relaxed(form, concave), tol, start)
    run.form = form
    part = run.part = ConcavePart(form.functions, run.designs.unit())
    at = run.outer.at if at is None else at
    outer = run.outer = Outer(run.designs, run.scores, part, at)
    least = concave.least_penalty(at.v, at.P) / part.unit[0] ** 2
    if not np.isfinite(least):
        return None, taken
    best, lowest, since = np.inf, np.inf, 0
    while since < _PATIENCE and taken < limit:
        p = outer.penalties
        outer.penalties = replace(p, regularizer=np.maximum(p.regularizer, least))
        taken += max(outer.step(limit - taken), 1)
        missing = float(outer.residuals.worst.max())
        point = run._point(outer, taken)
        if watch.expired:
            watch(point)
            return point, taken
        if missing <= NEAR * tol:
            if watch(point):
                return point, taken
            if missing <= _SETTLED * tol:
                break
        value = form.value(point.blocks)
        since += 1
        if missing < 0.5 * best:
            best, since = missing, 0
        if value < lowest - _LOWER * abs(lowest) and form.violation(point.blocks) <= tol:
            lowest, since = value, 0
    return None, taken
