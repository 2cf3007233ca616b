"""Several tasks of one metric side by side: where their samples lie, as the oracles' compiled loops read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Batch", "Highest", "Tables"]


class Highest(NamedTuple):
    """The highest plane of every task: values and deltas (k,), and slopes in the flat predictions."""

    values: np.ndarray
    deltas: np.ndarray
    slopes: np.ndarray


class Tables(NamedTuple):
    """The best labelling of every task: its value (k,), how many negatives and positives it flips (k, 2), and which, where the task's samples begin."""

    values: np.ndarray
    counts: np.ndarray
    flipped: np.ndarray


class Batch:
    """samples (N,): positions in the flat predictions, of every task its positives, then its negatives; starts (k, 3): where in `samples`
    a task's positives begin, and its negatives, and where it ends.

    classes : (positive, negative) of every task, positions within the task
    firsts  : where its predictions begin
    """

    def __init__(self, classes: Sequence[Any], firsts: Sequence[int]):
        self.classes = classes
        self.samples = np.concatenate([
            part + first for both, first in zip(classes, firsts, strict=True) for part in both
        ])  # fmt: skip
        sizes = np.array([[len(part) for part in both] for both in classes], np.int64)
        ends = np.cumsum(sizes).reshape(-1, 2)
        self.starts = np.column_stack([ends - sizes, ends[:, 1]])
        self.positives, self.negatives = sizes[:, 0].copy(), sizes[:, 1].copy()
        lengths = sizes.sum(axis=1).tolist()
        self.rows = [slice(first, first + n) for first, n in zip(firsts, lengths, strict=True)]
        self.limits: np.ndarray | None = None
        self.order: np.ndarray | None = None  # `samples`, every class as it was sorted last

    def flippable(self, metric: Any, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(samples (N,), margins (N,), ends (k, 2)): of every task, from where its classes begin, what may be flipped at all."""
        from mtldsl.atoms.metrics.oracle_kernels import flippable  # numba is imported where it is used

        z, limits, *found = self._room(metric, z)
        flippable(z, self.samples, self.starts, limits, *found)
        return found[0], found[1], found[2]

    def sorted(self, metric: Any, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same by rising margins: insertions into the last order, which is nearly right where z is near the last one."""
        from mtldsl.atoms.metrics.oracle_kernels import sort_from

        z, limits, chosen, margins, ends = self._room(metric, z)
        if self.order is None:
            self.order = self.samples.copy()
        if sort_from(z, self.order, self.starts, limits, chosen, margins, ends):
            for first, last in self._parts(ends):
                order = margins[first:last].argsort()
                margins[first:last], chosen[first:last] = (
                    margins[first:last][order],
                    chosen[first:last][order],
                )
                self.order[first:last] = chosen[first:last]
        return chosen, margins, ends

    def _room(
        self, metric: Any, z: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(z, limits, and where samples, margins and ends go)."""
        if self.limits is None:
            sizes = zip(self.positives.tolist(), self.negatives.tolist(), strict=True)
            self.limits = np.array([metric.limits(*pair) for pair in sizes], float)
        z = z if z.flags.writeable else z.copy()  # the loops are compiled for what may be written
        N = len(self.samples)
        return z, self.limits, np.empty(N, np.int64), np.empty(N), np.empty((len(self.starts), 2), np.int64)

    def _parts(self, ends: np.ndarray):
        """From where to where the classes of all tasks go."""
        return zip(self.starts[:, :2].ravel().tolist(), ends.ravel().tolist(), strict=True)

    def tables(self, metric: Any, z: np.ndarray, slopes: np.ndarray) -> Tables:
        """The best labellings at z, and their slopes into `slopes`, which is zero.

        Margins y z are sorted, not samples: a sort of numbers is faster, and the last one flipped tells which others are.
        """
        from mtldsl.atoms.metrics.oracle_kernels import flip

        chosen, margins, ends = self.flippable(metric, z)
        ordered = margins.copy()
        for first, last in self._parts(ends):
            ordered[first:last].sort()
        values, counts = metric._highest_tables(ordered, self, ends)
        flipped = np.empty(len(chosen), np.int64)
        flip(chosen, margins, ordered, self.starts, ends, counts, flipped, slopes)
        return Tables(values, counts, flipped)
