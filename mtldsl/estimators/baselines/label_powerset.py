"""Label powerset: every combination of labels seen in training is one class."""

from __future__ import annotations

import numpy as np
from sklearn.utils import check_random_state

from mtldsl.estimators.baselines.base_classifier import Constant, MadeOfClassifiers, fitted
from mtldsl.estimators.baselines.baseline import choice

__all__ = ["LabelPowerset", "Powerset"]


class Powerset:
    """One classifier of the combinations of some labels: what the powerset and the random labelsets are made of."""

    def __init__(self, estimator, X, Y, rng):
        self.combinations, which = np.unique(Y, axis=0, return_inverse=True)
        self.model = fitted(estimator, X, np.ravel(which), rng)

    def labels(self, X) -> np.ndarray:
        """(n, k) of 0 and 1, the combination that the classifier predicts."""
        return self.combinations[self.model.predict(X)]

    def marginals(self, X) -> np.ndarray:
        """(n, k) P(y_k = 1 | x), the sum of the probabilities of the combinations that have the label."""
        if isinstance(self.model, Constant):
            return self.labels(X).astype(float)
        P = self.model.predict_proba(X)
        # sums of shares may leave [0, 1] by rounding
        return np.clip(P @ self.combinations[self.model.classes_], 0.0, 1.0)


class LabelPowerset(MadeOfClassifiers):
    """One multi-class classifier whose classes are the combinations of labels seen in training (LP).

        c_1, ..., c_C the different rows of Y;  P(c | x) by the classifier;  P(y_k = 1 | x) = the sum of P(c | x) over c with label k

    estimator    : a classifier of scikit-learn's, None for LogisticRegression(max_iter=1000)
    prediction   : "combination", the most probable one, which was seen in training; or "marginals", every label whose marginal probability
                   exceeds 1/2, which need not have been seen together
    random_state : whatever is random in the classifier and has no random_state of its own is drawn from it

    predict_proba has the marginals, and with prediction="marginals" decision_function has them less 1/2; both need a classifier with
    predict_proba. With "combination" the answer is that of the whole row: a label of probability below 1/2 may be in it.
    X, Y and what else is raised are as in `BinaryRelevance`; ModelError for another prediction. Attributes after `fit`: combinations_
    (C, K) of 0 and 1, estimator_, classes_, label_classes_.

    Source: Tsoumakas and Katakis, Multi-label classification: an overview (2007); the SMTL paper's LP.

    >>> import numpy as np
    >>> from mtldsl.estimators.baselines import LabelPowerset
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = LabelPowerset().fit(X, [[1, 0], [1, 0], [0, 1], [0, 1]])
    >>> model.combinations_
    array([[0, 1],
           [1, 0]])
    >>> model.predict([[0.5], [2.5]])
    array([[1, 0],
           [0, 1]])
    """

    def __init__(self, estimator=None, *, prediction="combination", random_state=0):
        self.estimator = estimator
        self.prediction = prediction
        self.random_state = random_state

    def _check(self) -> None:
        super()._check()
        choice(self, "prediction", ("combination", "marginals"))
        if self.prediction == "marginals":
            self._needs_probabilities("prediction='marginals'", "write prediction='combination'")

    def _learn(self, X, Y) -> None:
        self._powerset = Powerset(self._base(), X, Y, check_random_state(self.random_state))
        self.combinations_, self.estimator_ = self._powerset.combinations, self._powerset.model

    def _has_margins(self) -> bool:
        return self.prediction == "marginals" and self._base_has_probabilities()

    def _margins(self, X) -> np.ndarray:
        return self._probabilities(X) - 0.5

    def _positive(self, X) -> np.ndarray:
        return self._powerset.labels(X) > 0 if self.prediction == "combination" else self._margins(X) > 0

    def _has_probabilities(self) -> bool:
        return self._base_has_probabilities()

    def _probabilities(self, X) -> np.ndarray:
        return self._powerset.marginals(X)
