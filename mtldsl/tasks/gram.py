"""X^T diag(weights) X, the one place where it is made: of features, and of rows as the features of X^T."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mtldsl.system.blocks import inner_product
from mtldsl.system.memory import require_memory
from mtldsl.system.stops import leave_if_late

__all__ = ["gram", "require_gram_memory"]

_SLAB = 1 << 20  # entries of a product of sparse inputs that are made at once
_NUMBERS = 1 << 18  # of dense inputs that are weighted at once
_LONG = 2e10  # multiplications that take half a second or more, in one product of ...
_MANY = 2000  # ... more columns than those that are multiplied some rows at a time
_MOST_PARTS = 8  # of sparse inputs, that are copied one after another: each takes a pass over all


def gram(X, weights: np.ndarray | None = None) -> np.ndarray:
    """X^T diag(weights) X, dense, for X (n, d) dense or sparse and weights (n,), None for ones.

    >>> gram(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 0.0]))
    array([[1., 2.],
           [2., 4.]])
    """
    X = X.astype(float, copy=False)  # of stored float32 values, in float64
    if sparse.issparse(X):
        d = X.shape[1]
        parts = max(d * d / _SLAB, min(X.nnz / _SLAB, _MOST_PARTS), 1.0)
        total, step = np.empty((d, d)), max(int(d / parts), 1)
        # some features at a time: products that are full take more than twice the memory of arrays, and their columns are copies
        for first in range(0, d, step):
            part = X if step >= d else X[:, first : first + step]
            part = part if weights is None else sparse.diags_array(weights) @ part
            total[:, first : first + step] = (X.T @ part.asformat(X.T.format)).toarray()
        return total
    if weights is None and float(X.shape[0]) * X.shape[1] ** 2 > _LONG and X.shape[1] > _MANY:
        return _in_columns(X)
    if weights is None:
        return inner_product(X.T, X)
    rows = np.flatnonzero(weights)
    every, total = len(rows) == len(weights), np.zeros((X.shape[1], X.shape[1]))
    step = max(_NUMBERS // max(X.shape[1], 1), 256)
    for first in range(0, len(rows), step):  # no second copy of the inputs
        some = slice(first, first + step) if every else rows[first : first + step]
        part, own = X[some], weights[some, None]
        if own.min() >= 0.0:  # of one matrix with itself, half of the products are enough
            part = part * np.sqrt(own)
            total += part.T @ part
        else:
            total += part.T @ (part * own)
    return total


def _in_columns(X) -> np.ndarray:
    """X^T X, some columns at a time, above the diagonal alone: a signal and a time limit are heard between two of them."""
    n, d = X.shape
    total, step = np.empty((d, d)), max(int(_LONG / (4.0 * n * d)), 64)
    for first in range(0, d, step):
        leave_if_late()
        own = slice(first, min(first + step, d))
        total[own, own] = (
            X[:, own].T @ X[:, own]
        )  # of one matrix with itself, which is symmetric to the last bit
        np.matmul(X[:, :first].T, X[:, own], out=total[:first, own])
        total[own, :first] = total[:first, own].T
    return total


def require_gram_memory(n_features: int, n_tasks: int, write_instead: str, copies: int = 2) -> None:
    """SolverError where as many Gram matrices do not fit into memory, with a factor or a centred copy beside them."""
    size, several = 8.0 * copies * n_features * n_features * n_tasks, n_tasks > 1
    require_memory(
        size,
        f"the Gram matri{'ces' if several else 'x'} of {f'{n_tasks:,} tasks with ' if several else ''}{n_features:,} features",
        write_instead,
    )
