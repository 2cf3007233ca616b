"""Quadratic losses in Gram or residual form, with sweeps and Newton steps on the rows that are not zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.solvers.design.row_penalty import RowPenalty

__all__ = [
    "SETTINGS",
    "DescentSettings",
    "GramState",
    "ResidualState",
    "SeparateResidualState",
    "SeparateState",
    "SparseState",
    "newton_cost",
    "newton_steps",
    "sweep_cost",
]


# --------------------------------------------------------------------------------------------------------------
# Newton's step of coordinate descent's problem on the entries that are not zero, where the objective is smooth.
#
# On row j let n_j = ||w_j||, a_j = l21_j / n_j and v_j = w_j / n_j. The Hessian is the data's, block diagonal over tasks, plus
# diag(a_j + ridge_j) on every task, minus a_j v_j v_j^T within each row. So it is one system A_i a task minus p rank-one terms that
# tie tasks together, u_j = sqrt(a_j) v_j: Woodbury's identity solves the m p unknowns with matrices of size p only, through
# S = I - sum_i diag(u_i) A_i^{-1} diag(u_i).


@dataclass(frozen=True)
class DescentSettings:
    """Constants of quadratic models, and those that several modules of coordinate descent read.

    max_rounds           : rounds of sweeps and an extrapolation, of one model or between two looks at all rows
    look_flops           : flops from one look at the certificate, or one question for the time, to the next
    near_share           : of the slope that would move a row: rows whose gradient is this near to it stay in the working set
    min_curvature_share  : of a column's curvature, that an intercept leaves; below, it explains the column
    far_tol              : precision of a model far from the solution, relative to the violation at its start
    coarse_tol           : the same of models that are descended through predictions: a sweep costs as much as all else of a step
    regularization_share : of the largest curvature: makes collinear columns, among which the data cannot choose, share a step
    step_shares          : of a Newton step that are tried, in turn
    cheap_gram_rows      : rows up to which a Gram matrix is never dear; its Newton steps are for what sweeps are slow with
    block_rows           : rows of a block
    block_sweeps         : over a block once it is in cache
    one_block_tasks      : tasks up to which matrix products are no faster than sweeps through one block
    one_block_rows       : rows of that one block
    """

    max_rounds: int = 20
    look_flops: float = 5e7
    near_share: float = 0.2
    min_curvature_share: float = 1e-12
    far_tol: float = 0.1
    coarse_tol: float = 0.2
    regularization_share: float = 1e-13
    step_shares: tuple[float, ...] = (1.0, 0.5, 0.25, 0.1)
    cheap_gram_rows: int = 128
    block_rows: int = 64
    block_sweeps: int = 2
    one_block_tasks: int = 4
    one_block_rows: int = 512


SETTINGS = DescentSettings()


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
    for fraction in SETTINGS.step_shares:
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
    A[np.diag_indices(len(A))] += diagonal + SETTINGS.regularization_share * A.diagonal().max()
    inverse = np.linalg.inv(A)
    first = rhs @ inverse
    shared = _shared_part(np.einsum("ij,ij->j", ties, first), inverse * (ties.T @ ties))
    return first + (ties * shared) @ inverse


def _systems(gram, tasks, rows, diagonal, free):
    """A_i of these tasks, (., p, p), the identity where an entry is not free."""
    A = gram[rows[:, None], rows][None] if gram.ndim == 2 else gram[tasks[:, None, None], rows[:, None], rows]
    A = A * (free[:, :, None] & free[:, None, :])
    at = np.arange(len(rows))
    added = SETTINGS.regularization_share * A[:, at, at].max(initial=0.0)
    A[:, at, at] += np.where(free, diagonal + added, 1.0)
    return A


def _tied_systems(A, ties, rhs):
    inverse = np.linalg.inv(A)
    first = np.matmul(inverse, rhs[:, :, None])[:, :, 0]
    coupling = np.einsum("ij,ijk,ik->jk", ties, inverse, ties, optimize=True)
    shared = _shared_part(np.einsum("ij,ij->j", ties, first), coupling)
    return first + np.matmul(inverse, (ties * shared)[:, :, None])[:, :, 0]


def _shared_part(rhs, coupling):
    """(I - coupling)^{-1} rhs."""
    return np.linalg.solve(np.eye(len(coupling)) * (1.0 + SETTINGS.regularization_share) - coupling, rhs)


def sweep_cost(state) -> float:
    """Floating point operations of a sweep, about."""
    m, p = state.W.shape
    return 4.0 * m * p**2


# --------------------------------------------------------------------------------------------------------------
# An iterate of coordinate descent on many rows of sparse inputs: the residual, and columns as they are stored.


class SparseState:
    """`carried` (n, m) is Y - X W^T of columns that are not centred: affine in W, and what a step changes of it is as sparse as X."""

    knows_gap = True
    takes_newton = False
    runs_rounds = True
    dual_W: np.ndarray | None = (
        None  # weights whose residual proves more than that of W, where some are known
    )
    columns = None

    @staticmethod
    def pays(design, rows, old=None) -> bool:
        """Tell whether sweeps through the columns are to be tried: until they were slow, or where a Gram matrix's would cost more."""
        if old is None or (isinstance(old, SparseState) and not old.is_slow):
            return True
        return not _has_small_gram(design, rows)

    @property
    def is_slow(self) -> bool:
        """Tell whether the last rounds did not reach what was asked, where a Gram matrix is at hand."""
        return not self.reached and _has_small_gram(self.design, self.rows)

    def __init__(self, design, penalty: RowPenalty, rows, W, carried=None):
        """carried : the residual at W, where it is known."""
        self.design, self.rows, self.W = design, rows, W
        self.penalty = penalty.on(rows)
        self.means = design.x_means[rows]
        self.Xt, self.places = design.Xt.places(rows)
        self.means_of_places = design.x_means if self.places is rows else self.means
        self.squares = np.maximum(design.squares[rows] - design.n_samples * np.square(self.means), 0.0)
        self.reached = True  # what the last rounds were asked for
        self.carried = self.residual(W) if carried is None else carried

    def residual(self, W) -> np.ndarray:
        from mtldsl.solvers.coordinate_descent.sweep_kernels import residual_of_columns

        X = self.Xt
        return residual_of_columns(
            X.data, X.indices, X.indptr, self.places, W, np.ascontiguousarray(self.design.Y)
        )

    def centred(self, W, carried) -> np.ndarray:
        return carried + W @ self.means if self.design.centred else carried

    def rounds(self, most: int, target: float) -> tuple[int, float, bool]:
        """(how many rounds, the relative gap on these rows, False)."""
        from mtldsl.solvers.coordinate_descent.extrapolated_sweep_kernels import rounds_of_columns

        X, p, design = self.Xt, self.penalty, self.design
        dual_W = np.empty(self.W.size)
        done, gap, settled = rounds_of_columns(
            X.data, X.indices, X.indptr, self.places, self.means_of_places, self.squares, np.ascontiguousarray(design.Y.T),
            self.carried, self.W, p.l1, p.l21, p.ridge, p.nonneg, most, target, dual_W, np.empty(len(self.rows)),
        )  # fmt: skip
        self.reached = gap <= target
        self.dual_W = dual_W.reshape(self.W.shape)
        return done, gap, settled

    @property
    def sweep_cost(self) -> float:
        """Floating point operations of a round's sweep, about."""
        return (
            4.0
            * len(self.W)
            * float(
                (self.Xt.indptr[self.places + 1] - self.Xt.indptr[self.places]).sum() + 4 * len(self.rows)
            )
        )


