"""LEAD: a Bayesian network of the errors of binary relevance says which labels each label is learned from."""

from __future__ import annotations

import numpy as np
from sklearn.utils import check_random_state

from mtldsl.estimators.baselines.base_classifier import (
    MadeOfClassifiers,
    fitted,
    margin,
    probability,
    with_columns,
)
from mtldsl.estimators.baselines.baseline import whole
from mtldsl.estimators.baselines.dag import FamilyScores, best_graph, climbed_graph, in_order

__all__ = ["LEAD"]

#: So many labels are searched exactly: K 2^K steps.
_EXACT = 10


class LEAD(MadeOfClassifiers):
    """Each label from the rows and its parents in a network that was learned from errors (LEAD).

        h_k the classifier fitted to (X, y_k);  e_k = y_k - h_k(X) in {-1, 0, 1}, what x alone does not explain
        G = the directed acyclic graph over the labels with the highest BIC of e_1, ..., e_K, at most `max_parents` parents each
        f_k the classifier fitted to ([X, y_parents(k)], y_k);  in the order of G: y_k = f_k(x, predicted y_parents(k))

    estimator    : a classifier of scikit-learn's, None for LogisticRegression(max_iter=1000)
    max_parents  : 0 and more; with 0 it is `BinaryRelevance`
    random_state : whatever is random in the classifier and has no random_state of its own is drawn from it

    What is simplified: the paper leaves the network to other programs; here the errors of predicted labels on the training rows are
    scored by BIC, exactly up to ten labels and greedily beyond. A classifier that does not err on its training rows has no errors to learn
    from, and the graph is empty. X, Y and what else is raised are as in `BinaryRelevance`; predict_proba is P(y_k = 1 | x, predicted
    parents). Attributes after `fit`: parents_, a tuple of positions for each label; order_; estimators_, f_k; classes_, label_classes_.

    Source: Zhang and Zhang, Multi-label learning by exploiting label dependency (2010); the CGM paper's LEAD.

    >>> import numpy as np
    >>> from mtldsl.estimators.baselines import LEAD
    >>> rng = np.random.default_rng(0)
    >>> X, noise = rng.normal(size=(400, 2)), rng.normal(size=400)
    >>> Y = np.stack([X[:, 0] + noise > 0, X[:, 1] + noise > 0, X[:, 0] > 0], axis=1)
    >>> LEAD().fit(X, Y).parents_
    [(1,), (), ()]
    """

    def __init__(self, estimator=None, *, max_parents=3, random_state=0):
        self.estimator = estimator
        self.max_parents = max_parents
        self.random_state = random_state

    def _check(self) -> None:
        super()._check()
        whole(self, "max_parents", least=0)

    def _learn(self, X, Y) -> None:
        rng = check_random_state(self.random_state)
        K = Y.shape[1]
        alone = [fitted(self._base(), X, y, rng) for y in Y.T]
        errors = Y - np.stack([margin(model, X) > 0 for model in alone], axis=1)
        search = best_graph if K <= _EXACT else climbed_graph
        self.parents_ = search(K, FamilyScores(errors).of, self.max_parents)
        self.order_ = in_order(self.parents_)
        self.estimators_ = [
            fitted(self._base(), with_columns(X, Y[:, list(parents)]), y, rng) if parents else model
            for parents, y, model in zip(self.parents_, Y.T, alone, strict=True)
        ]

    def _walked(self, X, answer) -> np.ndarray:
        """answer(classifier, inputs) of each label, (n, K), in the order of the graph."""
        found = np.empty((X.shape[0], len(self.order_)))
        labels = np.zeros(found.shape)
        for k in self.order_:
            inputs, model = with_columns(X, labels[:, list(self.parents_[k])]), self.estimators_[k]
            found[:, k] = answer(model, inputs)
            labels[:, k] = margin(model, inputs) > 0
        return found

    def _margins(self, X) -> np.ndarray:
        return self._walked(X, margin)

    def _has_probabilities(self) -> bool:
        return self._base_has_probabilities()

    def _probabilities(self, X) -> np.ndarray:
        return self._walked(X, probability)
