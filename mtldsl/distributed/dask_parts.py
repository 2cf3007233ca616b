"""Rows in parts on Dask's workers: a graph a pass, with one tree of sums.

Every task of it is pure, so what is lost with a worker is computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import getitem
from tempfile import TemporaryDirectory
from typing import Any

from mtldsl.distributed.dask_backend import (
    SETTINGS,
    call,
    compute_node,
    constant,
    keep_nodes,
    lacking_memory,
    n_workers,
)
from mtldsl.distributed.partitions import (
    ByTask,
    PartitionTasks,
    RowParts,
    align_arrays,
    evaluate_part,
    evaluate_tasks,
    groups,
    read_state,
    size_of,
    state_path,
    tree_sum,
    write_state,
)
from mtldsl.errors import DataError
from mtldsl.utils.arrays import digest
from mtldsl.utils.progress import time_pass

# --------------------------------------------------------------------------------------------------------------
# What runs keep beside the rows, on Dask's workers: from time to time it is written out, so that a worker's death costs a few runs and not all.


class PartStates(list):
    """A node for what is kept beside each part.

    since  : stateful runs since they were on disk: what a state that is lost is computed again from
    folder : of the files that they go back to, None where they go back to the beginning. Gone when the last states are that need it
    """

    def __init__(self, nodes: Sequence, since: int = 0, folder: TemporaryDirectory | None = None):
        super().__init__(nodes)
        self.since, self.folder = since, folder

    def after(self, nodes: Sequence) -> PartStates:
        """Those of the next run."""
        return PartStates(nodes, self.since + 1, self.folder)

    def written(self, names: Sequence[str]) -> PartStates:
        """The same bits, read from files; as they are where some worker does not see the folder, or it is full: the next try is later."""
        folder = TemporaryDirectory(prefix="mtldsl-states-", ignore_cleanup_errors=True)
        try:
            return PartStates(write_states(self, folder.name, "run", names), 0, folder)
        except (DataError, TypeError):
            self.since = 0
            return self


def write_states(states: Sequence, folder: str, mark: str, names: Sequence[str]) -> PartStates:
    """Every state in a file of its own, written where it is, and from now on read from there. DataError where that does not succeed."""
    done = [call(_written, one, folder, mark, k, partition=k) for k, one in enumerate(states)]
    for k, said in sorted(compute_node(tree(done), names).items()):
        if said or not state_path(folder, mark, k).is_file():
            why = f"cannot be written there ({said})" if said else "was written where it is not seen here"
            raise DataError(f"{names[k]}: what is beside its rows {why}")
    return read_states(folder, mark, names)


def read_states(folder: str, mark: str, names: Sequence[str]) -> PartStates:
    """Return what `write_states` wrote. DataError where a file is not there, or damaged."""
    nodes = [call(_read, folder, mark, k, partition=k) for k in range(len(names))]
    return PartStates(keep_nodes(nodes, names))


def _written(state, folder: str, mark: str, part: int) -> dict[int, str]:
    """{part: why its state cannot be written, "" where it is}."""
    try:
        write_state(state_path(folder, mark, part), state)
    except DataError as error:
        return {part: str(error)}
    return {part: ""}


def _read(folder: str, mark: str, part: int):
    return read_state(state_path(folder, mark, part))


class DaskParts(RowParts):
    """Nodes that are Parts (or None, without a label), on the workers of the active client, or in threads of this process.

    keep : compute them once and keep them in the workers' memory; else each pass computes them anew
    mark : of the numbers in them (`RowParts.mark`)
    """

    where = "dask"

    def __init__(self, nodes: Sequence, names: Sequence[str], keep: bool, mark: str):
        self._nodes = list(nodes)
        self.mark, self.n_parts = mark, len(self._nodes)
        self.names = tuple(names)
        self.keep = keep
        self._there = False

    @property
    def n_workers(self) -> int:  # type: ignore[override]
        return n_workers()

    def nodes(self) -> list:
        """The node of every part, kept from its first use on."""
        if self.keep and not self._there:
            self._nodes, self._there = keep_nodes(self._nodes, self.names), True
        return self._nodes

    @time_pass()
    def run(self, function: Callable, *broadcast, state=None, stateful: bool = False) -> Any:
        held = stateful or state is not None
        sent = constant((function, *broadcast))
        states = PartStates([None] * self.n_parts) if state is None else state
        done = [
            call(_evaluated, part, own, sent, held, stateful, name, partition=k)
            for k, (part, own, name) in enumerate(zip(self.nodes(), states, self.names, strict=True))
        ]
        if stateful:
            new = [call(getitem, pair, 0, partition=k) for k, pair in enumerate(done)]
            done = [call(getitem, pair, 1, partition=k) for k, pair in enumerate(done)]
            node = tree(done)
            *new, node = keep_nodes([*new, node], self.names)
            total = align_arrays(compute_node(node, self.names))
        else:
            new, total = None, align_arrays(compute_node(tree(done), self.names))
        self.passes += 1
        self.bytes_moved += self.n_workers * (size_of(broadcast) + size_of(total))
        if new is None:
            return total
        new = states.after(new)
        return new.written(self.names) if new.since >= SETTINGS.unwritten_runs else new, total

    def write_states(self, states: PartStates, folder: str, mark: str) -> PartStates:
        return write_states(states, folder, mark, self.names)

    def read_states(self, folder: str, mark: str) -> PartStates:
        return read_states(folder, mark, self.names)

    def exchanged(
        self, columns: Sequence, n_tasks: int, function: Callable, *broadcast
    ) -> tuple[Sequence, Any]:
        """As many groups of tasks as there are workers, none of which has to see the others'."""
        sent = constant((function, *broadcast))
        done = [
            call(_grouped, sent, *(call(_piece, one, *ends, partition=k) for k, one in enumerate(columns)))
            for ends in groups(n_tasks, self.n_workers)
        ]
        back = [
            call(_joined, *(call(_back, group, k, partition=k) for group in done), partition=k)
            for k in range(self.n_parts)
        ]
        *back, node = keep_nodes(
            [*back, tree([call(getitem, group, slice(1, None)) for group in done])], self.names
        )
        told, moved = compute_node(node, self.names)
        self.bytes_moved += self.n_workers * size_of(broadcast) + size_of(told) + moved
        return PartStates(back), told

    def mapped(self, step: Callable, *broadcast) -> DaskParts:
        sent = constant((step, *broadcast))
        nodes = [
            call(_mapped, part, sent, name, partition=k)
            for k, (part, name) in enumerate(zip(self.nodes(), self.names, strict=True))
        ]
        return DaskParts(nodes, self.names, self.keep, digest(self.mark, step, broadcast))

    def some(self, which: Sequence[int]) -> DaskParts:
        """Kept where these are, else made anew."""
        nodes, chosen = self.nodes(), list(which)
        names = [self.names[k] for k in chosen]
        return DaskParts([nodes[k] for k in chosen], names, False, digest(self.mark, chosen))


