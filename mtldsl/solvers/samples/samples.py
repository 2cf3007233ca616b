"""A loss as coordinate ascent sees it: rows, multipliers and their conjugates, sample by sample."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.compile.normal_form import LossTerm
from mtldsl.solvers.kernels.arguments import Rows, Supports

__all__ = ["Samples"]

#: Entries of the inputs that are squared at a time.
_ENTRIES_AT_ONCE = 1 << 18


class Samples:
    """The flat samples of a separable loss: row `rows_of[i]` of the inputs (row i where that is empty), in tasks by `offsets`.

    conj_i(u) = linear_i u + curvature_i u^2 / 2 on [low_i, high_i], or the entropy on 0 <= -y u <= weight_i where `entropic`.
    """

    def __init__(self, loss: LossTerm):
        tasks = loss.tasks
        atom: Any = loss.atom  # kernel_form lets through only atoms with the conjugate's parts
        self.loss, self.atom, self.n = loss, atom, tasks.n_samples
        self.n_tasks, self.n_features = tasks.n_tasks, tasks.n_features
        # writable, as all that the kernels get: one compilation
        self.offsets = np.array(tasks.offsets, dtype=np.int64)
        X, self.rows_of = _rows(tasks)
        nothing = np.empty(0)
        if sparse.issparse(X):
            self.dense, self.data, self.indices, self.indptr = np.empty((0, 0)), X.data, X.indices, X.indptr
        else:
            self.dense = np.ascontiguousarray(X)
            self.data, self.indices, self.indptr = nothing, np.empty(0, np.int32), np.empty(0, np.int32)
        self.y, self.entropic = np.asarray(tasks.targets, float), atom.entropic
        self.weight = np.broadcast_to(1.0, (self.n,)) if loss.scale is None else np.asarray(loss.scale, float)
        self.inputs = Rows(self.rows_of, self.dense, self.data, self.indices, self.indptr)
        self.support = self._supports()

    @property
    def low(self) -> np.ndarray:
        """Made when asked for, as `high`: `table` holds both."""
        return self.loss.dual_interval()[0]

    @property
    def high(self) -> np.ndarray:
        return self.loss.dual_interval()[1]

    @property
    def is_sparse(self) -> bool:
        return self.dense.shape[0] == 0

    def _supports(self) -> Supports:
        """The features that occur in the rows of each task; all, where inputs are dense."""
        d, T = self.n_features, self.n_tasks
        if not self.is_sparse:
            return Supports(np.arange(T + 1, dtype=np.int64) * d, np.tile(np.arange(d, dtype=np.int32), T))
        return self.supports_of(self.offsets, self.rows_of)

    def supports_of(self, offsets, rows) -> Supports:
        """The features that occur in some sparse rows, task by task at `offsets`."""
        from mtldsl.solvers.kernels.coordinate_ascent import supports

        ends = np.zeros(self.n_tasks + 1, dtype=np.int64)
        arguments = offsets, rows, self.indices, self.indptr
        supports(*arguments, np.full(self.n_features, -1, dtype=np.int64), True, ends, np.empty(0, np.int32))
        found = np.empty(ends[-1], dtype=np.int32)
        supports(*arguments, np.full(self.n_features, -1, dtype=np.int64), False, ends, found)
        return Supports(ends, found)

    def table(self, n_cells: int) -> np.ndarray:
        """(n, 5 + cells): u, low, high and the conjugate's two numbers of every sample, as the kernels want them; norms are still zero."""
        table = np.zeros((self.n, 5 + n_cells))
        table[:, 1], table[:, 2] = self.loss.dual_interval()
        if self.entropic:
            table[:, 3], table[:, 4] = self.y, self.weight
        else:
            linear, curvature = self.atom.dual_quadratic(self.y)
            table[:, 3], table[:, 4] = linear, curvature / self.weight
        return table

    def squared_norms(self, cell_of: np.ndarray, n_cells: int) -> np.ndarray:
        """(n, cells): of every sample's row, over the features of every cell. Some rows at a time, in bounded memory."""
        indicator = sparse.csr_array(
            (np.ones(self.n_features), (np.arange(self.n_features), cell_of)),
            shape=(self.n_features, n_cells),
        )
        n_rows = len(self.dense) if not self.is_sparse else self.indptr.size - 1
        norms = np.empty((n_rows, n_cells))
        entries = self.n_features if not self.is_sparse else max(self.data.size // max(n_rows, 1), 1)
        size = max(_ENTRIES_AT_ONCE // entries, 1)
        for first in range(0, n_rows, size):
            rows = slice(first, min(first + size, n_rows))
            if self.is_sparse:
                ends = self.indptr[rows.start : rows.stop + 1]
                part = slice(int(ends[0]), int(ends[-1]))
                squares = sparse.csr_array(
                    (np.square(self.data[part], dtype=float), self.indices[part], ends - ends[0]),
                    shape=(rows.stop - rows.start, self.n_features),
                )
            else:
                squares = self.dense[rows] ** 2
            norms[rows] = np.asarray(squares @ indicator.toarray())
        return norms[self.rows_of] if self.rows_of.size else norms

    def conjugates(self, rows, u) -> np.ndarray:
        """conj_i(u_i) of some samples, u inside their intervals."""
        s = self.weight[rows]
        return s * self.atom.pointwise_conjugate(u / s, self.y[rows])

    def slopes(self, rows, u) -> tuple[np.ndarray, np.ndarray]:
        """(first, second) derivatives of conj_i at u_i."""
        y, s = self.y[rows], self.weight[rows]
        if self.entropic:
            a = -y * u / s
            return -y * np.log(a / (1.0 - a)), 1.0 / (s * a * (1.0 - a))
        linear, curvature = self.atom.dual_quadratic(y)
        return linear + curvature / s * u, np.broadcast_to(curvature / s, np.shape(u))

    def start(self, u=None) -> np.ndarray:
        """Multipliers to begin with: those given, moved into their intervals; else zero, which every loss of the language allows."""
        if u is None:
            u = np.zeros(self.n)
        u = np.clip(np.asarray(u, float), *self.loss.dual_interval())
        if self.entropic:  # the slope of the entropy is infinite at its ends
            a = np.clip(-self.y * u, 1e-3 * self.weight, (1.0 - 1e-3) * self.weight)
            return -self.y * np.where((-self.y * u > 0) & (-self.y * u < self.weight), -self.y * u, a)
        return u


def _rows(tasks):
    """(inputs, the row of every flat sample; empty where that is its own number)."""
    none = np.empty(0, np.int64)
    if not tasks.is_shared:
        return tasks.stacked, none
    if tasks.mask is not None:
        return tasks.X, np.nonzero(tasks.mask.T)[1].astype(np.int64)
    return tasks.X, np.tile(np.arange(tasks.X.shape[0], dtype=np.int64), tasks.n_tasks)
