"""The second-order model through the predictions, for sparse inputs of several tasks: its slopes V = u + D (X dW) are kept, not Gram matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtldsl.solvers.rows.extrapolation import History, extrapolate
from mtldsl.solvers.rows.penalty import RowPenalty
from mtldsl.solvers.smooth.designs import SparseColumns

__all__ = ["ColumnModel"]

_SWEEPS = 5  # over rows that are not zero, before all are swept again; from one extrapolation to the next
_MOST_ROUNDS = 20
_LEAST = 1e-12  # of a column's curvature: below, an intercept explains it


class ColumnModel:
    """W (m, p) and, as `carried`, V: (n, m) of one matrix for all tasks, else flat. The intercepts' steps are not written into V, and
    `sums` adds it up task by task.
    """

    def __init__(
        self, columns: SparseColumns, penalty: RowPenalty, W, slope, curvature, border, totals, sums
    ):
        from mtldsl.solvers.kernels import weighted_descent as kernels

        self.columns, self.penalty, self.W = columns, penalty, W.copy()
        X = columns.csr
        self.is_table = columns.is_shared
        diagonal = columns.squared_pull(curvature)  # which makes as much beside it as the arrays below are
        self.D = self._own_layout(curvature)
        self.carried = self._own_layout(slope)
        self.border, self.totals, self.sums, self.centred = border, totals, sums.copy(), bool(border.any())
        self.curvature = np.maximum(diagonal - border**2 / totals[:, None], 0.0)
        self.curvature[self.curvature <= _LEAST * diagonal] = 0.0
        self.kernel: Any
        self.matrix: tuple = (X.indptr, X.indices, X.data)
        if self.is_table:
            self.kernel = kernels.sweep_columns_shared
        else:
            self.kernel, self.matrix = kernels.sweep_columns_separate, (*self.matrix, columns.task_of)

    def _own_layout(self, flat) -> np.ndarray:
        return np.ascontiguousarray(flat.reshape(len(self.W), -1).T) if self.is_table else flat.copy()

    def sweep(self, rows, goal: float) -> float:
        p = self.penalty
        return self.kernel(
            rows, *self.matrix, self.D, self.carried, self.W, self.border, self.curvature, self.totals, self.sums,
            p.l1, p.l21, p.ridge, p.nonneg, goal,
        )  # fmt: skip

    def objective(self, W, carried) -> float:
        """But for a constant."""
        quadratic = 0.5 * float(np.sum(np.square(carried) / self.D))
        if self.centred:
            quadratic -= 0.5 * float(np.sum(np.square(self._totalled(carried)) / self.totals))
        return quadratic + self.penalty.value(W)

    def carried_at(self, W) -> np.ndarray:
        """V of other weights: it is affine in them."""
        moved = self._own_layout(self.columns.forward(W - self.W))
        moved *= self.D
        moved += self.carried
        return moved

    def _totalled(self, carried) -> np.ndarray:
        return carried.sum(axis=0) if self.is_table else np.add.reduceat(carried, self.columns.offsets[:-1])

    def descend(self, precision: float, goal: float) -> None:
        """Until a sweep over all rows brings precision^2 of what the first did, or no slope is off by more than `goal` of its l1."""
        every, first = np.arange(self.W.shape[1]), None
        may_extrapolate = (
            self.carried.size <= self.matrix[0][-1]
        )  # else the iterates to remember outgrow the inputs
        for _ in range(_MOST_ROUNDS):
            moved = self.sweep(every, goal)
            first = moved if first is None else first
            if moved <= precision**2 * first:
                return
            rows = np.flatnonzero(self.W.any(axis=0))
            history = History(self, _SWEEPS) if may_extrapolate else None
            if history is not None:
                history.add(self)
            for _ in range(_SWEEPS):  # what is zero mostly stays so
                moved = self.sweep(rows, goal)
                if history is not None:
                    history.add(self)
                if moved <= 0.3 * precision**2 * first:
                    break
            else:
                if history is not None:
                    self._extrapolate(history)

    def _extrapolate(self, history: History) -> None:
        extrapolate(self, history)
        if self.centred:
            self.sums = self._totalled(self.carried)
