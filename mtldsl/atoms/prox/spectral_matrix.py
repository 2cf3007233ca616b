"""Symmetric matrices by their eigenvectors: what closed-form updates return, in memory linear in rank times side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mtldsl.utils.interrupts import eigh, eigvalsh, svd
from mtldsl.utils.parallel import on_one_blas_thread


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

    def __post_init__(self):
        if not self.n_rest:  # there is no such direction
            object.__setattr__(self, "rest", 0.0)

    @classmethod
    def multiple_of_identity(cls, value: float, side: int) -> SpectralMatrix:
        return cls(np.zeros((side, 0)), np.zeros(0), float(value))

    @classmethod
    def of(cls, dense) -> SpectralMatrix:
        """From a dense symmetric matrix."""
        values, basis = eigh(np.asarray(dense, float))
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
        # not by values - rest, which cancel where these are far apart
        return self.basis @ (self.values[:, None] * inner) + self.rest * (M - self.basis @ inner)

    def power(self, p: float) -> SpectralMatrix:
        """S^p: the inverse for p = -1, roots for p = 1/2 and -1/2; an eigenvalue 0 has the negative power inf."""
        with np.errstate(divide="ignore"):
            rest = np.power(self.rest, p) if self.n_rest else 0.0
            return SpectralMatrix(self.basis, np.power(self.values, p), float(rest))

    @cached_property
    def is_positive(self) -> bool:
        """Tell whether every eigenvalue is > 0."""
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
        S = (self.basis * (self.values - self.rest)) @ self.basis.T
        if self.n_rest:
            S[np.diag_indices(self.side)] += self.rest
        return 0.5 * (S + S.T)


def two_sided_product(A: SpectralMatrix | None, W, B: SpectralMatrix | None) -> np.ndarray:
    """A W B, where None stands for the identity."""
    W = W if A is None else A.apply(W)
    return W if B is None else B.apply(W.T).T


def kronecker_apply(function: Callable, A: SpectralMatrix, B: SpectralMatrix, W) -> np.ndarray:
    """f(B kron A) vec W as a matrix: in the eigenvectors of A (p, p) and B (q, q), entry (i, j) of W (p, q) times f(a_i b_j).

    >>> import numpy as np
    >>> A, B = SpectralMatrix.of(np.diag([1.0, 2.0])), SpectralMatrix.multiple_of_identity(5.0, 1)
    >>> kronecker_apply(lambda x: 1.0 / x, A, B, np.array([[10.0], [10.0]]))
    array([[2.], [1.]])
    """
    both = function(A.values[:, None] * B.values)
    if not A.n_rest and not B.n_rest:
        return A.basis @ (both * (A.basis.T @ W @ B.basis)) @ B.basis.T
    # four parts of W by themselves: subtracting values of f would cancel where these are far apart
    left, right = A.basis.T @ W, W @ B.basis
    inner = left @ B.basis
    result = A.basis @ (both * inner) @ B.basis.T
    if B.n_rest:
        result += A.basis @ (function(A.values * B.rest)[:, None] * (left - inner @ B.basis.T))
    if A.n_rest:
        result += ((right - A.basis @ inner) * function(A.rest * B.values)) @ B.basis.T
    if A.n_rest and B.n_rest:
        result += function(A.rest * B.rest) * (W - A.basis @ left - (right - A.basis @ inner) @ B.basis.T)
    return result


def thin_svd(W) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U, s, V^T of W = U diag(s) V^T, without the columns that s has no value for."""
    return _decomposed(W, True)


