"""Compiled sweeps of coordinate descent: exact steps on rows and on groups of rows, through Gram matrices or sparse columns."""

from __future__ import annotations

import numpy as np

from mtldsl.utils.jit import compiled

# --------------------------------------------------------------------------------------------------------------
# An exact step on one row of W: sequential by nature, so compiled; imported when first used.
#
# Arrays are transposed, tasks first (m, p): what a step changes then lies in contiguous runs of p, also where m = 1.


@compiled(inside=True, fastmath={"contract"})
def _thresholded(z, l1, nonneg):
    """z moved towards 0 by l1; with nonneg, its positive part alone."""
    if z > l1:
        return z - l1
    if z < -l1 and not nonneg:
        return z + l1
    return 0.0


@compiled(inside=True, fastmath={"contract"})
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


@compiled(inside=True, fastmath={"contract"})
def _step_of_row(W, j, pull, curvature, l21, step):
    """step = (minimiser of sum_i curvature_i / 2 w_i^2 - pull_i w_i + l21 ||w||) - W[:, j], the pulls thresholded already.

    With unequal curvatures the minimiser is pull_i / (curvature_i + l21 / t) with t its norm: one root in one unknown.
    """
    square = 0.0
    norm = 0.0
    for i in range(pull.size):
        if curvature[i] <= 0.0:  # a column of zeros: only the penalty sees it
            pull[i] = 0.0
        square += pull[i] * pull[i]
        norm += W[i, j] * W[i, j]
    stays_zero = square <= l21 * l21
    extra = 0.0
    if l21 > 0.0 and not stays_zero:
        t = _scale_of_row(pull, curvature, l21, np.sqrt(norm))
        stays_zero = t <= 0.0  # exactly at the critical value the root is 0 up to rounding
        extra = 0.0 if stays_zero else l21 / t
    for i in range(pull.size):
        if stays_zero or curvature[i] <= 0.0:
            step[i] = -W[i, j]
        else:
            step[i] = pull[i] / (curvature[i] + extra) - W[i, j]


@compiled(fastmath={"contract"})
def descend_gram(gram, gradient, W, l1, l21, ridge, nonneg, share, enough, most, past_W, past_gradients):
    """Rounds over all rows j of minimising exactly over W[:, j]

        1/2 sum_i w_i^T gram_i w_i - <cross, W> + sum_j sum_i l1[i, j] |W_ij| + l21[j] ||W[:, j]|| + ridge[j] / 2 ||W[:, j]||^2,

    until one brings at most `share` of what the first did, or `enough`, or `most` are done: (rounds, what the first and the last brought).

    gram (m, p, p), or (1, p, p) for all tasks;  gradient (m, p), gram_i w_i - cross_i, is kept up to date, as is W (m, p)
    past_W, past_gradients (., m p) : rows for what the first rounds make of W and the gradient, perhaps none
    """
    m, p = W.shape
    pull, own, step = np.empty(m), np.empty(m), np.empty(m)
    first, moved, done = 0.0, 0.0, 0
    while done < most:
        moved = 0.0
        for j in range(p):
            for i in range(m):
                diagonal = gram[i % len(gram), j, j]
                own[i] = diagonal + ridge[j]
                pull[i] = _thresholded(diagonal * W[i, j] - gradient[i, j], l1[i, j], nonneg)
            _step_of_row(W, j, pull, own, l21[j], step)
            for i in range(m):
                if step[i] != 0.0:
                    W[i, j] += step[i]
                    moved += own[i] * step[i] * step[i]
                    place = i % len(gram)
                    for k in range(p):
                        gradient[i, k] += step[i] * gram[place, j, k]
        first = moved if done == 0 else first
        if done < len(past_W):
            for i in range(m):  # an assignment of slices takes seconds to compile
                for j in range(p):
                    past_W[done, i * p + j], past_gradients[done, i * p + j] = W[i, j], gradient[i, j]
        done += 1
        if moved <= max(share * first, enough):
            break
    return done, first, moved


# --------------------------------------------------------------------------------------------------------------
# One look at all rows of the weights beside a negative gradient: compiled; imported when first used.


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


# --------------------------------------------------------------------------------------------------------------
# Sweeps of exact row steps on a loss's second-order model, through the predictions: compiled; imported when first used.
#
# The model's slopes in the predictions, V = u + D (X dW + db), are kept up to date; the intercepts' steps db are those that are best for
# dW, and are not written into V: what they add to the gradient of row j is db times the border X_j^T D.


