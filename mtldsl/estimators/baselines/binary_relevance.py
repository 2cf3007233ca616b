"""Binary relevance: one classifier a label."""

from __future__ import annotations

import numpy as np
from sklearn.utils import check_random_state

from mtldsl.estimators.baselines.base_classifier import MadeOfClassifiers, fitted, margin, probability

__all__ = ["BinaryRelevance"]


class BinaryRelevance(MadeOfClassifiers):
    """One classifier a label, which knows nothing of the other labels (BR).

        f_k = the classifier fitted to (X, y_k);  label k is predicted where f_k(x) > 0;  P(y_k = 1 | x) is the classifier's own

    estimator    : a classifier of scikit-learn's, None for LogisticRegression(max_iter=1000)
    random_state : whatever is random in the classifier and has no random_state of its own is drawn from it

    X (n, d), dense or sparse; Y (n, K) has two classes a column, the second the positive one, and none is missing; a vector (n,) is one
    label. A label that is always the same is predicted so. Attributes after `fit`: estimators_, K classifiers of 0 and 1; classes_, the positions of
    the columns (the two classes of a vector), and label_classes_, the two classes of each. DataError for other labels, ModelError where
    `estimator` is not a classifier.

    Source: Boutell, Luo, Shen and Brown, Learning multi-label scene classification (2004); the SMTL and CGM papers' BR.

    >>> import numpy as np
    >>> from mtldsl.estimators.baselines import BinaryRelevance
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> Y = np.array([["dry", "cold"], ["dry", "warm"], ["wet", "warm"], ["wet", "warm"]])
    >>> BinaryRelevance().fit(X, Y).predict([[0.1], [2.5]])
    array([['dry', 'warm'],
           ['wet', 'warm']], dtype='<U4')
    """

    def __init__(self, estimator=None, *, random_state=0):
        self.estimator = estimator
        self.random_state = random_state

    def _learn(self, X, Y) -> None:
        rng = check_random_state(self.random_state)
        self.estimators_ = [fitted(self._base(), X, y, rng) for y in Y.T]

    def _margins(self, X) -> np.ndarray:
        return np.stack([margin(model, X) for model in self.estimators_], axis=1)

    def _has_probabilities(self) -> bool:
        return self._base_has_probabilities()

    def _probabilities(self, X) -> np.ndarray:
        return np.stack([probability(model, X) for model in self.estimators_], axis=1)
