"""The oracle of a structured hinge whose rows are elsewhere, as bundles of planes see it: the slopes in the weights are all that is kept of a plane."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mtldsl.compile.terms.structured_elsewhere import PlaneDual, StructuredElsewhere
from mtldsl.solvers.planes.oracle import Planes

__all__ = ["OracleElsewhere"]

#: what is kept of a plane beside its slope, in the order of `PlaneDual`
_KEPT = 5


class OracleElsewhere:
    """As `Oracle`, for V (m, D): the weights of every task, the intercept last, divided by `unit`. Values and slopes are without coefficients."""

    def __init__(self, loss: StructuredElsewhere):
        self.loss, self.tasks = loss, loss.tasks
        self.coefficients = np.asarray(loss.coefficients, float)
        self.has_intercept = bool(loss.intercepts)
        self.size = self.tasks.n_features + self.has_intercept
        self.unit = self._unit() if self.has_intercept else 1.0
        self.calls = 0

    def _unit(self) -> float:
        """The root mean square of a typical feature: typical is what most of the data's energy lies in."""
        squares = (self.tasks.column_lengths**2).sum(axis=1) / float(np.sum(self.tasks.counts))
        return float(np.sqrt((squares @ squares) / squares.sum())) if squares.sum() > 0 else 1.0

    def is_of_the_same(self, other: OracleElsewhere) -> bool:
        """Whether planes of the one are planes of the other."""
        mine, theirs = self.loss, other.loss
        return (
            mine.tasks is theirs.tasks and mine.atom is theirs.atom and mine.intercepts == theirs.intercepts
        )

    def point(self, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(weights (d, m), intercepts (m,))."""
        d = self.tasks.n_features
        b = self.unit * V[:, d] if self.has_intercept else np.zeros(len(V))
        return np.ascontiguousarray(V[:, :d].T), b

    def looks(self, points: Sequence[np.ndarray]) -> list[tuple[dict, Planes]]:
        """What is seen at each of these V, and the planes there, for the price of one look."""
        self.calls += 1
        found = []
        for seen in self.loss.looks([self.point(V) for V in points]):
            slopes, sums = seen["adjoint"].T, seen["sums"]
            told = np.stack(
                [sums, seen["sizes"], seen["work"], np.sqrt(seen["squares"]), seen["promised"]], axis=1
            )
            stored = list(np.hstack([slopes, told]))
            if self.has_intercept:
                # slopes of rankings sum to zero, but for rounding, along which no plane has a slope
                level = np.abs(sums) <= 1e-14 * seen["sizes"]
                slopes = np.hstack([slopes, self.unit * np.where(level, 0.0, sums)[:, None]])
            found.append(
                (seen, Planes(seen["value"], seen["promised"], np.ascontiguousarray(slopes), stored))
            )
        return found

    def zero(self, i: int) -> np.ndarray:
        """The plane of the true labelling."""
        return np.zeros(self.tasks.n_features + _KEPT)

    def duals(self, stored: list[list], weights: list[np.ndarray]) -> PlaneDual:
        """Multipliers of the loss, coefficients included, of the mixtures of planes."""
        rows = []
        for c, planes, w in zip(self.coefficients, stored, weights, strict=True):
            used = np.flatnonzero(w > 0.0)
            total = max(1.0, float(w[used].sum()))  # rounding of probabilities
            rows.append(
                (c / total) * (w[used] @ np.array([planes[k] for k in used]))
                if used.size
                else 0.0 * self.zero(0)
            )
        table, d = np.array(rows), self.tasks.n_features
        return PlaneDual(np.ascontiguousarray(table[:, :d].T), *table[:, d:].T)
