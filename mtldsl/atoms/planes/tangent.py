"""The identity less the derivative of a structured hinge's proximal step: a projection on a few sums of samples."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["Tangent"]


class Tangent:
    r"""The orthogonal projection I - J on a space of scores, J the derivative of a proximal step.

    groups (n,), signs (n,) : sample j has the entry signs[j] in the vector of groups[j], -1: in none; group g has sizes[g] samples
    pool (n,)               : of a sample that moves by itself, the pool, -1: it does not; outside `pinned` pools their sums stay
    reach (G, pools)        : beside its own samples, group g moves the sum of a pool that is not pinned by so much

    It is Q Q^T with the orthonormal columns Q: unit vectors of the samples of pinned pools, those of other pools less their mean, and
    L^{-1} V of the group vectors V with Gram matrix L L^T = diag(sizes) + reach diag(1 / pool sizes) reach^T.
    """

    def __init__(self, groups, signs, sizes, pool=None, pinned=None, reach=None):
        self.groups, self.signs, self.sizes = groups, signs, sizes
        self.pool: Any = pool
        self.pinned: Any = pinned
        self.reach: Any = reach

    @property
    def rank(self) -> int:
        """Rows of `half`, at least the rank."""
        return len(self.sizes) + (0 if self.pool is None else len(self._alone))

    @cached_property
    def _alone(self) -> np.ndarray:
        """The samples in pools, but those that are one by themselves and may not move."""
        inside = self.pool >= 0
        moves = self.pinned | (self._pool_sizes > 1)
        inside[inside] = moves[self.pool[inside]]
        return np.flatnonzero(inside)

    @cached_property
    def _pool_sizes(self) -> np.ndarray:
        return np.bincount(self.pool[self.pool >= 0], minlength=len(self.pinned))

    @cached_property
    def _means(self) -> sparse.csr_matrix:
        """The means of all pools, 0 of those that are pinned."""
        of = np.flatnonzero(self.pool >= 0)
        of = of[~self.pinned[self.pool[of]]]
        weights = 1.0 / self._pool_sizes[self.pool[of]]
        return sparse.csr_matrix((weights, (self.pool[of], of)), shape=(len(self.pinned), len(self.pool)))

    @cached_property
    def _sums(self) -> sparse.csr_matrix:
        """The group vectors, (G, n)."""
        of = np.flatnonzero(self.groups >= 0)
        shape = len(self.sizes), len(self.groups)
        return sparse.csr_matrix((self.signs[of], (self.groups[of], of)), shape=shape)

    @cached_property
    def _factor(self) -> np.ndarray:
        """L, or the diagonal of it."""
        if self.reach is None or not self.reach.any():
            return np.sqrt(self.sizes)
        gram = (self.reach / np.maximum(self._pool_sizes, 1)) @ self.reach.T
        gram[np.diag_indices_from(gram)] += self.sizes
        return np.linalg.cholesky(gram)

    def half(self, X) -> np.ndarray:
        """A (rank, d) with A^T A = X^T (I - J) X, for X (n, d), dense or CSR."""
        grouped = _dense(self._sums @ X)
        if self.pool is None:
            return grouped / self._factor[:, None]
        means = _dense(self._means @ X)
        alone = _dense(X[self._alone]) - means[self.pool[self._alone]]
        if len(self.sizes) == 0:
            return alone
        return np.vstack([alone, self._solved(grouped + self.reach @ means)])

    def _solved(self, grouped, transposed: bool = False):
        if self._factor.ndim == 1:
            return grouped / self._factor[:, None]
        from scipy.linalg import solve_triangular

        return solve_triangular(self._factor, grouped, lower=True, trans=int(transposed), check_finite=False)

    def product(self, v) -> np.ndarray:
        """(I - J) v for v (n,)."""
        moved, grouped, means = np.zeros(len(v)), self._sums @ v, None
        if self.pool is not None:
            means = self._means @ v
            moved[self._alone] = v[self._alone] - means[self.pool[self._alone]]
            if len(self.sizes) == 0:
                return moved
            grouped = grouped + self.reach @ means
        t = self._solved(self._solved(grouped[:, None]), transposed=True)[:, 0]
        moved += self._sums.T @ t
        return moved if means is None else moved + self._means.T @ (self.reach.T @ t)

    def parts_of(self, X, exact: bool = True) -> tuple[np.ndarray, sparse.csr_array, Any]:
        """(alone (n,), pools (P, d), grouped (G, d)) with X^T (I - J) X = X^T diag(alone) X - pools^T pools + grouped^T grouped, X sparse.

        exact : False: what `reach` adds to groups is left out, and `grouped` is sparse
        """
        alone, d = np.zeros(len(self.groups), dtype=bool), X.shape[1]
        grouped: Any = sparse.csr_array(self._sums @ X)
        if not exact or self.pool is None:
            grouped = sparse.csr_array(sparse.diags_array(1.0 / np.sqrt(self.sizes)) @ grouped)
        if self.pool is None:
            return alone, sparse.csr_array((0, d)), grouped.toarray() if exact else grouped
        alone[self._alone] = True
        means = sparse.csr_array(self._means @ X)
        roots = np.sqrt(np.where(self.pinned | (self._pool_sizes < 2), 0, self._pool_sizes))
        pools = sparse.csr_array(sparse.diags_array(roots) @ means)
        if not exact:
            return alone, pools, grouped
        if len(self.sizes) == 0:
            return alone, pools, np.zeros((0, d))
        return alone, pools, self._solved(grouped.toarray() + _dense(sparse.csr_array(self.reach) @ means))


def _dense(X) -> np.ndarray:
    return X.toarray() if sparse.issparse(X) else np.asarray(X)
