"""Kernels between tasks: factors of R_m, the cells of rows they act on, and the ball of their weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from mtldsl.utils.parallel import on_one_blas_thread

# --------------------------------------------------------------------------------------------------------------
# A combination of kernels as a diagonal and a few columns: nodes of single tasks, and the few that tasks share.


@dataclass(frozen=True)
class TaskKernelSettings:
    """Limits of kernels as a diagonal and a few shared columns.

    column_tasks  : tasks below which a T x T matrix costs less than the calls that columns take
    columns_share : shared columns that count as few, of the number of tasks
    dense_share   : nonzeros from which on a factor is multiplied as a dense matrix
    """

    column_tasks: int = 48
    columns_share: float = 0.25
    dense_share: float = 0.1


SETTINGS = TaskKernelSettings()


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
        """Tell whether every task has a node of its own: then K_theta is positive definite for every theta > 0."""
        return bool(np.bincount(self.task[self.factor != 0.0], minlength=self.n_tasks).all())

    @cached_property
    def are_few(self) -> bool:
        """Tell whether the diagonal and the shared columns are less work than a T x T matrix."""
        return (
            self.covers
            and self.n_tasks >= SETTINGS.column_tasks
            and self.shared.size <= SETTINGS.columns_share * self.n_tasks
        )

    def at(self, weights: np.ndarray, delta: float = 0.0) -> DiagonalPlusLowRank:
        """delta I + K, `weights` (k,) those of the columns. numpy.linalg.LinAlgError where a task's own weights vanish."""
        own = np.bincount(self.task, weights=weights[self.own] * self.factor**2, minlength=self.n_tasks)
        return DiagonalPlusLowRank(delta + own, self.U * np.sqrt(weights[self.shared]))


class DiagonalPlusLowRank:
    """K = diag(D) + V V^T, D > 0, V (T, r)."""

    @on_one_blas_thread
    def __init__(self, D: np.ndarray, V: np.ndarray):
        if not D.min() > 1e-300:
            raise np.linalg.LinAlgError("a task without a weight of its own")
        self.D, self.V, self.scaled = D, V, V / D[:, None]
        self.small = np.linalg.cholesky(np.eye(V.shape[1]) + V.T @ self.scaled)

    @property
    def is_well_conditioned(self) -> bool:
        """Tell whether no task's own part is rounding beside the rest."""
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


# --------------------------------------------------------------------------------------------------------------
# Kernels between tasks, R = B B^T, by their factors: never a T x T matrix where a vector will do.


@dataclass(frozen=True, eq=False)
class TaskKernel:
    """R = B B^T (T, T), positive semidefinite, on some rows of W (d, T).

    name    : of its weight
    factor  : B (T, r), a CSR array; rank one, r = 1, for the indicator of a group of tasks
    columns : positions of the features that it acts on, sorted; None: all
    view    : what these features are called
    """

    name: str
    factor: sparse.csr_array
    columns: np.ndarray | None = None
    view: str = ""  # what a user calls these features; "" for all

    @property
    def n_tasks(self) -> int:
        return self.factor.shape[0]

    @property
    def matrix(self) -> np.ndarray:
        """R, dense."""
        return (self.factor @ self.factor.T).toarray()


@dataclass(frozen=True, eq=False)
class KernelCell:
    """Rows of W on which the same kernels act: there W costs 1/2 tr(W K^+ W^T), K the weighted sum of the kernels."""

    rows: slice | np.ndarray
    members: np.ndarray  # which kernels
    factor: sparse.csr_array  # their factors side by side, (T, k)
    owner: np.ndarray  # (k,) the position in `members` of every column of `factor`

    @cached_property
    def transposed(self) -> sparse.csr_array:
        return self.factor.T.tocsr()

    @cached_property
    def nodes(self) -> SharedNodes:
        """Its columns, those of single tasks apart."""
        return SharedNodes(self.transposed)

    def of_columns(self, weights) -> np.ndarray:
        """(k,) the weight of every column of the factor; `weights` are those of all kernels."""
        return weights[self.members][self.owner]

    def kernel(self, weights) -> np.ndarray:
        """K = sum of weights[m] R_m over the members, (T, T) dense; `weights` are those of all kernels."""
        scale = self.of_columns(weights)
        if self.factor.nnz > SETTINGS.dense_share * np.prod(self.factor.shape):
            dense = self.factor.toarray()
            return (dense * scale) @ dense.T
        return (self.factor.multiply(scale[None, :]).tocsr() @ self.transposed).toarray()

    def sizes(self, Z) -> np.ndarray:
        """tr(Z R_m Z^T) of every member, for Z (rows of the cell, T)."""
        parts = np.asarray(Z @ self.factor)
        return self.add_up(np.einsum("ij,ij->j", parts, parts))

    def add_up(self, per_column) -> np.ndarray:
        """Sums over the columns of each member."""
        return np.bincount(self.owner, weights=per_column, minlength=len(self.members))


