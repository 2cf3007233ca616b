"""Recipes of similarities between tasks: kernels R_m of `mkl_norm`, before the tasks are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.atoms.atom import checked_number
from mtldsl.atoms.learned_structures.task_kernels import TaskKernel
from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix
from mtldsl.atoms.regularizers.quadratic import checked_symmetric
from mtldsl.errors import ModelError, Spelled
from mtldsl.language.scalars import constant_text, index_text
from mtldsl.utils.validation import as_list, as_positions, quoted

Factors = list[tuple[str, sparse.csr_array]]  # name of a weight, B (T, r) with R = B B^T


@dataclass(frozen=True, eq=False)
class TaskSimilarity:
    """One or several kernels R_m between tasks, made by a helper such as `union()`; what they are is known with the tasks.

    columns : the features that it is about - a slice, positions, names, or the name of a view of the tasks; None: all

    >>> from mtldsl.language.similarity_helpers import tree, union
    >>> union(), tree([-1], columns="text")
    (union(), tree(1 node, columns='text'))
    """

    text: str
    factors: Callable[[tuple[str, ...]], Factors]
    columns: object = None

    def __repr__(self):
        return self.text

    def kernels(self, tasks, typed: str) -> tuple[TaskKernel, ...]:
        """Its kernels for these tasks; ModelError, which quotes `typed`, where it does not fit them."""
        columns = self._columns(tasks, typed)
        try:
            found = self.factors(tuple(tasks.task_names))
        except ModelError as error:
            raise error.within(typed) from None
        for name, factor in found:
            if factor.shape[0] != tasks.n_tasks:
                raise ModelError(
                    f"{self.text} is of {factor.shape[0]} tasks, but there are {tasks.n_tasks}",
                    term=typed,
                    write_instead=f"give {name!r} a row and a column for every task",
                )
        view = (
            ""
            if columns is None
            else self.columns
            if isinstance(self.columns, str)
            else index_text(self.columns)
        )
        lead = f"{view}: " if view else ""
        return tuple(TaskKernel(lead + name, factor, columns, view) for name, factor in found)

    def _columns(self, tasks, typed: str) -> np.ndarray | None:
        if self.columns is None:
            return None
        views, names, asked = getattr(tasks, "views", {}), list(tasks.feature_names), self.columns
        if isinstance(asked, str):
            if asked not in views and asked not in names:
                known = f"the views are {', '.join(map(repr, views))}" if views else "there are no views"
                raise ModelError(
                    f"{self.text}: there is no view or feature {asked!r}; {known}, and the features "
                    f"{', '.join(map(repr, names[:5]))}{', ...' * (len(names) > 5)}",
                    term=typed,
                )
            asked = views.get(asked, [asked])
        listed = asked if isinstance(asked, slice) else as_list(asked)
        if listed is None:
            raise ModelError(
                f"{self.text}: columns must be a slice, a list of positions or names, or the name of a view",
                term=typed,
                write_instead=f"write columns=[{quoted(asked)}] for one feature",
            )
        if not isinstance(listed, slice):
            places = {name: j for j, name in enumerate(names)}
            listed = [_position(one, places, typed, self.text) for one in listed]
        positions = np.unique(
            as_positions(
                listed, len(names), f"{typed}: {self.text}: there are {len(names)} features", ModelError
            )
        )
        if not positions.size:
            raise ModelError(
                f"{self.text} is about no feature",
                term=typed,
                write_instead="select at least one, or leave columns=... out",
            )
        return positions


def _position(one, names: dict[str, int], typed: str, text: str):
    if not isinstance(one, str):
        return one
    if one not in names:
        raise ModelError(
            f"{text}: there is no feature {one!r}; the features are {', '.join(map(repr, list(names)[:5]))}"
            f"{', ...' * (len(names) > 5)}",
            term=typed,
        )
    return names[one]


def make_similarity(word: str, shown: list[str], factors: Callable, columns) -> TaskSimilarity:
    """The similarity that the helper `word` returns; `shown` are its arguments as they print."""
    if columns is not None:
        shown = [
            *shown,
            f"columns={columns!r}" if isinstance(columns, str) else f"columns={index_text(columns)}",
        ]
    return TaskSimilarity(f"{word}({', '.join(shown)})", factors, columns)


def require_tasks(given, names, word: str) -> None:
    """ModelError where a helper does not name every task once."""
    for missing in (name for name in names if name not in given):
        raise ModelError(f"{word}(...): task {missing!r} is missing", write_instead="name every task once")
    for unknown in (name for name in given if name not in names):
        raise ModelError(
            f"{word}(...): there is no task {unknown!r}; the tasks are {', '.join(map(repr, names[:8]))}{', ...' * (len(names) > 8)}"
        )


# --------------------------------------------------------------------------------------------------------------
# Similarities between tasks that are given as a matrix or a graph.


def laplacian(L, gamma: float = 1.0, columns=None) -> TaskSimilarity:
    """Neighbours on a graph of tasks are alike: R = (I + gamma L)^{-1} for its Laplacian L (T, T).

    L : symmetric positive semidefinite array, or a networkx graph whose nodes are the tasks' names or positions
    """
    gamma = checked_number("laplacian", "gamma", gamma, lambda v: v >= 0, "a finite number >= 0")
    typed = f"laplacian({_shown(L)}, gamma={gamma:g})"
    spectral = None if hasattr(L, "adjacency") else checked_symmetric(L, typed)
    return make_similarity(
        "laplacian",
        [_shown(L), f"gamma={gamma:g}"],
        partial(_of_laplacian, L, gamma, spectral, typed),
        columns,
    )


def _of_laplacian(L, gamma: float, spectral, typed: str, names) -> Factors:
    """Factors of an array with its decomposition, or of a graph without one."""
    eigen = checked_symmetric(_laplacian_of(L, names), typed) if spectral is None else spectral
    half = _half(eigen, 1.0 / (1.0 + gamma * eigen.values))
    return [("laplacian", half if spectral is None else _in_order(L, half, names))]


def _laplacian_of(graph, names) -> np.ndarray:
    import networkx as nx

    by_name = {str(node): node for node in graph.nodes}
    if set(by_name) != set(names) and set(graph.nodes) == set(range(len(names))):
        nodes = list(range(len(names)))  # positions
    else:
        require_tasks(by_name, names, "laplacian")
        nodes = [by_name[name] for name in names]
    return nx.laplacian_matrix(graph, nodelist=nodes).toarray().astype(float)


def from_kernel(R, columns=None, name: str = "kernel") -> TaskSimilarity:
    """Any symmetric positive semidefinite kernel R (T, T) between tasks, also a singular one: W is then restricted to its range.

    name : of its weight

    >>> from mtldsl.similarities import from_kernel
    >>> from_kernel([[1.0, 0.5], [0.5, 1.0]])
    from_kernel(array(2, 2))
    """
    spectral = checked_symmetric(R, f"from_kernel({_shown(R)})")
    if not spectral.values.any():
        raise ModelError(
            "the kernel is zero, so that all weights would have to be",
            term=f"from_kernel({_shown(R)})",
            write_instead="leave it out",
        )
    return _of_matrix("from_kernel", R, _half(spectral, spectral.values), str(name), columns)


def from_similarity(Q, columns=None, name: str = "similarity") -> TaskSimilarity:
    """The paper's task similarity matrix Q (T, T), symmetric positive definite: its part of W costs 1/2 tr(W Q W^T), and R = Q^{-1}.

    A large Q_st < 0 makes tasks s and t alike. ModelError for a singular Q, such as the 0/1 matrix of a group of tasks, which has no
    inverse: that is a kernel, `from_kernel(R)`.
    """
    typed = f"from_similarity({_shown(Q)})"
    spectral = checked_symmetric(Q, typed)
    if spectral.values[0] <= 0.0:
        raise ModelError(
            f"Q is singular, and the task kernel is its inverse. An indicator of tasks that belong together is a kernel "
            f"itself: write from_kernel({'R' if np.ndim(Q) == 2 else _shown(Q)})",
            term=typed,
        )
    return _of_matrix("from_similarity", Q, _half(spectral, 1.0 / spectral.values), str(name), columns)


def _of_matrix(word: str, matrix, factor: sparse.csr_array, name: str, columns) -> TaskSimilarity:
    """The similarity with one kernel, whose factor has the rows of a matrix."""
    return make_similarity(word, [_shown(matrix)], partial(_ordered, name, matrix, factor), columns)


def _ordered(name: str, matrix, factor: sparse.csr_array, names) -> Factors:
    return [(name, _in_order(matrix, factor, names))]


def _in_order(matrix, factor: sparse.csr_array, names) -> sparse.csr_array:
    """The rows of a factor in the order of the tasks, where a pandas table says which task a row is of."""
    labels = getattr(matrix, "index", None)
    if labels is None or callable(labels) or list(labels) == list(range(len(labels))):
        return factor
    labels = [str(label) for label in labels]
    if labels != [str(label) for label in matrix.columns]:
        raise ModelError(
            "the table's rows and columns have different labels",
            write_instead="give both the names of the tasks, in one order",
        )
    require_tasks(labels, names, "from_kernel")
    return sparse.csr_array(factor[[labels.index(name) for name in names]])


def _shown(matrix) -> str:
    return "graph" if hasattr(matrix, "adjacency") else constant_text(matrix)


def _half(spectral: SpectralMatrix, values) -> sparse.csr_array:
    """B with B B^T the matrix of these eigenvectors and eigenvalues >= 0."""
    held = values > 0.0
    return sparse.csr_array(spectral.basis[:, held] * np.sqrt(values[held]))


# --------------------------------------------------------------------------------------------------------------
# A tree, {node: its parent}, as the groups of leaves below its nodes; of tasks, as an indicator of each group.


def groups_of_tree(parents: Mapping, word: str) -> dict[Any, list]:
    """{node: the leaves below it}, nodes in the order in which they are first named; leaves are the nodes that nobody's parent is.

    A parent that is not named as a node is a root, as is a node whose parent is None. ModelError where parents go round in a circle, and
    for nodes that cannot be keys of a dict, such as arrays.

    >>> groups_of_tree({"a": "left", "b": "left", "c": None, "left": "all", "c": "all"}, "tree_norm")
    {'a': ['a'], 'b': ['b'], 'c': ['c'], 'left': ['a', 'b'], 'all': ['a', 'b', 'c']}
    """
    for node in (*parents, *parents.values()):
        _check_node(node, word)
    nodes = dict.fromkeys([*parents, *(parent for parent in parents.values() if parent is not None)])
    above = {node: _ancestors(node, parents, word) for node in nodes}
    inner, below = set(parents.values()), {node: [] for node in nodes}
    for leaf in (node for node in nodes if node not in inner):
        for node in (leaf, *above[leaf]):
            below[node].append(leaf)
    return below


def _check_node(node: Any, word: str) -> None:
    try:
        hash(node)
    except TypeError:
        raise ModelError(
            f"{word}: {quoted(node)} is not a node of a tree",
            write_instead='write {node: its parent} with names or positions, such as {"a": "all", "b": "all"}',
        ) from None


def _ancestors(node: Any, parents: Mapping, word: str) -> list:
    """The nodes above a node, from its parent on. ModelError for a circle."""
    found, above = dict[Any, None](), parents.get(node)
    while above is not None:
        if above == node or above in found:
            raise ModelError(
                f"{word}: the parents of {quoted(node)} go round in a circle; one node has to be the root"
            )
        found[above] = None
        above = parents.get(above)
    return list(found)


def indicators_of_tree(
    parents: Mapping | np.ndarray, names: tuple[str, ...]
) -> list[tuple[str, sparse.csr_array]]:
    """(name of the node, indicator (T, 1) of the tasks below it), inner nodes from the root down, then the tasks.

    parents : {node: parent or None}, leaves being the names of the tasks; or positions, -1 for a root, the first T being the tasks.
    ModelError where that is not a tree (or several) over exactly these tasks.
    """
    place, up = {name: t for t, name in enumerate(names)}, _parents_of(parents, names)
    below, taken = groups_of_tree(up, "tree(...)"), set(up.values())
    for node in below:
        if node not in place and node not in taken:
            raise ModelError(
                f"node {_node_text(node)!r} has no child and is not a task; the leaves have to be the tasks",
                term="tree(...)",
            )
    for name in names:
        if name in taken:
            raise ModelError(f"task {name!r} has children; the tasks have to be the leaves", term="tree(...)")
    inner = [node for node in below if node not in place]
    inner.sort(key=lambda node: len(_ancestors(node, up, "tree(...)")))
    found = []
    for node in [*inner, *names]:
        rows = np.array([place[leaf] for leaf in below[node]])
        factor = sparse.csr_array(
            (np.ones(rows.size), (rows, np.zeros(rows.size, int))), shape=(len(names), 1)
        )
        found.append((_node_text(node), factor))
    return found


def _node_text(node: str | int) -> str:
    """The name of a node; of a position, one that says so."""
    return node if isinstance(node, str) else f"node{node}"


def _parents_of(parents, names) -> dict[str | int, str | int | None]:
    """{node: its parent, None of a root}, tasks first; positions that are none of tasks stay numbers."""
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
        nodes = [*names, *range(T, len(parents))]
        return {
            node: None if parent < 0 else nodes[parent]
            for node, parent in zip(nodes, parents.tolist(), strict=True)
        }
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
    return {node: parents.get(node) for node in dict.fromkeys([*names, *nodes])}
