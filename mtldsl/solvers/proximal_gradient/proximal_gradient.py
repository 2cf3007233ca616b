"""Proximal gradient methods, for smooth losses and functions whose sum has an exact proximal step."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mtldsl.normal_form.form import Blocks, FunctionTerm, LossTerm, NormalForm, single_block
from mtldsl.solvers.coordinate_descent import coordinate_descent, group_newton
from mtldsl.solvers.coordinate_descent import working_set as row_selection
from mtldsl.solvers.design.design import SmoothLoss
from mtldsl.solvers.linear_systems import ridge_newton
from mtldsl.solvers.numerics.anderson import AndersonExtrapolation
from mtldsl.solvers.numerics.line_search import VALUE_ROUNDING_SHARE
from mtldsl.solvers.proximal_gradient import prox_newton as proximal_newton
from mtldsl.solvers.proximal_gradient import rotated_squares
from mtldsl.solvers.proximal_gradient.composite import (
    DataPiece,
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
    memory_steps            : that an extrapolation draws on
    estimate_iterations     : from one estimate of the gap to the next
    review_iterations       : from one look at the curvature to the next
    flatter_ratio           : of curvature to estimate that asks for another one, which costs all that was remembered
    doubling_steps          : of the estimate in one iteration
    still_ratio             : of a step to the iterate, up to which it is taken whatever rounding says of its value
    """

    curvature_decay_factor: float = 0.97
    curvature_growth_factor: float = 1.5
    curvature_min_ratio: float = 1e-12
    memory_steps: int = 15
    estimate_iterations: int = 3
    review_iterations: int = 25
    flatter_ratio: float = 0.01
    doubling_steps: int = 60
    still_ratio: float = 1e-13


SETTINGS = GradientSettings()


class _BlockSteps:
    """Steps 1 / (L weight) of the blocks: the norm weighs each by its own curvature."""

    def __init__(self, smooth: SmoothPart, proximal: ProximalPart, x):
        self.smooth, self.proximal, self.layout = smooth, proximal, smooth.layout
        self.weights = block_weights(smooth, x)
        self.metric = np.empty(self.layout.size)
        for name, at in self.layout.slices.items():
            self.metric[at] = self.weights[name]
        self.L, self.iteration = 1.0, 0

    def _steps(self) -> dict[str, float]:
        return {name: 1.0 / (self.L * weight) for name, weight in self.weights.items()}


# --------------------------------------------------------------------------------------------------------------
# Accelerated proximal gradient with restarts and steps that follow the local curvature.


class AcceleratedGradient(_BlockSteps):
    """x = prox(y - grad f(y) / L),  y = x + momentum (x - x_before).

    L rises until <grad f(x) - grad f(y), x - y> <= L ||x - y||^2 and relaxes slowly otherwise; the momentum restarts
    where it points uphill. Blocks have steps of their own: the norm weighs each by its own curvature.
    Sources: Beck and Teboulle, "A fast iterative shrinkage-thresholding algorithm", SIAM J. Imaging Sci. 2 (2009);
    O'Donoghue and Candes, "Adaptive restart for accelerated gradient schemes", Found. Comput. Math. 15 (2015).
    """

    def __init__(self, smooth: SmoothPart, proximal: ProximalPart, x):
        super().__init__(smooth, proximal, x)
        self.x, self.images = x, smooth.images(x)

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


# --------------------------------------------------------------------------------------------------------------
# About how large the duality gap of a point is, at the price of one product: where a look at the certificate would pay.


