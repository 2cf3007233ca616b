"""One look at all rows of the weights beside a negative gradient: compiled; imported when first used."""

from __future__ import annotations

import numpy as np

from mtldsl.solvers.kernels.row_descent import _thresholded
from mtldsl.system.compiled import compiled

__all__ = ["look_at_rows"]


@compiled(fastmath={"contract"})
def look_at_rows(pull, W, l1, l21, ridge, nonneg, excess):
    """(the penalty's value, <pull, W>, the gauge, what ridges pay for a dual point); excess (p,): by how much every row violates optimality.

    pull : minus the loss's gradient (m, p). The gauge is the smallest t >= 1 such that t times the dual balls hold what no ridge takes
    up. Where l21 is zero, a row violates as its worst entry does, less than zero where it is far from moving.
    """
    m, p = pull.shape
    left = np.empty(m)
    value, along, gauge, square = 0.0, 0.0, 1.0, 0.0
    for j in range(p):
        norm, length, worst = 0.0, 0.0, -np.inf
        for i in range(m):
            w = W[i, j]
            along += pull[i, j] * w
            length += w * w
            value += l1[i, j] * abs(w)
            if nonneg and w < 0.0:
                value = np.inf
            own = pull[i, j] - ridge[j] * w
            left[i] = _thresholded(own, l1[i, j], nonneg)
            norm += left[i] * left[i]
            worst = max(worst, (own if nonneg else abs(own)) - l1[i, j])
        norm = np.sqrt(norm)
        length = np.sqrt(length)
        value += length * (l21[j] + 0.5 * ridge[j] * length)
        excess[j] = norm - l21[j] if l21[j] > 0.0 else worst
        over = max(norm - l21[j], 0.0)
        if ridge[j] > 0.0:
            share = over / norm if norm > 0.0 else 0.0
            for i in range(m):
                part = ridge[j] * W[i, j] + share * left[i]
                square += part * part / ridge[j]
        elif l21[j] > 0.0:
            gauge = max(gauge, 1.0 + over / l21[j])
        else:
            for i in range(m):
                if left[i] != 0.0:
                    gauge = max(gauge, 1.0 + abs(left[i]) / l1[i, j])
    return value, along, gauge, square
