"""Sweeps of exact row steps on a quadratic in Gram form: sequential by nature, so compiled; imported when first used.

Arrays are transposed, tasks first (m, p): what a step changes then lies in contiguous runs of p, also where m = 1.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["sweep_separate", "sweep_shared"]


@njit(cache=True, fastmath={"contract"})
def _thresholded(z, l1, nonneg):
    """z moved towards 0 by l1; with nonneg, its positive part alone."""
    if z > l1:
        return z - l1
    if z < -l1 and not nonneg:
        return z + l1
    return 0.0


@njit(cache=True, fastmath={"contract"})
def sweep_shared(gram, gradient, W, l1, l21, ridge, nonneg, n_sweeps):
    """n_sweeps rounds over all rows j of minimising exactly over W[:, j]

        1/2 tr(W gram W^T) - <cross, W> + sum_j sum_i l1[i, j] |W_ij| + l21[j] ||W[:, j]|| + ridge[j] / 2 ||W[:, j]||^2.

    gradient = W gram - cross, kept up to date in place, as is W. gram (p, p); gradient, W, l1 (m, p); l21, ridge (p,).
    Returns the largest decrease bound (gram_jj + ridge_j) ||step||^2 of the last round.
    """
    m, p = W.shape
    row = np.empty(m)
    largest = 0.0
    for _ in range(n_sweeps):
        largest = 0.0
        for j in range(p):
            curvature = gram[j, j] + ridge[j]
            if curvature <= 0.0:  # a column of zeros: only the penalty sees it
                W[:, j] = 0.0
                continue
            square = 0.0
            for i in range(m):
                row[i] = _thresholded(gram[j, j] * W[i, j] - gradient[i, j], l1[i, j], nonneg)
                square += row[i] * row[i]
            norm = np.sqrt(square)
            shrink = 0.0 if norm <= l21[j] else (1.0 - l21[j] / norm) / curvature
            moved = 0.0
            for i in range(m):
                step = shrink * row[i] - W[i, j]
                if step != 0.0:
                    moved += step * step
                    W[i, j] += step
                    for k in range(p):
                        gradient[i, k] += step * gram[j, k]
            largest = max(largest, curvature * moved)
    return largest


@njit(cache=True, fastmath={"contract"})
def _scale_of_row(pull, curvature, l21, start):
    """The t > 0 with sum_i (pull_i / (curvature_i t + l21))^2 = 1, by Newton's method on 1 / sqrt(sum) = 1.

    That function of t is increasing and concave, so every step but the first lands left of the root and then rises to it.
    """
    t = start
    for _ in range(50):
        total = 0.0
        slope = 0.0
        for i in range(pull.size):
            if pull[i] != 0.0:
                inverse = 1.0 / (curvature[i] * t + l21)
                share = pull[i] * inverse
                share *= share
                total += share
                slope += share * curvature[i] * inverse
        if slope <= 0.0:
            break
        root = np.sqrt(total)
        change = total * (root - 1.0) / slope
        t = max(t + change, 0.0)
        if abs(change) <= 1e-14 * t:
            break
    return t


@njit(cache=True, fastmath={"contract"})
def sweep_separate(gram, gradient, W, l1, l21, ridge, nonneg, n_sweeps):
    """As `sweep_shared` with a Gram matrix a task: gram (m, p, p), ridge (p,).

    With unequal curvatures a row's minimiser is pull_i / (curvature_i + l21 / t) with t its norm: one root in one unknown.
    """
    m, p = W.shape
    pull = np.empty(m)
    curvature = np.empty(m)
    largest = 0.0
    for _ in range(n_sweeps):
        largest = 0.0
        for j in range(p):
            square = 0.0
            norm = 0.0
            for i in range(m):
                diagonal = gram[i, j, j]
                curvature[i] = diagonal + ridge[j]
                pull[i] = _thresholded(diagonal * W[i, j] - gradient[i, j], l1[i, j], nonneg)
                if curvature[i] <= 0.0:
                    pull[i] = 0.0
                square += pull[i] * pull[i]
                norm += W[i, j] * W[i, j]
            stays_zero = square <= l21[j] * l21[j]
            extra = 0.0
            if l21[j] > 0.0 and not stays_zero:
                t = _scale_of_row(pull, curvature, l21[j], np.sqrt(norm))
                stays_zero = t <= 0.0  # exactly at the critical value the root is 0 up to rounding
                extra = 0.0 if stays_zero else l21[j] / t
            for i in range(m):
                if stays_zero or curvature[i] <= 0.0:
                    step = -W[i, j]
                else:
                    step = pull[i] / (curvature[i] + extra) - W[i, j]
                if step != 0.0:
                    largest = max(largest, curvature[i] * step * step)
                    W[i, j] += step
                    for k in range(p):
                        gradient[i, k] += step * gram[i, j, k]
    return largest
