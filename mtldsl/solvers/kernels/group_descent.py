"""Sweeps of exact steps on groups of features whose own Gram matrices are diagonal: sequential by nature, so compiled; imported when first used."""

from __future__ import annotations

import numpy as np

from mtldsl.system.compiled import compiled

__all__ = ["sweep_groups"]


@compiled(fastmath={"contract"})
def _length(pull, curvature, threshold, start):
    """The t > 0 with sum_ki (pull_ki / (curvature_k t + threshold))^2 = 1: Newton's method on 1 / sqrt(sum) = 1, concave and increasing."""
    t = start
    for _ in range(50):
        total = 0.0
        slope = 0.0
        for k in range(pull.shape[0]):
            inverse = 1.0 / (curvature[k] * t + threshold)
            for i in range(pull.shape[1]):
                share = pull[k, i] * inverse
                share *= share
                total += share
                slope += share * curvature[k] * inverse
        if slope <= 0.0:
            break
        change = total * (np.sqrt(total) - 1.0) / slope
        t = max(t + change, 0.0)
        if abs(change) <= 1e-14 * t:
            break
    return t


@compiled(fastmath={"contract"})
def sweep_groups(gram, gradient, W, starts, thresholds, ridge, n_sweeps):
    """n_sweeps rounds over groups g = starts[g] : starts[g + 1] of minimising exactly over W[:, g]

        1/2 tr(W gram W^T) - <cross, W> + sum_g thresholds[g] ||W[:, g]||_F + ridge / 2 ||W||_F^2.

    gradient = W gram - cross, kept up to date in place, as is W (m, p). gram (p, p) is diagonal within each group.
    """
    m, p = W.shape
    widest = 0
    for g in range(len(thresholds)):
        widest = max(widest, starts[g + 1] - starts[g])
    room = np.empty((widest, m))
    curvatures = np.empty(widest)
    for _ in range(n_sweeps):
        for g in range(len(thresholds)):
            first = starts[g]
            pull = room[: starts[g + 1] - first]
            square = 0.0
            norm = 0.0
            for k in range(len(pull)):
                diagonal = gram[first + k, first + k]
                curvatures[k] = max(diagonal + ridge, 0.0)
                for i in range(m):
                    pull[k, i] = diagonal * W[i, first + k] - gradient[i, first + k]
                    if curvatures[k] <= 0.0:  # a column of zeros: only the penalty sees it
                        pull[k, i] = 0.0
                    square += pull[k, i] * pull[k, i]
                    norm += W[i, first + k] * W[i, first + k]
            extra = np.inf
            if square > thresholds[g] * thresholds[g]:
                t = _length(pull, curvatures, thresholds[g], np.sqrt(norm))
                if t > 0.0:
                    extra = thresholds[g] / t
            for k in range(len(pull)):
                total = curvatures[k] + extra
                for i in range(m):
                    step = (pull[k, i] / total if total > 0.0 else 0.0) - W[i, first + k]
                    if step != 0.0:
                        W[i, first + k] += step
                        for j in range(p):
                            gradient[i, j] += step * gram[first + k, j]
