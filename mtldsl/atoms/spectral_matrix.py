"""Symmetric matrices by their eigenvectors: what closed-form updates return, in memory linear in rank times side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

__all__ = ["SpectralMatrix", "kronecker_apply"]


@dataclass(frozen=True, eq=False)
class SpectralMatrix:
    """S = U diag(values) U^T + rest (I - U U^T), symmetric (n, n).

    basis (n, r) : U, with orthonormal columns
    values (r,)  : the eigenvalues that belong to them
    rest         : the eigenvalue of every direction orthogonal to U

    >>> import numpy as np
    >>> S = SpectralMatrix(np.eye(3)[:, :1], np.array([4.0]), rest=9.0)
    >>> S.dense()
    array([[4., 0., 0.], [0., 9., 0.], [0., 0., 9.]])
    >>> S.power(-0.5).dense().diagonal()
    array([0.5       , 0.33333333, 0.33333333])
    >>> S.trace(), round(S.log_det(), 6)
    (22.0, 5.780744)
    """

    basis: np.ndarray
    values: np.ndarray
    rest: float

    @classmethod
    def multiple_of_identity(cls, value: float, side: int) -> SpectralMatrix:
        return cls(np.zeros((side, 0)), np.zeros(0), float(value))

    @classmethod
    def of(cls, dense) -> SpectralMatrix:
        """From a dense symmetric matrix."""
        values, basis = np.linalg.eigh(np.asarray(dense, float))
        return cls(basis, values, 0.0)

    def __repr__(self) -> str:
        return f"array({self.side}, {self.side})"

    @property
    def shape(self) -> tuple[int, int]:
        return self.side, self.side

    @property
    def side(self) -> int:
        return self.basis.shape[0]

    @property
    def n_rest(self) -> int:
        """The multiplicity of `rest`."""
        return self.side - self.values.size

    def eigenvalues(self) -> np.ndarray:
        """All of them, smallest first."""
        return np.sort(np.concatenate([self.values, np.full(self.n_rest, self.rest)]))

    def apply(self, M) -> np.ndarray:
        """S @ M without forming S."""
        if not self.values.size:
            return self.rest * M
        inner = self.basis.T @ M
        if not self.n_rest:
            return self.basis @ (self.values[:, None] * inner)
        return self.basis @ ((self.values - self.rest)[:, None] * inner) + self.rest * M

    def power(self, p: float) -> SpectralMatrix:
        """S^p: the inverse for p = -1, roots for p = 1/2 and -1/2; an eigenvalue 0 has the negative power inf."""
        with np.errstate(divide="ignore"):
            rest = np.power(self.rest, p) if self.n_rest else 0.0
            return SpectralMatrix(self.basis, np.power(self.values, p), float(rest))

    @cached_property
    def is_positive(self) -> bool:
        """Whether every eigenvalue is > 0."""
        return bool(np.all(self.values > 0)) and (self.n_rest == 0 or self.rest > 0)

    def scaled(self, c: float) -> SpectralMatrix:
        return SpectralMatrix(self.basis, c * self.values, c * self.rest)

    def log_det(self) -> float:
        rest = self.n_rest * np.log(self.rest) if self.n_rest else 0.0
        return float(np.log(self.values).sum() + rest)

    def trace(self) -> float:
        return float(self.values.sum() + self.n_rest * self.rest)

    def dense(self) -> np.ndarray:
        """The matrix itself, (n, n)."""
        S = (self.basis * (self.values - (self.rest if self.n_rest else 0.0))) @ self.basis.T
        if self.n_rest:
            S[np.diag_indices(self.side)] += self.rest
        return 0.5 * (S + S.T)


def kronecker_apply(function: Callable, A: SpectralMatrix, B: SpectralMatrix, W) -> np.ndarray:
    """f(B kron A) vec W as a matrix: in the eigenvectors of A (p, p) and B (q, q), entry (i, j) of W (p, q) times f(a_i b_j).

    >>> import numpy as np
    >>> A, B = SpectralMatrix.of(np.diag([1.0, 2.0])), SpectralMatrix.multiple_of_identity(5.0, 1)
    >>> kronecker_apply(lambda x: 1.0 / x, A, B, np.array([[10.0], [10.0]]))
    array([[2.], [1.]])
    """
    rest_a, rest_b = (S.rest if S.n_rest else S.values[0] for S in (A, B))
    none, row, column = function(rest_a * rest_b), function(A.values * rest_b), function(rest_a * B.values)
    both = function(A.values[:, None] * B.values)
    left, right = A.basis.T @ W, W @ B.basis
    core = (both - row[:, None] - column + none) * (left @ B.basis)
    result = none * W + A.basis @ ((row - none)[:, None] * left)
    return result + (((column - none) * right) + A.basis @ core) @ B.basis.T
