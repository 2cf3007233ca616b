"""Multipliers of a structured hinge as a proof shows them: random labellings, and what they promise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

__all__ = ["Mixture", "ProvenDual"]


class Mixture(NamedTuple):
    """A random labelling of one task: labelling k with probability weights[k], the true one with the rest. A plain pair means the same.

    flips (K, n): True where labelling k differs from y; weights (K,) >= 0 with a sum of at most 1.
    The multiplier that it stands for is the expected slope, -2 y E[flip]; what it proves about the conjugate is E[Delta].
    For a metric of orders `flips` are the slopes themselves, which tell the orders and with them Delta.
    """

    flips: np.ndarray
    weights: np.ndarray

    def flip_probabilities(self) -> np.ndarray:
        """E[flip] of every sample, (n,)."""
        return self.weights @ self.flips.astype(float)


@dataclass(frozen=True, eq=False)
class ProvenDual:
    """Multipliers u (N,) of a loss with proven lower bounds (m,) of -c_i f_i*(u_i / c_i), one a task.

    Multiplied by t in [0, 1] the bounds shrink with u: f* is convex and f*(0) <= 0.
    laws: of every task the tables (b, c, weights) of the random labelling that proves its bound, or (ranks, places, weights) of a
        random order, where one is known, else None.
    """

    u: np.ndarray
    proven: np.ndarray
    laws: tuple | None = None

    __array_ufunc__ = None  # numpy numbers on the left defer to __rmul__

    def __array__(self, dtype=None, copy=None):
        return self.u if dtype is None else self.u.astype(dtype)

    def __rmul__(self, t: float) -> ProvenDual:
        if not 0.0 <= t <= 1.0:
            raise ValueError(f"proven multipliers can be scaled by a number in [0, 1], not by {t}")
        # nothing is proven of a labelling that the metric forbids, but for t = 0: that is the true labelling
        laws = None if self.laws is None else tuple(law and (*law[:2], t * law[2]) for law in self.laws)
        return ProvenDual(t * self.u, t * self.proven if t > 0.0 else np.zeros_like(self.proven), laws)
