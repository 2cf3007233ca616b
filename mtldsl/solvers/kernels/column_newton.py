"""Newton's model of one task's loss, descended by the columns of sparse inputs: compiled; imported when first used.

Columns stay where they are among all of them (`rows` names features), so that a working set costs no copy.
"""

from __future__ import annotations

from mtldsl.solvers.kernels.row_descent import _thresholded
from mtldsl.system.compiled import compiled

__all__ = ["descend_columns", "pull_of_columns", "weigh_columns"]


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
