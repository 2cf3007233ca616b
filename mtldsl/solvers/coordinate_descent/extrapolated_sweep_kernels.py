"""Compiled rounds of coordinate descent on columns, rows and groups, with extrapolation between sweeps."""

from __future__ import annotations

import numpy as np

from mtldsl.solvers.coordinate_descent.sweep_kernels import (
    _thresholded,
    bound_of,
    fill_pull,
    penalty_value,
    sweep_columns,
    sweep_shared,
)
from mtldsl.solvers.numerics.anderson import MAX_REMEMBERED_ENTRIES, ROUND_SWEEPS
from mtldsl.utils.jit import compiled

__all__ = [
    "descend_columns",
    "pull_of_columns",
    "rounds_of_columns",
    "rounds_of_groups",
    "rounds_shared",
    "sweep_groups",
    "weigh_columns",
]


# --------------------------------------------------------------------------------------------------------------
# Newton's model of one task's loss, descended by the columns of sparse inputs: compiled; imported when first used.
#
# Columns stay where they are among all of them (`rows` names features), so that a working set costs no copy.


@compiled(fastmath={"contract", "reassoc"})
def pull_of_columns(rows, indptr, indices, data, u, out):
    """out (p,) = X^T u on these features."""
    for a in range(rows.size):
        total = 0.0
        for k in range(indptr[rows[a]], indptr[rows[a] + 1]):
            total += data[k] * u[indices[k]]
        out[a] = total


@compiled(fastmath={"contract", "reassoc"})
def weigh_columns(rows, indptr, indices, data, D, border, diagonal):
    """border = X^T D and diagonal = X^T diag(D) X of these features, p numbers each."""
    for a in range(rows.size):
        total, square = 0.0, 0.0
        for k in range(indptr[rows[a]], indptr[rows[a] + 1]):
            weighted = data[k] * D[indices[k]]
            total += weighted
            square += data[k] * weighted
        border[a], diagonal[a] = total, square


@compiled(inside=True, fastmath={"contract", "reassoc"})
def _sweep(
    every, rows, indptr, indices, data, D, V, W, gradient, border, curvature, l1, ridge, sums, total, nonneg, goal
):  # fmt: skip
    """The sum of curvature * step^2 over a sweep, without `every` of what is not zero; 0 where no slope was off by more than goal * l1."""
    moved, is_far = 0.0, False
    for a in range(rows.size):
        if not every and W[a] == 0.0:
            continue
        begin, end = indptr[rows[a]], indptr[rows[a] + 1]
        step, own = -W[a], curvature[a] + ridge[a]
        if curvature[a] > 0.0:  # else an intercept explains the column
            slope = gradient[a] - border[a] * sums[0] / total
            for k in range(begin, end):
                slope += data[k] * V[indices[k]]
            step += _thresholded(curvature[a] * W[a] - slope, l1[a], nonneg) / own
        if step != 0.0:
            W[a] += step
            sums[0] += border[a] * step
            moved += own * step * step
            is_far |= own * abs(step) > goal * l1[a]
            for k in range(begin, end):
                V[indices[k]] += data[k] * step * D[indices[k]]
    return moved if is_far else 0.0


@compiled(fastmath={"contract"})
def descend_columns(
    rows, indptr, indices, data, D, V, W, gradient, border, curvature, l1, ridge, sums, total, nonneg, goal, share,
    first, rounds, sweeps
):  # fmt: skip
    """Rounds of a sweep over all of these features and `sweeps` over those that are not zero, which mostly stay so; until a sweep over all
    moves no more than `share` of `first`, where that is 0 of what the first one moves: (that, whether it came so far). With no rounds:
    `sweeps` over what is not zero, until one moves no more than .3 of that share.

    D (n,); V (n,)  : D times the step of the predictions, without that of the intercept, kept up to date like W (p,)
    gradient (p,)   : of the loss where V = 0;  border, curvature (p,) : X^T D, and that of every column beside an intercept
    sums (1,)       : of the slopes at the step, as if the intercept stayed;  total : of D;  goal : see `_sweep`
    """
    done, turn = False, 0
    while True:
        if turn < rounds:
            moved = _sweep(
                True, rows, indptr, indices, data, D, V, W, gradient, border, curvature, l1, ridge, sums, total, nonneg,
                goal,
            )  # fmt: skip
            if first == 0.0:
                first = moved
                done = moved == 0.0
            else:
                done = moved <= share * first
            if done:
                return first, done
        for _ in range(sweeps):
            moved = _sweep(
                False, rows, indptr, indices, data, D, V, W, gradient, border, curvature, l1, ridge, sums, total, nonneg,
                goal,
            )  # fmt: skip
            done = moved <= 0.3 * share * first
            if done:
                break
        turn += 1
        if turn >= rounds:
            return first, done and rounds == 0


