"""Parts on Dask's workers: a graph a pass, with one tree of sums. Every task of it is pure, so what is lost with a worker is computed again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mtldsl.system.passes import timed
from mtldsl.tasks.distributed.dask_engine import call, computed, constant, kept, n_workers
from mtldsl.tasks.distributed.exchange import ByTask, grouped, groups, piece, put_together
from mtldsl.tasks.distributed.failures import lacking_memory
from mtldsl.tasks.distributed.lineage import RUNS, Scratch, States, read_states, unseen_by, write_states
from mtldsl.tasks.distributed.parts import Part, evaluated
from mtldsl.tasks.distributed.sums import aligned, size_of, tree_sum
from mtldsl.values.digest import digest

__all__ = ["DaskParts"]

#: Summands of one node of the tree, a power of two: then the sum has the bits of `tree_sum`.
_TOGETHER = 8


class DaskParts:
    """Nodes that are Parts (or None, without a label), on the workers of the active client, or in threads of this process.

    keep : compute them once and keep them in the workers' memory; else each pass computes them anew
    mark : of the numbers in them (`Parts.mark`)
    """

    where = "dask"

    def __init__(self, nodes: Sequence, names: Sequence[str], keep: bool, mark: str):
        self._nodes = list(nodes)
        self.mark, self._scratch = mark, Scratch()
        self.n_parts = len(self._nodes)
        self.names = tuple(names)
        self.keep = keep
        self._there = False
        self.passes = self.bytes_moved = 0

    @property
    def n_workers(self) -> int:
        return n_workers()

    def nodes(self) -> list:
        """The node of every part, kept from its first use on."""
        if self.keep and not self._there:
            self._nodes, self._there = kept(self._nodes, self.names), True
        return self._nodes

    @timed()
    def run(self, function: Callable, *broadcast, state=None, stateful: bool = False) -> Any:
        """See `Parts.run`."""
        held = stateful or state is not None
        sent = constant((function, *broadcast))
        states = States([None] * self.n_parts) if state is None else state
        done = [
            call(_evaluated, part, own, sent, held, stateful, name, partition=k)
            for k, (part, own, name) in enumerate(zip(self.nodes(), states, self.names, strict=True))
        ]
        if stateful:
            new = [call(_state_of, pair, partition=k) for k, pair in enumerate(done)]
            done = [call(_summand_of, pair, partition=k) for k, pair in enumerate(done)]
            node = tree(done)
            *new, node = kept([*new, node], self.names)
            total = aligned(computed(node, self.names))
        else:
            new, total = None, aligned(computed(tree(done), self.names))
        self.passes += 1
        self.bytes_moved += self.n_workers * (size_of(broadcast) + size_of(total))
        if new is None:
            return total
        new = states.after(new)
        return self._scratch.written(new, self.names) if new.since >= RUNS else new, total

    def unseen_by(self, folder: str) -> str | None:
        """See `Parts.unseen_by`."""
        return unseen_by(folder)

    def write_states(self, states: States, folder: str, mark: str) -> States:
        """See `Parts.write_states`."""
        return write_states(states, folder, mark, self.names)

    def read_states(self, folder: str, mark: str) -> States:
        """See `Parts.read_states`."""
        return read_states(folder, mark, self.names)

    def exchanged(
        self, columns: Sequence, n_tasks: int, function: ByTask, *broadcast, state=None
    ) -> tuple[Any, Sequence, Any]:
        """See `Parts.exchanged`: as many groups of tasks as there are workers, none of which has to see the others'."""
        sent = constant((function, *broadcast))
        states = [(None, *ends) for ends in groups(n_tasks, self.n_workers)] if state is None else state
        done = []
        for own, first, last in states:
            pieces = [call(piece, one, first, last, partition=k) for k, one in enumerate(columns)]
            done.append(call(_grouped, sent, own, *pieces))
        new = [call(_entry, one, 0) for one in done]
        back = [
            call(_put_together, one, *(call(_back, group, k, partition=k) for group in done), partition=k)
            for k, one in enumerate(columns)
        ]
        node = tree([call(_entry, group, 2) for group in done])
        *there, node = kept([*new, *back, node], self.names)
        told, moved = computed(node, self.names)
        self.bytes_moved += self.n_workers * size_of(broadcast) + size_of(told) + moved
        new = [(own, *ends) for own, (_, *ends) in zip(there[: len(new)], states, strict=True)]
        return new, States(there[len(new) :]), told

    def mapped(self, step: Callable, *broadcast) -> DaskParts:
        """See `Parts.mapped`."""
        sent = constant((step, *broadcast))
        nodes = [
            call(_mapped, part, sent, name, partition=k)
            for k, (part, name) in enumerate(zip(self.nodes(), self.names, strict=True))
        ]
        return DaskParts(nodes, self.names, self.keep, digest(self.mark, step, broadcast))

    def some(self, which: Sequence[int]) -> DaskParts:
        """See `Parts.some`: kept where these are, else made anew."""
        nodes, chosen = self.nodes(), list(which)
        names = [self.names[k] for k in chosen]
        return DaskParts([nodes[k] for k in chosen], names, False, digest(self.mark, chosen))


def tree(nodes: Sequence) -> Any:
    """The node of their sum, in the order of `tree_sum`: some pairs, and pairs of pairs, at once, since a node costs Dask a millisecond."""
    level = list(nodes)
    while len(level) > 1:
        groups = [level[k : k + _TOGETHER] for k in range(0, len(level), _TOGETHER)]
        level = [call(_summed, *group) if len(group) > 1 else group[0] for group in groups]
    return level[0]


def _summed(*summands) -> Any:
    return tree_sum(summands)


def _evaluated(part: Part | None, state, sent, held: bool, stateful: bool, name: str) -> Any:
    function, *broadcast = aligned(sent.value)
    try:
        own, summand = evaluated(function, part, aligned(state), held, stateful, *broadcast)
    except MemoryError as error:
        raise lacking_memory(name, error) from None
    return (own, summand) if stateful else summand


def _state_of(pair):
    return pair[0]


def _summand_of(pair):
    return pair[1]


def _grouped(sent, state, *pieces) -> tuple:
    function, *broadcast = aligned(sent.value)
    try:
        state, back, told, moved = grouped(function, state, tuple(broadcast), *pieces)
    except MemoryError as error:
        raise lacking_memory("the scores of whole tasks, put together", error) from None
    return state, back, (told, moved)


def _entry(found: tuple, k: int):
    return found[k]


def _back(group: tuple, k: int):
    """What one part gets back: made where the group is, so that no other worker needs the whole of it."""
    return group[1][k]


def _put_together(like, *backs):
    return put_together(like, backs)


def _mapped(part: Part | None, sent, name: str) -> Part | None:
    step, *broadcast = aligned(sent.value)
    try:
        return None if part is None else step(part, *broadcast)
    except MemoryError as error:
        raise lacking_memory(name, error) from None
