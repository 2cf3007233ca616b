"""The regularizer's copy where it is a sum over rows: absolute values, lengths of rows, squares, W >= 0."""

from __future__ import annotations

import numpy as np

from mtldsl.solvers.rows.penalty import RowPenalty

__all__ = ["RowPart"]


class RowPart:
    """The prox of a `RowPenalty` in the metric penalties * unit^2, and its derivative.

    With t = V + P / M, the new multipliers are M (t - prox(t)). I - D is diagonal, but for -scales_r vectors_r vectors_r^T on every row
    that the l21 norm leaves alive.
    """

    def __init__(self, penalty: RowPenalty, unit: np.ndarray):
        self.penalty, self.unit = penalty, unit
        self.l1 = penalty.l1.T
        self.is_separable = not penalty.l21.any()

    def on(self, ids: np.ndarray) -> RowPart:
        p = self.penalty
        return RowPart(RowPenalty(p.l1[ids], p.l21, p.ridge, p.nonneg), self.unit)

    def values(self, v: np.ndarray) -> np.ndarray:
        """(m,) the penalty of every task, where they are not tied."""
        return (self.l1 * np.abs(v) + 0.5 * self.penalty.ridge[:, None] * v**2).sum(axis=0)

    def dual(self, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(t, g) where tasks are not tied: t_i the largest scale <= 1 that brings task i's column of Z into the conjugate's domain, and
        the conjugate at t_i Z_i."""
        size, ridge = (Z if self.penalty.nonneg else np.abs(Z)), self.penalty.ridge[:, None]
        ratio = np.where((size > self.l1) & (ridge == 0), self.l1 / np.where(size > self.l1, size, 1.0), 1.0)
        t = ratio.min(axis=0, initial=1.0)
        over = np.maximum(t * size - self.l1, 0.0)
        return t, (0.5 * over**2 / np.where(ridge > 0, ridge, 1.0) * (ridge > 0)).sum(axis=0)

    def metric(self, penalties: np.ndarray) -> np.ndarray:
        """(d, m) M."""
        return self.unit[:, None] ** 2 * penalties

    def prox(self, V: np.ndarray, M: np.ndarray) -> np.ndarray:
        threshold = self.l1 / M
        q = np.maximum(V - threshold, 0.0) if self.penalty.nonneg else V - np.clip(V, -threshold, threshold)
        self.threshold, self.alive = threshold, q != 0.0
        self.grip = np.zeros(len(V))
        self.shrinkage = 1.0 / (1.0 + self.penalty.ridge[:, None] / M)
        if self.is_separable:
            return q * self.shrinkage
        norms = np.sqrt(np.einsum("ij,ij->i", q, q))
        reach = self.penalty.l21 / M[:, 0]
        dead = norms <= reach
        self.grip = np.where(dead, 1.0, reach / np.where(dead, 1.0, norms))
        self.directions = q / np.where(dead, 1.0, norms)[:, None]
        self.rows = np.flatnonzero(~dead & (reach > 0))
        return q * ((1.0 - self.grip)[:, None] * self.shrinkage)

    def diagonal(self, M: np.ndarray) -> np.ndarray:
        """(d, m) of M (I - D), the part that couples tasks left out."""
        return M * (1.0 - self.alive * self.shrinkage * (1.0 - self.grip)[:, None])

    def coupling(self, M: np.ndarray):
        """(rows, vectors (k, m), scales (k,)) of what is taken off the diagonal; None where tasks are not tied."""
        if self.is_separable or not len(self.rows):
            return None
        rows = self.rows
        return rows, self.directions[rows], M[rows, 0] * self.shrinkage[rows, 0] * self.grip[rows]
