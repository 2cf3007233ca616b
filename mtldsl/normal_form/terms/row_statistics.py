"""Sufficient statistics of rows: means, Gram matrices and triangles, summed slab by slab."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.linalg import lapack

from mtldsl.data.products import gram, require_gram_memory
from mtldsl.data.tasks import Tasks
from mtldsl.normal_form.terms.row_compression import GramRows, LabelFactor, RowFactors, factor_of

if TYPE_CHECKING:
    from mtldsl.distributed.partitions import PartitionTasks

# --------------------------------------------------------------------------------------------------------------
# Second moments of rows around their means: all that a quadratic loss, or a function of the norms of residuals, knows of them.

#: (X, Y, weights or None of these rows)
RowSlab = tuple[Any, np.ndarray, "np.ndarray | None"]


#: Inputs that are centred at once: they stay in the cache.
SLAB_ENTRIES = 1 << 17

#: Rows without weights whose mean is the centre: at most some standard deviations off.
CENTRE_ROWS = 64


@dataclass(frozen=True, eq=False)
class RowSpread:
    """Sums over the rows of k tasks, around centres: A = X - c and B = Y - e with the rows' weights s, and l columns of labels each.

    which (k,)    : positions of the tasks;  weight (k,): sum of s
    centre (k, d) : c, near the means;  total (k, d): A^T s;  gram (k, d, d): A^T diag(s) A
    label_centre, label_total, square (k, l) : e, B^T s, and the sums of s B^2;  cross (k, d, l): A^T diag(s) B

    `+` moves both to the common mean. Nothing in it is as large as the squares of the numbers themselves.
    Source: Chan, Golub and LeVeque, "Algorithms for computing the sample variance", The American Statistician 37 (1983), eq. 2.1.
    """

    which: np.ndarray
    weight: np.ndarray
    centre: np.ndarray
    total: np.ndarray
    gram: np.ndarray
    label_centre: np.ndarray
    label_total: np.ndarray
    cross: np.ndarray
    square: np.ndarray

    def __add__(self, other: RowSpread) -> RowSpread:
        if not np.array_equal(self.which, other.which):
            which = np.union1d(self.which, other.which)
            return self.on(which) + other.on(which)
        weight = self.weight + other.weight
        share = np.divide(other.weight, weight, out=np.zeros_like(weight), where=weight > 0.0)[:, None]
        centre = self.centre + share * (other.centre - self.centre)
        labels = self.label_centre + share * (other.label_centre - self.label_centre)
        one, two = self.around(centre, labels), other.around(centre, labels)
        sums = (a + b for a, b in zip(one[1:], two[1:], strict=True))
        total, products, label_total, cross, square = sums
        return RowSpread(self.which, weight, centre, total, products, labels, label_total, cross, square)

    def around(self, centre: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, ...]:
        """(weight, total, gram, label_total, cross, square) around other centres."""
        c, e = self.centre - centre, self.label_centre - labels
        n, a, f = self.weight[:, None], self.total, self.label_total
        G = self.gram
        if c.any():
            half = c[:, :, None] * (a + 0.5 * n * c)[:, None, :]
            G = G + half + half.transpose(0, 2, 1)
        moved = f + n * e
        cross = self.cross + c[:, :, None] * moved[:, None, :] + a[:, :, None] * e[:, None, :]
        return self.weight, a + n * c, G, moved, cross, self.square + e * (f + moved)

    def on(self, which: np.ndarray) -> RowSpread:
        """The same for more tasks, of which nothing is known."""
        at = np.searchsorted(which, self.which)

        def widened(array: np.ndarray) -> np.ndarray:
            new = np.zeros((len(which), *array.shape[1:]))
            new[at] = array
            return new

        return RowSpread(which, *map(widened, self.arrays[1:]))

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """All that it is made of, in the order in which it is made."""
        return tuple(getattr(self, field.name) for field in fields(self))

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)

    def by_task(self) -> RowSpread:
        """Give each of the tasks that have one table its own spread."""
        m = self.square.shape[1]
        weight, centre, total, products = (
            np.repeat(array, m, axis=0) for array in (self.weight, self.centre, self.total, self.gram)
        )
        cross = self.cross[0].T[:, :, None]
        labels, label_total, square = self.label_centre.T, self.label_total.T, self.square.T
        return RowSpread(np.arange(m), weight, centre, total, products, labels, label_total, cross, square)

    def factor(self, k: int) -> LabelFactor:
        """The rows of the k-th task as few."""
        n = max(self.weight[k], np.finfo(float).tiny)
        mean, label_mean = self.total[k] / n, self.label_total[k] / n
        H = self.gram[k] - n * np.outer(mean, mean)
        C = self.cross[k] - n * np.outer(mean, label_mean)
        R, Z = factor_of(H, C)
        rest = np.maximum(self.square[k] - n * label_mean**2 - np.einsum("ij,ij->j", Z, Z), 0.0)
        lengths = np.sqrt(self.gram[k].diagonal()), np.sqrt(self.square[k])
        return LabelFactor(
            float(self.weight[k]), self.centre[k], mean, self.label_centre[k], label_mean, R, Z, rest, lengths
        )


@dataclass(frozen=True, eq=False)
class SufficientStatistics:
    """The spread of the rows that all tasks have in common, which belong to each (None: there are none), and of the tasks' own."""

    common: RowSpread | None
    own: RowSpread | None

    @property
    def is_common(self) -> bool:
        """Tell whether all tasks have one Gram matrix."""
        return self.own is None

    @cached_property
    def spread(self) -> RowSpread:
        """(1, ...) where all is common, else (m, ...)."""
        if self.own is None or self.common is None:
            found = self.own or self.common
            assert found is not None  # there are rows
            return found
        return self.common.by_task() + self.own

    @cached_property
    def _means(self) -> np.ndarray:
        s = self.spread
        return s.centre + s.total / np.maximum(s.weight, np.finfo(float).tiny)[:, None]

    @cached_property
    def _grams(self) -> np.ndarray:
        s = self.spread
        n, c = s.weight[:, None], s.centre
        G = np.empty((len(c), c.shape[1] + 1, c.shape[1] + 1))
        half = c[:, :, None] * (s.total + 0.5 * n * c)[:, None, :]
        G[:, :-1, :-1] = s.gram + half + half.transpose(0, 2, 1)
        G[:, -1, :-1] = G[:, :-1, -1] = s.total + n * c
        G[:, -1, -1] = s.weight
        return G

    def gram(self, task: int) -> np.ndarray:
        """(d+1, d+1) [X, 1]^T diag(s) [X, 1]."""
        return self._grams[0 if self.is_common else task]

    def centre(self, task: int) -> np.ndarray:
        """(d,) the mean of every feature."""
        return self._means[0 if self.is_common else task]

    def factors(self) -> RowFactors:
        """The rows of every task as few."""
        s = self.spread
        return RowFactors([s.factor(k) for k in range(len(s.weight))])

    def frame(self, centred: bool, like: Tasks) -> GramRows:
        """Rows R_i with R_i^T R_i the Gram matrix, that of centred features or of these as they are."""
        s, grams = self.spread, []
        for k, (n, mean) in enumerate(zip(s.weight, self._means, strict=True)):
            n = max(n, np.finfo(float).tiny)
            H = s.gram[k] - np.outer(s.total[k], s.total[k] / n)
            grams.append(H if centred else H + n * np.outer(mean, mean))
        return GramRows.of(grams, like)

    def squares_along(self, D: np.ndarray, b: np.ndarray) -> np.ndarray:
        """(m,) ||X_i D_i + b_i||^2."""
        s, W = self.spread, D.T
        n = np.maximum(s.weight, np.finfo(float).tiny)
        around = np.sum((W[:, None, :] @ s.gram)[:, 0] * W, axis=1) - np.sum(s.total * W, axis=1) ** 2 / n
        return np.maximum(around, 0.0) + n * (np.sum(self._means * W, axis=1) + b) ** 2