class GapEstimate:
    """One loss of one matrix under one norm: the slopes u as dual point, scaled by t into the norm's dual ball.

    f(z) + f*(u) = <u, z>, so that the gap is g(W) + t <u, X W>, what is of second order in 1 - t, and what balancing the slopes costs beside intercepts.
    """

    def __init__(self, loss: LossTerm, function: FunctionTerm, block: str):
        self.loss, self.function, self.block = loss, function, block

    @classmethod
    def of(cls, form: NormalForm) -> GapEstimate | None:
        facts = single_block(form)
        if isinstance(facts, str) or len(form.functions) != 1:
            return None
        (function,) = form.functions
        fits = function.atom.norm and not function.is_constraint and facts.loss.map.offset is None
        return cls(facts.loss, function, facts.name) if fits and facts.loss.atom.separable else None

    def is_within(self, target: float, blocks: Blocks, z, u, pull) -> bool:
        """Relative to the objective; z: predictions, u: slopes there, pull: minus the gradient in the matrix.

        Beside intercepts the dual point is the slopes balanced, which takes another product: only where these alone would do.
        """
        value, penalised = self.loss.value(z), self.function.value(blocks)
        allowed = target * max(abs(value + penalised), np.finfo(float).tiny)
        if not self._gap(blocks, pull, value, penalised) <= allowed:
            return False
        if not self.loss.intercepts:
            return True
        samples = SmoothLoss.of(self.loss)
        curvature = samples.curvature(z)
        balanced, sums, totals = samples.balanced(u, curvature), samples.sums(u), samples.sums(curvature)
        paid = 0.5 * float(np.sum(np.divide(sums**2, totals, out=np.zeros_like(sums), where=totals > 0)))
        moved = {name: np.zeros_like(block) for name, block in blocks.items()}
        self.loss.add_adjoint(balanced, moved)
        return self._gap(blocks, -moved[self.block], value, penalised) + paid <= allowed

    def _gap(self, blocks: Blocks, pull, value: float, penalised: float) -> float:
        t = 1.0 / max(1.0, self.function.dual_gauge(pull))
        return penalised - t * float(np.vdot(pull, blocks[self.block])) + (1.0 - t) ** 2 * abs(value)

    def dual(self, z, u) -> np.ndarray:
        """The slopes u at predictions z as a dual point."""
        samples = SmoothLoss.of(self.loss)
        return samples.balanced(u, samples.curvature(z)) if self.loss.intercepts else u


# --------------------------------------------------------------------------------------------------------------
# Proximal gradient steps with Anderson's extrapolation, held to descent: about half the iterations of an accelerated gradient.
#
# Near a solution the steps act on the pieces that stay (a rank, a support) like a smooth map, whose pace extrapolation more than doubles.
# Source: Mai and Johansson, "Anderson acceleration of proximal gradient methods", ICML 2020.


