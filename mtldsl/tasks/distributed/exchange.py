"""Numbers as long as the rows, gathered task by task where one worker sees all of a task's, and brought back to the rows.

What a sum over parts cannot tell - an order, a rank, a threshold of all scores of a task - is found there. Rows never move, nothing as long as
the data comes to the process that solves, and a task's numbers stand in the order of partitions and rows: no bit depends on the workers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.system.threads import one_blas_thread
from mtldsl.tasks.distributed.sums import size_of

__all__ = ["Columns", "given_back", "grouped", "groups", "joined", "piece", "put_together"]


@dataclass(frozen=True, eq=False)
class Columns:
    """Arrays of some tasks, task after task.

    which   : (k,) positions of the tasks; of whole tasks ascending
    offsets : (k+1,) where each begins
    arrays  : each (offsets[-1],)
    """

    which: np.ndarray
    offsets: np.ndarray
    arrays: tuple[np.ndarray, ...]

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)

    def __sizeof__(self) -> int:  # what Dask goes by
        return size_of((self.which, self.offsets)) + self.nbytes


#: function(columns of whole tasks, state, *broadcast) -> (new state, arrays of the same length, summand of what is told of each task)
ByTask = Callable[..., tuple[Any, tuple[np.ndarray, ...], Any]]


def groups(n_tasks: int, most: int) -> list[tuple[int, int]]:
    """Neighbouring tasks, in at most so many groups.

    >>> groups(5, 2), groups(1, 4)
    ([(0, 2), (2, 5)], [(0, 1)])
    """
    n = max(min(n_tasks, most), 1)
    return [(n_tasks * g // n, n_tasks * (g + 1) // n) for g in range(n)]


def piece(columns: Columns | None, first: int, last: int) -> Columns | None:
    """Those of tasks first <= i < last; None where there are none."""
    if columns is None:
        return None
    own = np.flatnonzero((columns.which >= first) & (columns.which < last))
    return _chosen(columns, own) if own.size else None


def _chosen(columns: Columns, own: np.ndarray) -> Columns:
    lengths = np.diff(columns.offsets)[own]
    if own[-1] - own[0] + 1 == own.size:
        rows = slice(columns.offsets[own[0]], columns.offsets[own[-1] + 1])
    else:
        rows = np.concatenate([np.arange(*columns.offsets[k : k + 2]) for k in own])
    arrays = tuple(array[rows] for array in columns.arrays)
    return Columns(columns.which[own], np.concatenate([[0], np.cumsum(lengths)]), arrays)


def _counts(pieces: Sequence[Columns | None]) -> tuple[np.ndarray, np.ndarray]:
    """(positions of all tasks, (parts, k) how long each is in each)."""
    which = np.unique(np.concatenate([one.which for one in pieces if one is not None]))
    counts = np.zeros((len(pieces), len(which)), int)
    for k, one in enumerate(pieces):
        if one is not None:
            counts[k, np.searchsorted(which, one.which)] = np.diff(one.offsets)
    return which, counts


def joined(pieces: Sequence[Columns | None]) -> Columns | None:
    """Whole tasks, of each what parts have of it, in their order."""
    if all(one is None for one in pieces):
        return None
    which, counts = _counts(pieces)
    offsets = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
    kinds = next(one for one in pieces if one is not None).arrays
    arrays = tuple(np.empty(offsets[-1], kind.dtype) for kind in kinds)
    at = offsets[:-1].copy()
    for one in pieces:
        if one is None:
            continue
        for k, i in enumerate(np.searchsorted(which, one.which)):
            n = one.offsets[k + 1] - one.offsets[k]
            for to, array in zip(arrays, one.arrays, strict=True):
                to[at[i] : at[i] + n] = array[one.offsets[k] : one.offsets[k + 1]]
            at[i] += n
    return Columns(which, offsets, arrays)


def given_back(arrays: Sequence[np.ndarray], pieces: Sequence[Columns | None]) -> list[Columns | None]:
    """Arrays of whole tasks, as `joined` has them, cut into those of the parts."""
    if all(one is None for one in pieces):
        return [None] * len(pieces)
    which, counts = _counts(pieces)
    at = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])[:-1]
    back: list[Columns | None] = []
    for one, own in zip(pieces, counts, strict=True):
        if one is None:
            back.append(None)
            continue
        chosen = np.searchsorted(which, one.which)
        cut = tuple(np.concatenate([array[at[i] : at[i] + own[i]] for i in chosen]) for array in arrays)
        back.append(Columns(one.which, one.offsets, cut))
        at = at + own
    return back


def grouped(function: ByTask, state, broadcast: tuple, *pieces: Columns | None) -> tuple[Any, list, Any, int]:
    """(state, the pieces brought back, what is told of the tasks, bytes moved) of one group of tasks."""
    columns = joined(pieces)
    if columns is None:
        return state, [None] * len(pieces), None, 0
    with one_blas_thread():
        state, arrays, told = function(columns, state, *broadcast)
    return state, given_back(arrays, pieces), told, columns.nbytes + size_of(tuple(arrays))


def put_together(like: Columns | None, backs: Sequence[Columns | None]) -> Columns | None:
    """What one part gets back of all groups, in the order of its own tasks."""
    found = [one for one in backs if one is not None]
    if like is None or not found:
        return None
    arrays = tuple(np.empty(like.offsets[-1], kind.dtype) for kind in found[0].arrays)
    place = {int(i): k for k, i in enumerate(like.which)}
    for one in found:
        for k, i in enumerate(one.which.tolist()):
            at = slice(*like.offsets[place[i] : place[i] + 2])
            for to, array in zip(arrays, one.arrays, strict=True):
                to[at] = array[one.offsets[k] : one.offsets[k + 1]]
    return Columns(like.which, like.offsets, arrays)
