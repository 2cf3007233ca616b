"""One long table whose rows belong to tasks: a column of X, or ids beside it, says to which."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

from mtldsl.errors import DataError
from mtldsl.estimators.has_probabilities import models_probabilities
from mtldsl.estimators.inputs import refuse_unpaired
from mtldsl.estimators.one_class import check_one_class, warn_of_one_class
from mtldsl.estimators.regressor import r_squared_of_task
from mtldsl.estimators.rows_of_tasks import RowsOfTasks, distinct
from mtldsl.estimators.sample_weights import class_weights, of_rows
from mtldsl.estimators.seen_labels import agreement, share_right
from mtldsl.estimators.targets import Labels, labels_of, numbers_of_targets, vector_of
from mtldsl.solution.predictors import decided, probabilities
from mtldsl.tasks import Tasks

__all__ = ["GroupedMultiTaskClassifier", "GroupedMultiTaskRegressor"]


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

    def __init__(
        self,
        model=None,
        *,
        loss="squared_loss",
        penalty="l21_norm",
        task=None,
        unseen="error",
        subject_to=(),
        fit_intercept=True,
        warm_start=False,
        tol=1e-6,
        max_seconds=None,
        solver="auto",
        check=None,
        n_jobs=None,
        **parameters,
    ):
        self._set(locals())

    _elsewhere: ClassVar[dict[str, str]] = {
        "sign": "GroupedMultiTaskClassifier",
        "indicators": "LabelGraphClassifier",
    }

    def fit(self, X, y, groups=None, sample_weight=None):
        """X (n, d), with the column of tasks where `task` names one; y (n,); groups (n,)."""
        self._finish(self._solve(self._prepare(X, y, sample_weight, groups=groups)))
        return self

    def _prepare(self, X, y, sample_weight=None, *, groups=None, **others) -> Tasks | None:
        X, ids = self._prepared(X, y, groups, sample_weight)
        values = numbers_of_targets(vector_of(y)).Y[:, 0]
        flat = of_rows(sample_weight, len(values))
        return self._grouped(*self._labelled(X, values, ids, flat), {})

    def predict(self, X, groups=None) -> np.ndarray:
        """(n,), each row by the weights of its task."""
        z = self._row_scores(X, groups)
        return decided(self.solution_.loss, z)  # pyrefly: ignore[missing-attribute]

    def score(self, X, y, groups=None, sample_weight=None) -> float:
        """R^2 over all rows whose y is there."""
        from sklearn.metrics import r2_score

        refuse_unpaired(X, y=y, groups=groups, sample_weight=sample_weight)
        values = numbers_of_targets(vector_of(y), learning=False).Y[:, 0]
        there, weights = ~np.isnan(values), of_rows(sample_weight, len(values))
        weights = None if weights is None else weights[there]
        return float(r2_score(values[there], self.predict(X, groups=groups)[there], sample_weight=weights))

    def _scores_by_task(self, X, y, groups=None) -> dict:
        """The R^2 of every task that is here; NaN where it has fewer than two labels."""
        values = numbers_of_targets(vector_of(y), learning=False).Y[:, 0]
        predicted, ids = self.predict(X, groups=groups), self.task_of(X, groups=groups)
        rows = {each: ids == each for each in distinct(ids).tolist()}
        return {each: r_squared_of_task(predicted[own], values[own]) for each, own in rows.items()}


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

    def __init__(
        self,
        model=None,
        *,
        loss="logistic_loss",
        penalty="l21_norm",
        task=None,
        unseen="error",
        subject_to=(),
        fit_intercept=True,
        class_weight=None,
        one_class="constant",
        warm_start=False,
        tol=1e-6,
        max_seconds=None,
        solver="auto",
        check=None,
        n_jobs=None,
        **parameters,
    ):
        self._set(locals())

    def fit(self, X, y, groups=None, sample_weight=None):
        """X (n, d), with the column of tasks where `task` names one; y (n,) of two classes; groups (n,)."""
        self._finish(self._solve(self._prepare(X, y, sample_weight, groups=groups)))
        return self

    def _prepare(self, X, y, sample_weight=None, *, groups=None, **others) -> Tasks | None:
        check_one_class(self)
        X, ids = self._prepared(X, y, groups, sample_weight)
        labels = labels_of(vector_of(y))
        if labels.kind == "multiclass":
            raise DataError(
                "Only binary classification is supported. The type of the target is multiclass",
                argument="y",
                write_instead="use MultiTaskClassifier, or one estimator a class",
            )
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
        score = np.nan if self.one_class == "skip" else 1.0
        self._side = constant
        self._labels = labels.without_rows()
        return self._grouped(X, signs, ids, flat, {each: side * score for each, side in constant.items()})

    def decision_function(self, X, groups=None) -> np.ndarray:
        """(n,): above 0 where the second class is predicted."""
        return self._row_scores(X, groups)

    def predict(self, X, groups=None) -> np.ndarray:
        """(n,) of the two classes."""
        z = self._row_scores(X, groups)
        if np.isnan(z).any():
            _, ids = self._rows(X, groups, fitting=False)
            z = np.array([self._side.get(each, score) for each, score in zip(ids.tolist(), z, strict=True)])
        if len(self.classes_) == 1:
            return np.repeat(self.classes_, len(z))
        return self._labels.decoded((z >= 0)[:, None], z[:, None])

    @available_if(models_probabilities)
    def predict_proba(self, X, groups=None) -> np.ndarray:
        """(n, 2)."""
        z = self._row_scores(X, groups)
        if len(self.classes_) == 1:
            return np.ones((len(z), 1))
        positive = (
            np.where(z >= 0, 1.0, 0.0) if self.solution_ is None else probabilities(self.solution_.loss, z)
        )
        return np.stack([1.0 - positive, positive], axis=1)

    @available_if(models_probabilities)
    def predict_log_proba(self, X, groups=None) -> np.ndarray:
        """The logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, groups))

    def score(self, X, y, groups=None, sample_weight=None) -> float:
        """The share of right labels over all rows whose y is there."""
        refuse_unpaired(X, y=y, groups=groups, sample_weight=sample_weight)
        return share_right(y, self.predict(X, groups=groups), sample_weight)

    def _scores_by_task(self, X, y, groups=None) -> dict:
        """The accuracy in every task that is here; NaN where it has no label."""
        right, there = agreement(y, self.predict(X, groups=groups))
        ids = self.task_of(X, groups=groups)
        rows = {each: ids == each for each in distinct(ids).tolist()}
        counts = {each: int(there[own].sum()) for each, own in rows.items()}
        return {
            each: right[own].sum() / counts[each] if counts[each] else np.nan for each, own in rows.items()
        }

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _weighted_by_class(class_weight, labels: Labels, signs, ids, weights):
    """(n,) weights, with those of the classes, balanced within each task."""
    if class_weight is None:
        return weights
    if not (isinstance(class_weight, str) and class_weight == "balanced"):
        found = class_weights(class_weight, labels, None if weights is None else weights[:, None])
        return None if found is None else found[:, 0]
    own = np.ones(len(signs)) if weights is None else np.array(weights)
    for each in distinct(ids).tolist():
        rows = ids == each
        part = Labels(signs[rows][:, None], labels.classes, "binary", None)
        balanced = class_weights("balanced", part, own[rows][:, None])
        assert balanced is not None
        own[rows] = balanced[:, 0]
    return own
