"""PLEM: classifiers of labels and of pairs of labels along a tree, read together by max-product."""

from __future__ import annotations

import numpy as np
from sklearn.utils import check_random_state

from mtldsl.estimators.baselines.base_classifier import MadeOfClassifiers, fitted

__all__ = ["PLEM"]

#: A state that was never seen together is not impossible: its probability is at least this.
_LEAST = 1e-12


class PLEM(MadeOfClassifiers):
    """Labels and pairs of labels along a tree, each with a classifier, read together (probabilistic label enhancement).

        tree: the maximum spanning tree over the labels, edges weighted by the number of training rows that have both labels
        S(y, x) = sum over labels of ln P_k(y_k | x)  +  sum over edges of ln P_jk(y_j, y_k | x)
        the row of labels with the largest S is predicted: exact, by max-product messages along the tree

    estimator    : a classifier of scikit-learn's with predict_proba, None for LogisticRegression(max_iter=1000)
    random_state : whatever is random in the classifier and has no random_state of its own is drawn from it

    A pair is one auxiliary label of up to four states, those seen in training; every classifier is fitted by itself (piecewise training).
    The paper's own features and classifiers of images are not here. decision_function is the largest S of the rows with the label less
    that of the rows without it. X, Y and what else is raised are as in `BinaryRelevance`; ModelError for a classifier without
    predict_proba. Attributes after `fit`: edges_, a list of pairs of positions (parent, child) from label 0 on; estimators_, a classifier
    a label; pair_estimators_, one an edge, of the states 2 y_parent + y_child; classes_, label_classes_.

    Source: Li, Zhao and Guo, Multi-label image classification with a probabilistic label enhancement model (2014); the CGM paper's PLEM.

    >>> import numpy as np
    >>> from mtldsl.estimators.baselines import PLEM
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = PLEM().fit(X, [[1, 0, 1], [1, 0, 1], [0, 1, 0], [0, 1, 1]])
    >>> model.edges_
    [(0, 2), (2, 1)]
    >>> model.predict([[0.5], [2.5]])
    array([[1, 0, 1],
           [0, 1, 1]])
    """

    def __init__(self, estimator=None, *, random_state=0):
        self.estimator = estimator
        self.random_state = random_state

    def _check(self) -> None:
        super()._check()
        self._needs_probabilities("PLEM", "write an estimator that has, such as LogisticRegression()")

    def _learn(self, X, Y) -> None:
        rng = check_random_state(self.random_state)
        self.edges_ = _spanning_tree(Y.T @ Y)
        self.estimators_ = [fitted(self._base(), X, y, rng) for y in Y.T]
        self.pair_estimators_ = [fitted(self._base(), X, 2 * Y[:, j] + Y[:, k], rng) for j, k in self.edges_]

    def _margins(self, X) -> np.ndarray:
        nodes = [_logarithms(model, X, 2) for model in self.estimators_]
        pairs = [_logarithms(model, X, 4).reshape(-1, 2, 2) for model in self.pair_estimators_]
        return _max_marginals(nodes, self.edges_, pairs)


def _logarithms(model, X, states: int) -> np.ndarray:
    """(n, states) ln P of every state; states that were never seen have the least."""
    P = np.zeros((X.shape[0], states))
    P[:, np.asarray(model.classes_, dtype=int)] = model.predict_proba(X)
    return np.log(np.maximum(P, _LEAST))


def _max_marginals(nodes, edges, pairs) -> np.ndarray:
    """(n, K) max over y with y_k = 1 of S, less max over y with y_k = 0; edges (parent, child) in an order from the root."""
    up = [node.copy() for node in nodes]  # a node with what is below it
    messages = []  # of each edge, to its parent (n, 2)
    for (parent, child), pair in zip(reversed(edges), reversed(pairs), strict=True):
        message = (pair + up[child][:, None, :]).max(axis=2)
        up[parent] += message
        messages.append(message)
    whole = [each.copy() for each in up]
    for (parent, child), pair, message in zip(edges, pairs, reversed(messages), strict=True):
        # what the parent knows without the child
        whole[child] += (pair + (whole[parent] - message)[:, :, None]).max(axis=1)
    return np.stack([each[:, 1] - each[:, 0] for each in whole], axis=1)


def _spanning_tree(weights) -> list[tuple[int, int]]:
    """(parent, child) in the order in which Prim's algorithm adds them from label 0; of equal edges the first child, then parent."""
    K = len(weights)
    inside, edges = [0], []
    while len(inside) < K:
        _, child, parent = min((-weights[j, k], k, j) for j in inside for k in range(K) if k not in inside)
        edges.append((parent, child))
        inside.append(child)
    return edges
