"""Quadratic penalties on the weights: ridge, and the ridge between correlated features and tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from mtldsl.atoms.atom import RowProfile, in_parentheses, register
from mtldsl.atoms.matrix_function import Regularizer
from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix, kronecker_apply, two_sided_product
from mtldsl.atoms.regularizers.norm_base import check_broadcast, checked_weights, transposed_weights
from mtldsl.errors import ModelError
from mtldsl.utils.arrays import read_dense
from mtldsl.utils.caching import cached_property
from mtldsl.utils.memory import require_memory
from mtldsl.utils.validation import refuse_large_matrix


class QuadraticPenalty(Regularizer):
    """Base of quadratics: the conjugate is finite everywhere where there is strong convexity, else along no direction without weight."""

    @property
    def absorbs(self) -> bool:
        return self.strong_convexity > 0

    @property
    def finite_dual(self) -> bool:
        return self.strong_convexity > 0


# --------------------------------------------------------------------------------------------------------------
# The quadratic of a matrix-normal prior whose two precisions are given.

#: An eigenvalue this small, relatively, is zero; likewise an asymmetry.
_EIGENVALUE_ROUNDING_SHARE = 1e-10


def checked_symmetric(matrix, typed: str, *, positive: bool = False) -> SpectralMatrix:
    """A symmetric positive semidefinite (or definite) matrix by its eigenvectors; ModelError where it is none."""
    if isinstance(matrix, SpectralMatrix):
        return matrix
    wanted = f"a symmetric positive {'' if positive else 'semi'}definite matrix"
    if sparse.issparse(matrix):
        n = matrix.shape[0]
        # a dense one, and its eigenvectors
        require_memory(
            32.0 * n * matrix.shape[-1],
            f"{typed}: {n:,} rows and columns,",
            "write a smaller matrix",
            ModelError,
        )
    what = f"{typed}: write {wanted}, a square array of numbers"
    dense = read_dense(matrix, what, ModelError)
    if dense.ndim != 2 or dense.shape[0] != dense.shape[1] or not dense.size:
        raise ModelError(
            term=typed,
            write_instead=f"write {wanted}, a square array of numbers; this has the shape {dense.shape}",
        )
    if not np.isfinite(dense).all():
        raise ModelError(
            "the matrix contains NaN or infinity", term=typed, write_instead="write finite numbers"
        )
    refuse_large_matrix(dense, "matrix", typed, ModelError)
    asymmetry = np.abs(dense - dense.T)
    if asymmetry.max() > _EIGENVALUE_ROUNDING_SHARE * np.abs(dense).max():
        i, j = np.unravel_index(np.argmax(asymmetry), dense.shape)
        raise ModelError(
            f"the matrix is not symmetric: entry [{i}, {j}] is {dense[i, j]:.6g} but [{j}, {i}] is {dense[j, i]:.6g}",
            term=typed,
            write_instead="write (A + A.T) / 2",
        )
    spectral = SpectralMatrix.of(0.5 * (dense + dense.T))
    least, size = spectral.values[0], np.abs(spectral.values).max()
    if least < -_EIGENVALUE_ROUNDING_SHARE * size or (
        positive and least <= _EIGENVALUE_ROUNDING_SHARE * size
    ):
        raise ModelError(
            f"the matrix has the eigenvalue {least:.3g}",
            term=typed,
            write_instead=f"write {wanted}, such as A + 1e-6 * np.eye({len(dense)})",
        )
    values = np.where(spectral.values <= _EIGENVALUE_ROUNDING_SHARE * size, 0.0, spectral.values)
    return SpectralMatrix(spectral.basis, values, 0.0)


@register
@dataclass(frozen=True, eq=False)
class KroneckerRidge(QuadraticPenalty):
    r"""Ridge between correlated features and tasks: 1/2 tr(A W B W^T), A (p, p) and B (q, q) given.

    1/2 vec(W)^T (B kron A) vec(W): minus the logarithm, up to a constant, of a matrix-normal density of W (p, q) whose
    features have the precision A and whose tasks have the precision B. With both learned it is `matrix_normal`.

    Parameters
    ----------
    rows : array A (p, p), symmetric positive semidefinite
        Between features.
    columns : array B (q, q), symmetric positive semidefinite
        Between tasks.

    Raises
    ------
    ModelError
        Where a matrix is not square, finite, symmetric and positive semidefinite, or does not fit the argument's shape.

    Notes
    -----
    prox: in the eigenvectors of A and B, entry (i, j) times 1 / (1 + step a_i b_j). Conjugate: 1/2 tr(A^-1 Z B^-1 Z^T), +inf
    where Z has a part that A or B gives no weight.
    Source: Gupta and Nagar, "Matrix variate distributions", Chapman & Hall 1999, sec. 2.2.

    Examples
    --------
    >>> import numpy as np
    >>> penalty = KroneckerRidge(np.diag([1.0, 4.0]), np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> round(penalty.value(np.array([[1.0, 0.0], [0.0, 1.0]])), 12)
    5.0
    """

    rows: SpectralMatrix
    columns: SpectralMatrix

    name: ClassVar[str] = "kronecker_ridge"
    meaning: ClassVar[str] = "a ridge between correlated features and tasks, with given matrices $A$ and $B$"
    formula: ClassVar[str] = r"\tfrac12 \operatorname{tr}(A {} B {}^\top)"

    def __post_init__(self):
        for field in ("rows", "columns"):
            typed = f"{self.name}(..., {field}=...)"
            object.__setattr__(self, field, checked_symmetric(getattr(self, field), typed))

    @classmethod
    def examples(cls):
        # Any: a user types arrays, of which the atom makes what its fields are declared to hold
        A: Any = np.diag([2.0, 1.0, 0.5, 3.0, 1.5]) + 0.2
        B: Any = np.array([[2.0, 0.5, 0, 0], [0.5, 1.0, 0.2, 0], [0, 0.2, 1.5, -0.3], [0, 0, -0.3, 0.8]])
        low_rank = SpectralMatrix(np.linalg.qr(np.vander(np.arange(5.0), 2))[0], np.array([0.1, 0.4]), 2.0)
        singular: Any = np.outer([1.0, -1.0, 0, 0], [1.0, -1.0, 0, 0])
        return [cls(A, B), cls(low_rank, B), cls(A, singular)]

    def two_sided_quadratic(self):
        return self.rows, self.columns

    def of_transpose(self, shape):
        return KroneckerRidge(self.columns, self.rows)

    def check(self, shape):
        for S, side, what in (
            (self.rows, shape[0], "rows (features)"),
            (self.columns, shape[1], "columns (tasks)"),
        ):
            if S.side != side:
                return f"a matrix of side {S.side} is given for {side} {what}"
        return None

    @cached_property
    def strong_convexity(self) -> float:
        return float(self.rows.eigenvalues()[0] * self.columns.eigenvalues()[0])

    @cached_property
    def curvature(self) -> float:
        return float(self.rows.eigenvalues()[-1] * self.columns.eigenvalues()[-1])

    def value(self, W):
        return 0.5 * float(np.vdot(W, self.gradient(W)))

    def gradient(self, W):
        return two_sided_product(self.rows, W, self.columns)

    def prox(self, W, step):
        return kronecker_apply(lambda x: 1.0 / (1.0 + step * x), self.rows, self.columns, W)

    def conjugate(self, Z):
        if self.dual_gauge(Z) > 0:
            return np.inf

        def inverse(x):  # 0 of what is 0
            return np.divide(1.0, x, out=np.zeros(np.shape(x)), where=np.greater(x, 0))

        return 0.5 * float(np.vdot(Z, kronecker_apply(inverse, self.rows, self.columns, Z)))

    def lineality(self, n_columns):
        B = self.columns
        if self.absorbs or not self.rows.is_positive:
            return None
        rest = (
            np.eye(n_columns) - B.basis @ B.basis.T if B.n_rest and B.rest <= 0 else np.zeros((n_columns, 0))
        )
        inside = np.linalg.svd(rest)[0][:, : B.n_rest] if rest.size else rest
        return np.hstack([B.basis[:, B.values <= 0], inside])

    def dual_gauge(self, Z):
        if self.absorbs:
            return 0.0
        return np.inf if np.abs(Z - self.dual_project(Z)).max() > 1e-12 * np.abs(Z).max() else 0.0

    def dual_project(self, Z):
        if self.absorbs:
            return Z
        return kronecker_apply(lambda x: np.where(x > 0, 1.0, 0.0), self.rows, self.columns, Z)

    def task_quadratic(self, n_columns):
        every = self.rows.eigenvalues()
        if every[0] <= 0.0 or every[-1] - every[0] > 1e-14 * every[-1]:  # not a multiple of the identity
            return None
        return every[0] * self.columns.dense()


# --------------------------------------------------------------------------------------------------------------
# Quadratic penalties on the size of W.


@register
@dataclass(frozen=True, eq=False)
class Ridge(QuadraticPenalty):
    r"""Ridge: 1/2 sum over entries of a_ij W_ij^2, which is 1/2 ||W||_F^2 without weights.

    Shrinks the entries of W (p, q), none to exactly zero, and makes any model strongly convex.

    Parameters
    ----------
    weights : number or array a that broadcasts to the shape of W, >= 0, default all 1
        What each entry costs; an entry of weight 0 is not penalised.

    Raises
    ------
    ModelError
        Where a weight is negative or not finite, or the weights do not broadcast to the argument's shape.

    Notes
    -----
    prox: W / (1 + step a). Conjugate: 1/2 sum Z_ij^2 / a_ij, +inf where Z_ij != 0 has a_ij = 0.
    Source: Hoerl and Kennard, "Ridge regression", Technometrics 12 (1970).

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[3.0, -1.0], [0.5, 2.0]])
    >>> Ridge().value(W)
    7.125
    >>> Ridge(weights=[2.0, 0.0]).gradient(W)
    array([[ 6., -0.], [ 1.,  0.]])
    """

    weights: float | np.ndarray | None = None

    name: ClassVar[str] = "ridge"
    meaning: ClassVar[str] = "half the sum of squared weights"
    formula: ClassVar[str] = r"\tfrac12\|{}\|_F^2"
    separable: ClassVar[str] = "entries"
    monotone: ClassVar[bool] = True
    weights_add: ClassVar[bool] = True

    def __post_init__(self):
        object.__setattr__(self, "weights", checked_weights(self.weights, self.name, 2))

    @classmethod
    def examples(cls):
        per_entry = 0.25 + np.arange(20.0).reshape(5, 4) / 7
        return [cls(), cls(weights=2.5), cls(weights=per_entry), cls(weights=np.array([1.0, 0.0, 2.0, 0.5]))]

    def check(self, shape):
        return check_broadcast(self.weights, shape)

    def latex(self, argument):
        return super().latex(
            argument if self.weights is None else rf"\sqrt{{a}} \circ {in_parentheses(argument)}"
        )

    @property
    def profile(self):
        return RowProfile(square=1.0 if self.weights is None else self.weights)

    def on_rows(self, rows, shape):
        if not isinstance(self.weights, np.ndarray):
            return self
        return Ridge(np.broadcast_to(self.weights, shape)[rows])

    def of_transpose(self, shape):
        return Ridge(transposed_weights(self.weights))

    @cached_property
    def strong_convexity(self) -> float:
        return 1.0 if self.weights is None else float(np.min(self.weights))

    @cached_property
    def curvature(self) -> float:
        return 1.0 if self.weights is None else float(np.max(self.weights))

    def value(self, W):
        squares = np.square(W)
        return 0.5 * float(squares.sum() if self.weights is None else (self.weights * squares).sum())

    def gradient(self, W):
        return W.copy() if self.weights is None else self.weights * W

    def prox(self, W, step):
        return W / (1.0 + (step if self.weights is None else step * self.weights))

    def conjugate(self, Z):
        if self.weights is None:
            return 0.5 * float(np.square(Z).sum())
        if self.dual_gauge(Z) > 0:
            return np.inf
        weights = np.broadcast_to(self.weights, Z.shape)
        held = weights > 0
        return 0.5 * float(np.sum(np.square(Z[held]) / weights[held]))

    def dual_gauge(self, Z):
        if self.weights is None or self.absorbs:
            return 0.0
        return np.inf if np.any(Z[np.broadcast_to(self.weights, Z.shape) == 0]) else 0.0

    def dual_project(self, Z):
        return Z if self.absorbs else np.where(np.asarray(self.weights) == 0, 0.0, Z)

    def task_quadratic(self, n_columns):
        if not isinstance(self.weights, np.ndarray):
            return (1.0 if self.weights is None else self.weights) * np.eye(n_columns)
        if self.weights.ndim == 2 and self.weights.shape[0] > 1:
            return None
        return np.diag(np.broadcast_to(self.weights.ravel(), n_columns))
