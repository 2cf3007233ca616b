"""Sweeps of exact row steps on a loss's second-order model, through the predictions: compiled; imported when first used.

The model's slopes in the predictions, V = u + D (X dW + db), are kept up to date; the intercepts' steps db are those that are best for
dW, and are not written into V: what they add to the gradient of row j is db times the border X_j^T D.
"""

from __future__ import annotations

import numpy as np

from mtldsl.solvers.kernels.row_descent import _step_of_row, _thresholded
from mtldsl.system.compiled import compiled

__all__ = ["descend_gram", "sweep_columns_separate", "sweep_columns_shared"]


@compiled(inside=True, fastmath={"contract", "reassoc"})
def _move_row(j, pull, own, step, W, border, curvature, totals, sums, l1, l21, ridge, nonneg):
    """The exact step of row j, of which pull (m,) is X_j^T V: (the sum of curvature * step^2, of its square: what its slope was off by)."""
    for i in range(step.size):
        gradient = pull[i] - border[i, j] * sums[i] / totals[i]
        own[i] = curvature[i, j] + ridge[j]
        pull[i] = _thresholded(curvature[i, j] * W[i, j] - gradient, l1[i, j], nonneg)
    _step_of_row(W, j, pull, own, l21[j], step)
    moved, slope = 0.0, 0.0
    for i in range(step.size):
        slope += own[i] * own[i] * step[i] * step[i]
        W[i, j] += step[i]
        sums[i] += border[i, j] * step[i]
        moved += own[i] * step[i] * step[i]
    return moved, slope


@compiled(fastmath={"contract", "reassoc"})
def sweep_columns_shared(
    which, indptr, indices, data, D, V, W, border, curvature, totals, sums, l1, l21, ridge, nonneg, goal
):
    """One round over the rows `which`; the sum over all steps of curvature * step^2, 0 where no row's slope was off by more than `goal`
    of its l1 and l21.

    indptr, indices, data : CSC columns; D, V (n, m); W, border, curvature (centred), l1 (m, p); totals (m,) of D
    sums (m,) : sum of V over samples as if db = 0, kept up to date
    """
    m = W.shape[0]
    pull, own, step = np.empty(m), np.empty(m), np.empty(m)
    moved, is_far = 0.0, False
    for place in range(which.size):  # an array's own iteration takes a quarter of a second to compile
        j = which[place]
        pull[:] = 0.0
        for k in range(indptr[j], indptr[j + 1]):
            r, x = indices[k], data[k]
            for i in range(m):
                pull[i] += x * V[r, i]
        more, slope = _move_row(
            j, pull, own, step, W, border, curvature, totals, sums, l1, l21, ridge, nonneg
        )
        level = goal * (l1[0, j] + l21[j])
        moved += more
        is_far |= slope > level * level
        if slope > 0.0:
            for k in range(indptr[j], indptr[j + 1]):
                r, x = indices[k], data[k]
                for i in range(m):
                    V[r, i] += x * D[r, i] * step[i]
    return moved if is_far else 0.0


@compiled(fastmath={"contract", "reassoc"})
def sweep_columns_separate(
    which,
    indptr,
    indices,
    data,
    task_of,
    D,
    V,
    W,
    border,
    curvature,
    totals,
    sums,
    l1,
    l21,
    ridge,
    nonneg,
    goal,
):
    """The same where every sample is of one task, task_of (N,); D, V (N,)."""
    m = W.shape[0]
    pull, own, step = np.empty(m), np.empty(m), np.empty(m)
    moved, is_far = 0.0, False
    for place in range(which.size):  # an array's own iteration takes a quarter of a second to compile
        j = which[place]
        pull[:] = 0.0
        for k in range(indptr[j], indptr[j + 1]):
            r = indices[k]
            pull[task_of[r]] += data[k] * V[r]
        more, slope = _move_row(
            j, pull, own, step, W, border, curvature, totals, sums, l1, l21, ridge, nonneg
        )
        level = goal * (l1[0, j] + l21[j])
        moved += more
        is_far |= slope > level * level
        if slope > 0.0:
            for k in range(indptr[j], indptr[j + 1]):
                r = indices[k]
                V[r] += data[k] * D[r] * step[task_of[r]]
    return moved if is_far else 0.0


@compiled(fastmath={"contract"})
def descend_gram(gram, gradient, W, l1, l21, ridge, nonneg, precision, most):
    """Rounds over all rows of exact steps, with a Gram matrix a task (m, p, p), until what one brings is precision^2 of what the first did;
    whether it came to that within `most`. gradient (m, p), of the quadratic, and W are kept up to date.
    """
    m, p = W.shape
    pull, own, step = np.empty(m), np.empty(m), np.empty(m)
    first = 0.0
    for count in range(most):
        moved = 0.0
        for j in range(p):
            for i in range(m):
                own[i] = gram[i, j, j] + ridge[j]
                pull[i] = _thresholded(gram[i, j, j] * W[i, j] - gradient[i, j], l1[i, j], nonneg)
            _step_of_row(W, j, pull, own, l21[j], step)
            for i in range(m):
                if step[i] != 0.0:
                    W[i, j] += step[i]
                    moved += own[i] * step[i] * step[i]
                    for k in range(p):
                        gradient[i, k] += step[i] * gram[i, j, k]
        if count == 0:
            first = moved
        if moved <= precision * precision * first:
            return True
    return False
