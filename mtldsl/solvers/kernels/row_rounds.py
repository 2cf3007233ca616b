"""Rounds of sweeps, an extrapolation and a look at the gap, in one call: between two small sweeps Python would be most of the time.

The dual point of the gap is the residual of the extrapolated iterate or that of the iterate itself, whichever proves more: near the
solution the first is far ahead, also where its objective is not lower (Massias, Vaiter, Gramfort and Salmon, "Dual extrapolation for
sparse generalized linear models", JMLR 2020).
"""

from __future__ import annotations

import numpy as np

from mtldsl.solvers.kernels.row_descent import bound_of, penalty_value, sweep_shared
from mtldsl.solvers.kernels.sparse_descent import fill_pull, sweep_columns
from mtldsl.system.compiled import compiled

__all__ = ["rounds_of_columns", "rounds_shared"]

_MEMORY = 5  # sweeps from one extrapolation to the next
_FULL = (
    5  # every so many sweeps through columns go over all rows, those between over the rows that are not zero
)
_TINY = float(np.finfo(float).tiny)
#: numbers of a residual up to which those of earlier sweeps are remembered; of larger ones, an extrapolated one is made from the columns,
#: which costs at most half a sweep
_REMEMBERED = 1 << 17


@compiled(inside=True, fastmath={"contract"})
def _relative(objective, bound):
    return (objective - bound) / max(abs(objective), abs(bound), _TINY)


@compiled(inside=True)
def _fill_weights(past, gram, weights):
    """Weights that sum to 1 of the iterates past[1:], so that their steps cancel best; False where there are none.

    past (k + 1, .); gram (k, k) is room.
    """
    k, size = len(weights), past.shape[1]
    trace = 0.0
    for a in range(k):
        for b in range(a + 1):
            total = 0.0
            for i in range(size):
                total += (past[a + 1, i] - past[a, i]) * (past[b + 1, i] - past[b, i])
            gram[a, b] = total
        trace += gram[a, a]
    if not 0.0 < trace < np.inf:
        return False
    # Cholesky, in place; the right-hand side is ones
    for a in range(k):
        gram[a, a] += 1e-12 * trace
        for b in range(a + 1):
            total = gram[a, b]
            for c in range(b):
                total -= gram[a, c] * gram[b, c]
            if a > b:
                gram[a, b] = total / gram[b, b]
            elif total > 0.0:
                gram[a, a] = np.sqrt(total)
            else:
                return False
    for a in range(k):
        total = 1.0
        for c in range(a):
            total -= gram[a, c] * weights[c]
        weights[a] = total / gram[a, a]
    whole = 0.0
    for a in range(k - 1, -1, -1):
        total = weights[a]
        for c in range(a + 1, k):
            total -= gram[c, a] * weights[c]
        weights[a] = total / gram[a, a]
        whole += weights[a]
    if whole == 0.0:
        return False
    for a in range(k):
        weights[a] /= whole
    return True


@compiled(inside=True, fastmath={"contract"})
def _combine(past, weights, out):
    """out = the iterates past[1:], weighted."""
    for i in range(len(out)):
        total = 0.0
        for a in range(len(weights)):
            total += weights[a] * past[a + 1, i]
        out[i] = total


@compiled(inside=True)
def _copy(of, into):
    for i in range(len(of)):
        into[i] = of[i]


@compiled(inside=True, fastmath={"contract"})
def _products(A, B, C):
    """(<A, C>, <A, B>) of flat arrays."""
    first, second = 0.0, 0.0
    for i in range(len(A)):
        first += A[i] * C[i]
        second += A[i] * B[i]
    return first, second


@compiled(fastmath={"contract"})
def rounds_shared(
    gram, cross, square, gradient, W, l1, l21, ridge, nonneg, n_sweeps, most, target, dual_W, excess
):
    """Up to `most` rounds of `_MEMORY` times n_sweeps sweeps as `sweep_shared` does them, until the relative gap is at most target.

    gram (p, p), cross (m, p) and square = ||Y||^2 are the quadratic; gradient (m, p) and W (m, p) are kept up to date.
    Returns (rounds, gap, settled): whether the last two rounds ended on the same support. dual_W (m p,) is set to the weights whose residual
    proves the bound; excess (p,) is room.
    """
    m, p = W.shape
    past_W, past_gradients = np.empty((_MEMORY + 1, m * p)), np.empty((_MEMORY + 1, m * p))
    other, other_gradient = np.empty((m, p)), np.empty((m, p))
    flat_W, flat_gradient = W.reshape(m * p), gradient.reshape(m * p)
    small, weights = np.empty((_MEMORY, _MEMORY)), np.empty(_MEMORY)
    objective, bound, gap, settled = np.inf, -np.inf, np.inf, False
    done = 0
    while done < most:
        _copy(flat_W, past_W[0])
        _copy(flat_gradient, past_gradients[0])
        for k in range(_MEMORY):
            sweep_shared(gram, gradient, W, l1, l21, ridge, nonneg, n_sweeps)
            _copy(flat_W, past_W[k + 1])
            _copy(flat_gradient, past_gradients[k + 1])
        done += 1
        settled = True
        for i in range(m * p):
            if (past_W[0, i] != 0.0) != (past_W[_MEMORY, i] != 0.0):
                settled = False
                break
        for trial in range(2):  # the iterate, then the extrapolated one; one place to compile for both
            V, slope = W, gradient
            if trial == 1:
                if not _fill_weights(past_W, small, weights):
                    break
                _combine(past_W, weights, other.reshape(m * p))
                _combine(past_gradients, weights, other_gradient.reshape(m * p))
                V, slope = other, other_gradient
            curved, along = _products(V.reshape(m * p), cross.reshape(m * p), slope.reshape(m * p))
            value = 0.5 * (curved - along + square) + penalty_value(V, l1, l21, ridge, nonneg)
            along = square - along
            found = bound_of(slope, -1.0, V, l1, l21, ridge, nonneg, along + curved, along, excess)
            if found > bound:
                bound = found
                _copy(V.reshape(m * p), dual_W)
            if trial == 0:
                objective = value
            elif value < objective:
                objective = value
                _copy(V.reshape(m * p), flat_W)
                _copy(slope.reshape(m * p), flat_gradient)
            gap = _relative(objective, bound)
            if gap <= target:
                break
        if gap <= target:
            break
    return done, gap, settled


