"""Means and spreads of columns in one pass: what parts know of their own rows is put together without loss of digits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.tasks.distributed.parts import Part
from mtldsl.tasks.scaling import Scaling, squared_deviations

__all__ = ["Moments", "moments_of", "scaled"]


@dataclass(frozen=True, eq=False)
class Moments:
    """n rows with these means of columns, and sums of squared deviations from them.

    Source: Chan, Golub and LeVeque, "Algorithms for computing the sample variance", The American Statistician 37 (1983), eq. 2.1.
    """

    n: int
    mean: np.ndarray
    squares: np.ndarray

    def __add__(self, other: Moments) -> Moments:
        n, step = self.n + other.n, other.mean - self.mean
        mean = self.mean + step * (other.n / n)
        return Moments(n, mean, self.squares + other.squares + step**2 * (self.n * (other.n / n)))

    @property
    def nbytes(self) -> int:
        return 2 * self.mean.nbytes + 8

    def scaling(self, center: bool, scale: bool) -> Scaling:
        """What `standardize` applies."""
        return Scaling.of_moments(self.n, self.mean, self.squares, center, scale)


def moments_of(part: Part) -> Moments:
    """Those of the rows of one part, each counted once where tasks share it."""
    X: Any = part.tasks.X if part.tasks.is_shared else part.tasks.stacked
    mean = np.asarray(X.sum(axis=0)).ravel() / X.shape[0]
    return Moments(X.shape[0], mean, squared_deviations(X, mean))


def scaled(part: Part, scaling: Scaling) -> Part:
    """The same rows, scaled."""
    return Part(part.tasks.scaled_by(scaling), part.which, part.index, part.first_row)
