"""Similarities between tasks, as a user states them: each helper makes the kernels R_m of `mkl_norm`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mtldsl.atoms.parameters import checked_number
from mtldsl.atoms.regularizers.kronecker import checked_symmetric
from mtldsl.atoms.structures import SpectralMatrix, TaskKernel
from mtldsl.errors import ModelError
from mtldsl.language.constants import constant_text, index_text
from mtldsl.language.task_tree import indicators_of_tree

__all__ = [
    "TaskSimilarity",
    "clusters",
    "domain_adaptation",
    "evgeniou_pontil",
    "from_kernel",
    "from_similarity",
    "identity",
    "individual",
    "laplacian",
    "tree",
    "union",
]

Factors = list[tuple[str, sparse.csr_array]]  # name of a weight, B (T, r) with R = B B^T


@dataclass(frozen=True, eq=False)
class TaskSimilarity:
    """One or several kernels R_m between tasks, made by a helper such as `union()`; what they are is known with the tasks.

    columns : the features that it is about - a slice, positions, names, or the name of a view of the tasks; None: all

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
            raise ModelError(f"{typed}: {error}") from None
        for name, factor in found:
            if factor.shape[0] != tasks.n_tasks:
                raise ModelError(
                    f"{typed}: {self.text} is of {factor.shape[0]} tasks, but there are {tasks.n_tasks}; give {name!r} a row and a "
                    "column for every task"
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
                    f"{typed}: {self.text}: there is no view or feature {asked!r}; {known}, and the features "
                    f"{', '.join(map(repr, names[:5]))}{', ...' * (len(names) > 5)}"
                )
            asked = views.get(asked, [asked])
        if not isinstance(asked, slice):
            asked = [_position(one, names, typed, self.text) for one in asked]
        try:
            positions = np.unique(np.arange(len(names))[asked])
        except IndexError as error:
            raise ModelError(f"{typed}: {self.text}: {error}; there are {len(names)} features") from None
        if not positions.size:
            raise ModelError(
                f"{typed}: {self.text} is about no feature; select at least one, or leave columns=... out"
            )
        return positions


def _position(one, names: list[str], typed: str, text: str):
    if not isinstance(one, str):
        return one
    if one not in names:
        raise ModelError(
            f"{typed}: {text}: there is no feature {one!r}; the features are {', '.join(map(repr, names[:5]))}"
            f"{', ...' * (len(names) > 5)}"
        )
    return names.index(one)


def _made(word: str, shown: list[str], factors: Callable, columns) -> TaskSimilarity:
    if columns is not None:
        shown = [
            *shown,
            f"columns={columns!r}" if isinstance(columns, str) else f"columns={index_text(columns)}",
        ]
    return TaskSimilarity(f"{word}({', '.join(shown)})", factors, columns)


# ---------------------------------------------------------------------------------------------- of all tasks alike


def union(columns=None) -> TaskSimilarity:
    """All tasks are one: R = 1 1^T, so that this part of W is the same for all tasks.

    >>> import mtldsl as mtl
    >>> tasks = mtl.Tasks.shared([[1.0], [2.0]], [[1.0, -1.0], [-1.0, 1.0]])
    >>> union().kernels(tasks, "")[0].matrix
    array([[1., 1.],
           [1., 1.]])
    """
    return _made("union", [], lambda names: [("union", _column(np.ones(len(names))))], columns)


def individual(columns=None) -> TaskSimilarity:
    """Every task by itself: for each task t an indicator R = e_t e_t^T, with a weight of its own, named after the task.

    >>> import mtldsl as mtl
    >>> tasks = mtl.Tasks.shared([[1.0], [2.0]], [[1.0, -1.0], [-1.0, 1.0]])
    >>> [kernel.name for kernel in individual().kernels(tasks, "")]
    ['task0', 'task1']
    """

    def factors(names):
        unit = sparse.eye_array(len(names), format="csc")
        return [(name, sparse.csr_array(unit[:, [t]])) for t, name in enumerate(names)]

    return _made("individual", [], factors, columns)


