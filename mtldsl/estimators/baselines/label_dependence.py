"""Baselines that learn how labels depend on one another: LEAD and PLEM."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import permutations

import networkx as nx
import numpy as np
from sklearn.utils import check_random_state

from mtldsl.estimators.baselines.base_baseline import (
    ClassifierBaseline,
    fit_classifier,
    margin,
    probability,
    whole,
    with_columns,
)

# --------------------------------------------------------------------------------------------------------------
# A directed acyclic graph over discrete variables, by a score that is a sum over the variables.


def family_scores(table) -> Callable[[int, tuple[int, ...]], float]:
    """BIC of one variable given its parents: max log-likelihood - 1/2 ln(n) (r - 1) q, r its states and q those of the parents together.

    table : (n, K) of whole numbers, the states of K variables
    """
    n, states = len(table), [np.unique(column, return_inverse=True)[1] for column in np.asarray(table).T]
    sizes = [int(state.max()) + 1 for state in states]

    @cache
    def score(variable: int, parents: tuple[int, ...]) -> float:
        q, where = 1, np.zeros(n, dtype=int)
        for parent in parents:
            q, where = q * sizes[parent], where * sizes[parent] + states[parent]
        r = sizes[variable]
        _, where = np.unique(where, return_inverse=True)
        counts = np.bincount(where * r + states[variable], minlength=(int(where.max()) + 1) * r)
        counts = counts.reshape(-1, r)
        share = counts / counts.sum(axis=1, keepdims=True)
        seen = counts > 0
        likelihood = float(np.sum(counts[seen] * np.log(share[seen])))
        return likelihood - 0.5 * np.log(n) * (r - 1) * q

    return score


def climbed_graph(K: int, score, max_parents: int) -> list[tuple[int, ...]]:
    """The parents of each variable in a graph with a high sum of score(variable, parents), found greedily: from no edge, the edge whose
    adding, removal or reversal raises the sum most, until none does."""
    parents: list[set[int]] = [set() for _ in range(K)]

    def gain(changed: dict[int, set[int]]) -> float:
        return sum(
            score(v, tuple(sorted(new))) - score(v, tuple(sorted(parents[v]))) for v, new in changed.items()
        )

    def allowed(changed: dict[int, set[int]]) -> bool:
        graph = nx.DiGraph((u, v) for v in range(K) for u in changed.get(v, parents[v]))
        return nx.is_directed_acyclic_graph(graph)

    while True:
        best, change = 1e-9, None
        for u, v in permutations(range(K), 2):
            if u in parents[v]:
                moves = [{v: parents[v] - {u}}, {v: parents[v] - {u}, u: parents[u] | {v}}]
            else:
                moves = [{v: parents[v] | {u}}]
            for changed in moves:
                few = all(len(new) <= max_parents for new in changed.values())
                if few and gain(changed) > best and allowed(changed):
                    best, change = gain(changed), changed
        if change is None:
            return [tuple(sorted(each)) for each in parents]
        for v, new in change.items():
            parents[v] = new


def in_order(parents) -> list[int]:
    """The variables, each after its parents; among those that may come next the first."""
    graph = nx.DiGraph((u, v) for v, own in enumerate(parents) for u in own)
    graph.add_nodes_from(range(len(parents)))
    return list(nx.lexicographical_topological_sort(graph))


# --------------------------------------------------------------------------------------------------------------
# LEAD: a Bayesian network of the errors of binary relevance says which labels each label is learned from.


#: Probability of a state that was never seen together, which is not impossible.
MIN_PROBABILITY_SHARE = 1e-12


class LEAD(ClassifierBaseline):
    """Each label from the rows and its parents in a network that was learned from errors (LEAD).

        h_k the classifier fitted to (X, y_k);  e_k = y_k - h_k(X) in {-1, 0, 1}, what x alone does not explain
        G = a directed acyclic graph over the labels with a high BIC of e_1, ..., e_K, at most `max_parents` parents each
        f_k the classifier fitted to ([X, y_parents(k)], y_k);  in the order of G: y_k = f_k(x, predicted y_parents(k))

    estimator    : a classifier of scikit-learn's, None for LogisticRegression(max_iter=1000)
    max_parents  : 0 and more; with 0 it is `BinaryRelevance`
    random_state : whatever is random in the classifier and has no random_state of its own is drawn from it

    What is simplified: the paper leaves the network to other programs; here the errors of predicted labels on the training rows are
    scored by BIC, and edges are added, removed and reversed greedily. A classifier that does not err on its training rows has no errors to learn
    from, and the graph is empty. X, Y and what else is raised are as in `BinaryRelevance`; predict_proba is P(y_k = 1 | x, predicted
    parents). Attributes after `fit`: parents_, a tuple of positions for each label; order_; estimators_, f_k; classes_, label_classes_.

    Source: Zhang and Zhang, Multi-label learning by exploiting label dependency (2010); the CGM paper's LEAD.

    >>> import numpy as np
    >>> from mtldsl.estimators.baselines import LEAD
    >>> rng = np.random.default_rng(0)
    >>> X, noise = rng.normal(size=(400, 2)), rng.normal(size=400)
    >>> Y = np.stack([X[:, 0] + noise > 0, X[:, 1] + noise > 0, X[:, 0] > 0], axis=1)
    >>> LEAD().fit(X, Y).parents_
    [(), (0,), ()]
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
        alone = [fit_classifier(self._base(), X, y, rng) for y in Y.T]
        errors = Y - np.stack([margin(model, X) > 0 for model in alone], axis=1)
        self.parents_ = climbed_graph(Y.shape[1], family_scores(errors), self.max_parents)
        self.order_ = in_order(self.parents_)
        self.estimators_ = [
            fit_classifier(self._base(), with_columns(X, Y[:, list(parents)]), y, rng) if parents else model
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

    def _probabilities(self, X) -> np.ndarray:
        return self._walked(X, probability)


# --------------------------------------------------------------------------------------------------------------
# PLEM: classifiers of labels and of pairs of labels along a tree, read together by max-product.


class PLEM(ClassifierBaseline):
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
        rows = nx.from_numpy_array(Y.T @ Y + 1)  # labels that are never together have an edge, too
        self.edges_ = list(nx.bfs_edges(nx.maximum_spanning_tree(rows), 0))
        self.estimators_ = [fit_classifier(self._base(), X, y, rng) for y in Y.T]
        self.pair_estimators_ = [
            fit_classifier(self._base(), X, 2 * Y[:, j] + Y[:, k], rng) for j, k in self.edges_
        ]

    def _margins(self, X) -> np.ndarray:
        nodes = [_logarithms(model, X, 2) for model in self.estimators_]
        pairs = [_logarithms(model, X, 4).reshape(-1, 2, 2) for model in self.pair_estimators_]
        return _max_marginals(nodes, self.edges_, pairs)


def _logarithms(model, X, states: int) -> np.ndarray:
    """(n, states) ln P of every state; states that were never seen have the least."""
    P = np.zeros((X.shape[0], states))
    P[:, np.asarray(model.classes_, dtype=int)] = model.predict_proba(X)
    return np.log(np.maximum(P, MIN_PROBABILITY_SHARE))


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
