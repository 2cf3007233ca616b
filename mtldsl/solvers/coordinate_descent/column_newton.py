"""Columns of inputs, dense or sparse, and Newton's model of smooth losses descended along them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.data.row_storage import TransposedRows, squared_products
from mtldsl.normal_form.form import LossTerm
from mtldsl.solvers.coordinate_descent.quadratic_model import SETTINGS as DESCENT
from mtldsl.solvers.design.row_penalty import RowPenalty
from mtldsl.solvers.numerics.anderson import ROUND_SWEEPS, IterateHistory, extrapolate
from mtldsl.utils.parallel import in_jobs, inner_product, product


@dataclass(frozen=True)
class ColumnSettings:
    """Constants of columns; an all-rows limit is one up to which a working set is not worth its bookkeeping.

    scaled_entries    : that a Gram matrix scales at once
    all_rows_features : of dense inputs
    all_rows_flops    : multiplications for all Gram matrices of dense inputs
    max_copied_share  : of the entries of a large sparse X
    """

    scaled_entries: int = 2_000_000
    all_rows_features: int = 64
    all_rows_flops: int = 4_000_000
    max_copied_share: float = 0.125


SETTINGS = ColumnSettings()


# --------------------------------------------------------------------------------------------------------------
# The inputs as Newton's method sees them: all features for a look, columns of some rows of W in between.
#
# Everything is transposed, tasks first: W (m, d); predictions and slopes are flat, task after task.


class DenseColumns:
    """Features `rows` of all tasks: arrays (p, n_i), the very same one where tasks share their inputs."""

    def __init__(self, rows, columns: list[np.ndarray], n_tasks: int, offsets):
        self.rows, self.columns, self.n_tasks, self.offsets = rows, columns, n_tasks, offsets
        self.is_shared = len(columns) == 1
        self.held: Any = None  # matrices of the last step, which another may begin with

    def forward(self, W) -> np.ndarray:
        """Flat predictions of W (m, p)."""
        if self.is_shared:
            return product(W, self.columns[0]).ravel()
        return np.concatenate([w @ C for w, C in zip(W, self.columns, strict=True)])

    def pull(self, u) -> np.ndarray:
        """(m, p): X_i^T u_i."""
        if self.is_shared:
            return inner_product(u.reshape(self.n_tasks, -1), self.columns[0].T)
        parts = np.split(u, self.offsets[1:-1])
        return np.stack([C @ part for part, C in zip(parts, self.columns, strict=True)])

    def squared_pull(self, u) -> np.ndarray:
        """`pull` of columns with all entries squared."""
        if self.is_shared:
            C = self.columns[0]
            return np.einsum("jk,jk,ik->ij", C, C, u.reshape(self.n_tasks, -1))
        parts = zip(self.columns, np.split(u, self.offsets[1:-1]), strict=True)
        return np.stack([np.einsum("jk,jk,k->j", C, C, part) for C, part in parts])

    def gram(self, weights) -> np.ndarray:
        """(m, p, p): X_i^T diag(weights_i) X_i; (1, p, p) where they are one."""
        p = len(self.rows)
        if self.is_shared:
            first = weights[self.offsets[:-1]]
            if np.all(
                weights.reshape(self.n_tasks, -1) == first[:, None]
            ):  # of squares, or at constant predictions
                first = first[:1] if np.all(first == first[0]) else first
                return first[:, None, None] * inner_product(self.columns[0], self.columns[0].T)
        gram = np.empty((self.n_tasks, p, p))
        roots = np.sqrt(weights)

        def fill(i: int, _) -> None:
            a, b = self.offsets[i], self.offsets[i + 1]
            C = self.columns[0 if self.is_shared else i]
            at_once = max(SETTINGS.scaled_entries // max(p, 1), 1)
            for first in range(
                0, b - a, at_once
            ):  # a scaled copy of them all would be as large as the inputs
                scaled = C[:, first : first + at_once] * roots[a + first : min(a + first + at_once, b)]
                if first == 0:
                    np.matmul(scaled, scaled.T, out=gram[i])
                else:
                    gram[i] += scaled @ scaled.T

        in_jobs(fill, range(self.n_tasks), work=float(weights.size) * p * p)
        return gram


class SparseColumns:
    """Features `rows`, as CSC: of one matrix for all tasks, or of the tasks' rows one after the other."""

    def __init__(self, rows, transposed, n_tasks: int, is_shared: bool, offsets):
        self.rows, self.n_tasks, self.is_shared, self.offsets = rows, n_tasks, is_shared, offsets
        self.transposed = transposed  # (p, n) CSR, or all features of one X
        self.held: Any = None  # what the last step made of its curvature
        self.n_columns = n_tasks if is_shared else 1  # of a table of predictions
        self.task_of = np.empty(0, int) if is_shared else np.repeat(np.arange(n_tasks), np.diff(offsets))

    @property
    def csr(self) -> sparse.csr_array:
        return self.transposed.whole if isinstance(self.transposed, TransposedRows) else self.transposed

    def forward(self, W) -> np.ndarray:
        if isinstance(self.transposed, TransposedRows):
            return self.transposed.image(W.T).ravel()
        if self.is_shared:
            return np.ascontiguousarray((self.transposed.T @ np.ascontiguousarray(W.T)).T).ravel()
        out = np.empty(self.offsets[-1])
        stacked = self.transposed.T
        for i, (a, b) in enumerate(zip(self.offsets[:-1], self.offsets[1:], strict=True)):
            out[a:b] = stacked[a:b] @ W[i]
        return out

    def pull(self, u) -> np.ndarray:
        pulled = self.transposed @ self._spread(u)
        return np.ascontiguousarray((pulled.toarray() if sparse.issparse(pulled) else pulled).T)

    def squared_pull(self, u) -> np.ndarray:
        """`pull` of columns with all entries squared."""
        if isinstance(self.transposed, TransposedRows):
            return np.ascontiguousarray(self.transposed.squared_products(self._spread(u)).T)
        return np.ascontiguousarray(squared_products(self.transposed, self._spread(u)).T)

    def _spread(self, u):
        """(N, m): a column a task."""
        if self.is_shared:
            return u.reshape(self.n_tasks, -1).T
        return sparse.csr_array((u, (np.arange(u.size), self.task_of)), shape=(u.size, self.n_tasks))


