r"""Newton's step of coordinate descent's problem on the entries that are not zero, where the objective is smooth.

On row j let n_j = ||w_j||, a_j = l21_j / n_j and v_j = w_j / n_j. The Hessian is the data's, block diagonal over tasks, plus
diag(a_j + ridge_j) on every task, minus a_j v_j v_j^T within each row. So it is one system A_i a task minus p rank-one terms that
tie tasks together, u_j = sqrt(a_j) v_j: Woodbury's identity solves the m p unknowns with matrices of size p only, through
S = I - sum_i diag(u_i) A_i^{-1} diag(u_i).
"""

from __future__ import annotations

import numpy as np

__all__ = ["newton_cost", "newton_steps", "sweep_cost"]

#: relative to the largest curvature: makes collinear columns, among which the data cannot choose, share a step
_REGULARIZATION = 1e-13
_FRACTIONS = np.array([1.0, 0.5, 0.25, 0.1])


def newton_cost(state) -> float:
    """Floating point operations of a step, about."""
    p = float(np.count_nonzero(state.W.any(axis=0)))
    return p**3 + 2.0 * p**3 * (1 if _is_one_system(state) else len(state.W))


def newton_steps(state, most: int = 10) -> bool:
    """Newton's steps, each as far as the objective falls; whether any was taken."""
    if state.penalty.l21.any():
        return _joint_step(state)
    # without an l21 norm the tasks are problems of their own: each goes on until its signs stay
    tasks, taken = np.arange(len(state.W)), False
    for _ in range(most):
        tasks = tasks[_steps_apart(state, tasks)]
        taken |= tasks.size > 0
        if tasks.size == 0:
            break
    return taken


def _joint_step(state) -> bool:
    W, penalty = state.W, state.penalty
    rows = np.flatnonzero(W.any(axis=0))
    if rows.size == 0:
        return False
    here = W[:, rows]
    inverse_norms = 1.0 / np.sqrt(np.einsum("ij,ij->j", here, here))
    per_row = penalty.l21[rows] * inverse_norms
    slope = (
        state.carried[:, rows] + penalty.l1[:, rows] * np.sign(here) + (per_row + penalty.ridge[rows]) * here
    )
    ties = np.sqrt(per_row) * inverse_norms * here
    diagonal = per_row + penalty.ridge[rows]
    try:
        if _is_one_system(state):
            step = _one_system(state.gram, rows, diagonal, ties, -slope)
        else:
            free = np.ones(here.shape, dtype=bool) if penalty.plain else here != 0
            A = _systems(state.gram, np.arange(len(W)), rows, diagonal, free)
            step = _tied_systems(A, ties, np.where(free, -slope, 0.0))
    except np.linalg.LinAlgError:
        return False
    if not np.all(np.isfinite(step)):
        return False
    keeps_sign = penalty.nonneg | (penalty.l1[:, rows] > 0)
    before = state.objective(W, state.carried)
    for fraction in _FRACTIONS:
        moved = here + fraction * step
        moved[keeps_sign & (moved * here <= 0)] = 0.0
        trial = np.zeros_like(W)
        trial[:, rows] = moved
        carried = state.gradient(trial)
        if state.objective(trial, carried) < before:
            state.W, state.carried = trial, carried
            return True
    return False


def _steps_apart(state, tasks) -> np.ndarray:
    """One step of each of these tasks; (len(tasks),) whether its signs changed, so that another one may pay.

    Along the step the objective is convex and piecewise quadratic; of its kinks, where an entry becomes zero, and the full step
    the best is taken.
    """
    rows = np.flatnonzero(state.W[tasks].any(axis=0))
    here, l1 = state.W[tasks[:, None], rows], state.penalty.l1[tasks[:, None], rows]
    ridge, free = state.penalty.ridge[rows], here != 0
    slope = np.where(free, state.carried[tasks[:, None], rows] + ridge * here, 0.0)
    A = _systems(state.gram, tasks, rows, ridge, free)
    try:
        step = np.linalg.solve(A, -np.where(free, slope + l1 * np.sign(here), 0.0)[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        return np.zeros(len(tasks), dtype=bool)
    with np.errstate(divide="ignore", invalid="ignore"):
        kinks = np.where(free & (step * here < 0), -here / step, 0.0)
    kinks[kinks >= 1.0] = 0.0
    fractions = np.concatenate([kinks, np.ones((len(tasks), 1))], axis=1)
    curved = np.einsum("ij,ij->i", step, np.matmul(A, step[:, :, None])[:, :, 0])
    linear = np.einsum("ij,ij->i", slope, step)
    along = here[:, None, :] + fractions[:, :, None] * step[:, None, :]
    values = fractions * linear[:, None] + 0.5 * fractions**2 * curved[:, None]
    values += np.einsum("ij,ikj->ik", l1, np.abs(along))
    if state.penalty.nonneg:
        values[along.min(axis=2) < -1e-15 * np.abs(here).max()] = np.inf
    best = values.argmin(axis=1)
    at = np.arange(len(tasks))
    better = values[at, best] < np.einsum("ij,ij->i", l1, np.abs(here))
    moved = along[at, best]
    stopped = best < len(rows)
    moved[at[stopped], best[stopped]] = 0.0
    changed = better & (np.sign(moved) != np.sign(here)).any(axis=1)
    trial = state.W.copy()
    trial[tasks[better][:, None], rows] = moved[better]
    state.W, state.carried = trial, state.gradient(trial)
    return changed


# ----------------------------------------------------------------------------------------------- systems


def _is_one_system(state) -> bool:
    return state.gram.ndim == 2 and state.penalty.plain


def _one_system(gram, rows, diagonal, ties, rhs):
    """The same A for all tasks: sum_i diag(u_i) A^{-1} diag(u_i) is an entrywise product."""
    A = gram[rows[:, None], rows]
    A[np.diag_indices(len(A))] += diagonal + _REGULARIZATION * A.diagonal().max()
    inverse = np.linalg.inv(A)
    first = rhs @ inverse
    shared = _shared_part(np.einsum("ij,ij->j", ties, first), inverse * (ties.T @ ties))
    return first + (ties * shared) @ inverse


def _systems(gram, tasks, rows, diagonal, free):
    """A_i of these tasks, (., p, p), the identity where an entry is not free."""
    A = gram[rows[:, None], rows][None] if gram.ndim == 2 else gram[tasks[:, None, None], rows[:, None], rows]
    A = A * (free[:, :, None] & free[:, None, :])
    at = np.arange(len(rows))
    A[:, at, at] += np.where(free, diagonal + _REGULARIZATION * A[:, at, at].max(initial=0.0), 1.0)
    return A


def _tied_systems(A, ties, rhs):
    inverse = np.linalg.inv(A)
    first = np.matmul(inverse, rhs[:, :, None])[:, :, 0]
    coupling = np.einsum("ij,ijk,ik->jk", ties, inverse, ties, optimize=True)
    shared = _shared_part(np.einsum("ij,ij->j", ties, first), coupling)
    return first + np.matmul(inverse, (ties * shared)[:, :, None])[:, :, 0]


def _shared_part(rhs, coupling):
    """(I - coupling)^{-1} rhs."""
    return np.linalg.solve(np.eye(len(coupling)) * (1.0 + _REGULARIZATION) - coupling, rhs)


def sweep_cost(state) -> float:
    """Floating point operations of a sweep, about."""
    m, p = state.W.shape
    return 4.0 * m * p**2
