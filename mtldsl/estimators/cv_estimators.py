"""The estimators that choose their own regularization."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mtldsl.estimators.classifier import MultiTaskClassifier
from mtldsl.estimators.cv_base import CrossValidated, with_parameters
from mtldsl.estimators.grouped import GroupedMultiTaskClassifier, GroupedMultiTaskRegressor
from mtldsl.estimators.regressor import MultiTaskRegressor
from mtldsl.estimators.targets import labels_of, numbers_of_targets, vector_of


@with_parameters
class MultiTaskRegressorCV(CrossValidated, MultiTaskRegressor):
    """Regression on all columns of y at once, its regularization chosen by cross-validation.

    {parameters}

    >>> import numpy as np
    >>> from mtldsl.estimators import MultiTaskRegressorCV
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> Y = X[:, :2] @ np.array([[1.0, 2.0], [2.0, -1.0]]) + 0.1 * np.random.default_rng(1).normal(size=(60, 2))
    >>> fitted = MultiTaskRegressorCV(one_standard_error=True).fit(X, Y)
    >>> fitted.values_.shape, np.flatnonzero(fitted.coef_.any(axis=0)).tolist(), bool(fitted.best_score_ > 0.99)
    ((30,), [0, 1], True)
    """

    _plain: ClassVar[type] = MultiTaskRegressor

    def fit(self, X, y, sample_weight=None):
        """X (n, d), y (n,) or (n, m); sample_weight (n,) or (n, m)."""
        return self._fit(X, y, sample_weight)

    def _fold_table(self, X, y, groups) -> np.ndarray:
        return numbers_of_targets(y).Y


@with_parameters
class MultiTaskClassifierCV(CrossValidated, MultiTaskClassifier):
    """Classification of all labels at once, its regularization chosen by cross-validation.

    {parameters}

    >>> import numpy as np
    >>> from mtldsl.estimators import MultiTaskClassifierCV
    >>> X = np.random.default_rng(0).normal(size=(80, 4))
    >>> fitted = MultiTaskClassifierCV(n_values=8, cv=4).fit(X, X[:, :2] > 0)
    >>> bool(fitted.best_score_ > 0.8), sorted(fitted.best_params_)
    (True, ['lam'])
    """

    _plain: ClassVar[type] = MultiTaskClassifier

    def fit(self, X, y, sample_weight=None):
        """X (n, d), y (n,) or (n, m); sample_weight (n,) or (n, m)."""
        self._fit(X, y, sample_weight)
        self._tune(X, y, sample_weight)
        return self

    def _untuned(self) -> MultiTaskClassifier:
        return self._one().set_params(
            tune_thresholds=None, calibration=None, **{self._chosen: self.best_value_}
        )

    def _fold_table(self, X, y, groups) -> np.ndarray:
        return labels_of(y).signs


class GroupedCrossValidated(CrossValidated):
    """A choice for one long table, whose rows belong to tasks."""

    def fit(self, X, y, groups=None, sample_weight=None):
        """X (n, d), with the column of tasks where `task` names one; y (n,); groups (n,)."""
        return self._fit(X, y, sample_weight, groups=groups)

    def score(self, X, y, groups=None, sample_weight=None) -> float:
        """Score by `scoring`, as the folds were scored; without it by the plain estimator's own score."""
        return self._score(X, y, groups=groups, sample_weight=sample_weight)


@with_parameters
class GroupedMultiTaskRegressorCV(GroupedCrossValidated, GroupedMultiTaskRegressor):
    """Regression over one long table whose rows belong to tasks, its regularization chosen by cross-validation within the tasks.

    {parameters}

    >>> import numpy as np
    >>> from mtldsl.estimators import GroupedMultiTaskRegressorCV
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> school = np.repeat(["a", "b", "c"], 20)
    >>> y = X[:, 0] + (school == "b")
    >>> GroupedMultiTaskRegressorCV(n_values=10).fit(X, y, groups=school).coef_.round(2) + 0.0
    array([[1., 0., 0.],
           [1., 0., 0.],
           [1., 0., 0.]])
    """

    _plain: ClassVar[type] = GroupedMultiTaskRegressor

    def _fold_table(self, X, y, groups) -> np.ndarray:
        return self._by_task(X, groups, numbers_of_targets(vector_of(y)).Y[:, 0])


@with_parameters
class GroupedMultiTaskClassifierCV(GroupedCrossValidated, GroupedMultiTaskClassifier):
    """Classification over one long table whose rows belong to tasks, its regularization chosen by cross-validation within the tasks.

    {parameters}

    >>> import numpy as np
    >>> from mtldsl.estimators import GroupedMultiTaskClassifierCV
    >>> X = np.random.default_rng(0).normal(size=(90, 3))
    >>> field = np.repeat([1, 2, 3], 30)
    >>> fitted = GroupedMultiTaskClassifierCV(n_values=6, cv=3).fit(X, X[:, 0] > 0, groups=field)
    >>> fitted.tasks_.tolist(), bool(fitted.best_score_ > 0.9)
    ([1, 2, 3], True)
    """

    _plain: ClassVar[type] = GroupedMultiTaskClassifier

    def _fold_table(self, X, y, groups) -> np.ndarray:
        return self._by_task(X, groups, labels_of(vector_of(y)).signs[:, 0])