# --------------------------------------------------------------------------------------------------------------
# Rounds of sweeps, an extrapolation and a look at the gap, in one call: between two small sweeps Python would be most of the time.
#
# The dual point of the gap is the residual of the extrapolated iterate or that of the iterate itself, whichever proves more: near the
# solution the first is far ahead, also where its objective is not lower (Massias, Vaiter, Gramfort and Salmon, "Dual extrapolation for
# sparse generalized linear models", JMLR 2020).

#: Sweeps through columns of which one goes over all rows, the others over the rows that are not zero.
SWEEPS_PER_FULL_SWEEP = 5

#: Smallest normal number: divisors stay above it.
SMALLEST_NUMBER = float(np.finfo(float).tiny)


@compiled(inside=True, fastmath={"contract"})
def _relative(objective, bound):
    return (objective - bound) / max(abs(objective), abs(bound), SMALLEST_NUMBER)


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
    """Up to `most` rounds of `ROUND_SWEEPS` times n_sweeps sweeps as `sweep_shared` does them, until the relative gap is at most target.

    gram (p, p), cross (m, p) and square = ||Y||^2 are the quadratic; gradient (m, p) and W (m, p) are kept up to date.
    Returns (rounds, gap, settled): whether the last two rounds ended on the same support. dual_W (m p,) is set to the weights whose residual
    proves the bound; excess (p,) is room.
    """
    m, p = W.shape
    past_W, past_gradients = np.empty((ROUND_SWEEPS + 1, m * p)), np.empty((ROUND_SWEEPS + 1, m * p))
    other, other_gradient = np.empty((m, p)), np.empty((m, p))
    flat_W, flat_gradient = W.reshape(m * p), gradient.reshape(m * p)
    small, weights = np.empty((ROUND_SWEEPS, ROUND_SWEEPS)), np.empty(ROUND_SWEEPS)
    objective, bound, gap, settled = np.inf, -np.inf, np.inf, False
    done = 0
    while done < most:
        _copy(flat_W, past_W[0])
        _copy(flat_gradient, past_gradients[0])
        for k in range(ROUND_SWEEPS):
            sweep_shared(gram, gradient, W, l1, l21, ridge, nonneg, n_sweeps)
            _copy(flat_W, past_W[k + 1])
            _copy(flat_gradient, past_gradients[k + 1])
        done += 1
        settled = True
        for i in range(m * p):
            if (past_W[0, i] != 0.0) != (past_W[ROUND_SWEEPS, i] != 0.0):
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
    remembers = n * m <= MAX_REMEMBERED_ENTRIES
    past_W, past_residuals = (
        np.empty((ROUND_SWEEPS + 1, m * p)),
        np.empty((ROUND_SWEEPS + 1, n * m if remembers else 0)),
    )
    other, carried, pull = np.empty((m, p)), np.empty((n, m)), np.empty((m, p))
    flat_W, flat_residual = W.reshape(m * p), residual.reshape(n * m)
    small, weights, shift = np.empty((ROUND_SWEEPS, ROUND_SWEEPS)), np.empty(ROUND_SWEEPS), np.empty(m)
    objective, bound, gap = np.inf, -np.inf, np.inf
    done = 0
    while done < most:
        _copy(flat_W, past_W[0])
        if remembers:
            _copy(flat_residual, past_residuals[0])
        for k in range(ROUND_SWEEPS):
            sweep_columns(
                data,
                indices,
                indptr,
                rows,
                k % SWEEPS_PER_FULL_SWEEP != 0,
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


# --------------------------------------------------------------------------------------------------------------
# Sweeps of exact steps on groups of features whose own Gram matrices are diagonal, and rounds of them: sequential by nature, so compiled;
# imported when first used.


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
def _sweep_groups(gram, gradient, W, starts, thresholds, ridge):
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
    _sweep_groups(gram, gradient, W, starts, thresholds, ridge)


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
    """Up to `most` rounds of `ROUND_SWEEPS` sweeps and an extrapolation, until the relative gap of the problem on these groups is at most target.

    cross (m, p) and square = ||Y||^2 with gram are the quadratic; gradient = W gram - cross and W (m, p) are kept up to date. thresholds > 0.
    The dual point is the residual R of the iterate: a ridge takes up what is beyond the dual balls; without one, it is the best t R
    within them. Returns (rounds, gap).
    """
    m, p = W.shape
    past_W, past_gradients = np.empty((ROUND_SWEEPS + 1, m * p)), np.empty((ROUND_SWEEPS + 1, m * p))
    other, other_gradient = np.empty((m, p)), np.empty((m, p))
    flat_W, flat_gradient = W.reshape(m * p), gradient.reshape(m * p)
    small, weights = np.empty((ROUND_SWEEPS, ROUND_SWEEPS)), np.empty(ROUND_SWEEPS)
    done, gap = 0, np.inf
    while done < most:
        _copy(flat_W, past_W[0])
        _copy(flat_gradient, past_gradients[0])
        for k in range(ROUND_SWEEPS):
            _sweep_groups(gram, gradient, W, starts, thresholds, ridge)
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
