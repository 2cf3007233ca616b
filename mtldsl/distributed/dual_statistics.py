"""Sums of a loss over the rows of one part: values, gradients, curvatures and multipliers, slab by slab."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mtldsl.normal_form.terms.row_statistics import gram_with_ones

if TYPE_CHECKING:
    from mtldsl.distributed.partitions import PartitionTasks

__all__ = [
    "DualStatistics",
    "RowSlabs",
    "Slab",
    "slabs_of",
]


# --------------------------------------------------------------------------------------------------------------
# The rows of one part, some at a time: from predictions to sums, all that is made of them stays in a core's cache.
#
# A worker's memory allocator gives large arrays back at once, so that each new one costs as much as several operations on it; small ones it keeps.


@dataclass(frozen=True)
class DualSlabSettings:
    """Sizes of a slab.

    slab_bytes    : inputs
    slab_samples  : samples at most
    min_slab_rows : fewest rows that a matrix product is fast on
    """

    slab_bytes: int = 1 << 20
    slab_samples: int = 1 << 14
    min_slab_rows: int = 128


SETTINGS = DualSlabSettings()


@dataclass(eq=False)
class Slab:
    """Samples of some tasks, one task after another.

    which : (k,) their positions among the part's tasks, ascending;  starts, counts : (k,) where the samples of each begin, and how many
    flat  : where the samples are among the part's: a slice, an array, or for a complete table a pair of slices
    """

    which: np.ndarray
    starts: np.ndarray
    counts: np.ndarray
    flat: Any
    z: np.ndarray
    rows: slice
    kept: np.ndarray | None = None
    table: tuple[int, int] | None = None
    y: np.ndarray = field(init=False)
    s: np.ndarray | None = field(init=False)

    def take(self, array: np.ndarray) -> np.ndarray:
        """Its entries of an array as long as the part's samples."""
        return (array if self.table is None else array.reshape(self.table))[self.flat].ravel()

    def put(self, array: np.ndarray, values: np.ndarray) -> None:
        """The other way round."""
        if self.table is None:
            array[self.flat] = values
        else:
            array.reshape(self.table)[self.flat] = values.reshape(self.table[0], -1)

    def sums(self, array: np.ndarray) -> np.ndarray:
        """(k,) over the samples of every task; of (j, n): (j, k)."""
        return np.add.reduceat(array, self.starts, axis=-1)


class RowSlabs:
    """Slabs of a part's rows in turn, and sums over all of them: X_i^T u_i, and X_i^T diag(weights) X_i beside a column of ones."""

    def __init__(self, part: PartitionTasks, coefficients: np.ndarray, sides: int):
        self.tasks, self.sides = part.tasks, sides
        self.own = coefficients[part.which]
        self.m, self.d = part.tasks.n_tasks, part.tasks.n_features
        self.adjoint = np.zeros((sides, self.m, self.d))
        self._grams: dict[int, np.ndarray] = {}
        self._room = np.empty((0, self.d))

    def slabs(self, V: np.ndarray, b: np.ndarray) -> Iterator[Slab]:
        """At weights V (d, m) and intercepts b (m,) of the part's tasks."""
        weights, plain = self.tasks.sample_weights, bool((self.own == 1.0).all())
        for slab in self._slabs(V, b):
            slab.y = slab.take(self.tasks.targets)
            slab.s = None if plain else np.repeat(self.own[slab.which], slab.counts)
            if weights is not None:
                own = slab.take(weights)
                slab.s = own if slab.s is None else slab.s * own
            yield slab

    def _slabs(self, V, b) -> Iterator[Slab]:
        raise NotImplementedError

    def pull(self, slab: Slab, U: np.ndarray) -> None:
        """adjoint += X^T u for multipliers U (sides, samples of the slab)."""
        raise NotImplementedError

    def weigh(self, slab: Slab, weights: np.ndarray) -> None:
        """The Gram matrices += of rows with weights >= 0."""
        for i, first, count in zip(slab.which.tolist(), slab.starts, slab.counts, strict=True):
            own = weights[first : first + count]
            rows = np.flatnonzero(own)
            if rows.size:
                X = self._inputs(slab, i, first, count)
                G = self._grams.setdefault(i, np.zeros((self.d + 1, self.d + 1)))
                self._add(G, X, own, rows)

    def _inputs(self, slab: Slab, task: int, first: int, count: int) -> np.ndarray:
        raise NotImplementedError

    def _add(self, G, X, weights, rows) -> None:
        if rows.size > len(self._room):
            self._room = np.empty((max(rows.size, len(weights)), self.d))
        part = self._room[: rows.size]
        if rows.size < len(weights):
            weights = weights[rows]
            np.take(X, rows, axis=0, out=part, mode="clip")
        else:
            part[:] = X
        roots = np.sqrt(weights)
        part *= roots[:, None]
        G[:-1, :-1] += part.T @ part
        G[-1, :-1] += roots @ part
        G[-1, -1] += weights.sum()

    def grams(self) -> dict[int, np.ndarray]:
        """{task: (d+1, d+1)} of those that have rows with weight."""
        for G in self._grams.values():
            G[:-1, -1] = G[-1, :-1]
        return self._grams

    def adjoints(self) -> np.ndarray:
        """(sides, d, tasks of the part)."""
        return self.adjoint.transpose(0, 2, 1)


