"""Which row of one long table is of which task, and whose weights answer it: what the grouped estimators share."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from mtldsl.errors import DataError
from mtldsl.estimators.columns import require_y
from mtldsl.estimators.inputs import (
    checked_inputs,
    hold_columns,
    ids_of,
    matrix_of,
    objects_of,
    refuse_unpaired,
)
from mtldsl.estimators.multi_task import MultiTaskEstimator
from mtldsl.estimators.one_class import warn_of_no_label, warn_of_one_task
from mtldsl.solution.solution import Solution
from mtldsl.tasks import Tasks
from mtldsl.values.number import quoted
from mtldsl.values.table import as_frame

__all__ = ["RowsOfTasks", "distinct"]


class RowsOfTasks(MultiTaskEstimator):
    """What both share: which row is of which task, and whose weights answer it."""

    task: Any
    unseen: str

    # ------------------------------------------------------------------------------------ rows of tasks

    def _rows(self, X, groups, *, fitting: bool):
        """(the features, checked; the task of every row)."""
        if self.task is None:
            rows = checked_inputs(self, X, reset=fitting)
            ids = groups
        else:
            hold_columns(self, X, reset=fitting)
            if groups is not None:
                raise DataError(
                    f"task={quoted(self.task)} says which column of X tells tasks apart, and groups were given too",
                    argument="groups",
                    write_instead="give one of them",
                )
            others, ids = self._column(X)
            rows = matrix_of(others, empty=not fitting)
        if fitting:
            self._by_groups = groups is not None
        elif (groups is not None) != self._by_groups:
            said = "fit was given groups, and this call is not" if self._by_groups else "fit was given none"
            raise DataError(
                f"{said}: groups are the tasks of the rows",
                argument="groups",
                write_instead="give groups=ids to fit, predict and score alike",
            )
        if ids is None:
            return rows, np.zeros(rows.shape[0], dtype=int)
        refuse_unpaired(X, groups=groups)
        return rows, ids_of(ids, rows.shape[0])

    def _column(self, X):
        """(the other columns, the column of ids)."""
        names = list(getattr(self, "feature_names_in_", []))
        if isinstance(self.task, str):
            if self.task not in names:
                shown = ", ".join(map(repr, names[:6])) if names else "no names"
                raise DataError(
                    f"task={self.task!r} is not a column of X, which has {shown}", argument="task"
                )
            at = names.index(self.task)
        else:
            at = self.task
            width = self.n_features_in_
            if isinstance(at, bool) or not isinstance(at, int | np.integer) or not -width <= at < width:
                raise DataError(
                    f"task={quoted(at)}",
                    argument="task",
                    write_instead=f"write a column's name, or its position, 0 to {width - 1}",
                )
            at %= width
        frame = None if isinstance(X, np.ndarray) or sparse.issparse(X) else as_frame(X)
        if frame is not None:
            columns = list(frame.iter_columns())  # by position: names of pandas may be numbers
            others = [i for i in range(len(columns)) if i != at]
            return frame[:, others].to_native(), columns[at].to_native()
        if sparse.issparse(X):
            X = sparse.csr_array(X)
            return X[:, np.delete(np.arange(X.shape[1]), at)], X[:, [at]].toarray().ravel()
        X = X if isinstance(X, np.ndarray) else objects_of(X)
        return X[:, np.delete(np.arange(X.shape[1]), at)], X[:, at]

    def _by_task(self, X, groups, values) -> np.ndarray:
        """(n, m): every row's value in the column of its task, NaN in the others."""
        _, ids = self._rows(X, groups, fitting=False)
        _, which = np.unique(ids, return_inverse=True)
        table = np.full((len(which), int(which.max()) + 1), np.nan)
        table[np.arange(len(which)), which] = values
        return table

    def _feature_names(self) -> list[str] | None:
        names = self._names()
        if names is None or self.task is None:
            return names
        at = names.index(self.task) if isinstance(self.task, str) else self.task % len(names)
        return names[:at] + names[at + 1 :]

    def _places(self, ids) -> np.ndarray:
        """The position of every row's task among `tasks_`; -1 for a task that training did not have."""
        known = {name: i for i, name in enumerate(self.tasks_.tolist())}
        places = np.array([known.get(each, -1) for each in ids.tolist()], dtype=int)
        new = np.flatnonzero(places < 0)
        if new.size and self.unseen != "mean":
            raise DataError(
                f"row {new[0]} is of the task {ids.tolist()[new[0]]!r}, which training did not have, or had no label of",
                argument="task" if self.task is not None else "groups",
                write_instead="write unseen='mean' to predict with the mean of all tasks' weights",
            )
        return places

    def task_of(self, X, groups=None) -> np.ndarray:
        """(n,) the task of every row of X."""
        check_is_fitted(self, "tasks_")
        return self._rows(X, groups, fitting=False)[1]

    def _row_scores(self, X, groups) -> np.ndarray:
        """(n,) x w + b, each row with the weights of its task."""
        check_is_fitted(self, "tasks_")
        X, ids = self._rows(X, groups, fitting=False)
        places = self._places(ids)
        z = np.empty(X.shape[0])
        for place in np.unique(places):
            rows = places == place
            w = self._weights.mean(axis=1) if place < 0 else self._weights[:, place]
            b = self._shift.mean() if place < 0 else self._shift[place]
            z[rows] = X[rows] @ w + b
        return z

    def _task_ids(self) -> tuple:
        return tuple(self.tasks_.tolist())

    # ------------------------------------------------------------------------------------------ fitting

    def _labelled(self, X, y, ids, weights) -> tuple[Any, Any, Any, Any]:
        """(X, y, ids, weights) of the rows that there is something to learn from; a task that has none is one that training did not have."""
        kept = ~np.isnan(y) if weights is None else ~np.isnan(y) & (weights > 0)
        if kept.all():
            return X, y, ids, weights
        if not kept.any():
            raise DataError("no row has a label of weight above zero", argument="y")
        left, all_ids = set(ids[kept].tolist()), distinct(ids).tolist()
        lost = [each for each in all_ids if each not in left]
        if lost:
            warn_of_no_label(
                self, lost, len(all_ids), f"they are not in tasks_, so that unseen={self.unseen!r} answers"
            )
        return X[kept], y[kept], ids[kept], None if weights is None else weights[kept]

    def _grouped(self, X, y, ids, weights, constant: dict) -> Tasks | None:
        """The tasks that are learned, in the order of `tasks_`; constant: the scores of those that are not."""
        self.tasks_ = distinct(ids)
        self._constant_scores = constant
        names = self.tasks_.tolist()
        self._learned = [i for i, each in enumerate(names) if each not in constant]
        if not self._learned:
            return None
        places = {names[i]: i for i in self._learned}
        numbers = np.array([places.get(each, -1) for each in ids.tolist()])
        rows = np.argsort(numbers, kind="stable")[int((numbers < 0).sum()) :]
        weights = None if weights is None else weights[rows]
        return Tasks.grouped(
            X[rows], y[rows], ids[rows], sample_weights=weights, feature_names=self._feature_names()
        )

    def _finish(self, solution: Solution | None) -> None:
        super()._finish(solution)
        d = self.n_features_in_ - (self.task is not None)
        self._weights, self._shift = np.zeros((d, len(self.tasks_))), np.zeros(len(self.tasks_))
        for i, each in enumerate(self.tasks_.tolist()):
            self._shift[i] = self._constant_scores.get(each, 0.0)
        if solution is not None:
            self._weights[:, self._learned] = solution.coef
            self._shift[self._learned] = 0.0 if solution.intercept is None else solution.intercept
        self.coef_, self.intercept_ = self._weights.T, self._shift

    def _prepared(self, X, y, groups, sample_weight):
        require_y(y)
        refuse_unpaired(X, y=y, sample_weight=sample_weight)
        if self.unseen not in ("error", "mean"):
            raise DataError(
                f"unseen={quoted(self.unseen)}", argument="unseen", write_instead="write 'error' or 'mean'"
            )
        if self.task is None and groups is None:
            warn_of_one_task(self)
        return self._rows(X, groups, fitting=True)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        tags.input_tags.string = self.task is not None
        return tags


def distinct(ids: np.ndarray) -> np.ndarray:
    """In the order of first appearance."""
    return np.array(list(dict.fromkeys(ids.tolist())), dtype=ids.dtype)
