"""ADMM's loop: one state vector s = copies + scaled multipliers, a fixed-point map, and what keeps it fast."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.normal_form.form import Blocks, NormalForm
from mtldsl.solvers.facts import ModelFacts
from mtldsl.solvers.linear_systems.regularized_system import (
    ConjugateGradientUpdate,
    choose_x_update,
    conjugate_gradients,
)
from mtldsl.solvers.linear_systems.task_matrices import Copy, Part, Split, curvature_kind, find_curvatures
from mtldsl.solvers.numerics.anderson import Anderson
from mtldsl.solvers.numerics.operator_splitting import Balance, dykstra, first_penalties
from mtldsl.solvers.solver import FLOPS_PER_CALL, Point, Watch

__all__ = [
    "SETTINGS",
    "Iteration",
    "MethodOfMultipliers",
    "NewtonPhase",
    "NewtonPhaseSettings",
    "PointMaker",
    "Standing",
    "flops_of_iteration",
]


@dataclass(frozen=True)
class NewtonPhaseSettings:
    """Prices and limits of the method of multipliers.

    check_iterations      : of ADMM before its pace is judged
    typical_newton_steps  : that a well-begun run takes
    step_iterations       : of ADMM that a Newton step costs
    cg_step_iterations    : the same with conjugate gradients
    look_flops            : of a Newton step, from which on each one is worth a look at the certificate
    raise_factor          : of penalties where disagreement fell too slowly
    slow_ratio            : of a disagreement to the one before, above which it fell too slowly
    fine_tol_share        : of tol: a disagreement below it needs no higher penalty
    lower_factor          : of penalties after `hard_newton_steps`
    hard_newton_steps     : of an outer step whose penalties were too high
    penalty_max_factor    : by which penalties rise at most
    cg_penalty_max_factor : the same with conjugate gradients
    newton_steps          : of one outer step
    patience_steps        : outer steps in which disagreement must fall by half
    """

    check_iterations: int = 100
    typical_newton_steps: int = 30
    step_iterations: float = 10.0
    cg_step_iterations: float = 100.0
    look_flops: float = 2e8
    raise_factor: float = 3.0
    slow_ratio: float = 0.3
    fine_tol_share: float = 0.01
    lower_factor: float = 0.5
    hard_newton_steps: int = 30
    penalty_max_factor: float = 1e7
    cg_penalty_max_factor: float = 10.0
    newton_steps: int = 50
    patience_steps: int = 8


SETTINGS = NewtonPhaseSettings()


# --------------------------------------------------------------------------------------------------------------
# The method of multipliers with semismooth Newton steps: what ADMM hands over to where its own progress is slow.
#
# With copies w = K x + k, penalties M and scaled multipliers u, one outer step minimises the augmented Lagrangian over x and w,
#
#     phi(x) = q(x) + sum_j env_j(K_j x + k_j + u_j),    env_j the Moreau envelope of h_j in the metric M,
#
# which is convex and differentiable: grad phi = grad q + K^T M (xi - prox(xi)) at xi = K x + k + u. Then u <- xi - prox(xi).
# Newton's matrix is Q + K^T M (I - D) K with D the derivative of the prox (see `admm_curvature`): parts of it go into the systems of
# the x-update; where a prox couples everything, as a singular-value threshold does, products go into conjugate gradients. Along a
# direction phi' costs one prox and no matrix product, so the line search is exact.
#
# Source: Li, Sun and Toh, "A highly efficient semismooth Newton augmented Lagrangian method for solving lasso problems", SIAM J.
# Optim. 28 (2018).


@dataclass
class Standing:
    """Standing of a run: x, K x + k, w = prox(xi) and the scaled multipliers u = xi - w."""

    x: Blocks
    image: np.ndarray
    w: np.ndarray
    u: np.ndarray
    point: Point | None = None  # what was last reported of it


class MethodOfMultipliers:
    """The steps for one split."""

    def __init__(self, split: Split, update, target: Blocks):
        self.split, self.update, self.target = split, update, target
        self.has_parts = [curvature_kind(copy) is not None for copy in split.copies]

    def newton_steps(
        self, at: Standing, penalties: np.ndarray, accuracy: float
    ) -> Iterator[tuple[Standing, bool]]:
        """Minimise phi, starting at at.x: before every step, where it stands, and whether that is near enough: whether the
        gradient is `accuracy` of the terms that cancel in it. Ends where no step leads downhill.
        """
        metric = self.split.metric(penalties)
        x, image, u = at.x, at.image, at.u
        hessian_x = self.split.quadratic_product(x)
        while True:
            xi = image + u
            w = self.split.prox(xi, metric)
            y = metric * (xi - w)
            gradient, size = self._gradient(hessian_x, y)
            relative = _norm(gradient) / size
            yield Standing(x, image, w, xi - w), relative <= accuracy
            direction = self._direction(gradient, xi, w, metric, penalties, relative)
            if direction is None or not _dot(gradient, direction) < 0.0:
                return
            change = self.split.linear_image(direction)
            hessian_d = self.split.quadratic_product(direction)
            t = self._line_search(gradient, direction, hessian_d, change, xi, y, metric)
            x = {name: x[name] + t * direction[name] for name in x}
            hessian_x = {name: hessian_x[name] + t * hessian_d[name] for name in x}
            image = image + t * change

    def _gradient(self, hessian_x: Blocks, y: np.ndarray) -> tuple[Blocks, float]:
        """(grad phi, the size of the largest of its terms)."""
        gradient = {name: hessian_x[name] - self.target[name] for name in hessian_x}
        size = max(_norm(gradient), np.finfo(float).tiny)
        for copy in self.split.copies:
            pull = self.split.form.zeros()
            self.split.add_adjoint(y, pull, [copy])
            size = max(size, _norm(pull))
            gradient = {name: gradient[name] + pull[name] for name in gradient}
        return gradient, size

    def _direction(self, gradient: Blocks, xi, w, metric, penalties, relative: float) -> Blocks | None:
        """-H^-1 gradient; a little damped, for H need not have full rank."""
        damping = min(1e-3, relative)
        curvatures = find_curvatures(self.split, xi, w, metric)
        exact = all(self.has_parts)
        weight = np.array([damping if has else 0.5 + damping for has in self.has_parts])
        parts = [Part() if part is None else part for part in curvatures.parts]
        solve = self.update.newton_solver(parts, weight * penalties)
        downhill = {name: -array for name, array in gradient.items()}
        if solve is None or exact:
            return solve and solve(downhill)
        return self._by_conjugate_gradients(downhill, curvatures, solve, penalties, damping, relative)

    def _by_conjugate_gradients(
        self, downhill, curvatures, precondition, penalties, damping, relative
    ) -> Blocks:
        damped = damping * self.split.metric(penalties)
        split = self.split

        def apply(x: Blocks) -> Blocks:
            product = split.quadratic_product(x)
            change = split.linear_image(x)
            curved = damped * change
            for copy, part in zip(split.copies, curvatures.parts, strict=True):
                own = change[copy.rows]
                curved[copy.rows] += (
                    curvatures.product(copy, change) if part is None else part.product(own, copy.shape)
                )
            split.add_adjoint(curved, product)
            return product

        zero = {name: np.zeros_like(array) for name, array in downhill.items()}
        return conjugate_gradients(apply, downhill, zero, precondition, max(1e-6, min(0.05, relative)), 60)

    def _line_search(self, gradient, direction, hessian_d, change, xi, y, metric) -> float:
        """A t where phi' has become small: phi' increases in t; 1 is good enough unless phi' has hardly changed there."""
        first = _dot(gradient, direction)
        linear = first - float(y @ change)  # of q alone
        curvature = _dot(hessian_d, direction)

        def slope(t: float) -> float:
            moved = xi + t * change
            return (
                linear + t * curvature + float((metric * (moved - self.split.prox(moved, metric))) @ change)
            )

        low, at_low, high, at_high = 0.0, first, 1.0, slope(1.0)
        while (
            at_high < 0.5 * first and high < 1e9
        ):  # still as steep: no curvature here, a longer step is free
            low, at_low, high = high, at_high, 4.0 * high
            at_high = slope(high)
        t = high
        for _ in range(30):
            if not at_high > 0.1 * abs(first):
                break
            t = low + (high - low) * np.clip(at_low / (at_low - at_high), 0.05, 0.95)
            value = slope(t)
            if abs(value) <= 0.1 * abs(first):
                break
            low, at_low, high, at_high = (t, value, high, at_high) if value < 0 else (low, at_low, t, value)
        return t


