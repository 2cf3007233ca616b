"""Base classes of multi-label baselines, and the checks of their options."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mtldsl.errors import DataError, ModelError
from mtldsl.estimators.base_estimator import warn_of_one_class
from mtldsl.estimators.estimator_inputs import checked_inputs, refuse_unpaired, wrong_option
from mtldsl.estimators.label_tables import keep_targets, share_right
from mtldsl.estimators.targets import binary_columns, require_y
from mtldsl.utils.validation import as_float, quoted

# --------------------------------------------------------------------------------------------------------------
# What the baselines share: how labels are read and answered, and what a subclass has to say.


class Baseline(ClassifierMixin, BaseEstimator):
    """A subclass has `_check` (its options), `_learn` (X, Y of 0 and 1), and `_margins` (n, K), above 0 where a label is predicted; it
    says by `_has_probabilities` whether it has `_probabilities` (n, K) too.
    """

    def fit(self, X, Y):
        """X (n, d), dense or sparse; Y (n, K), two classes a column and none missing, or (n,), one label.

        A label that is always the same is predicted so, with a OneClassWarning. DataError for other labels, and options outside their range.
        """
        self._check()
        require_y(Y)
        refuse_unpaired(X, Y=Y)
        X = checked_inputs(self, X, reset=True)
        labels = binary_columns(Y, type(self).__name__)
        table = (labels.signs > 0).astype(int)
        self._labels = labels.without_rows()
        self.classes_, self.label_classes_ = labels.known, labels.classes
        keep_targets(self, labels.names)
        alike = np.flatnonzero((table == table[0]).all(axis=0)).tolist()
        if alike:
            warn_of_one_class(self, [labels.names[k] if labels.names else k for k in alike], table.shape[1])
        self._learn(X, table)
        return self

    @available_if(lambda self: self._has_margins())
    def decision_function(self, X) -> np.ndarray:
        """(n, K) scores, above 0 where a label is predicted; (n,) of one label."""
        z = self._margins(self._rows(X))  # or that nothing is fitted
        return self._labels.scores_of_rows(z)

    @available_if(lambda self: self._has_probabilities())
    def predict_proba(self, X) -> np.ndarray:
        """(n, K) the probability of the second class of every column; (n, 2) of one label."""
        P = self._probabilities(self._rows(X))
        return self._labels.probabilities_of_rows(P)

    def predict(self, X) -> np.ndarray:
        """(n, K) of the labels that `fit` was given, (n,) where that was a vector."""
        positive = self._positive(self._rows(X))
        return self._labels.decoded(positive, np.where(positive, 1.0, -1.0))

    def score(self, X, y, sample_weight=None) -> float:
        """The share of rows whose labels are all right; missing labels are not counted, nor rows that have none."""
        return share_right(self, X, y, sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        tags.input_tags.sparse = True
        return tags

    def _rows(self, X):
        check_is_fitted(self)
        return checked_inputs(self, X, reset=False)

    # ------------------------------------------------------------------------------------ what a subclass says

    def _check(self) -> None:
        """Errors of options."""

    def _learn(self, X, Y) -> None:
        raise NotImplementedError

    def _margins(self, X) -> np.ndarray:
        raise NotImplementedError

    def _positive(self, X) -> np.ndarray:
        return self._margins(X) > 0

    def _probabilities(self, X) -> np.ndarray:
        raise NotImplementedError

    def _has_margins(self) -> bool:
        return True

    def _has_probabilities(self) -> bool:
        return False


def whole(self, name: str, least: int = 1, none: str | None = None) -> None:
    """DataError where an option is not a whole number of at least `least`; None is allowed where it means `none`."""
    value = getattr(self, name)
    if value is None and none is not None:
        return
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        instead = f"write a whole number of at least {least}" + (f", or None for {none}" if none else "")
        raise wrong_option(self, name, instead, DataError)


def positive(self, name: str, zero: bool = False) -> None:
    """DataError where an option is not a finite number above 0, or 0 where that is allowed."""
    number = as_float(getattr(self, name))
    if number is None or not 0 <= number < np.inf or (number == 0 and not zero):
        raise wrong_option(self, name, f"write a finite number {'>= 0' if zero else '> 0'}", DataError)


def choice(self, name: str, known: tuple) -> None:
    """ModelError for an option that is not known."""
    value = getattr(self, name)
    if not any(value is each or (isinstance(value, str) and value == each) for each in known):
        raise wrong_option(self, name, f"write one of {', '.join(map(repr, known))}")


# --------------------------------------------------------------------------------------------------------------
# The scikit-learn classifier that a baseline is made of: copied, fitted to a column or to classes, and asked, where one class is a constant.

_DEFAULT_ESTIMATOR = LogisticRegression(max_iter=1000)


class ClassifierBaseline(Baseline):
    """A baseline with `estimator`: None is logistic regression."""

    estimator = None
    voting = "soft"

    def _base(self):
        return _DEFAULT_ESTIMATOR if self.estimator is None else self.estimator

    def _check(self) -> None:
        base = self._base()
        if isinstance(base, type) or not hasattr(base, "fit") or not hasattr(base, "predict"):
            raise ModelError(
                f"estimator={quoted(base, 60)} is not a classifier of scikit-learn's",
                term=type(self).__name__,
                write_instead="write an object such as LogisticRegression(C=0.1), or None for logistic regression",
            )

    def _has_probabilities(self) -> bool:
        """Tell whether the method has them, and the classifier, whose votes they are."""
        has = type(self)._probabilities is not Baseline._probabilities
        return has and self.voting == "soft" and hasattr(self._base(), "predict_proba")

    def _check_voting(self) -> None:
        """ModelError where `voting` is neither "soft" nor "hard", or is "soft" and the classifier has no probabilities."""
        choice(self, "voting", ("soft", "hard"))
        if self.voting == "soft":
            self._needs_probabilities("voting='soft'", "write voting='hard'")

    def _needs_probabilities(self, what: str, instead: str) -> None:
        """ModelError where the classifier has none."""
        if not hasattr(self._base(), "predict_proba"):
            raise ModelError(
                f"{what} needs probabilities, and estimator={quoted(self._base(), 60)} has no predict_proba",
                term=type(self).__name__,
                write_instead=instead,
            )


def fit_classifier(estimator, X, y, random_state):
    """A copy of the classifier, fitted to y (n,) of whole numbers; what is random in it is drawn from `random_state`, a RandomState.

    Where all labels are the same, the classifier is one that predicts these.
    """
    alike = (y == y[0]).all()
    return (DummyClassifier() if alike else copy_classifier(estimator, random_state)).fit(X, y)


def copy_classifier(estimator, random_state):
    """The classifier, not fitted, with numbers drawn for every random_state of its own that is None."""
    model = clone(estimator)
    undrawn = [
        name
        for name, value in sorted(model.get_params(deep=True).items())
        if name.rsplit("__", 1)[-1] == "random_state" and value is None
    ]
    if undrawn:
        model.set_params(**{name: int(random_state.randint(2**31 - 1)) for name in undrawn})
    return model


def margin(model, X) -> np.ndarray:
    """(n,) of a classifier of 0 and 1: above 0 where it predicts 1. Its decision_function, else probabilities less 1/2, else +-1/2."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X), dtype=float)
    if hasattr(model, "predict_proba"):
        return probability(model, X) - 0.5
    return model.predict(X) - 0.5


def probability(model, X) -> np.ndarray:
    """(n,) of a classifier of 0 and 1: how probable 1 is."""
    if len(getattr(model, "classes_", (0, 1))) == 1:
        return model.predict(X).astype(float)
    return np.asarray(model.predict_proba(X), dtype=float)[:, 1]


def with_columns(X, columns):
    """X (n, d) and more columns (n, k) behind, sparse where X is."""
    from scipy import sparse

    if sparse.issparse(X):
        return sparse.hstack([X, sparse.csr_array(columns.astype(float))], format="csr")
    return np.hstack([X, columns])
