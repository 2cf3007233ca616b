"""Estimators for one long table whose rows belong to tasks: a column of X, or ids beside it, says to which."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mtldsl.data.tasks import Tasks
from mtldsl.errors import DataError
from mtldsl.estimators.base_estimator import (
    MultiTaskEstimator,
    check_one_class,
    constructor_of,
    warn_of_no_label,
    warn_of_one_class,
    warn_of_one_task,
)
from mtldsl.estimators.classifier import TUNING, MultiTaskClassifier, models_probabilities
from mtldsl.estimators.estimator_inputs import (
    checked_inputs,
    hold_columns,
    ids_of,
    matrix_of,
    number_tasks,
    objects_of,
    refuse_unpaired,
)
from mtldsl.estimators.label_tables import share_right, undefined_score
from mtldsl.estimators.regressor import MultiTaskRegressor, score_of_task
from mtldsl.estimators.sample_weights import class_weights, of_rows
from mtldsl.estimators.targets import (
    ClassTargets,
    labels_of,
    numbers_of_targets,
    refuse_several_classes,
    require_y,
    vector_of,
)
from mtldsl.solution.solution import Solution
from mtldsl.solution.task_predictors import loss_of, probabilities
from mtldsl.utils.arrays import as_frame
from mtldsl.utils.validation import quoted

# --------------------------------------------------------------------------------------------------------------
# Which row of one long table is of which task, and whose weights answer it: what the grouped estimators share.


class RowsOfTasks(MultiTaskEstimator):
    """Base of both: which row is of which task, and whose weights answer it."""

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
        what = "groups" if self.task is None else f"the column task={self.task!r}"
        return rows, ids_of(ids, rows.shape[0], what)

    def _column(self, X):
        """(the other columns, the column of ids)."""
        names = list(getattr(self, "feature_names_in_", []))
        if isinstance(self.task, str):
            if self.task not in names:
                shown = ", ".join(map(repr, names[:6])) if names else "no names"
                raise DataError(
                    f"task={self.task!r} is not a column of X, which has {shown}", argument="task",
                    write_instead="" if names else "write .set_output(transform='pandas') behind the step before, or a position",
                )  # fmt: skip
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
        names, which = number_tasks(ids)
        table = np.full((len(which), len(names)), np.nan)
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

    def fit(self, X, y, groups=None, sample_weight=None):
        """X (n, d), with the column of tasks where `task` names one; y (n,) of numbers, or of two classes; groups (n,)."""
        self._finish(self._solve(self._prepare(X, y, sample_weight, groups=groups)))
        return self

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
        """The tasks that are learned, in the order of `tasks_`; constant: the class of those that are not, -1 or +1."""
        self.tasks_ = distinct(ids)
        if self.fit_intercept and 1 < len(ids) == len(self.tasks_):
            raise DataError(
                f"each of the {len(ids):,} rows is a task of its own, which an intercept alone fits: nothing is left to learn",
                term=type(self).__name__,
                argument="groups" if self.task is None else "task",
                write_instead="tell tasks apart by what several rows share, such as the school of a pupil",
            )
        self._constant = constant
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
        unscored = getattr(self, "one_class", None) == "skip"
        others = [np.nan if unscored else self._constant.get(each, 0.0) for each in self.tasks_.tolist()]
        self._take_weights(self.n_features_in_ - (self.task is not None), others, solution)

    def _prepared(self, X, y, groups, sample_weight):
        require_y(y)
        refuse_unpaired(X, y=y, groups=groups, sample_weight=sample_weight)
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


class GroupedMultiTaskRegressor(RegressorMixin, RowsOfTasks):
    """Regression over one long table whose rows belong to tasks, such as the pupils of many schools.

        min over W (d, m), b (m,)   the model, with one task a distinct value of the column `task` (or of `groups`)

    task   : the column of X that tells tasks apart, by name or position; it is not a feature. None: `fit(X, y, groups=ids)` and
             `predict(X, groups=ids)`, which metadata routing hands on (`set_fit_request(groups=True)`); without either all
             rows are one task, with a OneTaskWarning
    unseen : of a task that training did not have, "error", or "mean": the mean of all tasks' weights answers
    model, loss, penalty, subject_to, fit_intercept, warm_start, tol, max_seconds, solver, check, n_jobs, parameters : as in `MultiTaskRegressor`

    Attributes after `fit`: tasks_ (m,), in the order of first appearance; coef_ (m, d), intercept_ (m,), n_iter_, solution_,
    certificate_, n_features_in_, feature_names_in_ (with the column of tasks).

    >>> import numpy as np
    >>> from mtldsl.estimators import GroupedMultiTaskRegressor
    >>> X = np.array([[7, 0.0], [7, 1.0], [9, 0.0], [9, 2.0]])
    >>> fitted = GroupedMultiTaskRegressor(task=0, lam=0.01).fit(X, [0.0, 1.0, 5.0, 7.0])
    >>> fitted.predict([[9, 1.0], [7, 0.5]]).round(1), fitted.tasks_
    (array([6. , 0.5]), array([7., 9.]))
    """

    __init__ = constructor_of(MultiTaskRegressor, task=None, unseen="error")

    _elsewhere: ClassVar[dict[str, str]] = {
        "sign": "GroupedMultiTaskClassifier",
        "classes": "MultiTaskClassifier",
        "indicators": "LabelGraphClassifier",
    }

    def _prepare(self, X, y, sample_weight=None, *, groups=None, **others) -> Tasks | None:
        X, ids = self._prepared(X, y, groups, sample_weight)
        values = numbers_of_targets(vector_of(y)).Y[:, 0]
        flat = of_rows(sample_weight, len(values))
        return self._grouped(*self._labelled(X, values, ids, flat), {})

    def predict(self, X, groups=None) -> np.ndarray:
        """(n,), each row by the weights of its task."""
        z = self._row_scores(X, groups)
        return loss_of(self.solution_.loss).decide(z)  # pyrefly: ignore[missing-attribute]

    def score(self, X, y, groups=None, sample_weight=None) -> float:
        """R^2 over all rows whose y is there; of signed times, whose risks compare within a task, the mean of the tasks' concordances."""
        from sklearn.metrics import r2_score

        refuse_unpaired(X, y=y, groups=groups, sample_weight=sample_weight)
        assert self.solution_ is not None
        values = numbers_of_targets(vector_of(y), learning=False).Y[:, 0]
        weights, predicted = of_rows(sample_weight, len(values)), self.predict(X, groups=groups)
        if self.solution_.loss["labels"] == "time":
            ids = self.task_of(X, groups=groups)
            each = np.array([
                score_of_task(self.solution_, predicted[own], values[own], None if weights is None else weights[own])
                for own in (ids == one for one in distinct(ids).tolist())
            ])  # fmt: skip
            known = each[~np.isnan(each)]
            return (
                float(known.mean())
                if known.size
                else undefined_score("no task has a pair of times in a known order")
            )
        there = ~np.isnan(values)
        weights = None if weights is None else weights[there]
        if not there.any():
            return undefined_score("y has no label")
        return float(r2_score(values[there], predicted[there], sample_weight=weights))


