"""Storage of rows in memory: canonical CSR, stacked parts, columns by feature, and views without a copy."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.errors import DataError
from mtldsl.utils.arrays import require_sound
from mtldsl.utils.caching import cached_property
from mtldsl.utils.memory import require_memory
from mtldsl.utils.parallel import runs

# --------------------------------------------------------------------------------------------------------------
# The rows of all tasks in one matrix, task after task; and every task's rows as a view of it.


@dataclass(frozen=True)
class RowStorageSettings:
    """Sizes of copies of rows and columns, and where they pay.

    gathered_entries    : numbers gathered at once, held beside the result
    stored_entries      : entries up to which X^T is stored as well as X
    slab_entries        : numbers that are made beside the result at once
    sparse_image_factor : entries of all columns over those of some, from which on picking these pays
    row_product_tasks   : vectors from which on rows of a wide X^T beat columns of X
    piece_samples       : samples of which a temporary stays in the cache
    """

    gathered_entries: int = 1 << 19
    stored_entries: int = 1 << 22
    slab_entries: int = 1 << 18
    sparse_image_factor: int = 10
    row_product_tasks: int = 4
    piece_samples: int = 1 << 14


SETTINGS = RowStorageSettings()

#: Largest index that 32 bits hold.
MAX_INT32 = np.iinfo(np.int32).max


def csr_of(data, indices, indptr, n_features: int):
    """A CSR array in canonical format on these very arrays.

    scipy's constructor copies what is a view of a larger array ("prune"), and widens all indices where the pointers need 64 bits.
    """
    X = sparse.csr_array((len(indptr) - 1, n_features), dtype=data.dtype)
    X.data, X.indices, X.indptr = data, indices, indptr
    X.has_sorted_indices = X.has_canonical_format = True
    return X


def row_views(stacked, offsets) -> list:
    """The rows offsets[i] to offsets[i + 1] of the matrix, for every i, sharing its numbers (CSR: not the row pointers)."""
    ranges = list(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True))
    if not sparse.issparse(stacked):
        return [stacked[a:b] for a, b in ranges]
    # Through a memoryview the base of a slice is not an array: scipy, which copies slices of larger arrays whenever
    # it makes a matrix of them (X.T, too), then takes them as they are.
    data, indices = memoryview(stacked.data), memoryview(stacked.indices)
    views = []
    for a, b in ranges:
        pointers = stacked.indptr[a : b + 1]
        entries = slice(int(pointers[0]), int(pointers[-1]))
        local = (pointers - pointers[0]).astype(stacked.indices.dtype, copy=False)
        parts = np.asarray(data[entries]), np.asarray(indices[entries])
        views.append(csr_of(*parts, local, stacked.shape[1]))
    return views


def row_keys(X) -> Iterator[bytes]:
    """Equal bytes for equal rows of a dense or CSR matrix."""
    if not sparse.issparse(X):
        return (row.tobytes() for row in X + 0.0)  # -0.0 becomes 0.0
    X = sparse.csr_array(X, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    return (X.indices[a:b].tobytes() + b"|" + X.data[a:b].tobytes() for a, b in pairwise(X.indptr))


def stack(parts: list):
    """(N, d) float64, read-only: the rows of all parts, in that order. A part is (X, its rows or None for all of them).

    CSR where one of the X is sparse, and then all entries of a row in the order of their columns. Beside the result, a bounded
    number of rows is held; a float32 part is not widened first.
    """
    if any(sparse.issparse(X) for X, _ in parts):
        return _stack_sparse([(_canonical(X), rows) for X, rows in parts])
    counts = [X.shape[0] if rows is None else len(rows) for X, rows in parts]
    out = np.empty((sum(counts), parts[0][0].shape[1]))
    at = 0
    for X, rows in parts:
        for a, b in _chunks(X.shape[0] if rows is None else len(rows), X.shape[1]):
            out[at : at + b - a] = X[a:b] if rows is None else X[rows[a:b]]
            at += b - a
    out.flags.writeable = False
    return out


def _stack_sparse(parts):
    lengths = [np.diff(X.indptr) if rows is None else np.diff(X.indptr)[rows] for X, rows in parts]
    entries = sum(int(n.sum(dtype=np.int64)) for n in lengths)
    index = np.result_type(*(X.indices.dtype for X, _ in parts))
    indptr = np.zeros(sum(map(len, lengths)) + 1, dtype=index if entries <= MAX_INT32 else np.int64)
    np.cumsum(np.concatenate(lengths), out=indptr[1:])
    data, indices = np.empty(entries), np.empty(entries, dtype=index)
    at = 0
    for X, rows in parts:
        a_row = X.nnz // max(X.shape[0], 1)
        pieces = [X] if rows is None else (X[rows[a:b]] for a, b in _chunks(len(rows), a_row))
        for piece in pieces:
            size = int(piece.indptr[-1])
            data[at : at + size] = piece.data[:size]
            indices[at : at + size] = piece.indices[:size]
            at += size
    for array in (data, indices, indptr):
        array.flags.writeable = False
    return csr_of(data, indices, indptr, parts[0][0].shape[1])


def _canonical(X):
    X = sparse.csr_array(X)  # no copy of what is CSR already
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _chunks(count: int, numbers_a_row: int):
    step = max(SETTINGS.gathered_entries // max(numbers_a_row, 1), 1)
    return ((a, min(a + step, count)) for a in range(0, count, step))


def require_memory_for(stacked, rows: int) -> None:
    """DataError where a copy of so many rows of average length, made task by task and then put together, would not fit into memory."""
    one = stacked.nnz * (8.0 + stacked.indices.itemsize) if sparse.issparse(stacked) else 8.0 * stacked.size
    advice = "take fewer: subsample(rows), or a smaller share of them"
    require_memory(2.0 * one * rows / max(stacked.shape[0], 1), f"a copy of {rows:,} rows", advice, DataError)


def never_written(array) -> bool:
    """Tell whether nobody can write to these numbers: neither through this array nor through one that it is a view of."""
    return all(not part.flags.writeable for part in _lineage(array) if isinstance(part, np.ndarray))


def is_mapped(array) -> bool:
    """Tell whether the numbers lie in a file."""
    return any(isinstance(part, np.memmap | mmap.mmap) for part in _lineage(array))


def _lineage(array):
    """The array, what it is a view of, and so on."""
    while array is not None:
        yield array
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)


# --------------------------------------------------------------------------------------------------------------
# Sparse inputs by features: products with X^T, and the columns of some features, without a second copy of a large X.


class TransposedRows:
    """X^T (d, n) of CSR X (n, d), float64 or float32: `by_features @ V`, `by_features[rows]`, `by_features.T` is X.

    A small X is stored twice, and rows of its transpose serve where n < d.

    >>> columns = TransposedRows(sparse.csr_array([[1.0, 0.0], [2.0, 3.0]]))
    >>> columns @ np.array([1.0, 1.0]), columns.squares, columns[[1]].toarray()
    (array([3., 3.]), array([5., 9.]), array([[0., 3.]]))
    """

    def __init__(self, X):
        self.T = X
        self.shape = X.shape[::-1]
        self.is_stored = X.nnz <= SETTINGS.stored_entries

    @cached_property
    def whole(self) -> sparse.csr_array:
        """X^T in CSR: as large as X."""
        columns = self.T.tocsc()
        return csr_of(columns.data, columns.indices, columns.indptr, self.shape[1])

    @cached_property
    def _columns(self):
        """X^T on the arrays of X: a small product takes less time than to make it."""
        return self.T.T

    def __getitem__(self, rows) -> sparse.csr_array:
        """(p, n) CSR: the columns of those features; rows : a list or an array of them."""
        if self.is_stored:
            return self.whole[rows]
        return sparse.csr_array(self.T[:, rows].T)

    def __matmul__(self, V) -> np.ndarray:
        """X^T V for V (n,) or (n, k)."""
        d, n = self.shape
        return np.asarray((self.whole if self.is_stored and n < d else self._columns) @ V)

    def image(self, W) -> np.ndarray:
        """(k, n) contiguous: the transpose of X W, for W (d, k)."""
        d, n = self.shape
        X = self.T
        if self.is_stored:  # a sparse solution's predictions are made of few columns
            used = np.flatnonzero(W.any(axis=1))
            if SETTINGS.sparse_image_factor * self.counts[used].sum() <= self.T.nnz:
                X, W = self.whole[used].T, W[used]
            elif n < d and W.shape[1] >= SETTINGS.row_product_tasks:
                X = self.whole.T
        return np.ascontiguousarray(np.asarray(X @ W).T)

    @cached_property
    def counts(self) -> np.ndarray:
        """(d,) stored entries of every feature."""
        return np.diff(self.whole.indptr) if self.is_stored else self._sums(None)

    @cached_property
    def squares(self) -> np.ndarray:
        """(d,) squared lengths of the columns."""
        return self._sums(lambda values: np.square(values, dtype=float))

    def squared_products(self, V) -> np.ndarray:
        """(d, k) or (d,): the product of X^T, its entries squared, with V; some rows at a time, without a second copy of a large X."""
        d, n = self.shape
        numbers = max(V.shape[1] if V.ndim == 2 else 1, self.T.nnz // max(n, 1))
        ends = np.append(np.arange(0, n, max(SETTINGS.slab_entries // numbers, d)), n)
        total = np.zeros((d, *V.shape[1:]))
        for X, (first, last) in zip(row_views(self.T, ends), pairwise(ends.tolist()), strict=True):
            total += _squared(X).T @ V[first:last]
        return total

    def _sums(self, of) -> Any:
        total = 0
        for first in range(0, max(self.T.nnz, 1), SETTINGS.slab_entries):
            some = slice(first, first + SETTINGS.slab_entries)
            weights = None if of is None else of(self.T.data[some])
            total = total + np.bincount(self.T.indices[some], weights, minlength=self.shape[0])
        return total


def _squared(X) -> sparse.csr_array:
    return csr_of(np.square(X.data, dtype=float), X.indices, X.indptr, X.shape[1])


def squared_products(Xt: sparse.csr_array, V) -> np.ndarray:
    """The product of V, sparse or not, (n,) or (n, k), with columns (p, n) of some features, their entries squared.

    >>> squared_products(sparse.csr_array([[1.0, 2.0]]), np.array([1.0, 1.0]))
    array([5.])
    """
    parts = []
    for first, last in runs(Xt.indptr, SETTINGS.slab_entries):
        product = _squared(row_views(Xt, np.array([first, last]))[0]) @ V
        parts.append(product.toarray() if sparse.issparse(product) else product)
    return np.concatenate(parts) if parts else np.zeros((0, *V.shape[1:]))


# --------------------------------------------------------------------------------------------------------------
# Sparse inputs of any of scipy's formats as canonical CSR.


def as_csr(table, what: str):
    """(canonical CSR, whether it can be kept as it is): real numbers of type float64, or of one that it holds.

    Entries at the same place are added up, in float64, as scipy does; of CSR, another object on the same arrays.
    """
    table = require_sound(table, what)
    if table.ndim != 2:
        raise DataError(f"{what} has shape {table.shape}: inputs must be a matrix of n rows and d columns")
    if table.shape[1] == 0:
        raise DataError(f"{what} has no columns: at least one feature is needed")
    ours = table.format != "csr"
    # duplicates are added on the way to CSR, and 100 + 100 is -56 in int8
    X = sparse.csr_array(table.astype(float) if ours else table)
    if len(X.data) > X.nnz:  # room that nothing uses
        X.data, X.indices = X.data[: X.nnz], X.indices[: X.nnz]
    if not X.has_canonical_format:
        X, ours = X.astype(float), True
        X.sum_duplicates()
    arrays = (X.data, X.indices, X.indptr)
    for array in arrays if ours else ():
        array.flags.writeable = False
    kept = X.dtype == float or (X.dtype == np.float32 and is_mapped(X.data))
    return X, kept and all(map(never_written, arrays))
