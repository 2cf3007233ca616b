"""Smooth losses under l1 and l21 norms, perhaps with a ridge and W >= 0: all tasks on one working set, or each on its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mtldsl.compile.normal_form import NormalForm
from mtldsl.compile.single_block import single_block
from mtldsl.solvers.point import Point
from mtldsl.solvers.rows.penalty import RowPenalty, function_duals
from mtldsl.solvers.rows.penalty import why_not as why_not_penalty
from mtldsl.solvers.smooth.designs import design_of, design_of_task
from mtldsl.solvers.smooth.samples import SmoothLoss, one_smooth_loss
from mtldsl.solvers.smooth.working_newton import State, WorkingNewton
from mtldsl.solvers.watches import Watch
from mtldsl.system.jobs import in_jobs

__all__ = ["SHIFT", "solve", "why_not"]

#: Newton steps in which another solver's turn comes in any case; those on more rows than samples count for as many, so that it comes at once
SHIFT = 500

#: up to so many features, or multiplications for all Gram matrices, tasks that have nothing in common go together all the same: loops
#: over tasks cost more
_FEW_FEATURES, _CHEAP = 32, 20_000_000


def why_not(form: NormalForm) -> str | None:
    """None for one smooth loss that is a sum over samples, not quadratic, of one matrix under row-sparse penalties; else a sentence."""
    facts = one_smooth_loss(form)
    if isinstance(facts, str):
        return facts
    return why_not_penalty(form.functions, facts.shape)


def solve(
    form: NormalForm, tol: float, max_iter: int, start: Point | None, watch: Watch
) -> tuple[Point, bool]:
    """(the last point, whether that is all: else steps without a working set go on)."""
    facts = single_block(form)
    assert not isinstance(facts, str)  # why_not() was asked
    penalty = RowPenalty.of(form.functions, facts.shape)
    W = np.zeros(facts.shape[::-1]) if start is None else np.array(start.blocks[facts.name].T, order="C")
    if penalty.nonneg:
        np.maximum(W, 0.0, out=W)
    b = np.zeros(len(W))
    if facts.intercept is not None and start is not None:
        b = np.array(start.blocks[facts.intercept][0])
    run = _Run(form, facts, penalty, tol, max_iter, watch)
    d, samples = W.shape[1], facts.loss.tasks.n_samples
    few = d <= _FEW_FEATURES or (samples * d * d <= _CHEAP and not facts.loss.tasks.is_sparse)
    apart = not penalty.l21.any() and len(W) > 1 and not few
    if apart:
        return run.apart(W, b), True
    design = design_of(facts.loss)
    if start is not None and design.take_room(np.flatnonzero(W.any(axis=0))):
        return start, False
    return run.together(W, b, design)


class _Run:
    def __init__(self, form: NormalForm, facts, penalty: RowPenalty, tol: float, max_iter: int, watch: Watch):
        self.form, self.facts, self.penalty, self.tol = form, facts, penalty, tol
        self.max_iter, self.watch, self.loss = max_iter, watch, facts.loss
        self.centred = bool(self.loss.intercepts)

    def together(self, W, b, design) -> tuple[Point, bool]:
        last: list[Point] = []

        def report(state: State, pull, steps: int) -> bool:
            u = samples.balanced(state.u, state.curvature) if self.centred else state.u.copy()
            point = self._point(state.W, state.b, u, pull, steps)
            last[:] = [replace(point, effort=float(2 * SHIFT)) if newton.is_outgrown else point]
            return self.watch(last[0])

        samples = SmoothLoss.of(self.loss)
        newton = WorkingNewton(samples, design, self.penalty, self.centred, self.tol)
        newton.run(W, b, self.max_iter, report, lambda: self.watch.expired)
        return last[0], not newton.gave_up

    def apart(self, W, b) -> Point:
        """Task after task, to the same relative accuracy; sharper where all together are not yet good enough."""
        tasks, tol, done = self.loss.tasks, self.tol, 0
        pull, u = np.empty(W.shape), np.empty(tasks.n_samples)
        shared: Any = design_of(self.loss) if self.loss.is_shared_complete else None
        inputs: Any = None if shared is not None else tasks.inputs
        while True:
            left, target = self.max_iter - done, tol

            def one(i: int, expired, left=left, target=target) -> int:
                if shared is not None:
                    design = design_of_task(shared.X, shared.transposed)
                else:
                    design = design_of_task(inputs[i])
                own = self.penalty.of_task(i)
                samples = SmoothLoss.of_task(self.loss, i)
                steps = WorkingNewton(samples, design, own, self.centred, target)
                seen: list = []

                def keep(state: State, found, count: int) -> bool:
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
        duals = None
        if len(self.form.functions) > 1:
            duals = function_duals(self.form.functions, self.penalty, pull, W.T)
        return Point(blocks, [u], duals, steps)
