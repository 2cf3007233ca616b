"""The loop of the oracle of orders that is sequential by nature, so compiled; imported when first used."""

from __future__ import annotations

import numpy as np

from mtldsl.system.compiled import compiled

__all__ = ["best_places"]


@compiled("void(f8[::1], f8[::1], f8[::1], f8[::1], f8, i8[::1])", error_model="numpy")
def best_places(below, down, p, q, unit, first):
    """first[j]: above which positive (0 to P) negative j stands best: the i, counted from 1, that maximises -p[i + j - 1] - j q[i + j - 1] -
    unit (below[i] - (P - i + 1) down[j]), the smallest of several, j counted from 1. It rises with j.

    below (P + 1,): sums of the falling scores of positives from one on; down (N,): falling scores of negatives
    """
    P, N = below.shape[0] - 1, down.shape[0]
    todo = np.empty((64, 4), np.int64)  # negatives from a to b - 1, whose places are from low to high
    todo[0, 0], todo[0, 1], todo[0, 2], todo[0, 3] = 0, N, 0, P
    waiting = 1
    while waiting > 0:
        waiting -= 1
        a, b, low, high = todo[waiting, 0], todo[waiting, 1], todo[waiting, 2], todo[waiting, 3]
        if a >= b:
            continue
        j = (a + b) // 2
        best, at = -np.inf, low
        for i in range(low, high + 1):
            s = i + j + 1  # i and j are counted from 0 here
            worth = -p[s] - (j + 1.0) * q[s] - unit * (below[i] - (P - i) * down[j])
            if worth > best:
                best, at = worth, i
        first[j] = at
        todo[waiting, 0], todo[waiting, 1], todo[waiting, 2], todo[waiting, 3] = a, j, low, at
        waiting += 1
        todo[waiting, 0], todo[waiting, 1], todo[waiting, 2], todo[waiting, 3] = j + 1, b, at, high
        waiting += 1