def tree(nodes: Sequence) -> Any:
    """The node of their sum, in the order of `tree_sum`: some pairs, and pairs of pairs, at once, since a node costs Dask a millisecond."""
    level = list(nodes)
    while len(level) > 1:
        groups = [level[k : k + SETTINGS.node_summands] for k in range(0, len(level), SETTINGS.node_summands)]
        level = [call(_summed, *group) if len(group) > 1 else group[0] for group in groups]
    return level[0]


def _summed(*summands) -> Any:
    return tree_sum(summands)


def _evaluated(part: PartitionTasks | None, state, sent, held: bool, stateful: bool, name: str) -> Any:
    function, *broadcast = align_arrays(sent.value)
    try:
        own, summand = evaluate_part(function, part, align_arrays(state), held, stateful, *broadcast)
    except MemoryError as error:
        raise lacking_memory(name, error) from None
    return (own, summand) if stateful else summand


def _grouped(sent, *pieces) -> tuple:
    function, *broadcast = align_arrays(sent.value)
    try:
        return evaluate_tasks(function, tuple(broadcast), *pieces)
    except MemoryError as error:
        raise lacking_memory("the scores of whole tasks, put together", error) from None


def _back(group: tuple, k: int):
    """Return what one part gets back: made where the group is, so that no other worker needs the whole of it."""
    return group[0][k]


def _piece(columns: ByTask | None, first: int, last: int) -> ByTask:
    """Those of tasks first <= i < last."""
    return {i: arrays for i, arrays in (columns or {}).items() if first <= i < last}


def _joined(*backs: ByTask) -> ByTask:
    return {i: arrays for back in backs for i, arrays in back.items()}


def _mapped(part: PartitionTasks | None, sent, name: str) -> PartitionTasks | None:
    step, *broadcast = align_arrays(sent.value)
    try:
        return None if part is None else step(part, *broadcast)
    except MemoryError as error:
        raise lacking_memory(name, error) from None