def slabs_of(part: PartitionTasks, coefficients: np.ndarray, sides: int) -> RowSlabs:
    """By how the part's rows are laid out. coefficients (m,) are those of all tasks."""
    kind = _SparseSlabs if part.tasks.is_sparse else _SharedTable if part.tasks.is_shared else _LongTable
    return kind(part, coefficients, sides)


class _SharedTable(RowSlabs):
    """One dense X for all tasks: every product is one of matrices."""

    def __init__(self, part, coefficients, sides):
        super().__init__(part, coefficients, sides)
        self.X, self.mask = part.tasks.X, part.tasks.mask

    def _slabs(self, V, b):
        n, m = self.X.shape[0], self.m
        step = max(
            min(SETTINGS.slab_bytes // (8 * self.d), SETTINGS.slab_samples // m), SETTINGS.min_slab_rows
        )
        every, done = np.arange(m), self.tasks.offsets[:-1].copy()
        for first in range(0, n, step):
            rows = slice(first, min(first + step, n))
            Z = self._rows(rows) @ V
            z = np.empty(Z.shape[::-1])
            np.add(Z.T, b[:, None], out=z)
            size = len(Z)
            if self.mask is None:
                yield Slab(
                    every, every * size, np.full(m, size), (slice(None), rows), z.ravel(), rows, None, (m, n)
                )
                continue
            kept = np.ascontiguousarray(self.mask[rows].T)
            counts = kept.sum(axis=1)
            which = np.flatnonzero(counts)
            if which.size:
                ends = np.cumsum(counts)
                flat = np.repeat(done - (ends - counts), counts) + np.arange(ends[-1])
                yield Slab(which, (ends - counts)[which], counts[which], flat, z[kept], rows, kept)
            done += counts

    def _rows(self, rows: slice) -> np.ndarray:
        return self.X[rows].astype(float, copy=False)

    def pull(self, slab, U):
        X = self._rows(slab.rows)
        table = U
        if slab.kept is not None:
            table = np.zeros((self.sides, *slab.kept.shape))
            table[:, slab.kept] = U
        self.adjoint += (table.reshape(-1, len(X)) @ X).reshape(self.adjoint.shape)

    def _inputs(self, slab, task, first, count):
        X = self._rows(slab.rows)
        return X if slab.kept is None or count == len(X) else X[slab.kept[task]]


class _LongTable(RowSlabs):
    """A dense X whose rows are task after task."""

    def _slabs(self, V, b):
        columns = np.ascontiguousarray(V.T)
        for slab in self._ranges(
            max(min(SETTINGS.slab_bytes // (8 * self.d), SETTINGS.slab_samples), SETTINGS.min_slab_rows)
        ):
            for i, first, count in zip(slab.which.tolist(), slab.starts, slab.counts, strict=True):
                np.dot(self._inputs(slab, i, first, count), columns[i], out=slab.z[first : first + count])
            slab.z += np.repeat(b[slab.which], slab.counts)
            yield slab

    def _ranges(self, step: int) -> Iterator[Slab]:
        offsets, n = self.tasks.offsets, self.tasks.n_samples
        for first in range(0, n, step):
            last = min(first + step, n)
            i, j = np.searchsorted(offsets, first, "right") - 1, np.searchsorted(offsets, last, "left")
            ends = np.clip(offsets[i : j + 1], first, last) - first
            rows = slice(first, last)
            yield Slab(np.arange(i, j), ends[:-1], np.diff(ends), rows, np.empty(last - first), rows)

    def _inputs(self, slab, task, first, count):
        start = slab.rows.start + first
        return self.tasks.stacked[start : start + count].astype(float, copy=False)

    def pull(self, slab, U):
        for i, first, count in zip(slab.which.tolist(), slab.starts, slab.counts, strict=True):
            self.adjoint[:, i] += U[:, first : first + count] @ self._inputs(slab, i, first, count)


class _SparseSlabs(_LongTable):
    """Sparse inputs, whose products are fastest in one piece: what is made of predictions is made in slabs, and gathered for the products."""

    def _slabs(self, V, b):
        z = self.tasks.forward(V)
        self.gathered, self.weights = np.zeros((self.sides, z.size)), np.zeros(z.size)
        for slab in self._ranges(SETTINGS.slab_samples):
            slab.z = z[slab.flat] + np.repeat(b[slab.which], slab.counts)
            yield slab

    def pull(self, slab, U):
        self.gathered[:, slab.flat] = U

    def weigh(self, slab, weights):
        self.weights[slab.flat] = weights

    def grams(self):
        inputs = zip(self.tasks.inputs, self.tasks.per_task(self.weights), strict=True)
        return {i: gram_with_ones(X, own) for i, (X, own) in enumerate(inputs) if own.any()}

    def adjoints(self):
        return np.stack([self.tasks.adjoint(u) for u in self.gathered])


# --------------------------------------------------------------------------------------------------------------
# What a pass tells of multipliers, as sums over the rows of one part: all that a proof asks of them (`DistributedDual.seen`).

#: Sums over samples, a row of `DualStatistics` each.
_NAMES = ("sums", "labels", "squares", "work", "conjugate", "at_zero")


class DualStatistics:
    """The sums for a loss that is a sum over samples; multipliers above zero stand apart from the others where `by_sign`."""

    def __init__(
        self, part: PartitionTasks, n_tasks: int, atom: Any, coefficients: np.ndarray, by_sign: bool
    ):
        self.atom, self.by_sign, self.n_tasks, self.which = atom, by_sign, n_tasks, part.which
        sides, own = 1 + by_sign, part.which.size
        self.rows = slabs_of(part, coefficients, sides)
        self.totals = np.zeros((sides, len(_NAMES), own))
        self.values = np.zeros(own)
        self._room = np.empty((2, len(_NAMES), 0))

    def add(self, slab: Slab, u: np.ndarray) -> None:
        """Multipliers u, and the value at the slab's predictions."""
        atom, z, y, s = self.atom, slab.z, slab.y, slab.s
        values = atom.pointwise(z, y)
        self.values[slab.which] += slab.sums(values if s is None else s * values)
        if u.size > self._room.shape[2]:
            self._room = np.empty((2, len(_NAMES), u.size))
        entries, above = self._room[:, :, : u.size]
        sizes, labels = np.abs(u), np.abs(y)
        entries[0] = u
        np.multiply(sizes, labels, out=entries[1])
        np.multiply(u, u, out=entries[2])
        np.multiply(sizes, np.maximum(np.abs(z), labels, out=labels), out=entries[3])
        entries[4], outside = self._conjugates(u, y, s)
        entries[5] = self._at_zero(y, s)
        if not self.by_sign:
            self._sum(0, slab, entries, outside)
            self.rows.pull(slab, u[None])
            return
        positive = (u > 0.0).astype(float)
        np.multiply(entries, positive, out=above)
        entries -= above
        self.rows.pull(slab, np.stack([above[0], entries[0]]))
        self._sum(0, slab, above, outside & (u > 0.0) if outside.any() else outside)
        self._sum(1, slab, entries, outside & (u <= 0.0) if outside.any() else outside)

    def _sum(self, side: int, slab: Slab, entries, outside) -> None:
        self.totals[side][:, slab.which] += slab.sums(entries)
        if outside.any():
            lost = slab.which[slab.sums(outside.astype(int)) > 0]
            self.totals[side, _NAMES.index("conjugate"), lost] = np.inf

    def _conjugates(self, u, y, s) -> tuple[Any, np.ndarray]:
        """(of every multiplier, which of them are outside the conjugate's domain)."""
        inside, outside = self.atom.within(u if s is None else u / s, y)
        found = self.atom.pointwise_conjugate(inside, y)
        return found if s is None else s * found, outside

    def _at_zero(self, y, s) -> Any:
        """Conjugates of zero, which depend on nothing but the label, and often not on that."""
        if self.atom.of_residuals:
            found = self.atom.pointwise_conjugate(np.zeros(1), np.zeros(1))[0]
        elif self.atom.labels == "sign":
            below, above = self.atom.pointwise_conjugate(np.zeros(2), np.array([-1.0, 1.0]))
            found = below if below == above else np.where(y > 0.0, above, below)
        else:
            found = self.atom.pointwise_conjugate(np.zeros_like(y), y)
        return found if s is None or (np.ndim(found) == 0 and found == 0.0) else s * found

    def seen(self) -> dict[str, np.ndarray]:
        """`DistributedDual.seen`, with zeros for tasks that the part has not, and `value` (m,)."""
        sides, d = self.totals.shape[0], self.rows.d
        found: dict[str, Any] = {name: np.zeros((sides, self.n_tasks)) for name in _NAMES}
        for name, own in zip(_NAMES, self.totals.transpose(1, 0, 2), strict=True):
            found[name][:, self.which] = own
        found["adjoint"], found["value"] = np.zeros((sides, d, self.n_tasks)), np.zeros(self.n_tasks)
        found["adjoint"][:, :, self.which] = self.rows.adjoints()
        found["value"][self.which] = self.values
        return found
