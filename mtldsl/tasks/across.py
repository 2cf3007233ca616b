"""A table of labels, once as one task of all its entries and once as one task a row: for losses across labels."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mtldsl.errors import DataError
from mtldsl.system.memory import require_memory
from mtldsl.tasks.given import require_tasks
from mtldsl.tasks.tasks import Tasks

__all__ = ["AcrossLabels"]


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
        n, m = tasks.X.shape[0], tasks.n_tasks
        known = np.ones((n, m), bool) if tasks.mask is None else np.asarray(tasks.mask, bool)
        self._labels = np.zeros((m, n))
        self._labels[known.T] = tasks.targets
        both = np.any(self._labels > 0, axis=0) & np.any(self._labels < 0, axis=0)
        if not both.any():
            raise DataError("no row has both a label -1 and a label +1", term=typed)
        self.left_out = np.flatnonzero(~both)
        self._whole = np.flatnonzero(both)
        self.spread = np.ones((1, len(self._whole)))
        d = tasks.n_features
        self.features = [list(range(k, d * m, d)) for k in range(d)]
        self._made: dict[str, Tasks] = {}

    @property
    def table(self) -> Tasks:
        """One task of all entries, label after label."""
        if "table" not in self._made:
            X = self._sparse()
            parts = [X[np.flatnonzero(own)] for own in self._labels]
            self._made["table"] = Tasks.shared(
                sparse.csr_array(sparse.block_diag(parts, format="csr")),
                self._tasks.targets.reshape(-1, 1),
                task_names=["all labels"],
                feature_names=self._names,
            )
        return self._made["table"]

    @property
    def rows(self) -> Tasks:
        """A task for every row with labels of both kinds."""
        if "rows" not in self._made:
            X, labels = self._sparse(), self._labels.T[self._whole]
            blocks = sparse.eye_array(self._tasks.n_tasks, format="csr")
            inputs, targets = [], []
            for j, own in zip(self._whole.tolist(), labels, strict=True):
                there = np.flatnonzero(own)
                inputs.append(sparse.csr_array(sparse.kron(blocks[there], X[[j]], format="csr")))
                targets.append(own[there])
            names = [f"row {j}" for j in self._whole.tolist()]
            self._made["rows"] = Tasks.separate(inputs, targets, task_names=names, feature_names=self._names)
        return self._made["rows"]

    @property
    def labelled(self) -> Tasks:
        """The rows that have labels of both kinds, with all labels of a row."""
        if "labelled" not in self._made:
            labels = self._labels.T[self._whole]
            self._made["labelled"] = Tasks.shared(
                self._tasks.X[self._whole],
                np.where(labels == 0.0, np.nan, labels),
                task_names=self._tasks.task_names,
                feature_names=self._tasks.feature_names,
            )
        return self._made["labelled"]

    @property
    def pairs(self) -> Tasks:
        """One task of the pairs of every row, each weighted by one over their number."""
        if "pairs" not in self._made:
            X, m = self._sparse(), self._tasks.n_tasks
            differences, targets, weights, own = [], [], [], []
            for j, labels in zip(self._whole.tolist(), self._labels.T[self._whole], strict=True):
                right, wrong = (
                    side.ravel()
                    for side in np.meshgrid(np.flatnonzero(labels > 0), np.flatnonzero(labels < 0))
                )
                k = len(right)
                signs = np.where(
                    np.arange(len(own), len(own) + k) % 2 == 0, 1.0, -1.0
                )  # a task of one label is refused
                entries = (
                    np.concatenate([2.0 * signs, -2.0 * signs]),
                    (np.tile(np.arange(k), 2), np.concatenate([right, wrong])),
                )
                differences.append(sparse.kron(sparse.coo_array(entries, shape=(k, m)), X[[j]], format="csr"))
                targets.append(signs)
                weights.append(np.full(k, 1.0 / k))
                own += [j] * k
            require_memory(
                16.0 * sum(part.nnz for part in differences),
                "the pairs of all rows",
                "take fewer rows",
                DataError,
            )
            self._made["pairs"] = Tasks.shared(
                sparse.csr_array(sparse.vstack(differences, format="csr")),
                np.concatenate(targets).reshape(-1, 1),
                sample_weights=np.concatenate(weights),
                task_names=["all pairs"],
                feature_names=self._names,
            )
        return self._made["pairs"]

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