def _has_small_gram(design, rows) -> bool:
    """Tell whether a Gram matrix, whose making takes as long as many sweeps, makes a sweep cheaper, or is small in any case."""
    p = len(rows)
    return p <= SETTINGS.cheap_gram_rows or float(p) * p <= float(design.Xt.counts[rows].sum())


# --------------------------------------------------------------------------------------------------------------
# An iterate of coordinate descent on some rows, with what makes their gradients cheap: Gram matrices, or the residual.
#
# Where rows are many, one after another would be bound by memory. So they are taken in blocks: a matrix product brings a block's
# gradients, the compiled sweep works on the block's own small Gram matrix, a matrix product passes its steps on.


class _WorkingSetState:
    """rows: the features; W (m, p): their weights; carried: an array that is affine in W and is kept up to date with it."""

    carried: np.ndarray
    knows_gap = True  # whether the gap of the problem on these rows alone costs next to nothing
    takes_newton = True
    runs_rounds = False  # whether rounds of sweeps and extrapolations are one compiled call, `rounds`
    is_slow = False  # whether its last sweeps did not reach what was asked, and a state of another kind may
    dual_W: np.ndarray | None = (
        None  # weights whose residual proves more than that of W, where some are known
    )

    def __init__(self, design, penalty: RowPenalty, rows, W):
        self.design, self.rows, self.W = design, rows, W
        self.penalty = penalty.on(rows)
        self.columns: Any = None

    def _split(self) -> list[slice]:
        p, size = len(self.rows), SETTINGS.block_rows
        return [slice(0, p)] if p <= 2 * size else [slice(a, min(a + size, p)) for a in range(0, p, size)]

    def sweep_into(self, past_W, past_carried) -> None:
        """As many sweeps as these have rows, each of which keeps what a sweep has made of W and of what is carried."""
        for W, carried in zip(past_W, past_carried, strict=True):
            self.sweep()
            W[:], carried[:] = self.W.ravel(), self.carried.ravel()

    def sweep(self) -> None:
        raise NotImplementedError

    def _descend(self, gram, gradient, W, block: slice) -> None:
        from mtldsl.solvers.coordinate_descent.sweep_kernels import sweep_shared

        p, sweeps = self.penalty, SETTINGS.block_sweeps
        l1 = np.ascontiguousarray(p.l1[:, block])
        sweep_shared(gram, gradient, W, l1, p.l21[block], p.ridge[block], p.nonneg, sweeps)

    def objective(self, W, carried) -> float:
        return self.smooth(W, carried) + self.penalty.value(W)

    def smooth(self, W, carried) -> float:
        raise NotImplementedError


