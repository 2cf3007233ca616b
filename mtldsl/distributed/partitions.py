"""Partitions of rows, reproducible sums over them, exchange of whole tasks, and states kept in files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from mtldsl.data.derived import with_fields
from mtldsl.data.tasks import Tasks
from mtldsl.errors import DataError
from mtldsl.utils.arrays import digest
from mtldsl.utils.files import atomic_file, read_archive
from mtldsl.utils.memory import keep_freed_memory
from mtldsl.utils.parallel import one_blas_thread
from mtldsl.utils.progress import time_pass

# --------------------------------------------------------------------------------------------------------------
# Sums over parts in a fixed order, of arrays that lie alike, so that the last bits do not depend on who finishes first, and where.


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


def align_arrays(value) -> Any:
    """The same numbers, with arrays that begin where a number may.

    One that came over a network may lie anywhere. numpy copies it for every product, and makes another product than of an array that was not
    moved, with other last bits.
    """
    if isinstance(value, np.ndarray):
        return np.require(value, requirements="A") if value.dtype.kind in "fiubc" else value
    if isinstance(value, dict):
        return {key: align_arrays(one) for key, one in value.items()}
    if type(value) in (tuple, list):
        return type(value)(map(align_arrays, value))
    if isinstance(value, TaskSum):
        return TaskSum(align_arrays(value.which), align_arrays(value.values))
    if sparse.issparse(value) and value.format == "csr":
        parts = value.data, value.indices, value.indptr
        if all(one.flags.aligned for one in parts):
            return value
        new: Any = type(value)(tuple(map(align_arrays, parts)), shape=value.shape, copy=False)
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


# --------------------------------------------------------------------------------------------------------------
# Numbers as long as the rows, gathered task by task where one worker sees all of a task's, and brought back to the rows.
#
# What a sum over parts cannot tell - an order, a rank, a threshold of all scores of a task - is found there. Rows never move, nothing as long as
# the data comes to the process that solves, and a task's numbers stand in the order of partitions and rows: no bit depends on the workers.

#: {position of a task: arrays of one length, that of its rows}
ByTask = dict[int, tuple[np.ndarray, ...]]


def cut_by_task(which: np.ndarray, offsets: np.ndarray, arrays: Sequence[np.ndarray]) -> ByTask:
    """Arrays that hold these tasks one after another, each from its offset to the next."""
    ends = zip(which.tolist(), offsets[:-1], offsets[1:], strict=True)
    return {i: tuple(array[first:last] for array in arrays) for i, first, last in ends}


def join_tasks(columns: ByTask, which: np.ndarray) -> list[np.ndarray]:
    """The arrays of these tasks, one task after another: what `cut_by_task` undoes."""
    return [np.concatenate(kind) for kind in zip(*(columns[i] for i in which.tolist()), strict=True)]


def groups(n_tasks: int, most: int) -> list[tuple[int, int]]:
    """Neighbouring tasks, in at most so many groups.

    >>> groups(5, 2), groups(1, 4)
    ([(0, 2), (2, 5)], [(0, 1)])
    """
    n = max(min(n_tasks, most), 1)
    return [(n_tasks * g // n, n_tasks * (g + 1) // n) for g in range(n)]


def evaluate_tasks(
    function: Callable, broadcast: tuple, *pieces: ByTask | None
) -> tuple[list[ByTask], Any, int]:
    """(what every part gets back, what is told of the tasks, bytes moved) of tasks whose arrays are pieces in the parts, in their order.

    function : (whole tasks, ascending, *broadcast) -> (arrays of the same lengths for them, or nothing; what is told)
    """
    there = [one for one in pieces if one]
    whole = {
        i: tuple(np.concatenate(kind) for kind in zip(*(one[i] for one in there if i in one), strict=True))
        for i in sorted(set().union(*there))
    }
    if not whole:
        return [{} for _ in pieces], None, 0
    with one_blas_thread():
        made, told = function(whole, *broadcast)
    backs: list[ByTask] = []
    at = dict.fromkeys(whole, 0)
    for one in pieces:
        backs.append({})
        for i, arrays in (one or {}).items():
            first, at[i] = at[i], at[i] + len(arrays[0])
            backs[-1][i] = tuple(array[first : at[i]] for array in made.get(i, ()))
    return backs, told, size_of(whole) + size_of(made)


# --------------------------------------------------------------------------------------------------------------
# State that a run keeps beside the rows of a part, as a file: an array, read without unpickling anything.

_WHAT = "a state of the rows"


def state_path(folder: str, mark: str, part: int) -> Path:
    """The file of one part in one writing."""
    return Path(folder) / f"rows-{mark}-{part}.npz"


def write_state(path: Path, state: np.ndarray | None) -> None:
    """An array of numbers, or None, whole or not at all. DataError where the file cannot be written, TypeError for other states.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "one.npz"
    >>> write_state(path, np.arange(3.0))
    >>> read_state(path)
    array([0., 1., 2.])
    """
    if state is not None and not (isinstance(state, np.ndarray) and state.dtype.kind in "fiub"):
        raise TypeError(f"a {type(state).__name__} beside the rows cannot be written as numbers")
    arrays: dict[str, Any] = {} if state is None else {"state": state}
    with atomic_file(path) as file:
        np.savez(file, **arrays)


def read_state(path: Path) -> np.ndarray | None:
    """Return what `write_state` wrote, bit by bit. DataError for other files."""
    arrays = read_archive(path, _WHAT, role="own")
    if arrays.keys() - {"state"}:
        raise DataError(f"{path} is not {_WHAT}")
    return arrays.get("state")


# --------------------------------------------------------------------------------------------------------------
# Rows of tasks in parts, and sums of functions over them.


@dataclass(frozen=True, eq=False)
class PartitionTasks:
    """The rows of one partition as ordinary `Tasks`, of those tasks that have a labelled row in it.

    which : (k,) positions of its tasks among all m
    index : the partition
    """

    tasks: Tasks
    which: np.ndarray
    index: int = 0

    def columns(self, W) -> np.ndarray:
        """(d, k) those columns of W (d, m) that belong to its tasks."""
        whole = self.which.size == W.shape[1] and bool((np.diff(self.which) == 1).all())
        return W if whole else W[:, self.which]

    def __sizeof__(self) -> int:  # what Dask goes by where it keeps, moves and spills
        return self.tasks.__sizeof__()

    def __reduce__(self):
        return _rebuilt, (self.tasks, self.which, self.index)


def _rebuilt(tasks: Tasks, which: np.ndarray, index: int) -> PartitionTasks:
    arrays = align_arrays({"targets": tasks.targets, "sample_weights": tasks.sample_weights})
    X = align_arrays(tasks.X if tasks.is_shared else tasks.stacked)
    return PartitionTasks(with_fields(tasks, X, **arrays), align_arrays(which), index)


class RowParts:
    """Parts in this process; those on Dask's workers (`DaskParts`) answer all of this where the rows are.

    names       : of the partitions, for messages;  where : "dask", "this process"
    mark        : the same for the same numbers in the same partitions, in any process; known without a pass on Dask
    passes      : runs over the data so far;  bytes_moved : by these runs: what was sent to every worker, and a sum from each
    """

    where: ClassVar[str] = "this process"
    n_workers = 1
    passes = 0
    bytes_moved = 0

    def __init__(self, parts: Sequence[PartitionTasks | None], names: Sequence[str] | None = None):
        self.parts = list(parts)
        self.n_parts = len(self.parts)
        self.names = tuple(names or (f"partition {k}" for k in range(self.n_parts)))

    @cached_property
    def mark(self) -> str:
        return digest([part and (part.tasks.fingerprint(), part.which) for part in self.parts])

    @time_pass()
    def run(self, function: Callable, *broadcast, state=None, stateful: bool = False) -> Any:
        """The sum over parts of function(part, *broadcast), by pairs of neighbours (`tree_sum`).

        function : one that can be imported where the rows are
        state    : what an earlier run returned; function(part, its state, *broadcast) then, None at first
        stateful : the function returns (new state, summand), and the run (new state, sum). A state is what is as long as the data
                   and stays beside them.
        A partition without any labelled row is left out.
        """
        held = stateful or state is not None
        states = [None] * self.n_parts if state is None else state
        results = [
            evaluate_part(function, part, own, held, stateful, *broadcast)
            for part, own in zip(self.parts, states, strict=True)
        ]
        total = tree_sum([summand for _, summand in results])
        self.passes += 1
        self.bytes_moved += size_of(broadcast) + size_of(total)
        return ([own for own, _ in results], total) if stateful else total

    def exchanged(
        self, columns: Sequence, n_tasks: int, function: Callable, *broadcast
    ) -> tuple[Sequence, Any]:
        """(columns brought back to the parts, what is told): function(columns of whole tasks, *broadcast), as `evaluate_tasks` calls it.

        columns : of every part by task (None: of none of the tasks), as a stateful run returned them
        What is told must be apart for every task, such as a `TaskSum`: it is put together in the order of the tasks.
        """
        back, told, moved = evaluate_tasks(function, broadcast, *columns)
        self.bytes_moved += size_of(broadcast) + size_of(told) + moved
        return back, told

    def write_states(self, states, folder: str, mark: str) -> Any:
        """The states of a run, written into a folder by whoever holds them, and read from there from now on. DataError where that fails."""
        for k, state in enumerate(states):
            write_state(state_path(folder, mark, k), state)
        return states

    def read_states(self, folder: str, mark: str) -> Any:
        """Return what was written there under this mark, maybe by another process."""
        return [read_state(state_path(folder, mark, k)) for k in range(self.n_parts)]

    def mapped(self, step: Callable, *broadcast) -> RowParts:
        """Other parts: step(part, *broadcast) is a PartitionTasks, or None where nothing is left of it."""
        return RowParts([part and step(part, *broadcast) for part in self.parts], self.names)

    def some(self, which: Sequence[int]) -> RowParts:
        """Some of the parts, as they are; what runs over them is counted there."""
        return RowParts([self.parts[k] for k in which], [self.names[k] for k in which])


def evaluate_part(
    function, part: PartitionTasks | None, state, held: bool, stateful: bool, *broadcast
) -> tuple[Any, Any]:
    """(its state, its summand) of one part, on one thread of BLAS: the bits are those of any machine with the same libraries."""
    if part is None:
        return state, None
    keep_freed_memory()
    with one_blas_thread():
        result = function(part, state, *broadcast) if held else function(part, *broadcast)
    return result if stateful else (state, result)
