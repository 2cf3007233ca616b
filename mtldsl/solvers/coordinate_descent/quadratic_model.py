"""A quadratic of the rows of W in Gram form plus their penalty, minimised by sweeps, extrapolations and Newton steps on what is not zero."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mtldsl.solvers.design.row_penalty import RowPenalty
from mtldsl.solvers.numerics.anderson import ROUND_SWEEPS, IterateHistory, extrapolate
from mtldsl.solvers.solver import MATRIX_SPEEDUP


@dataclass(frozen=True)
class DescentSettings:
    """Constants of quadratic models, and those that several modules of coordinate descent read.

    max_rounds           : rounds of sweeps and an extrapolation, of one model
    look_flops           : flops from one look at the certificate to the next
    near_share           : of the slope that would move a row: rows whose gradient is this near to it stay in the working set
    min_curvature_share  : of a column's curvature, that an intercept leaves; below, it explains the column
    far_tol              : precision of a model far from the solution, relative to the violation at its start
    coarse_tol           : the same of models that are descended through predictions: a sweep costs as much as all else of a step
    regularization_share : of the largest curvature: makes collinear columns, among which the data cannot choose, share a step
    step_shares          : of a Newton step that are tried, in turn
    newton_steps         : of tasks by themselves
    max_call_sweeps      : sweeps in one call, where one costs less than its call
    swept_entries        : of Gram matrices, that are read before anything but sweeps is tried
    """

    max_rounds: int = 20
    look_flops: float = 5e7
    near_share: float = 0.2
    min_curvature_share: float = 1e-12
    far_tol: float = 0.1
    coarse_tol: float = 0.2
    regularization_share: float = 1e-13
    step_shares: tuple[float, ...] = (1.0, 0.5, 0.25, 0.1)
    newton_steps: int = 10
    max_call_sweeps: int = 100
    swept_entries: int = 200_000


SETTINGS = DescentSettings()


class GramModel:
    """1/2 <W, W gram> - <cross, W> + penalty; `carried` is the gradient of the quadratic, kept up to date with W (m, p).

    gram : (m, p, p), or (1, p, p) for all tasks
    """

    def __init__(self, gram, gradient, W, penalty: RowPenalty):
        self.gram, self.W, self.penalty, self.carried = gram, W, penalty, gradient
        self.flops = 0.0
        m, p = W.shape
        self.sweep_cost = 4.0 * m * p**2

    @cached_property
    def cross(self) -> np.ndarray:
        """The same at any point; most descents end before it is asked for."""
        return self._times(self.W) - self.carried

    def _times(self, W) -> np.ndarray:
        return W @ self.gram[0] if len(self.gram) == 1 else np.matmul(W[:, None, :], self.gram)[:, 0]

    def gradient(self, W) -> np.ndarray:
        return self._times(W) - self.cross

    def objective(self, W, carried) -> float:
        return 0.5 * float(np.vdot(W, carried - self.cross)) + self.penalty.value(W)

    def minimize(self, precision: float) -> None:
        """Until a sweep brings precision^2 of what the first did."""
        # where a sweep costs less than its call, many go at once
        at_once = max(SETTINGS.swept_entries / max(self.gram.size, 1), 4 * ROUND_SWEEPS)
        most = int(min(at_once, SETTINGS.max_call_sweeps))
        first, moved = self.sweeps(most, share=precision**2)
        enough = precision**2 * first
        support = failed = None
        for _ in range(SETTINGS.max_rounds):
            if moved <= enough:
                return
            history = IterateHistory(self, ROUND_SWEEPS)
            history.add(self)
            _, moved = self.sweeps(ROUND_SWEEPS, enough=enough, history=history)
            if moved <= enough:
                return
            extrapolate(self, history)
            before, support = support, self.W != 0
            settled = before is not None and np.array_equal(before, support)
            if failed is not None and np.array_equal(failed, support):
                continue
            # far from the solution's support a large system is not worth its price
            p = float(np.count_nonzero(support.any(axis=0)))
            systems = len(self.gram) if self.penalty.plain else len(self.W)
            cost = p**3 + 2.0 * p**3 * systems  # about
            if settled or cost <= 2.0 * ROUND_SWEEPS * self.sweep_cost:
                self.flops += cost / MATRIX_SPEEDUP
                failed = None if newton_steps(self) else support

    def sweeps(
        self, most: int, share: float = 0.0, enough: float = 0.0, history: IterateHistory | None = None
    ) -> tuple[float, float]:
        """(what the first, what the last of `most` or fewer sweeps brought)."""
        from mtldsl.solvers.coordinate_descent.sweep_kernels import descend_gram

        p = self.penalty
        nothing = np.empty((0, self.W.size))
        past = (nothing, nothing) if history is None else (history.W[1:], history.carried[1:])
        rounds, first, last = descend_gram(
            self.gram, self.carried, self.W, p.l1, p.l21, p.ridge, p.nonneg, share, enough, most, *past
        )
        self.flops += rounds * self.sweep_cost
        return first, last


# --------------------------------------------------------------------------------------------------------------
# Newton's step of coordinate descent's problem on the entries that are not zero, where the objective is smooth.
#
# On row j let n_j = ||w_j||, a_j = l21_j / n_j and v_j = w_j / n_j. The Hessian is the data's, block diagonal over tasks, plus
# diag(a_j + ridge_j) on every task, minus a_j v_j v_j^T within each row. So it is one system A_i a task minus p rank-one terms that
# tie tasks together, u_j = sqrt(a_j) v_j: Woodbury's identity solves the m p unknowns with matrices of size p only, through
# S = I - sum_i diag(u_i) A_i^{-1} diag(u_i).


def newton_steps(model: GramModel) -> bool:
    """Newton's steps, each as far as the objective falls; whether any was taken."""
    if model.penalty.l21.any():
        return _joint_step(model)
    # without an l21 norm the tasks are problems of their own: each goes on until its signs stay
    tasks, taken = np.arange(len(model.W)), False
    for _ in range(SETTINGS.newton_steps):
        tasks = tasks[_steps_apart(model, tasks)]
        taken |= tasks.size > 0
        if tasks.size == 0:
            break
    return taken


