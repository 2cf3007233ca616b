"""Recipes of similarities between tasks: kernels R_m of `mkl_norm`, before the tasks are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

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
    graph = L if hasattr(L, "adjacency") else None
    spectral = None if graph is not None else checked_symmetric(L, typed)

    def factors(names):
        eigen = spectral
        if eigen is None:
            eigen = checked_symmetric(_laplacian_of(graph, names), typed)
        half = _half(eigen, 1.0 / (1.0 + gamma * eigen.values))
        return [("laplacian", half if graph is not None else _in_order(L, half, names))]

    return make_similarity("laplacian", [_shown(L), f"gamma={gamma:g}"], factors, columns)


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
    return make_similarity(
        "from_kernel",
        [_shown(R)],
        lambda names: [(str(name), _in_order(R, _half(spectral, spectral.values), names))],
        columns,
    )


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
    return make_similarity(
        "from_similarity",
        [_shown(Q)],
        lambda names: [(str(name), _in_order(Q, _half(spectral, 1.0 / spectral.values), names))],
        columns,
    )


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
# The indicators of a tree of tasks: for every node, which tasks are below it.


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
    """Return how far every node is from its root; ModelError for a circle."""
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