class GroupedMultiTaskClassifier(ClassifierMixin, RowsOfTasks):
    """Classification of two classes over one long table whose rows belong to tasks, such as mine fields.

    task, unseen : as in `GroupedMultiTaskRegressor`
    class_weight, one_class : as in `MultiTaskClassifier`, in every task
    model, loss, penalty, subject_to, fit_intercept, warm_start, tol, max_seconds, solver, check, n_jobs, parameters : as in `MultiTaskRegressor`

    Attributes after `fit`: classes_ (2,), tasks_ (m,), one_class_: the tasks with labels of one class; coef_ (m, d), intercept_ (m,),
    n_iter_, solution_, certificate_, n_features_in_, feature_names_in_.

    >>> import numpy as np
    >>> from mtldsl.estimators import GroupedMultiTaskClassifier
    >>> X = np.array([[0.0], [1.0], [0.0], [1.0]])
    >>> fitted = GroupedMultiTaskClassifier(lam=0.01).fit(X, ["no", "yes", "yes", "no"], groups=["a", "a", "b", "b"])
    >>> fitted.predict([[1.0], [1.0]], groups=["a", "b"])
    array(['yes', 'no'], dtype='<U3')
    """

    _elsewhere: ClassVar[dict[str, str]] = {
        "count": "GroupedMultiTaskRegressor",
        "positive": "GroupedMultiTaskRegressor",
        "time": "GroupedMultiTaskRegressor",
        "indicators": "LabelGraphClassifier",
    }

    __init__ = constructor_of(MultiTaskClassifier, TUNING, task=None, unseen="error")

    def _prepare(self, X, y, sample_weight=None, *, groups=None, **others) -> Tasks | None:
        check_one_class(self)
        X, ids = self._prepared(X, y, groups, sample_weight)
        labels = labels_of(vector_of(y))
        refuse_several_classes(labels, "use MultiTaskClassifier, or one estimator a class", argument="y")
        signs = labels.signs[:, 0]
        flat = of_rows(sample_weight, len(signs))
        flat = _weighted_by_class(self.class_weight, labels, signs, ids, flat)
        X, signs, ids, flat = self._labelled(X, signs, ids, flat)
        constant = {}
        for each in distinct(ids).tolist():
            seen = np.unique(signs[ids == each])
            if len(seen) < 2 or len(labels.classes) < 2:
                constant[each] = float(seen[0])
        if constant:
            warn_of_one_class(self, list(constant), len(distinct(ids)))
        self.classes_, self.one_class_ = labels.classes, np.array(list(constant), dtype=ids.dtype)
        self._labels = labels.without_rows()
        return self._grouped(X, signs, ids, flat, constant)

    def decision_function(self, X, groups=None) -> np.ndarray:
        """(n,): above 0 where the second class is predicted."""
        return self._row_scores(X, groups)

    def predict(self, X, groups=None) -> np.ndarray:
        """(n,) of the two classes."""
        z = self._row_scores(X, groups)
        if np.isnan(z).any():
            _, ids = self._rows(X, groups, fitting=False)
            z = np.array(
                [self._constant.get(each, score) for each, score in zip(ids.tolist(), z, strict=True)]
            )
        if len(self.classes_) == 1:
            return np.repeat(self.classes_, len(z))
        return self._labels.decoded((z >= 0)[:, None], z[:, None])

    @available_if(models_probabilities)
    def predict_proba(self, X, groups=None) -> np.ndarray:
        """(n, 2)."""
        z = self._row_scores(X, groups)[:, None]
        return self._labels.probabilities_of_rows(
            (z >= 0) * 1.0 if self.solution_ is None else probabilities(self.solution_.loss, z)
        )

    @available_if(models_probabilities)
    def predict_log_proba(self, X, groups=None) -> np.ndarray:
        """The logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, groups))

    def score(self, X, y, groups=None, sample_weight=None) -> float:
        """The share of right labels over all rows whose y is there."""
        return share_right(self, X, y, sample_weight, groups=groups)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _weighted_by_class(class_weight, labels: ClassTargets, signs, ids, weights):
    """(n,) weights, with those of the classes, balanced within each task."""
    if class_weight is None:
        return weights
    if not (isinstance(class_weight, str) and class_weight == "balanced"):
        found = class_weights(class_weight, labels, None if weights is None else weights[:, None])
        return None if found is None else found[:, 0]
    own = np.ones(len(signs)) if weights is None else np.array(weights)
    for each in distinct(ids).tolist():
        rows = ids == each
        part = ClassTargets(signs[rows][:, None], labels.classes, "binary", None)
        balanced = class_weights("balanced", part, own[rows][:, None])
        assert balanced is not None
        own[rows] = balanced[:, 0]
    return own
