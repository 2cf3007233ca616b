"""Products of the data that a solver asks for - X_i w_i, X_i^T u_i, X_i^T S_i X_i - for each layout as fast as it goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.data.row_storage import csr_of, row_views
from mtldsl.data.task_data import TaskData
from mtldsl.utils.caching import cached_property
from mtldsl.utils.interrupts import interruptible
from mtldsl.utils.memory import require_memory
from mtldsl.utils.parallel import in_jobs, inner_product, product, runs

# --------------------------------------------------------------------------------------------------------------
# X^T diag(weights) X, the one place where it is made: of features, and of rows as the features of X^T.


@dataclass(frozen=True)
class ProductSettings:
    """Sizes of products that are made part by part.

    sparse_slab_entries   : entries of a product of sparse inputs that are made at once
    weighted_slab_entries : dense inputs that are weighted at once
    max_sparse_parts      : parts of sparse inputs, copied one after another: each takes a pass over all
    task_product_entries  : entries of a sparse task that make a product of its own worth its call
    copied_entries        : numbers of W that a product copies at once
    tile_rows             : rows of W that are turned into columns at once
    """

    sparse_slab_entries: int = 1 << 20
    weighted_slab_entries: int = 1 << 18
    max_sparse_parts: int = 8
    task_product_entries: int = 20_000
    copied_entries: int = 1 << 18
    tile_rows: int = 256


SETTINGS = ProductSettings()


def gram(X, weights: np.ndarray | None = None) -> np.ndarray:
    """X^T diag(weights) X, dense, for X (n, d) dense or sparse and weights (n,), None for ones.

    >>> gram(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 0.0]))
    array([[1., 2.],
           [2., 4.]])
    """
    X = X.astype(float, copy=False)  # of stored float32 values, in float64
    if sparse.issparse(X):
        d = X.shape[1]
        parts = max(
            d * d / SETTINGS.sparse_slab_entries,
            min(X.nnz / SETTINGS.sparse_slab_entries, SETTINGS.max_sparse_parts),
            1.0,
        )
        total, step = np.empty((d, d)), max(int(d / parts), 1)
        # some features at a time: products that are full take more than twice the memory of arrays, and their columns are copies
        for first in range(0, d, step):
            part = X if step >= d else X[:, first : first + step]
            part = part if weights is None else sparse.diags_array(weights) @ part
            total[:, first : first + step] = (X.T @ part.asformat(X.T.format)).toarray()
        return total
    if weights is None:
        return interruptible(float(X.shape[0]) * X.shape[1] ** 2, inner_product, X.T, X)
    rows = np.flatnonzero(weights)
    every, total = len(rows) == len(weights), np.zeros((X.shape[1], X.shape[1]))
    step = max(SETTINGS.weighted_slab_entries // max(X.shape[1], 1), 256)
    for first in range(0, len(rows), step):  # no second copy of the inputs
        some = slice(first, first + step) if every else rows[first : first + step]
        part, own = X[some], weights[some, None]
        if own.min() >= 0.0:  # of one matrix with itself, half of the products are enough
            part = part * np.sqrt(own)
            total += part.T @ part
        else:
            total += part.T @ (part * own)
    return total


def require_gram_memory(n_features: int, n_tasks: int, write_instead: str, copies: int = 2) -> None:
    """SolverError where as many Gram matrices do not fit into memory, with a factor or a centred copy beside them."""
    size, several = 8.0 * copies * n_features * n_features * n_tasks, n_tasks > 1
    require_memory(
        size,
        f"the Gram matri{'ces' if several else 'x'} of {f'{n_tasks:,} tasks with ' if several else ''}{n_features:,} features",
        write_instead,
    )


class _CommonProducts:
    def __init__(self, tasks: TaskData):
        self.tasks = tasks
        self.shape = (tasks.n_features, tasks.n_tasks)

    def gram(self, scale):
        work = float(self.tasks.n_samples) * self.shape[0] ** 2
        return np.stack(in_jobs(lambda one, _: gram(*one), self._tasks(scale), work=work))

    def _tasks(self, scale):
        parts = [None] * self.tasks.n_tasks if scale is None else self.tasks.per_task(scale)
        return zip(self.tasks.inputs, parts, strict=True)


class _SharedProducts(_CommonProducts):
    """One complete X: every product is one matrix product. Flat vectors are task after task, so a table is its transpose."""

    def __init__(self, tasks: TaskData):
        super().__init__(tasks)
        self.X = tasks.X
        self.Xt: Any = tasks.by_features if tasks.is_sparse else self.X.T
        self.is_sparse = tasks.is_sparse

    def forward(self, W):
        if self.is_sparse:
            return self.Xt.image(W).ravel()
        return product(W.T, self.Xt).ravel()  # (m, n), contiguous: no copy to flatten

    def adjoint(self, u):
        table = u.reshape(self.tasks.n_tasks, -1)
        if self.is_sparse:
            return self.Xt @ table.T
        return inner_product(table, self.X).T

    def gram(self, scale):
        whole = scale is None and self.tasks.mask is None
        return gram(self.X, None) if whole else super().gram(scale)


class _SharedMaskedProducts(_SharedProducts):
    """One X, some labels missing: the same products on the full table, of which the labelled entries are kept."""

    def __init__(self, tasks: TaskData):
        super().__init__(tasks)
        mask: Any = tasks.mask  # not None
        self.kept = np.flatnonzero(mask.T.ravel())
        self.size = mask.size

    def forward(self, W):
        return super().forward(W)[self.kept]

    def adjoint(self, u):
        full = np.zeros(self.size)
        full[self.kept] = u
        return super().adjoint(full)


class _SeparateDenseProducts(_CommonProducts):
    def __init__(self, tasks: TaskData):
        super().__init__(tasks)
        self.slices = [slice(a, b) for a, b in zip(tasks.offsets[:-1], tasks.offsets[1:], strict=True)]

    def forward(self, W):
        flat = np.empty(self.tasks.n_samples)
        for X, w, rows in zip(self.tasks.inputs, np.ascontiguousarray(W.T), self.slices, strict=True):
            np.dot(X, w, out=flat[rows])
        return flat

    def adjoint(self, u):
        columns = np.empty(self.shape[::-1])
        for X, column, rows in zip(self.tasks.inputs, columns, self.slices, strict=True):
            np.dot(u[rows], X, out=column)
        return columns.T


class _SeparateSparseProducts(_CommonProducts):
    """Sparse products of one large task, or of several small neighbours on the diagonal of one matrix.

    A call costs some 4 microseconds beside its entries (1.5 nanoseconds each): that is nothing for a task of many rows, whose view
    of the data is used as it is, and more than the product itself for one of twenty. Small neighbours therefore go together; only
    their column indices are written anew, 4 bytes an entry, and their values are shared.
    """

    def __init__(self, tasks: TaskData):
        super().__init__(tasks)
        m, d = tasks.n_tasks, tasks.n_features
        # as many columns of W at once as fit into the cache when they lie one after the other
        self.width = max(SETTINGS.copied_entries // d, 8)
        ends = tasks.stacked.indptr[tasks.offsets]
        self.slabs = []
        for first in range(0, m, self.width):
            last = min(first + self.width, m)
            # each large task alone, small ones until they are as much as a large one
            some = runs(ends[first : last + 1], SETTINGS.task_product_entries)
            self.slabs.append((first, last, [self._blocks(first + a, first + b) for a, b in some]))

    def _blocks(self, a, b):
        """(first task, last task + 1, their rows, [X_a, ..., X_b-1] on the diagonal, its transpose)."""
        tasks, d = self.tasks, self.tasks.n_features
        rows = slice(int(tasks.offsets[a]), int(tasks.offsets[b]))
        X = row_views(tasks.stacked, tasks.offsets[[a, b]])[0]
        if b > a + 1:
            sizes = np.diff(tasks.stacked.indptr[tasks.offsets[a : b + 1]])
            wide = X.indices.dtype if d * (b - a) <= np.iinfo(X.indices.dtype).max else np.int64
            shift = np.repeat(np.arange(b - a, dtype=wide) * d, sizes)
            X = csr_of(X.data, X.indices + shift, X.indptr.astype(wide, copy=False), d * (b - a))
        return a, b, rows, X, X.T

    def forward(self, W):
        flat = np.empty(self.tasks.n_samples)
        d = self.tasks.n_features
        room = np.empty((min(self.width, self.tasks.n_tasks), d))
        for first, last, blocks in self.slabs:
            w = _columns(W, first, last, room).ravel()
            for a, b, rows, X, _ in blocks:
                flat[rows] = X @ w[(a - first) * d : (b - first) * d]
        return flat

    def adjoint(self, u):
        u = np.asarray(u, dtype=float)
        columns = np.empty(self.shape[::-1])
        for _, _, blocks in self.slabs:
            for a, b, rows, _, Xt in blocks:
                columns[a:b].reshape(-1)[:] = Xt @ u[rows]
        return columns.T


def _columns(W, first, last, room):
    """(last - first, d) those columns of W, each of them contiguous."""
    if W.T.flags.c_contiguous and W.dtype == float:
        return W.T[first:last]
    # by tiles, or every number of a column is fetched from another page of memory: four times as slow
    for k in range(0, len(W), SETTINGS.tile_rows):
        room[: last - first, k : k + SETTINGS.tile_rows] = W[k : k + SETTINGS.tile_rows, first:last].T
    return room[: last - first]


# --------------------------------------------------------------------------------------------------------------
# The data as a linear map, from weights to predictions and back: what solvers take of the inputs.


class PredictionMap(TaskData):
    """W (d, m) -> all X_i w_i, task after task; its transpose, and the products of both."""

    @cached_property
    def _products(self) -> Any:
        if self.is_shared:
            return _SharedProducts(self) if self.mask is None else _SharedMaskedProducts(self)
        return _SeparateSparseProducts(self) if self.is_sparse else _SeparateDenseProducts(self)

    def forward(self, W) -> np.ndarray:
        """(N,) flat predictions X_i w_i."""
        if not np.asarray(W).any():  # the first point of most runs
            return np.zeros(self.n_samples)
        return self._products.forward(W)

    def adjoint(self, u) -> np.ndarray:
        """(d, m): column i is X_i^T u_i."""
        return self._products.adjoint(u)

    def gram(self, scale=None) -> np.ndarray:
        """X_i^T diag(scale_i) X_i: (d, d) for one complete shared X and no scale, else (m, d, d). Always dense."""
        d, together = self.n_features, self.is_shared and not self.n_missing and scale is None
        require_gram_memory(
            d, 1 if together else self.n_tasks, "select features, or hash or project them, first", copies=1
        )
        return self._products.gram(scale)

    def cross(self) -> np.ndarray:
        """(d, m): column i is X_i^T y_i."""
        return self.adjoint(self.targets)