class Design:
    """X_i of all tasks: here one X (n, d). `prefers_all_rows`: all features cost little more than a working set."""

    transposed: Any  # of sparse inputs
    is_shared = True

    def __init__(self, X, n_tasks: int, transposed=None):
        self.X, self.inputs, self.n_tasks, self.n_features = X, [X], n_tasks, X.shape[1]
        self.offsets = np.arange(n_tasks + 1) * X.shape[0]
        self.is_sparse = sparse.issparse(X)
        self.transposed = TransposedRows(X) if self.is_sparse and transposed is None else transposed

    def of_task(self, i: int) -> Design:
        """The design of one task."""
        return Design(self.X, 1, self.transposed)

    def pull(self, u) -> np.ndarray:
        """(m, d): X_i^T u_i."""
        table = u.reshape(self.n_tasks, -1)
        if self.is_sparse:
            return np.ascontiguousarray((self.transposed @ table.T).T)
        return table @ self.X

    def columns(self, rows) -> DenseColumns | SparseColumns:
        if self.is_sparse:
            chosen = self.transposed if len(rows) == self.n_features else self.transposed[rows]
            return SparseColumns(rows, chosen, self.n_tasks, self.is_shared, self.offsets)
        every = len(rows) == self.n_features
        parts = [X.T if every else np.ascontiguousarray(X[:, rows].T) for X in self.inputs]
        return DenseColumns(rows, parts, self.n_tasks, self.offsets)

    def would_copy_most_of_X(self, rows) -> bool:
        """Tell whether the columns of those features are much of a large X, which is not to be copied."""
        if not self.is_sparse or self.n_tasks == 1 or self.holds_columns:
            return False
        return float(self.transposed.counts[rows].sum()) > SETTINGS.max_copied_share * self.X.nnz

    @property
    def holds_columns(self) -> bool:
        """Tell whether columns of sparse inputs lie ready, so that a working set saves nothing but sweeps."""
        return self.is_sparse and getattr(self.transposed, "is_stored", True)

    @property
    def prefers_all_rows(self) -> bool:
        d = self.n_features
        return (
            not self.is_sparse
            and d <= SETTINGS.all_rows_features
            and self.offsets[-1] * d * d <= SETTINGS.all_rows_flops
        )