class ExtrapolatedGradient(_BlockSteps):
    """s -> x - grad f(x) / (L metric) with x = prox_h(s), extrapolated as long as f + h falls, where f has no quadratic pieces.

    What plain steps do not lower asks for a larger L; the subgradient of h that s stands for is kept when L changes.
    """

    def __init__(self, smooth: SmoothPart, proximal: ProximalPart, x, tol: float = 0.0):
        super().__init__(smooth, proximal, x)
        self.gap, self.target = GapEstimate.of(smooth.form) if tol > 0 else None, 0.8 * tol
        self.anderson = AndersonExtrapolation(SETTINGS.memory_steps)
        self.is_homogeneous = not proximal.parts.moved and all(
            f.atom.homogeneous for f in smooth.form.functions
        )
        # at an optimum, that is where a warm start may be, s is one gradient step away
        gradient = smooth.gradient(smooth.slopes(smooth.images(x)))
        self.s = x - gradient / self.metric
        self.x, self.images, self.value = self._at(self.s)
        self.slopes = smooth.slopes(self.images)

    def _at(self, s):
        """(x, its images, f + h there)."""
        x = self.proximal.prox(s, self._steps())
        images = self.smooth.images(x)
        with np.errstate(over="ignore", invalid="ignore"):  # too long a step is not taken
            value = self.smooth.value(images, self.layout.blocks(x))
        if self.is_homogeneous:  # <v, x> for a subgradient v at x
            value += self.L * float(np.vdot(self.metric * (s - x), x))
        else:
            value += self.proximal.value(self.layout.blocks(x))
        return x, images, value

    def run(self, max_iter: int, watch: Watch) -> tuple[Point, bool]:
        """(last point, whether watch said stop) after at most max_iter iterations."""
        root = np.sqrt(self.metric)
        last_look, look_residual, end = self.iteration, math.inf, self.iteration + max_iter
        while True:
            self.iteration += 1
            gradient = self.smooth.gradient(self.slopes)
            image = self.x - gradient / (self.L * self.metric)
            residual = self.L * float(np.linalg.norm(root * (image - self.s)))
            since = self.iteration - last_look
            if self.gap is None:
                due = since >= 10 and (residual < 0.3 * look_residual or since >= 10 + 0.5 * last_look)
            else:
                reached = self._is_close(gradient)
                due = reached or since >= 30 + last_look
                self.target *= 0.3 if reached else 1.0
            stuck = not (due or self._advance(image, root))
            if due or stuck or self.iteration >= end or watch.expired:
                last_look, look_residual = self.iteration, residual
                point = self._point()
                stop = watch(point)
                if stop or stuck or self.iteration >= end or watch.expired:
                    return point, stop
                if due:
                    self._advance(image, root)
            if self.iteration % SETTINGS.review_iterations == 0:
                self._review(gradient)

    def _is_close(self, gradient) -> bool:
        if self.gap is None or self.iteration % SETTINGS.estimate_iterations != 0:
            return False
        blocks = self.layout.blocks(self.x)
        pull = -self.layout.blocks(gradient)[self.gap.block]
        return self.gap.is_within(self.target, blocks, self.images[0], self.slopes[0], pull)

    def _advance(self, image, root) -> bool:
        """On to the extrapolated point, or the plain one, with L as large as descent asks for; False where nothing descends."""
        allowed = self.value + VALUE_ROUNDING_SHARE * abs(self.value)
        tried = self.anderson.step(self.s, image, root)
        before_x, before_slopes, before_images = self.x, self.slopes, self.images
        s, L = self.s, self.L
        for _ in range(SETTINGS.doubling_steps):
            x, images, value = self._at(tried)
            if value <= allowed or (tried is image and np.isfinite(value) and _is_still(x, before_x)):
                self.s, self.x, self.images, self.value = tried, x, images, value
                self.slopes = self.smooth.slopes(images)
                self.change = x - before_x, before_images, before_slopes
                return True
            if tried is not image:
                tried, self.anderson.fallback = image, None
                continue
            gradient = (self.x - image) * (self.L * self.metric)
            self._rescale(2.0 * self.L)
            tried = image = self.x - gradient / (self.L * self.metric)
        self.s, self.L = s, L
        return False

    def _rescale(self, L: float) -> None:
        """Another L; s keeps the subgradient of h that it stands for."""
        self.s = self.x + (self.s - self.x) * (self.L / L)
        self.L = L
        self.anderson.reset()

    def _review(self, gradient) -> None:
        """A smaller L where the function has become flatter than it was."""
        d, images, slopes = self.change
        length = float(np.vdot(self.metric * d, d))
        curved = self.smooth.secant(d, images, slopes, self.images, self.slopes)
        if length > 0.0 and curved < SETTINGS.flatter_ratio * self.L * length:
            self._rescale(max(2.0 * curved / length, 0.1 * self.L, SETTINGS.curvature_min_ratio))

    def _point(self) -> Point:
        blocks = {name: block.copy() for name, block in self.layout.blocks(self.x).items()}
        duals = self.proximal.multipliers(self.s, self._steps(), blocks)
        if self.gap is None:
            return Point(blocks, self.smooth.loss_duals(self.x, self.images), duals, self.iteration)
        return Point(blocks, [self.gap.dual(self.images[0], self.slopes[0])], duals, self.iteration)


def _is_still(x: np.ndarray, before: np.ndarray) -> bool:
    return bool(np.linalg.norm(x - before) <= SETTINGS.still_ratio * np.linalg.norm(before))


def _selection_refusal(form: NormalForm) -> str | None:
    if coordinate_descent.unsupported_reason(form) is None:
        return "a model of one smooth loss has Newton steps on its rows."
    return row_selection.selection_refusal(form)


def _solve_whole(
    form: NormalForm, max_iter: int, start: Point | None, watch: Watch, tol: float = 0.0
) -> Point:
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
        by_data = all(isinstance(piece, DataPiece) for piece in smooth.pieces[: len(form.losses)])
        curved = by_data and any(loss.atom.quadratic is None for loss in form.losses)
        method = (
            ExtrapolatedGradient(smooth, proximal, x, tol)
            if curved
            else AcceleratedGradient(smooth, proximal, x)
        )
        point, stopped = method.run(min(steps, max_iter), watch)
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
        lambda form, tol, *run: (_solve_whole(form, *run, tol=tol), True),
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
