"""Systems (M + shift_j I) x_j = b_j of one symmetric matrix and some shifts: factors, or eigenvectors where shifts are many."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from mtldsl.solvers.linear_algebra.cholesky import upper_factor
from mtldsl.system.long_calls import eigh

__all__ = ["Shifted"]

_MOST_FACTORS = 12  # different shifts, beyond which eigenvectors cost less than factors
_SMALLEST_PIVOT = (
    1e-12  # of a factor beside its diagonal, where a shift is 0: below, rank is for singular values to judge
)
_LARGEST_UNEVENNESS = 1e10  # of the diagonal, up to which eigenvalues tell all of it
_UNITS = (
    8.0  # of rounding that an entry of M is taken to carry, relative to its row's and its column's diagonal
)


class Shifted:
    """M (p, p) positive semidefinite, which is overwritten; shifts (m,) >= 0; room: numbers that factors may take.

    `is_regular` : whether there are solutions; `solve` and `error` are asked only where it is so
    """

    def __init__(self, M: np.ndarray, shifts: np.ndarray, room: float):
        self.shifts, self.diagonal = shifts, np.array(np.diagonal(M))
        if (shifts == shifts[0]).all():
            values = shifts[:1]
            self.groups = [(float(shifts[0]), slice(None))]
        else:
            values, place = np.unique(shifts, return_inverse=True)
            self.groups = [(float(value), np.flatnonzero(place == k)) for k, value in enumerate(values)]
        self.is_regular = False
        if len(values) == 1 or (len(values) <= _MOST_FACTORS and len(values) * M.size <= room):
            self._factorize(M)
        else:
            self._diagonalize(M)

    def _factorize(self, M) -> None:
        self.factors = []
        for k, (value, _) in enumerate(self.groups):
            H = M if k == len(self.groups) - 1 else M.copy()
            H.flat[:: len(H) + 1] += value
            factor, failed = upper_factor(H)
            if failed:
                return
            if value == 0.0 and np.any(np.square(np.diagonal(factor)) <= _SMALLEST_PIVOT * self.diagonal):
                return
            self.factors.append(factor)
        self.is_regular = True

    def _diagonalize(self, M) -> None:
        self.factors = None
        largest, smallest = self.diagonal.max(initial=0.0), self.diagonal.min(initial=np.inf)
        if largest > _LARGEST_UNEVENNESS * smallest:
            return
        values, self.vectors = eigh(M)
        self.values = np.maximum(values, 0.0)
        self.is_regular = self.shifts.min() > 0 or values[0] > _SMALLEST_PIVOT * values[-1]

    def solve(self, B: np.ndarray) -> np.ndarray:
        """(m, p): row j solves the system of shift j."""
        if self.factors is None:
            return ((B @ self.vectors) / (self.values + self.shifts[:, None])) @ self.vectors.T
        if len(self.groups) == 1:
            return lapack.dpotrs(self.factors[0], B.T, lower=0)[0].T
        X = np.empty(B.shape)
        for factor, (_, own) in zip(self.factors, self.groups, strict=True):
            X[own] = lapack.dpotrs(factor, B[own].T, lower=0)[0].T
        return X

    def error(self, X: np.ndarray) -> np.ndarray:
        """(m,) about r^T (M + shift I)^-1 r / 2 at most, r being what rounding in M leaves of a solution X's residual.

        Every entry of M is off by some eps sqrt(M_ii M_kk), as sums of products are; inf where there is no shift.
        """
        sizes = np.square(X) @ self.diagonal + self.shifts * np.einsum("ij,ij->i", X, X)
        residual = (
            np.square(_UNITS * np.finfo(float).eps)
            * sizes
            * (self.diagonal.sum() + self.diagonal.size * self.shifts)
        )
        if self.shifts.min() > 0:
            return residual / (2.0 * self.shifts)
        return np.divide(residual, 2.0 * self.shifts, out=np.full(len(X), np.inf), where=self.shifts > 0)
