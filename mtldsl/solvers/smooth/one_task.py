"""Columns of sparse inputs for one task, where they lie among all, and the second-order model through its predictions."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.solvers.rows.extrapolation import History, extrapolate
from mtldsl.solvers.rows.penalty import RowPenalty
from mtldsl.tasks.by_features import ByFeatures

__all__ = ["ColumnsOfTask", "TaskModel"]

_SWEEPS = 5  # over rows that are not zero, before all are swept again; from one extrapolation to the next
_MOST = 20  # rounds
_FAR, _COARSE = (
    0.1,
    0.2,
)  # from such a precision on this one will do: a sweep costs as much as all else of a step
_LEAST = 1e-12  # of a column's curvature: below, an intercept explains it


class ColumnsOfTask:
    """Features `rows` of one sparse X (n, d), given as its transpose."""

    def __init__(self, rows, transposed: ByFeatures | sparse.csr_array):
        self.rows, self.transposed, self.n, self.is_shared = rows, transposed, transposed.shape[1], True
        self.holds_all = len(rows) == transposed.shape[0]

    @cached_property
    def arrays(self) -> tuple[Any, Any, Any, Any]:
        """(where the columns are, CSC arrays)."""
        Xt = self.transposed
        csr, places = Xt.places(self.rows) if isinstance(Xt, ByFeatures) else (Xt, self.rows)
        # a sign would be asked for at every entry
        return places, csr.indptr, csr.indices.view(f"u{csr.indices.itemsize}"), csr.data

    def forward(self, W) -> np.ndarray:
        if len(self.rows) == 0:
            return np.zeros(self.n)
        return (self.transposed if self.holds_all else self.transposed[self.rows]).T @ W[0]

    def pull(self, u) -> np.ndarray:
        from mtldsl.solvers.kernels.column_newton import pull_of_columns

        if self.holds_all:
            return (self.transposed @ u)[None]
        out = np.empty((1, len(self.rows)))
        pull_of_columns(*self.arrays, u, out[0])
        return out

    def weighed(self, D) -> tuple[np.ndarray, np.ndarray]:
        """(X^T D, the diagonal of X^T diag(D) X)."""
        from mtldsl.solvers.kernels.column_newton import weigh_columns

        border, diagonal = np.empty(len(self.rows)), np.empty(len(self.rows))
        weigh_columns(*self.arrays, D, border, diagonal)
        return border, diagonal

    def squared_pull(self, D) -> np.ndarray:
        """`pull` of columns with all entries squared."""
        if self.holds_all and isinstance(self.transposed, ByFeatures):
            return self.transposed.squared_products(D)[None]
        return self.weighed(D)[1][None]


class TaskModel:
    """W (1, p) and, as `carried`, V = D times the step of the predictions without the intercept's."""

    def __init__(
        self, columns: ColumnsOfTask, penalty: RowPenalty, W, gradient, D, total: float, slopes: float
    ):
        """total, slopes : sums of D and of the loss's slopes, beside an intercept; total = 0 where there is none."""
        self.columns, self.penalty, self.D = columns, penalty, D
        self.start, self.W, self.carried = W, W.copy(), np.zeros(len(D))
        self.gradient, self.total, self.slopes = gradient[0], total, slopes
        self.border, diagonal = columns.weighed(D)
        if total > 0.0:
            self.curvature = diagonal - self.border**2 / total
            self.curvature[self.curvature <= _LEAST * diagonal] = 0.0
        else:
            self.total, self.curvature = 1.0, diagonal
            self.border[:] = 0.0
        self.level = penalty.l1[0] + penalty.l21
        self.sums = np.array([slopes])

    def rounds(self, share: float, first: float, goal: float, most: int, sweeps: int) -> tuple[float, bool]:
        from mtldsl.solvers.kernels.column_newton import descend_columns

        p: Any = self.penalty
        return descend_columns(
            *self.columns.arrays, self.D, self.carried, self.W[0], self.gradient, self.border, self.curvature, self.level,
            p.ridge, self.sums, self.total, p.nonneg, goal, share, first, most, sweeps,
        )  # fmt: skip

    def descend(self, precision: float, goal: float) -> None:
        """Until a sweep over all rows brings precision^2 of what the first did, or no slope is off by more than `goal` of its l1."""
        precision = _COARSE if precision >= _FAR else precision
        share = precision**2
        may_extrapolate = len(self.D) <= self.columns.arrays[1][-1]  # else the iterates outgrow the inputs
        at_once = may_extrapolate and precision < _COARSE
        first, done = self.rounds(share, 0.0, goal, 1 if at_once else 2, 0 if at_once else _SWEEPS)
        for _ in range(_MOST):
            if done:
                return
            if may_extrapolate:
                self._extrapolated(share, first, goal)
            done = self.rounds(share, first, goal, 1, 0 if may_extrapolate else _SWEEPS)[1]

    def _extrapolated(self, share: float, first: float, goal: float) -> None:
        history = History(self, _SWEEPS)
        history.add(self)
        for _ in range(_SWEEPS):
            if self.rounds(share, first, goal, 0, 1)[1]:
                return
            history.add(self)
        extrapolate(self, history)
        self.sums[0] = self.slopes + float(self.border @ (self.W - self.start)[0])

    def objective(self, W, carried) -> float:
        """But for a constant."""
        step = W[0] - self.start[0]
        sums = self.slopes + float(self.border @ step)
        value = float(self.gradient @ step) + 0.5 * float(carried @ (carried / self.D))
        return value - 0.5 * sums**2 / self.total + self.penalty.value(W)

    @property
    def change(self) -> np.ndarray:
        """What the step adds to the predictions, without the intercept's."""
        return self.carried / self.D
