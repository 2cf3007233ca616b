"""HOMER: a tree of small multi-label problems, over labels that were clustered into parts of equal size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_random_state

from mtldsl.estimators.baselines.balanced import balanced_clusters
from mtldsl.estimators.baselines.base_classifier import MadeOfClassifiers, fitted, margin
from mtldsl.estimators.baselines.baseline import whole

__all__ = ["HOMER"]


@dataclass
class Node:
    """Some labels (two or more), their parts, a classifier a part ("a label of this part is there"), and the part's own node, None of one label."""

    labels: np.ndarray
    parts: list[np.ndarray]
    models: list
    children: list[Node | None]


class HOMER(MadeOfClassifiers):
    """A hierarchy of multi-label classifiers over clusters of labels (HOMER).

        the root has all labels; a node's labels are clustered into k parts of equal size, its children, until a part is one label
        a part is "there" in a row where one of its labels is; a node's classifiers, one a part, are learned from the rows in which the
        node's own labels are there (the root's from all rows)
        score of a label = the least of the scores of the parts on its way from the root;  predicted where it is above 0

    estimator    : a classifier of scikit-learn's, None for LogisticRegression(max_iter=1000)
    n_children   : k >= 2, the number of parts; with as many as labels it is `BinaryRelevance`
    n_iter       : rounds of the balanced k-means on the columns of Y
    random_state : of the row that is the first centre; the default gives the same model every time

    A label is predicted where all parts on its way are, as in the paper, whose nodes may hold any multi-label learner: here each is
    binary relevance; and whose first centres are drawn, where here they are far from each other. X, Y and what else is raised are as in `BinaryRelevance`; DataError for numbers outside their range. Attributes
    after `fit`: hierarchy_, nested lists of positions of labels; classes_, label_classes_.

    Source: Tsoumakas, Katakis and Vlahavas, Effective and efficient multilabel classification in domains with large number of labels (2008);
    the SMTL paper's HOMER.

    >>> import numpy as np
    >>> from mtldsl.estimators.baselines import HOMER
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [4.0, 0.0], [4.0, 1.0]])
    >>> Y = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]])
    >>> model = HOMER(n_children=2).fit(X, Y)
    >>> model.hierarchy_
    [[0, 1], [2, 3]]
    >>> model.predict([[1.0, 0.0], [3.0, 0.0]])
    array([[1, 1, 0, 0],
           [0, 0, 1, 1]])
    """

    def __init__(self, estimator=None, *, n_children=3, n_iter=10, random_state=0):
        self.estimator = estimator
        self.n_children = n_children
        self.n_iter = n_iter
        self.random_state = random_state

    def _check(self) -> None:
        super()._check()
        whole(self, "n_children", least=2)
        whole(self, "n_iter")

    def _learn(self, X, Y) -> None:
        rng = check_random_state(self.random_state)
        self._root = self._node(X, Y, np.arange(Y.shape[1]), rng)
        self.hierarchy_ = _nested(self._root)

    def _node(self, X, Y, labels, rng) -> Node:
        parts = [
            labels[each] for each in balanced_clusters(Y[:, labels].T, self.n_children, self.n_iter, rng)
        ]
        there = np.stack([Y[:, part].any(axis=1) for part in parts], axis=1).astype(int)
        models = [fitted(self._base(), X, one, rng) for one in there.T]
        children: list[Node | None] = []
        for part, one in zip(parts, there.T, strict=True):
            rows = np.flatnonzero(one)
            if not rows.size:  # none of these labels occurs: the part is never predicted, whatever is below
                rows = np.arange(len(one))
            children.append(self._node(X[rows], Y[rows], part, rng) if len(part) > 1 else None)
        return Node(labels, parts, models, children)

    def _margins(self, X) -> np.ndarray:
        scores = np.empty((X.shape[0], len(self._root.labels)))
        _fill(self._root, X, np.full(X.shape[0], np.inf), scores)
        return scores


def _fill(node: Node, X, above: np.ndarray, scores: np.ndarray) -> None:
    """The scores of a node's labels: the least on their way, `above` (n,) being that down to the node."""
    for part, model, child in zip(node.parts, node.models, node.children, strict=True):
        here = np.minimum(above, margin(model, X))
        if child is None:
            scores[:, part[0]] = here
        else:
            _fill(child, X, here, scores)


def _nested(node: Node) -> list:
    """The labels below a node as nested lists."""
    return [
        int(part[0])
        if child is None
        else part.tolist()
        if all(c is None for c in child.children)
        else _nested(child)
        for part, child in zip(node.parts, node.children, strict=True)
    ]
