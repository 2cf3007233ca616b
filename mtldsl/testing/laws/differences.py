"""Finite differences of an atom's value, and where they end."""

from __future__ import annotations

import numpy as np

__all__ = ["limit", "quotient"]


def quotient(atom, W: np.ndarray, at: tuple[int, ...], step: float) -> float:
    """The slope from W to a step away in one entry."""
    moved = W.copy()
    moved[at] += step
    return (atom.value(moved) - atom.value(W)) / step


def limit(of: list[float]) -> float:
    """Where a sequence with errors that shrink by one factor ends (Aitken): the differences of |w|^(3/2) at 0 are the root of the step.

    >>> limit([1.5, 1.25, 1.125]), limit([3.0, 3.0, 3.0])
    (1.0, 3.0)
    """
    first, second, third = of
    bend = (third - second) - (second - first)
    return float(third if bend == 0.0 else third - (third - second) ** 2 / bend)
