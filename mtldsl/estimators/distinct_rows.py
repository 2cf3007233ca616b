"""Rows that are the same, with the same labels, as one row with the sum of their weights; in an order that is their own.

A kernel matrix is then as small as it can be, and what is learned does not depend on the order of rows, nor on whether a row stands
there twice or has twice the weight.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

__all__ = ["distinct_rows", "numbered"]


def distinct_rows(X, signs: np.ndarray, weights: np.ndarray | None) -> tuple:
    """(X, signs, weights) of the distinct rows that have a label; weights (n, m).

    >>> X, signs, weights = distinct_rows(np.array([[2.0], [1.0], [2.0]]), np.array([[1.0], [-1.0], [1.0]]), None)
    >>> X.ravel(), signs.ravel(), weights.ravel()
    (array([1., 2.]), array([-1.,  1.]), array([1., 2.]))
    """
    weights = np.ones(signs.shape) if weights is None else weights
    first, which, totals = numbered(X, signs, weights)
    return X[first], np.where(totals > 0, signs[first], np.nan), totals


def numbered(X, signs: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(where each distinct row that has a label first stands, in an order that is the rows' own; for every row of X the number of its distinct
    row, -1 for a row without a label; the sums of the weights (distinct rows, m), 0 where a label is missing).

    >>> first, which, totals = numbered(np.array([[2.0], [1.0], [2.0]]), np.array([[1.0], [-1.0], [1.0]]), np.ones((3, 1)))
    >>> first, which
    (array([1, 0]), array([1, 0, 1]))
    """
    there = ~np.isnan(signs) & (weights > 0)
    kept = np.flatnonzero(there.any(axis=1))
    X, labels = X[kept], np.where(there, signs, 0.0)[kept]
    if sparse.issparse(X):
        X = sparse.csr_array(X)
        X.sum_duplicates()
        X.eliminate_zeros()
        ends = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        keys = np.array(
            [X.indices[a:b].tobytes() + b"|" + X.data[a:b].tobytes() for a, b in ends], dtype=object
        )
        _, rows = np.unique(keys, return_inverse=True)
        table = np.hstack([rows.reshape(-1, 1).astype(float), labels])
    else:
        table = np.hstack([X + 0.0, labels])
    _, first, own = np.unique(table, axis=0, return_index=True, return_inverse=True)
    totals = np.zeros((len(first), signs.shape[1]))
    np.add.at(totals, own.ravel(), np.where(there, weights, 0.0)[kept])
    which = np.full(len(signs), -1)
    which[kept] = own.ravel()
    return kept[first], which, totals
