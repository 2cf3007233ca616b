"""Outer steps of small tasks beside a ridge, one compiled call a task: numpy's calls would cost more there than what they compute."""

from __future__ import annotations

import numpy as np

from mtldsl.solvers.multipliers.designs import Designs
from mtldsl.solvers.multipliers.row_part import RidgePart
from mtldsl.solvers.multipliers.scores import KinkedScores

__all__ = ["SmallTasks"]

#: entries of a task's inputs up to which a pass for each task costs no more than one for all tasks together: they stay in the processor's cache
_SMALL = 1 << 18
#: features from which on factorizations are LAPACK's
_FEW = 200


class SmallTasks:
    """`Newton.minimize` for tasks that `takes` lets through: the same steps."""

    def __init__(self, designs: Designs, scores: KinkedScores, part: RidgePart):
        self.designs, self.scores, self.part = designs, scores, part
        d, n = len(part.unit), int(designs.counts.max())
        side = max(min(n, d), d) + 1
        self.room = (
            np.empty((n, d)), np.empty(n, np.int64), np.empty((side, side)), np.empty(side), np.empty(side),
            *(np.empty(d) for _ in range(3)), np.empty(n),
        )  # fmt: skip
        self.nowhere = np.zeros(d)

    @staticmethod
    def takes(designs: Designs, scores, part) -> bool:
        """Whether they are small and dense, and none of their rows is left out."""
        if not (isinstance(scores, KinkedScores) and isinstance(part, RidgePart)):
            return False
        if designs.is_sparse or designs.rows_of is not None or not 0 < len(part.unit) <= _FEW:
            return False
        every = [designs.X] if designs.is_shared else designs.inputs
        return all(
            type(X) is np.ndarray and X.dtype == np.float64 and X.flags.c_contiguous and X.size <= _SMALL
            for X in every
        )

    def minimize(self, at, penalties, y, pull, settings) -> tuple | None:
        """(W, b, z, y, steps (m,)); None where rounding made a system indefinite.

        y, pull  : the multipliers at the start of the step, flat, and X^T y (d, m)
        settings : (most steps, looks of a line search, accuracy, flatness, share of the proximal term that intercepts feel)
        """
        from mtldsl.solvers.kernels.kinked_newton import minimize_kinked

        designs, scores = self.designs, self.scores
        most, searches, accuracy, flat, of_intercepts = settings
        W, P, pull = (np.array(each.T, order="C") for each in (at.W, at.P, pull))
        b, z, y = at.b.copy(), at.z.copy(), y.copy()
        ridge, steps = float(self.part.ridge[0, 0]), np.zeros(designs.n_tasks, int)
        for k in range(designs.n_tasks):
            rows = slice(int(designs.offsets[k]), int(designs.offsets[k + 1]))
            mean = self.nowhere if designs.means is None else np.ascontiguousarray(designs.means[:, k])
            proximal = float(penalties.proximal[k])
            of_intercept = of_intercepts * proximal if designs.has_intercepts else -1.0
            F, held, H, ones, t, g, dW, W0, change = self.room
            b[k], steps[k], solved = minimize_kinked(
                designs.inputs_of(k), mean, z[rows], at.u[rows], y[rows], scores.kink[rows], scores.low[rows], scores.high[rows],
                float(penalties.loss[k]), ridge, proximal, of_intercept, W[k], float(b[k]), P[k], pull[k], most, searches, accuracy, flat,
                F, held, H, ones, t, g, dW, W0, change[: rows.stop - rows.start],
            )  # fmt: skip
            if not solved:
                return None
        return np.ascontiguousarray(W.T), b, z, y, steps
