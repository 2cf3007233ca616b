"""Classification: labels of several tasks, or classes against the rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mtldsl.errors import DataError, ModelError
from mtldsl.estimators.calibrators import calibrators, log_odds
from mtldsl.estimators.has_probabilities import compares_classes, models_probabilities
from mtldsl.estimators.inner_folds import metric_of, out_of_fold, thresholds
from mtldsl.estimators.inputs import refuse_unpaired
from mtldsl.estimators.multi_task import MultiTaskEstimator, tasks_of
from mtldsl.estimators.one_class import check_one_class, warn_of_no_label, warn_of_one_class
from mtldsl.estimators.positive_class import EVEN, warn_of_positives
from mtldsl.estimators.sample_weights import class_weights, of_labels
from mtldsl.estimators.seen_labels import Seen, agreement, scores_of_labels, share_right
from mtldsl.estimators.target_names import hold_targets, keep_targets
from mtldsl.estimators.targets import Labels, labels_of
from mtldsl.solution.predictors import probabilities
from mtldsl.solution.solution import Solution
from mtldsl.tasks import Tasks

__all__ = ["MultiTaskClassifier"]


class MultiTaskClassifier(ClassifierMixin, MultiTaskEstimator):
    """Classification of all labels at once, each fit with a certificate.

        min over W (d, m), b (m,)   the model, on labels -1 and +1

    The tasks are the columns of y where it is a table (n, m) of two classes a column; one task for a vector of two classes; one task a class
    for a vector of more, and of two for losses of all classes of a row (`softmax_loss`). Missing labels (None, NaN) are not in their task.

    model, loss, penalty, subject_to, fit_intercept, warm_start, tol, max_seconds, solver, check, n_jobs, parameters : as in `MultiTaskRegressor`
    class_weight : None; "balanced", n / (2 n_class) in every task; {class: weight}; of a table also a list of such, one a column
    one_class    : what becomes of a task whose training labels are all of one class: "constant" predicts that class, with weights of
                   zero and a score of -1 or +1; "skip" does, but its scores and probabilities are NaN, so that scorers can leave it
                   out; both with a OneClassWarning; "error" raises DataError. A task without a label has scores of NaN with both, and its
                   first class is predicted
    tune_thresholds : None: a label is predicted where its score is at least 0. A metric, such as FScore(), or True for that one: where it
                   is at least the threshold that is best under it for scores of rows that the weights were not fitted on (inner folds).
                   decision_function is the score less the threshold; probabilities stay what they are
    calibration  : None: probabilities are those of the loss, where it is a likelihood. "sigmoid" (a logistic regression on one score,
                   Platt 1999) or "isotonic": learned on the same scores, for any loss. The score is then the log-odds of the probability,
                   and a label is predicted where it is more probable than not, or by thresholds on the log-odds
    inner_folds  : the number of folds for both, which count {class: weight}; "balanced" is for the fit alone

    Attributes after `fit`: classes_ (k,), of a table of several columns their positions, and label_classes_, the two classes of each; coef_ (m, d),
    (1, d) for two classes; intercept_ (m,); thresholds_ (m,) where they were tuned; one_class_, the columns of tasks of one class or none; n_iter_, solution_, certificate_ (None where no task was left), n_features_in_, feature_names_in_, target_names_.

    >>> import numpy as np
    >>> from mtldsl.estimators import MultiTaskClassifier
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> tags = [["no", "yes"], ["no", "no"], ["yes", "yes"], ["yes", "no"]]
    >>> fitted = MultiTaskClassifier(lam=0.1).fit(X, tags)
    >>> fitted.predict([[2.5, 1.0], [0.5, 0.0]])
    array([['yes', 'yes'],
           ['no', 'no']], dtype='<U3')
    >>> MultiTaskClassifier("structured_hinge(W, tasks, metric=FScore()) + lam * l21_norm(W)", lam=0.1).fit(X, tags).score(X, tags)
    1.0
    """

    def __init__(
        self,
        model=None,
        *,
        loss="logistic_loss",
        penalty="l21_norm",
        subject_to=(),
        fit_intercept=True,
        class_weight=None,
        one_class="constant",
        tune_thresholds=None,
        calibration=None,
        inner_folds=5,
        warm_start=False,
        tol=1e-6,
        max_seconds=None,
        solver="auto",
        check=None,
        n_jobs=None,
        **parameters,
    ):
        self._set(locals())

    def fit(self, X, y, sample_weight=None):
        """X (n, d) dense or CSR, numpy, pandas or polars; y (n,) or (n, m)."""
        tasks = self._prepare(X, y, sample_weight)
        self._finish(self._solve(tasks))
        self._tune(X, y, sample_weight)
        return self

    def _tune(self, X, y, sample_weight) -> None:
        """Thresholds and calibrators, where they were asked for, on scores of rows that the weights were not fitted on."""
        metric, kind = metric_of(getattr(self, "tune_thresholds", None)), getattr(self, "calibration", None)
        self.thresholds_ = self._calibrators = None
        if metric is None and kind is None:
            return
        labels = self._labels_of(y)
        if metric is not None and labels.kind == "multiclass":
            raise ModelError(
                "Only binary classification is supported. The type of the target is multiclass: one of several classes is predicted by "
                "the highest score, not by thresholds",
                term=f"{type(self).__name__}(tune_thresholds=...)",
                write_instead="leave it out, or give a table with one column a label",
            )
        if metric is not None and not isinstance(metric, EVEN):
            warn_of_positives(labels, type(self).__name__, f"tune_thresholds={metric}")
        factors = None
        if self.class_weight is not None:
            given = of_labels(sample_weight, labels.signs.shape)
            given = np.ones(labels.signs.shape) if given is None else given
            factors = class_weights(self.class_weight, labels, given) / np.where(given > 0, given, 1.0)
        plain = self._untuned().set_params(class_weight=None, one_class="constant")
        held = out_of_fold(
            plain,
            X,
            labels.signs,
            sample_weight,
            self.inner_folds,
            0,
            checked=self._checked(X),
            factors=factors,
        )
        # "balanced" evens the classes for the fit alone; what the user says that a label counts for is said of these too
        stated = None if isinstance(self.class_weight, str) else factors
        if kind is not None:
            self._calibrators = calibrators(held, kind, stated)
            held = held._replace(z=log_odds(self._calibrators, held.z))
        if metric is not None:
            self.thresholds_ = thresholds(held, metric, stated)
            self._hand_on_thresholds()

    def _hand_on_thresholds(self) -> None:
        """To `solution_`, whose scores and report are then of the labels predicted here; not where the thresholds are of other scores than its
        own: calibrated ones, or those of tasks with a value of lam each."""
        same = self._calibrators is None and not getattr(self, "per_task", False)
        if same and self.solution_ is not None and self.thresholds_ is not None:
            self.solution_ = replace(self.solution_, thresholds=self.thresholds_[self._learned])

    def _untuned(self) -> MultiTaskClassifier:
        return clone(self).set_params(tune_thresholds=None, calibration=None, check=None)

    def _prepare(self, X, y, sample_weight=None, **others) -> Tasks | None:
        check_one_class(self)
        X = self._inputs(X, y, sample_weight)
        labels = self._labels_of(y)
        weights = self._weights_of(labels, of_labels(sample_weight, labels.signs.shape))
        signs = labels.signs if weights is None else np.where(weights > 0, labels.signs, np.nan)
        self._constant_side = self._constant(signs, labels)
        learned = self._learned = np.flatnonzero(self._constant_side == 0)
        self._labels = labels.without_rows()
        self.classes_, self.one_class_ = labels.known, np.flatnonzero(self._constant_side)
        self.__dict__.pop("label_classes_", None)  # of an earlier fit
        if labels.kind == "multilabel":
            self.label_classes_ = labels.classes
        keep_targets(self, labels.names if labels.kind == "multilabel" else None)
        if not learned.size:
            return None
        if learned.size == signs.shape[1]:
            return self._tasks(X, signs, weights, labels.names)
        names = None if labels.names is None else [labels.names[i] for i in learned]
        return self._tasks(X, signs[:, learned], None if weights is None else weights[:, learned], names)

    def _finish(self, solution: Solution | None) -> None:
        """coef_ (m, d) and intercept_ (m,) of all tasks, those of one class among them."""
        if solution is not None and solution.loss.get("labels") == "indicators":
            raise DataError(
                f"{solution.loss['word']} is of a graph of labels",
                argument="model",
                write_instead="use LabelGraphClassifier",
            )
        super()._finish(solution)
        shape = self.n_features_in_, len(self._constant_side)
        self._weights, self._shift = np.zeros(shape), self._constant_side.astype(float)
        if self.one_class == "skip":
            self._shift[self.one_class_] = np.nan
        self._weights[:, np.isnan(self._shift)] = np.nan
        if solution is not None:
            self._weights[:, self._learned] = solution.coef
            self._shift[self._learned] = 0.0 if solution.intercept is None else solution.intercept
        self.coef_, self.intercept_ = self._weights.T, self._shift

    def _labels_of(self, y) -> Labels:
        return labels_of(y, task_a_class=compares_classes(self))

    def _weights_of(self, labels: Labels, weights: np.ndarray | None) -> np.ndarray | None:
        return class_weights(self.class_weight, labels, weights)

    def _tasks(self, X, signs, weights, names) -> Tasks:
        """The data of the tasks that are learned."""
        return tasks_of(X, signs, weights, self._names(), names)

    def _learned_scores(self, X) -> np.ndarray:
        """(n, tasks that were learned)."""
        if not self.one_class_.size:
            return X @ self._weights + self._shift
        return X @ self._weights[:, self._learned] + self._shift[self._learned]

    def _constant(self, signs, labels: Labels) -> np.ndarray:
        """(m,) -1 or +1 for tasks that have that class alone, NaN for those without a label, else 0."""
        total = np.ones(len(signs)) @ signs  # exactly, and faster than the sums of numpy over rows this short
        if not np.isnan(total).any():
            sides = np.where(np.abs(total) == len(signs), np.sign(total), 0.0)
        else:  # some labels are missing
            positive, negative = (signs > 0).any(axis=0), (signs < 0).any(axis=0)
            sides = np.where(positive | negative, positive * 1.0 - negative, np.nan)
        if np.isnan(sides).all():
            raise DataError("no task has a label of weight above zero", argument="y")
        if labels.kind == "binary" and len(labels.classes) == 1:
            sides[:] = 1.0
        for which, warn in ((np.abs(sides) == 1.0, warn_of_one_class), (np.isnan(sides), warn_of_no_label)):
            names = [labels.names[i] if labels.names else int(i) for i in np.flatnonzero(which)]
            if names:
                warn(self, names, len(sides))
        return sides

    def decision_function(self, X) -> np.ndarray:
        """(n, m); (n,) for two classes: above 0 where the second class is predicted. The score x^T w + b, with `calibration` the log-odds of
        the probability; less the threshold where thresholds were tuned."""
        z = self._cut_scores(X)  # or that nothing is fitted
        return self._labels.scores_of_rows(z)

    def _cut_scores(self, X) -> np.ndarray:
        z, cuts = self._calibrated_scores(X), getattr(self, "thresholds_", None)
        return z if cuts is None else z - cuts

    def _calibrated_scores(self, X) -> np.ndarray:
        z, models = self._task_scores(X), getattr(self, "_calibrators", None)
        return z if models is None else log_odds(models, z)

    def _task_scores(self, X) -> np.ndarray:
        check_is_fitted(self, "classes_")
        X = self._checked(X)
        if not self.one_class_.size:
            return self._learned_scores(X)
        z = np.empty((X.shape[0], len(self._constant_side)))
        z[:] = np.nan if self.one_class == "skip" else self._constant_side
        if self._learned.size:
            z[:, self._learned] = self._learned_scores(X)
        return z

    def predict(self, X) -> np.ndarray:
        """(n,) or (n, m) of the classes that y had."""
        z = self._cut_scores(X)
        if self.one_class_.size:
            sides = np.nan_to_num(self._constant_side, nan=-np.inf)
            if self._labels.kind == "multiclass":
                sides[sides < 0] = -np.inf  # below classes that were learned
            z = np.where(sides != 0, sides, z)
        probable = getattr(self, "_calibrators", None) is not None and self.thresholds_ is None
        return self._labels.decoded(z > 0.0 if probable else z >= 0.0, z)

    @available_if(models_probabilities)
    def predict_proba(self, X) -> np.ndarray:
        """P(class | x): (n, 2) for two classes, (n, k) for more (each against the rest, made to sum to one); for a table (n, m), the
        probability of the second class of every column."""
        z = self._calibrated_scores(X)
        if getattr(self, "_calibrators", None) is not None:
            P = expit(z)
        else:
            P = (z >= 0) * 1.0 if self.solution_ is None else probabilities(self.solution_.loss, z)
        P = np.where(self._constant_side != 0, np.where(np.isnan(z), np.nan, z >= 0), P)
        if self._labels.kind == "binary":
            return np.hstack([1.0 - P, P]) if len(self.classes_) == 2 else np.ones((len(P), 1))
        if self._labels.kind == "multilabel":
            return P
        total = P.sum(axis=1, keepdims=True)
        return np.where(total > 0, P / np.where(total > 0, total, 1.0), 1.0 / P.shape[1])

    @available_if(models_probabilities)
    def predict_log_proba(self, X) -> np.ndarray:
        """The logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def score(self, X, y, sample_weight=None) -> float:
        """The share of rows whose labels are all right; missing labels are not counted, nor rows that have none."""
        refuse_unpaired(X, y=y, sample_weight=sample_weight)
        hold_targets(self, y)
        return share_right(y, self.predict(X), sample_weight)

    _scores_of = scores_of_labels

    def _read(self, y):
        return Seen.of(y)

    def _scores_by_task(self, X, y) -> np.ndarray:
        """(m,) the accuracy of every column; NaN where it has no label."""
        if self._labels.kind == "multiclass":
            raise ModelError(
                "the tasks of a vector of classes are not scored apart",
                term=f"{type(self).__name__}(per_task=True)",
            )
        hold_targets(self, y)
        right, there = agreement(y, self.predict(X))
        counts = there.sum(axis=0)
        return np.where(counts > 0, right.sum(axis=0) / np.maximum(counts, 1), np.nan)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.multi_class = getattr(self, "tune_thresholds", None) in (None, False)
        return tags
