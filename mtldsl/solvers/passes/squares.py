"""Squares that touch a smooth loss of rows that are elsewhere, from above, as a loss of a few rows here."""

from __future__ import annotations

import numpy as np

from mtldsl.atoms.losses.squares import SquaredLoss
from mtldsl.compile.normal_form import Blocks, LossTerm
from mtldsl.compile.terms.distributed import DistributedTerm, RowDual
from mtldsl.compile.terms.moments import moments_of

__all__ = ["Squares"]


class Squares:
    """a_i/2 ||X_i (w - y) + (b - b_y)||^2 + <grad, (w, b) - (y, b_y)> of every task, with b at its best for w: a_i/2 ||R_i w - target_i||^2 + constant."""

    def __init__(self, loss: LossTerm):
        assert isinstance(loss, DistributedTerm)
        self.loss, self.moments = loss, moments_of(loss.tasks)
        self.steepest = loss.atom.curvature * loss.coefficients  # (m,)
        m = loss.tasks.n_tasks
        self.frame = self.moments.frame(bool(loss.intercepts), loss.tasks)
        self.totals = np.array([self.moments.gram(i)[-1, -1] for i in range(m)])
        self.centres = np.stack([self.moments.centre(i) for i in range(m)], axis=1)  # (d, m)

    def at(self, y: Blocks, adjoint: np.ndarray, sums: np.ndarray, steep: np.ndarray) -> LossTerm:
        """steep (m,) are the a_i; adjoint (d, m) and sums (m,) the gradient by weights and by intercepts."""
        if self.loss.intercepts:
            adjoint = adjoint - self.centres * sums
        tasks = self.frame.with_gradient(self.loss.map.forward(y), adjoint / steep)
        return LossTerm(SquaredLoss(), steep, tasks, self.loss.map, (), self.loss.typed)

    def intercepts(self, x: Blocks, y: Blocks, sums: np.ndarray, steep: np.ndarray) -> Blocks:
        """The best ones beside new weights."""
        moved = np.einsum("dm,dm->m", self.centres, self.loss.map.forward(x) - self.loss.map.forward(y))
        step = -sums / (steep * self.totals) - moved
        return {name: y[name] + step[None, :] for name in self.loss.intercepts}

    def curvature(self, y: Blocks, u: RowDual, old: Blocks, old_u: RowDual) -> float:
        """The most over the tasks of the curvature seen between two points, relative to the steepest."""
        D = self.loss.map.forward(y) - self.loss.map.forward(old)
        b = np.zeros(D.shape[1])
        for name in self.loss.intercepts:
            b = b + (y[name] - old[name])[0]
        rise = np.einsum("dm,dm->m", D, u.adjoint - old_u.adjoint) + b * (
            self.loss.sums(u) - self.loss.sums(old_u)
        )
        most = self.steepest * self.moments.squares_along(D, b)
        shares = np.divide(rise, most, out=np.zeros_like(rise), where=most > 0.0)
        return float(shares.max(initial=0.0))
