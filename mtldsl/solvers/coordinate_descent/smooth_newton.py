"""Proximal Newton on a working set of rows, for smooth losses under row penalties."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mtldsl.solvers.coordinate_descent.column_newton import (
    ColumnModel,
    ColumnsOfTask,
    DenseColumns,
    Design,
    TaskModel,
)
from mtldsl.solvers.coordinate_descent.quadratic_model import SETTINGS as DESCENT
from mtldsl.solvers.coordinate_descent.quadratic_model import (
    newton_cost,
    newton_steps,
    sweep_cost,
)
from mtldsl.solvers.design.design import SmoothLoss
from mtldsl.solvers.design.row_penalty import RowPenalty
from mtldsl.solvers.numerics.anderson import ROUND_SWEEPS, IterateHistory, extrapolate
from mtldsl.solvers.solver import FLOPS_PER_CALL, MATRIX_SPEEDUP

__all__ = [
    "SmoothLossState",
    "WorkingNewton",
    "minimize_model",
    "violation",
]


# --------------------------------------------------------------------------------------------------------------
# The loss's second-order model on some rows plus the penalty, minimised over them and the intercepts by coordinate descent.
#
# The intercepts are eliminated: whatever the weights' step, theirs is the best for it.


@dataclass(frozen=True)
class SmoothNewtonSettings:
    """Constants of Newton steps on working sets.

    max_call_sweeps    : sweeps in one call, where one costs less than its call
    swept_entries      : of Gram matrices, that are read before anything but sweeps is tried
    end_tol            : precision of a model at the solution, relative to the violation at its start
    max_steps          : Newton steps on one working set
    max_short_steps    : where others violate too
    descent_share      : of the decrease that the slopes promise
    min_step_share     : of a Newton step
    rounding_share     : of the objective
    min_damping_share  : of the largest curvature: where the loss is flat, the model stays bounded
    max_damping_share  : of it, after steps that were cut short
    """

    max_call_sweeps: int = 100
    swept_entries: int = 200_000
    end_tol: float = 0.01
    max_steps: int = 8
    max_short_steps: int = 2
    descent_share: float = 1e-4
    min_step_share: float = 2.0**-20
    rounding_share: float = 1e-14
    min_damping_share: float = 1e-6
    max_damping_share: float = 1.0


SETTINGS = SmoothNewtonSettings()


def minimize_model(
    columns, penalty: RowPenalty, W, gradient, state, curvature, centred: bool, precision: float, goal: float
):
    """((dW (m, p), db (m,), the flat change of the predictions), flops) from W (m, p), where the loss's gradient in W is this, and its slopes
    are the state's; the flops are those beside the matrices, where they are counted.

    precision : of the model's violation, relative to that at W
    goal      : slopes that are off by no more than this part of the l1 norm's are good enough
    """
    loss = state.loss
    if isinstance(columns, ColumnsOfTask):
        total, slopes = (float(curvature.sum()), float(state.sums[0])) if centred else (0.0, 0.0)
        task = TaskModel(columns, penalty, W, gradient, curvature, total, slopes)
        task.descend(precision, goal)
        change = task.change
        if not centred:
            return (task.W - W, np.zeros(1), change), 0.0
        db = -task.sums / total
        change += db
        return (task.W - W, db, change), 0.0
    m = len(W)
    s = state.sums if centred else np.zeros(m)
    if isinstance(columns, DenseColumns):
        held = _held_by(columns, curvature, loss.sums(curvature) if centred else None)
        totals, border = held.totals, held.border
        reduced = gradient - border * (s / totals)[:, None] if centred else gradient.copy()
        step, flops = _by_gram(held, penalty, W, reduced, precision)
    else:
        totals = loss.sums(curvature) if centred else np.ones(m)
        border = columns.pull(curvature) if centred else np.zeros_like(W)
        model = ColumnModel(columns, penalty, W, state.u, curvature, border, totals, s)
        model.descend(max(precision, DESCENT.coarse_tol), goal)
        step, flops = model.W - W, 0.0
        del model  # its arrays are as large as what is made next
    if not centred:
        return (step, np.zeros(m), columns.forward(step)), flops
    db = -(s + np.einsum("ij,ij->i", border, step)) / totals
    return (step, db, columns.forward(step) + loss.spread(db)), flops


# ------------------------------------------------------------------------------------------ Gram matrices


class _GramModel:
    """1/2 <W, W gram> - <cross, W> + penalty, with a Gram matrix a task (m, p, p); `carried` is the gradient of the quadratic."""

    def __init__(self, gram, gradient, W, penalty: RowPenalty):
        self.gram, self.W, self.penalty, self.carried = gram, W, penalty, gradient
        self.flops = 0.0

    @cached_property
    def cross(self) -> np.ndarray:
        """The same at any point; most descents end before it is asked for."""
        return self._times(self.W) - self.carried

    def _times(self, W) -> np.ndarray:
        return np.matmul(W[:, None, :], self.gram)[:, 0]

    def gradient(self, W) -> np.ndarray:
        return self._times(W) - self.cross

    def objective(self, W, carried) -> float:
        return 0.5 * float(np.vdot(W, carried - self.cross)) + self.penalty.value(W)

    def sweep(self) -> None:
        from mtldsl.solvers.coordinate_descent.sweep_kernels import sweep_separate

        p = self.penalty
        self.flops += sweep_cost(self)
        sweep_separate(self.gram, self.carried, self.W, p.l1, p.l21, p.ridge, p.nonneg, 1)

    def descend(self, precision: float, most: int) -> bool:
        from mtldsl.solvers.coordinate_descent.sweep_kernels import descend_gram

        p = self.penalty
        rest = p.l1, p.l21, p.ridge, p.nonneg, precision, most
        rounds = descend_gram(self.gram, self.carried, self.W, *rest)
        self.flops += (rounds or most) * sweep_cost(self)
        return rounds > 0


class _EliminatedGram:
    """Gram matrices (m, p, p) under a curvature, the intercepts eliminated: by border (m, p) and totals (m,)."""

    def __init__(self, columns: DenseColumns, curvature, totals):
        self.curvature, self.totals = curvature, totals
        self.border: Any = None if totals is None else columns.pull(curvature)
        self.gram = gram = columns.gram(curvature)
        self.diagonal = diagonal = np.einsum("ijj->ij", gram)
        if totals is not None:
            before = diagonal.copy()
            gram -= self.border[:, :, None] * (self.border / totals[:, None])[:, None, :]  # pyrefly: ignore[unsupported-operation]
            diagonal[diagonal <= DESCENT.min_curvature_share * before] = 0.0


def _held_by(columns: DenseColumns, curvature, totals) -> _EliminatedGram:
    """Return what was made of the very same curvature before, where a step begins with that."""
    if columns.held is None or columns.held.curvature is not curvature:
        columns.held = None  # before there is another
        columns.held = _EliminatedGram(columns, curvature, totals)
    return columns.held


def _by_gram(held: _EliminatedGram, penalty, W, gradient, precision):
    gram, diagonal = held.gram, held.diagonal
    model = _GramModel(gram, gradient, W.copy(), penalty)
    # where a sweep costs less than its call, many go at once
    sweeps = max(SETTINGS.swept_entries / max(gram.size, 1), 4 * ROUND_SWEEPS)
    if model.descend(precision, int(min(sweeps, SETTINGS.max_call_sweeps))):
        return model.W - W, model.flops
    goal = precision**2 * violation(penalty, W, gradient, diagonal)
    support = None
    for _ in range(DESCENT.max_rounds):
        history = IterateHistory(model, ROUND_SWEEPS)
        history.add(model)
        for _ in range(ROUND_SWEEPS):
            model.sweep()
            history.add(model)
        if violation(penalty, model.W, model.carried, diagonal) <= goal:
            break
        extrapolate(model, history)
        before, support = support, model.W != 0
        settled = before is not None and np.array_equal(before, support)
        cost = newton_cost(model)
        tries = settled or cost <= 2.0 * ROUND_SWEEPS * sweep_cost(model)
        stepped = tries and newton_steps(model)
        model.flops += cost / MATRIX_SPEEDUP if tries else 0.0
        if stepped and violation(penalty, model.W, model.carried, diagonal) <= goal:
            break
    return model.W - W, model.flops


def violation(penalty: RowPenalty, W, gradient, curvature) -> float:
    """The sum of squares of the smallest subgradients, each divided by its curvature: about twice what there is to gain."""
    slope = gradient + penalty.ridge * W
    left = penalty.remainder(-slope)
    norms = np.sqrt(np.einsum("ij,ij->j", W, W))
    zero = norms == 0.0
    per_row = np.divide(penalty.l21, norms, out=np.zeros_like(norms), where=~zero)
    own = np.where(W != 0, slope + penalty.l1 * np.sign(W) + per_row * W, left)
    sizes = np.sqrt(np.einsum("ij,ij->j", left, left))
    share = np.divide(np.maximum(sizes - penalty.l21, 0.0), sizes, out=np.zeros_like(sizes), where=sizes > 0)
    own = np.where(zero, share * left, own)
    curved = curvature + penalty.ridge
    return float(np.sum(np.divide(own**2, curved, out=np.zeros_like(own), where=curved > 0)))


# --------------------------------------------------------------------------------------------------------------
# Proximal Newton steps on working sets: rows of W that matter, until they are solved for; a look at all rows; those that are missing.
#
# What is estimated of the gap here steers; the proof is the certificate's, outside.
# Sources: Massias, Vaiter, Gramfort and Salmon, "Dual extrapolation for sparse generalized linear models", JMLR 21 (2020) (working sets);
# Yuan, Ho and Lin, "An improved GLMNET for l1-regularized logistic regression", JMLR 13 (2012) (the second-order model, descended by
# coordinates).


#: No step's columns, curvature and gap.
NO_STEP = None, None, 0.0


class SmoothLossState:
    """W (m, d), b (m,), flat predictions z; the loss's values (m,), slopes u and curvatures there."""

    def __init__(self, loss: SmoothLoss, W, b, z):
        self.loss, self.W, self.b = loss, W, b
        self.move_to(z, loss.values(z))

    def move_to(self, z, values) -> None:
        self.z, self.values = z, values
        self.u, self.curvature = self.loss.slope(z), self.loss.curvature(z)
        self.sums = self.loss.sums(self.u)  # task by task


