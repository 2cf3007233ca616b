"""The data: m tasks over the same d features, with shared or separate inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from mtldsl.data.derived import (
    columns_near_zero,
    scaled_by,
    select,
    select_features,
    standardize,
    take_rows,
    with_targets,
)
from mtldsl.data.input_checks import as_learned, refuse_shuffled
from mtldsl.data.labels import require_kind, require_labels, signs_of_classes, without_one_class
from mtldsl.data.products import PredictionMap
from mtldsl.data.splits import folds, split, subsample
from mtldsl.data.summary import describe, fingerprint, one_line, panel_of
from mtldsl.data.task_parts import of_lists, of_long_table, of_table
from mtldsl.display.displayable import Displayable
from mtldsl.errors import DataError
from mtldsl.utils.caching import cached_property
from mtldsl.utils.validation import complete

#: attributes that solvers and certificates ask
_OF_SOLVERS = frozenset(
    [
        "adjoint",
        "apply_scoring",
        "apply_solving",
        "apply_tuning",
        "by_features",
        "column_lengths",
        "constant_scores",
        "cross",
        "cv_folds",
        "entries_a_row",
        "fingerprint",
        "forward",
        "gram",
        "has_signs",
        "imputation",
        "in_memory",
        "kernel_map",
        "label_sums",
        "mask",
        "matrices",
        "matrix",
        "near_zero",
        "offsets",
        "one_table",
        "place",
        "refuse_01",
        "require_kind",
        "require_labels",
        "sample_for_check",
        "scaled_by",
        "shift",
        "source_rows",
        "stacked",
        "statement_check",
        "storage_facts",
        "storage_note",
        "sums",
        "sums_of",
        "task_of",
        "totals",
        "transform",
    ]
)


#: the room of rows on Dask, which is imported when it is first asked for
_DISTRIBUTED = "mtldsl.distributed.dask_inputs"


class Tasks(PredictionMap, Displayable):
    """m tasks over d features. Make one with `Tasks.shared`, `Tasks.separate` or `Tasks.grouped`; it never changes.

    Rows without a label are not part of a task. What solvers see is flat: `targets` (N,) holds the labels of task 0, then of
    task 1, ...; `offsets` (m+1,) says where each task begins. `forward(W)` are all predictions in that order, `adjoint(u)` its
    transpose.

    >>> import numpy as np
    >>> from mtldsl.data.tasks import Tasks
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> tasks = Tasks.shared(X, [[1.0, 0.0], [2.0, np.nan], [3.0, 5.0]], task_names=["a", "b"])
    >>> tasks
    <Tasks: 2 tasks, 2 features, shared inputs, 3 + 2 labelled rows (1 missing)>
    >>> tasks.forward(np.eye(2))
    array([0., 2., 4., 1., 5.])
    """

    # --------------------------------------------------------------------------------------- constructors

    @classmethod
    @complete("write Tasks.shared(X, Y), with a column of Y for every task", DataError)
    def shared(cls, X, Y, *, sample_weights=None, task_names=None, feature_names=None, kernels=None) -> Tasks:
        """One X (n, d) for all tasks and a column of Y (n, m) per task; NaN in Y: that row is not in that task.

        X, Y            : numpy, scipy sparse, pandas or polars; column names become feature and task names
        sample_weights  : (n,) or (n, m), > 0
        kernels         : nonlinear features, see `with_kernels`
        Raises DataError for wrong lengths, NaN or infinity in X, an empty task, duplicate names.

        >>> from mtldsl.data.tasks import Tasks
        >>> Tasks.shared([[1.0], [2.0]], [[0.0, 1.0], [3.0, float("nan")]]).targets
        array([0., 3., 1.])
        """
        return cls(**of_table(X, Y, sample_weights, task_names, feature_names))._maybe_with(kernels)

    @classmethod
    def from_classes(cls, X, classes, *, sample_weights=None, feature_names=None) -> Tasks:
        """One task for each class, named after it, in sorted order: +1 in the rows of the class, -1 in all others.

        classes : (n,) text or numbers, two different ones or more
        Raises DataError for a missing class, one class alone, and as `shared` does.

        >>> from mtldsl.data.tasks import Tasks
        >>> tasks = Tasks.from_classes([[1.0], [2.0], [4.0]], ["oak", "elm", "oak"])
        >>> tasks.task_names, tasks.per_task(tasks.targets)[1]
        (('elm', 'oak'), array([ 1., -1.,  1.]))
        """
        refuse_shuffled({"X": X, "classes": classes, "sample_weights": sample_weights})
        signs, names = signs_of_classes(classes, "Tasks.from_classes(X, classes)")
        return cls.shared(
            X, signs, sample_weights=sample_weights, task_names=names, feature_names=feature_names
        )

    @classmethod
    @complete("write Tasks.separate([X1, X2], [y1, y2]), one of each for every task", DataError)
    def separate(
        cls, inputs: Sequence, targets: Sequence, *, sample_weights=None, task_names=None, feature_names=None,
        kernels=None,
    ) -> Tasks:  # fmt: skip
        """Task i has its own rows: inputs[i] (n_i, d) and targets[i] (n_i,). NaN: the row has no label, and is not in the task.

        sample_weights : a list of (n_i,), > 0
        kernels        : nonlinear features, see `with_kernels`
        Raises DataError, naming the task, for wrong lengths, different numbers of features, NaN or infinity in X, an empty task.

        >>> from mtldsl.data.tasks import Tasks
        >>> Tasks.separate([[[1.0], [2.0]], [[3.0]]], [[0.0, 1.0], [4.0]], task_names=["a", "b"])
        <Tasks: 2 tasks, 1 feature, separate inputs, 2 + 1 labelled rows>
        """
        return cls(**of_lists(inputs, targets, sample_weights, task_names, feature_names))._maybe_with(
            kernels
        )

    @classmethod
    @complete("write Tasks.grouped(X, y, task_ids), one long table with the task of every row", DataError)
    def grouped(cls, X, y, task_ids, *, sample_weights=None, feature_names=None, kernels=None) -> Tasks:
        """Rows of one long table, told apart by task_ids (n,). Tasks keep the order of first appearance; ids become names.

        X is copied once, its rows sorted by task (`stacked`); not at all where it is sorted already, no label is missing, and nobody
        can write to its arrays (not even to ones that they are views of), as with memory-mapped files: float64, or CSR with sorted
        indices and float64 or mapped float32 values. Data larger than memory: `mtldsl.datasets.store`.

        kernels : nonlinear features, see `with_kernels`

        >>> from mtldsl.data.tasks import Tasks
        >>> tasks = Tasks.grouped([[1.0], [2.0], [3.0]], [0.0, 1.0, 4.0], ["b", "a", "b"])
        >>> tasks.task_names, tasks.targets
        (('b', 'a'), array([0., 4., 1.]))
        """
        return cls(**of_long_table(X, y, task_ids, sample_weights, feature_names))._maybe_with(kernels)

    @classmethod
    def from_dask(
        cls, X, Y, *, sample_weights=None, task_names=None, feature_names=None, keep: bool | None = None
    ) -> Any:  # fmt: skip
        """Arrays of Dask, cut by rows into chunks: more rows than this machine has memory for. Extra `dask`.

        X              : (n, d) array of Dask; chunks of its columns are joined, chunks may be sparse
        Y              : (n, m) or (n,), cut as X is, or to be cut so; NaN: that row is not in that task
        sample_weights : (n,) or (n, m), > 0
        keep           : whether rows stay in the workers' memory (None: where they take half of it at most), else they are computed anew
                         at each pass, and must be the same each time

        One pass over the rows, on the workers, checks them as `Tasks.shared` does; DataError names the partition and the row. The work is
        done by the active `distributed.Client`, or else by threads of this process. The rows stay where they are: `tasks.X`, `tasks.targets`
        and the like are DataError here.
        """
        return import_module(_DISTRIBUTED).of_arrays(X, Y, sample_weights, task_names, feature_names, keep)

    @classmethod
    def from_dask_dataframe(
        cls, df, features, labels, task=None, sample_weights=None, *, keep: bool | None = None
    ) -> Any:  # fmt: skip
        """Columns of a data frame of Dask; each of its partitions is one. Extra `dask`.

        features       : names of numeric columns; None: all that are nothing else
        labels         : the column of labels, or one column per task; missing: that row is not in that task
        task           : the column of task ids of one long table, as in `Tasks.grouped`; tasks keep the order of first appearance
        sample_weights : the column of weights, > 0
        keep           : as in `from_dask`
        """
        return import_module(_DISTRIBUTED).of_frame(df, features, labels, task, sample_weights, keep)

    def _maybe_with(self, kernels) -> Tasks:
        return self if kernels is None else self.with_kernels(kernels)

    # --------------------------------------------------------------------------------------------- checks

    def refuse_01(self, typed: str) -> None:
        """DataError where all labels are 0 and 1, for what takes -1 and +1."""
        if np.isin(self.targets, (0.0, 1.0)).all():
            self.require_kind("sign", typed)

    # -------------------------------- other tasks from these, and facts of them, by functions in files of their own

    require_labels = require_labels
    require_kind = require_kind
    split = split
    folds = folds
    subsample = subsample
    select = select
    without_one_class = without_one_class
    select_features = select_features
    take_rows = take_rows
    with_targets = with_targets
    standardize = standardize
    scaled_by = scaled_by
    describe = describe
    fingerprint = fingerprint

    #: (the same tasks with columns far from zero moved there, the columns (k,), by what (k, m)); None where nothing is to move
    near_zero = cached_property(columns_near_zero)

    def with_kernels(self, kernels) -> Tasks:
        """The same tasks in features whose inner products are kernels: K_v = F_v F_v^T, columns [F_1, ..., F_V].

        A problem with an L2 geometry (ridge, `mkl_norm`, any function of W^T W) is then the one with the kernels themselves, by the
        representer theorem. `views` says which columns a kernel has; `solution.predict` maps raw inputs.

        kernels : {name: kernel}, a list, or one kernel: a name of scikit-learn's ("rbf", "polynomial", "laplacian", "chi2",
            ...), ("rbf", {"gamma": 0.1}) with its parameters, a function k(A, B) -> (rows of A, rows of B), or a Gram matrix over
            the rows of these tasks in the order given: of X where it is shared, of the table's rows with a label where tasks are
            grouped, else of the rows with a label, task after task. Or `train.kernel_map`: the features of other tasks.

        F_v comes from a pivoted Cholesky decomposition of the kernel over distinct rows: exact to 1e-12 of its largest diagonal
        entry, or to 1e-10 or 1e-8 where it is itself no more accurate. Time grows with the cube of the number of distinct
        rows, memory with its square: up to some 5,000. `split()` and `take_rows()` afterwards keep these features.

        Raises DataError for an unknown kernel, a matrix of another size, one that is not symmetric or not positive semidefinite
        (with its most negative eigenvalue), for too many rows, and for tasks that have kernels already.

        >>> from mtldsl.data.tasks import Tasks
        >>> tasks = Tasks.shared([[0.0, 1.0], [2.0, 1.0], [4.0, 4.0]], [1.0, 2.0, 3.0]).with_kernels(["rbf", "linear"])
        >>> tasks.views, tasks.feature_names[-1]
        ({'rbf': slice(0, 3, None), 'linear': slice(3, 5, None)}, 'linear[1]')
        """
        from mtldsl.data.kernel_features import with_kernels

        return with_kernels(self, kernels)

    def transform(self, X):
        """New inputs (n, d) as these tasks have them: standardised or mapped by kernels, or as they are where nothing was done.

        For precomputed kernels give {"name of the kernel": K_new, ..., "X": the inputs for other kernels}, K_new (n, rows of the
        Gram matrix); where that is the only kernel, K_new alone.
        """
        if self.kernel_map is not None:
            return self.kernel_map.transform(X)
        X = as_learned(X, self.feature_names, "transform: X", "these tasks have")
        return X if self.scaling is None else self.scaling.apply(X)

    # -------------------------------------- hooks: tasks whose rows are not in this process have answers of their own

    def apply_scoring(self, function: Callable, solution: Any, measure: Any, method: str) -> Any:
        """Scores function(self, solution, measure, method): by the name of a measure for all tasks together, else one a task."""
        return function(self, solution, measure, method)

    def statement_check(self, form: Any, term: Any, point: Any) -> Any:
        """The check of a loss over these rows as typed, by the rows' own means; None: the values in memory are read."""
        return None

    def apply_tuning(self, function: Callable, solution: Any, metric: Any, typed: str) -> np.ndarray:
        """Thresholds function(self, solution, metric, typed), one a task."""
        return function(self, solution, metric, typed)

    def constant_scores(self, function: Callable, train: Tasks, classes: np.ndarray) -> np.ndarray:
        """Scores function(self, train, classes) of constants that are learned on `train`, one a task."""
        return function(self, train, classes)

    def cv_folds(
        self, folds, stratify, groups, random_state, two: bool, one_class: str, typed: str
    ) -> list | None:
        """None: folds are made of rows. Else objects with the methods of `mtldsl.problems.folds.Fold`, one a fold."""
        return None

    def sample_for_check(self, rows: int, random_state) -> tuple[Tasks, Tasks]:
        """(a subsample, the same rows kept as those of these tasks are), for two solvers that are compared."""
        some = self.subsample(rows, random_state)
        return some, some

    def storage_facts(self) -> dict[str, Any]:
        """Plain values on where the rows are and how often they were gone through; empty for those in memory."""
        return {}

    def storage_note(self, loss: Any, form: Any) -> str:
        """Sentences on where the rows of a loss of a form are, and what moves; empty for those in memory."""
        return ""

    # ---------------------------------------------------------------------------------------------- about

    @property
    def has_signs(self) -> bool:
        """Tell whether all labels are -1 or +1."""
        return bool((np.abs(self.targets) == 1.0).all())

    def label_sums(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(sum, sum of squared deviations from the mean, least, largest) of every task's labels, (m,) each.

        >>> Tasks.shared([[1.0], [2.0]], [[0.0, 1.0], [3.0, 5.0]]).label_sums()[0]
        array([3., 6.])
        """
        y, starts = self.targets, self.offsets[:-1]
        total = np.add.reduceat(y, starts)
        away = y - np.repeat(total / self.counts, self.counts)
        return (
            total,
            np.add.reduceat(away * away, starts),
            np.minimum.reduceat(y, starts),
            np.maximum.reduceat(y, starts),
        )

    __repr__ = one_line
    _panel = panel_of
    _unlisted = _OF_SOLVERS
