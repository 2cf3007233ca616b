"""A combination of kernels as a diagonal and a few columns: nodes of single tasks, and the few that tasks share."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy import sparse

from mtldsl.system.threads import on_one_blas_thread

__all__ = ["DiagonalPlus", "SharedNodes"]

#: For fewer tasks a T x T matrix costs less than the calls saved; more shared columns than this part of the tasks are not few.
_FEWEST_TASKS, _FEW = 48, 0.25


class SharedNodes:
    """The columns of a factor (T, k), given transposed, those with one entry apart: K_theta = diag(own) + U Theta U^T, U (T, r) dense."""

    def __init__(self, transposed: sparse.csr_array):
        entries = np.diff(transposed.indptr)
        self.own, self.shared = np.flatnonzero(entries == 1), np.flatnonzero(entries > 1)
        first = transposed.indptr[self.own]
        self.task, self.factor = transposed.indices[first], transposed.data[first]
        self.n_tasks, self.transposed = transposed.shape[1], transposed

    @cached_property
    def U(self) -> np.ndarray:
        """(T, r)"""
        return np.ascontiguousarray(self.transposed[self.shared].toarray().T)

    @cached_property
    def covers(self) -> bool:
        """Whether every task has a node of its own: then K_theta is positive definite for every theta > 0."""
        return bool(np.bincount(self.task[self.factor != 0.0], minlength=self.n_tasks).all())

    @cached_property
    def are_few(self) -> bool:
        """Whether the diagonal and the shared columns are less work than a T x T matrix."""
        return self.covers and self.n_tasks >= _FEWEST_TASKS and self.shared.size <= _FEW * self.n_tasks

    def at(self, weights: np.ndarray, delta: float = 0.0) -> DiagonalPlus:
        """delta I + K, `weights` (k,) those of the columns. numpy.linalg.LinAlgError where a task's own weights vanish."""
        own = np.bincount(self.task, weights=weights[self.own] * self.factor**2, minlength=self.n_tasks)
        return DiagonalPlus(delta + own, self.U * np.sqrt(weights[self.shared]))


class DiagonalPlus:
    """K = diag(D) + V V^T, D > 0, V (T, r)."""

    @on_one_blas_thread
    def __init__(self, D: np.ndarray, V: np.ndarray):
        if not D.min() > 1e-300:
            raise np.linalg.LinAlgError("a task without a weight of its own")
        self.D, self.V, self.scaled = D, V, V / D[:, None]
        self.small = np.linalg.cholesky(np.eye(V.shape[1]) + V.T @ self.scaled)

    @property
    def is_well_conditioned(self) -> bool:
        """Whether no task's own part is rounding beside the rest."""
        sizes = self.D + np.einsum("ij,ij->i", self.V, self.V)
        return bool(self.D.min() > 1e-14 * sizes.max())

    def _small_solve(self, B: np.ndarray) -> np.ndarray:
        return np.linalg.solve(self.small.T, np.linalg.solve(self.small, B))

    @on_one_blas_thread
    def form(self, W: np.ndarray) -> tuple[float, np.ndarray]:
        """(1/2 tr(W K^{-1} W^T), Z = K^{-1} W^T), for W (h, T).

        The value is min over E of 1/2 tr((W - E^T V^T) D^{-1} (..)^T) + 1/2 ||E||^2: a sum of squares, in which an error of E counts
        twice over.
        """
        E = self._small_solve(self.scaled.T @ W.T)
        for _ in range(2):  # once more, with what rounding left
            rest = W.T - self.V @ E
            Z = rest / self.D[:, None]
            E = E + self._small_solve(self.V.T @ Z - E)
        rest = W.T - self.V @ E
        Z = rest / self.D[:, None]
        return 0.5 * float(np.vdot(rest, Z)) + 0.5 * float(np.vdot(E, E)), Z

    @on_one_blas_thread
    def halves(self) -> np.ndarray:
        """Q (T, r) with K^{-1} = diag(1 / D) - Q Q^T."""
        return np.linalg.solve(self.small, self.scaled.T).T
