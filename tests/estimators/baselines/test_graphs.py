"""LEAD and PLEM: graphs, their search and their reading against every graph and every row of labels there is."""

from itertools import combinations, product

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from mtldsl import ModelError
from mtldsl.estimators.baselines import LEAD, PLEM, BinaryRelevance
from mtldsl.estimators.baselines.label_dependence import climbed_graph, family_scores
from tests.estimators.baselines.cases import labels
from tests.loops import for_each

X, Y = labels()
NEW = np.random.default_rng(9).normal(size=(100, 5))


def acyclic(parents) -> bool:
    left = set(range(len(parents)))
    while left:
        free = {v for v in left if not set(parents[v]) & left}
        if not free:
            return False
        left -= free
    return True


def total(parents, score) -> float:
    return sum(score(v, each) for v, each in enumerate(parents))


@for_each("most", [0, 1, 2, 3])
def test_the_climbed_graph_is_the_best_of_four_labels(most):
    """Every graph over four variables: a set of parents each, kept where there is no circle."""
    score = family_scores(Y)
    others = [[u for u in range(4) if u != v] for v in range(4)]
    sets = [[p for size in range(most + 1) for p in combinations(each, size)] for each in others]
    every = [total(graph, score) for graph in product(*sets) if acyclic(graph)]
    found = climbed_graph(4, score, most)
    assert acyclic(found) and max(map(len, found)) <= most
    np.testing.assert_allclose(total(found, score), max(every), rtol=1e-12)


def test_without_parents_lead_is_binary_relevance():
    model, twin = LEAD(max_parents=0).fit(X, Y), BinaryRelevance().fit(X, Y)
    np.testing.assert_array_equal(model.predict_proba(NEW), twin.predict_proba(NEW))
    # a tree that learns its rows by heart leaves no errors to learn from
    assert LEAD(DecisionTreeClassifier(random_state=0)).fit(X, Y).parents_ == [()] * 4


def test_lead_by_hand():
    X, Y = labels(n=400, share=1.0)
    model = LEAD().fit(X, Y)
    alone = np.stack([LogisticRegression(max_iter=1000).fit(X, y).predict(X) for y in Y.T], axis=1)
    score = family_scores(Y - alone)
    np.testing.assert_allclose(total(model.parents_, score), total(climbed_graph(4, score, 3), score))
    assert any(model.parents_)
    known: dict[int, np.ndarray] = {}
    while len(known) < 4:
        for k, parents in enumerate(model.parents_):
            if k not in known and set(parents) <= set(known):
                one = LogisticRegression(max_iter=1000).fit(np.hstack([X, Y[:, list(parents)]]), Y[:, k])
                above = np.stack([known[u] for u in parents], axis=1) if parents else np.zeros((len(NEW), 0))
                known[k] = one.predict(np.hstack([NEW, above]))
    np.testing.assert_array_equal(model.predict(NEW), np.stack([known[k] for k in range(4)], axis=1))


def test_errors_that_labels_share_make_an_edge_and_others_do_not():
    rng = np.random.default_rng(5)
    rows, noise = rng.normal(size=(800, 3)), rng.normal(size=(800, 3))
    apart = (rows + noise > 0).astype(int)
    assert LEAD().fit(rows, apart).parents_ == [()] * 3
    shared = (rows + noise[:, [0, 0, 2]] > 0).astype(int)
    found = LEAD().fit(rows, shared).parents_
    assert sorted(map(len, found)) == [0, 0, 1] and found[2] == ()
    X, many = labels(n=200, K=12)
    greedy = LEAD(max_parents=2).fit(X, many)  # of many labels
    assert acyclic(greedy.parents_) and greedy.predict(NEW).shape == (100, 12)


def test_plem_is_read_exactly():
    """Every row of labels by its sum, against messages along the tree."""
    _, five = labels(K=5)
    model = PLEM().fit(X, five)
    nodes = [m.predict_proba(NEW) for m in model.estimators_]
    pairs = []
    for m in model.pair_estimators_:
        full = np.full((len(NEW), 4), 1e-12)
        full[:, m.classes_] = np.maximum(m.predict_proba(NEW), 1e-12)
        pairs.append(full)
    rows = np.array(list(product([0, 1], repeat=5)))
    S = np.zeros((len(NEW), len(rows)))
    for s, y in enumerate(rows):
        S[:, s] += sum(np.log(node[:, y[k]]) for k, node in enumerate(nodes))
        for (j, k), pair in zip(model.edges_, pairs, strict=True):
            S[:, s] += np.log(pair[:, 2 * y[j] + y[k]])
    np.testing.assert_array_equal(model.predict(NEW), rows[S.argmax(axis=1)])
    for k in range(5):
        there = rows[:, k] == 1
        lead = S[:, there].max(axis=1) - S[:, ~there].max(axis=1)
        np.testing.assert_allclose(model.decision_function(NEW)[:, k], lead, atol=1e-9)


def test_plem_of_one_label_and_without_probabilities():
    model, alone = PLEM().fit(X, Y[:, 1]), LogisticRegression(max_iter=1000).fit(X, Y[:, 1])
    assert model.edges_ == []
    np.testing.assert_array_equal(model.predict(NEW), alone.predict(NEW))
    with pytest.raises(ModelError, match=r"LinearSVC.*has no predict_proba"):
        PLEM(LinearSVC()).fit(X, Y)
