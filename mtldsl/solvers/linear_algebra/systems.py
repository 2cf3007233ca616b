"""The matrices of ADMM's x-update, one task at a time: q's Hessian and K^T M K as stacks of small symmetric matrices.

Where no map mixes tasks, the unknowns of task i are one stacked vector: its column of every block, intercepts last. The Hessian is
then block diagonal over tasks: an array (m, D, D), or (1, D, D) where all tasks share it (one X, uniform weights).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.compile.normal_form import Entry, LinearMap, LossTerm, NormalForm
from mtldsl.solvers.linear_algebra.gram import gram_and_border
from mtldsl.solvers.linear_algebra.layout import Layout
from mtldsl.solvers.linear_algebra.split import Copy, Split

__all__ = [
    "couples_tasks",
    "diagonal_of",
    "middle_matrices",
    "mixes_tasks",
    "penalty_matrices",
    "quadratic_matrices",
]


def couples_tasks(split: Split) -> bool:
    """Whether q or a loss mixes the columns of different tasks."""
    form = split.form
    if not Layout(form).has_columns:
        return True
    for t, loss in enumerate(form.losses):
        rights = _rights(loss.map, form)
        if loss.intercepts and not all(map(_is_identity, rights)):
            return True
        quadratic = t in split.exact_losses
        if _mixes(rights, uniform=quadratic and loss.is_shared_complete and loss.uniform_scale is not None):
            return True
    for k, curvature in split.exact_functions.items():
        if curvature.coupling is not None:
            return True
        weights: Any = curvature.weights  # there, where there is no coupling
        uniform = weights.ndim == 1 and bool(np.all(weights == weights[0]))
        if _mixes(_rights(form.functions[k].map, form), uniform):
            return True
    return False


def mixes_tasks(copy: Copy, form: NormalForm) -> bool:
    """Whether an image column of the copy's map reads several tasks."""
    return _mixes(_rights(copy.term.map, form), uniform=False)


def diagonal_of(map: LinearMap) -> float | None:
    """The number that K^T K has on the entries that the map reads, where it is a multiple of a choice of rows and columns."""
    if len(map.entries) != 1:
        return None
    entry = map.entries[0]
    right: Any = entry.right
    for factor in (entry.left, None if right is None else right.T):
        if factor is not None:
            picks: Any = as_array(factor)
            if (
                np.any((picks != 0) & (picks != 1))
                or np.any(picks.sum(axis=1) != 1)
                or np.any(picks.sum(axis=0) > 1)
            ):
                return None
    return entry.coefficient**2


def as_array(factor: Any) -> np.ndarray:
    return factor.toarray() if sparse.issparse(factor) else np.asarray(factor)


def quadratic_matrices(split: Split, layout: Layout) -> np.ndarray:
    """The Hessian of q."""
    total = np.zeros((1, layout.depth, layout.depth))
    for t in split.exact_losses:
        loss = split.form.losses[t]
        total = total + _loss_matrices(loss, split.curvature_weights(t), layout, split.form)
    for k, curvature in split.exact_functions.items():
        map = split.form.functions[k].map
        middle, columns, coupling = None, curvature.weights, curvature.coupling
        if columns is None:  # couples tasks: what each task has of it by itself
            assert coupling is not None  # one of the two is there
            columns = np.diag(coupling)
        elif columns.ndim == 2:
            middle, columns = columns.T[:, :, None] * np.eye(map.shape[0]), np.ones(map.shape[1])
        total = total + _map_matrices(map, middle, columns, layout, split.form)
    return total


def penalty_matrices(
    copy: Copy, split: Split, layout: Layout, weights: np.ndarray | None = None
) -> np.ndarray:
    """K_j^T diag(weights) K_j of one copy; weights flat, one an entry, or None: the copy's profile."""
    weights = copy.profile if weights is None else weights
    if copy.is_loss:
        return _loss_matrices(copy.term, 1.0 if weights is None else weights, layout, split.form)
    if weights is None:
        return middle_matrices(copy, split, layout, None)
    p, q = copy.shape
    return middle_matrices(copy, split, layout, weights.reshape(p, q).T[:, :, None] * np.eye(p))


def middle_matrices(copy: Copy, split: Split, layout: Layout, middle: np.ndarray | None) -> np.ndarray:
    """K_j^T M K_j of one copied function; M (q, p, p), one block an image column, or None: the identity."""
    return _map_matrices(copy.term.map, middle, np.ones(copy.shape[1]), layout, split.form)