def cells_of(kernels: tuple[TaskKernel, ...], n_rows: int) -> tuple[KernelCell, ...]:
    """The rows of W, parted by the kernels that act on them. Rows on which none acts are in no cell."""
    if all(kernel.columns is None for kernel in kernels):
        return (_cell(kernels, np.arange(len(kernels)), slice(None)),)
    # many kernels are about the same few sets of features
    keys = [None if kernel.columns is None else kernel.columns.tobytes() for kernel in kernels]
    sets = list(dict.fromkeys(keys))
    own = np.array([sets.index(key) for key in keys])
    acts = np.ones((n_rows, len(sets)), dtype=bool)
    for kernel, k in zip(kernels, own, strict=True):
        if kernel.columns is not None:
            acts[:, k] = False
            acts[kernel.columns, k] = True
    patterns, which = np.unique(acts, axis=0, return_inverse=True)
    which = which.ravel()
    return tuple(
        _cell(kernels, np.flatnonzero(pattern[own]), np.flatnonzero(which == c))
        for c, pattern in enumerate(patterns)
        if pattern.any()
    )


def _cell(kernels, members: np.ndarray, rows) -> KernelCell:
    factors = [kernels[m].factor for m in members]
    owner = np.repeat(np.arange(len(members)), [factor.shape[1] for factor in factors])
    return KernelCell(rows, members, sparse.csr_array(sparse.hstack(factors, format="csr")), owner)


# --------------------------------------------------------------------------------------------------------------
# Weights theta >= 0 in a p-norm ball: their dual norm, and the closed form of multiple kernel learning.


@dataclass(frozen=True)
class KernelWeightBall:
    """{theta >= 0 : ||theta||_p <= radius}, p in [1, inf]: what a model says of kernel weights.

    >>> KernelWeightBall(p=2.0).support(np.array([3.0, 4.0]))
    5.0
    >>> KernelWeightBall(p=1.0).update(np.array([1.0, 9.0]))
    array([0.25, 0.75])
    """

    p: float = 2.0
    radius: float = 1.0

    def support(self, b) -> float:
        """max of <theta, b> over the ball, for b >= 0: radius ||b||_{p*} with 1/p + 1/p* = 1."""
        dual = np.inf if self.p == 1.0 else 1.0 if np.isinf(self.p) else self.p / (self.p - 1.0)
        largest = float(np.max(b, initial=0.0))
        # powers of large exponents, where p is near 1, leave the range of floats unless taken of parts of the largest
        return self.radius * largest * float(np.linalg.norm(b / largest, dual)) if largest > 0.0 else 0.0

    def update(self, a) -> np.ndarray:
        """argmin of sum_m a_m / theta_m for a >= 0 (MT-MKL, equation E.1); the largest weights where all a_m are zero."""
        largest = np.max(a, initial=0.0)
        if largest == 0.0 or np.isinf(self.p):
            return self.uniform(len(a))
        theta = (a / largest) ** (1.0 / (self.p + 1.0))
        return self.radius * theta / np.linalg.norm(theta, self.p)

    def uniform(self, n: int) -> np.ndarray:
        """The ball's point with equal entries."""
        return np.full(n, self.radius if np.isinf(self.p) else self.radius * n ** (-1.0 / self.p))
