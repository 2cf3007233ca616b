"""The inputs as Newton's method sees them: all features for a look, columns of some rows of W in between.

Everything is transposed, tasks first: W (m, d); predictions and slopes are flat, task after task.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.compile.normal_form import LossTerm
from mtldsl.solvers.smooth.one_task import ColumnsOfTask
from mtldsl.system.blocks import inner_product, product
from mtldsl.system.jobs import in_jobs
from mtldsl.tasks.by_features import ByFeatures, squared_products

__all__ = [
    "DenseColumns",
    "Design",
    "SharedDesign",
    "SparseColumns",
    "TasksDesign",
    "design_of",
    "design_of_task",
]


_AT_ONCE = 2_000_000  # numbers that a Gram matrix scales at once


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
        out, at_once = np.zeros((self.n_tasks, len(self.rows))), max(_AT_ONCE // max(len(self.rows), 1), 1)
        for i, C in enumerate(self.columns):
            table = (
                u.reshape(self.n_tasks, -1)
                if self.is_shared
                else u[None, self.offsets[i] : self.offsets[i + 1]]
            )
            into = out if self.is_shared else out[i : i + 1]
            for first in range(0, table.shape[1], at_once):
                some = slice(first, first + at_once)
                into += table[:, some] @ np.square(C[:, some]).T
        return out

    def gram(self, weights) -> np.ndarray:
        """(m, p, p): X_i^T diag(weights_i) X_i."""
        p = len(self.rows)
        if self.is_shared and self.n_tasks > 1:
            table = weights.reshape(self.n_tasks, -1)
            if np.all(table == table[:, :1]):  # at constant predictions
                return table[:, :1, None] * (self.columns[0] @ self.columns[0].T)
        gram = np.empty((self.n_tasks, p, p))
        roots = np.sqrt(weights)

        def fill(i: int, _) -> None:
            a, b = self.offsets[i], self.offsets[i + 1]
            C = self.columns[0 if self.is_shared else i]
            at_once = max(_AT_ONCE // max(p, 1), 1)
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
        self.task_of: Any = None if is_shared else np.repeat(np.arange(n_tasks), np.diff(offsets))

    @property
    def csr(self) -> sparse.csr_array:
        return self.transposed.whole if isinstance(self.transposed, ByFeatures) else self.transposed

    def forward(self, W) -> np.ndarray:
        if isinstance(self.transposed, ByFeatures):
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
        if isinstance(self.transposed, ByFeatures):
            return np.ascontiguousarray(self.transposed.squared_products(self._spread(u)).T)
        return np.ascontiguousarray(squared_products(self.transposed, self._spread(u)).T)

    def _spread(self, u):
        """(N, m): a column a task."""
        if self.is_shared:
            return u.reshape(self.n_tasks, -1).T
        return sparse.csr_array((u, (np.arange(u.size), self.task_of)), shape=(u.size, self.n_tasks))


class Design:
    """X_i of all tasks. `prefers_all_rows`: all features cost little more than a working set."""

    n_features: int
    n_tasks: int
    offsets: np.ndarray
    is_sparse: bool
    transposed: Any  # of sparse inputs

    def pull(self, u) -> np.ndarray:
        """(m, d): X_i^T u_i."""
        raise NotImplementedError

    def columns(self, rows) -> DenseColumns | SparseColumns | ColumnsOfTask:
        raise NotImplementedError

    def take_room(self, rows) -> bool:
        """Whether the columns of those features are much of a large X, which is not to be copied."""
        return False

    @property
    def holds_columns(self) -> bool:
        """Whether columns of sparse inputs lie ready, so that a working set saves nothing but sweeps."""
        return self.is_sparse and getattr(self.transposed, "is_stored", True)

    def _rows_of_transposed(self, rows) -> Any:
        return self.transposed if len(rows) == self.n_features else self.transposed[rows]

    @property
    def prefers_all_rows(self) -> bool:
        if self.is_sparse:
            return self.n_tasks == 1 and self.transposed.T.nnz <= _FEW_ENTRIES
        d = self.n_features
        return d <= _FEW and self.offsets[-1] * d * d <= _CHEAP


#: up to so many features, and multiplications for all Gram matrices, a working set is not worth its bookkeeping
_FEW, _CHEAP = 64, 4_000_000
_MUCH = 0.125  # of the entries of a large sparse X
#: the same of sparse inputs of one task: a sweep over so many takes less time than the calls around it
_FEW_ENTRIES = 20_000


class SharedDesign(Design):
    """One X (n, d) for all tasks."""

    def __init__(self, X, n_tasks: int, transposed=None):
        self.X, self.n_tasks, self.n_features = X, n_tasks, X.shape[1]
        self.offsets = np.arange(n_tasks + 1) * X.shape[0]
        self.is_sparse = sparse.issparse(X)
        self.transposed = transposed
        if self.is_sparse and transposed is None:
            self.transposed = ByFeatures(X)

    def pull(self, u):
        table = u.reshape(self.n_tasks, -1)
        if self.is_sparse:
            return np.ascontiguousarray((self.transposed @ table.T).T)
        return table @ self.X

    def take_room(self, rows) -> bool:
        if not self.is_sparse or self.n_tasks == 1 or self.transposed.is_stored:
            return False
        return float(self.transposed.counts[rows].sum()) > _MUCH * self.X.nnz

    def columns(self, rows):
        if self.is_sparse and self.n_tasks == 1:
            return ColumnsOfTask(rows, self.transposed)
        if self.is_sparse:
            return SparseColumns(rows, self._rows_of_transposed(rows), self.n_tasks, True, self.offsets)
        if len(rows) == self.n_features:
            return DenseColumns(rows, [self.X.T], self.n_tasks, self.offsets)
        columns = np.empty((len(rows), len(self.X)))
        columns[:] = self.X[:, rows].T
        return DenseColumns(rows, [columns], self.n_tasks, self.offsets)


class TasksDesign(Design):
    """Inputs of their own, or some labels missing."""

    def __init__(self, tasks):
        self.tasks, self.n_tasks, self.n_features = tasks, tasks.n_tasks, tasks.n_features
        self.offsets, self.is_sparse = np.asarray(tasks.offsets), tasks.is_sparse
        self.inputs = tasks.inputs
        if self.is_sparse:
            stacked = sparse.vstack(self.inputs, format="csr") if tasks.is_shared else tasks.stacked
            self.transposed = sparse.csr_array(stacked.T)

    def pull(self, u):
        return np.ascontiguousarray(self.tasks.adjoint(u).T)

    def columns(self, rows):
        if self.is_sparse and self.n_tasks == 1:
            return ColumnsOfTask(rows, self.transposed)
        if self.is_sparse:
            return SparseColumns(rows, self._rows_of_transposed(rows), self.n_tasks, False, self.offsets)
        every = len(rows) == self.n_features
        parts = [X.T if every else np.ascontiguousarray(X[:, rows].T) for X in self.inputs]
        return DenseColumns(rows, parts, self.n_tasks, self.offsets)


def design_of(loss: LossTerm) -> Design:
    tasks = loss.tasks
    if not loss.is_shared_complete:
        return TasksDesign(tasks)
    return SharedDesign(tasks.X, tasks.n_tasks, tasks.by_features if tasks.is_sparse else None)


def design_of_task(X, transposed=None) -> SharedDesign:
    return SharedDesign(X, 1, transposed)
