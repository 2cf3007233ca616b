"""Sweeps of exact steps on groups of features whose own Gram matrices are diagonal, and rounds of them: sequential by nature, so compiled;
imported when first used."""

from __future__ import annotations

import numpy as np

from mtldsl.solvers.kernels.row_rounds import _combine, _copy, _fill_weights, _products, _relative
from mtldsl.system.compiled import compiled

__all__ = ["rounds_of_groups", "sweep_groups"]

_MEMORY = 5  # sweeps from one extrapolation to the next


@compiled(inside=True, fastmath={"contract"})
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


@compiled(inside=True, fastmath={"contract"})
def _sweep(gram, gradient, W, starts, thresholds, ridge):
    """A round over groups g = starts[g] : starts[g + 1] of minimising exactly over W[:, g]

        1/2 tr(W gram W^T) - <cross, W> + sum_g thresholds[g] ||W[:, g]||_F + ridge / 2 ||W||_F^2.

    gradient = W gram - cross, kept up to date in place, as is W (m, p). gram (p, p) is diagonal within each group.
    """
    m, p = W.shape
    widest = 0
    for g in range(len(thresholds)):
        widest = max(widest, starts[g + 1] - starts[g])
    room = np.empty((widest, m))
    curvatures = np.empty(widest)
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


@compiled(fastmath={"contract"})
def sweep_groups(gram, gradient, W, starts, thresholds, ridge):
    """One round, for a caller that keeps its own history of them."""
    _sweep(gram, gradient, W, starts, thresholds, ridge)


@compiled(inside=True, fastmath={"contract"})
def _penalty_and_gauge(W, gradient, starts, thresholds, ridge):
    """(the penalty of W, by how much the gradient is beyond the groups' dual balls: squared, and relative to the largest share)."""
    m = W.shape[0]
    value, beyond, worst = 0.0, 0.0, 0.0
    for g in range(len(thresholds)):
        square, slope = 0.0, 0.0
        for k in range(starts[g], starts[g + 1]):
            for i in range(m):
                square += W[i, k] * W[i, k]
                slope += gradient[i, k] * gradient[i, k]
        value += thresholds[g] * np.sqrt(square) + 0.5 * ridge * square
        over = max(np.sqrt(slope) - thresholds[g], 0.0)
        beyond += over * over
        worst = max(worst, over / thresholds[g])
    return value, beyond, worst


@compiled(fastmath={"contract"})
def rounds_of_groups(gram, cross, square, gradient, W, starts, thresholds, ridge, most, target):
    """Up to `most` rounds of _MEMORY sweeps and an extrapolation, until the relative gap of the problem on these groups is at most target.

    cross (m, p) and square = ||Y||^2 with gram are the quadratic; gradient = W gram - cross and W (m, p) are kept up to date. thresholds > 0.
    The dual point is the residual R of the iterate: a ridge takes up what is beyond the dual balls; without one, it is the best t R
    within them. Returns (rounds, gap).
    """
    m, p = W.shape
    past_W, past_gradients = np.empty((_MEMORY + 1, m * p)), np.empty((_MEMORY + 1, m * p))
    other, other_gradient = np.empty((m, p)), np.empty((m, p))
    flat_W, flat_gradient = W.reshape(m * p), gradient.reshape(m * p)
    small, weights = np.empty((_MEMORY, _MEMORY)), np.empty(_MEMORY)
    done, gap = 0, np.inf
    while done < most:
        _copy(flat_W, past_W[0])
        _copy(flat_gradient, past_gradients[0])
        for k in range(_MEMORY):
            _sweep(gram, gradient, W, starts, thresholds, ridge)
            _copy(flat_W, past_W[k + 1])
            _copy(flat_gradient, past_gradients[k + 1])
        done += 1
        lowest = np.inf
        for trial in range(2):  # the iterate, then the extrapolated one, where that is better
            V, slope = W, gradient
            if trial == 1:
                if not _fill_weights(past_W, small, weights):
                    break
                _combine(past_W, weights, other.reshape(m * p))
                _combine(past_gradients, weights, other_gradient.reshape(m * p))
                V, slope = other, other_gradient
            curved, along = _products(V.reshape(m * p), cross.reshape(m * p), slope.reshape(m * p))
            value, beyond, worst = _penalty_and_gauge(V, slope, starts, thresholds, ridge)
            value += 0.5 * (curved - along + square)
            if not value < lowest:
                break
            if trial == 1:
                _copy(V.reshape(m * p), flat_W)
                _copy(slope.reshape(m * p), flat_gradient)
            lowest, along = value, square - along
            length = along + curved  # of the residual, squared
            if ridge > 0.0:
                bound = along - 0.5 * (length + beyond / ridge)
            else:
                t = 1.0 / (1.0 + worst)
                if length > 0.0:
                    t = min(t, max(along / length, 0.0))
                bound = t * along - 0.5 * t * t * length
            gap = _relative(value, bound)
            if gap <= target:
                break
        if gap <= target:
            break
    return done, gap
