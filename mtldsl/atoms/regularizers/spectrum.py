"""Functions of the singular values of W: low rank, tasks that share a few directions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.calculus.spectral_matrix import singular_values, thin_svd
from mtldsl.atoms.function import Regularizer, Set, register
from mtldsl.atoms.regularizers.norm import Norm
from mtldsl.system.threads import has_fitting_blas_threads

__all__ = ["SquaredTraceNorm", "TraceNorm", "largest_singular_value", "shrink_singular_values"]

#: Smallest ratio of threshold to largest singular value at which the Gram matrix stands in for the SVD.
GRAM_RATIO = 1e-3


def _gram(W):
    return W.T @ W if W.shape[0] >= W.shape[1] else W @ W.T


def _work(W, *_) -> int:
    return W.size * min(W.shape)


@has_fitting_blas_threads(_work)
def largest_singular_value(W) -> float:
    """||W||_2, relative error of the order of machine precision: the largest eigenvalue of the Gram matrix
    has that.
    """
    return float(np.sqrt(max(np.linalg.eigvalsh(_gram(W))[-1], 0.0)))


@has_fitting_blas_threads(_work)
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
    values, vectors = np.linalg.eigh(_gram(W))
    singular = np.sqrt(np.maximum(values[::-1], 0.0))
    threshold = threshold_from(singular)
    if threshold >= GRAM_RATIO * singular[0]:
        rank = int(np.count_nonzero(singular > threshold))
        basis = vectors[:, ::-1][:, :rank]
        factors = 1.0 - threshold / singular[:rank]
        return (W @ basis * factors) @ basis.T if tall else (basis * factors) @ (basis.T @ W)
    U, singular, Vt = thin_svd(W)
    threshold = threshold_from(singular)
    rank = int(np.count_nonzero(singular > threshold))
    return (U[:, :rank] * (singular[:rank] - threshold)) @ Vt[:rank]


@register
@dataclass(frozen=True, eq=False)
class TraceNorm(Norm):
    r"""The trace norm (nuclear norm): sum of the singular values of W.

    Makes W (p features, q tasks) low-rank: the tasks share a few directions.

    Notes
    -----
    prox: every singular value s -> (s - step)_+. Dual norm: the largest singular value.
    Source: Fazel, Hindi and Boyd, "A rank minimization heuristic with application to minimum order system
    approximation", ACC 2001; Pong, Tseng, Ji and Ye, "Trace norm regularization: reformulations, algorithms,
    and multi-task learning", SIAM J. Optim. 20 (2010).

    Examples
    --------
    >>> import numpy as np
    >>> W = np.diag([3.0, 1.0])
    >>> TraceNorm().value(W)
    4.0
    >>> TraceNorm().prox(W, 1.5).round(12)
    array([[1.5, 0. ], [0. , 0. ]])
    """

    name: ClassVar[str] = "trace_norm"
    formula: ClassVar[str] = r"\|{}\|_*"
    separable: ClassVar[str] = "spectrum"

    def value(self, W):
        return float(singular_values(W).sum())

    def prox(self, W, step):
        return shrink_singular_values(W, lambda singular: step)

    def dual_gauge(self, Z):
        return largest_singular_value(Z)

    def ball(self, radius) -> Set:
        from mtldsl.atoms.sets import TraceNormBall

        return TraceNormBall(radius)


@register
@dataclass(frozen=True, eq=False)
class SquaredTraceNorm(Regularizer):
    r"""The squared trace norm: (sum of the singular values of W)^2, no 1/2.

    Makes W (p features, q tasks) low-rank; it is what a learned covariance of trace 1 between tasks or
    features eliminates to.

    Notes
    -----
    prox: s -> (s - 2 step S)_+ with S = sum of the new singular values, found exactly: over k, S is the
    largest of (s_1 + ... + s_k) / (1 + 2 step k). Conjugate: ||Z||_2^2 / 4.
    Source: Argyriou, Evgeniou and Pontil, "Convex multi-task feature learning", Machine Learning 73 (2008);
    Zhang and Yeung, "A convex formulation for learning task relationships in multi-task learning", UAI 2010.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.diag([3.0, 1.0])
    >>> SquaredTraceNorm().value(W)
    16.0
    >>> SquaredTraceNorm().prox(W, 0.25).round(12)
    array([[2., 0.], [0., 0.]])
    """

    name: ClassVar[str] = "squared_trace_norm"
    formula: ClassVar[str] = r"\|{}\|_*^2"
    separable: ClassVar[str] = "spectrum"
    finite_dual: ClassVar[bool] = True

    def value(self, W):
        return float(singular_values(W).sum() ** 2)

    def prox(self, W, step):
        def threshold(singular):
            totals = np.cumsum(singular) / (1.0 + 2.0 * step * np.arange(1, singular.size + 1))
            return 2.0 * step * float(totals.max())

        return shrink_singular_values(W, threshold)

    def conjugate(self, Z):
        return largest_singular_value(Z) ** 2 / 4.0

    def dual_gauge(self, Z):
        return 0.0
