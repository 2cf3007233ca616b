"""The identity less the derivative of a structured hinge's proximal step: a projection on a few sums of samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.atoms.planes.tied_sums import TiedSums

__all__ = ["Tangent"]


class Tangent:
    r"""The orthogonal projection I - J on a space of scores, J the derivative of a proximal step.

    groups (n,), signs (n,) : sample j has the entry signs[j] in the vector of groups[j], -1: in none; group g has sizes[g] samples
    pool (n,)               : of a sample that moves by itself, the pool, -1: it does not; outside `pinned` pools their sums stay
    reach (G, pools)        : beside its own samples, group g moves the sum of a pool that is not pinned by so much; sparse where it is large

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
    def _factor(self) -> Any:
        """L, the diagonal of it, or its inverse as recursion where it is large."""
        if self.reach is None or not (self.reach.nnz if sparse.issparse(self.reach) else self.reach.any()):
            return np.sqrt(self.sizes)
        if sparse.issparse(self.reach):
            return TiedSums(self.sizes, self.reach, np.maximum(self._pool_sizes, 1))
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

    def _solved(self, grouped):
        """L^-1 grouped, (G, d)."""
        if isinstance(self._factor, TiedSums):
            return self._factor.innovations(grouped)
        if self._factor.ndim == 1:
            return grouped / self._factor[:, None]
        from scipy.linalg import solve_triangular

        return solve_triangular(self._factor, grouped, lower=True, check_finite=False)

    def _solved_twice(self, grouped):
        """L^-T L^-1 grouped, (G,)."""
        if isinstance(self._factor, TiedSums):
            return self._factor.solve(grouped)
        if self._factor.ndim == 1:
            return grouped / self._factor / self._factor
        from scipy.linalg import cho_solve

        return cho_solve((self._factor, True), grouped, check_finite=False)

    def product(self, v) -> np.ndarray:
        """(I - J) v for v (n,)."""
        moved, grouped, means = np.zeros(len(v)), self._sums @ v, None
        if self.pool is not None:
            means = self._means @ v
            moved[self._alone] = v[self._alone] - means[self.pool[self._alone]]
            if len(self.sizes) == 0:
                return moved
            grouped = grouped + self.reach @ means
        t = self._solved_twice(grouped)
        moved += self._sums.T @ t
        return moved if means is None else moved + self._means.T @ (self.reach.T @ t)

    def signed_rows(self, of: Callable[[Any], np.ndarray], step: int) -> Iterator[tuple[float, np.ndarray]]:
        """(sign, R), at most `step` rows at once: X^T (I - J) X = X_a^T X_a + the sum of all sign R^T R, a the samples `alone`.

        of : of S (k, n) sparse, the rows S X as an array
        """
        if self.pool is not None:
            roots = np.sqrt(np.where(self.pinned | (self._pool_sizes < 2), 0, self._pool_sizes))
            pools = np.flatnonzero(roots)
            for some in _steps(len(pools), step):
                yield -1.0, roots[pools[some], None] * of(self._means[pools[some]])
        factor, tied = self._factor, None
        if isinstance(factor, TiedSums):
            tied = factor
            tied.begin()
        elif factor.ndim == 2:  # small
            step = max(len(self.sizes), 1)
        for some in _steps(len(self.sizes), step):
            yield 1.0, self._solved_some(some, self._group_rows(some, of), tied)

    def _group_rows(self, some: slice, of) -> np.ndarray:
        """V X of some groups."""
        rows = of(self._sums[some])
        if self.pool is not None:
            reach = sparse.csc_array(self.reach[some])
            moved = np.flatnonzero(np.diff(reach.indptr))
            if moved.size:
                rows += reach[:, moved] @ of(self._means[moved])
        return rows

    def _solved_some(self, some: slice, rows: np.ndarray, tied: TiedSums | None) -> np.ndarray:
        if tied is not None:
            return tied.next(some.start, rows)
        if self._factor.ndim == 1:
            return rows / self._factor[some, None]
        return self._solved(rows)

    @property
    def alone(self) -> np.ndarray:
        """The samples that count as rows of their own in `signed_rows`."""
        return np.zeros(0, int) if self.pool is None else self._alone


def _steps(n: int, step: int) -> list[slice]:
    return [slice(first, min(first + step, n)) for first in range(0, n, step)]


def _dense(X) -> np.ndarray:
    return X.toarray() if sparse.issparse(X) else np.asarray(X)
