"""The data: m tasks over the same d features, with shared or separate inputs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from scipy import sparse

from mtldsl.errors import DataError
from mtldsl.inputs import as_design, as_names, as_targets, as_weights, labels_of
from mtldsl.scaling import Scaling
from mtldsl.task_products import Products, make_products

__all__ = ["Tasks"]


class Tasks:
    """m tasks over d features. Make one with `Tasks.shared`, `Tasks.separate` or `Tasks.grouped`; it never changes.

    Rows without a label are not part of a task. What solvers see is flat: `targets` (N,) holds the labels of task 0, then of
    task 1, ...; `offsets` (m+1,) says where each task begins. `forward(W)` are all predictions in that order, `adjoint(u)` its
    transpose.

    >>> import numpy as np
    >>> from mtldsl.tasks import Tasks
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> tasks = Tasks.shared(X, [[1.0, 0.0], [2.0, np.nan], [3.0, 5.0]], task_names=["a", "b"])
    >>> tasks
    <Tasks: 2 tasks, 2 features, shared inputs, 3 + 2 labelled rows (1 missing)>
    >>> tasks.forward(np.eye(2))
    array([0., 2., 4., 1., 5.])
    """

    def __init__(
        self, *, shared, inputs, targets, mask, sample_weights, task_names, feature_names, scaling=None
    ):
        self.is_shared: bool = shared is not None
        self._shared, self._given_inputs = shared, inputs
        self.mask: np.ndarray | None = _frozen(mask)
        self.counts = _frozen(np.array([len(y) for y in targets], dtype=int))
        self.offsets = _frozen(np.concatenate([[0], np.cumsum(self.counts)]))
        self.targets = _frozen(np.concatenate(targets))
        self.sample_weights = None if sample_weights is None else _frozen(np.concatenate(sample_weights))
        self.n_tasks = len(targets)
        self.n_samples = int(self.offsets[-1])
        first = shared if self.is_shared else inputs[0]
        self.n_features = int(first.shape[1])
        self.is_sparse = sparse.issparse(first)
        self.task_names: tuple[str, ...] = task_names
        self.feature_names: tuple[str, ...] = feature_names
        self.scaling: Scaling | None = scaling
        for name, count in zip(task_names, self.counts, strict=True):
            if count == 0:
                raise DataError(f"task {name!r} has no labelled row; leave the task out, or give it data")

    # --------------------------------------------------------------------------------------- constructors

    @classmethod
    def shared(cls, X, Y, *, sample_weights=None, task_names=None, feature_names=None) -> Tasks:
        """One X (n, d) for all tasks and a column of Y (n, m) per task; NaN in Y: that row is not in that task.

        X, Y            : numpy, scipy sparse (X), pandas or polars; column names become feature and task names
        sample_weights  : (n,) or (n, m), > 0
        Raises DataError for wrong lengths, NaN or infinity in X, an empty task, duplicate names.
        """
        X, x_names = as_design(X, "X")
        Y, y_names = as_targets(Y, "Y", columns=True)
        if Y.shape[0] != X.shape[0]:
            raise DataError(
                f"X has {X.shape[0]} rows but Y has {Y.shape[0]}; give one row of labels per row of inputs"
            )
        labelled = ~np.isnan(Y)
        weights = None if sample_weights is None else as_weights(sample_weights, Y.shape, "sample_weights")
        m = Y.shape[1]
        return cls(
            shared=_frozen(X),
            inputs=None,
            targets=[Y[labelled[:, i], i] for i in range(m)],
            mask=None if labelled.all() else labelled,
            sample_weights=None if weights is None else [weights[labelled[:, i], i] for i in range(m)],
            task_names=as_names(task_names, y_names or [f"task{i}" for i in range(m)], m, "task_names"),
            feature_names=as_names(
                feature_names, x_names or _default_features(X), X.shape[1], "feature_names"
            ),
        )

    @classmethod
    def separate(
        cls, inputs: Sequence, targets: Sequence, *, sample_weights=None, task_names=None, feature_names=None
    ) -> Tasks:
        """Task i has its own rows: inputs[i] (n_i, d) and targets[i] (n_i,). NaN labels drop the row from its task.

        Raises DataError, naming the task, for wrong lengths, different numbers of features, NaN or infinity in X, an empty task.
        """
        inputs, targets = list(inputs), list(targets)
        if not inputs:
            raise DataError("Tasks.separate([], ...): at least one task is needed")
        if len(inputs) != len(targets):
            raise DataError(
                f"{len(inputs)} input matrices but {len(targets)} label vectors; give one of each per task"
            )
        if sample_weights is not None and len(list(sample_weights)) != len(inputs):
            raise DataError(
                f"sample_weights: {len(list(sample_weights))} vectors for {len(inputs)} tasks; give one a task"
            )
        names = as_names(task_names, [f"task{i}" for i in range(len(inputs))], len(inputs), "task_names")
        designs, labels, weights, x_names = [], [], [], None
        for i, (X, y) in enumerate(zip(inputs, targets, strict=True)):
            X, columns = as_design(X, f"X of task {names[i]!r}")
            y, _ = as_targets(y, f"y of task {names[i]!r}", columns=False)
            if X.shape[0] != y.shape[0]:
                raise DataError(f"task {names[i]!r}: X has {X.shape[0]} rows but y has {y.shape[0]} labels")
            if designs and X.shape[1] != designs[0].shape[1]:
                raise DataError(
                    f"task {names[i]!r} has {X.shape[1]} features, but task {names[0]!r} has {designs[0].shape[1]}; "
                    "all tasks need the same columns"
                )
            if x_names is not None and columns is not None and columns != x_names:
                raise DataError(
                    f"task {names[i]!r}: its columns are named {columns[:4]}..., not {x_names[:4]}... as in the first task"
                )
            x_names = columns if x_names is None else x_names
            kept = ~np.isnan(y)
            if sample_weights is not None:
                weights.append(
                    as_weights(sample_weights[i], y.shape, f"sample_weights of task {names[i]!r}")[kept]
                )
            designs.append(_frozen(X if kept.all() else X[kept]))
            labels.append(y[kept])
        if len({sparse.issparse(X) for X in designs}) > 1:
            designs = [sparse.csr_array(X) for X in designs]
        return cls(
            shared=None,
            inputs=designs,
            targets=labels,
            mask=None,
            sample_weights=weights or None,
            task_names=names,
            feature_names=as_names(
                feature_names, x_names or _default_features(designs[0]), designs[0].shape[1], "feature_names"
            ),
        )

    @classmethod
    def grouped(cls, X, y, task_ids, *, sample_weights=None, feature_names=None) -> Tasks:
        """Rows of one long table, told apart by task_ids (n,). Tasks keep the order of first appearance; ids become names."""
        X, x_names = as_design(X, "X")
        y, _ = as_targets(y, "y", columns=False)
        if X.shape[0] != y.shape[0]:
            raise DataError(f"X has {X.shape[0]} rows but y has {y.shape[0]} labels")
        ids, index = labels_of(task_ids, X.shape[0])
        rows = [np.flatnonzero(index == k) for k in range(len(ids))]
        weights = None if sample_weights is None else as_weights(sample_weights, y.shape, "sample_weights")
        return cls.separate(
            [X[r] for r in rows],
            [y[r] for r in rows],
            sample_weights=None if weights is None else [weights[r] for r in rows],
            task_names=[str(task) for task in ids],
            feature_names=feature_names if feature_names is not None else x_names,
        )

    # -------------------------------------------------------------------------------------------- content

    @property
    def X(self):
        """The shared inputs (n, d). DataError where every task has its own."""
        if not self.is_shared:
            raise DataError("these tasks have separate inputs, so there is no one X; use tasks.inputs[i]")
        return self._shared

    @cached_property
    def inputs(self) -> list:
        """X_i (n_i, d) of every task: the rows that carry its labels."""
        if not self.is_shared:
            return self._given_inputs
        if self.mask is None:
            return [self._shared] * self.n_tasks
        return [self._shared[self.mask[:, i]] for i in range(self.n_tasks)]

    @cached_property
    def task_of(self) -> np.ndarray:
        """(N,) the task of every flat sample."""
        return np.repeat(np.arange(self.n_tasks), self.counts)

    @property
    def n_missing(self) -> int:
        return 0 if self.mask is None else int(self.mask.size - self.mask.sum())

    def per_task(self, flat) -> list[np.ndarray]:
        """m views of a flat vector."""
        return np.split(flat, self.offsets[1:-1])

    # ------------------------------------------------------------------------------------------- products

    @cached_property
    def _products(self) -> Products:
        return make_products(self)

    def forward(self, W) -> np.ndarray:
        """(N,) flat predictions X_i w_i."""
        return self._products.forward(W)

    def adjoint(self, u) -> np.ndarray:
        """(d, m): column i is X_i^T u_i."""
        return self._products.adjoint(u)

    def gram(self, scale=None) -> np.ndarray:
        """X_i^T diag(scale_i) X_i: (d, d) for one complete shared X and no scale, else (m, d, d). Always dense."""
        return self._products.gram(scale)

    def cross(self, scale=None) -> np.ndarray:
        """(d, m): column i is X_i^T (scale_i * y_i)."""
        return self.adjoint(self.targets if scale is None else scale * self.targets)

    def largest_curvature(self, scale=None) -> float:
        """max_i ||diag(sqrt(scale_i)) X_i||_2^2."""
        return self._products.largest_curvature(scale)

    # --------------------------------------------------------------------------------------------- checks

    def require_labels(self, kind: str, typed: str) -> None:
        """DataError unless the labels suit a loss: "real" any, "sign" {-1, +1} with both in every task, "count" 0, 1, 2, ..."""
        y = self.targets
        if kind == "sign":
            bad = (y != 1.0) & (y != -1.0)
            hint = "labels must be -1 or +1"
            if bad.any() and np.isin(y, (0.0, 1.0)).all():
                hint += "; for labels 0/1 write 2 * Y - 1"
        elif kind == "count":
            bad = (y < 0) | (y != np.floor(y))
            hint = "labels must be counts 0, 1, 2, ..."
        else:
            return
        if bad.any():
            flat = int(np.flatnonzero(bad)[0])
            task, row = self._place(flat)
            raise DataError(
                f"{typed}: label {y[flat]:g} in task {self.task_names[task]!r}, row {row}; {hint}"
            )
        if kind == "sign":
            sums = np.add.reduceat(y, self.offsets[:-1])
            one_class = np.flatnonzero(np.abs(sums) == self.counts)
            if one_class.size:
                i = int(one_class[0])
                raise DataError(
                    f"{typed}: task {self.task_names[i]!r} has one class only (all {self.counts[i]} labels are "
                    f"{y[self.offsets[i]]:+g}); leave the task out, or give it labels of both classes"
                )

    def _place(self, flat: int) -> tuple[int, int]:
        """(task, row of that task's input as given) of a flat sample."""
        task = int(self.task_of[flat])
        row = flat - int(self.offsets[task])
        return task, row if self.mask is None else int(np.flatnonzero(self.mask[:, task])[row])

    # -------------------------------------------------------------------------------- other tasks from these

    def split(self, test_size: float = 0.25, random_state=None) -> tuple[Tasks, Tasks]:
        """(train, test): shared inputs are split by rows, once for all tasks; separate ones within every task.

        Both sides keep a labelled row of every task, and both classes where the labels are -1 and +1; DataError where that is
        impossible.
        """
        from mtldsl.partition import split

        return split(self, test_size, random_state)

    def subsample(self, rows: int, random_state=None) -> Tasks:
        """At most `rows` seeded rows (of each task, where inputs are separate), with both classes kept."""
        from mtldsl.partition import subsample

        return subsample(self, rows, random_state)

    def select(self, tasks) -> Tasks:
        """Some of the tasks, by position or name."""
        index = [
            self.task_names.index(t) if isinstance(t, str) else int(t) for t in np.atleast_1d(tasks).tolist()
        ]
        if self.is_shared:
            Y, S = (
                self._table(self.targets),
                None if self.sample_weights is None else self._table(self.sample_weights),
            )
            return self._rebuild_shared(self._shared, Y[:, index], None if S is None else S[:, index], index)
        return self._rebuild_separate([slice(None)] * len(index), index)

    def take_rows(self, rows) -> Tasks:
        """Rows of the shared inputs; or, for separate inputs, one index array per task."""
        if self.is_shared:
            S = None if self.sample_weights is None else self._table(self.sample_weights)[rows]
            return self._rebuild_shared(self._shared[rows], self._table(self.targets)[rows], S)
        return self._rebuild_separate(rows, range(self.n_tasks))

    def standardize(self, center: bool = True, scale: bool = True) -> Tasks:
        """Columns of X shifted and scaled by mean and standard deviation over all rows of all tasks; `scaling` remembers them.

        A constant column keeps scale 1. Predictions for new inputs apply the same statistics. DataError for sparse inputs
        unless center=False.
        """
        if self.is_sparse and center:
            raise DataError(
                "standardize(): centering would make sparse inputs dense; write standardize(center=False)"
            )
        if self.scaling is not None:
            raise DataError("standardize(): these tasks are standardised already")
        scaling = Scaling.of([self._shared] if self.is_shared else self.inputs, center, scale)
        return self.scaled_by(scaling)

    def scaled_by(self, scaling: Scaling) -> Tasks:
        """These tasks with the statistics of others: test.scaled_by(train.scaling)."""
        return Tasks(
            shared=_frozen(scaling.apply(self._shared)) if self.is_shared else None,
            inputs=None if self.is_shared else [_frozen(scaling.apply(X)) for X in self.inputs],
            targets=self.per_task(self.targets),
            mask=self.mask,
            sample_weights=None if self.sample_weights is None else self.per_task(self.sample_weights),
            task_names=self.task_names,
            feature_names=self.feature_names,
            scaling=scaling,
        )

    def _table(self, flat) -> np.ndarray:
        """(n, m) from a flat vector of shared tasks; NaN where there is no label."""
        if self.mask is None:
            return flat.reshape(self.n_tasks, -1).T
        table = np.full(self.mask.T.shape, np.nan)
        table[self.mask.T] = flat
        return table.T

    def _rebuild_shared(self, X, Y, S, index=None) -> Tasks:
        index = range(self.n_tasks) if index is None else index
        labelled = ~np.isnan(Y)
        return Tasks(
            shared=_frozen(X),
            inputs=None,
            targets=[Y[labelled[:, i], i] for i in range(Y.shape[1])],
            mask=None if labelled.all() else labelled,
            sample_weights=None if S is None else [S[labelled[:, i], i] for i in range(Y.shape[1])],
            task_names=tuple(self.task_names[i] for i in index),
            feature_names=self.feature_names,
            scaling=self.scaling,
        )

    def _rebuild_separate(self, rows, index) -> Tasks:
        y = self.per_task(self.targets)
        s = None if self.sample_weights is None else self.per_task(self.sample_weights)
        return Tasks(
            shared=None,
            inputs=[_frozen(self.inputs[i][r]) for i, r in zip(index, rows, strict=True)],
            targets=[y[i][r] for i, r in zip(index, rows, strict=True)],
            mask=None,
            sample_weights=None if s is None else [s[i][r] for i, r in zip(index, rows, strict=True)],
            task_names=tuple(self.task_names[i] for i in index),
            feature_names=self.feature_names,
            scaling=self.scaling,
        )

    # ---------------------------------------------------------------------------------------------- about

    def describe(self) -> dict:
        """Sizes and kinds as plain values, for reports and saved files."""
        return {
            "tasks": self.n_tasks,
            "features": self.n_features,
            "samples": self.n_samples,
            "rows_per_task": [int(self.counts.min()), int(self.counts.max())],
            "missing": self.n_missing,
            "inputs": "shared" if self.is_shared else "separate",
            "sparse": self.is_sparse,
            "weighted": self.sample_weights is not None,
            "standardized": self.scaling is not None,
        }

    def fingerprint(self) -> str:
        """SHA-256 of shapes and numbers: equal data, equal fingerprint."""
        digest = hashlib.sha256()
        for X in [self._shared] if self.is_shared else self.inputs:
            for part in (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,):
                digest.update(str(part.shape).encode())
                digest.update(np.ascontiguousarray(part).tobytes())
        for part in (self.targets, self.offsets, self.mask, self.sample_weights):
            digest.update(b"-" if part is None else np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()

    def __repr__(self) -> str:
        counts = self.counts.tolist()
        rows = " + ".join(map(str, counts)) if self.n_tasks <= 4 else f"{min(counts)} to {max(counts)}"
        missing = f" ({self.n_missing} missing)" if self.n_missing else ""
        kind = ("sparse " if self.is_sparse else "") + ("shared" if self.is_shared else "separate")
        return f"<Tasks: {self.n_tasks} tasks, {self.n_features} features, {kind} inputs, {rows} labelled rows{missing}>"


def _default_features(X) -> list[str]:
    return [f"x{j}" for j in range(X.shape[1])]


def _frozen(array):
    """The array, read-only, so that a shared Tasks cannot change under a solver that cached its products."""
    if isinstance(array, np.ndarray):
        array = array.view()
        array.flags.writeable = False
    return array
