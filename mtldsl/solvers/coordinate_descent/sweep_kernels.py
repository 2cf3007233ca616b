"""Compiled sweeps of coordinate descent: exact row steps, objective and bound, in Gram or residual form."""

from __future__ import annotations

import numpy as np

from mtldsl.utils.jit import compiled

__all__ = [
    "bound_of",
    "descend_gram",
    "fill_pull",
    "look_at_rows",
    "objective_and_bound",
    "penalty_value",
    "residual_of_columns",
    "sweep_columns",
    "sweep_columns_separate",
    "sweep_columns_shared",
    "sweep_separate",
    "sweep_separate_residual",
    "sweep_shared",
]


# --------------------------------------------------------------------------------------------------------------
# Sweeps of exact row steps on a quadratic in Gram form: sequential by nature, so compiled; imported when first used.
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
    """Bound that the best dual point t R, t <= 1 / gauge, proves; excess (p,): by how much every row violates optimality, below 0 by how far it
    is from that.

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
# Sweeps of exact row steps on the residual of sparse inputs, held by columns: sequential by nature, so compiled; imported when first used.


@compiled(inside=True, fastmath={"contract", "reassoc"})
def _sweep_of_one(data, indices, indptr, rows, few, means, squares, flat, W, l1, l21, ridge, nonneg):
    """`sweep_columns` of one task, whose residual is flat: what is told apart there for every task takes longer than a short column."""
    shift = 0.0
    for a in range(len(rows)):
        shift += W[0, a] * means[rows[a]]
    n = len(flat)
    for a in range(len(rows)):
        before = W[0, a]
        if few and before == 0.0:
            continue
        j = rows[a]
        curvature = squares[a] + ridge[a]
        if curvature <= 0.0:  # a column of zeros: only the penalty sees it
            W[0, a] = 0.0
            continue
        along = shift * means[j] * n
        for k in range(indptr[j], indptr[j + 1]):
            along += data[k] * flat[indices[k]]
        along = _thresholded(squares[a] * before + along, l1[0, a] + l21[a], nonneg)
        step = along / curvature - before
        if step != 0.0:
            W[0, a] = before + step
            shift += step * means[j]
            for k in range(indptr[j], indptr[j + 1]):
                flat[indices[k]] -= data[k] * step


@compiled(inside=True, fastmath={"contract"})
def sweep_columns(data, indices, indptr, rows, few, means, squares, residual, W, l1, l21, ridge, nonneg):
    """A round over the features `rows`, or those of them that are not zero where `few`, of minimising exactly over a column of W (m, p),
    as `sweep_shared` does.

    data, indices, indptr : all features' columns;  means (d,) of the columns, zeros where they are not centred
    squares (p,)          : squared lengths of the centred columns
    residual (n, m)       : Y - X W^T of columns that are not centred, kept up to date; centred ones add W means to every row of it
    """
    n, m = residual.shape
    flat = residual.reshape(n * m)
    if m == 1:
        _sweep_of_one(data, indices, indptr, rows, few, means, squares, flat, W, l1, l21, ridge, nonneg)
        return
    pull = np.empty(m)
    shift = np.zeros(m)
    for i in range(m):
        for a in range(len(rows)):
            shift[i] += W[i, a] * means[rows[a]]
    for a in range(len(rows)):
        j = rows[a]
        curvature = squares[a] + ridge[a]
        if curvature <= 0.0:  # a column of zeros: only the penalty sees it
            for i in range(m):
                W[i, a] = 0.0
            continue
        if few:
            stays = True
            for i in range(m):
                if W[i, a] != 0.0:
                    stays = False
                    break
            if stays:
                continue
        for i in range(m):
            pull[i] = shift[i] * means[j] * n
        for k in range(indptr[j], indptr[j + 1]):
            value, start = data[k], indices[k] * m
            for i in range(m):
                pull[i] += value * flat[start + i]
        length = 0.0
        for i in range(m):
            pull[i] = _thresholded(squares[a] * W[i, a] + pull[i], l1[i, a], nonneg)
            length += pull[i] * pull[i]
        length = np.sqrt(length)
        shrink = 0.0 if length <= l21[a] else (1.0 - l21[a] / length) / curvature
        moves = False
        for i in range(m):
            pull[i] = shrink * pull[i] - W[i, a]  # the step, from here on
            moves = moves or pull[i] != 0.0
        if not moves:
            continue
        for i in range(m):
            W[i, a] += pull[i]
            shift[i] += pull[i] * means[j]
        for k in range(indptr[j], indptr[j + 1]):
            value, start = data[k], indices[k] * m
            for i in range(m):
                flat[start + i] -= value * pull[i]


@compiled(inside=True, fastmath={"contract", "reassoc"})
def fill_pull(data, indices, indptr, rows, means, residual, shift, pull):
    """pull (m, p) = minus the gradient of those features: their centred columns times residual + shift."""
    n, m = residual.shape
    flat = residual.reshape(n * m)
    one = np.empty(m)
    for a in range(len(rows)):
        j = rows[a]
        if m == 1:
            along = shift[0] * means[j] * n
            for k in range(indptr[j], indptr[j + 1]):
                along += data[k] * flat[indices[k]]
            pull[0, a] = along
            continue
        for i in range(m):
            one[i] = shift[i] * means[j] * n
        for k in range(indptr[j], indptr[j + 1]):
            value, start = data[k], indices[k] * m
            for i in range(m):
                one[i] += value * flat[start + i]
        for i in range(m):
            pull[i, a] = one[i]


@compiled(fastmath={"contract"})
def residual_of_columns(data, indices, indptr, rows, W, Y):
    """(n, m) Y^T - X W^T of those features' columns, not centred; W (m, p), Y (m, n)."""
    m, n = Y.shape
    residual = np.empty((n, m))
    for i in range(m):
        for k in range(n):
            residual[k, i] = Y[i, k]
    weights = np.empty(m)
    for a in range(len(rows)):
        some = False
        for i in range(m):
            weights[i] = W[i, a]
            some = some or weights[i] != 0.0
        if some:
            for k in range(indptr[rows[a]], indptr[rows[a] + 1]):
                value, at = data[k], indices[k]
                for i in range(m):
                    residual[at, i] -= value * weights[i]
    return residual


# --------------------------------------------------------------------------------------------------------------
# Sweeps of exact row steps on a loss's second-order model, through the predictions: compiled; imported when first used.
#
# The model's slopes in the predictions, V = u + D (X dW + db), are kept up to date; the intercepts' steps db are those that are best for
# dW, and are not written into V: what they add to the gradient of row j is db times the border X_j^T D.


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
    how many rounds it took, 0 where it did not come to that within `most`. gradient (m, p), of the quadratic, and W are kept up to date.
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
            return count + 1
    return 0
