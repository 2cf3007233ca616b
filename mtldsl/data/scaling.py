"""Means and standard deviations that were learned on training inputs and are applied to new ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.errors import DataError
from mtldsl.utils.memory import as_dense

# --------------------------------------------------------------------------------------------------------------
# Where inputs were missing, and what was put there.

STRATEGIES = ("mean", "median")


@dataclass(frozen=True, eq=False)
class Imputation:
    """Numbers in the place of missing inputs.

    strategy : "mean" or "median", of the values of a column that are there
    values   : (d,) what stands in every column's gaps, in the units of the data as they were given
    gaps     : (rows, d) CSR of booleans, the cells that were missing: of the shared X, or of the labelled rows, task after task
    """

    strategy: str
    values: np.ndarray
    gaps: Any

    def of_rows(self, rows) -> Imputation:
        return replace(self, gaps=self.gaps[rows])

    def of_columns(self, index) -> Imputation:
        return replace(self, values=self.values[index], gaps=self.gaps[:, index])


@dataclass(frozen=True, eq=False)
class Scaling:
    """x -> (x - mean) / scale, column by column.

    each_fold : (center, scale) where folds of these rows learn statistics of their own, by these two; None: they keep these
    """

    mean: np.ndarray  # (d,)
    scale: np.ndarray  # (d,) > 0
    each_fold: tuple[bool, bool] | None = None

    @classmethod
    def of(cls, inputs: list, center: bool, scale: bool) -> Scaling:
        """Statistics over all rows of all matrices; a constant column keeps scale 1."""
        n = sum(X.shape[0] for X in inputs)
        # one at a time in float64: sums of many float32 numbers would be those of rounding errors
        mean: Any = sum(np.asarray(_wide(X).sum(axis=0)).ravel() for X in inputs) / n
        squares: Any = sum(squared_deviations(_wide(X), mean) for X in inputs)
        return cls.of_moments(n, mean, squares, center, scale)

    @classmethod
    def of_moments(cls, n: int, mean: np.ndarray, squares: np.ndarray, center: bool, scale: bool) -> Scaling:
        """The same, of n rows with these means and sums of squared deviations from them."""
        spread = np.sqrt(squares / n)
        # rounding leaves a constant column a spread of about eps * |mean|, which must not blow it up
        constant = spread <= 1e-12 * np.maximum(np.abs(mean), 1.0) * np.sqrt(n)
        spread = np.where(constant, 1.0, spread)
        d = mean.size
        return cls(mean if center else np.zeros(d), spread if scale else np.ones(d))

    def __eq__(self, other) -> bool:  # and so no hash: equal by content that an array holds
        if not isinstance(other, Scaling):
            return NotImplemented
        return np.array_equal(self.mean, other.mean) and np.array_equal(self.scale, other.scale)

    def of_columns(self, index) -> Scaling:
        """The statistics of these columns alone, in this order."""
        return replace(self, mean=self.mean[index], scale=self.scale[index])

    def apply(self, X):
        if sparse.issparse(X):
            if not self.mean.any():
                return sparse.csr_array(X.multiply(1.0 / self.scale))
            X = as_dense(X, "centred inputs, which are dense,", "write standardize(center=False)", DataError)
        return (X - self.mean) / self.scale


def _wide(X):
    return X.astype(float, copy=False)


def squared_deviations(X, mean) -> np.ndarray:
    """(d,) sums over rows of (x - mean)^2."""
    if sparse.issparse(X):
        # zeros contribute mean^2 each
        squares = np.asarray(X.multiply(X).sum(axis=0)).ravel() - 2 * mean * np.asarray(X.sum(axis=0)).ravel()
        return np.maximum(squares + X.shape[0] * mean**2, 0.0)
    return ((X - mean) ** 2).sum(axis=0)
