"""Anderson acceleration (type II) of a fixed-point iteration, with a safeguard."""

from __future__ import annotations

import numpy as np

__all__ = ["Anderson"]


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
        self.images: list[np.ndarray] = []
        self.residuals: list[np.ndarray] = []
        self.gram = np.empty((0, 0))
        self.last = None
        self.accepted_norm = np.inf
        self.fallback = None

    def step(self, s: np.ndarray, image: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """The next iterate from s and F(s); `scale` turns a residual into the norm in which F is nonexpansive."""
        residual = (image - s) * scale
        norm = float(np.linalg.norm(residual))
        if self.fallback is not None and not norm <= self.growth * self.accepted_norm:
            safe = self.fallback
            self.reset()
            return safe
        self.accepted_norm = norm if self.fallback is None else min(norm, self.growth * self.accepted_norm)
        if self.last is not None:
            self._remember(image - self.last[0], residual - self.last[1])
        self.last = image, residual
        self.fallback = None
        if not self.images:
            return image
        coefficients = self._combination(residual)
        if coefficients is None:
            return image
        move = sum(c * d for c, d in zip(coefficients, self.images, strict=True))
        longest = max(norm, *(float(np.linalg.norm(scale * d)) for d in self.images))
        if not np.linalg.norm(scale * move) <= self.reach * longest:
            return image
        self.fallback = image
        return image - move

    def _remember(self, image_change: np.ndarray, residual_change: np.ndarray) -> None:
        if len(self.images) == self.memory:
            self.images.pop(0)
            self.residuals.pop(0)
            self.gram = self.gram[1:, 1:]
        self.images.append(image_change)
        self.residuals.append(residual_change)
        column = np.array([r @ residual_change for r in self.residuals])
        grown = np.empty((len(column), len(column)))
        grown[:-1, :-1] = self.gram
        grown[-1], grown[:, -1] = column, column
        self.gram = grown

    def _combination(self, residual: np.ndarray) -> np.ndarray | None:
        scale = np.sqrt(np.diag(self.gram))
        if scale.min() == 0.0:
            return None
        rhs = np.array([r @ residual for r in self.residuals]) / scale
        system = self.gram / np.outer(scale, scale)
        system[np.diag_indices_from(system)] += self.regularization
        try:
            return np.linalg.solve(system, rhs) / scale
        except np.linalg.LinAlgError:
            return None
