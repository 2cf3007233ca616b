"""Proximal gradient methods, for smooth losses and functions whose sum has an exact proximal step."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mtldsl.normal_form.form import NormalForm
from mtldsl.solvers.coordinate_descent import coordinate_descent, group_newton
from mtldsl.solvers.coordinate_descent import working_set as row_selection
from mtldsl.solvers.linear_systems import ridge_newton
from mtldsl.solvers.proximal_gradient import prox_newton as proximal_newton
from mtldsl.solvers.proximal_gradient import rotated_squares
from mtldsl.solvers.proximal_gradient.composite import (
    ProximalPart,
    SmoothPart,
    block_weights,
    partition,
)
from mtldsl.solvers.proximal_gradient.prox_newton import ProximalNewton
from mtldsl.solvers.route_table import ModelFacts
from mtldsl.solvers.solver import Method, MethodSolver, Point, Watch


@dataclass(frozen=True)
class GradientSettings:
    """Limits of steps and of the curvature that they follow.

    curvature_decay_factor  : of the curvature estimate, every iteration: steps grow where the function is flatter
    curvature_growth_factor : of the estimate where it is too small, at least
    curvature_min_ratio     : of the estimate to the curvature at the start: a function that is flat far out has none
    """

    curvature_decay_factor: float = 0.97
    curvature_growth_factor: float = 1.5
    curvature_min_ratio: float = 1e-12


SETTINGS = GradientSettings()


# --------------------------------------------------------------------------------------------------------------
# Accelerated proximal gradient with restarts and steps that follow the local curvature.


class AcceleratedGradient:
    """x = prox(y - grad f(y) / L),  y = x + momentum (x - x_before).

    L rises until <grad f(x) - grad f(y), x - y> <= L ||x - y||^2 and relaxes slowly otherwise; the momentum restarts
    where it points uphill. Blocks have steps of their own: the norm weighs each by its own curvature.
    Sources: Beck and Teboulle, "A fast iterative shrinkage-thresholding algorithm", SIAM J. Imaging Sci. 2 (2009);
    O'Donoghue and Candes, "Adaptive restart for accelerated gradient schemes", Found. Comput. Math. 15 (2015).
    """

    def __init__(self, smooth: SmoothPart, proximal: ProximalPart, x):
        self.smooth, self.proximal, self.layout = smooth, proximal, smooth.layout
        self.weights = block_weights(smooth, x)
        self.metric = np.empty(self.layout.size)
        for name, at in self.layout.slices.items():
            self.metric[at] = self.weights[name]
        self.L, self.iteration = 1.0, 0
        self.x, self.images = x, smooth.images(x)

    def _steps(self) -> dict[str, float]:
        """Steps 1 / (L weight) of the blocks."""
        return {name: 1.0 / (self.L * weight) for name, weight in self.weights.items()}

    def run(self, max_iter: int, watch: Watch) -> tuple[Point, bool]:
        """(last point, whether watch said stop) after at most max_iter iterations."""
        smooth, momentum = self.smooth, 1.0
        y, y_images = self.x, self.images
        last_look, look_residual = self.iteration, math.inf
        end = self.iteration + max_iter
        while True:
            self.iteration += 1
            slopes = smooth.slopes(y_images)
            gradient = smooth.gradient(slopes) / self.metric
            x, images, new_slopes, before_prox = self._step(y, y_images, slopes, gradient)
            change = x - self.x
            residual = self.L * math.sqrt(float(np.vdot(self.metric * (x - y), x - y)))
            since = self.iteration - last_look
            due = since >= 10 and (residual < 0.3 * look_residual or since >= 10 + 0.5 * last_look)
            if due or self.iteration >= end or watch.expired:
                last_look, look_residual = self.iteration, residual
                point = self._point(x, images, before_prox)
                stop = watch(point)
                if stop or self.iteration >= end or watch.expired:
                    self.x, self.images = x, images
                    return point, stop
            if float(np.vdot(self.metric * (y - x), change)) > 0:
                momentum = 1.0
            following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum))
            beta = (momentum - 1.0) / following
            y = x + beta * change
            y_images = [new + beta * (new - old) for new, old in zip(images, self.images, strict=True)]
            self.x, self.images, momentum = x, images, following
            self.L = max(SETTINGS.curvature_decay_factor * self.L, SETTINGS.curvature_min_ratio)

    def _step(self, y, y_images, slopes, gradient):
        while True:
            before_prox = y - gradient / self.L
            x = self.proximal.prox(before_prox, self._steps())
            images = self.smooth.images(x)
            new_slopes = self.smooth.slopes(images)
            d = x - y
            length = float(np.vdot(self.metric * d, d))
            curved = self.smooth.secant(d, y_images, slopes, images, new_slopes)
            # where x and y agree to rounding, the quotient says nothing
            if curved <= self.L * length * (1.0 + 1e-10) or length <= 1e-24 * float(
                np.vdot(self.metric * x, x)
            ):
                return x, images, new_slopes, before_prox
            needed = curved / length
            self.L = (
                max(SETTINGS.curvature_growth_factor * self.L, min(needed, 10.0 * self.L))
                if math.isfinite(needed)
                else 10.0 * self.L
            )

    def _point(self, x, images, before_prox) -> Point:
        blocks = {name: block.copy() for name, block in self.layout.blocks(x).items()}
        duals = self.proximal.multipliers(before_prox, self._steps(), blocks)
        return Point(blocks, self.smooth.loss_duals(x, images), duals, self.iteration)


def _selection_refusal(form: NormalForm) -> str | None:
    if coordinate_descent.unsupported_reason(form) is None:
        return "a model of one smooth loss has Newton steps on its rows."
    return row_selection.selection_refusal(form)


def _solve_whole(form: NormalForm, max_iter: int, start: Point | None, watch: Watch) -> Point:
    """First order, second order, or the first until the second is known to be worth its price."""
    parts = partition(form)
    assert not isinstance(parts, str)  # `refuses` was asked
    proximal = ProximalPart(form, parts)
    layout = proximal.layout
    x = np.zeros(layout.size) if start is None else layout.flat(start.blocks)
    x = proximal.prox(x, dict.fromkeys(layout.shapes, 0.0))  # where there are constraints, onto them
    second_order = proximal_newton.unsupported_reason(form, parts.moved) is None
    steps = proximal_newton.gradient_steps_first(form) if second_order else max_iter
    done, duals = 0, None if start is None else start.function_duals
    if steps > 0:
        smooth = SmoothPart(form, [form.functions[k] for k in parts.moved])
        gradients = AcceleratedGradient(smooth, proximal, x)
        point, stopped = gradients.run(min(steps, max_iter), watch)
        if stopped or not second_order or point.iteration >= max_iter or watch.expired:
            return point
        x, done, duals = layout.flat(point.blocks), point.iteration, point.function_duals
    y = None if duals is None else proximal.flat_multipliers(duals)
    return ProximalNewton(form, proximal, x, y, done, done * SOLVER.flops(form)).run(max_iter, watch)


#: The general method comes last; where a special one gives up, it goes on.
METHODS = (
    Method(
        "rotated_squares",
        "squares on one X, in the coordinates of its singular vectors",
        rotated_squares.unsupported_reason,
        lambda form, *run: rotated_squares.SharedSquares(form).run(*run),
    ),
    Method(
        "row_newton",
        "Newton steps on a working set of rows",
        coordinate_descent.unsupported_reason,
        coordinate_descent.solve,
    ),
    Method(
        "group_newton",
        "Newton steps on a working set of groups of rows",
        group_newton.unsupported_reason,
        group_newton.solve,
    ),
    Method(
        "ridge_newton",
        "Newton's method beside quadratic penalties",
        ridge_newton.unsupported_reason,
        lambda *run: (ridge_newton.solve(*run), True),
    ),
    Method(
        "selected_rows",
        "the general method on growing sets of rows",
        _selection_refusal,
        lambda form, tol, *run: (row_selection.RowSelection(form, _solve_whole).run(*run), True),
    ),
    Method(
        "gradient",
        "accelerated steps, and proximal Newton steps where Hessians are small",
        lambda form: None,
        lambda form, tol, *run: (_solve_whole(form, *run), True),
    ),
)


class ProximalGradient(MethodSolver):
    """minimize f(x) + h(x): f smooth (the losses, and smooth functions of linear maps), h with an exact prox on every block.

    First order (`AcceleratedGradient`) where a step is cheap against a Hessian, second order (`ProximalNewton`) where the tasks'
    Hessians are small: a few of them replace thousands of steps on collinear features. `METHODS` lists what goes before them on special
    models.
    """

    name = "proximal_gradient"
    summary = "accelerated proximal gradient: smooth losses, functions whose sum has an exact proximal step"
    takes_spans = True
    below_guesses = True  # with a proof no point lies above another by more than the accuracy; without one they are looked at
    methods = METHODS

    def refuses(self, form: NormalForm) -> str | None:
        for loss in form.losses:
            if not loss.atom.smooth:
                return f"{loss.typed} is not smooth."
        parts = partition(form)
        return parts if isinstance(parts, str) else None

    def flops(self, form: NormalForm) -> float:
        """Those of a gradient, and of a singular value decomposition where the penalty is one of the spectrum."""
        facts = ModelFacts.of(form)
        by_spectrum = facts.penalty in ("spectrum", "mixed")
        prox = 10.0 * facts.features * facts.tasks * min(facts.features, facts.tasks) if by_spectrum else 0.0
        return super().flops(form) + prox

    def solves_only(self, form: NormalForm) -> str | None:
        return None if all(loss.atom.smooth for loss in form.losses) else "models with smooth losses"


SOLVER = ProximalGradient()
