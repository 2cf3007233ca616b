"""The indicators of a tree of tasks: for every node, which tasks are below it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy import sparse

from mtldsl.errors import ModelError, Spelled

__all__ = ["indicators_of_tree"]


def indicators_of_tree(
    parents: Mapping | np.ndarray, names: tuple[str, ...]
) -> list[tuple[str, sparse.csr_array]]:
    """(name of the node, indicator (T, 1) of the tasks below it), inner nodes from the root down, then the tasks.

    parents : {node: parent or None}, leaves being the names of the tasks; or positions, -1 for a root, the first T being the tasks.
    ModelError where that is not a tree (or several) over exactly these tasks.
    """
    nodes, up = _positions(parents, names)
    T, depth = len(names), _depths(nodes, up)
    below: list[list[int]] = [[] for _ in nodes]
    for t in range(T):
        node = t
        while node >= 0:
            below[node].append(t)
            node = up[node]
    for node in range(T, len(nodes)):
        if not below[node]:
            raise ModelError(
                f"node {nodes[node]!r} has no child and is not a task; the leaves have to be the tasks",
                term="tree(...)",
            )
    for t in range(T):
        if len(below[t]) > 1:
            raise ModelError(
                f"task {nodes[t]!r} has children; the tasks have to be the leaves", term="tree(...)"
            )
    inner = sorted(range(T, len(nodes)), key=lambda node: depth[node])
    found = []
    for node in [*inner, *range(T)]:
        rows = np.array(below[node])
        factor = sparse.csr_array((np.ones(rows.size), (rows, np.zeros(rows.size, int))), shape=(T, 1))
        found.append((str(nodes[node]), factor))
    return found


def _positions(parents, names) -> tuple[list, list[int]]:
    """(the nodes, tasks first; the position of every node's parent, -1 for a root)."""
    T = len(names)
    if not isinstance(parents, Mapping):
        if len(parents) < T:
            raise ModelError(
                f"{len(parents)} nodes for {T} tasks; the first {T} are the tasks, and inner nodes follow",
                term="tree(...)",
            )
        for node, parent in enumerate(parents.tolist()):
            if not -1 <= parent < len(parents):
                raise ModelError(
                    f"the parent of node {node} is {parent}",
                    term="tree(...)",
                    write_instead=f"write a position up to {len(parents) - 1}, or -1",
                )
        return [*names, *(f"node{k}" for k in range(T, len(parents)))], parents.tolist()
    # names of tasks are text, also where their ids are numbers
    parents = {str(node): None if parent is None else str(parent) for node, parent in parents.items()}
    nodes = dict.fromkeys([*parents.keys(), *(p for p in parents.values() if p is not None)])
    undeclared = [node for node in nodes if node not in parents]
    if undeclared and (len(undeclared) > 1 or None in parents.values()):
        shown = ", ".join(map(repr, undeclared))
        raise ModelError(
            f"tree(...): {shown} stand only as parents, and one root alone may; write the parent of each, "
            + Spelled(
                f"{undeclared[0]!r}: ..., or None for the root",
                f"{undeclared[0]} = ..., and none for the root",
            )
        )
    for name in names:
        if name not in nodes:
            raise ModelError(
                f"tree(...): task {name!r} is not in the tree; its leaves have to be the tasks, by name, as in "
                + Spelled(f"{{{name!r}: 'group', 'group': None}}", f'{{{name} = "group"}}')
            )
    tasks = set(names)
    order = [*names, *(node for node in nodes if node not in tasks)]
    place = {node: k for k, node in enumerate(order)}
    return order, [-1 if parents.get(node) is None else place[parents[node]] for node in order]


def _depths(nodes, up) -> list[int]:
    """How far every node is from its root; ModelError for a circle."""
    depth = [0] * len(nodes)
    for start in range(len(nodes)):
        node, steps = start, 0
        while up[node] >= 0:
            node, steps = up[node], steps + 1
            if steps > len(nodes):
                raise ModelError(
                    f"the parents of node {nodes[start]!r} go round in a circle; one node has to be the root",
                    term="tree(...)",
                )
        depth[start] = steps
    return depth