@compiled(inside=True, fastmath={"contract"})
def _fill_shift(W, rows, means, shift):
    for i in range(W.shape[0]):
        shift[i] = 0.0
        for a in range(len(rows)):
            shift[i] += W[i, a] * means[rows[a]]


@compiled(inside=True, fastmath={"contract"})
def _add_columns(data, indices, indptr, rows, before, after, residual):
    """residual (n, m) -= X (after - before)^T, columns that are not centred."""
    for a in range(len(rows)):
        for i in range(before.shape[0]):
            step = after[i, a] - before[i, a]
            if step != 0.0:
                for k in range(indptr[rows[a]], indptr[rows[a] + 1]):
                    residual[indices[k], i] -= data[k] * step


@compiled(inside=True, fastmath={"contract"})
def _moments(residual, shift, Y):
    """(||R||^2, <R, Y>) of R = residual + shift, the first given (n, m)."""
    square, along = 0.0, 0.0
    for k in range(residual.shape[0]):
        for i in range(residual.shape[1]):
            r = residual[k, i] + shift[i]
            square += r * r
            along += r * Y[k, i]
    return square, along


@compiled(fastmath={"contract"})
def rounds_of_columns(
    data,
    indices,
    indptr,
    rows,
    means,
    squares,
    Y,
    residual,
    W,
    l1,
    l21,
    ridge,
    nonneg,
    most,
    target,
    dual_W,
    excess,
):
    """As `rounds_shared`, one sweep a time through the columns of sparse inputs, as `sweep_columns` does; Y (n, m) is centred where
    they are."""
    m, p = W.shape
    n = len(residual)
    remembers = n * m <= _REMEMBERED
    past_W, past_residuals = (
        np.empty((_MEMORY + 1, m * p)),
        np.empty((_MEMORY + 1, n * m if remembers else 0)),
    )
    other, carried, pull = np.empty((m, p)), np.empty((n, m)), np.empty((m, p))
    flat_W, flat_residual = W.reshape(m * p), residual.reshape(n * m)
    small, weights, shift = np.empty((_MEMORY, _MEMORY)), np.empty(_MEMORY), np.empty(m)
    objective, bound, gap = np.inf, -np.inf, np.inf
    done = 0
    while done < most:
        _copy(flat_W, past_W[0])
        if remembers:
            _copy(flat_residual, past_residuals[0])
        for k in range(_MEMORY):
            sweep_columns(
                data,
                indices,
                indptr,
                rows,
                k % _FULL != 0,
                means,
                squares,
                residual,
                W,
                l1,
                l21,
                ridge,
                nonneg,
            )
            _copy(flat_W, past_W[k + 1])
            if remembers:
                _copy(flat_residual, past_residuals[k + 1])
        done += 1
        for trial in range(
            2
        ):  # the iterate, then the extrapolated one; the bound is the latter's alone, and costs half a sweep
            V, R = W, residual
            if trial == 1 and _fill_weights(past_W, small, weights):
                _combine(past_W, weights, other.reshape(m * p))
                if remembers:
                    _combine(past_residuals, weights, carried.reshape(n * m))
                else:
                    _copy(flat_residual, carried.reshape(n * m))
                    _add_columns(data, indices, indptr, rows, W, other, carried)
                V, R = other, carried
            _fill_shift(V, rows, means, shift)
            square, along = _moments(R, shift, Y)
            value = 0.5 * square + penalty_value(V, l1, l21, ridge, nonneg)
            if trial == 0:
                objective = value
                continue
            fill_pull(data, indices, indptr, rows, means, R, shift, pull)
            found = bound_of(pull, 1.0, V, l1, l21, ridge, nonneg, square, along, excess)
            if found > bound:
                bound = found
                _copy(V.reshape(m * p), dual_W)
            if value < objective:
                objective = value
                _copy(V.reshape(m * p), flat_W)
                _copy(R.reshape(n * m), flat_residual)
        gap = _relative(objective, bound)
        if gap <= target:
            break
    return done, gap, False
