"""Factors and inverses of symmetric matrices, one or many at a time, also with shifts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas, lapack

from mtldsl.utils.interrupts import eigh, leave_if_late
from mtldsl.utils.parallel import in_blocks


@dataclass(frozen=True)
class FactorSettings:
    """Limits of factors, and what counts as rounding in them.

    pivot_tol         : least pivot of a Cholesky factor, diagonals being 1: below, rank is judged by eigenvalues
    numpy_rows        : up to which the loop inside numpy beats a third of the arithmetic
    null_share        : of the largest eigenvalue, up to which one is zero
    factored_shifts   : different shifts, beyond which eigenvectors cost less than factors
    shifted_pivot_tol : least pivot beside its diagonal, where a shift is 0: below, rank is for singular values to judge
    unevenness_ratio  : of the diagonal's largest entry to its smallest, up to which eigenvalues tell all of it
    rounding_factor   : units of rounding that an entry of M is taken to carry, relative to its row's and its column's diagonal
    """

    pivot_tol: float = 1e-6
    numpy_rows: int = 40
    null_share: float = 1e-13
    factored_shifts: int = 12
    shifted_pivot_tol: float = 1e-12
    unevenness_ratio: float = 1e10
    rounding_factor: float = 8.0


SETTINGS = FactorSettings()


# --------------------------------------------------------------------------------------------------------------
# Cholesky factors of large matrices, block by block, so that a signal and a time limit are heard between two blocks.


def upper_factor(H: np.ndarray, whole: int = 4000, block: int = 1024) -> tuple[np.ndarray, int]:
    """(U, 0) with H = U^T U, what is below its diagonal being left as it comes; (anything, where it broke off) if H is not positive
    definite. H (n, n) is symmetric, in the order of C, and overwritten.

    whole : rows up to which LAPACK makes it in one call, of half a second at most;  block : rows of a block, otherwise
    """
    n, F = len(H), H.T
    if n <= whole:
        return lapack.dpotrf(F, lower=0, clean=0, overwrite_a=1)
    for k in range(0, n, block):
        leave_if_late()
        rows = slice(k, min(k + block, n))
        U, failed = lapack.dpotrf(F[rows, rows], lower=0, clean=0)
        if failed:
            return F, k + failed
        F[rows, rows] = U
        further = [slice(j, min(j + block, n)) for j in range(rows.stop, n, block)]
        for columns in further:
            F[rows, columns] = blas.dtrsm(1.0, U, F[rows, columns], trans_a=1)
        for columns in further:
            above = slice(rows.stop, columns.stop)
            F[above, columns] -= F[rows, above].T @ F[rows, columns]
    return F, 0


# --------------------------------------------------------------------------------------------------------------
# Stacks of small symmetric matrices, inverted.


def inverses(H: np.ndarray) -> np.ndarray:
    """The inverses of symmetric positive semidefinite H (g, D, D); pseudo-inverses where rank is lacking.

    The size alone says by which routine, never the machine: the same input, the same bits. Small ones in blocks, where these are worth it:
    numpy's LAPACK lets go of Python's lock, scipy's does not.
    """
    if H.shape[1] >= SETTINGS.numpy_rows:
        return _inverses(H, by_numpy=False)
    found = np.empty_like(H)

    def fill(_: int, some: slice) -> None:
        found[some] = _inverses(H[some], by_numpy=True)

    in_blocks(len(H), len(H) * float(H.shape[1]) ** 3, fill)
    return found


def is_regular(H: np.ndarray) -> bool:
    """Tell whether every matrix of the stack has full rank, far from rounding."""
    return _pivots(H / _outer(H)) > SETTINGS.pivot_tol


def _inverses(H: np.ndarray, by_numpy: bool) -> np.ndarray:
    # Unit diagonals first: features in different units are not a lack of rank.
    outer = _outer(H)
    H = H / outer
    if by_numpy:
        return (np.linalg.inv(H) if _pivots(H) > SETTINGS.pivot_tol else _pseudo_inverses(H)) / outer
    inverse = np.empty_like(H)
    for i, matrix in enumerate(H):
        factor, failed = lapack.dpotrf(matrix, lower=False, clean=False)
        if failed or np.diag(factor).min() <= SETTINGS.pivot_tol:
            return _pseudo_inverses(H) / outer
        inverse[i] = lapack.dpotri(factor, lower=False)[0]
    below = np.tri(H.shape[1], k=-1, dtype=bool)  # dpotri leaves that half undefined
    return np.where(below, inverse.transpose(0, 2, 1), inverse) / outer


def _pseudo_inverses(H: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(H)
    kept = values > SETTINGS.null_share * values[:, -1:]
    vectors = vectors * np.where(kept, 1.0 / np.sqrt(np.where(kept, values, 1.0)), 0.0)[:, None, :]
    return vectors @ vectors.transpose(0, 2, 1)


def _outer(H: np.ndarray) -> np.ndarray:
    diagonal = np.einsum("gii->gi", H)
    # an empty row stays one: by a tiny scale its inverse would be what rounding leaves there, times 1e308
    scale = np.sqrt(np.where(diagonal > np.finfo(float).tiny, diagonal, 1.0))
    return scale[:, :, None] * scale[:, None, :]


def _pivots(H: np.ndarray) -> float:
    try:
        return float(np.einsum("gii->gi", np.linalg.cholesky(H)).min())
    except np.linalg.LinAlgError:
        return 0.0


# --------------------------------------------------------------------------------------------------------------
# Systems (M + shift_j I) x_j = b_j of one symmetric matrix and some shifts: factors, or eigenvectors where shifts are many.


class ShiftedFactors:
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
        if len(values) == 1 or (len(values) <= SETTINGS.factored_shifts and len(values) * M.size <= room):
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
            if value == 0.0 and np.any(
                np.square(np.diagonal(factor)) <= SETTINGS.shifted_pivot_tol * self.diagonal
            ):
                return
            self.factors.append(factor)
        self.is_regular = True

    def _diagonalize(self, M) -> None:
        self.factors = None
        largest, smallest = self.diagonal.max(initial=0.0), self.diagonal.min(initial=np.inf)
        if largest > SETTINGS.unevenness_ratio * smallest:
            return
        values, self.vectors = eigh(M)
        self.values = np.maximum(values, 0.0)
        self.is_regular = self.shifts.min() > 0 or values[0] > SETTINGS.shifted_pivot_tol * values[-1]

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
            np.square(SETTINGS.rounding_factor * np.finfo(float).eps)
            * sizes
            * (self.diagonal.sum() + self.diagonal.size * self.shifts)
        )
        if self.shifts.min() > 0:
            return residual / (2.0 * self.shifts)
        return np.divide(residual, 2.0 * self.shifts, out=np.full(len(X), np.inf), where=self.shifts > 0)
