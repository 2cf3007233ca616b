"""Similarities between tasks, as a user states them: each helper makes the kernels R_m of `mkl_norm`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from scipy import sparse

from mtldsl.atoms.atom import checked_number
from mtldsl.errors import ModelError
from mtldsl.language.task_similarity import (
    Factors,
    TaskSimilarity,
    from_kernel,
    from_similarity,
    indicators_of_tree,
    laplacian,
    make_similarity,
    require_tasks,
)
from mtldsl.utils.validation import as_list, as_whole, distinct_names, is_missing, quoted

__all__ = [
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


def __dir__() -> list[str]:
    return __all__


# ---------------------------------------------------------------------------------------------- of all tasks alike


def union(columns=None) -> TaskSimilarity:
    """All tasks are one: R = 1 1^T, so that this part of W is the same for all tasks.

    >>> from mtldsl.similarities import union
    >>> import mtldsl as mtl
    >>> tasks = mtl.Tasks.shared([[1.0], [2.0]], [[1.0, -1.0], [-1.0, 1.0]])
    >>> union().kernels(tasks, "")[0].matrix
    array([[1., 1.],
           [1., 1.]])
    """
    return _one_kernel("union", [], _ones, columns)


def individual(columns=None) -> TaskSimilarity:
    """Every task by itself: for each task t an indicator R = e_t e_t^T, with a weight of its own, named after the task.

    >>> from mtldsl.similarities import individual
    >>> import mtldsl as mtl
    >>> tasks = mtl.Tasks.shared([[1.0], [2.0]], [[1.0, -1.0], [-1.0, 1.0]])
    >>> [kernel.name for kernel in individual().kernels(tasks, "")]
    ['task0', 'task1']
    """
    return make_similarity("individual", [], _units, columns)


def identity(columns=None) -> TaskSimilarity:
    """No task is like another: R = I, one weight for all tasks. Alone, with weight 1, `mkl_norm` is then `ridge`."""
    return _one_kernel("identity", [], partial(sparse.eye_array, format="csr"), columns)


def evgeniou_pontil(lam0: float, lam1: float, columns=None) -> TaskSimilarity:
    """Regularized multi-task learning: w_t = w_0 + v_t with lam0 / 2 ||w_0||^2 + lam1 / 2 sum_t ||v_t||^2: R = 1 1^T / lam0 + I / lam1.

    Source: Evgeniou and Pontil, "Regularized multi-task learning", KDD 2004.
    """
    lam0 = checked_number("evgeniou_pontil", "lam0", lam0, lambda v: v > 0, "a finite number > 0")
    lam1 = checked_number("evgeniou_pontil", "lam1", lam1, lambda v: v > 0, "a finite number > 0")
    shown = [f"lam0={lam0:g}", f"lam1={lam1:g}"]
    return _one_kernel("evgeniou_pontil", shown, partial(_shared_and_own, lam0=lam0, lam1=lam1), columns)


def domain_adaptation(columns=None) -> TaskSimilarity:
    """Frustratingly easy domain adaptation: every feature once for all tasks and once for each: R = 1 1^T + I.

    Source: Daume, "Frustratingly easy domain adaptation", ACL 2007.
    """
    return _one_kernel("domain_adaptation", [], partial(_shared_and_own, lam0=1.0, lam1=1.0), columns)


def _one_kernel(
    word: str, shown: list[str], factor: Callable[[int], sparse.csr_array], columns
) -> TaskSimilarity:
    """The similarity with one kernel, whose factor is known from the number of tasks."""
    return make_similarity(word, shown, partial(_one_factor, word, factor), columns)


# Factors of kernels are made by functions of this module, never by local ones: a model with similarities can be pickled.


def _one_factor(word: str, factor: Callable[[int], sparse.csr_array], names) -> Factors:
    return [(word, factor(len(names)))]


def _ones(n: int) -> sparse.csr_array:
    return _column(np.ones(n))


def _units(names) -> Factors:
    unit = sparse.eye_array(len(names), format="csc")
    return [(name, sparse.csr_array(unit[:, [t]])) for t, name in enumerate(names)]


# ---------------------------------------------------------------------------------------------- of groups of tasks


def clusters(labels, columns=None) -> TaskSimilarity:
    """Groups of tasks: for each an indicator 1_C 1_C^T with a weight of its own.

    labels : one label a task, in their order, or {task name: label}

    >>> from mtldsl.similarities import clusters
    >>> clusters(["a", "a", "b"])
    clusters(2 groups of 3 tasks)
    """
    if hasattr(labels, "index") and hasattr(labels, "items"):  # a pandas Series says which task a label is of
        labels = dict(labels.items())
        labels = list(labels.values()) if list(labels) == list(range(len(labels))) else labels
    if isinstance(labels, Mapping):
        labels = {str(t): label for t, label in labels.items()}
    listed = list(labels.values()) if isinstance(labels, dict) else as_list(labels)
    flat = getattr(labels, "ndim", 1) == 1
    if not listed or not flat or any(is_missing(one) or not _is_label(one) for one in listed):
        raise ModelError(
            term=f"clusters({quoted(labels)})",
            write_instead="write one label a task, as in clusters(['a', 'a', 'b'])",
        )
    labels = labels if isinstance(labels, dict) else listed
    groups = list(dict.fromkeys(listed))
    shown = [f"{len(groups)} groups of {len(labels)} tasks"]
    return make_similarity("clusters", shown, partial(_of_clusters, labels, groups), columns)


def _of_clusters(labels, groups: list, names) -> Factors:
    if isinstance(labels, dict):
        require_tasks(labels, names, "clusters")
    of_task = [labels[name] for name in names] if isinstance(labels, dict) else labels
    if len(of_task) != len(names):
        raise ModelError(
            f"{len(of_task)} labels for {len(names)} tasks",
            term="clusters(...)",
            write_instead="give one label a task",
        )
    return [
        (f"cluster {name}", _column([float(own == group) for own in of_task]))
        for name, group in zip(distinct_names(groups), groups, strict=True)
    ]


def _is_label(value) -> bool:
    try:
        return bool(value == value) and isinstance(hash(value), int)
    except (TypeError, ValueError, ArithmeticError):
        return False


def tree(parents, columns=None) -> TaskSimilarity:
    """A hierarchy with the tasks as leaves: for every node the indicator of the tasks below it, with a weight of its own.

    parents : {node: its parent}, the root's parent None, whose leaves are the names of the tasks; or a list of the positions of
        parents, -1 for the root, in which the first T nodes are the tasks; or a networkx DiGraph with edges from parent to child

    >>> from mtldsl.similarities import tree
    >>> tree({"a": "top", "b": "top", "top": None})
    tree(3 nodes)
    """
    if hasattr(parents, "predecessors"):  # a networkx graph
        for node in parents.nodes:
            if len(list(parents.predecessors(node))) > 1:
                raise ModelError(
                    f"node {node!r} has two parents; in a tree every node has one, and the root none",
                    term="tree(graph)",
                )
        parents = {node: next(iter(parents.predecessors(node)), None) for node in parents.nodes}
    if not isinstance(parents, Mapping):
        listed = [as_whole(parent) for parent in as_list(parents) or [None]]
        parents = np.array([-1 if parent is None else parent for parent in listed])
        if None in listed:
            raise ModelError(
                term="tree(parents)",
                write_instead="write {node: its parent, ..., root: None}, or a list of the parents' positions with -1 for the root",
            )
    n = len(parents)
    shown = f"{n} node" + "s" * (n != 1)
    return make_similarity("tree", [shown], partial(indicators_of_tree, parents), columns)


def _column(values) -> sparse.csr_array:
    return sparse.csr_array(np.asarray(values, float)[:, None])


def _shared_and_own(n: int, lam0: float, lam1: float) -> sparse.csr_array:
    own = sparse.eye_array(n, format="csr") / np.sqrt(lam1)
    return sparse.csr_array(sparse.hstack([_column(np.full(n, lam0**-0.5)), own], format="csr"))
