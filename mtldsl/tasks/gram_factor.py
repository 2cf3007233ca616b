"""A Gram matrix as the inner products of a few features: pivoted Cholesky, K = F F^T up to rounding."""

from __future__ import annotations

import numpy as np

from mtldsl.errors import DataError
from mtldsl.system.memory import available_memory, gib

__all__ = ["factor_gram"]

#: Relative cuts tried one after another, so that a matrix with rounding errors of its own is factored no finer than those. The
#: last is what counts as rounding, in double and in single precision: about the square root of the one, ten times the other.
_CUTS: dict[np.dtype, tuple[float, ...]] = {
    np.dtype(np.float64): (1e-12, 1e-10, 1e-8),
    np.dtype(np.float32): (1e-12, 1e-10, 1e-8, 1e-6),
}

#: Side of the blocks in which K - F F^T is formed, so that it needs little memory.
_BLOCK = 1024


def factor_gram(K: np.ndarray, what: str) -> tuple[np.ndarray, np.ndarray]:
    """(features F (n, r), pivots (r,)) with K = F F^T, and F[pivots] lower triangular.

    r is the numerical rank: pivoting ends where every remaining diagonal entry of K - F F^T is at most `cut` times the largest
    of K, and no entry of K - F F^T may be larger than ten times that. cut = 1e-12; where rounding errors in K itself forbid that,
    1e-10 or 1e-8 (also 1e-6 for numbers in single precision).

    K : (n, n). Raises DataError, in terms of `what`, where K is not symmetric, not positive semidefinite up to rounding (the
    message says the most negative eigenvalue), or too large for the memory there is: 5 n^2 numbers.

    >>> import numpy as np
    >>> F, pivots = factor_gram(np.array([[4.0, 2.0, 4.0], [2.0, 2.0, 2.0], [4.0, 2.0, 4.0]]), "K")
    >>> F.shape, pivots, bool(np.allclose(F @ F.T, [[4, 2, 4], [2, 2, 2], [4, 2, 4]]))
    ((3, 2), array([0, 1]), True)
    """
    from scipy.linalg.lapack import dpstrf

    cuts = _CUTS[np.dtype(np.float32 if K.dtype == np.float32 else np.float64)]
    n = K.shape[0]
    require_room(n, what)
    K = _symmetric(K, what, cuts[-1])
    largest = float(K.diagonal().max())
    for cut in cuts:
        if largest <= 0:
            break  # no feature at all, or not positive semidefinite
        triangle, order, rank, _ = dpstrf(K, tol=cut * largest, lower=1)
        features = np.empty((n, rank))
        features[order - 1] = np.tril(triangle[:, :rank])
        del triangle
        if _remainder(K, features) <= 10 * cut * largest:
            return features, order[:rank].astype(int) - 1
    if not K.any():
        raise DataError(f"{what} is zero between all rows", write_instead="leave it out")
    smallest = float(np.linalg.eigvalsh(K)[0])
    raise DataError(
        f"{what} is not positive semidefinite: its most negative eigenvalue is {smallest:.3g}, its largest diagonal entry "
        f"{largest:.3g}",
        write_instead="give a kernel whose Gram matrices are (where only rounding makes it negative, because rows lie far from "
        "zero: standardize() first)",
    )


def require_room(n: int, what: str) -> None:
    """DataError where a Gram matrix of n rows, and what its factors need, is more than the memory there is."""
    needed, available = 5 * 8.0 * n * n, available_memory()
    if needed > available:
        raise DataError(
            f"{what} over {n} distinct rows needs {gib(needed)} of memory, and {gib(available)} are there; "
            "subsample(rows) first, or write approximate features of the kernel (random Fourier features) as columns of X"
        )


def _symmetric(K: np.ndarray, what: str, rounding: float) -> np.ndarray:
    K = K.astype(float)
    scale = float(np.abs(K).max())
    apart = np.abs(K - K.T)
    if apart.max() > rounding * scale:
        i, j = np.unravel_index(int(apart.argmax()), apart.shape)
        raise DataError(
            f"{what} is not symmetric: {K[i, j]:.6g} between the rows {i} and {j}, but {K[j, i]:.6g} between {j} and {i}"
        )
    return (K + K.T) / 2


def _remainder(K: np.ndarray, features: np.ndarray) -> float:
    """max_ij |K - F F^T|."""
    starts = range(0, K.shape[0], _BLOCK)
    return max(float(np.abs(K[a : a + _BLOCK] - features[a : a + _BLOCK] @ features.T).max()) for a in starts)
