"""ADMM's loop: one state vector s = copies + scaled multipliers, a fixed-point map, and what keeps it fast."""

from __future__ import annotations

import numpy as np

from mtldsl.compile.normal_form import NormalForm
from mtldsl.solvers.admm_penalty import Balance, first_penalties
from mtldsl.solvers.admm_points import PointMaker
from mtldsl.solvers.admm_split import Split
from mtldsl.solvers.admm_x_update import choose_x_update
from mtldsl.solvers.anderson import Anderson
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
        self.balance = Balance(split)
        state = _own_state(start, split)
        if state is not None:
            self.penalties, self.s = state["penalties"].copy(), state["s"].copy()
            self._apply_penalties()
            return
        self.penalties = first_penalties(split, self.update.mean_quadratic, self.update.diagonals)
        self._apply_penalties()
        w, multipliers = self._first_guess(start)
        self.s = w + multipliers / self.metric

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
        last_watch, watched_residual = 0, np.inf
        for iteration in range(1, max_iter + 1):
            w = self.split.prox(self.s, self.metric)
            rhs = {name: array.copy() for name, array in self.target.items()}
            self.split.add_adjoint(self.metric * (2.0 * w - self.s - self.constant), rhs)
            x = self.solve(rhs)
            image = self.split.image(x)
            step = image - w
            residual = np.linalg.norm(self.root * step) / max(np.linalg.norm(self.root * self.s), 1e-300)
            since = iteration - last_watch
            due = iteration == 1 or (since >= 5 and residual < 0.3 * watched_residual) or since > 20 + 0.5 * last_watch
            if due or iteration == max_iter or self.split.size == 0 or watch.expired:
                last_watch, watched_residual = iteration, residual
                point = self._point(x, w, iteration)
                if watch(point) or self.split.size == 0:
                    return point
            image_of_s = self.s + self.relaxation * step
            if self.balance.is_due(iteration) and self._rebalance(iteration, w, image, image_of_s):
                continue
            self.s = image_of_s if self.anderson is None else self.anderson.step(self.s, image_of_s, self.root)
        return point

    def _rebalance(self, iteration, w, image, image_of_s) -> bool:
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

    def _point(self, x, w, iteration) -> Point:
        multipliers = self.metric * (self.s - w)
        state = {"solver": "admm", "s": self.s, "penalties": self.penalties, "sizes": _sizes(self.split)}
        return self.points.point(x, w, multipliers, iteration, state)


def _sizes(split: Split) -> tuple:
    return tuple((copy.is_loss, copy.index, copy.shape) for copy in split.copies)


def _own_state(start: Point | None, split: Split) -> dict | None:
    """The state of `start` where ADMM made it for terms of the same shapes, else None."""
    if start is None or start.state.get("solver") != "admm" or start.state.get("sizes") != _sizes(split):
        return None
    return start.state
