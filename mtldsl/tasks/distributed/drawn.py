"""A seeded sample of rows, drawn where they are: every row has a random number of its own, and those with the smallest are taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.tasks.derived import label_table
from mtldsl.tasks.distributed.parts import Part

__all__ = ["Drawn", "drawn_from"]


@dataclass(frozen=True, eq=False)
class Drawn:
    """Rows with the smallest numbers so far: `wanted` of the table, or of each task of a long one; and one of every class of every task.

    Y : (r, m) where it is a table, else (r, 1) with the task of every row in `task`
    """

    wanted: int
    X: Any
    Y: np.ndarray
    weights: np.ndarray | None
    task: np.ndarray | None
    numbers: np.ndarray  # (r,) in [0, 1)
    place: np.ndarray  # (r, 2) partition and row

    def __add__(self, other: Drawn) -> Drawn:
        stacked = sparse.vstack if sparse.issparse(self.X) else np.vstack
        pairs = [
            (getattr(self, name), getattr(other, name))
            for name in ("Y", "weights", "task", "numbers", "place")
        ]
        joined: list[Any] = [None if a is None else np.concatenate([a, b]) for a, b in pairs]
        return Drawn(self.wanted, stacked([self.X, other.X]), *joined).smallest()

    def smallest(self) -> Drawn:
        """Only the rows that can still be among those taken at the end."""
        keep = np.zeros(len(self.numbers), dtype=bool)
        for rows, needed in self._groups():
            keep[rows[: self.wanted]] = keep[needed] = True
        return self if keep.all() else self._only(np.flatnonzero(keep))

    def taken(self) -> Drawn:
        """The rows taken: `wanted` of them, or as many more as it takes to have every class of every task."""
        keep = np.zeros(len(self.numbers), dtype=bool)
        for rows, needed in self._groups():
            keep[needed] = True
            others = rows[~keep[rows]]
            keep[others[: max(self.wanted - needed.size, 0)]] = True
        return self._only(np.flatnonzero(keep))

    def _groups(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """(rows in the order of their numbers, the first of every class) of the table, or of each task of a long one."""
        order = np.argsort(self.numbers, kind="stable")
        groups = [order] if self.task is None else _by(self.task, order)
        return [(rows, np.unique([rows[k] for y in self.Y[rows].T for k in _firsts(y)])) for rows in groups]

    def _only(self, rows) -> Drawn:
        arrays = (self.X, self.Y, self.weights, self.task, self.numbers, self.place)
        taken: list[Any] = [None if one is None else one[rows] for one in arrays]
        X, *rest = taken
        return Drawn(self.wanted, sparse.csr_array(X) if sparse.issparse(X) else X, *rest)

    @property
    def nbytes(self) -> int:
        X = self.X
        size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sparse.issparse(X) else X.nbytes
        return size + self.Y.nbytes + self.numbers.nbytes + self.place.nbytes


def _firsts(y) -> list[int]:
    """Where the first label is; where labels are -1 and +1, the first of each."""
    there = np.flatnonzero(~np.isnan(y))
    if np.isin(y[there], (-1.0, 1.0)).all():
        return [int(there[y[there] == c][0]) for c in np.unique(y[there])]
    return [int(there[0])]


def _by(task: np.ndarray, order: np.ndarray) -> list[np.ndarray]:
    """`order`, cut into the rows of each task."""
    own = order[np.argsort(task[order], kind="stable")]
    return np.split(own, np.flatnonzero(np.diff(task[own])) + 1)


def drawn_from(part: Part, wanted: int, seed: int, n_tasks: int) -> Drawn:
    """The candidates of one part. Its numbers depend on the seed and the partition, not on the worker."""
    tasks = part.tasks
    rng = np.random.default_rng([seed, part.index])
    if tasks.is_shared:
        n = tasks.X.shape[0]
        Y, S = np.full((n, n_tasks), np.nan), None
        Y[:, part.which] = label_table(tasks, tasks.targets)
        if tasks.sample_weights is not None:
            S = np.full((n, n_tasks), np.nan)
            S[:, part.which] = label_table(tasks, tasks.sample_weights)
        place = np.column_stack([np.full(n, part.index), np.arange(n)])
        return Drawn(wanted, tasks.X, Y, S, None, rng.random(n), place).smallest()
    n = tasks.n_samples
    rows = np.arange(n) if tasks.source_rows is None else np.concatenate(tasks.source_rows)
    S = None if tasks.sample_weights is None else tasks.sample_weights[:, None]
    task = part.which[tasks.task_of]
    place = np.column_stack([np.full(n, part.index), rows])
    return Drawn(wanted, tasks.stacked, tasks.targets[:, None], S, task, rng.random(n), place).smallest()
