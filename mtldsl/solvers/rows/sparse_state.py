"""An iterate of coordinate descent on many rows of sparse inputs: the residual, and columns as they are stored."""

from __future__ import annotations

import numpy as np

from mtldsl.solvers.rows.penalty import RowPenalty

__all__ = ["SparseState"]

_FEW = 128  # rows up to which a Gram matrix, with Newton's steps, is never dear
_FULL = 5  # every so many sweeps go over all rows, those between over the rows that are not zero


class SparseState:
    """`carried` (n, m) is Y - X W^T of columns that are not centred: affine in W, and what a step changes of it is as sparse as X."""

    knows_gap = True
    takes_newton = False
    columns = None

    @staticmethod
    def pays(design, rows) -> bool:
        """Whether a sweep through the columns costs less than one through their Gram matrix."""
        p, ends = len(rows), design.Xt.indptr
        return p > _FEW and float(p) * p > float((ends[rows + 1] - ends[rows]).sum())

    def __init__(self, design, penalty: RowPenalty, rows, W, carried=None):
        """carried : the residual at W, where it is known."""
        self.design, self.rows, self.W = design, rows, W
        self.penalty = penalty.on(rows)
        self.means = design.x_means[rows]
        self.squares = np.maximum(design.squares[rows] - design.n_samples * np.square(self.means), 0.0)
        self.carried = self.residual(W) if carried is None else carried
        self.all, self.swept = np.arange(len(rows)), 0

    def residual(self, W) -> np.ndarray:
        used = np.flatnonzero(W.any(axis=0))
        X = self.design.Xt[self.rows[used]].T
        return np.ascontiguousarray(self.design.Y.T - X @ W[:, used].T)

    def centred(self, W, carried) -> np.ndarray:
        return carried + W @ self.means if self.design.centred else carried

    def sweep(self) -> None:
        from mtldsl.solvers.kernels.sparse_descent import sweep_columns

        X, penalty = self.design.Xt, self.penalty
        order = self.all if self.swept % _FULL == 0 else np.flatnonzero(self.W.any(axis=0))
        self.swept += 1
        sweep_columns(
            X.data, X.indices, X.indptr, self.rows, order, self.design.x_means, self.squares, self.carried, self.W,
            penalty.l1, penalty.l21, penalty.ridge, penalty.nonneg, 1,
        )  # fmt: skip

    def sweep_into(self, W, carried) -> None:
        """A sweep for every row of the two, which keep the iterates."""
        for k in range(len(W)):
            self.sweep()
            W[k], carried[k] = self.W.ravel(), self.carried.ravel()

    def pull(self) -> np.ndarray:
        """Minus the gradient on the rows (m, p)."""
        from mtldsl.solvers.kernels.sparse_descent import pull_of_columns

        X = self.design.Xt
        shift = self.W @ self.means
        return pull_of_columns(
            X.data, X.indices, X.indptr, self.rows, self.design.x_means, self.carried, shift
        )

    def moments(self) -> tuple[float, float]:
        """(||R||^2, <R, Y>) of the residual."""
        R = self.centred(self.W, self.carried)
        return float(np.vdot(R, R)), float(np.vdot(R, self.design.Y.T))

    def objective(self, W, carried) -> float:
        R = self.centred(W, carried)
        return 0.5 * float(np.vdot(R, R)) + self.penalty.value(W)
