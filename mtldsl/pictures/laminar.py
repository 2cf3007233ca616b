"""The tree that groups of tasks form, where of any two groups one holds the other or they have no task in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mtldsl.errors import DataError

__all__ = ["Node", "nodes_of"]


@dataclass
class Node:
    """One group of tasks; `kernel` is the position of its weight, None for a task that has none of its own."""

    name: str
    tasks: np.ndarray  # positions, ascending
    kernel: int | None
    parent: Node | None = None
    children: list[Node] = field(default_factory=list)
    depth: int = 0  # how many nodes are above it

    @property
    def is_task(self) -> bool:
        return len(self.tasks) == 1 and not self.children


def nodes_of(weights: Any, view: str | None = None) -> list[Node]:
    """The nodes, every parent before its children; tasks without a weight of their own are leaves below their smallest group.

    view : the view that the groups are about; needed where the weights are about several

    DataError where a similarity is not a group of tasks (an indicator, as of `tree`, `clusters`, `union` or `individual`), and where
    two groups share some tasks only.
    """
    chosen = _of_view(weights, view)
    members = {m: _group(weights, m) for m in chosen}
    order = sorted(
        chosen, key=lambda m: -len(members[m])
    )  # stable: of equal groups the one named first is above
    smallest: list[Node | None] = [None] * len(weights.task_names)  # of every task, its smallest group so far
    nodes = []
    for m in order:
        holding = {id(smallest[t]): smallest[t] for t in members[m]}
        if len(holding) > 1:
            other = max((node for node in holding.values() if node is not None), key=lambda node: node.depth)
            raise DataError(
                f"{weights.names[m]!r} and {other.name!r} have some tasks in common, and neither holds the other: these groups form "
                "no tree"
            )
        node = Node(weights.names[m], members[m], m)
        _attach(node, next(iter(holding.values())), nodes)
        for t in members[m]:
            smallest[t] = node
    for t, name in enumerate(weights.task_names):
        above = smallest[t]
        if above is None or not above.is_task:
            _attach(Node(name, np.array([t]), None), above, nodes)
    for node in nodes:
        node.children.sort(key=lambda child: (int(child.tasks[0]), -len(child.tasks)))
    return nodes


def _attach(node: Node, parent: Node | None, nodes: list[Node]) -> None:
    node.parent = parent
    if parent is not None:
        parent.children.append(node)
        node.depth = parent.depth + 1
    nodes.append(node)


def _of_view(weights: Any, view: str | None) -> list[int]:
    known = list(dict.fromkeys(weights.views))
    if view is None and len(known) > 1:
        raise DataError(
            "these weights are about several views",
            write_instead=f"write view=..., one of {', '.join(map(repr, known))}",
        )
    view = known[0] if view is None else view
    if view not in known:
        raise DataError(
            f"view={view!r}: there is no such view",
            write_instead=f"write one of {', '.join(map(repr, known))}",
        )
    return [m for m, own in enumerate(weights.views) if own == view]


def _group(weights: Any, m: int) -> np.ndarray:
    """The tasks whose indicator the m-th similarity is."""
    factor = weights.factors[m]
    column = factor.toarray()[:, 0] if factor.shape[1] == 1 else np.zeros(0)
    tasks = np.flatnonzero(column)
    if not tasks.size or np.ptp(column[tasks]):
        raise DataError(
            f"the similarity {weights.names[m]!r} is not a group of tasks, and so not a node of a tree; a picture of the similarity of tasks "
            "is heatmap(solution.kernel_weights)"
        )
    return tasks
