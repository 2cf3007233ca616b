"""The regularizer's copy where it is a sum over rows: absolute values, lengths of rows, squares, W >= 0."""

from __future__ import annotations

import numpy as np

from mtldsl.solvers.rows.penalty import RowPenalty

__all__ = ["RidgePart", "RowPart"]


class RowPart:
    """A `RowPenalty` R in the metric M = penalties * unit^2.

    With t = W + P / M the new multipliers are Q = M (t - prox(t)), and M (I - D), D the derivative of the prox there, is diagonal, but for
    -scales_r vectors_r vectors_r^T on every row that the l21 norm leaves alive. Derivatives are those at the last `multipliers`.
    """

    has_copy = True  # of the weights, by which these are told apart from what the penalty makes of them

    def __init__(self, penalty: RowPenalty, unit: np.ndarray):
        if len(penalty.l1) == 1:  # of one task, the length of a row is an absolute value
            penalty = RowPenalty(
                penalty.l1 + penalty.l21, np.zeros_like(penalty.l21), penalty.ridge, penalty.nonneg
            )
        self.penalty, self.unit = penalty, unit
        self.l1, self.ridge = np.ascontiguousarray(penalty.l1.T), penalty.ridge[:, None]
        self.is_separable = not penalty.l21.any()
        self.has_ridge = bool(penalty.ridge.any())

    def on(self, ids: np.ndarray) -> RowPart:
        """The part of some tasks alone, where they are not tied."""
        p = self.penalty
        return RowPart(RowPenalty(p.l1[ids], p.l21, p.ridge, p.nonneg), self.unit)

    def of_task(self, i: int, rows=None) -> RowPart:
        """The part of one task, perhaps of some rows alone, where tasks are not tied."""
        penalty = self.penalty.of_task(i)
        return RowPart(penalty, self.unit) if rows is None else RowPart(penalty.on(rows), self.unit[rows])

    def excess(self, Z: np.ndarray) -> np.ndarray:
        """(d, m) entries of Z as multiples of what keeps a weight at zero: infinite where nothing does."""
        size = np.maximum(Z, 0.0) if self.penalty.nonneg else np.abs(Z)
        return np.divide(size, self.l1, out=np.full(size.shape, np.inf), where=self.l1 > 0.0)

    def values(self, v: np.ndarray) -> np.ndarray:
        """(m,) the penalty of every task, where they are not tied."""
        return (self.l1 * np.abs(v) + 0.5 * self.ridge * v**2).sum(axis=0)

    def dual(self, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(t, g) where tasks are not tied: t_i the largest scale <= 1 that brings task i's column of Z into the conjugate's domain, and
        the conjugate at t_i Z_i."""
        size = Z if self.penalty.nonneg else np.abs(Z)
        ratio = np.where(
            (size > self.l1) & (self.ridge == 0), self.l1 / np.where(size > self.l1, size, 1.0), 1.0
        )
        t = ratio.min(axis=0, initial=1.0)
        if not self.has_ridge:
            return t, np.zeros_like(t)
        over = np.maximum(t * size - self.l1, 0.0)
        return t, (0.5 * over**2 / np.where(self.ridge > 0, self.ridge, 1.0) * (self.ridge > 0)).sum(axis=0)

    def metric(self, penalties: np.ndarray) -> np.ndarray:
        """(d, m) M."""
        return self.unit[:, None] ** 2 * penalties

    def multipliers(self, W: np.ndarray, P: np.ndarray, M: np.ndarray) -> np.ndarray:
        """Q."""
        at = M * W
        at += P
        low = -np.inf if self.penalty.nonneg else -self.l1
        Q = np.minimum(np.maximum(at, low), self.l1)
        self.left = left = at - Q
        if not self.is_separable:
            norms = np.sqrt(np.einsum("ij,ij->i", left, left))
            dead = norms <= self.penalty.l21
            self.norms = np.where(dead, 1.0, norms)
            self.grip = np.where(dead, 1.0, self.penalty.l21 / self.norms)
            self.rows = np.flatnonzero(~dead & (self.grip > 0))
            Q += self.grip[:, None] * left
        if self.has_ridge:  # what is left is M / (M + ridge) of it
            Q = at - (at - Q) * (M / (M + self.ridge))
        return Q

    def copy(self, W: np.ndarray, P: np.ndarray, Q: np.ndarray, M: np.ndarray) -> np.ndarray:
        """prox(t), with exact zeros."""
        v = W + (P - Q) / M
        v[self.left == 0.0] = 0.0
        if not self.is_separable:
            v[self.grip == 1.0] = 0.0
        return np.maximum(v, 0.0) if self.penalty.nonneg else v

    def diagonal(self, M: np.ndarray) -> np.ndarray:
        """(d, m) of M (I - D), what ties tasks left out."""
        free = np.asarray(self.left != 0.0, float)
        if self.has_ridge:
            free *= M / (M + self.ridge)
        if not self.is_separable:
            free *= (1.0 - self.grip)[:, None]
        return M * (1.0 - free)

    def coupling(self, M: np.ndarray):
        """(rows, vectors (k, m), scales (k,)) of what is taken off the diagonal; None where tasks are not tied."""
        if self.is_separable or not len(self.rows):
            return None
        rows = self.rows
        scales = M[rows, 0] * self.grip[rows]
        if self.has_ridge:
            scales = scales * M[rows, 0] / (M[rows, 0] + self.penalty.ridge[rows])
        return rows, self.left[rows] / self.norms[rows, None], scales


class RidgePart(RowPart):
    """Squares alone, one weight for all entries: smooth, so that they need no copy of the weights: Q = ridge W, in the metric of the ridge."""

    has_copy = False

    def __init__(self, penalty: RowPenalty, unit: np.ndarray):
        super().__init__(penalty, np.ones(len(unit)))

    def on(self, ids: np.ndarray) -> RidgePart:
        p = self.penalty
        return RidgePart(RowPenalty(p.l1[ids], p.l21, p.ridge, p.nonneg), self.unit)

    def metric(self, penalties: np.ndarray) -> np.ndarray:
        return np.repeat(self.ridge, len(penalties), axis=1)

    def multipliers(self, W: np.ndarray, P: np.ndarray, M: np.ndarray) -> np.ndarray:
        return self.ridge * W

    def copy(self, W: np.ndarray, P: np.ndarray, Q: np.ndarray, M: np.ndarray) -> np.ndarray:
        return W.copy()

    def diagonal(self, M: np.ndarray) -> np.ndarray:
        return M
