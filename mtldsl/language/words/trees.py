"""A tree, {node: its parent}, as the groups of its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mtldsl.errors import ModelError
from mtldsl.values.listing import as_list
from mtldsl.values.number import quoted

__all__ = ["groups_of_tree", "is_tree"]


def is_tree(groups: Any) -> bool:
    """Whether it is a dict whose values are parents, not lists of members.

    >>> is_tree({"age": "who", "who": None}), is_tree({"who": ["age"]}), is_tree([["age"]])
    (True, False, False)
    """
    return isinstance(groups, Mapping) and not any(_is_members(value) for value in groups.values())


def groups_of_tree(parents: Mapping, word: str) -> dict[str, list]:
    """{node: the leaves below it}, nodes in the order in which they are first named; leaves are the nodes that nobody's parent is.

    A parent that is not named as a node is a root, as is a node whose parent is None. ModelError where parents go round in a circle, and
    for nodes that cannot be keys of a dict, such as arrays.

    >>> groups_of_tree({"a": "left", "b": "left", "c": None, "left": "all", "c": "all"}, "tree_norm")
    {'a': ['a'], 'b': ['b'], 'c': ['c'], 'left': ['a', 'b'], 'all': ['a', 'b', 'c']}
    """
    for node in (*parents, *parents.values()):
        _check_node(node, word)
    for node in parents:
        _check_ancestors(node, parents, word)
    nodes = dict.fromkeys([*parents, *(parent for parent in parents.values() if parent is not None)])
    inner = set(parents.values())
    below: dict[Any, list] = {node: [] for node in nodes}
    for leaf in nodes:
        node = None if leaf in inner else leaf
        while node is not None:
            below[node].append(leaf)
            node = parents.get(node)
    return below


def _check_node(node: Any, word: str) -> None:
    try:
        hash(node)
    except TypeError:
        raise ModelError(
            f"{word}: {quoted(node)} is not a node of a tree",
            write_instead='write {node: its parent} with names or positions, such as {"a": "all", "b": "all"}',
        ) from None


def _check_ancestors(node: Any, parents: Mapping, word: str) -> None:
    seen, above = {node}, parents[node]
    while above is not None:
        if above in seen:
            raise ModelError(
                f"{word}: the parents of {quoted(node)} go round in a circle; one node has to be the root"
            )
        seen.add(above)
        above = parents.get(above)


def _is_members(value: Any) -> bool:
    return isinstance(value, Mapping | set | frozenset) or as_list(value) is not None