def _dot(a: Blocks, b: Blocks) -> float:
    return float(sum(np.vdot(a[name], b[name]) for name in a))


def _norm(x: Blocks) -> float:
    return float(np.sqrt(_dot(x, x)))


# --------------------------------------------------------------------------------------------------------------
# When ADMM hands over to the method of multipliers, how that raises its penalties, and when it hands back.


class NewtonPhase:
    """The method of multipliers for one run of ADMM."""

    def __init__(self, split: Split, update, target, tol: float):
        self.split, self.tol = split, tol
        self.residuals: list[float] = []  # the smallest so far, iteration by iteration
        self.check = np.inf
        if split.size and hasattr(update, "newton_solver"):
            self.method = MethodOfMultipliers(split, update, target)
            self.check = SETTINGS.check_iterations
            self.price = SETTINGS.typical_newton_steps * sum(_price(copy) for copy in split.copies)
            work = sum(loss.tasks.n_samples * loss.tasks.n_features**2 for loss in split.form.losses)
            self.is_large = work > SETTINGS.look_flops

    def is_due(self, residual: float) -> bool:
        """Tell whether ADMM, at its pace over the last half of its iterations, needs longer than Newton steps would."""
        self.residuals.append(min(residual, self.residuals[-1]) if self.residuals else residual)
        done = len(self.residuals)
        if done < self.check:
            return False
        self.check = 1.5 * done
        now = self.residuals[-1]
        if not 0.0 < now < np.inf:  # nothing is missing, or nothing is known
            return False
        gained = np.log(self.residuals[done // 2] / now)
        missing = np.log(max(now / (0.1 * self.tol), 1.0))
        return missing * (done / 2) > self.price * gained

    def run(self, at: Standing, penalties: np.ndarray, accuracy: float, iteration: int, report):
        """Outer steps from `at` until `report(standing, penalties, iteration)` says stop or progress ends.

        Returns (stopped, standing, penalties of its multipliers, iteration).
        """
        largest = penalties * np.where(
            self.method.has_parts, SETTINGS.penalty_max_factor, SETTINGS.cg_penalty_max_factor
        )
        smallest = penalties
        began, best, best_at, last = iteration, np.inf, 0, None
        for outer in range(10_000):
            for steps, (here, is_near) in enumerate(self.method.newton_steps(at, penalties, accuracy)):
                at, iteration = here, iteration + 1
                if is_near or steps == SETTINGS.newton_steps:
                    break
                if self.is_large and report(at, penalties, iteration):
                    return True, at, penalties, iteration
            if report(at, penalties, iteration):
                return True, at, penalties, iteration
            apart = self._disagreement(at)
            worst = float(apart.max())
            if worst < 0.5 * best:
                best, best_at = worst, outer
            if outer - best_at >= SETTINGS.patience_steps or (steps == 0 and outer > best_at + 2):
                break
            if last is not None:
                slow = (apart > SETTINGS.slow_ratio * last) & (apart > SETTINGS.fine_tol_share * self.tol)
                factor = (
                    SETTINGS.lower_factor
                    if steps >= SETTINGS.hard_newton_steps
                    else np.where(slow, SETTINGS.raise_factor, 1.0)
                )
                changed = np.clip(factor * penalties, smallest, largest)
                at.u = at.u * self.split.metric(penalties) / self.split.metric(changed)
                penalties = changed
            last = apart
            accuracy = max(min(accuracy, 0.2 * worst), 1e-14)
        self.check = len(self.residuals) + 2 * (iteration - began) + SETTINGS.check_iterations
        return False, at, penalties, iteration

    def _disagreement(self, at: Standing) -> np.ndarray:
        """||K x + k - w|| relative to the copies' size: losses together, functions together; one number a copy."""
        apart = np.zeros(len(self.split.copies))
        for kind in (True, False):
            rows = [copy.rows for copy in self.split.copies if copy.is_loss is kind]
            if not rows:
                continue
            difference = np.sqrt(sum(np.square(at.image[r] - at.w[r]).sum() for r in rows))
            size = np.sqrt(sum(max(np.square(at.image[r]).sum(), np.square(at.w[r]).sum()) for r in rows))
            for j, copy in enumerate(self.split.copies):
                if copy.is_loss is kind:
                    apart[j] = difference / max(size, np.finfo(float).tiny)
        return apart


def flops_of_iteration(form: NormalForm) -> float:
    """Flops of two products with the data, and of a solution of every task's system."""
    facts = ModelFacts.of(form)
    return FLOPS_PER_CALL + 2.0 * facts.product + 2.0 * facts.tasks * min(facts.samples, facts.features) ** 2


def _price(copy: Copy) -> float:
    """Return what the copy's curvature costs: a loss's Gram matrices, the differences of a prox, or conjugate gradients."""
    kind = curvature_kind(copy)
    if kind is None:
        return SETTINGS.cg_step_iterations
    if copy.is_loss:
        tasks = copy.term.tasks
        return SETTINGS.step_iterations + 0.25 * min(tasks.n_features, int(tasks.counts.max()))
    return {
        "entries": SETTINGS.step_iterations,
        "columns": SETTINGS.step_iterations + copy.shape[0],
        "rows": SETTINGS.step_iterations + copy.shape[1],
    }[kind]


# --------------------------------------------------------------------------------------------------------------
# From ADMM's iterates to a point worth certifying: the copy with the structure, and multipliers with the right signs.


class PointMaker:
    """Makes points of one split. On every block the candidates are x itself and the copies that equal the block.

    A copy has its term's structure exactly (zeros, low rank, W >= 0); where several sets bind one block, a few of Dykstra's
    rounds move a candidate into their intersection. The candidate with the smaller violation, then objective, is reported.
    """

    def __init__(self, split: Split, tol: float):
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
            self.extra = extra + (SETTINGS.step_iterations - 1.0) * (iteration - began)
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
        point.work = (iteration + self.extra) * flops_of_iteration(self.form)
        return point


def _sizes(split: Split) -> tuple:
    return tuple((copy.is_loss, copy.index, copy.shape) for copy in split.copies)


def _own_state(start: Point | None, split: Split) -> dict | None:
    """The state of `start` where ADMM made it for terms of the same shapes, else None."""
    if start is None or start.state.get("solver") != "admm" or start.state.get("sizes") != _sizes(split):
        return None
    return start.state