class _Gradients(_WorkingSetState):
    """`carried` is the gradient of the smooth part on the rows."""

    def __init__(self, design, penalty, rows, W, gram):
        super().__init__(design, penalty, rows, W)
        self.gram, self.cross = gram, np.ascontiguousarray(design.cross[:, rows])
        self.carried = self.gradient(W)

    def gradient(self, W) -> np.ndarray:
        raise NotImplementedError

    def pull(self) -> np.ndarray:
        return -self.carried

    def smooth(self, W, carried) -> float:
        return 0.5 * (float(np.vdot(W, carried - self.cross)) + self.design.square)

    def moments(self) -> tuple[float, float]:
        """(||R||^2, <R, Y>) of the residual."""
        along, curved = float(np.vdot(self.cross, self.W)), float(np.vdot(self.W, self.carried))
        return self.design.square - along + curved, self.design.square - along


class GramState(_Gradients):
    """One Gram matrix (p, p) for all tasks."""

    def __init__(self, design, penalty, rows, W, gram, columns):
        super().__init__(design, penalty, rows, W, gram)
        self.columns = columns
        few = len(W) <= SETTINGS.one_block_tasks
        self.runs_rounds = len(rows) <= (SETTINGS.one_block_rows if few else 2 * SETTINGS.block_rows)
        if not self.runs_rounds:
            self.blocks = self._split()
            self.diagonal = [np.ascontiguousarray(gram[b, b]) for b in self.blocks]

    def gradient(self, W) -> np.ndarray:
        return W @ self.gram - self.cross

    def rounds(self, most: int, target: float) -> tuple[int, float, bool]:
        """(how many rounds, the relative gap on these rows, whether the last one left the support as it was)."""
        from mtldsl.solvers.coordinate_descent.extrapolated_sweep_kernels import rounds_shared

        p = self.penalty
        dual_W = np.empty(self.W.size)
        done, gap, settled = rounds_shared(
            self.gram, self.cross, self.design.square, self.carried, self.W,
            p.l1, p.l21, p.ridge, p.nonneg, SETTINGS.block_sweeps, most, target, dual_W, np.empty(len(self.rows)),
        )  # fmt: skip
        self.dual_W = dual_W.reshape(self.W.shape)
        return done, gap, settled

    def sweep(self) -> None:
        for block, gram in zip(self.blocks, self.diagonal, strict=True):
            before = self.W[:, block]
            W, gradient = before.copy(), self.carried[:, block].copy()
            self._descend(gram, gradient, W, block)
            step = W - before
            if step.any():
                self.carried += step @ self.gram[block]
                self.W[:, block] = W


