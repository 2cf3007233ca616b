"""Coordinate descent on few rows at a time: solve on a working set, look at all rows, add those that violate optimality.

The gap measured here steers; the proof is the certificate's, outside.
Sources: Massias, Gramfort and Salmon, "Celer: a fast solver for the lasso with dual extrapolation", ICML 2018 (working sets);
Bertrand and Massias, "Anderson acceleration of coordinate descent", AISTATS 2021 (extrapolation).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from mtldsl.normal_form.form import NormalForm, single_block
from mtldsl.normal_form.reductions.block_reductions import RowRestriction
from mtldsl.solvers.coordinate_descent.quadratic_model import SETTINGS as DESCENT
from mtldsl.solvers.coordinate_descent.quadratic_model import (
    ResidualState,
    newton_cost,
    newton_steps,
    sweep_cost,
)
from mtldsl.solvers.design.row_penalty import RowPenalty, function_duals, unsupported_reason
from mtldsl.solvers.numerics.anderson import ROUND_SWEEPS, IterateHistory, extrapolate
from mtldsl.solvers.solver import Point, StoppingWatch, Watch

__all__ = [
    "RowSelection",
    "WorkingSet",
    "selection_refusal",
]


# --------------------------------------------------------------------------------------------------------------
# Smooth losses under row-sparse penalties: solve on the rows of W that matter, look at all rows, add those that are missing.
#
# A product with all features is paid a few times only; in between the problem is a small one of the same kind.


@dataclass(frozen=True)
class WorkingSetSettings:
    """Constants of working sets.

    min_rows      : of a weight matrix; fewer are solved for at once
    violation_tol : of the small problem, relative to the largest violation outside
    gap_share     : of the gap of all rows, to which that of a working set is brought: a finer one would be thrown away
    call_flops    : in the time that a Newton step takes beside its own
    """

    min_rows: int = 200
    violation_tol: float = 0.1
    gap_share: float = 0.1
    call_flops: float = 3e6


SETTINGS = WorkingSetSettings()


Solve = Callable[[NormalForm, int, Point | None, Watch], Point]


def selection_refusal(form: NormalForm) -> str | None:
    """None for one large weight matrix itself whose penalties leave out rows, else one sentence."""
    facts = single_block(form, several_losses=True)
    if isinstance(facts, str):
        return facts
    if facts.shape[0] < SETTINGS.min_rows:
        return f"{facts.name} has fewer than {SETTINGS.min_rows} rows."
    return unsupported_reason(form.functions, facts.shape)


class RowSelection:
    """Runs `solve`, which takes whole forms, on a form's restrictions to growing sets of rows."""

    def __init__(self, form: NormalForm, solve: Solve):
        self.form, self.solve_form = form, solve
        (self.block,) = form.weight_blocks
        self.penalty = RowPenalty.of(form.functions, self.block.shape)

    def run(self, max_iter: int, start: Point | None, watch: Watch) -> Point:
        d, m = self.block.shape
        blocks = self.form.zeros() if start is None else {k: np.array(v) for k, v in start.blocks.items()}
        rows, iteration, precision = np.flatnonzero(blocks[self.block.name].any(axis=1)), 0, math.inf
        while True:
            point, excess, steepest = self._look(blocks, iteration)
            precision = min(precision, steepest)
            known = np.zeros(d, dtype=bool)
            known[rows] = True
            new = np.flatnonzero((excess > 0) & ~known)
            done = iteration >= max_iter or watch.expired
            if new.size == 0 or done:
                if watch(point) or done:
                    return point
                precision *= SETTINGS.violation_tol
            else:
                precision = min(precision, SETTINGS.violation_tol * float(excess[new].max()))
                support = int(blocks[self.block.name].any(axis=1).sum())
                most = max(int(math.sqrt(d * m)), 2 * support)
                if new.size > most:
                    new = new[np.argpartition(-excess[new], most)[:most]]
                rows = np.sort(np.concatenate([rows, new]))
            if rows.size == 0:  # only the intercepts move; a form needs a row
                rows = np.array([excess.argmax()])
            reduction = RowRestriction(rows)
            small, whole = reduction.apply(self.form)
            inner = Point(reduction.restricted(blocks, whole))
            enough = StoppingWatch(watch, partial(_is_stationary, small, precision))
            found = self.solve_form(small, max_iter - iteration, inner, enough)
            iteration += found.iteration
            blocks = reduction.invert(found, whole).blocks

    def _look(self, blocks, iteration: int) -> tuple[Point, np.ndarray, float]:
        """The point with its multipliers, by how much every row violates optimality, and the largest row of the gradient."""
        W, into, slopes = blocks[self.block.name], self.form.zeros(), []
        for loss in self.form.losses:
            slopes.append(loss.gradient(loss.predictions(blocks)))
            loss.add_adjoint(slopes[-1], into)
        pull = -into[self.block.name].T
        duals = function_duals(self.form.functions, self.penalty, pull, W)
        seen = self.penalty.inspect(pull - self.penalty.ridge * W.T)
        steepest = max(_largest_row(gradient) for gradient in into.values())
        return Point(blocks, slopes, duals, iteration), seen.norms - self.penalty.l21, steepest


