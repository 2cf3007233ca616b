"""Proximal gradient by passes over rows elsewhere: quadratic majorizers of the losses, extrapolated."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mtldsl.atoms.losses.regression import SquaredLoss
from mtldsl.distributed.distributed_solver import CheckpointFolder, DistributedRun, DistributedSolver
from mtldsl.distributed.distributed_term import (
    DistributedDual,
    DistributedTerm,
    intercepts_beside,
    step_between,
)
from mtldsl.normal_form.form import Blocks, LossTerm, NormalForm
from mtldsl.normal_form.reductions.block_reductions import has_one_maximum_a_task
from mtldsl.normal_form.terms.row_statistics import moments_of
from mtldsl.solvers.solver import Point, Watch

# --------------------------------------------------------------------------------------------------------------
# Squares that touch a smooth loss of rows that are elsewhere, from above, as a loss of a few rows here.


class TaskSquares:
    """a_i/2 ||X_i (w - y) + (b - b_y)||^2 + <grad, (w, b) - (y, b_y)> of every task, with b at its best for w: a_i/2 ||R_i w - target_i||^2 + constant."""

    def __init__(self, loss: LossTerm):
        assert isinstance(loss, DistributedTerm)
        self.loss, self.moments = loss, moments_of(loss.tasks)
        self.steepest = loss.atom.curvature * loss.coefficients  # (m,)
        m = loss.tasks.n_tasks
        self.frame = self.moments.frame(bool(loss.intercepts), loss.tasks)
        self.totals = np.array([self.moments.gram(i)[-1, -1] for i in range(m)])
        self.centres = np.stack([self.moments.centre(i) for i in range(m)], axis=1)  # (d, m)

    def at(self, y: Blocks, adjoint: np.ndarray, sums: np.ndarray, steep: np.ndarray) -> LossTerm:
        """steep (m,) are the a_i; adjoint (d, m) and sums (m,) the gradient by weights and by intercepts."""
        if self.loss.intercepts:
            adjoint = adjoint - self.centres * sums
        tasks = self.frame.with_gradient(self.loss.map.forward(y), adjoint / steep)
        return LossTerm(SquaredLoss(), steep, tasks, self.loss.map, (), self.loss.typed)

    def curvature(self, y: Blocks, u: DistributedDual, old: Blocks, old_u: DistributedDual) -> float:
        """The most over the tasks of the curvature seen between two points, relative to the steepest."""
        D, b = step_between(self.loss, y, old)
        rise = np.einsum("dm,dm->m", D, u.adjoint - old_u.adjoint) + b * (
            self.loss.sums(u) - self.loss.sums(old_u)
        )
        most = self.steepest * self.moments.squares_along(D, b)
        shares = np.divide(rise, most, out=np.zeros_like(rise), where=most > 0.0)
        return float(shares.max(initial=0.0))


# --------------------------------------------------------------------------------------------------------------
# Majorization: a smooth loss lies below squares that touch it, and these are solved here; one pass over the data an iteration.


@dataclass(frozen=True)
class DistributedMajorizationSettings:
    """Numbers of the steps.

    inner_error_share   : of the square of the relative gap, that inner solves may miss their optimum by
    refinement_factor   : of that error where the objective falls by less than it allows for
    curvature_factor    : of the next squares over the curvature just seen
    min_curvature_share : of the steepest squares, that they are at least
    flattening_factor   : of how fast they may flatten
    """

    inner_error_share: float = 0.05
    refinement_factor: float = 0.1
    curvature_factor: float = 1.3
    min_curvature_share: float = 1e-3
    flattening_factor: float = 0.5


SETTINGS = DistributedMajorizationSettings()

#: Names of the numbers that a checkpoint keeps of a run.
_SAVED_NUMBERS = ("theta", "missing", "t", "best")


class Majorization(DistributedSolver):
    """minimize f(x) + h(x): f losses whose gradients change by at most c a unit of prediction, h any functions and constraints.

    With H = c X^T S X of every task (one pass), f(x) <= f(y) + <grad f(y), x - y> + theta/2 ||x - y||_H^2 for theta = 1, and where the curvature
    along the steps is smaller, for theta below 1 that follows it. The right side + h is squares of at most d + 1 rows a task, which
    `run_routes` solves with whatever solver is fastest for them; Nesterov's momentum goes from one to the next, and starts again where the
    objective rises. Every iteration is one pass: value, gradient, and the multipliers of the bound.

    Sources: Boehning and Lindsay, "Monotonicity of quadratic-approximation algorithms", 1988 (the fixed bound on the Hessian); Lee, Sun and Saunders,
    "Proximal Newton-type methods", 2014; O'Donoghue and Candes, "Adaptive restart for accelerated gradient schemes", 2015.
    """

    name = "majorization"
    summary = "smooth losses of rows that are elsewhere: one pass over them an iteration, and squares that are solved here"
    usual = 25, 60

    def refuses_elsewhere(self, form: NormalForm) -> str | None:
        for loss in form.losses:
            if not loss.atom.smooth or not math.isfinite(loss.atom.curvature):
                return f"{loss.typed} has no bound on its curvature."
        return form.entangled_intercepts and f"{form.entangled_intercepts}."

    def is_nearest(self, form: NormalForm) -> bool:
        return not any(map(has_one_maximum_a_task, form.losses))


class _DistributedMajorizationRun(DistributedRun):
    """y : where the next squares touch; t : of Nesterov's momentum; best : the lowest objective since it began; before : (y, multipliers) of
    the pass before."""

    solver = Majorization.name

    def __init__(self, form: NormalForm, start: Point | None, file: CheckpointFolder | None):
        super().__init__(form, start, file)
        self.squares = [TaskSquares(loss) for loss in form.losses]
        self.theta, self.missing, self.t, self.best = 1.0, math.inf, 1.0, math.inf
        self.y = self.x
        self.before: tuple[Blocks, list] | None = None
        if self.left is not None:
            self.y = {name: self.left["blocks"][name] for name in form.shapes}
            for name in _SAVED_NUMBERS:
                setattr(self, name, self.left["numbers"][name])

    def solve(self, max_iter: int, watch: Watch) -> Point:
        for iteration in range(1, max_iter + 1):
            y = self.y
            duals = [loss.dual_at(y) for loss in self.form.losses]
            point = Point(y, duals, self.inner.duals, iteration)
            stopped = watch(point) or iteration == max_iter
            self.keep({name: getattr(self, name) for name in _SAVED_NUMBERS}, dict(y), stopped)
            if stopped:
                return point
            objective = self.form.value(y)
            if self.before is not None:
                self._follow(y, duals, *self.before)
            if objective > self.best and y is not self.x:
                # too far: back to the last minimizer, without momentum
                self.y, self.t, self.before = self.x, 1.0, None
                self.theta = min(2.0 * self.theta, 1.0)
                self.best, self.missing = math.inf, SETTINGS.refinement_factor * self.missing
                continue
            # what is gained could be what inner solves miss
            if self.best - objective < self.missing / SETTINGS.inner_error_share:
                self.missing *= SETTINGS.refinement_factor
            self.best, self.before = min(self.best, objective), (y, duals)
            new = self._minimizer(y, duals, objective)
            next_t = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * self.t * self.t))
            ahead = (self.t - 1.0) / next_t if not self.form.constraints else 0.0
            self.y = new if ahead == 0.0 else {n: new[n] + ahead * (new[n] - self.x[n]) for n in new}
            self.x, self.t = new, next_t
        return point

    def _follow(self, y: Blocks, duals, old: Blocks, old_duals) -> None:
        """theta from the curvature between two points, the most over the tasks of what each loss has seen."""
        seen = max(
            squares.curvature(y, u, old, old_u)
            for squares, u, old_u in zip(self.squares, duals, old_duals, strict=True)
        )
        self.theta = min(
            max(
                SETTINGS.curvature_factor * seen,
                SETTINGS.flattening_factor * self.theta,
                SETTINGS.min_curvature_share,
            ),
            1.0,
        )

    def _minimizer(self, y: Blocks, duals, objective: float) -> Blocks:
        terms = [
            squares.at(y, u.adjoint, loss.sums(u), self.theta * squares.steepest)
            for loss, squares, u in zip(self.form.losses, self.squares, duals, strict=True)
        ]
        # multipliers are off by the root of what the objective is off by
        error = SETTINGS.inner_error_share * self.inner_error(y, duals, objective)
        self.missing = min(error, self.missing)
        found = self.inner.solve(terms, y, self.missing)
        for loss, squares, u in zip(self.form.losses, self.squares, duals, strict=True):
            totals = self.theta * squares.steepest * squares.totals
            found |= intercepts_beside(loss, found, y, loss.sums(u), squares.centres, totals)
        return found


SOLVER = Majorization(_DistributedMajorizationRun)
