"""An iterate of coordinate descent on many rows of sparse inputs: the residual, and columns as they are stored."""

from __future__ import annotations

import numpy as np

from mtldsl.solvers.rows.penalty import RowPenalty

__all__ = ["SparseState"]

_FEW = 128  # rows up to which a Gram matrix is never dear; its Newton steps are for what sweeps are slow with


class SparseState:
    """`carried` (n, m) is Y - X W^T of columns that are not centred: affine in W, and what a step changes of it is as sparse as X."""

    knows_gap = True
    takes_newton = False
    runs_rounds = True
    dual_W: np.ndarray | None = (
        None  # weights whose residual proves more than that of W, where some are known
    )
    columns = None

    @staticmethod
    def pays(design, rows, old=None) -> bool:
        """Whether sweeps through the columns are to be tried: until they were slow, or where a Gram matrix's would cost more."""
        if old is None or (isinstance(old, SparseState) and not old.is_slow):
            return True
        return not _has_small_gram(design, rows)

    @property
    def is_slow(self) -> bool:
        """Whether the last rounds did not reach what was asked, where a Gram matrix is at hand."""
        return not self.reached and _has_small_gram(self.design, self.rows)

    def __init__(self, design, penalty: RowPenalty, rows, W, carried=None):
        """carried : the residual at W, where it is known."""
        self.design, self.rows, self.W = design, rows, W
        self.penalty = penalty.on(rows)
        self.means = design.x_means[rows]
        self.Xt, self.places = design.Xt.places(rows)
        self.means_of_places = design.x_means if self.places is rows else self.means
        self.squares = np.maximum(design.squares[rows] - design.n_samples * np.square(self.means), 0.0)
        self.reached = True  # what the last rounds were asked for
        self.carried = self.residual(W) if carried is None else carried

    def residual(self, W) -> np.ndarray:
        from mtldsl.solvers.kernels.sparse_descent import residual_of_columns

        X = self.Xt
        return residual_of_columns(
            X.data, X.indices, X.indptr, self.places, W, np.ascontiguousarray(self.design.Y)
        )

    def centred(self, W, carried) -> np.ndarray:
        return carried + W @ self.means if self.design.centred else carried

    def rounds(self, most: int, target: float) -> tuple[int, float, bool]:
        """(how many rounds, the relative gap on these rows, False)."""
        from mtldsl.solvers.kernels.row_rounds import rounds_of_columns

        X, p, design = self.Xt, self.penalty, self.design
        dual_W = np.empty(self.W.size)
        done, gap, settled = rounds_of_columns(
            X.data, X.indices, X.indptr, self.places, self.means_of_places, self.squares, np.ascontiguousarray(design.Y.T),
            self.carried, self.W, p.l1, p.l21, p.ridge, p.nonneg, most, target, dual_W, np.empty(len(self.rows)),
        )  # fmt: skip
        self.reached = gap <= target
        self.dual_W = dual_W.reshape(self.W.shape)
        return done, gap, settled

    @property
    def sweep_cost(self) -> float:
        """Floating point operations of a round's sweep, about."""
        return (
            4.0
            * len(self.W)
            * float(
                (self.Xt.indptr[self.places + 1] - self.Xt.indptr[self.places]).sum() + 4 * len(self.rows)
            )
        )


def _has_small_gram(design, rows) -> bool:
    """Whether a Gram matrix, whose making takes as long as many sweeps, makes a sweep cheaper, or is small in any case."""
    p = len(rows)
    return p <= _FEW or float(p) * p <= float(design.Xt.counts[rows].sum())
