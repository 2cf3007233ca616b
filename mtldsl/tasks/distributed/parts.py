"""Rows of tasks in parts, and sums of functions over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mtldsl.system.allocator import freed_memory_is_kept
from mtldsl.system.passes import timed
from mtldsl.system.threads import one_blas_thread
from mtldsl.tasks.distributed.exchange import ByTask, Columns, grouped
from mtldsl.tasks.distributed.states import read_state, state_path, write_state
from mtldsl.tasks.distributed.sums import aligned, size_of, tree_sum
from mtldsl.tasks.tasks import Tasks
from mtldsl.values.digest import digest

__all__ = ["LocalParts", "Part", "Parts", "evaluated"]

#: what an in-memory Tasks is made of: `cached` properties and views stay where they are
_FIELDS = (
    "mask", "counts", "targets", "sample_weights", "task_names", "feature_names", "scaling", "source_rows", "one_table",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Part:
    """The rows of one partition as ordinary `Tasks`, of those tasks that have a labelled row in it.

    which     : (k,) positions of its tasks among all m
    index     : the partition
    first_row : rows in the partitions before it
    """

    tasks: Tasks
    which: np.ndarray
    index: int = 0
    first_row: int = 0

    def columns(self, W) -> np.ndarray:
        """(d, k) those columns of W (d, m) that belong to its tasks."""
        return W if self.has_all(W.shape[1]) else W[:, self.which]

    def has_all(self, n_tasks: int) -> bool:
        """Whether its tasks are all there are, in their order."""
        return self.which.size == n_tasks and bool((self.which == np.arange(n_tasks)).all())

    def __sizeof__(self) -> int:  # what Dask goes by where it keeps, moves and spills
        X: Any = self.tasks.X if self.tasks.is_shared else self.tasks.stacked
        arrays = (X.data, X.indices, X.indptr) if self.tasks.is_sparse else (X,)
        return sum(map(size_of, (*arrays, self.tasks.targets, self.tasks.sample_weights, self.tasks.mask)))

    def __reduce__(self):
        tasks = self.tasks
        inputs = {"shared": tasks.X} if tasks.is_shared else {"stacked": tasks.stacked}
        fields = inputs | {name: getattr(tasks, name) for name in _FIELDS}
        return _rebuilt, (type(tasks), fields, self.which, self.index, self.first_row)


def _rebuilt(kind, fields: dict, which, index, first_row) -> Part:
    return Part(kind(**aligned(fields)), aligned(which), index, first_row)


class Parts(Protocol):
    """Parts, wherever they are, as those see them who ask for sums over all rows."""

    n_parts: int
    names: tuple[str, ...]  # of the partitions, for messages
    where: str  # "dask", "this process"
    passes: int  # runs over the data so far
    bytes_moved: int  # by these runs: what was sent to every worker, and a sum from each

    @property
    def mark(self) -> str:
        """The same for the same numbers in the same partitions, in any process. Known without a pass on Dask."""
        ...

    def run(self, function: Callable, *broadcast, state=None, stateful: bool = False) -> Any:
        """The sum over parts of function(part, *broadcast), by pairs of neighbours (`tree_sum`).

        function : one that can be imported where the rows are
        state    : what an earlier run returned; function(part, its state, *broadcast) then, None at first
        stateful : the function returns (new state, summand), and the run (new state, sum). A state is what is as long as the data
                   and stays beside them.
        A partition without any labelled row is left out.
        """
        ...

    def exchanged(
        self, columns: Sequence, n_tasks: int, function: ByTask, *broadcast, state=None
    ) -> tuple[Any, Sequence, Any]:
        """(new state, columns brought back to the parts, what is told): function(columns of whole tasks, its state, *broadcast).

        columns : the `Columns` of every part (None: of none of the tasks), as a stateful run returned them
        state   : what an earlier exchange returned, which stays where tasks are put together; None at first
        What is told must be apart for every task, such as a `TaskSum`: it is put together in the order of the tasks.
        """
        ...

    @property
    def n_workers(self) -> int: ...

    def unseen_by(self, folder: str) -> str | None:
        """None where whoever holds the rows writes into a folder what is found there from here, else a sentence that says what is wrong."""
        ...

    def write_states(self, states, folder: str, mark: str) -> Any:
        """The states of a run, written into a folder by whoever holds them, and read from there from now on. DataError where that fails."""
        ...

    def read_states(self, folder: str, mark: str) -> Any:
        """What was written there under this mark, maybe by another process."""
        ...

    def mapped(self, step: Callable, *broadcast) -> Parts:
        """Other parts: step(part, *broadcast) is a Part, or None where nothing is left of it."""
        ...

    def some(self, which: Sequence[int]) -> Parts:
        """Some of the parts, as they are; what runs over them is counted there."""
        ...


class LocalParts:
    """Parts in this process."""

    where = "this process"
    n_workers = 1

    def __init__(self, parts: Sequence[Part | None], names: Sequence[str] | None = None):
        self.parts = list(parts)
        self.n_parts = len(self.parts)
        self.names = tuple(names or (f"partition {k}" for k in range(self.n_parts)))
        self.passes = self.bytes_moved = 0
        self._mark: str | None = None

    @timed()
    def run(self, function: Callable, *broadcast, state=None, stateful: bool = False) -> Any:
        """See `Parts.run`."""
        held = stateful or state is not None
        states = [None] * self.n_parts if state is None else state
        results = [
            evaluated(function, part, own, held, stateful, *broadcast)
            for part, own in zip(self.parts, states, strict=True)
        ]
        total = tree_sum([summand for _, summand in results])
        self.passes += 1
        self.bytes_moved += size_of(broadcast) + size_of(total)
        return ([own for own, _ in results], total) if stateful else total

    @property
    def mark(self) -> str:
        """See `Parts.mark`."""
        if self._mark is None:
            self._mark = digest([part and (part.tasks.fingerprint(), part.which) for part in self.parts])
        return self._mark

    def unseen_by(self, folder: str) -> None:
        """See `Parts.unseen_by`."""

    def write_states(self, states, folder: str, mark: str) -> list:
        """See `Parts.write_states`."""
        for k, state in enumerate(states):
            write_state(state_path(folder, mark, k), state)
        return states

    def read_states(self, folder: str, mark: str) -> list:
        """See `Parts.read_states`."""
        return [read_state(state_path(folder, mark, k)) for k in range(self.n_parts)]

    def exchanged(
        self, columns: Sequence, n_tasks: int, function: ByTask, *broadcast, state=None
    ) -> tuple[Any, Sequence, Any]:
        """See `Parts.exchanged`."""
        pieces: Sequence[Columns | None] = columns
        state, back, told, moved = grouped(function, state, broadcast, *pieces)
        self.bytes_moved += size_of(broadcast) + size_of(told) + moved
        return state, back, told

    def mapped(self, step: Callable, *broadcast) -> LocalParts:
        """See `Parts.mapped`."""
        return LocalParts(
            [None if part is None else step(part, *broadcast) for part in self.parts], self.names
        )

    def some(self, which: Sequence[int]) -> LocalParts:
        """See `Parts.some`."""
        return LocalParts([self.parts[k] for k in which], [self.names[k] for k in which])


def evaluated(function, part: Part | None, state, held: bool, stateful: bool, *broadcast) -> tuple[Any, Any]:
    """(its state, its summand) of one part, on one thread of BLAS: the bits are those of any machine with the same libraries."""
    if part is None:
        return state, None
    with one_blas_thread(), freed_memory_is_kept():
        result = function(part, state, *broadcast) if held else function(part, *broadcast)
    return result if stateful else (state, result)
