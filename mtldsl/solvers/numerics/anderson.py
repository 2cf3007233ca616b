"""Anderson acceleration (type II) of a fixed-point iteration, with a safeguard."""

from __future__ import annotations

import math

import numpy as np

__all__ = [
    "Anderson",
]


class Anderson:
    """Extrapolates s <- F(s) from its last `memory` steps: the affine combination of images whose residuals cancel best.

    Source: Walker and Ni, "Anderson acceleration for fixed-point iterations", SIAM J. Numer. Anal. 49 (2011); the safeguard
    follows the one that SCS 3 uses (O'Donoghue 2021): a step after which the residual has grown is taken back.

    That alone is not enough: while F moves s along a ray (losses with bounded slopes), residuals change by rounding only, their
    combination is arbitrarily large and the residual far away no larger. So no step goes `reach` times beyond the longest known.
    """

    def __init__(self, memory: int, growth: float = 2.0, regularization: float = 1e-10, reach: float = 1e3):
        self.memory, self.growth, self.regularization, self.reach = memory, growth, regularization, reach
        self.reset()

    def reset(self) -> None:
        self.known = 0  # steps remembered since the last reset; the newest overwrites the oldest
        self.last = None
        self.accepted_norm = np.inf
        self.fallback = None

    def step(self, s: np.ndarray, image: np.ndarray, scale: np.ndarray | float) -> np.ndarray:
        """The next iterate from s and F(s); `scale` turns a residual into the norm in which F is nonexpansive."""
        residual = (image - s) * scale
        norm = _length(residual)
        if self.fallback is not None and not norm <= self.growth * self.accepted_norm:
            safe = self.fallback
            self.reset()
            return safe
        self.accepted_norm = norm if self.fallback is None else min(norm, self.growth * self.accepted_norm)
        if self.last is not None:
            self._remember(image - self.last[0], residual - self.last[1], scale)
        self.last = image, residual
        self.fallback = None
        held = min(self.known, self.memory)
        coefficients = self._combination(residual, held) if held else None
        if coefficients is None:
            return image
        move = coefficients @ self.images[:held]
        if not _length(scale * move) <= self.reach * max(norm, self.lengths[:held].max()):
            return image
        self.fallback = image
        return image - move

    def _remember(
        self, image_change: np.ndarray, residual_change: np.ndarray, scale: np.ndarray | float
    ) -> None:
        if self.known == 0:
            self.images = np.empty((self.memory, image_change.size))
            self.residuals = np.empty_like(self.images)
            self.gram = np.empty((self.memory, self.memory))
            self.lengths = np.empty(self.memory)
        slot = self.known % self.memory
        self.known += 1
        held = min(self.known, self.memory)
        self.images[slot], self.residuals[slot] = image_change, residual_change
        self.lengths[slot] = _length(scale * image_change)
        self.gram[slot, :held] = self.residuals[:held] @ residual_change
        self.gram[:held, slot] = self.gram[slot, :held]

    def _combination(self, residual: np.ndarray, held: int) -> np.ndarray | None:
        gram = self.gram[:held, :held]
        scale = np.sqrt(gram.diagonal())
        if scale.min() == 0.0:
            return None
        rhs = (self.residuals[:held] @ residual) / scale
        system = gram / (scale[:, None] * scale)
        system.flat[:: held + 1] += self.regularization
        try:
            return np.linalg.solve(system, rhs) / scale
        except np.linalg.LinAlgError:
            return None


def _length(v: np.ndarray) -> float:
    """`numpy.linalg.norm`, which takes four times as long where v is short."""
    v = v.ravel(order="K")
    return math.sqrt(v.dot(v))
