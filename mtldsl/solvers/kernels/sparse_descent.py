"""Sweeps of exact row steps on the residual of sparse inputs, held by columns: sequential by nature, so compiled; imported when first used."""

from __future__ import annotations

import numpy as np

from mtldsl.solvers.kernels.row_descent import _thresholded
from mtldsl.system.compiled import compiled

__all__ = ["pull_of_columns", "sweep_columns"]


@compiled(inside=True, fastmath={"contract"})
def _along(data, indices, first, last, flat, m, i):
    """The product of a column with column i of a matrix (n, m), given flat."""
    total = 0.0
    for k in range(first, last):
        total += data[k] * flat[indices[k] * m + i]
    return total


@compiled(fastmath={"contract"})
def sweep_columns(
    data, indices, indptr, rows, order, means, squares, residual, W, l1, l21, ridge, nonneg, n_sweeps
):
    """n_sweeps rounds over the features rows[order] of minimising exactly over a column of W (m, p), as `sweep_shared` does.

    data, indices, indptr : all features' columns;  means (d,) of the columns, zeros where they are not centred
    squares (p,)          : squared lengths of the centred columns
    residual (n, m)       : Y - X W^T of columns that are not centred, kept up to date; centred ones add W means to every row of it
    """
    n, m = residual.shape
    flat = residual.reshape(n * m)
    pull = np.empty(m)
    shift = np.zeros(m)
    for a in range(len(rows)):
        for i in range(m):
            shift[i] += W[i, a] * means[rows[a]]
    for _ in range(n_sweeps):
        for place in range(order.size):  # an array's own iteration takes a quarter of a second to compile
            a = order[place]
            j = rows[a]
            curvature = squares[a] + ridge[a]
            if curvature <= 0.0:  # a column of zeros: only the penalty sees it
                W[:, a] = 0.0
                continue
            length = 0.0
            for i in range(m):
                along = shift[i] * means[j] * n + _along(data, indices, indptr[j], indptr[j + 1], flat, m, i)
                pull[i] = _thresholded(squares[a] * W[i, a] + along, l1[i, a], nonneg)
                length += pull[i] * pull[i]
            length = np.sqrt(length)
            shrink = 0.0 if length <= l21[a] else (1.0 - l21[a] / length) / curvature
            for i in range(m):
                step = shrink * pull[i] - W[i, a]
                if step != 0.0:
                    W[i, a] += step
                    shift[i] += step * means[j]
                    for k in range(indptr[j], indptr[j + 1]):
                        flat[indices[k] * m + i] -= data[k] * step


@compiled(fastmath={"contract"})
def pull_of_columns(data, indices, indptr, rows, means, residual, shift):
    """(m, p) minus the gradient of those features: their centred columns times residual + shift."""
    n, m = residual.shape
    flat = residual.reshape(n * m)
    pull = np.empty((m, len(rows)))
    for a in range(len(rows)):
        j = rows[a]
        for i in range(m):
            pull[i, a] = shift[i] * means[j] * n + _along(data, indices, indptr[j], indptr[j + 1], flat, m, i)
    return pull
