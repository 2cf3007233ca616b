"""ADMM's x-update by preconditioned conjugate gradients: for maps that mix tasks, on problems too large for a dense system."""

from __future__ import annotations

import numpy as np

from mtldsl.compile.normal_form import Blocks
from mtldsl.solvers.admm_split import Split

__all__ = ["ConjugateGradientUpdate", "conjugate_gradients"]

#: residual left of the first one: far below what an iteration of ADMM gains
_REDUCTION = 1e-6
_ROUNDING = 1e-15


def _dot(a: Blocks, b: Blocks) -> float:
    return float(sum(np.vdot(a[name], b[name]) for name in a))


def conjugate_gradients(apply, rhs: Blocks, x: Blocks, precondition, reduction: float, max_iter: int) -> Blocks:
    """x with apply(x) = rhs, started from x, until the residual is `reduction` of the first one (or rounding)."""
    product = apply(x)
    residual = {name: rhs[name] - product[name] for name in rhs}
    floor = _ROUNDING * np.sqrt(_dot(rhs, rhs))
    target = max(reduction * np.sqrt(_dot(residual, residual)), floor)
    x = {name: array.copy() for name, array in x.items()}
    direction, last = None, 1.0
    for _ in range(max_iter):
        if np.sqrt(_dot(residual, residual)) <= target:
            break
        z = precondition(residual)
        energy = _dot(residual, z)
        if direction is None:
            direction = {name: np.array(array) for name, array in z.items()}
        else:
            for name in direction:
                direction[name] = z[name] + energy / last * direction[name]
        image = apply(direction)
        curvature = _dot(direction, image)
        if curvature <= 0.0:  # a direction that nothing penalises: x is as good as it gets
            break
        for name in x:
            x[name] += energy / curvature * direction[name]
            residual[name] = residual[name] - energy / curvature * image[name]
        last = energy
    return x


class ConjugateGradientUpdate:
    """No matrix over all tasks; the systems of the tasks apart, where they exist, are the preconditioner."""

    def __init__(self, split: Split, tasks_apart):
        self.split, self.tasks_apart = split, tasks_apart
        # mean diagonals by random signs e: the mean of <e, H e> is the trace of H
        random = np.random.default_rng(0)
        e = {name: random.choice([-1.0, 1.0], shape) for name, shape in split.form.shapes.items()}
        size = sum(array.size for array in e.values())
        image = split.linear_image(e)
        self.mean_quadratic = _dot(e, split.quadratic_product(e)) / size
        self.diagonals = [float(image[copy.rows] @ image[copy.rows]) / size for copy in split.copies]
        self.x = split.form.zeros()
        self.reduction, self.max_iter = _REDUCTION, 300

    def set_penalties(self, ratios: np.ndarray, rho: float) -> None:
        self.metric = rho * self.split.metric(ratios)
        if self.tasks_apart is not None:
            self.tasks_apart.set_penalties(ratios, rho)

    def solve(self, rhs: Blocks) -> Blocks:
        precondition = (lambda r: r) if self.tasks_apart is None else self.tasks_apart.solve
        self.x = conjugate_gradients(self._apply, rhs, self.x, precondition, self.reduction, self.max_iter)
        return self.x

    def _apply(self, x: Blocks) -> Blocks:
        product = self.split.quadratic_product(x)
        self.split.add_adjoint(self.metric * self.split.linear_image(x), product)
        return product
