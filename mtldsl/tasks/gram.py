"""X^T diag(weights) X, the one place where it is made: of features, and of rows as the features of X^T."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mtldsl.system.memory import require_memory

__all__ = ["gram", "require_gram_memory"]

_SLAB = 1 << 20  # entries of a product of sparse inputs that are made at once


def gram(X, weights: np.ndarray | None = None) -> np.ndarray:
    """X^T diag(weights) X, dense, for X (n, d) dense or sparse and weights (n,), None for ones.

    >>> gram(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 0.0]))
    array([[1., 2.],
           [2., 4.]])
    """
    X = X.astype(float, copy=False)  # of stored float32 values, in float64
    if sparse.issparse(X):
        scaled = X if weights is None else sparse.diags_array(weights) @ X
        columns, d = sparse.csr_array(X.T), X.shape[1]
        total, step = np.empty((d, d)), max(_SLAB // max(d, 1), 1)
        for first in range(
            0, d, step
        ):  # some rows at a time: sparse ones that are full take more than twice the memory
            part = columns if step >= d else columns[first : first + step]  # a slice of all would be a copy
            total[first : first + step] = (part @ scaled).toarray()
        return total
    if weights is None:
        return X.T @ X
    rows = np.flatnonzero(weights)
    if len(rows) <= 0.5 * len(weights):  # a copy of the others costs less than their products
        X, weights = X[rows], weights[rows]
    return X.T @ (X * weights[:, None])


def require_gram_memory(n_features: int, n_tasks: int, write_instead: str, copies: int = 2) -> None:
    """SolverError where as many Gram matrices do not fit into memory, with a factor or a centred copy beside them."""
    several = n_tasks > 1
    require_memory(
        8.0 * copies * n_features * n_features * n_tasks,
        f"the Gram matri{'ces' if several else 'x'} of {f'{n_tasks:,} tasks with ' if several else ''}{n_features:,} features",
        write_instead,
    )
