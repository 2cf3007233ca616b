"""Exact proximal steps of structured hinges in the scores: flip probabilities, and where they move with the scores.

prox of G with step s at z:  z + 2 s y p, with p in [0, 1]^n the flip probabilities that maximise D(p) - 2 <y p, z> - 2 s |p|^2, where
D(p) = -G*(-2 y p) is the largest expected Delta of a random labelling with these flip probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy import sparse

# --------------------------------------------------------------------------------------------------------------
# The identity less the derivative of a structured hinge's proximal step: a projection on a few sums of samples.


def reach_of(first: np.ndarray, shares: np.ndarray, n_pools: int) -> sparse.csr_array:
    """(G, pools): group g moves the pool first[g] by shares[g, 0] and the next by shares[g, 1]; first -1: none.

    >>> reach_of(np.array([0, -1, 1]), np.array([[3.0, 1.0], [0.0, 0.0], [2.0, 0.0]]), 2).toarray()
    array([[3., 1.],
           [0., 0.],
           [0., 2.]])
    """
    one = np.flatnonzero(first >= 0)
    two = one[shares[one, 1] > 0.0]
    at = np.append(one, two), np.append(first[one], first[two] + 1)
    return sparse.csr_array((np.append(shares[one, 0], shares[two, 1]), at), shape=(len(first), n_pools))


class Tangent:
    r"""The orthogonal projection I - J on a space of scores, J the derivative of a proximal step.

    groups (n,), signs (n,) : sample j has the entry signs[j] in the vector of groups[j], -1: in none; group g has sizes[g] samples
    pool (n,)               : of a sample that moves by itself, the pool, -1: it does not; outside `pinned` pools their sums stay
    reach (G, pools)        : beside its own samples, group g moves the sum of a pool that is not pinned by so much; sparse where it is large

    It is Q Q^T with the orthonormal columns Q: unit vectors of the samples of pinned pools, those of other pools less their mean, and
    L^{-1} V of the group vectors V with Gram matrix L L^T = diag(sizes) + R diag(1 / pool sizes) R^T, R the reach. For y = V x,
    |L^{-1} y|^2 is the least sum_g (y - R v)_g^2 / size_g + sum_p size_p v_p^2 over v, at v = (U^T U)^{-1} R^T diag(1 / sizes) y, where
    U^T U = diag(pool sizes) + R^T diag(1 / sizes) R is tridiagonal, as no group moves more than two neighbours.
    """

    def __init__(self, groups, signs, sizes, pool=None, pinned=None, reach: Any = None):
        self.groups, self.signs, self.sizes = groups, signs, sizes
        self.pool: Any = pool
        self.pinned: Any = pinned
        self.moved = np.zeros(0, int) if reach is None else np.unique(reach.indices)
        self.reach: Any = reach[:, self.moved] if self.moved.size else None

    @property
    def rank(self) -> int:
        """Rows of `half`, at least the rank."""
        return len(self.sizes) + len(self.moved) + len(self.alone)

    @cached_property
    def alone(self) -> np.ndarray:
        """The samples that count as rows of their own: those in pools, but for one by itself that may not move."""
        if self.pool is None:
            return np.zeros(0, int)
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
    def _system(self) -> tuple[Any, np.ndarray]:
        """(R^T diag(1 / sizes), U as `cholesky_banded` has it), of the pools that are `moved`."""
        from scipy.linalg import cholesky_banded

        over_sizes = self.reach.T.multiply(1.0 / self.sizes).tocsr()
        inner, bands = over_sizes @ self.reach, np.zeros((2, len(self.moved)))
        bands[1], bands[0, 1:] = inner.diagonal() + self._pool_sizes[self.moved], inner.diagonal(1)
        return over_sizes, cholesky_banded(bands)

    def _freed(self, grouped) -> tuple[np.ndarray, Any]:
        """(y - R v, v) for y (G,) or (G, d); v is None where no group moves a pool."""
        if self.reach is None:
            return grouped, None
        from scipy.linalg import cho_solve_banded

        over_sizes, U = self._system
        v = cho_solve_banded((U, False), over_sizes @ grouped)
        return grouped - self.reach @ v, v

    def _beside(self, grouped, means) -> np.ndarray:
        """V x, from the sums of groups and the means of pools."""
        return grouped if self.reach is None else grouped + self.reach @ means[self.moved]

    def half(self, X) -> np.ndarray:
        """Return A (rank, d) with A^T A = X^T (I - J) X, for X (n, d), dense or CSR."""
        grouped, parts = _dense(self._sums @ X), []
        if self.pool is not None:
            means = _dense(self._means @ X)
            parts.append(_dense(X[self.alone]) - means[self.pool[self.alone]])
            grouped = self._beside(grouped, means)
        rest, v = self._freed(grouped)
        parts.append(rest / np.sqrt(self.sizes)[:, None])
        if v is not None:
            parts.append(v * np.sqrt(self._pool_sizes[self.moved])[:, None])
        return np.vstack(parts)

    def product(self, v) -> np.ndarray:
        """(I - J) v for v (n,)."""
        moved, grouped = np.zeros(len(v)), self._sums @ v
        if self.pool is not None:
            means = self._means @ v
            moved[self.alone] = v[self.alone] - means[self.pool[self.alone]]
            grouped = self._beside(grouped, means)
        t = self._freed(grouped)[0] / self.sizes
        moved += self._sums.T @ t
        return moved if self.reach is None else moved + self._means[self.moved].T @ (self.reach.T @ t)

    def signed_rows(self, of: Callable[[Any], np.ndarray], step: int) -> Iterator[tuple[float, np.ndarray]]:
        """(sign, R), at most `step` rows at once: X^T (I - J) X = X_a^T X_a + the sum of all sign R^T R, a the samples `alone`.

        of : of S (k, n) sparse, the rows S X as an array
        """
        if self.pool is not None:
            roots = np.sqrt(np.where(self.pinned | (self._pool_sizes < 2), 0, self._pool_sizes))
            pools = np.flatnonzero(roots)
            for some in _steps(len(pools), step):
                yield -1.0, roots[pools[some], None] * of(self._means[pools[some]])
        if self.reach is not None:
            yield from self._owed_rows(of, step)
        for some in _steps(len(self.sizes), step):
            rows = of(self._sums[some])
            if self.reach is not None:
                reach = sparse.csc_array(self.reach[some])
                held = np.flatnonzero(np.diff(reach.indptr))
                rows += reach[:, held] @ of(self._means[self.moved[held]])
            yield 1.0, rows / np.sqrt(self.sizes[some, None])

    def _owed_rows(self, of, step: int) -> Iterator[tuple[float, np.ndarray]]:
        """-1 and U^{-T} R^T diag(1 / sizes) V X, forwards: what groups that move one pool have in common."""
        (over_sizes, U), before = self._system, 0.0
        owed = over_sizes @ self._sums + (over_sizes @ self.reach) @ self._means[self.moved]
        owed = sparse.csr_matrix(owed)
        for some in _steps(len(self.moved), step):
            rows = of(owed[some])
            for row, (beside, diagonal) in zip(rows, U.T[some], strict=True):
                row -= beside * before
                row /= diagonal
                before = row
            yield -1.0, rows


def _steps(n: int, step: int) -> list[slice]:
    return [slice(first, min(first + step, n)) for first in range(0, n, step)]


def _dense(X) -> np.ndarray:
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


# --------------------------------------------------------------------------------------------------------------
# The steps: of the AUC by level sets, of the F-score by tables.


@dataclass(frozen=True)
class ScoreStepSettings:
    """Limits of exact steps of the F-score.

    step_evaluations : evaluations of one step
    step_rows        : longest step times samples: flips of a longer one, about its inverse, are near the 1e-13 that counts as equal
    gap_tol          : gap, relative to its terms, up to which a step counts as exact
    """

    step_evaluations: int = 400
    step_rows: float = 1e12
    gap_tol: float = 1e-10


SETTINGS = ScoreStepSettings()


@dataclass(frozen=True, eq=False)
class ScoreStep:
    """Result of one exact proximal step of one task.

    flips    : p (n,), the flip probabilities; the step leads to z + 2 step y p
    promised : D(p) = -G*(-2 y p)
    """

    flips: np.ndarray
    _promised: Callable[[], float]
    _tangent: Callable[[], Tangent]

    @cached_property
    def promised(self) -> float:
        return self._promised()

    @cached_property
    def tangent(self) -> Tangent:
        """The derivative of z -> 2 step (-y p), which is the identity less that of the step."""
        return self._tangent()


def auc_steps(
    metric: Any, z: np.ndarray, batch: Any, steps: np.ndarray, flips: np.ndarray
) -> Sequence[ScoreStep]:
    """The exact steps of the hinges of `AUC`, of all tasks of a batch; their flip probabilities go into `flips`."""
    from mtldsl.atoms.structured_prox import polytope_kernels as level_set_kernel

    chosen, margins, ends = batch.sorted(metric, z)
    groups, n_groups = np.empty(len(z), np.int64), np.empty(len(steps), np.int64)
    level_set_kernel.auc_steps(
        chosen, margins, batch.samples, batch.starts, ends, 2.0 * steps, flips, groups, n_groups
    )

    def of(i: int) -> ScoreStep:
        p, own, (positive, negative) = flips[batch.rows[i]], groups[batch.rows[i]], batch.classes[i]

        def tangent() -> Tangent:
            signs = np.ones(len(own))
            signs[negative] = -1.0
            sizes = np.bincount(own[own >= 0], minlength=int(n_groups[i]))
            return Tangent(own, signs, sizes.astype(float))

        return ScoreStep(p, lambda: auc_promise(p[positive], p[negative]), tangent)

    return [of(i) for i in range(len(steps))]


def auc_promise(of_positives, of_negatives) -> float:
    """D(p) of `AUC`: P(i and j flipped) is at most min(p_i, p_j), and one uniform number for all samples attains it for every pair."""
    return float(np.sum(capped_sums(of_negatives, of_positives)) / (len(of_negatives) * len(of_positives)))


def capped_sums(values, caps) -> np.ndarray:
    """sum_j min(values_j, c) for every cap c."""
    ordered = np.sort(values)
    below = np.searchsorted(ordered, caps)
    return np.append(0.0, np.cumsum(ordered))[below] + caps * (len(ordered) - below)


def fscore_steps(
    metric: Any,
    z: np.ndarray,
    batch: Any,
    steps: np.ndarray,
    flips: np.ndarray,
    warm: np.ndarray,
) -> Sequence[ScoreStep | None]:
    """The exact steps of the hinges of `FScore`, beta >= 1, of all tasks of a batch; None where rounding keeps a gap from closing.

    flips : the flip probabilities go there; where a task is warm, they are those of a step nearby, to start from
    """
    from mtldsl.atoms.structured_prox import fscore_prox_kernels
    from mtldsl.atoms.structured_prox.fscore_table_kernels import promised_value

    u, square, k = 2.0 * steps, metric.beta**2, len(steps)
    if np.any(u * (batch.positives + batch.negatives) > SETTINGS.step_rows):
        return [None] * k
    chosen, margins, ends = batch.sorted(metric, z)
    size = len(chosen) + 2 * k
    tables, pools = np.empty(size, np.int64), np.empty((size, 5), np.int64)
    a, b, levels, mass = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    found, gaps = np.empty((k, 5), np.int64), np.empty(k)
    fscore_prox_kernels.fscore_steps(
        chosen, margins, batch.samples, batch.starts, ends, square, u, warm, SETTINGS.step_evaluations, flips,
        tables, a, mass, b, levels, pools, found, gaps,
    )  # fmt: skip
    if not np.all(gaps <= SETTINGS.gap_tol):
        return [None] * k

    def of(i: int) -> ScoreStep:
        (up, down, _), (up_end, down_end) = batch.starts[i].tolist(), ends[i].tolist()
        K, n_pools, up_sure, down_sure, _ = found[i].tolist()
        rows, at = batch.rows[i], up + 2 * i
        own = slice(at, at + K)
        opened = chosen[up + up_sure : up_end], chosen[down + down_sure : down_end]
        m = square * float(batch.positives[i]) + down_sure
        return ScoreStep(
            flips[rows],
            partial(promised_value, a[own], b[own], mass[at : at + K + 1], m, 1.0 + square),
            partial(_tangent_of_tables, rows, opened, tables[own], b[own], pools[at : at + n_pools]),
        )

    return [of(i) for i in range(k)]


def fscore_promise(of_positives, of_negatives, square: float) -> float:
    """D(p) of `FScore`, square = beta^2 >= 1: the count of wrong positives has the survival function of their sorted p, and the
    negatives' count given it follows from thresholds.
    """
    from mtldsl.atoms.structured_prox.fscore_table_kernels import promised_value

    a, b, mass = _tables(of_positives, of_negatives, square)
    return promised_value(a, b, mass, square * len(of_positives), 1.0 + square)


def fscore_law(of_positives, of_negatives, square: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(b, c, weights) of the random labelling behind `fscore_promise`."""
    a, b, mass = _tables(of_positives, of_negatives, square)
    c, whole, weights = len(of_positives) - np.rint(a).astype(int), np.floor(b), np.diff(mass)
    share = b - whole
    up = np.flatnonzero(share > 0.0)
    whole = whole.astype(int)
    return (
        np.append(whole, whole[up] + 1), np.append(c, c[up]), np.append(weights * (1.0 - share), (weights * share)[up])
    )  # fmt: skip


