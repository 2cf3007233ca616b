"""Anderson acceleration: of a fixed-point iteration, with a safeguard, and of sweeps of coordinate descent."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


class AndersonExtrapolation:
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


# --------------------------------------------------------------------------------------------------------------
# Coordinate descent: the iterates of some sweeps, and their best combination.
#
# Source: Bertrand and Massias, "Anderson acceleration of coordinate descent", AISTATS 2021.


#: Sweeps of a round, which an extrapolation ends.
ROUND_SWEEPS = 5

#: Entries of what is carried beside the weights, up to which that of earlier iterates is kept: of more,
#: an extrapolated one is made anew, at the price of half a sweep.
MAX_REMEMBERED_ENTRIES = 1 << 17


class IterateHistory:
    """The iterates of so many sweeps and the one before them, a row each.

    carried : None where they are large and the state knows what belongs to weights, `carried_at`
    """

    def __init__(self, state, sweeps: int):
        self.W = np.empty((sweeps + 1, state.W.size))
        self.carried: Any = None
        if state.carried.size <= MAX_REMEMBERED_ENTRIES or not hasattr(state, "carried_at"):
            self.carried = np.empty((sweeps + 1, state.carried.size))
        self.n = 0

    def add(self, state) -> None:
        self.W[self.n] = state.W.ravel()
        if self.carried is not None:
            self.carried[self.n] = state.carried.ravel()
        self.n += 1


def extrapolate(state, history: IterateHistory) -> None:
    """Replace the iterate by the affine combination of the last ones whose steps cancel best, where that is better."""
    steps = history.W[1:] - history.W[:-1]
    gram = steps @ steps.T
    gram.flat[:: len(gram) + 1] += 1e-12 * gram.trace()
    try:
        weights = np.linalg.solve(gram, np.ones(len(gram)))
    except np.linalg.LinAlgError:  # no step at all
        return
    weights /= weights.sum()
    W = (weights @ history.W[1:]).reshape(state.W.shape)
    if history.carried is None:
        carried = state.carried_at(W)
    else:
        carried = (weights @ history.carried[1:]).reshape(state.carried.shape)
    if state.objective(W, carried) < state.objective(state.W, state.carried):
        state.W, state.carried = W, carried
