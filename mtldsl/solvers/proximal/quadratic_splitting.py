"""A quadratic that is block diagonal over tasks, plus h with a cheap prox: Douglas-Rachford splitting with small cached systems."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mtldsl.solvers.linear_algebra.anderson import Anderson
from mtldsl.solvers.proximal.part import ProximalPart

__all__ = ["QuadraticSplitting"]

_RELAXATION = 1.6
_OFF_BALANCE = 4.0
#: The penalty stays within this factor of the mean curvature on either side: where the quadratic is all but flat (losses of separable
#: labels, far out), residuals balance at no penalty at all, and the next steps 1 / penalty would overflow.
_FARTHEST = 1e9


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

    def apply(self, matrices, V) -> np.ndarray:
        if matrices.ndim == 2:
            return matrices @ V
        return np.matmul(matrices, np.ascontiguousarray(V.T)[:, :, None])[:, :, 0].T

    def prox(self, s) -> np.ndarray:
        steps = {name: 1.0 / (self.penalty * scale) for name, scale in self.scales.items()}
        return self.proximal.prox(s.ravel(), steps).reshape(s.shape)

    def run(self, done: Callable[[np.ndarray, np.ndarray, np.ndarray], bool], max_iter: int) -> None:
        """Iterate until done(w, y, residual), the residual being an array like w."""
        s = self.w + self.y / (self.penalty * self.metric)
        anderson = Anderson(self.memory)
        balance_at, interval = 5, 5
        w_before = None
        for iteration in range(1, max_iter + 1):
            M = self.penalty * self.metric
            w = self.prox(s)
            x = self.apply(self.inverse, self.b + M * (2.0 * w - s))
            difference = x - w
            self.w, self.y = w, M * (s - w)
            self.iterations += 1
            # the first images only say how far the guess was
            if iteration > 1 and done(w, self.y, -self.apply(self.hessian, difference) - M * difference):
                return
            if iteration >= balance_at and w_before is not None:
                penalty = np.clip(self.penalty * self._factor(x, w, w_before), 1.0 / _FARTHEST, _FARTHEST)
                balance_at, interval = iteration + interval, int(1.5 * interval)
                if not 1.0 / _OFF_BALANCE < penalty / self.penalty < _OFF_BALANCE:
                    self.penalty = float(penalty)
                    self._factorize()
                    anderson.reset()
                    s, w_before = w + self.y / (self.penalty * self.metric), None
                    continue
            w_before = w
            image = s + _RELAXATION * difference
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