class WorkingNewton:
    """Minimises loss + penalty. `report(state, pull, steps)` is called where a look at the certificate pays; True ends the run."""

    def __init__(self, loss: SmoothLoss, design: Design, penalty: RowPenalty, centred: bool, tol: float):
        self.loss, self.design, self.centred, self.target = loss, design, centred, 0.8 * tol
        self.penalty, self.apart = self._prepared(penalty)
        self.damping, self.steps = SETTINGS.min_damping_share, 0
        self.last: Any = NO_STEP
        self.gave_up = False  # where a working set would be too large
        self.work = 0.0  # in flops

    def run(
        self,
        W,
        b,
        max_iter: int,
        report: Callable[[SmoothLossState, np.ndarray, int], bool],
        expired: Callable[[], bool],
    ) -> SmoothLossState:
        loss = self.loss
        rows = np.flatnonzero(W.any(axis=0))
        columns = self.design.columns(self._all() if self.design.prefers_all_rows else rows)
        z = columns.forward(W[:, columns.rows]) + loss.spread(b)
        state = SmoothLossState(loss, W, b, z)
        reported, shown_at, stuck = 0, 0.0, 0
        while True:
            pull = self.design.pull(state.u)
            np.negative(pull, out=pull)
            gap, excess = self._gap(state, pull, self.penalty, state.W)
            done = self.steps >= max_iter or expired() or stuck >= 3
            is_due = self.steps >= 2 * reported + 50 or self.work >= 2.0 * shown_at + DESCENT.look_flops
            if gap <= self.target or done or is_due:
                reached, reported, shown_at = gap <= self.target, self.steps, self.work
                if report(state, pull, self.steps) or done:
                    return state
                self.target *= 0.3 if reached else 1.0
            rows, is_short = self._next_rows(columns.rows, state, excess)
            if rows is not None and (self.gave_up or self.design.would_copy_most_of_X(rows)):
                self.gave_up = True
                report(state, pull, self.steps)
                return state
            if rows is not None:
                columns = None  # before there are others
                columns = self.design.columns(rows)
            most = SETTINGS.max_short_steps if is_short else SETTINGS.max_steps
            most = min(1 if len(columns.rows) == self.design.n_features else most, max_iter - self.steps)
            moved = self._descend(state, columns, -pull.take(columns.rows, axis=1), gap, most, expired)
            stuck = 0 if moved else stuck + 1

    def _all(self) -> np.ndarray:
        return np.arange(self.design.n_features)

    def _next_rows(self, known, state: SmoothLossState, excess) -> tuple[np.ndarray | None, bool]:
        """(the next working set: the support, what is near it, the worst violators, or None where the present one holds all; whether
        others that violate are left out).
        """
        d = self.design.n_features
        if len(known) == d:
            return None, False
        inside = np.zeros(d, dtype=bool)
        inside[known] = True
        new = np.flatnonzero((excess > 0) & ~inside)
        if new.size == 0:
            return None if len(known) else np.array([int(excess.argmax())]), False
        used = self._used(state.W)
        most = max(2 * int(math.sqrt(self.design.n_tasks * d)), 2 * int(used.sum()), 10)
        is_short = new.size > most
        if is_short:
            new = np.sort(new[np.argpartition(-excess[new], most)[:most]])
        keep = inside & (used | (excess > -DESCENT.near_share * self._levels()))
        keep[new] = True
        rows = np.flatnonzero(keep)
        # a feature of sparse inputs that stays out costs a sweep in six
        return (self._all(), False) if self.design.holds_columns and 2 * rows.size > d else (rows, is_short)

    def _gap(self, state: SmoothLossState, pull, penalty: RowPenalty, W) -> tuple[float, np.ndarray]:
        """(the relative gap on these rows, about, with the slopes as dual point; by how much every row violates optimality)."""
        penalised, along, gauge, square, excess = self._look(pull, penalty, W)
        t, value = 1.0 / gauge, float(state.values.sum())
        gap = penalised - t * along + 0.5 * t * t * square + (1.0 - t) ** 2 * abs(value)
        if self.centred:  # what the intercepts would still bring
            totals, squares = self.loss.sums(state.curvature), state.sums**2
            unknown = np.where(squares > 0.0, np.inf, 0.0)  # where a task's loss is straight
            with np.errstate(over="ignore"):
                gap += float(np.sum(np.divide(squares, totals, out=unknown, where=totals > 0.0)))
        return float(gap) / max(abs(value + penalised), np.finfo(float).tiny), excess

    # ------------------------------------------------------------------------------------- of row penalties

    def _prepared(self, penalty) -> tuple[RowPenalty, bool]:
        """(the penalty as the loops take it; whether tasks have nothing in common, so that each has a step length of its own)."""
        return replace(penalty, l1=np.ascontiguousarray(penalty.l1)), not penalty.l21.any()

    def _used(self, W) -> np.ndarray:
        return W.any(axis=0)

    def _levels(self) -> np.ndarray:
        """(d,): what a row's slopes have to exceed."""
        return self.penalty.l1.max(axis=0) if self.apart else self.penalty.l21

    def _look(self, pull, penalty: RowPenalty, W) -> tuple[float, float, float, float, np.ndarray]:
        """As `look_at_rows`, with the excess."""
        from mtldsl.solvers.coordinate_descent.sweep_kernels import look_at_rows

        p, excess = penalty, np.empty(W.shape[1])
        return *look_at_rows(pull, W, p.l1, p.l21, p.ridge, p.nonneg, excess), excess

    def _minimised(
        self, columns, penalty: RowPenalty, own, gradient, state: SmoothLossState, curvature, precision
    ):
        goal = 0.3 * self.target
        return minimize_model(
            columns, penalty, own, gradient, state, curvature, self.centred, precision, goal
        )

    # ------------------------------------------------------------------------------------------- on rows

    def _descend(self, state: SmoothLossState, columns, gradient, gap: float, most: int, expired) -> bool:
        """Newton steps on the working set, where the loss has this gradient and all rows this gap; whether any was taken."""
        rows, goal = columns.rows, max(0.3 * self.target, 0.3 * gap)
        penalty, own = self.penalty.on(rows), state.W.take(rows, axis=1)
        for step in range(most):
            if step:
                gradient = columns.pull(state.u)
                gap = self._gap(state, -gradient, penalty, own)[0]
                if gap <= goal or expired():
                    return True
            self.steps += 1
            matrices = 0.0 if self.design.is_sparse else 2.0 * self.design.offsets[-1] * rows.size**2
            self.work += 10.0 * FLOPS_PER_CALL + matrices / MATRIX_SPEEDUP
            # the model is as far from the loss as the gap is large, and no more is asked than what is left to the target
            precision = min(max(gap, 0.3 * self.target / gap, SETTINGS.end_tol), DESCENT.far_tol)
            curvature = self._curvature(state, columns, gap)
            change, flops = self._minimised(columns, penalty, own, gradient, state, curvature, precision)
            self.work += flops
            moved = self._step(state, penalty, own, *change)
            if moved is None:
                return step > 0
            own = moved
            state.W[:, rows] = own
        return True

    def _curvature(self, state: SmoothLossState, columns, gap: float):
        """Return that of the step before, and so its matrices, where as much progress again would do: they are most of a step's price."""
        known, held, before = self.last
        if known is not columns or gap * gap > self.target * before:
            # where every sample's loss is straight, as Huber's far out, the curvature that it may come to
            top = float(state.curvature.max(initial=0.0)) or self.loss.largest_curvature()
            held = np.maximum(state.curvature, self.damping * top)
        self.last = columns if self._holds(columns) else None, held, gap
        return held

    def _holds(self, columns) -> bool:
        """Tell whether the matrices of a step serve another one."""
        return isinstance(columns, DenseColumns)

    def _step(self, state: SmoothLossState, penalty: RowPenalty, own, dW, db, dz) -> np.ndarray | None:
        """Along the step as far as the objective falls as promised: the rows' new weights; None where it does not."""
        loss = self.loss
        before = self._penalised(penalty, own)
        W = own + dW
        after = self._penalised(penalty, W)
        promised = self._together(loss.sums(state.u * dz)) + after - before
        start = self._together(state.values) + before
        rounding = SETTINGS.rounding_share * np.abs(start)
        t, fraction, z = np.ones(1), np.ones(len(promised)), state.z + dz
        values = loss.values(z)
        while True:
            reached = self._together(values) + after
            wanted = start + SETTINGS.descent_share * fraction * promised
            fails = ~(reached <= wanted + rounding) & (fraction > 0)
            if not fails.any():
                break
            fraction = np.where(fails, 0.5 * fraction, fraction)
            fraction[fraction < SETTINGS.min_step_share] = 0.0
            t = np.broadcast_to(fraction, len(own))
            W = own + t[:, None] * dW
            after = self._penalised(penalty, W)
            z = state.z + loss.spread(t) * dz
            values = loss.values(z)
        smallest = float(fraction.min())
        if smallest < 1.0:
            self.last = NO_STEP
        if smallest == 1.0:
            self.damping = max(0.1 * self.damping, SETTINGS.min_damping_share)
        elif smallest < 0.3:
            self.damping = min(max(10.0 * self.damping, 1e-3), SETTINGS.max_damping_share)
        if not fraction.any():
            return None
        state.b = state.b + t * db
        state.move_to(z, values)
        return W

    def _together(self, per_task) -> np.ndarray:
        return per_task if self.apart else per_task.sum()[None]

    def _penalised(self, penalty: RowPenalty, W) -> np.ndarray:
        """The penalty task by task where they are apart, else one number."""
        if not self.apart:
            return np.array([penalty.value(W)])
        return np.einsum("ij,ij->i", penalty.l1, np.abs(W)) + 0.5 * (W * W) @ penalty.ridge
