"""Proximal Newton on a working set of rows, for quadratic and other smooth losses under row penalties."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mtldsl.normal_form.form import NormalForm, single_block
from mtldsl.solvers.coordinate_descent.column_newton import (
    ColumnModel,
    DenseColumns,
    Design,
    SparseColumns,
    design_of,
)
from mtldsl.solvers.coordinate_descent.quadratic_model import SETTINGS as DESCENT
from mtldsl.solvers.coordinate_descent.quadratic_model import GramModel
from mtldsl.solvers.design.design import LossState, SmoothLoss
from mtldsl.solvers.design.row_penalty import RowPenalty, function_duals
from mtldsl.solvers.solver import FLOPS_PER_CALL, MATRIX_SPEEDUP, Point
from mtldsl.utils.caching import cached_on_path, cached_property
from mtldsl.utils.parallel import in_jobs

# --------------------------------------------------------------------------------------------------------------
# The loss's second-order model on some rows plus the penalty, minimised over them and the intercepts by coordinate descent.
#
# The intercepts are eliminated: whatever the weights' step, theirs is the best for it.


@dataclass(frozen=True)
class SmoothNewtonSettings:
    """Constants of Newton steps on working sets.

    end_tol            : precision of a model at the solution, relative to the violation at its start
    max_steps          : Newton steps on one working set
    max_short_steps    : where others violate too
    descent_share      : of the decrease that the slopes promise
    min_step_share     : of a Newton step
    rounding_share     : of the objective
    min_damping_share  : of the largest curvature: where the loss is flat, the model stays bounded
    max_damping_share  : of it, after steps that were cut short
    max_together_features : up to which tasks that have nothing in common go together
    max_together_flops    : multiplications for all Gram matrices of dense inputs, up to which they do
    """

    end_tol: float = 0.01
    max_steps: int = 8
    max_short_steps: int = 2
    descent_share: float = 1e-4
    min_step_share: float = 2.0**-20
    rounding_share: float = 1e-14
    min_damping_share: float = 1e-6
    max_damping_share: float = 1.0
    max_together_features: int = 32
    max_together_flops: int = 20_000_000


SETTINGS = SmoothNewtonSettings()


class EliminatedIntercepts:
    """border (m, p) and totals (m,): X_i^T and 1^T times the curvature of task i, zeros and ones where there is no intercept; of dense
    columns the Gram matrices (m, p, p), or (1, p, p), beside the best intercepts.
    """

    def __init__(self, columns: DenseColumns | SparseColumns, curvature, totals, centred: bool):
        self.curvature, m, p = curvature, columns.n_tasks, len(columns.rows)
        self.totals = totals if centred else np.ones(m)
        self.border = columns.pull(curvature) if centred else np.zeros((m, p))
        if not isinstance(columns, DenseColumns):
            return
        self.gram = gram = columns.gram(curvature)
        if centred:
            diagonal = np.einsum("ijj->ij", gram)
            before, own = diagonal.copy(), self.border[: len(gram)]
            gram -= own[:, :, None] * (own / self.totals[: len(gram), None])[:, None, :]
            diagonal[diagonal <= DESCENT.min_curvature_share * before] = 0.0


# --------------------------------------------------------------------------------------------------------------
# Proximal Newton steps on working sets: rows of W that matter, until they are solved for; a look at all rows; those that are missing.
#
# What is estimated of the gap here steers; the proof is the certificate's, outside.
# Sources: Massias, Vaiter, Gramfort and Salmon, "Dual extrapolation for sparse generalized linear models", JMLR 21 (2020) (working sets);
# Yuan, Ho and Lin, "An improved GLMNET for l1-regularized logistic regression", JMLR 13 (2012) (the second-order model, descended by
# coordinates).


#: No step's columns, curvature and gap.
NO_STEP = None, None, 0.0


class WorkingNewton:
    """Minimises loss + penalty. `report(state, pull, steps)` is called where a look at the certificate pays; True ends the run."""

    def __init__(self, loss: SmoothLoss, design: Design, penalty: RowPenalty, centred: bool, tol: float):
        self.loss, self.design, self.centred, self.target = loss, design, centred, 0.8 * tol
        # tasks that have nothing in common have step lengths of their own
        self.penalty, self.apart = penalty, isinstance(penalty, RowPenalty) and not penalty.l21.any()
        self.every = np.arange(design.n_features)
        self.damping, self.steps = SETTINGS.min_damping_share, 0
        self.last: Any = NO_STEP
        self.gave_up = False  # where a working set would be too large
        self.is_quadratic = loss.atom.quadratic is not None  # then a model is the loss itself
        self.work = 0.0  # in flops

    def run(
        self,
        W,
        b,
        max_iter: int,
        report: Callable[[LossState, np.ndarray, int], bool],
        expired: Callable[[], bool],
    ) -> LossState:
        loss = self.loss
        rows = np.flatnonzero(W.any(axis=0))
        columns = self.design.columns(self.every if self.design.prefers_all_rows else rows)
        z = columns.forward(W[:, columns.rows]) + loss.spread(b)
        state = LossState(loss, z, W, b)
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
            if rows is not None and (
                self.gave_up or (not self.is_quadratic and self.design.would_copy_most_of_X(rows))
            ):
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

    def _next_rows(self, known, state: LossState, excess) -> tuple[np.ndarray | None, bool]:
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
        return (self.every, False) if self.design.holds_columns and 2 * rows.size > d else (rows, is_short)

    def _gap(self, state: LossState, pull, penalty: RowPenalty, W) -> tuple[float, np.ndarray]:
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
        self, columns, penalty: RowPenalty, own, gradient, state: LossState, curvature, precision: float
    ) -> tuple[tuple, float]:
        """((dW (m, p), db (m,), the flat change of the predictions), flops) of the model from W = own (m, p), where the loss's gradient in W is
        this; the flops are those beside the matrices, where they are counted.

        precision : of the model's violation, relative to that at W
        """
        goal, centred, flops = 0.3 * self.target, self.centred, 0.0
        sums = state.sums if centred else np.zeros(len(own))
        held = columns.held
        if held is None or held.curvature is not curvature:
            held = columns.held = None  # before there is another
            held = columns.held = EliminatedIntercepts(columns, curvature, self.loss.sums(curvature), centred)
        if isinstance(columns, DenseColumns):
            reduced = gradient - held.border * (sums / held.totals)[:, None]
            model = GramModel(held.gram, reduced, own.copy(), penalty)
            model.minimize(precision)
            step, flops = model.W - own, model.flops
        else:
            model = ColumnModel(columns, penalty, own, state.u, curvature, held.border, held.totals, sums)
            # slopes that are off by no more than this part of the l1 norm's are good enough
            model.descend(max(precision, DESCENT.coarse_tol), goal)
            step = model.W - own
            del model  # its arrays are as large as what is made next
        db = -(sums + np.einsum("ij,ij->i", held.border, step)) / held.totals
        return (step, db, columns.forward(step) + self.loss.spread(db)), flops

    # ------------------------------------------------------------------------------------------- on rows

    def _descend(self, state: LossState, columns, gradient, gap: float, most: int, expired) -> bool:
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
            distance = 0.0 if self.is_quadratic else max(gap, SETTINGS.end_tol)
            precision = min(max(distance, 0.3 * self.target / gap), DESCENT.far_tol)
            curvature = self._curvature(state, columns, gap)
            change, flops = self._minimised(columns, penalty, own, gradient, state, curvature, precision)
            self.work += flops
            moved = self._step(state, penalty, own, *change)
            if moved is None:
                return step > 0
            own = moved
            state.W[:, rows] = own
        return True

    def _curvature(self, state: LossState, columns, gap: float):
        """Return that of the step before, and so its matrices, where as much progress again would do: they are most of a step's price."""
        known, held, before = self.last
        if known is not columns or (not self.is_quadratic and gap * gap > self.target * before):
            # where every sample's loss is straight, as Huber's far out, the curvature that it may come to
            top = float(state.curvature.max(initial=0.0)) or self.loss.largest_curvature()
            held = np.maximum(state.curvature, self.damping * top)
        self.last = (
            columns if isinstance(columns, DenseColumns) else None,
            held,
            gap,
        )  # whose matrices serve again
        return held

    def _step(self, state: LossState, penalty: RowPenalty, own, dW, db, dz) -> np.ndarray | None:
        """Along the step as far as the objective falls as promised: the rows' new weights; None where it does not."""
        loss = self.loss
        if self.is_quadratic:
            state.b = state.b + db
            z = state.z + dz
            state.move_to(z, loss.values(z))
            return own + dW
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