def has_one_gram(tasks: Any) -> bool:
    """Tell whether all tasks have one Gram matrix: one table, every label there, no weights."""
    return bool(tasks.is_table and not tasks.n_missing and not tasks.is_weighted)


def moments_of(tasks: Any) -> SufficientStatistics:
    """In one pass, the first time that it is asked for."""
    known = tasks.__dict__.get("_moments")
    if known is None:
        require_gram_memory(tasks.n_features + 1, 1, "select features, or project them, first")
        known = SufficientStatistics(**tasks.parts.run(_of_part, tasks.n_tasks))
        tasks.__dict__["_moments"] = known
        if not tasks.is_weighted:  # so that they need not be asked for
            squares = [known.gram(i).diagonal()[:-1] for i in range(tasks.n_tasks)]
            tasks.__dict__["column_lengths"] = np.sqrt(np.stack(squares, axis=1))
    return known


def moments_here(tasks: Tasks) -> SufficientStatistics:
    """The same where the rows are in this process: in one pass, and not remembered."""
    return SufficientStatistics(**_of_rows(tasks, np.arange(tasks.n_tasks), tasks.n_tasks))


def _of_part(part: PartitionTasks, n_tasks: int) -> dict[str, RowSpread | None]:
    return _of_rows(part.tasks, part.which, n_tasks)


