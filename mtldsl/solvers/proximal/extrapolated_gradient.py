"""Proximal gradient steps with Anderson's extrapolation, held to descent: about half the iterations of an accelerated gradient.

Near a solution the steps act on the pieces that stay (a rank, a support) like a smooth map, whose pace extrapolation more than doubles.
Source: Mai and Johansson, "Anderson acceleration of proximal gradient methods", ICML 2020.
"""

from __future__ import annotations

import math

import numpy as np

from mtldsl.solvers.linear_algebra.anderson import Anderson
from mtldsl.solvers.proximal.gap_estimate import GapEstimate
from mtldsl.solvers.proximal.part import ProximalPart
from mtldsl.solvers.proximal.smooth_part import SmoothPart, block_weights
from mtldsl.solvers.solver import Point, Watch

__all__ = ["ExtrapolatedGradient"]

_MEMORY = 15
_ESTIMATES = 3  # iterations from one estimate of the gap to the next
_ROUNDING = 1e-13
_REVIEW, _FLATTER = (
    25,
    0.01,
)  # iterations from one look at the curvature to the next, and what asks for another L, which costs all that was remembered
_DOUBLINGS = 60  # of L in one iteration
_LEAST = 1e-12  # L, in units of the curvature at the start
_STILL = (
    1e-13  # a step that is no longer, relative to the iterate, is taken whatever rounding says of its value
)


class ExtrapolatedGradient:
    """s -> x - grad f(x) / (L metric) with x = prox_h(s), extrapolated as long as f + h falls, where f has no quadratic pieces.

    What plain steps do not lower asks for a larger L; the subgradient of h that s stands for is kept when L changes.
    """

    def __init__(self, smooth: SmoothPart, proximal: ProximalPart, x, tol: float = 0.0):
        self.smooth, self.proximal, self.layout = smooth, proximal, smooth.layout
        self.gap, self.target = GapEstimate.of(smooth.form) if tol > 0 else None, 0.8 * tol
        self.weights = block_weights(smooth, x)
        self.metric = np.empty(self.layout.size)
        for name, at in self.layout.slices.items():
            self.metric[at] = self.weights[name]
        self.L, self.iteration = 1.0, 0
        self.anderson = Anderson(_MEMORY)
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

    def _steps(self) -> dict[str, float]:
        return {name: 1.0 / (self.L * weight) for name, weight in self.weights.items()}

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
            if self.iteration % _REVIEW == 0:
                self._review(gradient)

    def _is_close(self, gradient) -> bool:
        if self.gap is None or self.iteration % _ESTIMATES != 0:
            return False
        blocks = self.layout.blocks(self.x)
        pull = -self.layout.blocks(gradient)[self.gap.block]
        return self.gap.is_within(self.target, blocks, self.images[0], self.slopes[0], pull)

    def _advance(self, image, root) -> bool:
        """On to the extrapolated point, or the plain one, with L as large as descent asks for; False where nothing descends."""
        allowed = self.value + _ROUNDING * abs(self.value)
        tried = self.anderson.step(self.s, image, root)
        before_x, before_slopes, before_images = self.x, self.slopes, self.images
        s, L = self.s, self.L
        for _ in range(_DOUBLINGS):
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
        if length > 0.0 and curved < _FLATTER * self.L * length:
            self._rescale(max(2.0 * curved / length, 0.1 * self.L, _LEAST))

    def _point(self) -> Point:
        blocks = {name: block.copy() for name, block in self.layout.blocks(self.x).items()}
        duals = self.proximal.multipliers(self.s, self._steps(), blocks)
        if self.gap is None:
            return Point(blocks, self.smooth.loss_duals(self.x, self.images), duals, self.iteration)
        return Point(blocks, [self.gap.dual(self.images[0], self.slopes[0])], duals, self.iteration)


def _is_still(x: np.ndarray, before: np.ndarray) -> bool:
    return bool(np.linalg.norm(x - before) <= _STILL * np.linalg.norm(before))