def identity(columns=None) -> TaskSimilarity:
    """No task is like another: R = I, one weight for all tasks. Alone, with weight 1, `mkl_norm` is then `ridge`."""
    return _made(
        "identity", [], lambda names: [("identity", sparse.eye_array(len(names), format="csr"))], columns
    )


def evgeniou_pontil(lam0: float, lam1: float, columns=None) -> TaskSimilarity:
    """Regularized multi-task learning: w_t = w_0 + v_t with lam0 / 2 ||w_0||^2 + lam1 / 2 sum_t ||v_t||^2: R = 1 1^T / lam0 + I / lam1.

    Source: Evgeniou and Pontil, "Regularized multi-task learning", KDD 2004.
    """
    lam0 = checked_number("evgeniou_pontil", "lam0", lam0, lambda v: v > 0, "a finite number > 0")
    lam1 = checked_number("evgeniou_pontil", "lam1", lam1, lambda v: v > 0, "a finite number > 0")
    return _made(
        "evgeniou_pontil",
        [f"lam0={lam0:g}", f"lam1={lam1:g}"],
        lambda names: [("evgeniou_pontil", _shared_and_own(len(names), lam0, lam1))],
        columns,
    )


def domain_adaptation(columns=None) -> TaskSimilarity:
    """Frustratingly easy domain adaptation: every feature once for all tasks and once for each: R = 1 1^T + I.

    Source: Daume, "Frustratingly easy domain adaptation", ACL 2007.
    """
    return _made(
        "domain_adaptation",
        [],
        lambda names: [("domain_adaptation", _shared_and_own(len(names), 1.0, 1.0))],
        columns,
    )


# ---------------------------------------------------------------------------------------------- of groups of tasks


def clusters(labels, columns=None) -> TaskSimilarity:
    """Groups of tasks: for each an indicator 1_C 1_C^T with a weight of its own.

    labels : one label a task, in their order, or {task name: label}

    >>> clusters(["a", "a", "b"])
    clusters(2 groups of 3 tasks)
    """
    if isinstance(labels, str) or not isinstance(labels, (Iterable, Mapping)):
        raise ModelError(f"clusters({labels!r}): write one label a task, as in clusters(['a', 'a', 'b'])")
    labels = dict(labels) if isinstance(labels, Mapping) else list(labels)
    groups = list(dict.fromkeys(labels.values() if isinstance(labels, dict) else labels))

    def factors(names):
        if isinstance(labels, dict):
            _require_tasks(labels, names, "clusters")
        of_task = [labels[name] for name in names] if isinstance(labels, dict) else labels
        return [(f"cluster {group}", _column([float(own == group) for own in of_task])) for group in groups]

    return _made("clusters", [f"{len(groups)} groups of {len(labels)} tasks"], factors, columns)


def _require_tasks(given, names, word: str) -> None:
    for missing in set(names) - set(given):
        raise ModelError(f"{word}(...): task {missing!r} is missing; name every task once")
    for unknown in set(given) - set(names):
        raise ModelError(
            f"{word}(...): there is no task {unknown!r}; the tasks are {', '.join(map(repr, names[:8]))}{', ...' * (len(names) > 8)}"
        )


def tree(parents, columns=None) -> TaskSimilarity:
    """A hierarchy with the tasks as leaves: for every node the indicator of the tasks below it, with a weight of its own.

    parents : {node: its parent}, the root's parent None, whose leaves are the names of the tasks; or a list of the positions of
        parents, -1 for the root, in which the first T nodes are the tasks; or a networkx DiGraph with edges from parent to child

    >>> tree({"a": "top", "b": "top", "top": None})
    tree(3 nodes)
    """
    if hasattr(parents, "predecessors"):  # a networkx graph
        parents = {node: next(iter(parents.predecessors(node)), None) for node in parents.nodes}
    if not isinstance(parents, Mapping):
        try:
            parents = np.asarray(parents)
            whole = parents.ndim == 1 and parents.size and parents.dtype.kind in "iu"
        except ValueError:
            whole = False
        if not whole:
            raise ModelError(
                "tree(parents): write {node: its parent, ..., root: None}, or a list of the parents' positions with -1 for the root"
            )
    n = len(parents)
    shown = f"{n} node" + "s" * (n != 1)
    return _made("tree", [shown], lambda names: indicators_of_tree(parents, names), columns)