def _of_rows(tasks: Tasks, which: np.ndarray, n_tasks: int) -> dict[str, RowSpread | None]:
    """The fields of `SufficientStatistics` of tasks that are those numbered `which` of n_tasks."""
    together = is_one_table(tasks, which, n_tasks)
    every = [sum_statistics(map(_spread, slabs)) for slabs in row_slabs(tasks, together)]
    if together:
        return {"common": every[0], "own": None}
    sums = zip(*(one.arrays[1:] for one in every), strict=True)
    order = np.argsort(which)
    found = (np.concatenate(arrays)[order] for arrays in sums)
    return {"common": None, "own": RowSpread(np.asarray(which)[order], *found)}


def is_one_table(tasks: Tasks, which: np.ndarray, n_tasks: int) -> bool:
    """Tell whether these rows belong to all tasks, with the same weight."""
    complete = tasks.is_shared and tasks.mask is None and tasks.sample_weights is None
    return complete and len(which) == n_tasks and bool((np.asarray(which) == np.arange(n_tasks)).all())


def row_slabs(tasks: Tasks, together: bool, dense: bool = False) -> list[Iterator[RowSlab]]:
    """Some rows at a time: of all tasks `together`, or of one after another. Sparse rows are one slab, unless they are made `dense`."""
    if together:
        return [_slabs(tasks.X, tasks.targets.reshape(tasks.n_tasks, -1).T, None, dense)]
    weights = tasks.sample_weights
    pieces = [None] * tasks.n_tasks if weights is None else tasks.per_task(weights)
    labels = tasks.per_task(tasks.targets)
    return [_slabs(X, y[:, None], s, dense) for X, y, s in zip(tasks.inputs, labels, pieces, strict=True)]