def _tables(of_positives, of_negatives, square: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(right positives, expected counts of wrong negatives, mass before each and 1) of the tables with a weight."""
    from mtldsl.atoms.structured_prox.fscore_table_kernels import thresholds

    r, q = np.sort(of_positives)[::-1], np.sort(of_negatives)[::-1].copy()
    ends = np.concatenate([[0.0], 1.0 - r, [1.0]])
    kept = np.flatnonzero(np.diff(ends) > 0.0)
    mass = np.append(ends[kept], 1.0)
    a, b = (len(r) - kept).astype(float), np.empty(len(kept))
    levels, pools = np.empty(len(kept)), np.empty((len(kept), 5), np.int64)
    sums = np.append(0.0, np.cumsum(q))
    thresholds(q, sums, a, mass, 1.0, 0.0, square * len(r), 1.0 + square, b, levels, pools)
    return a, b, mass


def _ranges(starts: np.ndarray, stops: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the integers of all ranges in one array, and of each the range that it is of.

    >>> _ranges(np.array([2, 9, 4]), np.array([5, 7, 5]))
    (array([2, 3, 4, 4]), array([0, 0, 0, 2]))
    """
    lengths = np.maximum(stops - starts, 0)
    of = np.repeat(np.arange(len(lengths)), lengths)
    first = np.cumsum(lengths) - lengths
    return starts[of] + np.arange(len(of)) - first[of], of


def _tangent_of_tables(rows: slice, opened, tables, b, pools) -> Tangent:
    """Pools of negatives at one level move freely where it is pinned, and keep their sum where it is not; positives with one
    probability move together, and with them the negatives that are flipped between their tables, and the pools' sums.
    """
    from mtldsl.atoms.structured_prox.fscore_prox_kernels import overlaps

    n, (up, down), G = rows.stop - rows.start, (part - rows.start for part in opened), len(tables) - 1
    sizes, first, shares = np.empty(G), np.empty(G, np.int64), np.empty((G, 2))
    overlaps(G, tables, b, len(pools), pools, sizes, first, shares)
    groups, pool = np.full(n, -1), np.full(n, -1)
    places, of = _ranges(pools[:, 4], pools[:, 3])
    pool[down[places]] = of
    places, of = _ranges(tables[:-1], tables[1:])
    groups[up[places]] = of
    places, of = _ranges(np.ceil(b[1:] - 1e-9).astype(int), np.floor(b[:-1] + 1e-9).astype(int))
    single = down[places]
    apart = pool[single] < 0
    groups[single[apart]] = of[apart]
    sizes = (np.diff(tables) + np.bincount(of[apart], minlength=G)).astype(float)
    reach = reach_of(first, shares, len(pools))
    return Tangent(groups, np.ones(n), sizes, pool, pools[:, 2].astype(bool), reach)
