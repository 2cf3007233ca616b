"""Cholesky factors of large matrices, block by block, so that a signal and a time limit are heard between two blocks."""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas, lapack

from mtldsl.system.stops import leave_if_late

__all__ = ["upper_factor"]

#: Up to this side a factor takes half a second at most, and LAPACK makes it in one call.
_WHOLE = 4000

_BLOCK = 1024


def upper_factor(H: np.ndarray, whole: int = _WHOLE, block: int = _BLOCK) -> tuple[np.ndarray, int]:
    """(U, 0) with H = U^T U, what is below its diagonal being left as it comes; (anything, where it broke off) if H is not positive
    definite. H (n, n) is symmetric, in the order of C, and overwritten.
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
