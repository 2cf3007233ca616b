"""How labels depend on one another, whatever the inputs: co-occurrence, mutual information, and the Chow-Liu tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtldsl.errors import DataError
from mtldsl.system.memory import require_memory
from mtldsl.tasks import Tasks, require_tasks

if TYPE_CHECKING:
    import networkx

__all__ = ["chow_liu_tree", "co_occurrence", "mutual_information"]


def co_occurrence(tasks: Tasks) -> np.ndarray:
    """C[j, k] = the share of samples with both labels j and k: (K, K), symmetric. On the diagonal the share with label k.

    tasks : labels -1/+1 over a shared X, both of them in every task, every row with all labels; sample weights count, where each row
            has one for all its labels

    The share of those with label j that also have label k is C[j, k] / C[j, j]. Raises DataError for other tasks.

    >>> from mtldsl import Tasks, datasets
    >>> Y = [[1, 1, -1], [1, 1, -1], [1, -1, -1], [-1, -1, 1]]
    >>> datasets.co_occurrence(Tasks.shared([[1.0]] * 4, Y))
    array([[0.75, 0.5 , 0.  ],
           [0.5 , 0.5 , 0.  ],
           [0.  , 0.  , 0.25]])
    """
    positive, weights = _labels(tasks, "co_occurrence(tasks)")
    return positive.T @ (weights[:, None] * positive)


def mutual_information(tasks: Tasks) -> np.ndarray:
    """I[j, k] = sum over the states a, b of labels j, k of  p(a, b) ln( p(a, b) / (p(a) p(b)) ):  (K, K), in nats.

    p are shares of samples. I is symmetric and >= 0; 0 where two labels are independent in the sample, at most the entropy of either,
    which stands on the diagonal. Inputs play no part. tasks and errors as in `co_occurrence`.

    >>> from mtldsl import Tasks, datasets
    >>> Y = [[1, 1, -1], [1, 1, 1], [-1, -1, -1], [-1, -1, 1]]
    >>> datasets.mutual_information(Tasks.shared([[1.0]] * 4, Y)).round(4)
    array([[0.6931, 0.6931, 0.    ],
           [0.6931, 0.6931, 0.    ],
           [0.    , 0.    , 0.6931]])
    """
    return _information(*_labels(tasks, "mutual_information(tasks)"))


def _information(positive, weights) -> np.ndarray:
    states = (1.0 - positive, positive)
    information = np.zeros((positive.shape[1], positive.shape[1]))
    for a in states:
        for b in states:
            joint = a.T @ (weights[:, None] * b)
            independent = np.outer(weights @ a, weights @ b)
            seen = joint > 0
            information[seen] += joint[seen] * np.log(joint[seen] / independent[seen])
    # independent labels leave rounding, of either sign
    return np.maximum((information + information.T) / 2.0, 0.0)


def chow_liu_tree(tasks: Tasks) -> networkx.Graph:
    """The tree over all labels with the largest sum of mutual information: a networkx.Graph over their names.

    The best distribution of the labels that factors along this tree has the highest likelihood that one along a tree can have. It knows nothing of
    the inputs, and has K - 1 edges also where labels are independent. Edge attribute: mutual_information, in nats. Which of several best
    trees it is depends on the order of the labels only. Use training rows; tasks and errors as in `co_occurrence`.

    Source: Chow and Liu, Approximating discrete probability distributions with dependence trees (1968); the CGM paper's SSVM-CT.

    >>> from mtldsl import Tasks, datasets
    >>> Y = [[1, 1, 1], [1, 1, 1], [1, 1, -1], [1, -1, -1], [-1, -1, -1], [-1, -1, -1]]
    >>> tree = datasets.chow_liu_tree(Tasks.shared([[1.0]] * 6, Y, task_names=["beach", "sea", "sunset"]))
    >>> [(*edge, round(nats, 3)) for *edge, nats in tree.edges(data="mutual_information")]
    [('beach', 'sea', 0.318), ('sea', 'sunset', 0.318)]
    """
    import networkx

    information = _information(*_labels(tasks, "chow_liu_tree(tasks)"))
    names = tasks.task_names
    everything = networkx.Graph()
    everything.add_nodes_from(names)
    everything.add_edges_from(
        (names[j], names[k], {"mutual_information": float(information[j, k])})
        for j in range(len(names))
        for k in range(j + 1, len(names))
    )
    return networkx.maximum_spanning_tree(everything, weight="mutual_information")


def _labels(tasks: Tasks, typed: str) -> tuple[np.ndarray, np.ndarray]:
    """(n, K) of 0 and 1, and (n,) the share of each row."""
    require_tasks(tasks, typed)
    if not tasks.is_shared or tasks.n_missing:
        what = (
            f"labels are missing ({tasks.n_missing})"
            if tasks.is_shared
            else "these tasks have separate inputs"
        )
        raise DataError(f"{what}; labels are compared row by row, so every row needs all of them", term=typed)
    tasks.require_labels("sign", typed)
    K = float(tasks.n_tasks)
    require_memory(
        64.0 * K * K,
        f"{typed}: a number for each pair of {tasks.n_tasks:,} labels",
        "select labels first: tasks.select(...)",
        DataError,
    )
    positive = (tasks.targets.reshape(tasks.n_tasks, -1).T > 0).astype(float)
    if tasks.sample_weights is None:
        return positive, np.full(len(positive), 1.0 / len(positive))
    weights = tasks.sample_weights.reshape(tasks.n_tasks, -1)
    if (weights != weights[0]).any():
        row = int(np.flatnonzero((weights != weights[0]).any(axis=0))[0])
        raise DataError(
            f"the labels of row {row} have different sample weights",
            term=typed,
            write_instead="give sample_weights (n,), one a row",
        )
    return positive, weights[0] / weights[0].sum()
