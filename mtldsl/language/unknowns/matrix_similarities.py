"""Similarities between tasks that are given as a matrix or a graph."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mtldsl.atoms.parameters import checked_number
from mtldsl.atoms.regularizers.kronecker import checked_symmetric
from mtldsl.atoms.structures import SpectralMatrix
from mtldsl.errors import ModelError
from mtldsl.language.expressions.constants import constant_text
from mtldsl.language.unknowns.task_similarity import TaskSimilarity, made, require_tasks

__all__ = ["from_kernel", "from_similarity", "laplacian"]


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

    return made("laplacian", [_shown(L), f"gamma={gamma:g}"], factors, columns)


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
    return made(
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
    return made(
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
    if hasattr(matrix, "adjacency"):
        return "graph"
    try:
        return constant_text(matrix)
    except (TypeError, ValueError):
        return "graph" if hasattr(matrix, "adjacency") else repr(matrix)[:40]


def _half(spectral: SpectralMatrix, values) -> sparse.csr_array:
    """B with B B^T the matrix of these eigenvectors and eigenvalues >= 0."""
    held = values > 0.0
    return sparse.csr_array(spectral.basis[:, held] * np.sqrt(values[held]))