def map_singular_values(W, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """U diag(function(s)) V^T for W = U diag(s) V^T, s falling; function(s) falls too, and is at least zero."""
    U, s, Vt = thin_svd(W)
    kept = function(s)
    rank = int(np.count_nonzero(kept))
    return (U[:, :rank] * kept[:rank]) @ Vt[:rank]


def singular_values(W) -> np.ndarray:
    """s alone."""
    return _decomposed(W, False)


@on_one_blas_thread
def _decomposed(W, with_vectors: bool):
    """LAPACK's divide and conquer may fail on a finite matrix ("SVD did not converge", seen on School); then by QR iterations."""
    try:
        return svd(W, compute_uv=with_vectors)
    except np.linalg.LinAlgError:
        if not np.isfinite(W).all():
            raise
        from scipy import linalg  # slow to import, and rarely needed

        return linalg.svd(W, full_matrices=False, compute_uv=with_vectors, lapack_driver="gesvd")


# --------------------------------------------------------------------------------------------------------------
# Singular values without a whole decomposition: the largest one, and all of them less a threshold.


#: Least ratio of threshold to largest singular value at which the Gram matrix stands in for the SVD.
THRESHOLD_RATIO = 1e-3


def _gram(W):
    return W.T @ W if W.shape[0] >= W.shape[1] else W @ W.T


@on_one_blas_thread
def largest_singular_value(W) -> float:
    """||W||_2, relative error of the order of machine precision: the largest eigenvalue of the Gram matrix
    has that.
    """
    return float(np.sqrt(max(eigvalsh(_gram(W))[-1], 0.0)))


@on_one_blas_thread
def shrink_singular_values(W, threshold_from: Callable[[np.ndarray], float]) -> np.ndarray:
    """U (S - threshold)_+ V^T for W = U S V^T, where the threshold is a number found from the singular
    values, largest first.

    With G = W^T W = V S^2 V^T (G = W W^T for a wide W) the result is W f(G), f(x) = (1 - t / sqrt(x))_+,
    which costs a half to a quarter of an SVD. Squaring spoils small singular values s, by about eps s_1^2 /
    s, but f is 0 below t: with E the rounding error of G and its eigenvectors, ||E|| ~ eps s_1^2, the error
    in the eigenbasis is E_ij times s_i (f(s_i^2) - f(s_j^2)) / (s_i^2 - s_j^2), which is at most 1/t over all
    pairs. So the result is off by about eps s_1 (s_1 / t): below 1e-12 s_1 for t >= 1e-3 s_1 (measured: 3e-15
    s_1 there). Below that ratio the SVD itself is taken.
    """
    tall = W.shape[0] >= W.shape[1]
    values, vectors = eigh(_gram(W))
    singular = np.sqrt(np.maximum(values[::-1], 0.0))
    threshold = threshold_from(singular)
    if threshold >= THRESHOLD_RATIO * singular[0]:
        rank = int(np.count_nonzero(singular > threshold))
        basis = vectors[:, ::-1][:, :rank]
        factors = 1.0 - threshold / singular[:rank]
        return (W @ basis * factors) @ basis.T if tall else (basis * factors) @ (basis.T @ W)
    return map_singular_values(W, lambda singular: np.maximum(singular - threshold_from(singular), 0.0))


# --------------------------------------------------------------------------------------------------------------
# A symmetric matrix by its eigenvectors that also keeps its entries, so that zeros stay zeros.


@dataclass(frozen=True, eq=False, repr=False)
class SymmetricMatrix(SpectralMatrix):
    """S = U diag(values) U^T with its entries (n, n) as they were given.

    >>> import numpy as np
    >>> S = SymmetricMatrix.of(np.array([[2.0, 0.0, 0.5], [0.0, 1.0, 0.0], [0.5, 0.0, 3.0]]))
    >>> int((S.dense() == 0).sum()), round(S.trace(), 12)
    (4, 6.0)
    """

    entries: np.ndarray

    @classmethod
    def of(cls, dense) -> SymmetricMatrix:
        """From a dense symmetric matrix."""
        entries = np.array(dense, float)
        spectral = SpectralMatrix.of(entries)
        return cls(spectral.basis, spectral.values, 0.0, entries)

    def dense(self) -> np.ndarray:
        return self.entries.copy()

    def scaled(self, c: float) -> SpectralMatrix:
        return SymmetricMatrix(self.basis, c * self.values, 0.0, c * self.entries)
