"""Eigenvalues of two precisions within their bounds, for given singular values of the weights between them."""

from __future__ import annotations

import numpy as np

from mtldsl.atoms.structures.structure import Range

__all__ = ["clipped_ratio", "give_way"]


def clipped_ratio(numerator: float, denominator, box: Range) -> np.ndarray:
    """clip(numerator / denominator, lower, upper), upper where the denominator is 0."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.minimum(
            np.maximum(numerator / denominator, box.lower), box.upper
        )  # np.clip is slow to call


def give_way(
    s, ratio: float, few: tuple[int, Range], many: tuple[int, Range]
) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of the matrix whose log-determinant counts less, then of the other."""
    (count, box), (other_count, other) = few, many
    t = ratio * s**2
    first = clipped_ratio(count, other.upper * t, box)
    return first, clipped_ratio(other_count, first * t, other)
