"""What a metric is asked with and answers: the classes of a task, the highest plane, and the subgradients at a constant score."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["AtConstant", "Classes", "Violation", "classes_of"]


class Classes(NamedTuple):
    """The positions of a task's positive and of its negative samples."""

    positive: np.ndarray
    negative: np.ndarray


def classes_of(y) -> Classes:
    return Classes(np.flatnonzero(y > 0), np.flatnonzero(y < 0))


class AtConstant(NamedTuple):
    """The best constant score of a task, and the slopes there: those of its positives and negatives between two ends, sample by sample,
    all together `total` (None: whatever they are)."""

    constant: float
    positive: tuple[float, float]
    negative: tuple[float, float]
    total: float | None


class Violation(NamedTuple):
    """The plane of a structured hinge that is highest at z: value = delta + <slope, z>.

    Planes of labellings have `flipped`, the positions where y' differs from y (their slope is -2 y there, 0 elsewhere);
    others have `slope` itself.
    """

    value: float
    delta: float
    flipped: np.ndarray | None
    slope: np.ndarray | None = None

    def gradient(self, y) -> np.ndarray:
        """The plane's slope in the predictions, (n,)."""
        if self.slope is not None:
            return self.slope
        slope = np.zeros(len(y))
        slope[self.flipped] = -2.0 * y[self.flipped]
        return slope
