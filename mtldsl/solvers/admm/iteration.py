"""ADMM's loop: one state vector s = copies + scaled multipliers, a fixed-point map, and what keeps it fast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.normal_form.form import Blocks, NormalForm
from mtldsl.solvers.linear_systems.regularized_system import (
    ConjugateGradientUpdate,
    choose_x_update,
)
from mtldsl.solvers.linear_systems.task_matrices import SplitForm
from mtldsl.solvers.numerics.anderson import AndersonExtrapolation
from mtldsl.solvers.numerics.operator_splitting import ResidualBalance, dykstra, first_penalties
from mtldsl.solvers.route_table import ModelFacts
from mtldsl.solvers.solver import FLOPS_PER_CALL, Point, Watch, product_flops


@dataclass(frozen=True)
class IterationSettings:
    """Flops of a proximal step per prediction; measured on 200 to 2000 rows and 1 to 100 tasks.

    smooth_step_flops : of a smooth loss, whose step is an equation: 150 to 250
    step_flops        : of other losses: 10 to 80; of squares there is none
    """

    smooth_step_flops: float = 160.0
    step_flops: float = 40.0


SETTINGS = IterationSettings()


def flops_of_iteration(form: NormalForm) -> float:
    """Flops of two products with the data, of a solution of every task's system, and of the losses' proximal steps."""
    facts = ModelFacts.of(form)
    share = product_flops(facts) / max(facts.product, 1.0)
    solutions = 2.0 * facts.tasks * min(facts.samples, facts.features) ** 2
    step = SETTINGS.smooth_step_flops if facts.loss == "smooth" else SETTINGS.step_flops
    steps = 0.0 if facts.loss == "squares" else step * facts.samples * facts.tasks
    return FLOPS_PER_CALL + share * (2.0 * facts.product + solutions) + steps


# --------------------------------------------------------------------------------------------------------------
# From ADMM's iterates to a point worth certifying: the copy with the structure, and multipliers with the right signs.


class PointMaker:
    """Makes points of one split. On every block the candidates are x itself and the copies that equal the block.

    A copy has its term's structure exactly (zeros, low rank, W >= 0); where several sets bind one block, a few of Dykstra's
    rounds move a candidate into their intersection. The candidate with the smaller violation, then objective, is reported.
    """

    def __init__(self, split: SplitForm, tol: float):
        self.split, self.form, self.tol = split, split.form, tol
        self.copies_of = {block.name: [] for block in self.form.blocks}
        self.sets_of = {block.name: [] for block in self.form.blocks}
        for copy in split.copies:
            block = None if copy.is_loss else copy.term.map.identity_of
            if block is not None and not copy.term.is_constraint:
                self.copies_of[block].append(copy)
            elif block is not None:
                self.sets_of[block].append(copy)

    def point(self, x: Blocks, w: np.ndarray, multipliers: np.ndarray, iteration: int, state: dict) -> Point:
        """The point of iterates x, w and the copies' multipliers (subgradients of h_j at w_j)."""
        loss_duals: list = [None] * len(self.form.losses)
        function_duals: list = [None] * len(self.form.functions)
        for copy in self.split.copies:
            duals = loss_duals if copy.is_loss else function_duals
            duals[copy.index] = multipliers[copy.rows].reshape(copy.shape)
        for t in self.split.exact_losses:
            loss = self.form.losses[t]
            loss_duals[t] = loss.gradient(loss.predictions(x))
        for k, curvature in self.split.exact_functions.items():
            function_duals[k] = curvature.product(self.form.functions[k].map.forward(x))
        return Point(self._primal(x, w), loss_duals, function_duals, iteration, state)

    def _primal(self, x: Blocks, w: np.ndarray) -> Blocks:
        best = {name: self._feasible(name, array) for name, array in x.items()}
        rank = None
        for name, copies in self.copies_of.items():
            structured = [self._feasible(name, w[copy.rows].reshape(copy.shape)) for copy in copies]
            if len(structured) == 1 and not self.form.constraints:
                best = best | {name: structured[0]}
                rank = None
                continue
            for candidate in structured:
                rank = self._rank(best) if rank is None else rank
                other = best | {name: candidate}
                other_rank = self._rank(other)
                if other_rank <= rank:
                    best, rank = other, other_rank
        return best

    def _rank(self, x: Blocks) -> tuple[float, float]:
        violation = self.form.violation(x)
        return (violation if violation > 0.1 * self.tol else 0.0), self.form.value(x)

    def _feasible(self, name: str, array: np.ndarray) -> np.ndarray:
        """A point near `array` in every set that binds the block itself."""
        sets = [copy.term.atom for copy in self.sets_of[name]]
        if len(sets) == 1:
            return sets[0].project(array)
        return dykstra(sets, array) if sets else array