def _loss_matrices(loss: LossTerm, weights, layout, form) -> np.ndarray:
    """A^T diag(weights) A; weights a number or flat (N,)."""
    tasks = loss.tasks
    gram, cross, sums = gram_and_border(loss, weights)
    columns = np.ones(loss.map.shape[1])
    total = _map_matrices(loss.map, gram, columns, layout, form)
    if cross is None or sums is None or tasks.n_tasks != layout.n_tasks:
        return total
    if gram.ndim == 2:
        cross, sums = cross[:, :1], sums[:1]
    into = {name: np.zeros((rows.stop - rows.start, cross.shape[1])) for name, rows in layout.rows.items()}
    for entry in loss.map.entries:  # an intercept and a right factor do not meet here: see `couples_tasks`
        into[entry.block] += Entry(entry.block, entry.coefficient, entry.left).adjoint(cross)
    border = np.zeros((sums.size, layout.depth, layout.depth))
    for name in loss.intercepts:
        at = layout.rows[name].start
        for block, part in into.items():
            border[:, layout.rows[block], at] += part.T
            border[:, at, layout.rows[block]] += part.T
        for other in loss.intercepts:
            border[:, at, layout.rows[other].start] += sums
    return total + border


def _map_matrices(map: LinearMap, middle, columns, layout: Layout, form: NormalForm) -> np.ndarray:
    """The diagonal blocks of sum over image columns j of columns[j] * C_j^T M_j C_j, C_j the map onto image column j.

    middle: M as None (identity), (p, p), or (q, p, p). Where the map mixes tasks, entries between tasks are left out.
    """
    total = np.zeros((1, layout.depth, layout.depth))
    rights = _rights(map, form)
    for first, right_1 in zip(map.entries, rights, strict=True):
        for second, right_2 in zip(map.entries, rights, strict=True):
            matrix = _sandwich(first, middle, second, map.shape[0])
            weights = sparse.csr_array(
                right_1.multiply(right_2).multiply(columns)
            )  # (m, q): how much of image column j falls to task i
            if matrix.ndim == 3:
                one_to_one = _is_diagonal(weights)
                part = (
                    weights.diagonal()[:, None, None] * matrix
                    if one_to_one
                    else np.tensordot(weights.toarray(), matrix, 1)
                )
            else:
                per_task = np.ravel(weights.sum(axis=1))
                same = np.all(per_task == per_task[0])
                part = (per_task[:1] if same else per_task)[:, None, None] * matrix
            if len(part) > len(total):
                total = np.repeat(total, len(part), axis=0)
            total[:, layout.rows[first.block], layout.rows[second.block]] += part
    return total


def _sandwich(first: Entry, middle, second: Entry, p: int) -> np.ndarray:
    """coefficients * left_1^T M left_2, (., .) or (q, ., .)."""
    matrix = np.eye(p) if middle is None else middle
    if second.left is not None:
        matrix = matrix @ as_array(second.left)
    if first.left is not None:
        matrix = as_array(first.left).T @ matrix
    return first.coefficient * second.coefficient * matrix


def _rights(map: LinearMap, form: NormalForm) -> list[sparse.csr_array]:
    """The right factor of every entry (m, q): most are identities, which have a million zeros where there are a thousand tasks."""
    rights = []
    for entry in map.entries:
        right = sparse.eye_array(form.shapes[entry.block][1]) if entry.right is None else entry.right
        rights.append(sparse.csr_array(right))
    return rights


def _mixes(rights: list[sparse.csr_array], uniform: bool) -> bool:
    """Whether sum_j weight_j R_1[:, j] R_2[:, j]^T has entries between tasks; unless uniform, for any weights."""
    rights = rights if uniform else [abs(right) for right in rights]
    return not all(_is_diagonal(first @ second.T) for first in rights for second in rights)


def _is_diagonal(matrix: Any) -> bool:
    entries = matrix.tocoo()
    return matrix.shape[0] == matrix.shape[1] and bool(
        ((entries.row == entries.col) | (entries.data == 0)).all()
    )


def _is_identity(matrix: sparse.csr_array) -> bool:
    return _is_diagonal(matrix) and bool((matrix.diagonal() == 1.0).all())
