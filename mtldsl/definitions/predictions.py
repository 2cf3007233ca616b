"""Expressions at a point, and what they predict: X_i w_i + b_i by numpy's own products, from the numbers that tasks hold."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.language.expressions.operation import Operation

__all__ = ["matrix_of", "predictions", "scores", "some_predictions", "some_samples", "table_of"]

#: Numbers that are made beside the result at once.
_SLAB_ENTRIES = 1 << 22


def matrix_of(tree: Any, blocks: Mapping[str, np.ndarray], sizes: bool = False) -> Any:
    """Return the value of an expression as typed. KeyError, with its name, for a block that is not there.

    sizes : the same with the absolute value of every number in it, and every difference a sum: what rounding is proportional to
    """
    if not isinstance(tree, Operation):
        return abs(tree) if sizes else tree
    name, operands = tree.name, tree.operands
    if name == "block":
        return abs(blocks[operands[0]]) if sizes else blocks[operands[0]]
    if name == "*":
        factor, value = operands[0].value, matrix_of(operands[1], blocks, sizes)
        return (abs(factor) if sizes else factor) * value
    if name == "sum":
        value, axis = matrix_of(operands[0], blocks, sizes), operands[1]
        return np.asarray(value).sum(axis=axis, keepdims=True)
    if name == "[]":
        return matrix_of(operands[0], blocks, sizes)[operands[1], :][:, operands[2]]
    left, right = (matrix_of(one, blocks, sizes) for one in operands)
    if name == "@":
        return left @ right
    if name == "beside":
        return np.hstack([left, right])
    return left - right if name == "-" and not sizes else left + right


def predictions(tasks: Any, W: np.ndarray, b: np.ndarray | None, sizes: bool = False) -> np.ndarray:
    """Return X_i w_i + b_i (N,), task after task. sizes: of |X|, |W| and |b|, whatever the signs of X."""
    if tasks.is_shared:
        z = scores(tasks.X, W, b, sizes)
        return z.ravel() if tasks.mask is None else z[tasks.mask.T]
    z = np.empty(tasks.n_samples)
    ends = tasks.offsets.tolist()
    if tasks.is_sparse:
        _sparse_rows(tasks.stacked, tasks.offsets, W, z, sizes)
    else:
        X = tasks.stacked
        for i, (first, last) in enumerate(pairwise(ends)):
            rows = X[first:last]
            np.matmul(abs(rows) if sizes else rows, W[:, i], out=z[first:last])
    if b is not None:
        z += np.repeat(b, tasks.counts)
    return z


def some_samples(tasks: Any, values: np.ndarray, some: slice) -> np.ndarray:
    """Return some of the values (N,) of samples: of one complete table some rows, else some positions."""
    is_table = tasks.is_shared and tasks.mask is None
    return values.reshape(tasks.n_tasks if is_table else 1, -1)[:, some].ravel()


def some_predictions(tasks: Any, W: np.ndarray, b: np.ndarray | None, some: slice) -> tuple:
    """Return the tasks of `some_samples` and X_i w_i + b_i there."""
    if tasks.is_shared and tasks.mask is None:
        z = scores(tasks.X[some], W, b)
        return np.repeat(np.arange(len(z)), z.shape[1]), z.ravel()
    task = np.repeat(np.arange(tasks.n_tasks), tasks.counts)[some]
    each = W.T[task]
    if tasks.is_shared:
        X = tasks.X[np.flatnonzero(tasks.mask.T)[some] % tasks.X.shape[0]]
    else:
        X = tasks.stacked[some]
    z = np.ravel(X.multiply(each).sum(axis=1)) if sparse.issparse(X) else np.einsum("ij,ij->i", X, each)
    return task, z if b is None else z + b[task]


def scores(X: Any, W: np.ndarray, b: np.ndarray | None, sizes: bool = False) -> np.ndarray:
    """Return X W + b as (m, n): a row for every column of W."""
    if sparse.issparse(X):
        z = np.ascontiguousarray(np.asarray((abs(X) if sizes else X) @ np.ascontiguousarray(W)).T)
    else:
        z = W.T @ (abs(X) if sizes else X).T
    if b is not None:
        z += b[:, None]
    return z


def _sparse_rows(X, offsets, W, out: np.ndarray, sizes: bool) -> None:
    """Write the products of the rows of every task with its column, some rows at a time: as one matrix over the features of all tasks."""
    d, n = X.shape[1], X.shape[0]
    flat, step = W.T.ravel(), max(1, _SLAB_ENTRIES * n // max(X.nnz, 1))
    for first in range(0, n, step):
        last = min(first + step, n)
        a, b = int(X.indptr[first]), int(X.indptr[last])
        owner = np.searchsorted(offsets, np.arange(first, last), side="right") - 1
        entries = X.indptr[first : last + 1] - a
        places = X.indices[a:b] + np.repeat(owner.astype(np.int64) * d, np.diff(entries))
        data = abs(X.data[a:b]) if sizes else X.data[a:b]
        out[first:last] = sparse.csr_array((data, places, entries), shape=(last - first, flat.size)) @ flat


def table_of(tasks: Any, values: np.ndarray, missing: float) -> np.ndarray:
    """Return (n, m) of what tasks with one X hold task after task; `missing` where there is no label."""
    n = tasks.X.shape[0]
    if tasks.mask is None:
        return values.reshape(tasks.n_tasks, n).T
    table = np.full((tasks.n_tasks, n), missing)
    table[tasks.mask.T] = values
    return table.T