@compiled(fastmath={"contract", "reassoc"})
def sweep_columns(
    which, indptr, indices, data, task_of, D, V, W, border, curvature, totals, sums, l1, l21, ridge, nonneg, goal
):  # fmt: skip
    """One round over the rows `which`; the sum over all steps of curvature * step^2, 0 where no row's slope was off by more than `goal`
    of its l1 and l21.

    indptr, indices, data : CSC columns; D, V (n, m); W, border, curvature (centred), l1 (m, p); totals (m,) of D
    task_of : where every sample is of one task, its task (N,), with D, V (N, 1); else empty
    sums (m,) : sum of V over samples as if db = 0, kept up to date
    """
    m, is_apart = W.shape[0], task_of.size > 0
    pull, own, step = np.empty(m), np.empty(m), np.empty(m)
    moved, is_far = 0.0, False
    for place in range(which.size):  # an array's own iteration takes a quarter of a second to compile
        j = which[place]
        pull[:] = 0.0
        for k in range(indptr[j], indptr[j + 1]):
            r, x = indices[k], data[k]
            if is_apart:
                pull[task_of[r]] += x * V[r, 0]
            else:
                for i in range(m):
                    pull[i] += x * V[r, i]
        for i in range(m):
            gradient = pull[i] - border[i, j] * sums[i] / totals[i]
            own[i] = curvature[i, j] + ridge[j]
            pull[i] = _thresholded(curvature[i, j] * W[i, j] - gradient, l1[i, j], nonneg)
        _step_of_row(W, j, pull, own, l21[j], step)
        slope = 0.0
        for i in range(m):
            slope += own[i] * own[i] * step[i] * step[i]
            W[i, j] += step[i]
            sums[i] += border[i, j] * step[i]
            moved += own[i] * step[i] * step[i]
        level = goal * (l1[0, j] + l21[j])
        is_far |= slope > level * level
        if slope > 0.0:
            for k in range(indptr[j], indptr[j + 1]):
                r, x = indices[k], data[k]
                if is_apart:
                    V[r, 0] += x * D[r, 0] * step[task_of[r]]
                else:
                    for i in range(m):
                        V[r, i] += x * D[r, i] * step[i]
    return moved if is_far else 0.0


# --------------------------------------------------------------------------------------------------------------
# Sweeps of exact steps on groups of features whose own Gram matrices are diagonal.


@compiled(fastmath={"contract"})
def sweep_groups(gram, gradient, W, starts, thresholds, ridge):
    """A round over groups g = starts[g] : starts[g + 1] of minimising exactly over W[:, g]

        1/2 tr(W gram W^T) - <cross, W> + sum_g thresholds[g] ||W[:, g]||_F + ridge / 2 ||W||_F^2;

    the sum of curvature * step^2.

    gradient = W gram - cross, kept up to date in place, as is W (m, p). gram (p, p) is diagonal within each group.
    """
    m, p = W.shape
    norms, curvatures, moved = np.empty(p), np.empty(p), 0.0
    for g in range(len(thresholds)):
        first, last = starts[g], starts[g + 1]
        square, length = 0.0, 0.0
        for j in range(first, last):
            curvatures[j] = max(gram[j, j] + ridge, 0.0)
            norms[j] = 0.0
            for i in range(m):
                length += W[i, j] * W[i, j]
                if curvatures[j] > 0.0:  # else a column of zeros: only the penalty sees it
                    norms[j] += (gram[j, j] * W[i, j] - gradient[i, j]) ** 2
            square += norms[j]
            norms[j] = np.sqrt(norms[j])
        extra = np.inf
        if square > thresholds[g] * thresholds[g]:
            t = _scale_of_row(norms[first:last], curvatures[first:last], thresholds[g], np.sqrt(length))
            if t > 0.0:
                extra = thresholds[g] / t
        for j in range(first, last):
            for i in range(m):
                step = -W[i, j]
                if curvatures[j] > 0.0:
                    step += (gram[j, j] * W[i, j] - gradient[i, j]) / (curvatures[j] + extra)
                if step != 0.0:
                    W[i, j] += step
                    moved += curvatures[j] * step * step
                    for k in range(p):
                        gradient[i, k] += step * gram[j, k]
    return moved
