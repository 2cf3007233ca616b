"""Sparse inputs by features: the transpose in CSR, whose rows are the features' columns."""

from __future__ import annotations

import numpy as np
from scipy import sparse

__all__ = ["by_features", "row_sums"]

_SLAB = 1 << 18  # values that are squared at once


def by_features(X) -> sparse.csr_array:
    """X^T in CSR, of CSR X: made once, and the columns are slices of it.

    >>> by_features(sparse.csr_array([[1.0, 0.0], [2.0, 3.0]])).toarray()
    array([[1., 2.],
           [0., 3.]])
    """
    return sparse.csr_array(X.T)


def row_sums(X: sparse.csr_array, squared: bool = False) -> np.ndarray:
    """The sum of every row, or of its squares, a slab of rows at a time: no copy of all values.

    >>> row_sums(sparse.csr_array([[1.0, 2.0], [0.0, 0.0], [3.0, 0.0]]), squared=True)
    array([5., 0., 9.])
    """
    sums, ends = np.zeros(X.shape[0]), X.indptr
    first = 0
    while first < len(sums):
        last = max(int(np.searchsorted(ends, ends[first] + _SLAB, side="right")) - 1, first + 1)
        values = X.data[ends[first] : ends[last]]
        some = first + np.flatnonzero(np.diff(ends[first : last + 1]))  # `reduceat` knows no empty sums
        if some.size:
            sums[some] = np.add.reduceat(values * values if squared else values, ends[some] - ends[first])
        first = last
    return sums
