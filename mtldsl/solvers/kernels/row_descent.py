"""Sweeps of exact row steps on a quadratic in Gram form: sequential by nature, so compiled; imported when first used.

Arrays are transposed, tasks first (m, p): what a step changes then lies in contiguous runs of p, also where m = 1.
"""

from __future__ import annotations

import numpy as np

from mtldsl.system.compiled import compiled

__all__ = [
    "bound_of",
    "objective_and_bound",
    "penalty_value",
    "sweep_separate",
    "sweep_separate_residual",
    "sweep_shared",
]


@compiled(inside=True, fastmath={"contract"})
def _thresholded(z, l1, nonneg):
    """z moved towards 0 by l1; with nonneg, its positive part alone."""
    if z > l1:
        return z - l1
    if z < -l1 and not nonneg:
        return z + l1
    return 0.0


@compiled(fastmath={"contract"})
def sweep_shared(gram, gradient, W, l1, l21, ridge, nonneg, n_sweeps):
    """n_sweeps rounds over all rows j of minimising exactly over W[:, j]

        1/2 tr(W gram W^T) - <cross, W> + sum_j sum_i l1[i, j] |W_ij| + l21[j] ||W[:, j]|| + ridge[j] / 2 ||W[:, j]||^2.

    gradient = W gram - cross, kept up to date in place, as is W. gram (p, p); gradient, W, l1 (m, p); l21, ridge (p,).
    """
    m, p = W.shape
    row = np.empty(m)
    for _ in range(n_sweeps):
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
            for i in range(m):
                step = shrink * row[i] - W[i, j]
                if step != 0.0:
                    W[i, j] += step
                    for k in range(p):
                        gradient[i, k] += step * gram[j, k]


@compiled(inside=True, fastmath={"contract"})
def penalty_value(W, l1, l21, ridge, nonneg):
    """inf where W < 0 is not allowed."""
    m, p = W.shape
    value = 0.0
    for j in range(p):
        length = 0.0
        for i in range(m):
            w = W[i, j]
            length += w * w
            value += l1[i, j] * abs(w)
            if nonneg and w < 0.0:
                value = np.inf
        if length > 0.0:
            length = np.sqrt(length)
            value += length * (l21[j] + 0.5 * ridge[j] * length)
    return value


@compiled(inside=True, fastmath={"contract"})
def bound_of(pull, sign, W, l1, l21, ridge, nonneg, square, along, excess):
    """What the best dual point t R, t <= 1 / gauge, proves; excess (p,): by how much every row violates optimality, below 0 by how far it is from
    that.

    sign * pull : minus the gradient of the smooth part (m, p); square, along : ||R||^2, <R, Y>. The gauge is the smallest t >= 1 such that
    t times the dual balls hold what no ridge takes up; W, whose residual R is, tells how much the ridges take.
    """
    m, p = pull.shape
    left = np.empty(m)
    gauge, taken = 1.0, 0.0
    for j in range(p):
        norm, inside = 0.0, -np.inf
        for i in range(m):
            own = sign * pull[i, j] - ridge[j] * W[i, j]
            left[i] = _thresholded(own, l1[i, j], nonneg)
            norm += left[i] * left[i]
            inside = max(inside, (own if nonneg else abs(own)) - l1[i, j])
        norm = np.sqrt(norm)
        excess[j] = norm - l21[j] if norm > 0.0 else inside - l21[j]
        over = max(excess[j], 0.0)
        if ridge[j] > 0.0:
            share = over / norm if norm > 0.0 else 0.0
            for i in range(m):
                part = ridge[j] * W[i, j] + share * left[i]
                taken += part * part / ridge[j]
        elif l21[j] > 0.0:
            gauge = max(gauge, 1.0 + over / l21[j])
        elif norm > 0.0:
            for i in range(m):
                if left[i] != 0.0:
                    gauge = max(gauge, 1.0 + abs(left[i]) / l1[i, j])
    square += taken
    t = 1.0 / gauge
    if square > 0.0:
        t = min(t, max(along / square, 0.0))
    return t * along - 0.5 * t * t * square


@compiled(fastmath={"contract"})
def objective_and_bound(pull, W, l1, l21, ridge, nonneg, square, along, excess):
    """The objective at W, and the bound of `bound_of`, which fills excess."""
    objective = 0.5 * square + penalty_value(W, l1, l21, ridge, nonneg)
    return objective, bound_of(pull, 1.0, W, l1, l21, ridge, nonneg, square, along, excess)


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
def sweep_separate(gram, gradient, W, l1, l21, ridge, nonneg, n_sweeps):
    """As `sweep_shared` with a Gram matrix a task: gram (m, p, p)."""
    m, p = W.shape
    pull = np.empty(m)
    curvature = np.empty(m)
    step = np.empty(m)
    for _ in range(n_sweeps):
        for j in range(p):
            for i in range(m):
                diagonal = gram[i, j, j]
                curvature[i] = diagonal + ridge[j]
                pull[i] = _thresholded(diagonal * W[i, j] - gradient[i, j], l1[i, j], nonneg)
            _step_of_row(W, j, pull, curvature, l21[j], step)
            for i in range(m):
                if step[i] != 0.0:
                    W[i, j] += step[i]
                    for k in range(p):
                        gradient[i, k] += step[i] * gram[i, j, k]


@compiled(fastmath={"contract", "reassoc"})
def sweep_separate_residual(columns, offsets, squares, residual, W, l1, l21, ridge, nonneg, n_sweeps):
    """As `sweep_separate`, on the residual, which is cheaper where a task has fewer samples than there are rows.

    columns (p, N): each feature's column in all tasks, one task after the other, at `offsets`; squares (p, m): their squared norms;
    residual (N,) is kept up to date.
    """
    m, p = W.shape
    pull = np.empty(m)
    curvature = np.empty(m)
    step = np.empty(m)
    for _ in range(n_sweeps):
        for j in range(p):
            for i in range(m):
                along = 0.0
                for k in range(offsets[i], offsets[i + 1]):
                    along += columns[j, k] * residual[k]
                curvature[i] = squares[j, i] + ridge[j]
                pull[i] = _thresholded(squares[j, i] * W[i, j] + along, l1[i, j], nonneg)
            _step_of_row(W, j, pull, curvature, l21[j], step)
            for i in range(m):
                if step[i] != 0.0:
                    W[i, j] += step[i]
                    for k in range(offsets[i], offsets[i + 1]):
                        residual[k] -= step[i] * columns[j, k]
