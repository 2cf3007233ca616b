"""Stacks of small symmetric matrices, inverted."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from mtldsl.system.blocks import in_blocks

__all__ = ["inverses", "is_regular"]

_SMALLEST_PIVOT = 1e-6  # of a Cholesky factor, diagonals being 1: below, rank is judged by eigenvalues
_SMALL = 40  # up to here the loop inside numpy beats a third of the arithmetic
_NULL = 1e-13  # eigenvalues this small against the largest are zero


def inverses(H: np.ndarray) -> np.ndarray:
    """The inverses of symmetric positive semidefinite H (g, D, D); pseudo-inverses where rank is lacking.

    The size alone says by which routine, never the machine: the same input, the same bits. Small ones in blocks, where these are worth it:
    numpy's LAPACK lets go of Python's lock, scipy's does not.
    """
    if H.shape[1] >= _SMALL:
        return _inverses(H, by_numpy=False)
    found = np.empty_like(H)

    def fill(_: int, some: slice) -> None:
        found[some] = _inverses(H[some], by_numpy=True)

    in_blocks(len(H), len(H) * float(H.shape[1]) ** 3, fill)
    return found


def is_regular(H: np.ndarray) -> bool:
    """Whether every matrix of the stack has full rank, far from rounding."""
    return _pivots(H / _outer(H)) > _SMALLEST_PIVOT


def _inverses(H: np.ndarray, by_numpy: bool) -> np.ndarray:
    # Unit diagonals first: features in different units are not a lack of rank.
    outer = _outer(H)
    H = H / outer
    if by_numpy:
        return (np.linalg.inv(H) if _pivots(H) > _SMALLEST_PIVOT else _pseudo_inverses(H)) / outer
    inverse = np.empty_like(H)
    for i, matrix in enumerate(H):
        factor, failed = lapack.dpotrf(matrix, lower=False, clean=False)
        if failed or np.diag(factor).min() <= _SMALLEST_PIVOT:
            return _pseudo_inverses(H) / outer
        inverse[i] = lapack.dpotri(factor, lower=False)[0]
    below = np.tri(H.shape[1], k=-1, dtype=bool)  # dpotri leaves that half undefined
    return np.where(below, inverse.transpose(0, 2, 1), inverse) / outer


def _pseudo_inverses(H: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(H)
    kept = values > _NULL * values[:, -1:]
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