class ResidualState(_WorkingSetState):
    """`carried` is the residual Y - W X^T: cheaper to pass on than gradients where the rows outnumber the samples."""

    knows_gap = False

    def __init__(self, design, penalty, rows, W, columns):
        super().__init__(design, penalty, rows, W)
        self.columns = columns
        self.carried = design.Y - W @ columns
        self.blocks = self._split()
        self.diagonal = [columns[b] @ columns[b].T for b in self.blocks]

    def sweep(self) -> None:
        for block, gram in zip(self.blocks, self.diagonal, strict=True):
            columns, before = self.columns[block], self.W[:, block]
            W, gradient = before.copy(), -(self.carried @ columns.T)
            self._descend(gram, gradient, W, block)
            step = W - before
            if step.any():
                self.carried -= step @ columns
                self.W[:, block] = W

    def smooth(self, W, carried) -> float:
        return 0.5 * float(np.vdot(carried, carried))


class SeparateState(_Gradients):
    """A Gram matrix a task, (m, p, p)."""

    def gradient(self, W) -> np.ndarray:
        return np.matmul(W[:, None, :], self.gram)[:, 0] - self.cross

    def sweep(self) -> None:
        from mtldsl.solvers.coordinate_descent.sweep_kernels import sweep_separate

        p, sweeps = self.penalty, SETTINGS.block_sweeps
        sweep_separate(self.gram, self.carried, self.W, p.l1, p.l21, p.ridge, p.nonneg, sweeps)


class SeparateResidualState(_WorkingSetState):
    """As `SeparateState`, on the flat residual: where tasks have fewer samples than there are rows."""

    knows_gap = False

    def __init__(self, design, penalty, rows, W, columns):
        super().__init__(design, penalty, rows, W)
        self.columns, self.offsets = columns, np.asarray(design.tasks.offsets, dtype=np.int64)
        self.squares = np.add.reduceat(columns * columns, self.offsets[:-1], axis=1)
        self.carried = self.residual(W)

    def residual(self, W) -> np.ndarray:
        spread = np.repeat(W.T, self.design.tasks.counts, axis=1)
        return self.design.target - np.einsum("jk,jk->k", spread, self.columns)

    def sweep(self) -> None:
        from mtldsl.solvers.coordinate_descent.sweep_kernels import sweep_separate_residual

        penalty = self.penalty
        sweep_separate_residual(
            self.columns, self.offsets, self.squares, self.carried, self.W,
            penalty.l1, penalty.l21, penalty.ridge, penalty.nonneg, SETTINGS.block_sweeps,
        )  # fmt: skip

    def smooth(self, W, carried) -> float:
        return 0.5 * float(np.vdot(carried, carried))
