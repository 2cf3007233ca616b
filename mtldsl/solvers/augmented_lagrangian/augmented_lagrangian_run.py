"""One run of the method of multipliers on a form: outer steps, or interior points."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtldsl.normal_form.form import NormalForm, single_block
from mtldsl.solvers.augmented_lagrangian.interior_point import SETTINGS as INTERIOR
from mtldsl.solvers.augmented_lagrangian.interior_point import InteriorPoint, has_interior, in_groups
from mtldsl.solvers.augmented_lagrangian.outer_loop import OuterLoop, first_phase, first_state
from mtldsl.solvers.augmented_lagrangian.prox_parts import (
    KinkedScores,
    MatrixPart,
    RowPart,
    StructuredScores,
)
from mtldsl.solvers.design.row_penalty import RowPenalty, function_duals
from mtldsl.solvers.design.row_penalty import unsupported_reason as why_not_by_rows
from mtldsl.solvers.design.task_design import Designs
from mtldsl.solvers.solver import FLOPS_PER_CALL, Point, Watch

#: Residual over tol, from which on every step may be the last one.
LOOK_RATIO = 300.0


class AugmentedLagrangianRun:
    """One run on a form."""

    def __init__(self, form: NormalForm, tol: float, start: Point | None):
        self.form, self.tol = form, tol
        facts = single_block(form)
        assert not isinstance(facts, str)  # `refuses` was asked
        self.loss, self.block = facts.loss, facts.name
        self.designs = designs = Designs(self.loss)
        unit, shape = designs.unit(), form.shapes[self.block]
        self.part: Any = (
            RowPart(RowPenalty.of(form.functions, shape), unit)
            if is_by_rows(form)
            else MatrixPart(form.functions, unit)
        )
        self.scores: Any = (
            StructuredScores(self.loss) if self.loss.has_score_steps else KinkedScores(self.loss)
        )
        self.outer = OuterLoop(designs, self.scores, self.part, self._start(start))
        self.looked_at = np.inf
        has_one_kink = isinstance(self.scores, KinkedScores) and self.scores.gap is None
        self.has_interior = has_one_kink and has_interior(designs, self.part)
        self.tasks = BestTasks(designs, self.scores, self.part) if self.part.is_separable else None

    def _start(self, start: Point | None):
        designs, shape = self.designs, self.form.shapes[self.block]
        if start is None:
            return first_state(designs, np.zeros(shape), np.zeros(shape[1]), None, None)
        W = np.array(start.blocks[self.block], float)
        b = sum((start.blocks[name][0] for name in self.loss.intercepts), np.zeros(shape[1]))
        u = None if start.loss_duals is None else np.asarray(self.loss.dual_project(start.loss_duals[0]))
        return first_state(designs, W, designs.centred(W, b), u, None if u is None else -designs.adjoint(u))

    def run(self, max_iter: int, watch: Watch) -> Point:
        live, taken, share = np.arange(self.designs.n_tasks), 0, 0.3
        outer = self.outer
        if self.loss.has_score_steps:
            taken, point = first_phase(self, max_iter, watch)
            if point is not None:
                return point
        while True:
            taken += max(outer.step(max_iter - taken), 1)
            if self.tasks is not None:
                self.tasks.see(outer, live)
            stops = taken >= max_iter or watch.expired or outer.is_stalled
            if stops or self._is_worth_a_look(outer):
                point = self._point(outer, taken)
                if watch(point) or stops:
                    point.stopped = "stalled" if outer.is_stalled else ""
                    return point
            if self.tasks is not None:
                keep = ~self.tasks.are_done(live, share * self.tol)
                if not keep.any():  # the certificate sees more of rounding: all of them go on
                    share *= 0.1
                elif keep.sum() <= 0.7 * len(live):
                    outer, live = outer.on(np.flatnonzero(keep)), live[keep]

    def by_interior_points(self, max_iter: int, watch: Watch) -> tuple[Point, bool]:
        """(the last point of interior points, whether that is the end): these may lose their way."""
        assert isinstance(self.part, RowPart)
        groups = in_groups(self.designs, self.scores, self.part)
        share, looked_at, iterations, tasks = 0.3, np.inf, 0, self.tasks
        assert tasks is not None
        try:
            while True:
                for _, run in groups:
                    if run.goes_on.any():
                        run.step()
                iterations += 1
                missing = float(sum(run.missing.sum() for _, run in groups))
                stops = iterations >= max_iter or watch.expired
                is_stalled = any(run.is_stalled for _, run in groups)
                near = INTERIOR.look_ratio * self.tol * abs(tasks.objectives.sum())
                if stops or is_stalled or missing < max(INTERIOR.look_share * looked_at, near):
                    for ids, run in groups:
                        tasks.see(run, ids)
                    if stops or missing < INTERIOR.look_share * looked_at or tasks.within(self.tol):
                        looked_at = missing
                        point = self._made(tasks.v, tasks.b, tasks.u, iterations, None)
                        if watch(point) or stops:
                            return point, True
                    done = tasks.are_done(np.arange(self.designs.n_tasks), share * self.tol)
                    if done.all():
                        share, done = 0.1 * share, ~done
                    for ids, run in groups:
                        run.goes_on = ~done[ids]
                if is_stalled:
                    break
        except (ArithmeticError, np.linalg.LinAlgError):
            pass
        return self._made(tasks.v, tasks.b, tasks.u, iterations, None), False

    def _is_worth_a_look(self, outer: OuterLoop) -> bool:
        """A look costs some products with the data: the first step is, a tenth of what was missing is, and what may be the end."""
        if self.loss.has_score_steps:  # whose outer steps cost many looks
            return True
        missing = float(outer.residuals.worst.max())
        near = missing < LOOK_RATIO * self.tol if self.tasks is None else self.tasks.within(self.tol)
        if near or missing < 0.1 * self.looked_at:
            self.looked_at = missing
            return True
        return False

    def _point(self, outer: OuterLoop, taken: int) -> Point:
        best = outer.at if self.tasks is None else self.tasks
        return self._made(best.v, best.b, best.u, taken, outer)

    def _made(self, v, b, u, taken: int, outer: OuterLoop | None) -> Point:
        """The point of weights v, intercepts b of centred columns and multipliers u."""
        designs = self.designs
        blocks = {self.block: v.copy()}
        for name in self.loss.intercepts:
            blocks[name] = designs.intercepts(v, b)[None, :]
        duals = None
        if len(self.form.functions) > 1:
            pull = -designs.adjoint(u)
            if isinstance(self.part, RowPart):
                duals = function_duals(self.form.functions, self.part.penalty, pull.T, v)
            else:
                assert outer is not None  # tasks by themselves have parts by rows
                M = self.part.metric(outer.penalties.regularizer)
                duals = self.part.shares(v + pull / M, M)
        return Point(blocks, [u], duals, taken, work=self._work(taken))

    def _work(self, taken: int) -> float | None:
        """Flops of so many Newton steps; None where `AugmentedLagrangian.flops` tells them, as those of interior points."""
        work = self.outer.newton.work
        return work + FLOPS_PER_CALL * taken if work and not self.loss.has_score_steps else None


def is_by_rows(form: NormalForm) -> bool:
    shape = form.weight_blocks[0].shape
    return why_not_by_rows(form.functions, shape) is None or are_plain_ridges(form)


def is_untied(form: NormalForm) -> bool:
    """Tell whether every task is a program by itself, and every sample has a loss of its own."""
    facts = single_block(form)
    if isinstance(facts, str) or facts.loss.has_score_steps or not (form.is_convex and is_by_rows(form)):
        return False
    return facts.shape[1] == 1 or not RowPenalty.of(form.functions, facts.shape).l21.any()


def are_plain_ridges(form: NormalForm) -> bool:
    """Tell whether tasks are tied by nothing: squares with one weight each."""
    quadratics = [f.atom.entry_quadratic for f in form.functions]
    return all(a is not None and np.ptp(a) == 0.0 and np.min(a) > 0.0 for a in quadratics)


class BestTasks:
    """Best points of tasks that are not tied: v (d, m), b (m,) of the lowest objectives, flat u of the highest bounds.

    Multipliers are scaled task by task: one common scale would be the worst of all.
    """

    def __init__(self, designs: Designs, scores, part):
        self.offsets = designs.offsets
        m, d = designs.n_tasks, len(part.unit)
        self.v, self.b, self.u = np.zeros((d, m)), np.zeros(m), np.zeros(designs.offsets[-1])
        self.objectives, self.bounds = np.full(m, np.inf), np.full(m, -np.inf)

    def see(self, outer: OuterLoop | InteriorPoint, live: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Keep what is best of where the run of the tasks `live` stands."""
        designs, scores, part, at = outer.designs, outer.scores, outer.part, outer.at
        u = scores.balanced(at.u, designs) if designs.has_intercepts else at.u
        t, conjugates = part.dual(-designs.adjoint(u))
        promised = -t * scores.conjugates(u, designs)
        # squares beside the norm: a smaller scale s proves s promised - s^2 conjugates, and more where multipliers are far too large
        shrinkage = np.where(promised < 0.0, 0.0, 1.0)
        np.divide(
            promised, 2.0 * conjugates, out=shrinkage, where=(promised > 0) & (promised < 2.0 * conjugates)
        )
        t, bounds = shrinkage * t, shrinkage * (promised - shrinkage * conjugates)
        objectives = scores.values(designs.forward(at.v, at.b), designs) + part.values(at.v)
        for k, i in enumerate(live):
            rows = slice(self.offsets[i], self.offsets[i + 1])
            if bounds[k] > self.bounds[i]:
                self.bounds[i], self.u[rows] = (
                    bounds[k],
                    t[k] * u[designs.offsets[k] : designs.offsets[k + 1]],
                )
            if objectives[k] < self.objectives[i]:
                self.objectives[i], self.v[:, i], self.b[i] = objectives[k], at.v[:, k], at.b[k]
        return objectives, bounds

    def within(self, tol: float) -> bool:
        """Tell whether the gaps of all tasks together say so."""
        objective = self.objectives.sum()
        return bool(objective - self.bounds.sum() <= tol * abs(objective))

    def are_done(self, live: np.ndarray, tol: float) -> np.ndarray:
        """Tell whether a task's gap is at most its part of tol times the objective of all."""
        gaps = self.objectives[live] - self.bounds[live]
        return gaps <= tol * abs(self.objectives.sum()) / len(self.objectives)
