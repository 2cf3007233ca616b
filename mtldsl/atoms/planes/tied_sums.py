"""Many groups that move the sums of pools beside their own samples: the factor of their Gram matrix in memory linear in the groups."""

from __future__ import annotations

from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["TiedSums", "reach_of"]

#: groups up to which the Gram matrix is an array
_MOST_DENSE = 512


def reach_of(first: np.ndarray, shares: np.ndarray, n_pools: int) -> Any:
    """(G, pools): group g moves the pool first[g] by shares[g, 0] and the next by shares[g, 1]; first -1: none. Sparse where it is large.

    >>> reach_of(np.array([0, -1, 1]), np.array([[3.0, 1.0], [0.0, 0.0], [2.0, 0.0]]), 2)
    array([[3., 1.],
           [0., 0.],
           [0., 2.]])
    """
    one = np.flatnonzero(first >= 0)
    two = one[shares[one, 1] > 0.0]
    if max(len(first), n_pools) <= _MOST_DENSE:
        reach = np.zeros((len(first), n_pools))
        reach[one, first[one]] = shares[one, 0]
        reach[two, first[two] + 1] = shares[two, 1]
        return reach
    at = np.append(one, two), np.append(first[one], first[two] + 1)
    return sparse.csr_array((np.append(shares[one, 0], shares[two, 1]), at), shape=(len(first), n_pools))


class TiedSums:
    r"""L L^T = diag(sizes) + reach diag(1 / pools) reach^T, reach (G, P) in order: every group moves one pool, or two neighbours, none before
    those of the group before.

    That is the covariance of y_g = sum_p reach_gp x_p + noise of variance sizes_g, with x_p of variance 1 / pools_p by themselves: L^-1 y is
    what each y_g has beside its prediction from those before, over its deviation, and Kalman's filter remembers two pools.

    Source: Kailath, "An innovations approach to least-squares estimation", IEEE Trans. Automatic Control 13 (1968).
    """

    def __init__(self, sizes: np.ndarray, reach: Any, pools: np.ndarray):
        self.sizes, self.pools = np.asarray(sizes, float), np.asarray(pools, float)
        self.reach = sparse.csr_array(reach)
        self.reach.sort_indices()

    @cached_property
    def _gains(self) -> list[tuple]:
        """For every group (pools by which the filter moves on, its shares h of both, what they learn from it, 1 / deviation)."""
        indptr, indices, data = (
            part.tolist() for part in (self.reach.indptr, self.reach.indices, self.reach.data)
        )
        variances = np.append(1.0 / self.pools, 0.0).tolist()
        gains, at = [], -2
        a = b = c = 0.0  # covariance [[a, c], [c, b]] of the pools `at` and `at + 1`
        for size, start, end in zip(self.sizes.tolist(), indptr[:-1], indptr[1:], strict=True):
            if start == end:
                gains.append((0, 0.0, 0.0, 0.0, 0.0, 1.0 / sqrt(size)))
                continue
            on = indices[start] - at
            if on == 1:
                a, b, c = b, variances[at + 2], 0.0
            elif on:
                a, b, c = variances[indices[start]], variances[indices[start] + 1], 0.0
            at += on
            h, k = data[start], data[start + 1] if end > start + 1 else 0.0
            ph, pk = a * h + c * k, c * h + b * k
            variance = size + h * ph + k * pk
            u, v = ph / variance, pk / variance
            # (I - g h^T) P (I - g h^T)^T + size g g^T, which stays positive
            p, q, r, s = 1.0 - u * h, -u * k, -v * h, 1.0 - v * k
            a, b, c = (
                p * (p * a + q * c) + q * (p * c + q * b) + size * u * u,
                r * (r * a + s * c) + s * (r * c + s * b) + size * v * v,
                r * (p * a + q * c) + s * (p * c + q * b) + size * u * v,
            )
            gains.append((min(on, 2), h, k, u, v, 1.0 / sqrt(variance)))
        return gains

    def begin(self) -> None:
        """The next rows are those of the first groups."""
        self._one = self._two = None

    def next(self, start: int, rows: np.ndarray) -> np.ndarray:
        """L^-1 of the rows of the next groups, in their place."""
        one, two = self._one, self._two
        for row, (on, h, k, u, v, scale) in zip(rows, self._gains[start : start + len(rows)], strict=True):
            if h or k:
                if on == 1 and two is not None:
                    one, two = two, None
                elif on:
                    one = two = None
                if one is not None:
                    row -= h * one
                if k and two is not None:
                    row -= k * two
                one = u * row if one is None else np.add(one, u * row, out=one)
                if v:
                    two = v * row if two is None else np.add(two, v * row, out=two)
            row *= scale
        self._one, self._two = one, two
        return rows

    def innovations(self, rows: np.ndarray) -> np.ndarray:
        """L^-1 rows, (G, d)."""
        self.begin()
        return self.next(0, np.array(rows, float))

    @cached_property
    def _woodbury(self) -> tuple[Any, np.ndarray]:
        from scipy.linalg import cholesky_banded

        over_size = sparse.csr_array(sparse.diags_array(1.0 / self.sizes) @ self.reach)
        inner = sparse.csr_array(over_size.T @ self.reach)
        bands = np.zeros((2, len(self.pools)))  # tridiagonal, since no group moves more than two
        bands[1] = inner.diagonal() + self.pools
        bands[0, 1:] = inner.diagonal(1)
        return over_size, cholesky_banded(bands)

    def solve(self, y: np.ndarray) -> np.ndarray:
        """L^-T L^-1 y, (G,)."""
        from scipy.linalg import cho_solve_banded

        over_size, factor = self._woodbury
        return y / self.sizes - over_size @ cho_solve_banded((factor, False), over_size.T @ y)
