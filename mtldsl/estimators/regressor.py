"""Estimator for regression with several targets, and R^2 task by task."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from mtldsl.data.tasks import Tasks
from mtldsl.errors import DataError
from mtldsl.estimators.base_estimator import MultiTaskEstimator, tasks_of, warn_of_no_label
from mtldsl.estimators.estimator_inputs import refuse_unpaired
from mtldsl.estimators.label_tables import hold_targets, keep_targets, undefined_score
from mtldsl.estimators.sample_weights import of_labels
from mtldsl.estimators.targets import name_of_vector, numbers_of_targets
from mtldsl.solution.measures import concordance_index
from mtldsl.solution.score import r_squared
from mtldsl.solution.solution import Solution
from mtldsl.solution.task_predictors import loss_of


class MultiTaskRegressor(MultiOutputMixin, RegressorMixin, MultiTaskEstimator):
    """Regression on all columns of y at once, each fit with a certificate.

        min over W (d, m), b (m,)   the model, with one task a column of y and all tasks on the same X

    loss, penalty : words of the language by name: the model is loss(W, tasks) + lam * penalty(W). A penalty may be a sum, "l1_norm + ridge"
    model         : in their place a statement in the language, the name of a paper's model (`mtldsl models`), or a function of (W, tasks)
    subject_to    : constraints beside a statement, as text: ["W >= 0"]
    fit_intercept : learn one number a task as well, which no penalty touches
    warm_start    : begin at the weights of the last fit, where they have the same shape
    tol           : the certified relative duality gap
    max_seconds   : a limit on each fit; where it ends a fit, ConvergenceWarning says so
    solver        : "auto", or a name that `explain()` lists
    check         : "subsample": cross-check every fit with the independent reference on a subsample of the rows ("full": on all), in
                    `cross_check_`; CrossCheckError where they disagree
    n_jobs        : as in `Problem.solve`
    parameters    : those of the model by name, `lam=0.1`; `get_params` lists them, so that a grid search sets them

    y is (n,) or (n, m); NaN in y: that row is not in that task. A column of NaN alone has weights and predictions of NaN, with a
    OneClassWarning. sample_weight is (n,) or (n, m), >= 0.
    Losses are sums over samples, as in the language: lam is n alpha for scikit-learn's losses, which are means (docs/estimators.md).

    Attributes after `fit`: coef_ (m, d) and intercept_ (m,), (d,) and a float where y was a vector; n_iter_; solution_, the `Solution`
    with status, gap and objective; certificate_, what was proven, to be saved; n_features_in_, feature_names_in_; target_names_ where
    y was a table with names.

    >>> import numpy as np
    >>> from mtldsl.estimators import MultiTaskRegressor
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> Y = np.array([[2.0, 1.0], [0.1, np.nan], [2.1, 1.0], [4.0, 2.1]])
    >>> fitted = MultiTaskRegressor(lam=0.1, fit_intercept=False).fit(X, Y)
    >>> fitted.coef_.round(2) + 0.0
    array([[1.97, 0.06],
           [1.02, 0.01]])
    >>> fitted.solution_.status, fitted.set_params(lam=100.0).fit(X, Y).coef_.any()
    ('optimal', np.False_)
    """

    def __init__(
        self,
        model=None,
        *,
        loss="squared_loss",
        penalty="l21_norm",
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
        "sign": "MultiTaskClassifier",
        "classes": "MultiTaskClassifier",
        "indicators": "LabelGraphClassifier",
    }

    def fit(self, X, y, sample_weight=None):
        """X (n, d) dense or CSR, numpy, pandas or polars; y (n,) or (n, m)."""
        tasks = self._prepare(X, y, sample_weight)
        self._finish(self._solve(tasks))
        return self

    def _prepare(self, X, y, sample_weight=None, **others) -> Tasks:
        X = self._inputs(X, y, sample_weight)
        targets = numbers_of_targets(y)
        weights = of_labels(sample_weight, targets.Y.shape)
        self._flat = targets.flat
        keep_targets(self, targets.names)
        there = ~np.isnan(targets.Y) & (True if weights is None else weights > 0)
        has: np.ndarray = np.any(there, axis=0)
        self._learned, self._n_targets = np.flatnonzero(has), len(has)
        if not has.any():
            raise DataError("no task has a label of weight above zero", argument="y")
        names = targets.names or name_of_vector(y)
        if not has.all():
            lost = [names[i] if names else int(i) for i in np.flatnonzero(~has)]
            warn_of_no_label(self, lost, len(has), "their weights and predictions are NaN")
        learned = None if names is None else [names[i] for i in self._learned]
        return tasks_of(
            X, targets.Y[:, has], None if weights is None else weights[:, has], self._names(), learned
        )

    def _finish(self, solution: Solution | None) -> None:
        assert solution is not None
        if solution.loss.get("labels") in ("sign", "indicators"):
            raise DataError(
                f"{solution.loss['word']} learns labels",
                argument="model",
                write_instead="use MultiTaskClassifier",
            )
        super()._finish(solution)
        self._take_weights(self.n_features_in_, np.full(self._n_targets, np.nan), solution)

    def predict(self, X) -> np.ndarray:
        """(n,) or (n, m), as y was; expected counts or amounts for a Poisson or Gamma loss, log risks for a Cox loss."""
        check_is_fitted(self, "solution_")
        values = loss_of(self.solution_.loss).decide(self._scores(X))  # pyrefly: ignore[missing-attribute]
        return values[:, 0] if self._flat else values

    def score(self, X, y, sample_weight=None) -> float:
        """The coefficient of determination R^2, or the concordance of signed times: its mean over the tasks that have two labels and more here;
        missing ones are left out."""
        refuse_unpaired(X, y=y, sample_weight=sample_weight)
        hold_targets(self, y)
        targets = numbers_of_targets(y, learning=False)
        predicted = np.reshape(self.predict(X), targets.Y.shape)
        weights = of_labels(sample_weight, targets.Y.shape)
        each = np.array([
            score_of_task(self.solution_, z, labels, None if weights is None else weights[:, i])
            for i, (z, labels) in enumerate(zip(predicted.T, targets.Y.T, strict=True))
        ])  # fmt: skip
        if np.isnan(each).all():
            return undefined_score(
                "no task here has two labels that differ, or a pair of times in a known order"
            )
        return float(each[~np.isnan(each)].mean())


def score_of_task(solution, z, y, weights=None) -> float:
    """R^2 of the labels that are there, or the concordance of times; NaN with fewer than two of them, and for a task that was not learned."""
    kept = ~(np.isnan(y) | np.isnan(z))
    if kept.sum() < 2:
        return float("nan")
    if solution.loss["labels"] == "time":
        return concordance_index(y[kept], z[kept], None if weights is None else weights[kept])
    if weights is None:
        return r_squared(z[kept], y[kept])
    z, y, w = z[kept], y[kept], weights[kept]
    spread = np.sum(w * (y - np.average(y, weights=w)) ** 2)
    return float(1.0 - np.sum(w * (y - z) ** 2) / spread) if spread > 0 else float("nan")