def _joint_step(model: GramModel) -> bool:
    W, penalty = model.W, model.penalty
    rows = np.flatnonzero(W.any(axis=0))
    if rows.size == 0:
        return False
    here = W[:, rows]
    inverse_norms = 1.0 / np.sqrt(np.einsum("ij,ij->j", here, here))
    per_row = penalty.l21[rows] * inverse_norms
    slope = (
        model.carried[:, rows] + penalty.l1[:, rows] * np.sign(here) + (per_row + penalty.ridge[rows]) * here
    )
    ties = np.sqrt(per_row) * inverse_norms * here
    diagonal = per_row + penalty.ridge[rows]
    # of one Gram matrix and a penalty that sees all of a row alike there is one system
    free = np.ones((len(model.gram), len(rows)), dtype=bool) if penalty.plain else here != 0
    try:
        inverse = np.linalg.inv(_systems(model.gram, np.arange(len(W)), rows, diagonal, free))
        first = np.matmul(inverse, np.where(free, -slope, 0.0)[:, :, None])[:, :, 0]
        if len(inverse) == 1:
            coupling = inverse[0] * (ties.T @ ties)
        else:
            coupling = np.einsum("ij,ijk,ik->jk", ties, inverse, ties, optimize=True)
        reduced = np.eye(len(rows)) * (1.0 + SETTINGS.regularization_share) - coupling
        shared = np.linalg.solve(reduced, np.einsum("ij,ij->j", ties, first))
    except np.linalg.LinAlgError:
        return False
    step = first + np.matmul(inverse, (ties * shared)[:, :, None])[:, :, 0]
    if not np.all(np.isfinite(step)):
        return False
    keeps_sign = penalty.nonneg | (penalty.l1[:, rows] > 0)
    before = model.objective(W, model.carried)
    for fraction in SETTINGS.step_shares:
        moved = here + fraction * step
        moved[keeps_sign & (moved * here <= 0)] = 0.0
        trial = np.zeros_like(W)
        trial[:, rows] = moved
        carried = model.gradient(trial)
        if model.objective(trial, carried) < before:
            model.W, model.carried = trial, carried
            return True
    return False


def _steps_apart(model: GramModel, tasks) -> np.ndarray:
    """One step of each of these tasks; (len(tasks),) whether its signs changed, so that another one may pay.

    Along the step the objective is convex and piecewise quadratic; of its kinks, where an entry becomes zero, and the full step
    the best is taken.
    """
    rows = np.flatnonzero(model.W[tasks].any(axis=0))
    here, l1 = model.W[tasks[:, None], rows], model.penalty.l1[tasks[:, None], rows]
    ridge, free = model.penalty.ridge[rows], here != 0
    slope = np.where(free, model.carried[tasks[:, None], rows] + ridge * here, 0.0)
    A = _systems(model.gram, tasks, rows, ridge, free)
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
    if model.penalty.nonneg:
        values[along.min(axis=2) < -1e-15 * np.abs(here).max()] = np.inf
    best = values.argmin(axis=1)
    at = np.arange(len(tasks))
    better = values[at, best] < np.einsum("ij,ij->i", l1, np.abs(here))
    moved = along[at, best]
    stopped = best < len(rows)
    moved[at[stopped], best[stopped]] = 0.0
    changed = better & (np.sign(moved) != np.sign(here)).any(axis=1)
    trial = model.W.copy()
    trial[tasks[better][:, None], rows] = moved[better]
    model.W, model.carried = trial, model.gradient(trial)
    return changed


def _systems(gram, tasks, rows, diagonal, free):
    """A_i of these tasks, (., p, p), the identity where an entry is not free."""
    which = tasks if len(gram) > 1 else tasks[:1]
    A = gram[which[:, None, None] % len(gram), rows[:, None], rows] * (free[:, :, None] & free[:, None, :])
    at = np.arange(len(rows))
    added = SETTINGS.regularization_share * A[:, at, at].max(initial=0.0)
    A[:, at, at] += np.where(free, diagonal + added, 1.0)
    return A
