"""The method of multipliers with semismooth Newton steps: what ADMM hands over to where its own progress is slow.

With copies w = K x + k, penalties M and scaled multipliers u, one outer step minimises the augmented Lagrangian over x and w,

    phi(x) = q(x) + sum_j env_j(K_j x + k_j + u_j),    env_j the Moreau envelope of h_j in the metric M,

which is convex and differentiable: grad phi = grad q + K^T M (xi - prox(xi)) at xi = K x + k + u. Then u <- xi - prox(xi).
Newton's matrix is Q + K^T M (I - D) K with D the derivative of the prox (see `admm_curvature`): parts of it go into the systems of
the x-update; where a prox couples everything, as a singular-value threshold does, products go into conjugate gradients. Along a
direction phi' costs one prox and no matrix product, so the line search is exact.

Source: Li, Sun and Toh, "A highly efficient semismooth Newton augmented Lagrangian method for solving lasso problems", SIAM J.
Optim. 28 (2018).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mtldsl.compile.normal_form import Blocks
from mtldsl.solvers.linear_algebra.curvature import Part, curvature_kind, find_curvatures
from mtldsl.solvers.linear_algebra.matrix_free import conjugate_gradients
from mtldsl.solvers.linear_algebra.split import Split
from mtldsl.solvers.solver import Point

__all__ = ["MethodOfMultipliers", "Standing"]


@dataclass
class Standing:
    """Where a run stands: x, K x + k, w = prox(xi) and the scaled multipliers u = xi - w."""

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
