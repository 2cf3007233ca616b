"""Weights theta >= 0 in a p-norm ball: their dual norm, and the closed form of multiple kernel learning."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Ball"]


@dataclass(frozen=True)
class Ball:
    """{theta >= 0 : ||theta||_p <= radius}, p in [1, inf]: what a model says of kernel weights.

    >>> Ball(p=2.0).support(np.array([3.0, 4.0]))
    5.0
    >>> Ball(p=1.0).update(np.array([1.0, 9.0]))
    array([0.25, 0.75])
    """

    p: float = 2.0
    radius: float = 1.0

    def support(self, b) -> float:
        """max of <theta, b> over the ball, for b >= 0: radius ||b||_{p*} with 1/p + 1/p* = 1."""
        dual = np.inf if self.p == 1.0 else 1.0 if np.isinf(self.p) else self.p / (self.p - 1.0)
        largest = float(np.max(b, initial=0.0))
        # powers of large exponents, where p is near 1, leave the range of floats unless taken of parts of the largest
        return self.radius * largest * float(np.linalg.norm(b / largest, dual)) if largest > 0.0 else 0.0

    def update(self, a) -> np.ndarray:
        """argmin of sum_m a_m / theta_m for a >= 0 (MT-MKL, equation E.1); the largest weights where all a_m are zero."""
        largest = np.max(a, initial=0.0)
        if largest == 0.0 or np.isinf(self.p):
            return self.uniform(len(a))
        theta = (a / largest) ** (1.0 / (self.p + 1.0))
        return self.radius * theta / np.linalg.norm(theta, self.p)

    def uniform(self, n: int) -> np.ndarray:
        """The ball's point with equal entries."""
        return np.full(n, self.radius if np.isinf(self.p) else self.radius * n ** (-1.0 / self.p))