# ------------------------------------------------------------------------------------------------- from matrices


def laplacian(L, gamma: float = 1.0, columns=None) -> TaskSimilarity:
    """Neighbours on a graph of tasks are alike: R = (I + gamma L)^{-1} for its Laplacian L (T, T).

    L : symmetric positive semidefinite array, or a networkx graph whose nodes are the tasks' names or positions
    """
    gamma = checked_number("laplacian", "gamma", gamma, lambda v: v >= 0, "a finite number >= 0")
    typed = f"laplacian({_shown(L)}, gamma={gamma:g})"
    graph = L if hasattr(L, "adjacency") else None
    spectral = None if graph is not None else checked_symmetric(L, typed)

    def factors(names):
        eigen = spectral if graph is None else checked_symmetric(_laplacian_of(graph, names), typed)
        return [("laplacian", _half(eigen, 1.0 / (1.0 + gamma * eigen.values)))]

    return _made("laplacian", [_shown(L), f"gamma={gamma:g}"], factors, columns)


def _laplacian_of(graph, names) -> np.ndarray:
    import networkx as nx

    if set(graph.nodes) == set(range(len(names))):
        names = range(len(names))
    else:
        _require_tasks(graph.nodes, names, "laplacian")
    return nx.laplacian_matrix(graph, nodelist=list(names)).toarray().astype(float)


def from_kernel(R, columns=None) -> TaskSimilarity:
    """Any symmetric positive semidefinite kernel R (T, T) between tasks, also a singular one: W is then restricted to its range.

    >>> from_kernel([[1.0, 0.5], [0.5, 1.0]])
    from_kernel(array(2, 2))
    """
    spectral = checked_symmetric(R, f"from_kernel({_shown(R)})")
    if not spectral.values.any():
        raise ModelError(
            f"from_kernel({_shown(R)}): the kernel is zero, so that all weights would have to be; leave it out"
        )
    return _made(
        "from_kernel", [_shown(R)], lambda names: [("kernel", _half(spectral, spectral.values))], columns
    )


def from_similarity(Q, columns=None) -> TaskSimilarity:
    """The paper's task similarity matrix Q (T, T), symmetric positive definite: its part of W costs 1/2 tr(W Q W^T), and R = Q^{-1}.

    A large Q_st < 0 makes tasks s and t alike. ModelError for a singular Q, such as the 0/1 matrix of a group of tasks, which has no
    inverse: that is a kernel, `from_kernel(R)`.
    """
    typed = f"from_similarity({_shown(Q)})"
    spectral = checked_symmetric(Q, typed)
    if spectral.values[0] <= 0.0:
        raise ModelError(
            f"{typed}: Q is singular, and the task kernel is its inverse. An indicator of tasks that belong together is a kernel "
            f"itself: write from_kernel({'R' if np.ndim(Q) == 2 else _shown(Q)})"
        )
    return _made(
        "from_similarity",
        [_shown(Q)],
        lambda names: [("similarity", _half(spectral, 1.0 / spectral.values))],
        columns,
    )


def _shown(matrix) -> str:
    try:
        return constant_text(matrix)
    except (TypeError, ValueError):
        return "graph" if hasattr(matrix, "adjacency") else repr(matrix)[:40]


def _column(values) -> sparse.csr_array:
    return sparse.csr_array(np.asarray(values, float)[:, None])


def _shared_and_own(n: int, lam0: float, lam1: float) -> sparse.csr_array:
    own = sparse.eye_array(n, format="csr") / np.sqrt(lam1)
    return sparse.csr_array(sparse.hstack([_column(np.full(n, lam0**-0.5)), own], format="csr"))


def _half(spectral: SpectralMatrix, values) -> sparse.csr_array:
    """B with B B^T the matrix of these eigenvectors and eigenvalues >= 0."""
    held = values > 0.0
    return sparse.csr_array(spectral.basis[:, held] * np.sqrt(values[held]))
