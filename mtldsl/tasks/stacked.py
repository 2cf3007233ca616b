"""The rows of all tasks in one matrix, task after task; and every task's rows as a view of it."""

from __future__ import annotations

import mmap

import numpy as np
from scipy import sparse

from mtldsl.errors import DataError
from mtldsl.system.memory import require_memory

__all__ = ["Widened", "csr_of", "is_mapped", "never_written", "require_room", "row_views", "stack"]

#: numbers gathered at once, which are held beside the result
_NUMBERS = 1 << 19
_INT32 = np.iinfo(np.int32).max


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


class Widened:
    """The same matrices in float64, one at a time: sums of many float32 numbers would be those of rounding errors."""

    def __init__(self, inputs: list):
        self.inputs = inputs

    def __iter__(self):
        return (X.astype(float, copy=False) for X in self.inputs)


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
    indptr = np.zeros(sum(map(len, lengths)) + 1, dtype=index if entries <= _INT32 else np.int64)
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
    step = max(_NUMBERS // max(numbers_a_row, 1), 1)
    return ((a, min(a + step, count)) for a in range(0, count, step))


def require_room(stacked, rows: int) -> None:
    """DataError where a copy of so many rows of average length, made task by task and then put together, would not fit into memory."""
    one = stacked.nnz * (8.0 + stacked.indices.itemsize) if sparse.issparse(stacked) else 8.0 * stacked.size
    advice = "take fewer: subsample(rows), or a smaller share of them"
    require_memory(2.0 * one * rows / max(stacked.shape[0], 1), f"a copy of {rows:,} rows", advice, DataError)


def never_written(array) -> bool:
    """Whether nobody can write to these numbers: neither through this array nor through one that it is a view of."""
    return all(not part.flags.writeable for part in _lineage(array) if isinstance(part, np.ndarray))


def is_mapped(array) -> bool:
    """Whether the numbers lie in a file."""
    return any(isinstance(part, np.memmap | mmap.mmap) for part in _lineage(array))


def _lineage(array):
    """The array, what it is a view of, and so on."""
    while array is not None:
        yield array
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
