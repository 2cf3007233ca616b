"""ADMM's x-update by preconditioned conjugate gradients: for maps that mix tasks, where a dense system is too large."""

from __future__ import annotations

import numpy as np

from mtldsl.compile.normal_form import Blocks
from mtldsl.solvers.linear_algebra.split import Split

__all__ = ["ConjugateGradientUpdate", "conjugate_gradients"]

#: what one x-update leaves of its first residual: far less than an iteration of ADMM gains
_REDUCTION = 1e-6
_ROUNDING = 1e-15


def _dot(a: Blocks, b: Blocks) -> float:
    return float(sum(np.vdot(a[name], b[name]) for name in a))


def conjugate_gradients(
    apply, rhs: Blocks, x: Blocks, precondition, reduction: float, max_iter: int
) -> Blocks:
    """x with apply(x) = rhs, started from x, until the residual is `reduction` of the first (or rounding)."""
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
            direction = {name: z[name] + energy / last * direction[name] for name in z}
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
    """No matrix over all tasks; the systems of the tasks apart, where there are such, are the preconditioner."""

    def __init__(self, split: Split, tasks_apart, reduction: float = _REDUCTION, max_iter: int = 300):
        self.split, self.tasks_apart = split, tasks_apart
        self.reduction, self.max_iter = reduction, max_iter
        # mean diagonals by random signs e: the mean of <e, H e> is the trace of H
        random = np.random.default_rng(0)
        e = {name: random.choice([-1.0, 1.0], shape) for name, shape in split.form.shapes.items()}
        size = sum(array.size for array in e.values())
        image = split.linear_image(e)
        self.mean_quadratic = _dot(e, split.quadratic_product(e)) / size
        self.diagonals = [float(image[copy.rows] @ image[copy.rows]) / size for copy in split.copies]
        self.x = split.form.zeros()

    def solver(self, penalties: np.ndarray):
        """The x-update under one penalty a copy; each solve starts from the last one's x."""
        metric = self.split.metric(penalties)
        precondition = (lambda r: r) if self.tasks_apart is None else self.tasks_apart.solver(penalties)

        def apply(x: Blocks) -> Blocks:
            product = self.split.quadratic_product(x)
            self.split.add_adjoint(metric * self.split.linear_image(x), product)
            return product

        def solve(rhs: Blocks) -> Blocks:
            self.x = conjugate_gradients(apply, rhs, self.x, precondition, self.reduction, self.max_iter)
            return self.x

        return solve
