"""Table of several labels per row, and measures of the dependence between them: co-occurrence, mutual information, Chow-Liu tree."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from mtldsl.data.derived import label_table
from mtldsl.data.labels import row_weights
from mtldsl.data.schema import require_tasks
from mtldsl.data.tasks import Tasks
from mtldsl.errors import DataError
from mtldsl.utils.memory import require_memory

if TYPE_CHECKING:
    import networkx
    from matplotlib.axes import Axes

# --------------------------------------------------------------------------------------------------------------
# How labels depend on one another, whatever the inputs: co-occurrence, mutual information, and the Chow-Liu tree.


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
    weights = row_weights(tasks, typed)
    return positive, weights / weights.sum()


# --------------------------------------------------------------------------------------------------------------
# A picture of which labels stand together in the data, whatever the inputs: to be seen beside the graph that was learned.


def co_occurrence_plot(tasks: Tasks, *, order=None, title: str | None = None, ax: Axes | None = None) -> Axes:
    """The share of the samples with a row's label that also have the column's label; on the diagonal the share of all with it.

    Parameters
    ----------
    tasks : Tasks with a shared X and labels -1 and +1 in every row
    order : names or positions of all labels, optional
        Such as `label_order(solution)`, that of `graph_plot`; default: labels that go together side by side.
    title : str, optional
    ax : matplotlib Axes, optional
        Where to draw, best in a figure with layout="constrained"; default: in a new figure.

    Returns
    -------
    matplotlib Axes
        Up to 12 labels, each cell shows its number in hundredths.

    Raises
    ------
    DataError
        For tasks with separate inputs or missing labels, and where order does not fit.
    MissingExtraError
        Where matplotlib is not installed.

    Examples
    --------
    >>> Y = [[1, 1, -1], [1, 1, -1], [1, -1, -1], [-1, -1, 1]]
    >>> ax = co_occurrence_plot(Tasks.shared([[1.0]] * 4, Y, task_names=["sea", "beach", "city"]), order=[0, 1, 2])
    >>> [text.get_text() for text in ax.texts]
    ['75', '67', '0', '100', '50', '0', '0', '0', '25']
    """
    from mtldsl.display.pictures.graph import positions_in
    from mtldsl.display.pictures.heatmap import clustered_order, draw_cells

    together = co_occurrence(tasks)
    shares, names = np.diag(together), list(tasks.task_names)
    at = clustered_order(_correlation(together, shares)) if order is None else positions_in(order, names)
    given = (together / shares[:, None])[np.ix_(at, at)]
    shares, names = shares[at], [names[k] for k in at]
    said = "share of the row's samples that\nhave the column's label too"
    numbers = 100.0 * np.where(np.eye(len(at), dtype=bool), shares, given)
    return draw_cells(
        given, names, "YlGnBu", (0.0, 1.0), (said,), ax, title, numbers=numbers, form="{:.0f}", what="labels", fontsize=8
    )  # fmt: skip


def _correlation(together, shares) -> np.ndarray:
    """The correlation of the labels as numbers 0 and 1."""
    spread = np.sqrt(shares * (1.0 - shares))
    found = (together - np.outer(shares, shares)) / np.outer(spread, spread)
    found = np.clip((found + found.T) / 2.0, -1.0, 1.0)
    np.fill_diagonal(found, 1.0)
    return found


# --------------------------------------------------------------------------------------------------------------
# A table of labels, once as one task of all its entries and once as one task a row: for losses across labels.


class AcrossLabels:
    r"""The labels of n rows under m tasks, for losses that look at the whole table or at whole rows, such as micro-F1 and sample-F1.

    The score of entry (j, i), x_j^T w_i, is the product of the weights of all labels one after the other, (d m,), with x_j in block i.
    So a loss of the whole table is the loss of one task whose n m samples are the entries, and a loss of the rows is the loss of
    n tasks of m samples that share one column of weights, W @ spread:

        structured_hinge(W, across.table, metric=FScore())                   one minus micro-F1: the F-score of all entries
        structured_hinge(W @ across.spread, across.rows, metric=FScore())    the sum over rows of one minus the row's F-score
        structured_hinge(W @ across.spread, across.rows, metric=ROCArea())   the ranking loss: the sum over rows of the share of pairs
                                                                             (right label, wrong label) in the wrong order

        hinge_loss(W, across.pairs)                                          the same ranking loss, pair by pair: sooner solved
        clique_hinge(U, V, across.labelled, loss=FScore())                   the mean over rows of one minus the row's F-score: sooner solved

    with W = Weights(across.table), and any other metric in their place. Their oracles, conjugates and proofs are those of the metric.
    U = NodeWeights(across.labelled) and V = EdgeWeights(across.labelled, []) are a graph without edges, with two columns a label, of which
    w is half the difference: U of -w and w has the scores of w, and twice its ridge, sqrt(2) times its l21_norm.

    Parameters
    ----------
    tasks : Tasks.shared(X, Y) with labels -1 and +1 (NaN: the entry is in neither table nor row)

    Attributes
    ----------
    table    : Tasks, one task over d m features, "feature of label", label after label
    rows     : Tasks, a task for every row that has a label of each kind, named by the row's number: of the others neither F-score nor
               ranking is defined
    pairs    : Tasks, one task of all pairs (right label a, wrong label b) of these rows, with inputs +-2 (x_j in block a, -x_j in block b),
               the sign as label, and sample weights of one over the pairs of the row
    labelled : the rows of `rows` as they were given, tasks that share their inputs: for `clique_hinge`, which looks at all labellings of a
               row, of up to 16 labels, none of them missing
    spread   : (1, number of these rows) of ones: W @ spread has the one column of W for every row
    left_out : the numbers of the rows that are not in `rows`
    features : of every feature its d m weights' positions, a list of m numbers: `group_norm(W, across.features)` is the l21_norm of (d, m)

    Raises
    ------
    DataError
        Where tasks do not share their inputs, samples carry weights, labels are not -1 and +1, or no row has both.

    Notes
    -----
    Memory: m copies of X as a sparse matrix for `table`, made when first asked for, as many for `rows`, and for `pairs` two a pair.
    Solvers keep a copy of all weights for every one of the `rows`: losses of these suit some dozens of rows, the others thousands. On the
    593 rows and 6 labels of Emotions `labelled` and `pairs` take 1 to 6 seconds; 120 such rows take 5 as `rows`.
    Source: sample-F1, micro-F1 and ranking loss as in Zhang and Zhou, "A review on multi-label learning algorithms", IEEE Transactions on
    Knowledge and Data Engineering 26 (2014); their structured hinges, Joachims, ICML 2005.

    Examples
    --------
    >>> import numpy as np, mtldsl as mtl
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> across = mtl.AcrossLabels(mtl.Tasks.shared(X, np.array([[1, -1], [-1, 1], [1, 1]])))
    >>> across.table, across.left_out
    (<Tasks: 1 task, 4 features, sparse shared inputs, 6 labelled rows>, array([2]))
    >>> W = mtl.Weights(across.table)
    >>> solution = mtl.minimize(mtl.ridge(W) + 10 * mtl.structured_hinge(W, across.table, metric=mtl.metrics.FScore())).solve()
    >>> X @ across.weights(solution["W"]) >= 0
    array([[ True, False],
           [False,  True],
           [ True,  True]])
    """

    def __init__(self, tasks: Tasks):
        typed = "AcrossLabels(tasks)"
        require_tasks(tasks, typed)
        if not tasks.is_shared:
            raise DataError(
                "these tasks do not share their inputs", term=typed, write_instead="write Tasks.shared(X, Y)"
            )
        if tasks.is_weighted:
            raise DataError("these tasks have sample weights, and a metric counts samples", term=typed)
        if not np.isin(tasks.targets, (-1.0, 1.0)).all():
            raise DataError("labels are not -1 and +1", term=typed)
        self._tasks = tasks
        self._labels = np.nan_to_num(label_table(tasks, tasks.targets)).T
        both = np.any(self._labels > 0, axis=0) & np.any(self._labels < 0, axis=0)
        if not both.any():
            raise DataError("no row has both a label -1 and a label +1", term=typed)
        self.left_out = np.flatnonzero(~both)
        self._whole = np.flatnonzero(both)
        self.spread = np.ones((1, len(self._whole)))
        d, m = tasks.n_features, tasks.n_tasks
        self.features = [list(range(k, d * m, d)) for k in range(d)]

    def __repr__(self) -> str:
        """Say how many rows and labels there are, and how many rows are left out.

        >>> AcrossLabels(Tasks.shared(np.eye(2), np.array([[1, -1], [1, 1]])))
        <AcrossLabels: 2 rows of 2 labels, 1 left out, whose labels are all alike>
        """
        left = f", {len(self.left_out)} left out, whose labels are all alike" if len(self.left_out) else ""
        return f"<AcrossLabels: {self._tasks.X.shape[0]} rows of {self._tasks.n_tasks} labels{left}>"

    @cached_property
    def table(self) -> Tasks:
        """One task of all entries, label after label."""
        X = self._sparse()
        parts = [X[np.flatnonzero(own)] for own in self._labels]
        return Tasks.shared(
            sparse.csr_array(sparse.block_diag(parts, format="csr")),
            self._tasks.targets.reshape(-1, 1),
            task_names=["all labels"],
            feature_names=self._names,
        )

    @cached_property
    def rows(self) -> Tasks:
        """A task for every row with labels of both kinds."""
        X, labels = self._sparse(), self._labels.T[self._whole]
        blocks = sparse.eye_array(self._tasks.n_tasks, format="csr")
        inputs, targets = [], []
        for j, own in zip(self._whole.tolist(), labels, strict=True):
            there = np.flatnonzero(own)
            inputs.append(sparse.csr_array(sparse.kron(blocks[there], X[[j]], format="csr")))
            targets.append(own[there])
        names = [f"row {j}" for j in self._whole.tolist()]
        return Tasks.separate(inputs, targets, task_names=names, feature_names=self._names)

    @cached_property
    def labelled(self) -> Tasks:
        """The rows that have labels of both kinds, with all labels of a row."""
        labels = self._labels.T[self._whole]
        return Tasks.shared(
            self._tasks.X[self._whole],
            np.where(labels == 0.0, np.nan, labels),
            task_names=self._tasks.task_names,
            feature_names=self._tasks.feature_names,
        )

    @cached_property
    def pairs(self) -> Tasks:
        """One task of the pairs of every row, each weighted by one over their number."""
        X, m = self._sparse(), self._tasks.n_tasks
        differences, weights, n = [], [], 0
        for j, labels in zip(self._whole.tolist(), self._labels.T[self._whole], strict=True):
            right, wrong = (
                side.ravel() for side in np.meshgrid(np.flatnonzero(labels > 0), np.flatnonzero(labels < 0))
            )
            k = len(right)
            signs = _alternating(n, n + k)
            entries = (
                np.concatenate([2.0 * signs, -2.0 * signs]),
                (np.tile(np.arange(k), 2), np.concatenate([right, wrong])),
            )
            differences.append(sparse.kron(sparse.coo_array(entries, shape=(k, m)), X[[j]], format="csr"))
            weights.append(np.full(k, 1.0 / k))
            n += k
        require_memory(
            16.0 * sum(part.nnz for part in differences),
            "the pairs of all rows",
            "take fewer rows",
            DataError,
        )
        return Tasks.shared(
            sparse.csr_array(sparse.vstack(differences, format="csr")),
            _alternating(0, n).reshape(-1, 1),
            sample_weights=np.concatenate(weights),
            task_names=["all pairs"],
            feature_names=self._names,
        )

    @property
    def _names(self) -> list[str]:
        return [
            f"{feature} of {task}" for task in self._tasks.task_names for feature in self._tasks.feature_names
        ]

    def _sparse(self) -> sparse.csr_array:
        X, m = self._tasks.X, self._tasks.n_tasks
        entries = X.nnz if sparse.issparse(X) else X.size
        require_memory(
            16.0 * m * entries, f"{m} copies of the inputs", "take fewer rows or features", DataError
        )
        return sparse.csr_array(X, dtype=float)

    def weights(self, W) -> np.ndarray:
        """(d, m), a column a label, of the weights (d m, 1) of `table` or (d, 2 m) of `NodeWeights(labelled)`; DataError for another shape."""
        d, m = self._tasks.n_features, self._tasks.n_tasks
        W = np.asarray(W, float)
        if W.shape == (d, 2 * m):
            return 0.5 * (W[:, 1::2] - W[:, ::2])
        if W.shape not in ((d * m, 1), (d * m,)):
            raise DataError(
                f"these weights are {W.shape}, and there are {d * m} of them, one column", term="weights(W)"
            )
        return W.reshape(m, d).T.copy()


def _alternating(first: int, last: int) -> np.ndarray:
    """Labels of pairs: +1, -1, +1, ..., for a task of one label is refused."""
    return 1.0 - 2.0 * (np.arange(first, last) % 2)
