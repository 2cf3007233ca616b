"""L-BFGS whose first guess of the inverse Hessian is given: a good metric is worth more than a long memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

__all__ = ["LBFGS", "Evaluation"]

#: Sufficient decrease and curvature of the line search; beyond so many trials there is no step.
_DECREASE, _CURVATURE, _TRIALS = 1e-4, 0.9, 30

#: A change of the value below this, relative to its size, is rounding: then slopes decide.
_ROUNDING = 1e-13

Evaluation = tuple[float, np.ndarray]  # value, gradient


class LBFGS:
    """Minimises a smooth function from x: x <- x - t H g, H from the last `memory` steps and `metric` (g -> H0 g).

    size: of the terms that the values are sums of, which may cancel: what rounding errors are proportional to.
    Without a metric, H0 is the multiple of the identity that the last step suggests.

    The line search asks for weak Wolfe conditions, by interpolation and bisection; where values agree to rounding, for the
    slopes alone.
    Sources: Liu and Nocedal, "On the limited memory BFGS method for large scale optimization", Math. Program. 45 (1989); Hager
    and Zhang, "A new conjugate gradient method with guaranteed descent and an efficient line search", SIAM J. Optim. 16 (2005).
    """

    def __init__(
        self,
        function: Callable[[np.ndarray], Evaluation],
        x: np.ndarray,
        metric: Callable | None,
        memory: int,
        size: float = 0.0,
    ):
        self.function, self.metric, self.scale, self.size = function, metric, 1.0, size
        self.x = x
        self.value, self.gradient = function(x)
        self.pairs: deque = deque(maxlen=memory)

    def step(self) -> bool:
        """One step; False where none goes down any more."""
        direction = -self._inverse_hessian(self.gradient)
        slope = float(self.gradient @ direction)
        if not slope < 0.0:
            if not self.pairs:
                return False
            self.pairs.clear()
            return self.step()
        found = self._search(direction, slope)
        if found is None:
            if not self.pairs:
                return False
            self.pairs.clear()
            return self.step()
        x, value, gradient = found
        s, y = x - self.x, gradient - self.gradient
        if not np.any(s):  # a step below the resolution of x
            return False
        curvature = float(s @ y)
        if curvature > 1e-14 * np.linalg.norm(s) * np.linalg.norm(y):
            self.pairs.append((s, y, curvature))
        self.x, self.value, self.gradient = x, value, gradient
        return True

    def _inverse_hessian(self, g: np.ndarray) -> np.ndarray:
        """The two-loop recursion."""
        q, shares = g.copy(), []
        for s, y, curvature in reversed(self.pairs):
            share = float(s @ q) / curvature
            q -= share * y
            shares.append(share)
        if self.metric is not None:
            r = self.scale * self.metric(q)
        elif self.pairs:
            _, y, curvature = self.pairs[-1]
            r = q * (curvature / float(y @ y))
        else:  # a first step of the size of x
            r = q * (max(float(np.linalg.norm(self.x)), 1.0) * 1e-2 / max(float(np.linalg.norm(q)), 1e-300))
        for (s, y, curvature), share in zip(self.pairs, reversed(shares), strict=True):
            r += s * (share - float(y @ r) / curvature)
        return r

    def _search(self, direction: np.ndarray, slope: float) -> tuple[np.ndarray, float, np.ndarray] | None:
        low, high, t = 0.0, np.inf, 1.0
        for _ in range(_TRIALS):
            x = self.x + t * direction
            value, gradient = self.function(x)
            now = float(gradient @ direction)
            lower = value <= self.value + _DECREASE * t * slope
            same = abs(value - self.value) <= _ROUNDING * max(abs(self.value), self.size)
            if not lower and not (same and now <= -(1.0 - 2.0 * _DECREASE) * slope):
                high = t
                if low == 0.0:  # the minimum of the parabola through both values and the first slope
                    parabola = -0.5 * slope * t * t / (value - self.value - slope * t)
                    t = min(max(parabola, 0.1 * t), 0.6 * t) if np.isfinite(parabola) else 0.5 * t
                    continue
            elif now < _CURVATURE * slope:
                low = t
            else:
                self.scale *= np.sqrt(min(max(t, 0.5), 2.0))
                return x, value, gradient
            t = 2.0 * low if high == np.inf else 0.5 * (low + high)
        return None