def _slabs(X: Any, Y: np.ndarray, s: np.ndarray | None, dense: bool) -> Iterator[RowSlab]:
    n, d = X.shape
    step = n if sparse.issparse(X) and not dense else max(SLAB_ENTRIES // max(d, 1), 2 * d, 1)
    for first in range(0, n, step):
        part = slice(first, first + step)
        rows = X[part].toarray() if sparse.issparse(X) and dense else X[part]
        yield rows, Y[part], None if s is None else s[part]


def _spread(slab: RowSlab) -> RowSpread:
    """Return the spread of a few rows of one table."""
    X, Y, s = slab
    weights = np.ones(len(Y)) if s is None else np.asarray(s, float)
    some = slice(None, None, None if s is not None else max(len(Y) // CENTRE_ROWS, 1))
    labels = mean_of(Y[some], s)
    B = Y - labels
    weighted = np.column_stack([B if s is None else weights[:, None] * B, weights])
    if sparse.issparse(X):
        X, c = _without_full_columns(X, s)
        G, cross = gram(X, s), X.T @ weighted
    else:
        X = np.asarray(X, float)
        c = mean_of(X[some], s)
        A = X - c
        cross = (weighted.T @ A).T
        if s is not None:
            A *= np.sqrt(weights)[:, None]
        G = A.T @ A
    square = np.einsum("ij,ij->j", B, weighted[:, :-1])
    own = (
        np.array([weights.sum()]), c, cross[:, -1], G, labels, weighted[:, :-1].sum(axis=0), cross[:, :-1], square,
    )  # fmt: skip
    return RowSpread(np.zeros(1, int), own[0], *(np.asarray(one)[None] for one in own[1:]))


def mean_of(X: np.ndarray, s: np.ndarray | None) -> np.ndarray:
    """The mean of the rows with weights s, which of equal ones is exactly each of them."""
    away, total = X - X[0], 0.0 if s is None else float(s.sum())
    return X[0] + (away.mean(axis=0) if s is None or total == 0.0 else (s @ away) / total)


def _without_full_columns(X: Any, s) -> tuple[Any, np.ndarray]:
    """(sparse inputs with the mean taken off those columns that have no zeros, which costs no entry; what was taken off)."""
    X = sparse.csr_array(X, dtype=float, copy=False)
    n, d = X.shape
    full = np.bincount(X.indices, minlength=d) == n
    c = np.zeros(d)
    if not full.any():
        return X, c
    X.sum_duplicates()
    c[full] = mean_of(X[:, full].toarray(), s)
    return sparse.csr_array((X.data - c[X.indices], X.indices, X.indptr), shape=X.shape), c


def sum_statistics(pieces: Iterable) -> Any:
    """Their sum as `tree_sum` makes it, with the logarithm of their number in memory at once."""
    waiting: list[tuple[int, Any]] = []
    for piece in pieces:
        level = 0
        while waiting and waiting[-1][0] == level:
            piece, level = waiting.pop()[1] + piece, level + 1
        waiting.append((level, piece))
    _, total = waiting.pop()
    while waiting:
        total = waiting.pop()[1] + total
    return total


def gram_with_ones(X, weights) -> np.ndarray:
    """The Gram matrix of [X, 1]."""
    d, n = X.shape[1], X.shape[0]
    ones = np.ones(n) if weights is None else weights
    G = np.empty((d + 1, d + 1))
    G[:-1, :-1] = gram(X, weights)
    G[-1, :-1] = G[:-1, -1] = X.T @ ones
    G[-1, -1] = ones.sum()
    return G


# --------------------------------------------------------------------------------------------------------------
# Rows as few by orthogonal reflections, part by part: what sums of squares would lose to cancellation.

#: The key of the rows that tasks have in common.
_COMMON_KEY = -1


@dataclass(frozen=True, eq=False)
class TriangularRows:
    """Rows Q^T [1, X - c] = [R; 0] and Q^T (Y - e) = [Z; .], Q orthogonal, of rows times the roots of their weights.

    R (r, d+1), Z (r, l);  rest (l,): squares of the labels that have no row of R;  centre c (d,), label_centre e (l,)
    `+` is that of both parts' rows, around one centre.
    Source: Demmel, Grigori, Hoemmen and Langou, "Communication-optimal parallel and sequential QR and LU factorizations", 2012 (TSQR).
    """

    n: int
    centre: np.ndarray
    label_centre: np.ndarray
    R: np.ndarray
    Z: np.ndarray
    rest: np.ndarray

    def __add__(self, other: TriangularRows) -> TriangularRows:
        n = self.n + other.n
        centre = self.centre + (other.centre - self.centre) * (other.n / n)
        labels = self.label_centre + (other.label_centre - self.label_centre) * (other.n / n)
        one, two = self._around(centre, labels), other._around(centre, labels)
        R, Z = (np.vstack(pair) for pair in zip(one, two, strict=True))
        return TriangularRows(n, centre, labels, R, Z, self.rest + other.rest).reduced()

    def _around(self, centre, labels) -> tuple[np.ndarray, np.ndarray]:
        R, ones = self.R.copy(), self.R[:, :1]
        R[:, 1:] += ones * (self.centre - centre)
        return R, self.Z + ones * (self.label_centre - labels)

    def reduced(self, at_once: bool = False) -> TriangularRows:
        """R made triangular, where it has more rows than columns, or `at_once`."""
        rows, columns = self.R.shape
        if rows <= columns and not at_once:
            return self
        QR, tau, _, info = lapack.dgeqrf(self.R, lwork=64 * columns)
        most = min(rows, columns)
        Z, _, failed = lapack.dormqr("L", "T", QR[:, :most], tau, self.Z, 64 * max(self.Z.shape[1], 1))
        assert info == failed == 0
        rest = self.rest + np.einsum("ij,ij->j", Z[most:], Z[most:])
        return TriangularRows(self.n, self.centre, self.label_centre, np.triu(QR[:most]), Z[:most], rest)

    @property
    def nbytes(self) -> int:
        return self.R.nbytes + self.Z.nbytes + self.centre.nbytes + 2 * self.rest.nbytes

    def column(self, k: int) -> TriangularRows:
        """The rows with one of their labels."""
        return TriangularRows(
            self.n, self.centre, self.label_centre[[k]], self.R, self.Z[:, [k]], self.rest[[k]]
        )

    def factor(self) -> LabelFactor:
        """The rows as few; the first is the mean's."""
        t = self.reduced(at_once=True)
        ones = t.R[0, 0] or 1.0
        nothing = np.zeros_like(t.centre), np.zeros_like(t.rest)
        return LabelFactor(
            t.R[0, 0] ** 2, t.centre, t.R[0, 1:] / ones, t.label_centre, t.Z[0] / ones, t.R[1:, 1:], t.Z[1:], t.rest, nothing
        )  # fmt: skip


def factors_of(tasks: Any, reflected: bool = False) -> RowFactors:
    """The rows of tasks as few, by one pass; those by reflections, of tasks that are elsewhere, once they are there."""
    known = tasks.__dict__.setdefault("_factors", {})
    if reflected and True not in known:
        known[True] = _triangles_of(tasks)
    if True not in known and False not in known:
        known[False] = (moments_here if tasks.in_memory else moments_of)(tasks).factors()
    return known.get(True) or known[False]


def _triangles_of(tasks: Any) -> RowFactors:
    """The rows as few, in a pass."""
    found = tasks.parts.run(_triangle_of_part, tasks.n_tasks)
    common = found.get(_COMMON_KEY)
    if set(found) == {_COMMON_KEY}:
        return RowFactors([common.factor()])
    each = []
    for i in range(tasks.n_tasks):
        pieces = ([] if common is None else [common.column(i)]) + ([found[i]] if i in found else [])
        each.append(sum_statistics(pieces).factor())
    return RowFactors(each)


def _triangle_of_part(part: PartitionTasks, n_tasks: int) -> dict[int, TriangularRows]:
    tasks: Tasks = part.tasks
    together = is_one_table(tasks, part.which, n_tasks)
    keys = [_COMMON_KEY] if together else part.which.tolist()
    every = zip(keys, row_slabs(tasks, together, dense=True), strict=True)
    return {key: sum_statistics(map(_triangle, slabs)) for key, slabs in every}


def _triangle(slab) -> TriangularRows:
    X, Y, s = slab
    X = np.asarray(X, float)
    c, e = mean_of(X, s), mean_of(Y, s)
    R, Z = np.empty((len(X), X.shape[1] + 1), order="F"), Y - e
    R[:, 0] = 1.0
    np.subtract(X, c, out=R[:, 1:])
    if s is not None:
        roots = np.sqrt(s)[:, None]
        R *= roots
        Z *= roots
    return TriangularRows(len(X), c, e, R, Z, np.zeros(Y.shape[1])).reduced()
