"""ADMM's loop: one state vector s = copies + scaled multipliers, a fixed-point map, and what keeps it fast."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.solvers.admm.newton import Standing
from mtldsl.solvers.admm.penalty import Balance, first_penalties
from mtldsl.solvers.admm.phases import STEP, NewtonPhase
from mtldsl.solvers.admm.points import PointMaker
from mtldsl.solvers.linear_algebra.anderson import Anderson
from mtldsl.solvers.linear_algebra.matrix_free import ConjugateGradientUpdate
from mtldsl.solvers.linear_algebra.split import Split
from mtldsl.solvers.linear_algebra.x_update import choose_x_update
from mtldsl.solvers.solver import Point, Watch

__all__ = ["Iteration"]


class Iteration:
    """One run of ADMM on a form."""

    def __init__(self, form: NormalForm, tol: float, start: Point | None, relaxation: float, memory: int):
        self.split = split = Split(form)
        self.form, self.tol, self.relaxation = form, tol, relaxation
        self.update = choose_x_update(split)
        self.target, self.constant = split.quadratic_target(), split.constant()
        self.points = PointMaker(split, tol)
        self.anderson = Anderson(memory) if memory > 0 else None
        # without convexity neither balancing nor the method of multipliers is known to settle
        self.balance = Balance(split) if form.is_convex else None
        self.newton = NewtonPhase(split, self.update, self.target, tol) if form.is_convex else None
        self.extra = 0.0  # what Newton steps cost beyond an iteration each, in iterations
        state = _own_state(start, split)
        if state is not None:
            self.penalties, self.s = state["penalties"].copy(), state["s"].copy()
            self._apply_penalties()
            return
        self.penalties = first_penalties(split, self.update.mean_quadratic, self.update.diagonals)
        self._apply_penalties()
        w, multipliers = self._first_guess(start)
        self.s = w + multipliers / self.metric

    def change_penalties(self, penalties: np.ndarray) -> None:
        """Copies and multipliers stay."""
        w = self.split.prox(self.s, self.metric)
        multipliers = self.metric * (self.s - w)
        self.penalties = penalties
        self._apply_penalties()
        self.s = w + multipliers / self.metric
        if self.anderson is not None:
            self.anderson.reset()

    def _apply_penalties(self) -> None:
        self.metric = self.split.metric(self.penalties)
        self.root = np.sqrt(self.metric)
        self.solve = self.update.solver(self.penalties)

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
            if self.newton is not None and self.newton.is_due(residual):
                point, iteration = self._newton(
                    Standing(x, image, w, self.s - w), residual, iteration, max_iter, watch
                )
                if point is not None:
                    return point
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

    def _newton(self, at: Standing, residual, iteration, max_iter, watch) -> tuple[Point | None, int]:
        """The method of multipliers' turn: (the last point where the run ends with it, iteration)."""

        began, extra = iteration, self.extra

        def report(at: Standing, penalties: np.ndarray, iteration: int) -> bool:
            self.extra = extra + (STEP - 1.0) * (iteration - began)
            self.s = at.w + self.split.metric(penalties) * at.u / self.metric
            at.point = self._point(at.x, at.w, self.split.metric(penalties) * at.u, iteration)
            return watch(at.point) or iteration >= max_iter

        assert self.newton is not None  # it was asked whether it is due
        stopped, at, _, iteration = self.newton.run(at, self.penalties, 0.1 * residual, iteration, report)
        if self.anderson is not None:
            self.anderson.reset()
        return (at.point if stopped else None), iteration

    def _rebalance(self, iteration, w, image, image_of_s) -> bool:
        assert self.balance is not None  # it was asked whether it is due
        w_next = self.split.prox(image_of_s, self.metric)
        multipliers = self.metric * (self.s - w)
        quotients = self.balance.quotients(w, w_next, image, multipliers, self.metric)
        penalties = self.balance.update(iteration, self.penalties, quotients)
        if penalties is None:
            return False
        y = self.metric * (image_of_s - w_next)
        self.penalties = penalties
        self._apply_penalties()
        self.s = w_next + y / self.metric
        if self.anderson is not None:
            self.anderson.reset()
        return True

    def _point(self, x, w, multipliers, iteration) -> Point:
        state = {"solver": "admm", "s": self.s, "penalties": self.penalties, "sizes": _sizes(self.split)}
        point = self.points.point(x, w, multipliers, iteration, state)
        point.effort = iteration + self.extra
        return point


def _sizes(split: Split) -> tuple:
    return tuple((copy.is_loss, copy.index, copy.shape) for copy in split.copies)


def _own_state(start: Point | None, split: Split) -> dict | None:
    """The state of `start` where ADMM made it for terms of the same shapes, else None."""
    if start is None or start.state.get("solver") != "admm" or start.state.get("sizes") != _sizes(split):
        return None
    return start.state