class ADMMIteration:
    """One run of ADMM on a form."""

    def __init__(self, form: NormalForm, tol: float, start: Point | None, relaxation: float, memory: int):
        self.split = split = SplitForm(form)
        self.form, self.tol, self.relaxation = form, tol, relaxation
        self.update = choose_x_update(split)
        self.target, self.constant = split.quadratic_target(), split.constant()
        self.points = PointMaker(split, tol)
        self.anderson = AndersonExtrapolation(memory) if memory > 0 else None
        # without convexity balancing is not known to settle
        self.balance = ResidualBalance(split) if form.is_convex else None
        state = _own_state(start, split)
        if state is not None:
            self.s = state["s"].copy()
            self._apply(state["penalties"].copy())
            return
        penalties = first_penalties(split, self.update.mean_quadratic, self.update.diagonals)
        self._apply(penalties, *self._first_guess(start))

    def change_penalties(self, penalties: np.ndarray) -> None:
        """Copies and multipliers stay."""
        w = self.split.prox(self.s, self.metric)
        self._apply(penalties, w, self.metric * (self.s - w))

    def _apply(self, penalties: np.ndarray, w: Any = None, multipliers: Any = None) -> None:
        """Take other penalties, and go on from copies w and their multipliers where they are given."""
        self.penalties, self.metric = penalties, self.split.metric(penalties)
        self.root = np.sqrt(self.metric)
        self.solve = self.update.solver(penalties)
        if w is not None:
            self.s = w + multipliers / self.metric
            if self.anderson is not None:
                self.anderson.reset()

    def _first_guess(self, start: Point | None) -> tuple[np.ndarray, np.ndarray]:
        """Copies and multipliers to start from: those of `start` where it has them, else losses' gradients."""
        split = self.split
        x = self.form.zeros() if start is None else start.blocks
        w = split.image(x)
        y = np.zeros(split.size)
        residual = self.form.zeros()
        for t, loss in enumerate(self.form.losses):
            given = None if start is None or start.loss_duals is None else start.loss_duals[t]
            dual = loss.gradient(loss.predictions(x)) if given is None else given
            loss.add_adjoint(dual, residual)
            for copy in split.copies:
                if copy.is_loss and copy.index == t:
                    y[copy.rows] = dual
        if start is None:
            return w, y
        for copy in split.copies:
            if copy.is_loss:
                continue
            if start.function_duals is not None and start.function_duals[copy.index] is not None:
                y[copy.rows] = start.function_duals[copy.index].ravel()
            elif copy.term.map.identity_of is not None:
                y[copy.rows] = -residual[copy.term.map.identity_of].ravel()
                residual[copy.term.map.identity_of][:] = 0.0
        return w, y

    def run(self, max_iter: int, watch: Watch) -> Point:
        iteration, last_watch, watched_residual = 0, 0, np.inf
        while True:
            iteration += 1
            w = self.split.prox(self.s, self.metric)
            rhs = {name: array.copy() for name, array in self.target.items()}
            self.split.add_adjoint(self.metric * (2.0 * w - self.s - self.constant), rhs)
            x = self.solve(rhs)
            image = self.image = self.split.image(x)
            step = image - w
            residual: Any = np.linalg.norm(self.root * step) / max(np.linalg.norm(self.root * self.s), 1e-100)
            # the relative gap is mostly within a factor of ten of this residual: far from tol a look is of little use
            since = iteration - last_watch
            near, close = residual < 300.0 * self.tol, residual < 10.0 * self.tol
            fell = near and residual < (0.5 if close else 0.1) * watched_residual
            due = (since >= 4 and fell) or since > 8 + 0.5 * last_watch
            last = iteration >= max_iter or self.split.size == 0
            if due or last:
                if watched_residual < 10.0 * self.tol:  # near the end, and yet no proof
                    x = self._refined(x, rhs)
                last_watch, watched_residual = iteration, residual
                point = self._point(x, w, self.metric * (self.s - w), iteration)
                if watch(point) or last:
                    return point
            image_of_s = self.s + self.relaxation * step
            if (
                self.balance is not None
                and self.balance.is_due(iteration)
                and self._rebalance(iteration, w, image, image_of_s)
            ):
                continue
            self.s = (
                image_of_s if self.anderson is None else self.anderson.step(self.s, image_of_s, self.root)
            )

    def _refined(self, x: Blocks, rhs: Blocks) -> Blocks:
        """x after a step of refinement. Where the losses are steep and the penalties small, gradients of the losses at x multiply what rounding
        has left in it, and prove little; the steps of the iteration are in the penalties' units, and mind it less."""
        if not self.split.exact_losses or isinstance(self.update, ConjugateGradientUpdate):
            return x  # conjugate gradients stop at a residual of their own, and go on from the last x
        product = self.split.quadratic_product(x)
        self.split.add_adjoint(self.metric * self.split.linear_image(x), product)
        step = self.solve({name: rhs[name] - product[name] for name in rhs})
        return {name: array + step[name] for name, array in x.items()}

    def _rebalance(self, iteration, w, image, image_of_s) -> bool:
        assert self.balance is not None  # it was asked whether it is due
        w_next = self.split.prox(image_of_s, self.metric)
        multipliers = self.metric * (self.s - w)
        quotients = self.balance.quotients(w, w_next, image, multipliers, self.metric)
        penalties = self.balance.update(iteration, self.penalties, quotients)
        if penalties is None:
            return False
        self._apply(penalties, w_next, self.metric * (image_of_s - w_next))
        return True

    def _point(self, x, w, multipliers, iteration) -> Point:
        state = {"solver": "admm", "s": self.s, "penalties": self.penalties, "sizes": _sizes(self.split)}
        return self.points.point(x, w, multipliers, iteration, state)


def _sizes(split: SplitForm) -> tuple:
    return tuple((copy.is_loss, copy.index, copy.shape) for copy in split.copies)


def _own_state(start: Point | None, split: SplitForm) -> dict | None:
    """The state of `start` where ADMM made it for terms of the same shapes, else None."""
    if start is None or start.state.get("solver") != "admm" or start.state.get("sizes") != _sizes(split):
        return None
    return start.state
