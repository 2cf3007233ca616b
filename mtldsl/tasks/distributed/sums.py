"""Sums over parts in a fixed order, of arrays that lie alike, so that the last bits do not depend on who finishes first, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["TaskSum", "add", "aligned", "size_of", "tree_sum"]


def add(a, b) -> Any:
    """a + b of what functions of parts return: numbers, arrays, None (nothing), and tuples, lists and dicts of these.

    Dicts have the keys of both, those of `a` first. Whatever else knows `+`, such as `TaskSum`, is added by it.

    >>> add((1.0, {"a": 2.0}), (3.0, {"b": 4.0}))
    (4.0, {'a': 2.0, 'b': 4.0})
    """
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, dict):
        return a | {key: add(a.get(key), value) for key, value in b.items()}
    if isinstance(a, tuple | list):
        return type(a)([add(one, other) for one, other in zip(a, b, strict=True)])
    return a + b


def tree_sum(summands: Sequence) -> Any:
    """Their sum by pairs of neighbours, then by pairs of pairs, ...: rounding grows with the logarithm of their number.

    >>> tree_sum([1.0, None, 2.0]), tree_sum([])
    (3.0, None)
    """
    level = list(summands)
    while len(level) > 1:
        level = [add(*level[k : k + 2]) if k + 1 < len(level) else level[k] for k in range(0, len(level), 2)]
    return level[0] if level else None


@dataclass(frozen=True, eq=False)
class TaskSum:
    """A number or an array for some of the tasks: sums over parts that have a few of many tasks.

    which : (k,) positions of the tasks, ascending or not, each once
    values : (k, ...) one for each of them

    >>> both = TaskSum(np.array([0, 2]), np.array([1.0, 5.0])) + TaskSum(np.array([2]), np.array([10.0]))
    >>> both.of_all(4)
    array([ 1.,  0., 15.,  0.])
    """

    which: np.ndarray
    values: np.ndarray

    def __add__(self, other: TaskSum) -> TaskSum:
        if np.array_equal(self.which, other.which):
            return TaskSum(self.which, self.values + other.values)
        which = np.union1d(self.which, other.which)
        values = np.zeros((which.size, *self.values.shape[1:]))
        for one in (self, other):
            values[np.searchsorted(which, one.which)] += one.values
        return TaskSum(which, values)

    def of_all(self, n_tasks: int) -> np.ndarray:
        """(m, ...) with zeros for tasks that no part had."""
        full = np.zeros((n_tasks, *self.values.shape[1:]))
        full[self.which] = self.values
        return full


def aligned(value) -> Any:
    """The same numbers, with arrays that begin where a number may.

    One that came over a network may lie anywhere. numpy copies it for every product, and makes another product than of an array that was not
    moved, with other last bits.
    """
    if isinstance(value, np.ndarray):
        return np.require(value, requirements="A") if value.dtype.kind in "fiubc" else value
    if isinstance(value, dict):
        return {key: aligned(one) for key, one in value.items()}
    if type(value) in (tuple, list):
        return type(value)(map(aligned, value))
    if isinstance(value, TaskSum):
        return TaskSum(aligned(value.which), aligned(value.values))
    if sparse.issparse(value) and value.format == "csr":
        parts = value.data, value.indices, value.indptr
        if all(one.flags.aligned for one in parts):
            return value
        new: Any = type(value)(tuple(map(aligned, parts)), shape=value.shape, copy=False)
        new.has_canonical_format = value.has_canonical_format
        return new
    return value


def size_of(value) -> int:
    """Bytes of the numbers in it, about: what is sent when it is."""
    if isinstance(value, dict):
        return sum(map(size_of, value.values()))
    if isinstance(value, tuple | list):
        return sum(map(size_of, value))
    if isinstance(value, TaskSum):
        return size_of(value.which) + size_of(value.values)
    return int(getattr(value, "nbytes", 0 if value is None else 8))