class TasksDesign(Design):
    """Inputs of their own, or some labels missing."""

    is_shared = False

    def __init__(self, tasks):
        self.tasks, self.n_tasks, self.n_features = tasks, tasks.n_tasks, tasks.n_features
        self.offsets, self.is_sparse = np.asarray(tasks.offsets), tasks.is_sparse
        self.inputs = tasks.inputs
        if self.is_sparse:
            stacked = sparse.vstack(self.inputs, format="csr") if tasks.is_shared else tasks.stacked
            self.transposed = sparse.csr_array(stacked.T)

    def of_task(self, i: int) -> Design:
        return Design(self.inputs[i], 1)

    def pull(self, u):
        return np.ascontiguousarray(self.tasks.adjoint(u).T)


def design_of(loss: LossTerm) -> Design:
    tasks = loss.tasks
    if not loss.is_shared_complete:
        return TasksDesign(tasks)
    return Design(tasks.X, tasks.n_tasks, tasks.by_features if tasks.is_sparse else None)


# --------------------------------------------------------------------------------------------------------------
# The second-order model through the predictions, for sparse inputs: its slopes V = u + D (X dW) are kept, not Gram matrices.


class ColumnModel:
    """W (m, p) and, as `carried`, V: (n, m) of one matrix for all tasks, else (N, 1). The intercepts' steps are not written into V, and
    `sums` adds it up task by task.
    """

    def __init__(
        self, columns: SparseColumns, penalty: RowPenalty, W, slope, curvature, border, totals, sums
    ):
        self.columns, self.penalty, self.W = columns, penalty, W.copy()
        diagonal = columns.squared_pull(curvature)  # which makes as much beside it as the arrays below are
        self.D = self._own_layout(curvature)
        self.carried = self._own_layout(slope)
        self.border, self.totals, self.sums, self.centred = border, totals, sums.copy(), bool(border.any())
        self.curvature = np.maximum(diagonal - border**2 / totals[:, None], 0.0)
        self.curvature[self.curvature <= DESCENT.min_curvature_share * diagonal] = 0.0
        X = columns.csr
        self.matrix = X.indptr, X.indices, X.data, columns.task_of

    def _own_layout(self, flat) -> np.ndarray:
        return flat.reshape(self.columns.n_columns, -1).T.copy()

    def sweep(self, rows, goal: float) -> float:
        from mtldsl.solvers.coordinate_descent.sweep_kernels import sweep_columns

        p = self.penalty
        return sweep_columns(
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
        if self.columns.is_shared:
            return carried.sum(axis=0)
        return np.add.reduceat(carried[:, 0], self.columns.offsets[:-1])

    def descend(self, precision: float, goal: float) -> None:
        """Until a sweep over all rows brings precision^2 of what the first did, or no slope is off by more than `goal` of its l1."""
        every, first = np.arange(self.W.shape[1]), None
        may_extrapolate = (
            self.carried.size <= self.matrix[0][-1]
        )  # else the iterates to remember outgrow the inputs
        for _ in range(DESCENT.max_rounds):
            moved = self.sweep(every, goal)
            first = moved if first is None else first
            if moved <= precision**2 * first:
                return
            rows = np.flatnonzero(self.W.any(axis=0))
            history = IterateHistory(self, ROUND_SWEEPS) if may_extrapolate else None
            if history is not None:
                history.add(self)
            for _ in range(ROUND_SWEEPS):  # what is zero mostly stays so
                moved = self.sweep(rows, goal)
                if history is not None:
                    history.add(self)
                if moved <= 0.3 * precision**2 * first:
                    break
            else:
                if history is not None:
                    self._extrapolate(history)

    def _extrapolate(self, history: IterateHistory) -> None:
        extrapolate(self, history)
        if self.centred:
            self.sums = self._totalled(self.carried)
