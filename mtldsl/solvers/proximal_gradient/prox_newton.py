"""Proximal Newton: a quadratic model of the losses, minimised by splitting, and steps along it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.normal_form.form import LossTerm, NormalForm
from mtldsl.solvers.design.design import SmoothLoss
from mtldsl.solvers.design.sufficient_statistics import bordered_gram, gram_product, quadratic_weights
from mtldsl.solvers.linear_systems.task_matrices import BlockLayout, places
from mtldsl.solvers.numerics import operator_splitting
from mtldsl.solvers.numerics.anderson import AndersonExtrapolation
from mtldsl.solvers.numerics.line_search import VALUE_ROUNDING_SHARE
from mtldsl.solvers.proximal_gradient.composite import GramPiece, ProximalPart
from mtldsl.solvers.solver import FLOPS_PER_CALL, MATRIX_SPEEDUP, Point, Watch


@dataclass(frozen=True)
class ProximalNewtonSettings:
    """Limits of models, and of the splitting that minimises them.

    balance_ratio    : of the balanced penalty to the present one, from which on it changes
    hessian_entries  : of all tasks' Hessians
    hessian_rows     : of one Hessian
    forcing_share    : of the residual at the point where the model was made, which is left of it
    model_iterations : of the splitting, on one model
    gradient_steps   : of proximal gradients that are worth a try before the first model
    step_shares      : of a step, tried in turn
    damping_share    : of the largest curvature, added to the diagonal: models stay bounded where losses are flat (Huber, far out)
    """

    balance_ratio: float = 4.0
    hessian_entries: int = 20_000_000
    hessian_rows: int = 800
    forcing_share: float = 0.03
    model_iterations: int = 500
    gradient_steps: int = 30
    step_shares: tuple[float, ...] = (1.0, 0.5, 0.25, 0.1, 0.01, 1e-3, 1e-4)
    damping_share: float = 1e-9


SETTINGS = ProximalNewtonSettings()


# --------------------------------------------------------------------------------------------------------------
# A quadratic that is block diagonal over tasks, plus h with a cheap prox: Douglas-Rachford splitting with small cached systems.


class QuadraticSplitting:
    """minimize over x (p, m)    1/2 sum_i x_i^T H_i x_i - <b, x> + h(x).

    hessian : (p, p) for all tasks, or (m, p, p).

    With the metric M = penalty * (mean curvature of each block), on s:
        w = prox_h(s),   x = (H + M)^{-1} (b + M (2 w - s)),   s <- s + relaxation (x - w),
    Anderson-accelerated. y = M (s - w) is a subgradient of h at w; the residual H w - b + y = -(H + M) (x - w).
    Iterates, multipliers and the penalty carry over from one quadratic to the next: Newton's method calls again and again.
    """

    def __init__(self, proximal: ProximalPart, w, y, memory: int = 10):
        self.proximal, self.layout = proximal, proximal.layout
        self.w, self.y, self.memory = w, y, memory
        self.penalty = 0.1
        self.iterations = 0

    def set_quadratic(self, hessian, b) -> None:
        self.hessian, self.b = hessian, b
        diagonal = np.diagonal(hessian, axis1=-2, axis2=-1)
        diagonal = diagonal if diagonal.ndim == 1 else diagonal.mean(axis=0)
        self.metric = np.empty((len(b), 1))
        self.scales, first = {}, 0
        for name, (rows, _) in self.layout.shapes.items():
            mean = float(diagonal[first : first + rows].mean())
            self.scales[name] = mean if mean > 0 else 1.0
            self.metric[first : first + rows] = self.scales[name]
            first += rows
        self._factorize()

    def _factorize(self) -> None:
        system = self.hessian + np.diag(self.penalty * self.metric[:, 0])
        self.inverse = np.linalg.inv(system)

    def prox(self, s) -> np.ndarray:
        steps = {name: 1.0 / (self.penalty * scale) for name, scale in self.scales.items()}
        return self.proximal.prox(s.ravel(), steps).reshape(s.shape)

    def run(self, done: Callable[[np.ndarray, np.ndarray, np.ndarray], bool], max_iter: int) -> None:
        """Iterate until done(w, y, residual), the residual being an array like w."""
        s = self.w + self.y / (self.penalty * self.metric)
        anderson = AndersonExtrapolation(self.memory)
        balance_at, interval = 5, 5
        w_before = None
        for iteration in range(1, max_iter + 1):
            M = self.penalty * self.metric
            w = self.prox(s)
            x = gram_product(self.inverse, self.b + M * (2.0 * w - s))
            difference = x - w
            self.w, self.y = w, M * (s - w)
            self.iterations += 1
            # the first images only say how far the guess was
            if iteration > 1 and done(w, self.y, -gram_product(self.hessian, difference) - M * difference):
                return
            if iteration >= balance_at and w_before is not None:
                widest = operator_splitting.SETTINGS.penalty_range_factor
                penalty = np.clip(self.penalty * self._factor(x, w, w_before), 1.0 / widest, widest)
                balance_at, interval = iteration + interval, int(1.5 * interval)
                if not 1.0 / SETTINGS.balance_ratio < penalty / self.penalty < SETTINGS.balance_ratio:
                    self.penalty = float(penalty)
                    self._factorize()
                    anderson.reset()
                    s, w_before = w + self.y / (self.penalty * self.metric), None
                    continue
            w_before = w
            image = s + operator_splitting.SETTINGS.relaxation_factor * difference
            root = np.sqrt(M)
            s = anderson.step(s.ravel(), image.ravel(), np.broadcast_to(root, s.shape).ravel()).reshape(
                s.shape
            )

    def _factor(self, x, w, w_before) -> float:
        """Residual balancing: relative disagreement of the copies against relative movement of the multipliers."""
        root = np.sqrt(self.metric)
        size = max(np.linalg.norm(root * x), np.linalg.norm(root * w))
        pull = np.linalg.norm(self.y / root) / self.penalty
        apart, moved = np.linalg.norm(root * (x - w)), np.linalg.norm(root * (w - w_before))
        if min(size, pull, apart, moved) <= 0:
            return 1.0
        return float(np.clip(np.sqrt(apart / size / (moved / pull)), 0.1, 10.0))


# --------------------------------------------------------------------------------------------------------------
# Proximal Newton: the losses' second-order model, minimised together with h by splitting; exact at once for quadratic losses.


def unsupported_reason(form: NormalForm, moved: list[int]) -> str | None:
    """None where the Hessian is block diagonal over tasks and small enough, else the reason."""
    columns = {block.shape[1] for block in form.blocks}
    rows = sum(block.shape[0] for block in form.blocks)
    if len(columns) != 1:
        return "blocks have different numbers of columns"
    if moved:
        return "a function other than the losses belongs to the smooth part"
    for loss in form.losses:
        if not loss.atom.separable:
            return f"{loss.typed} is not separable"
        if any(entry.left is not None or entry.right is not None for entry in loss.map.entries):
            return f"{loss.typed} is a loss of products of weights with matrices"
        if loss.map.shape[1] not in columns:
            return f"{loss.typed} has another number of tasks"
    if rows > SETTINGS.hessian_rows or systems(form) * rows**2 > SETTINGS.hessian_entries:
        return "its Hessian is too large"
    return None


def systems(form: NormalForm) -> int:
    """Return how many different Hessians the tasks have."""
    one = all(
        loss.atom.quadratic is not None and loss.is_shared_complete and loss.uniform_scale is not None
        for loss in form.losses
    )
    return 1 if one else form.blocks[0].shape[1]


def gradient_steps_first(form: NormalForm) -> int:
    """Return how many proximal gradient steps cost as much as two Newton steps: on problems that these solve, the Hessians are saved; on
    others little is lost."""
    p, (_, m) = sum(block.shape[0] for block in form.blocks), form.blocks[0].shape
    samples = sum(loss.tasks.n_samples for loss in form.losses)
    newton = 2.0 * systems(form) * p**3 + sum(
        samples * p * p for loss in form.losses if loss.atom.quadratic is None
    )
    gradient = 4.0 * (m * p * p if all(GramPiece.pays(loss) for loss in form.losses) else samples * p)
    steps = int(2.0 * newton / gradient)
    if all(loss.atom.quadratic is not None for loss in form.losses):
        return steps if steps >= SETTINGS.gradient_steps else 0
    # Newton's method is at its best near the solution, and starts its steps from a model that many gradients would pay for
    return max(2 * steps, SETTINGS.gradient_steps)


class ProximalNewton:
    """From a point x on: minimise the model roughly, go there as far as the objective falls, repeat."""

    def __init__(
        self, form: NormalForm, proximal: ProximalPart, x, y=None, iteration: int = 0, work: float = 0.0
    ):
        self.form, self.proximal, self.layout = form, proximal, BlockLayout(form)
        self.columns = form.blocks[0].shape[1]
        w = x.reshape(-1, self.columns)
        self.splitting = QuadraticSplitting(
            proximal, w, np.zeros_like(w) if y is None else y.reshape(w.shape)
        )
        self.quadratic = all(loss.atom.quadratic is not None for loss in form.losses)
        self.iteration, self.work = iteration, work  # in flops

    # ------------------------------------------------------------------------------------------ quadratics

    def run(self, max_iter: int, watch: Watch) -> Point:
        return self._run_quadratic(max_iter, watch) if self.quadratic else self._run_newton(max_iter, watch)

    def _run_quadratic(self, max_iter: int, watch: Watch) -> Point:
        """The model is the problem: one run of the splitting, watched on the way."""
        zero = np.zeros(self.layout.size)
        predictions = [loss.predictions(self.layout.blocks(zero)) for loss in self.form.losses]
        b = -self._gradient([loss.gradient(z) for loss, z in zip(self.form.losses, predictions, strict=True)])
        splitting = self.splitting
        splitting.set_quadratic(self._hessian(predictions), b)
        last: dict[str, Any] = {"iteration": 0, "residual": math.inf, "point": None}

        def done(w, y, residual) -> bool:
            norm, iteration = float(np.linalg.norm(residual)), self.iteration + splitting.iterations
            since = iteration - last["iteration"]
            due = (since >= 10 and norm < 0.1 * last["residual"]) or since >= 20 + 0.3 * last["iteration"]
            if not (due or splitting.iterations >= max_iter or watch.expired):
                return False
            last.update(iteration=iteration, residual=norm, point=self._point(w, y, iteration))
            return watch(last["point"]) or watch.expired

        splitting.run(done, max_iter)
        self.iteration += splitting.iterations
        return last["point"] or self._point(splitting.w, splitting.y, self.iteration)

    # -------------------------------------------------------------------------------------- Newton's method

    def _run_newton(self, max_iter: int, watch: Watch) -> Point:
        losses, splitting = self.form.losses, self.splitting
        x = splitting.w
        predictions = self._predictions(x)
        objective = self._objective(x, predictions)
        gradient = self._gradient([loss.gradient(z) for loss, z in zip(losses, predictions, strict=True)])
        residual, damping = float(np.linalg.norm(gradient + splitting.y)), 0.0
        looked, unit = residual, self._largest_curvature()
        while True:
            self.iteration += 1
            hessian = self._hessian(predictions)
            unit = max(unit, float(np.mean(np.diagonal(hessian, axis1=-2, axis2=-1))))
            hessian = hessian + max(damping, SETTINGS.damping_share) * unit * np.eye(len(x))
            splitting.w = x
            splitting.set_quadratic(hessian, gram_product(hessian, x) - gradient)
            goal = SETTINGS.forcing_share * residual
            splitting.run(
                lambda w, y, r, goal=goal: watch.expired or float(np.linalg.norm(r)) <= goal,
                SETTINGS.model_iterations,
            )
            step = splitting.w - x
            change = [new - old for new, old in zip(self._predictions(splitting.w), predictions, strict=True)]
            fraction = self._fraction(x, step, predictions, change, objective)
            if fraction == 1.0:
                damping *= 0.25
            else:  # the shorter the step, the less the model was worth
                damping = max(4.0 * damping, 1e-3) if fraction > 0.01 else max(100.0 * damping, 1e-2)
            x = x + fraction * step if fraction < 1.0 else splitting.w
            predictions = [z + fraction * d for z, d in zip(predictions, change, strict=True)]
            objective = self._objective(x, predictions)
            slopes = [loss.gradient(z) for loss, z in zip(losses, predictions, strict=True)]
            gradient = self._gradient(slopes)
            residual = float(np.linalg.norm(gradient + splitting.y))
            last = self.iteration >= max_iter or watch.expired
            if last or residual <= 0.03 * looked or self.iteration % 5 == 0:
                looked = residual
                point = self._point(x, splitting.y, self.iteration, slopes)
                if watch(point) or last:
                    return point

    def _fraction(self, x, step, predictions, change, objective) -> float:
        """The first of some fractions of the step at which the objective does not rise (but for rounding), 0 where none is."""
        allowed = objective + VALUE_ROUNDING_SHARE * abs(objective)
        for fraction in SETTINGS.step_shares:
            trial = [z + fraction * d for z, d in zip(predictions, change, strict=True)]
            if self._objective(x + fraction * step, trial) <= allowed:
                return fraction
        return 0.0

    def _largest_curvature(self) -> float:
        """The mean over the unknowns of the largest second derivative that the losses can have; 0 where there is no bound."""
        total = 0.0
        for loss in self.form.losses:
            if np.isfinite(loss.atom.curvature):
                weight = 1.0 if loss.scale is None else float(np.max(loss.scale))
                total += loss.atom.curvature * weight * float(np.square(loss.column_lengths).sum())
        return total / self.splitting.w.size

    # --------------------------------------------------------------------------------------------- pieces

    def _predictions(self, x) -> list[np.ndarray]:
        blocks = self.layout.blocks(np.ascontiguousarray(x).ravel())
        return [loss.predictions(blocks) for loss in self.form.losses]

    def _objective(self, x, predictions) -> float:
        losses = sum(loss.value(z) for loss, z in zip(self.form.losses, predictions, strict=True))
        return losses + self.proximal.value(self.layout.blocks(np.ascontiguousarray(x).ravel()))

    def _gradient(self, slopes) -> np.ndarray:
        """(p, m)."""
        into = self.form.zeros()
        for loss, slope in zip(self.form.losses, slopes, strict=True):
            loss.add_adjoint(slope, into)
        return np.concatenate([into[name] for name in self.layout.shapes])

    def _hessian(self, predictions) -> np.ndarray:
        """(p, p) or (m, p, p), p all blocks' rows, one block after the other."""
        side = self.layout.size // self.columns
        samples = sum(loss.tasks.n_samples for loss in self.form.losses)
        matrices = 2.0 * side * side * (samples + side * systems(self.form))
        self.work += FLOPS_PER_CALL + matrices / MATRIX_SPEEDUP
        whole = np.zeros((side, side))  # all of it where a parameter of the losses is zero
        for loss, z in zip(self.form.losses, predictions, strict=True):
            weights = (
                quadratic_weights(loss)
                if loss.atom.quadratic is not None
                else SmoothLoss.of(loss).curvature(z)
            )
            whole = whole + _spread(bordered_gram(loss, weights), loss, self.layout.shapes)
        return whole

    def _point(self, x, y, iteration: int, slopes=None) -> Point:
        x = np.ascontiguousarray(x)
        blocks = {name: block.copy() for name, block in self.layout.blocks(x.ravel()).items()}
        splitting = self.splitting
        steps = {name: 1.0 / (splitting.penalty * scale) for name, scale in splitting.scales.items()}
        s = splitting.w + y / (splitting.penalty * splitting.metric)
        duals = self.proximal.multipliers(s.ravel(), steps, blocks)
        slopes = slopes or [loss.gradient(loss.predictions(blocks)) for loss in self.form.losses]
        inner = 2.0 * splitting.iterations * self.layout.size * (self.layout.size // self.columns)
        return Point(blocks, slopes, duals, iteration, work=self.work + inner)


def _spread(gram, loss: LossTerm, shapes) -> np.ndarray:
    """From the Hessian in (X w, intercept) of a loss to that in all blocks: blocks of which w is the sum share it."""
    d = loss.map.shape[0]
    entries = [(entry.block, entry.coefficient, slice(0, d)) for entry in loss.map.entries]
    entries += [(name, 1.0, slice(d, d + 1)) for name in loss.intercepts]
    at = places({name: rows for name, (rows, _) in shapes.items()})
    p = sum(rows for rows, _ in shapes.values())
    if len(entries) == 1 and len(shapes) == 1 and entries[0][1] == 1.0:
        return gram
    hessian = np.zeros((*gram.shape[:-2], p, p))
    for first, c, rows in entries:
        for second, e, columns in entries:
            hessian[..., at[first], at[second]] += c * e * gram[..., rows, columns]
    return hessian
