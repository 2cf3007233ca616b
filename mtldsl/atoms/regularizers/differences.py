"""Quadratic penalties on differences between tasks: graph Laplacian and distance from the mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from mtldsl.atoms.atom import ROUNDING_SHARE, register
from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix
from mtldsl.atoms.regularizers.quadratic import KroneckerRidge, QuadraticPenalty
from mtldsl.errors import ModelError
from mtldsl.utils.arrays import read_dense
from mtldsl.utils.interrupts import eigh
from mtldsl.utils.memory import require_memory
from mtldsl.utils.validation import as_whole, refuse_large_matrix, shape_of

#: Edges a task up to which a Laplacian's value is made of differences.
TASK_EDGES = 8


#: A difference from a mean is off by this share of the numbers at most.
_MEAN_ROUNDING_SHARE = 64 * float(np.finfo(float).eps)


class _TaskQuadratic(QuadraticPenalty):
    """1/2 tr(W L W^T): rows apart, entries of a row coupled by L."""

    separable: ClassVar[str] = "rows"

    def range_part(self, Z) -> np.ndarray:
        """The orthogonal projection of every row on the range of L."""
        raise NotImplementedError

    def spectral(self, n_columns: int) -> SpectralMatrix:
        """L by its eigenvectors."""
        raise NotImplementedError

    def of_transpose(self, shape):
        return KroneckerRidge(self.spectral(shape[0]), SpectralMatrix.multiple_of_identity(1.0, shape[1]))

    def dual_gauge(self, Z):
        outside = Z - self.range_part(Z)
        return 0.0 if np.linalg.norm(outside) <= ROUNDING_SHARE * np.linalg.norm(Z) else np.inf

    def dual_project(self, Z):
        # Twice, so that what is left outside is small against the result even where the result is small
        # against Z.
        return self.range_part(self.range_part(Z))


@register
@dataclass(frozen=True, eq=False)
class GraphLaplacian(_TaskQuadratic):
    r"""Tasks on a graph: 1/2 tr(W L W^T), with L the graph's Laplacian.

    Neighbouring tasks get similar columns: for weights a_ij on the edges, L = diag(a 1) - a, and the penalty
    is 1/2 sum over edges i < j of a_ij ||W_i - W_j||^2, with W_i the i-th column of W (p features, q tasks).

    Parameters
    ----------
    L : array (q, q), symmetric positive semidefinite, dense or scipy sparse
        Any such matrix serves, e.g. the inverse of a covariance between tasks.

    Raises
    ------
    ModelError
        Where L is not square, finite and symmetric, where it has a negative eigenvalue, or where it does not
        fit the argument.

    Notes
    -----
    prox: W (I + step L)^-1. Conjugate: 1/2 tr(Z L^+ Z^T) for rows of Z in the range of L, +inf elsewhere.
    Source: Evgeniou, Micchelli and Pontil, "Learning multiple tasks with kernel methods", JMLR 6 (2005).

    Examples
    --------
    >>> import numpy as np
    >>> path = GraphLaplacian([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
    >>> W = np.array([[1.0, 2.0, 4.0]])
    >>> path.value(W)
    2.5
    >>> path.gradient(W)
    array([[-1., -1.,  2.]])
    """

    L: np.ndarray

    name: ClassVar[str] = "graph_laplacian"
    meaning: ClassVar[str] = "differences between tasks that are neighbours on a graph with the Laplacian $L$"
    formula: ClassVar[str] = r"\tfrac12\operatorname{tr}({}\,L\,{}^\top)"

    def __post_init__(self):
        object.__setattr__(self, "L", _checked_laplacian(self.L))
        lowest, highest = self.eigenvalues[0], self.eigenvalues[-1]
        if lowest < -1e-10 * max(highest, 0.0) or highest < 0:
            raise ModelError(
                f"L has the eigenvalue {lowest:.3g}, so the term is not convex; "
                "L must be positive semidefinite, "
                "e.g. diag(A.sum(axis=1)) - A for a matrix A of edge weights >= 0",
                term="graph_laplacian(..., L)",
            )

    @classmethod
    def examples(cls):
        path = np.diag([1.0, 2.0, 2.0, 1.0]) - np.eye(4, k=1) - np.eye(4, k=-1)
        two_pairs = np.kron(np.eye(2), [[1.5, -1.5], [-1.5, 1.5]])
        return [cls(path), cls(two_pairs), cls(path + 0.5 * np.eye(4)), cls(np.diag([2.0, 0.0, 1.0, 0.25]))]

    def check(self, shape):
        if len(self.L) != shape[1]:
            return f"L is {len(self.L)} x {len(self.L)}, but the argument has {shape[1]} columns (tasks)"
        return None

    @cached_property
    def _eigen(self):
        return eigh(self.L)

    @property
    def eigenvalues(self) -> np.ndarray:
        return self._eigen[0]

    @property
    def eigenvectors(self) -> np.ndarray:
        return self._eigen[1]

    @cached_property
    def _positive(self) -> np.ndarray:
        """Which eigenvalues are above rounding: their eigenvectors span the range."""
        return self.eigenvalues > ROUNDING_SHARE * self.curvature

    @cached_property
    def curvature(self) -> float:
        return max(float(self.eigenvalues[-1]), 0.0)

    @cached_property
    def strong_convexity(self) -> float:
        return float(self.eigenvalues[0]) if self._positive[0] else 0.0

    @cached_property
    def _edges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
        """(i, j, a_ij >= 0 of every edge i < j, the sums of L's rows); None where L is of no graph, or of one with many edges."""
        i, j = np.nonzero(np.triu(self.L, 1))
        weights = -self.L[i, j]
        if i.size > TASK_EDGES * len(self.L) or not (weights > 0).all():
            return None
        return i, j, weights, np.array([math.fsum(row) for row in self.L.tolist()])

    def value(self, W):
        if self._edges is None:
            return 0.5 * float(np.sum((W @ self.L) * W))
        i, j, weights, rest = self._edges  # tr(W L W^T) = sum a_ij ||W_i - W_j||^2 + sum rest_i ||W_i||^2
        between = float(np.square(W[:, i] - W[:, j]).sum(axis=0) @ weights)
        return 0.5 * (between + float(np.square(W).sum(axis=0) @ rest) if rest.any() else between)

    def cancelling(self, W):
        if self._edges is None:
            return super().cancelling(W)
        # the conjugate goes by eigenvalues, whose rounding is a share of the largest, and leaves out a null space that is known to as much
        size = self.curvature * float(np.linalg.norm(W)) * float(np.linalg.norm(self.range_part(W)))
        return size + 0.5 * float(np.square(W).sum(axis=0) @ np.abs(self._edges[-1]))

    def gradient(self, W):
        return W @ self.L

    def prox(self, W, step):
        return (
            W @ self.eigenvectors / (1.0 + step * np.maximum(self.eigenvalues, 0.0))
        ) @ self.eigenvectors.T

    def spectral(self, n_columns):
        return SpectralMatrix(self.eigenvectors, np.where(self._positive, self.eigenvalues, 0.0), 0.0)

    def lineality(self, n_columns):
        return self.eigenvectors[:, ~self._positive]

    def range_part(self, Z):
        if self.absorbs:
            return Z
        null = self.lineality(len(self.L))
        return Z - (Z @ null) @ null.T

    def conjugate(self, Z):
        if self.dual_gauge(Z) > 0:
            return np.inf
        rotated = Z @ self.eigenvectors[:, self._positive]
        return 0.5 * float(np.sum(np.square(rotated) / self.eigenvalues[self._positive]))

    def task_quadratic(self, n_columns):
        return self.L


@register
@dataclass(frozen=True, eq=False)
class MeanRegularizer(_TaskQuadratic):
    r"""Tasks near their mean: 1/2 sum over columns i of ||W_i - mean of the columns||^2.

    Pulls the tasks (columns of W (p, q)) towards each other, not towards zero.

    Notes
    -----
    It is `graph_laplacian` with L = I - 11^T / q, a projection: prox keeps each row's mean and divides the
    deviations from it by 1 + step. Conjugate: 1/2 ||Z||_F^2 where every row of Z sums to 0, +inf elsewhere.
    Source: Evgeniou and Pontil, "Regularized multi-task learning", KDD 2004.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[1.0, 3.0], [2.0, 2.0]])
    >>> MeanRegularizer().value(W)
    1.0
    >>> MeanRegularizer().prox(W, 1.0)
    array([[1.5, 2.5], [2. , 2. ]])
    """

    name: ClassVar[str] = "mean_regularizer"
    meaning: ClassVar[str] = "squared distances of the columns from their mean"
    formula: ClassVar[str] = r"\tfrac12\sum_i\|{}_{\cdot i}-\overline{{}}\|_2^2"
    curvature: ClassVar[float] = 1.0

    def spectral(self, n_columns):
        return SpectralMatrix(self.lineality(n_columns), np.zeros(1), 1.0)

    def lineality(self, n_columns):
        return np.full((n_columns, 1), n_columns**-0.5)

    def range_part(self, Z):
        return Z - Z.mean(axis=1, keepdims=True)

    def value(self, W):
        return 0.5 * float(np.square(self.range_part(W)).sum())

    def cancelling(self, W):
        lengths = float(np.linalg.norm(self.range_part(W))), float(np.linalg.norm(W))
        return lengths[1] * (lengths[0] + _MEAN_ROUNDING_SHARE * lengths[1])

    def gradient(self, W):
        return self.range_part(W)

    def prox(self, W, step):
        mean = W.mean(axis=1, keepdims=True)
        return mean + (W - mean) / (1.0 + step)

    def conjugate(self, Z):
        return np.inf if self.dual_gauge(Z) > 0 else 0.5 * float(np.square(self.range_part(Z)).sum())

    def task_quadratic(self, n_columns):
        n = n_columns
        require_memory(32.0 * n * n, f"a quadratic between {n:,} tasks", "take fewer tasks")
        return np.eye(n) - 1.0 / n


def _are_edges(L) -> bool:
    """Tell whether they are pairs of names or of positions; two rows that mirror each other are a matrix.

    >>> _are_edges([(0, 1), (1, 2)]), _are_edges([("a", "b")]), _are_edges([(2, 0), (0, 2)]), _are_edges([[1, -1], [-1, 1]])
    (True, True, False, False)
    """
    pairs = isinstance(L, list | tuple | set) and all(isinstance(e, tuple) and len(e) == 2 for e in L)
    if not pairs or not L:
        return False
    first, *_, last = *L, *L
    mirrored = len(L) == 2 and first == last[::-1]
    ends = [end for edge in L for end in edge]
    return not mirrored and all(
        isinstance(end, str) or (as_whole(end) is not None and end >= 0) for end in ends
    )


def _checked_laplacian(L) -> np.ndarray:
    if hasattr(L, "nodes") and hasattr(L, "edges"):
        raise ModelError(
            f"L is a graph ({type(L).__name__}), not a matrix",
            term="graph_laplacian(..., L)",
            write_instead="write networkx.laplacian_matrix(L, nodelist=tasks.task_names).toarray()",
        )
    if _are_edges(L):
        raise ModelError(
            f"L is a list of edges ({len(L)}), not a matrix",
            term="graph_laplacian(..., L)",
            write_instead="write networkx.laplacian_matrix(networkx.Graph(L), nodelist=nodes).toarray(), nodes being the tasks in their order",
        )
    n = max(shape_of(L) or (), default=1)
    require_memory(
        32.0 * n * n, f"graph_laplacian(..., L), {n:,} x {n:,} and dense,", "take fewer tasks", ModelError
    )
    L = read_dense(L, "graph_laplacian(..., L)", ModelError)
    if L.ndim != 2 or L.shape[0] != L.shape[1] or L.size == 0:
        raise ModelError(
            f"L has shape {L.shape}; it must be square, one row and column per task",
            term="graph_laplacian(..., L)",
        )
    if not np.isfinite(L).all():
        i, j = np.argwhere(~np.isfinite(L))[0]
        raise ModelError(f"L[{i}, {j}] is {L[i, j]}", term="graph_laplacian(..., L)")
    refuse_large_matrix(L, "L", "graph_laplacian(..., L)", ModelError)
    asymmetry = np.abs(0.5 * L - 0.5 * L.T)
    if asymmetry.max() > 0.5e-10 * np.abs(L).max():
        i, j = np.unravel_index(asymmetry.argmax(), L.shape)
        raise ModelError(
            f"L is not symmetric: L[{i}, {j}] = {L[i, j]:.6g} but L[{j}, {i}] = {L[j, i]:.6g}",
            term="graph_laplacian(..., L)",
            write_instead="write (L + L.T) / 2 if that is what you mean",
        )
    # differences below 1e-10 are rounding; gradients and eigenvectors want exact symmetry
    L = 0.5 * L + 0.5 * L.T
    L.flags.writeable = False
    return L
