"""Cholesky factors, without what importing scipy.linalg costs everyone who never needs one."""

from __future__ import annotations

import numpy as np

from mtldsl.system.threads import on_one_blas_thread

__all__ = ["Triangular"]


class Triangular:
    """K = L L^T, L lower triangular; numpy.linalg.LinAlgError where K is not positive definite to rounding."""

    def __init__(self, K: np.ndarray):
        self.L = np.linalg.cholesky(K)

    @property
    def pivots(self) -> np.ndarray:
        return np.diagonal(self.L)

    def half(self, B: np.ndarray) -> np.ndarray:
        """L^{-1} B: B^T K^{-1} B = half^T half."""
        return self._solve(B, 0)

    def solve(self, B: np.ndarray) -> np.ndarray:
        """K^{-1} B."""
        return self.back(self.half(B))

    def back(self, half: np.ndarray) -> np.ndarray:
        """L^{-T} half."""
        return self._solve(half, 1)

    # LAPACK's triangular solve wakes threads for 4 x 4 already: 30 ms of two cores, where one needs microseconds
    @on_one_blas_thread
    def _solve(self, B: np.ndarray, transposed: int) -> np.ndarray:
        from scipy.linalg import solve_triangular

        return solve_triangular(self.L, B, lower=True, trans=transposed, check_finite=False)
