"""The scikit-learn classifier that a baseline is made of: copied, fitted to a column or to classes, and asked, where one class is a constant."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from mtldsl.errors import ModelError
from mtldsl.estimators.baselines.baseline import Baseline, choice
from mtldsl.values.number import quoted

__all__ = ["Constant", "MadeOfClassifiers", "copied", "fitted", "margin", "probability", "with_columns"]

_DEFAULT = LogisticRegression(max_iter=1000)


class MadeOfClassifiers(Baseline):
    """A baseline with `estimator`: None is logistic regression."""

    estimator = None
    voting = "hard"

    def _base(self):
        return _DEFAULT if self.estimator is None else self.estimator

    def _check(self) -> None:
        base = self._base()
        if isinstance(base, type) or not hasattr(base, "fit") or not hasattr(base, "predict"):
            raise ModelError(
                f"estimator={quoted(base, 60)} is not a classifier of scikit-learn's",
                term=type(self).__name__,
                write_instead="write an object such as LogisticRegression(C=0.1), or None for logistic regression",
            )

    def _base_has_probabilities(self) -> bool:
        return hasattr(self._base(), "predict_proba")

    def _check_voting(self) -> None:
        """ModelError where `voting` is neither "soft" nor "hard", or is "soft" and the classifier has no probabilities."""
        choice(self, "voting", ("soft", "hard"))
        if self.voting == "soft":
            self._needs_probabilities("voting='soft'", "write voting='hard'")

    def _needs_probabilities(self, what: str, instead: str) -> None:
        """ModelError where the classifier has none."""
        if not self._base_has_probabilities():
            raise ModelError(
                f"{what} needs probabilities, and estimator={quoted(self._base(), 60)} has no predict_proba",
                term=type(self).__name__,
                write_instead=instead,
            )


class Constant:
    """A classifier of labels that were all the same, 0, 1 or a class."""

    def __init__(self, value):
        self.value = value

    def predict(self, X) -> np.ndarray:
        return np.full(X.shape[0], self.value)

    @property
    def classes_(self) -> np.ndarray:
        return np.array([self.value])

    def predict_proba(self, X) -> np.ndarray:
        return np.ones((X.shape[0], 1))


def fitted(estimator, X, y, random_state):
    """A copy of the classifier, fitted to y (n,) of whole numbers; what is random in it is drawn from `random_state`, a RandomState."""
    if (y == y[0]).all():
        return Constant(int(y[0]))
    return copied(estimator, random_state).fit(X, y)


def copied(estimator, random_state):
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
    if isinstance(model, Constant):
        return model.predict(X) - 0.5
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X), dtype=float)
    if hasattr(model, "predict_proba"):
        return probability(model, X) - 0.5
    return model.predict(X) - 0.5


def probability(model, X) -> np.ndarray:
    """(n,) of a classifier of 0 and 1: how probable 1 is."""
    if isinstance(model, Constant):
        return model.predict(X).astype(float)
    return np.asarray(model.predict_proba(X), dtype=float)[:, 1]


def with_columns(X, columns):
    """X (n, d) and more columns (n, k) behind, sparse where X is."""
    from scipy import sparse

    if sparse.issparse(X):
        return sparse.hstack([X, sparse.csr_array(columns.astype(float))], format="csr")
    return np.hstack([X, columns])