def _largest_row(matrix) -> float:
    return float(np.sqrt(np.einsum("ij,ij->i", matrix, matrix).max(initial=0.0)))


def _is_stationary(form: NormalForm, precision: float, point: Point) -> bool:
    """Tell whether the multipliers of a small problem's point are stationary to this precision."""
    residual = form.zeros()
    assert point.loss_duals is not None and point.function_duals is not None  # the solver shows them
    for loss, u in zip(form.losses, point.loss_duals, strict=True):
        loss.add_adjoint(u, residual)
    for f, v in zip(form.functions, point.function_duals, strict=True):
        f.map.add_adjoint(v, residual)
    return max(_largest_row(r) for r in residual.values()) <= precision


@dataclass
class OptimalityScan:
    """A view of all rows: by how much each violates optimality, and the relative gap."""

    excess: np.ndarray
    gap: float


class WorkingSet:
    """Minimises the design's quadratic + penalty. `report(state, sweeps)` is called where a look at the certificate pays."""

    def __init__(self, design, penalty: RowPenalty, tol: float):
        self.design, self.penalty, self.target = design, penalty, 0.8 * tol
        self.all_rows = design.prefers_all_rows
        self.reach = penalty.l21 + penalty.l1.min(axis=0)  # of a gradient at which a row begins to move
        self.sweeps, self.work = 0, 0.0  # in floating point operations

    def run(self, W, max_iter: int, report: Callable[[object, int], bool], expired: Callable[[], bool]):
        """From W (m, d) on; W is changed. Returns the last state."""
        support = np.arange(W.shape[1]) if self.all_rows else np.flatnonzero(W.any(axis=0))
        state = self.design.state(self.penalty, support, W, None)
        look, rounds, reported, shown_at = self.look(state), 1, 0, 0.0
        was_shown = False
        while True:
            rows = self.next_rows(state, look)
            if rows is None and state.is_slow:
                rows = state.rows
            if rows is not None:
                W[:] = 0.0
                W[:, state.rows] = state.W
                state, rounds = self.design.state(self.penalty, rows, W, state), 2
            if (
                rows is not None or was_shown or look.gap > self.target
            ):  # else the start is good enough to be shown
                known = self.descend(
                    state, rounds, max(0.5 * self.target, SETTINGS.gap_share * look.gap), max_iter, expired
                )
                # where these are all rows, the last gap of the rounds is that of a look
                seen = known <= self.target and len(state.rows) == W.shape[1]
                before, look = look, OptimalityScan(look.excess, known) if seen else self.look(state)
                is_slow = rounds == DESCENT.max_rounds and look.gap > self.target
                if is_slow and isinstance(state, ResidualState):
                    state.is_slow = self.design.residuals_are_slow = True
                rounds = self.rounds_needed(rounds, before.gap, look.gap)
            done, reached = self.sweeps >= max_iter or expired(), look.gap <= self.target
            is_due = self.sweeps >= 2 * reported + 100 or self.work >= 2.0 * shown_at + DESCENT.look_flops
            if reached or done or is_due:
                reported, shown_at, was_shown = self.sweeps, self.work, True
                if report(state, self.sweeps) or done:
                    return state
                self.target *= 0.3 if reached else 1.0

    def look(self, state) -> OptimalityScan:
        objective, bound, excess = self._seen(state, state.W, *self.design.look(state))
        if state.dual_W is not None:
            own = relative(objective, bound) <= self.target or np.array_equal(state.dual_W, state.W)
            if not own:
                _, other, violations = self._seen(
                    state, state.dual_W, *self.design.look_at_dual(state, state.dual_W)
                )
                if other > bound:
                    return OptimalityScan(violations, relative(objective, other))
            state.dual_W = None
        return OptimalityScan(excess, relative(objective, bound))

    def _seen(self, state, own, pull, square: float, along: float) -> tuple[float, float, np.ndarray]:
        """(objective, bound, by how much every row violates optimality) of weights on the state's rows."""
        if len(state.rows) == pull.shape[1]:
            return objective_and_bound(state.penalty, pull, own, square, along)
        W = np.zeros(pull.shape)
        W[:, state.rows] = own
        return objective_and_bound(self.penalty, pull, W, square, along)

    def next_rows(self, state, look: OptimalityScan) -> np.ndarray | None:
        """The next working set: the support, what is near it, the worst violators; None where the present one holds all."""
        if self.all_rows:
            return None
        known = np.zeros(look.excess.size, dtype=bool)
        known[state.rows] = True
        new = np.flatnonzero((look.excess > 0) & ~known)
        if new.size == 0:
            return None
        if 2 * (known.sum() + new.size) >= known.size and self.design.may_take_all_rows:
            return np.arange(known.size)
        support = state.rows[state.W.any(axis=0)]
        most = max(self.design.most_new, 2 * support.size)
        if new.size > most:
            new = np.sort(new[np.argpartition(-look.excess[new], most)[:most]])
        near = look.excess > -DESCENT.near_share * self.reach
        near[support] = True
        rows = np.concatenate([state.rows[near[state.rows]], new])
        return rows if rows.size < known.size else np.arange(known.size)

    def rounds_needed(self, rounds: int, before: float, after: float) -> int:
        """For the gap to reach the target at the rate of the last rounds."""
        if not 0 < after < before:
            return min(2 * rounds, DESCENT.max_rounds)
        needed = rounds * math.log(max(after / self.target, 1.1)) / math.log(before / after)
        return min(max(math.ceil(needed), 1), 2 * rounds, DESCENT.max_rounds)

    def descend(self, state, rounds: int, target: float, max_iter: int, expired) -> float:
        """Sweeps, with extrapolations: until the gap on these rows is below target, where it is known, else some rounds. Returns the gap
        where the last step knew it, else inf."""
        left, support = DESCENT.max_rounds if state.knows_gap else rounds, None
        while left > 0:
            most = min(left, -(-(max_iter - self.sweeps) // ROUND_SWEEPS))
            if state.runs_rounds:
                done, gap, settled = state.rounds(max(_rounds_at_once(state, most), 1), target)
                reached = gap <= target
            else:
                done, reached, gap = 1, one_round(state, target), math.inf
                before, support = support, state.W != 0
                settled = before is not None and np.array_equal(before, support)
            self.sweeps += ROUND_SWEEPS * done
            self.work += ROUND_SWEEPS * done * _own_cost(state)
            left -= done
            if reached or self.sweeps >= max_iter or expired():
                return gap
            if not (state.knows_gap and state.takes_newton):
                continue
            # far from the solution's support a large system is not worth its price
            step = newton_cost(state)
            if not (settled or step <= 2.0 * ROUND_SWEEPS * sweep_cost(state)):
                continue
            self.work += step
            if newton_steps(state):
                state.dual_W = None
                if (gap := own_gap(state)) <= target:
                    return gap
        return math.inf


def _rounds_at_once(state, most: int) -> int:
    """Rounds in one call, `most` or fewer, in which nobody asks for the time: as much work as a Newton step where there are such, and no
    long wait."""
    round_ = 2.0 * ROUND_SWEEPS * _own_cost(state)
    if state.takes_newton and most * round_ <= SETTINGS.call_flops:
        return most
    work = newton_cost(state) + SETTINGS.call_flops if state.takes_newton else DESCENT.look_flops
    return min(max(int(min(work, DESCENT.look_flops) / round_), 1), most)


def one_round(state, target: float) -> bool:
    """Sweeps and an extrapolation; whether the gap on the rows is known, and at most target."""
    history = IterateHistory(state, ROUND_SWEEPS)
    history.add(state)
    assert history.carried is not None  # kept where compiled rounds are taken
    state.sweep_into(history.W[1:], history.carried[1:])
    if state.knows_gap and own_gap(state) <= target:
        return True
    extrapolate(state, history)
    return state.knows_gap and own_gap(state) <= target


def _own_cost(state) -> float:
    """Floating point operations of a sweep, of sparse inputs too."""
    return sweep_cost(state) if state.takes_newton else state.sweep_cost


def own_gap(state) -> float:
    """The relative gap of the problem on the state's rows alone."""
    square, along = state.moments()
    objective, bound, _ = objective_and_bound(state.penalty, state.pull(), state.W, square, along)
    return relative(objective, bound)


def objective_and_bound(
    penalty: RowPenalty, pull, W, square: float, along: float
) -> tuple[float, float, np.ndarray]:
    """(objective, bound, by how much every row violates optimality) with the best dual point t R, t <= 1 / gauge.

    pull : minus the gradient of the smooth part (m, p); W (m, p); square, along : ||R||^2, <R, Y>
    """
    from mtldsl.solvers.coordinate_descent.sweep_kernels import objective_and_bound as compiled

    excess, p = np.empty(pull.shape[1]), penalty
    objective, bound = compiled(pull, W, p.l1, p.l21, p.ridge, p.nonneg, square, along, excess)
    return objective, bound, excess


def relative(objective: float, bound: float) -> float:
    """The gap over the larger of the two."""
    return (objective - bound) / max(abs(objective), abs(bound), float(np.finfo(float).tiny))
