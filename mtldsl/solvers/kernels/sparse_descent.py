"""Sweeps of exact row steps on the residual of sparse inputs, held by columns: sequential by nature, so compiled; imported when first used."""

from __future__ import annotations

import numpy as np

from mtldsl.solvers.kernels.row_descent import _thresholded
from mtldsl.system.compiled import compiled

__all__ = ["fill_pull", "residual_of_columns", "sweep_columns"]


@compiled(inside=True, fastmath={"contract", "reassoc"})
def _sweep_of_one(data, indices, indptr, rows, few, means, squares, flat, W, l1, l21, ridge, nonneg):
    """`sweep_columns` of one task, whose residual is flat: what is told apart there for every task takes longer than a short column."""
    shift = 0.0
    for a in range(len(rows)):
        shift += W[0, a] * means[rows[a]]
    n = len(flat)
    for a in range(len(rows)):
        before = W[0, a]
        if few and before == 0.0:
            continue
        j = rows[a]
        curvature = squares[a] + ridge[a]
        if curvature <= 0.0:  # a column of zeros: only the penalty sees it
            W[0, a] = 0.0
            continue
        along = shift * means[j] * n
        for k in range(indptr[j], indptr[j + 1]):
            along += data[k] * flat[indices[k]]
        along = _thresholded(squares[a] * before + along, l1[0, a] + l21[a], nonneg)
        step = along / curvature - before
        if step != 0.0:
            W[0, a] = before + step
            shift += step * means[j]
            for k in range(indptr[j], indptr[j + 1]):
                flat[indices[k]] -= data[k] * step


@compiled(inside=True, fastmath={"contract"})
def sweep_columns(data, indices, indptr, rows, few, means, squares, residual, W, l1, l21, ridge, nonneg):
    """A round over the features `rows`, or those of them that are not zero where `few`, of minimising exactly over a column of W (m, p),
    as `sweep_shared` does.

    data, indices, indptr : all features' columns;  means (d,) of the columns, zeros where they are not centred
    squares (p,)          : squared lengths of the centred columns
    residual (n, m)       : Y - X W^T of columns that are not centred, kept up to date; centred ones add W means to every row of it
    """
    n, m = residual.shape
    flat = residual.reshape(n * m)
    if m == 1:
        _sweep_of_one(data, indices, indptr, rows, few, means, squares, flat, W, l1, l21, ridge, nonneg)
        return
    pull = np.empty(m)
    shift = np.zeros(m)
    for i in range(m):
        for a in range(len(rows)):
            shift[i] += W[i, a] * means[rows[a]]
    for a in range(len(rows)):
        j = rows[a]
        curvature = squares[a] + ridge[a]
        if curvature <= 0.0:  # a column of zeros: only the penalty sees it
            for i in range(m):
                W[i, a] = 0.0
            continue
        if few:
            stays = True
            for i in range(m):
                if W[i, a] != 0.0:
                    stays = False
                    break
            if stays:
                continue
        for i in range(m):
            pull[i] = shift[i] * means[j] * n
        for k in range(indptr[j], indptr[j + 1]):
            value, start = data[k], indices[k] * m
            for i in range(m):
                pull[i] += value * flat[start + i]
        length = 0.0
        for i in range(m):
            pull[i] = _thresholded(squares[a] * W[i, a] + pull[i], l1[i, a], nonneg)
            length += pull[i] * pull[i]
        length = np.sqrt(length)
        shrink = 0.0 if length <= l21[a] else (1.0 - l21[a] / length) / curvature
        moves = False
        for i in range(m):
            pull[i] = shrink * pull[i] - W[i, a]  # the step, from here on
            moves = moves or pull[i] != 0.0
        if not moves:
            continue
        for i in range(m):
            W[i, a] += pull[i]
            shift[i] += pull[i] * means[j]
        for k in range(indptr[j], indptr[j + 1]):
            value, start = data[k], indices[k] * m
            for i in range(m):
                flat[start + i] -= value * pull[i]


@compiled(inside=True, fastmath={"contract", "reassoc"})
def fill_pull(data, indices, indptr, rows, means, residual, shift, pull):
    """pull (m, p) = minus the gradient of those features: their centred columns times residual + shift."""
    n, m = residual.shape
    flat = residual.reshape(n * m)
    one = np.empty(m)
    for a in range(len(rows)):
        j = rows[a]
        if m == 1:
            along = shift[0] * means[j] * n
            for k in range(indptr[j], indptr[j + 1]):
                along += data[k] * flat[indices[k]]
            pull[0, a] = along
            continue
        for i in range(m):
            one[i] = shift[i] * means[j] * n
        for k in range(indptr[j], indptr[j + 1]):
            value, start = data[k], indices[k] * m
            for i in range(m):
                one[i] += value * flat[start + i]
        for i in range(m):
            pull[i, a] = one[i]


@compiled(fastmath={"contract"})
def residual_of_columns(data, indices, indptr, rows, W, Y):
    """(n, m) Y^T - X W^T of those features' columns, not centred; W (m, p), Y (m, n)."""
    m, n = Y.shape
    residual = np.empty((n, m))
    for i in range(m):
        for k in range(n):
            residual[k, i] = Y[i, k]
    weights = np.empty(m)
    for a in range(len(rows)):
        some = False
        for i in range(m):
            weights[i] = W[i, a]
            some = some or weights[i] != 0.0
        if some:
            for k in range(indptr[rows[a]], indptr[rows[a] + 1]):
                value, at = data[k], indices[k]
                for i in range(m):
                    residual[at, i] -= value * weights[i]
    return residual