# --------------------------------------------------------------------------------------------------------------
# From forms to points: all tasks on one working set, or each on its own.


class NewtonRun:
    """One smooth loss that is a sum over samples, of one matrix under row penalties: `unsupported_reason` was asked."""

    newton: type[WorkingNewton] = WorkingNewton

    def __init__(
        self,
        form: NormalForm,
        tol: float = 0.0,
        max_iter: int = 0,
        start: Point | None = None,
        watch: Any = None,
    ):
        facts = single_block(form)
        assert not isinstance(facts, str)  # unsupported_reason() was asked
        self.form, self.facts, self.loss, self.tol, self.max_iter, self.watch = (
            form,
            facts,
            facts.loss,
            tol,
            max_iter,
            watch,
        )
        self.penalty, self.start = self._penalty(), start
        self.centred = facts.intercept is not None
        d, m = facts.shape
        self.W, self.b = np.zeros((m, d)), np.zeros(m)
        if start is not None:
            self.W = np.array(start.blocks[facts.name].T, order="C")
            if facts.intercept is not None:
                self.b = np.array(start.blocks[facts.intercept][0])

    @cached_property
    def design(self) -> Design:
        return cached_on_path(self.loss, "design", lambda: design_of(self.loss))

    def _penalty(self) -> Any:
        return RowPenalty.of(self.form.functions, self.facts.shape)

    def _duals(self, pull, W) -> list:
        """Every function's multiplier (d, m); pull (m, d): minus the loss's gradient."""
        return function_duals(self.form.functions, self.penalty, pull, W.T)

    @property
    def prefers_apart(self) -> bool:
        """Tell whether each task is to have a working set of its own; loops over tasks cost more than small tasks together."""
        m, d = self.W.shape
        loss, tasks = self.loss, self.loss.tasks
        if m == 1 or d <= SETTINGS.max_together_features or self.penalty.l21.any():
            return False
        if loss.atom.quadratic is not None and loss.is_shared_complete and loss.uniform_scale is not None:
            return False  # one Gram matrix serves all tasks
        return tasks.is_sparse or tasks.n_samples * d * d > SETTINGS.max_together_flops

    def together(self) -> tuple[Point, bool]:
        """(the last point, whether that is all: else steps without a working set go on)."""
        samples, last = SmoothLoss.of(self.loss), list[Point]()
        newton = self.newton(samples, self.design, self.penalty, self.centred, self.tol)
        support = np.flatnonzero(self.W.any(axis=0))
        if self.start is not None and not newton.is_quadratic and self.design.would_copy_most_of_X(support):
            return self.start, False

        def report(state: LossState, pull, steps: int) -> bool:
            u = samples.balanced(state.u, state.curvature) if self.centred else state.u.copy()
            last[:] = [replace(self._point(state.W, state.b, u, pull, steps), work=newton.work)]
            return self.watch(last[0])

        newton.run(self.W, self.b, self.max_iter, report, lambda: self.watch.expired)
        return last[0], not newton.gave_up

    def apart(self) -> Point:
        """Task after task, to the same relative accuracy; sharper where all together are not yet good enough."""
        tasks, W, b, tol, done = self.loss.tasks, self.W, self.b, self.tol, 0
        pull, u = np.empty(W.shape), np.empty(tasks.n_samples)
        while True:
            left, target = self.max_iter - done, tol

            def one(i: int, expired, left=left, target=target) -> int:
                own = self.penalty.of_task(i)
                samples = SmoothLoss.of_task(self.loss, i)
                steps = WorkingNewton(samples, self.design.of_task(i), own, self.centred, target)
                seen: list = []

                def keep(state: LossState, found, count: int) -> bool:
                    seen[:] = [found]
                    return True

                state = steps.run(W[i : i + 1], b[i : i + 1], left, keep, expired)
                b[i] = state.b[0]
                # every task's dual point is scaled by itself: one common scale would be the worst of all
                shrink = 1.0 / own.inspect(seen[0] - own.ridge * state.W).gauge
                rows = slice(tasks.offsets[i], tasks.offsets[i + 1])
                own_u = samples.balanced(state.u, state.curvature) if self.centred else state.u
                pull[i], u[rows] = shrink * seen[0][0], shrink * own_u
                return steps.steps

            most = max(in_jobs(one, range(len(W)), lambda: self.watch.expired))
            done += max(most, 1)
            point = self._point(W, b, u.copy(), pull, done)
            if self.watch(point) or done >= self.max_iter or self.watch.expired:
                return point
            tol *= 0.3

    def _point(self, W, b, u, pull, steps: int) -> Point:
        blocks = {self.facts.name: np.ascontiguousarray(W.T)}
        if self.facts.intercept is not None:
            blocks[self.facts.intercept] = b[None, :].copy()
        duals = self._duals(pull, W) if len(self.form.functions) > 1 else None
        return Point(blocks, [u], duals, steps)
