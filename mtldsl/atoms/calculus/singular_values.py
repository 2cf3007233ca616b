"""Singular values without a whole decomposition: the largest one, and all of them less a threshold."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mtldsl.atoms.calculus.spectral_matrix import thin_svd
from mtldsl.system.long_calls import eigh, eigvalsh
from mtldsl.system.threads import on_one_blas_thread

__all__ = ["largest_singular_value", "shrink_singular_values"]

#: Smallest ratio of threshold to largest singular value at which the Gram matrix stands in for the SVD.
GRAM_RATIO = 1e-3


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
    if threshold >= GRAM_RATIO * singular[0]:
        rank = int(np.count_nonzero(singular > threshold))
        basis = vectors[:, ::-1][:, :rank]
        factors = 1.0 - threshold / singular[:rank]
        return (W @ basis * factors) @ basis.T if tall else (basis * factors) @ (basis.T @ W)
    U, singular, Vt = thin_svd(W)
    threshold = threshold_from(singular)
    rank = int(np.count_nonzero(singular > threshold))
    return (U[:, :rank] * (singular[:rank] - threshold)) @ Vt[:rank]
