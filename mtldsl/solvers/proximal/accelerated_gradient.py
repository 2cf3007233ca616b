"""Accelerated proximal gradient with restarts and steps that follow the local curvature."""

from __future__ import annotations

import math

import numpy as np

from mtldsl.solvers.proximal.part import ProximalPart
from mtldsl.solvers.proximal.smooth_part import SmoothPart, block_weights
from mtldsl.solvers.solver import Point, Watch

__all__ = ["AcceleratedGradient"]

_RELAX = 0.97  # of the curvature estimate, every iteration: steps grow where the function is flatter
_GROW = 1.5
_LEAST = (
    1e-12  # of the estimate, relative to the curvature at the start: a function that is flat far out has none
)


class AcceleratedGradient:
    """x = prox(y - grad f(y) / L),  y = x + momentum (x - x_before).

    L rises until <grad f(x) - grad f(y), x - y> <= L ||x - y||^2 and relaxes slowly otherwise; the momentum restarts
    where it points uphill. Blocks have steps of their own: the norm weighs each by its own curvature.
    Sources: Beck and Teboulle, "A fast iterative shrinkage-thresholding algorithm", SIAM J. Imaging Sci. 2 (2009);
    O'Donoghue and Candes, "Adaptive restart for accelerated gradient schemes", Found. Comput. Math. 15 (2015).
    """

    def __init__(self, smooth: SmoothPart, proximal: ProximalPart, x):
        self.smooth, self.proximal, self.layout = smooth, proximal, smooth.layout
        self.x, self.images = x, smooth.images(x)
        self.weights = block_weights(smooth, x)
        self.metric = np.empty(self.layout.size)
        for name, at in self.layout.slices.items():
            self.metric[at] = self.weights[name]
        self.L = 1.0
        self.iteration = 0

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
            self.L = max(_RELAX * self.L, _LEAST)

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
                max(_GROW * self.L, min(needed, 10.0 * self.L)) if math.isfinite(needed) else 10.0 * self.L
            )

    def _steps(self) -> dict[str, float]:
        return {name: 1.0 / (self.L * weight) for name, weight in self.weights.items()}

    def _point(self, x, images, before_prox) -> Point:
        blocks = {name: block.copy() for name, block in self.layout.blocks(x).items()}
        duals = self.proximal.multipliers(before_prox, self._steps(), blocks)
        return Point(blocks, self.smooth.loss_duals(x, images), duals, self.iteration)
