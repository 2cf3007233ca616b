"""The checker's own formula of the squared cluster norm, by a singular value decomposition that is a guess, and what it misses."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from mtldsl.proof.checker.function import Function, positive
from mtldsl.proof.checker.interval import Interval, maximum, minimum
from mtldsl.proof.checker.not_checked import NotChecked
from mtldsl.proof.checker.spectral_norms import decomposed

__all__ = ["SquaredCluster"]

#: halvings of the interval that the guessed variances' factor lies in
_HALVINGS = 200


class SquaredCluster(Function):
    """min over v, lower <= v_i <= upper, sum v_i <= trace, of sum_i s_i^2 / v_i, s the singular values of W: N(W)^2 for a norm N that no rotation
    changes. Its conjugate is 1/4 max over the same v of sum_i v_i z_i^2, 1/4 N*(Z)^2.

    For W = U diag(s) V^T + E: N(W) <= ||U|| ||V|| N(diag(s)) + N(E), N(diag(s)) at most what any v gives, and N(E)^2 <= ||E||_F^2 / v for
    equal v; and so for N*, with N*(E)^2 <= ||E||_F^2 max v.
    """

    finite_dual = True
    degree = 2

    def read(self, parameters):
        self.lower, self.upper = float(parameters["lower"]), float(parameters["upper"])
        self.trace = positive(parameters["trace"], "a squared cluster norm with a trace")
        self.rank = min(self.shape)
        m = self.shape[1]
        if not (0.0 <= self.lower < self.upper) or Fraction(self.lower) * m > Fraction(self.trace):
            raise NotChecked("a squared cluster norm with bounds that no covariance keeps")
        # what the tasks' covariance has to spend on variances above the lower one
        self.room = maximum(self.number(self.trace) - self.number(self.lower) * float(m), 0.0)
        self.each = None if self.upper == np.inf else self.number(self.upper) - self.number(self.lower)

    def value(self, W):
        U_V, s, rest = self._seen(W)
        even = self.room / float(self.rank)
        even = (even if self.each is None else minimum(even, self.each)) + self.lower
        if not even.low > 0:  # zero is the only matrix that has a value
            raise NotChecked("a squared cluster norm without room for any variance")
        kept = s[s > 0]
        return (self._of_values(kept) * U_V + rest / even.sqrt()).square()

    def _of_values(self, s: np.ndarray) -> Interval:
        """N of these singular values, at variances that obey the bounds as real numbers."""
        if not s.size:
            return self.number(0.0)
        above = self.number(self._guess(s))
        if self.each is not None:
            above = minimum(above, self.each)
        above = above * minimum(self.room / maximum(above.sum(), 5e-324), 1.0)
        return (self.number(s).square() / (above + self.lower)).sum().sqrt()

    def _guess(self, s: np.ndarray) -> np.ndarray:
        """Variances above the lower one: clip(x s - lower, 0, upper - lower), x such that they spend the room."""
        room = float(self.room.middle)

        def above(x: float) -> np.ndarray:
            return np.clip(x * s - self.lower, 0.0, self.upper - self.lower)

        low, high = 0.0, (room + self.lower) / float(s.min())
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if above(middle).sum() < room else (low, middle)
        return np.maximum(above(high), np.finfo(float).tiny)

    def conjugate(self, Z):
        U_V, s, rest = self._seen(Z)
        squares, taken = self.number(s).square(), []
        left = self.room
        for _ in s:
            own = left if self.each is None else minimum(left, self.each)
            left = maximum(left - own, 0.0)
            taken.append(own)
        total = squares.sum() * self.lower
        for k, own in enumerate(taken):
            total = total + squares[k] * own
        most = self.room if self.each is None else minimum(self.room, self.each)
        return (total.sqrt() * U_V + rest * (most + self.lower).sqrt()).square() * 0.25

    def _seen(self, W) -> tuple[Interval, np.ndarray, Interval]:
        """(an upper bound of ||U|| ||V||, singular values, one of ||E||_F)."""
        _, s, _, sizes, rest = decomposed(W)
        return sizes, s, rest
