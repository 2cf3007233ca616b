"""Binary relevance, powersets, chains, RAkEL, MLCSSP and HOMER, each against what it is published to be where that is something known."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from mtldsl.estimators import PLST
from mtldsl.estimators.baselines import (
    HOMER,
    MLCSSP,
    BinaryRelevance,
    EnsembleOfClassifierChains,
    LabelPowerset,
    RAkEL,
)
from tests.estimators.baselines.cases import labels
from tests.loops import for_each

X, Y = labels()
NEW = np.random.default_rng(9).normal(size=(200, 5))
BASE = LogisticRegression(C=0.5, max_iter=1000)


@for_each("base", [BASE, DecisionTreeClassifier(max_depth=2, random_state=0)])
def test_binary_relevance_is_scikit_learns_multi_output(base):
    model, twin = BinaryRelevance(base).fit(X, Y), MultiOutputClassifier(base).fit(X, Y)
    np.testing.assert_array_equal(model.predict(NEW), twin.predict(NEW))
    positive = np.stack([P[:, 1] for P in twin.predict_proba(NEW)], axis=1)
    np.testing.assert_array_equal(model.predict_proba(NEW), positive)
    apart = RAkEL(base, labelset_size=1, overlapping=False).fit(X, Y)
    np.testing.assert_array_equal(apart.predict(NEW), twin.predict(NEW))


def test_a_powerset_is_one_classifier_of_the_rows_of_labels():
    words = np.array(["".join(map(str, row)) for row in Y])
    twin, model = LogisticRegression(C=0.5, max_iter=1000).fit(X, words), LabelPowerset(BASE).fit(X, Y)
    assert ["".join(map(str, row)) for row in model.predict(NEW)] == twin.predict(NEW).tolist()
    assert len(model.combinations_) == len(set(words))
    rows = np.array([list(map(int, word)) for word in twin.classes_])
    np.testing.assert_allclose(model.predict_proba(NEW), twin.predict_proba(NEW) @ rows, atol=1e-8)
    assert not hasattr(model, "decision_function")  # its sign would be that of other labels


@pytest.mark.slow
def test_chains_vote_or_are_averaged():
    soft = EnsembleOfClassifierChains(BASE, n_chains=4).fit(X, Y)
    hard = EnsembleOfClassifierChains(BASE, n_chains=4, voting="hard").fit(X, Y)
    assert all(sorted(order.tolist()) == [0, 1, 2, 3] for order in soft.orders_)
    chains = [ClassifierChain(BASE, order=order.tolist()).fit(X, Y) for order in soft.orders_]
    mean = np.mean([c.predict_proba(NEW) for c in chains], axis=0)
    np.testing.assert_allclose(soft.predict_proba(NEW), mean, atol=1e-12)
    votes = np.mean([c.predict(NEW) for c in chains], axis=0)
    np.testing.assert_allclose(hard.decision_function(NEW), votes - 0.5, atol=1e-12)
    assert not hasattr(hard, "predict_proba")


def test_rakel_of_all_labels_is_the_powerset():
    powerset = LabelPowerset(BASE).fit(X, Y)
    for options in ({"overlapping": False}, {"n_labelsets": 1}):
        model = RAkEL(BASE, labelset_size=4, **options).fit(X, Y)
        assert [each.tolist() for each in model.labelsets_] == [[0, 1, 2, 3]]
        np.testing.assert_array_equal(model.predict(NEW), powerset.predict(NEW))
        soft = model.set_params(voting="soft").predict_proba(NEW)
        np.testing.assert_allclose(soft, powerset.predict_proba(NEW), atol=1e-12)


@pytest.mark.slow
def test_the_sets_of_rakel():
    _, many = labels(K=7)
    apart = RAkEL(BASE, overlapping=False).fit(X, many).labelsets_
    assert sorted(len(each) for each in apart) == [1, 3, 3]
    assert sorted(np.concatenate(apart).tolist()) == list(range(7))
    drawn = RAkEL(BASE).fit(X, many).labelsets_
    assert len({tuple(each) for each in drawn}) == len(drawn) >= 14
    assert {len(each) for each in drawn[:14]} == {3}
    few = RAkEL(BASE, n_labelsets=1).fit(X, many).labelsets_
    assert sorted(np.concatenate(few).tolist()) == list(range(7))  # every label has a vote
    assert len(RAkEL(BASE, n_labelsets=99, labelset_size=2).fit(X, Y).labelsets_) == 6  # all pairs of four
    # votes by hand
    model = RAkEL(BASE).fit(X, many)
    votes = np.zeros((len(NEW), 7))
    for labelset in model.labelsets_:
        votes[:, labelset] += LabelPowerset(BASE).fit(X, many[:, labelset]).predict(NEW)
    count = np.bincount(np.concatenate(model.labelsets_), minlength=7)
    np.testing.assert_allclose(model.decision_function(NEW), votes / count - 0.5, atol=1e-12)


def test_mlcssp_of_all_labels_is_binary_relevance():
    twin = BinaryRelevance(BASE).fit(X, Y)
    model = MLCSSP(BASE, n_selected=4).fit(X, Y)
    np.testing.assert_allclose(model.decoder_, np.eye(4), atol=1e-12)
    np.testing.assert_array_equal(model.predict(NEW), twin.predict(NEW))
    soft = MLCSSP(BASE, n_selected=4, voting="soft").fit(X, Y)
    np.testing.assert_allclose(soft.decision_function(NEW), twin.predict_proba(NEW) - 0.5, atol=1e-12)


def test_mlcssp_decodes_labels_of_low_rank_exactly():
    """Labels 3 and 4 are label 0 and the sum of labels 1 and 2: any three that span them say all."""
    rng = np.random.default_rng(1)
    first = (X[:, 0] > 0).astype(int)
    third = rng.integers(3, size=len(X))
    one, two = (third == 1).astype(int), (third == 2).astype(int)
    low = np.stack([first, one, two, first, one + two], axis=1)
    truth = DecisionTreeClassifier(random_state=0)  # learns its training rows by heart
    for seed in range(8):
        model = MLCSSP(truth, n_selected=3, random_state=seed).fit(X, low)
        spans = np.linalg.matrix_rank(low[:, model.selected_]) == 3
        assert (model.predict(X) == low).all() == spans
    # leverage by the definition
    _, _, vectors = np.linalg.svd(low.astype(float))
    np.testing.assert_allclose(model.leverage_, (vectors[:3] ** 2).sum(axis=0) / 3, atol=1e-12)


@pytest.mark.slow
def test_mlcssp_draws_labels_by_their_leverage():
    counts = np.zeros(4)
    for seed in range(300):
        model = MLCSSP(LinearSVC(), n_selected=1, random_state=seed)
        model.estimator = DecisionTreeClassifier(max_depth=1)
        counts[model.fit(X, Y).selected_] += 1
    # 300 draws: a standard deviation of a share is at most .029
    np.testing.assert_allclose(counts / 300, model.leverage_, atol=0.1)


def test_homer_with_a_cluster_a_label_is_binary_relevance():
    model, twin = HOMER(BASE, n_children=4).fit(X, Y), BinaryRelevance(BASE).fit(X, Y)
    assert model.hierarchy_ == [0, 1, 2, 3]
    np.testing.assert_array_equal(model.predict(NEW), twin.predict(NEW))
    np.testing.assert_allclose(model.decision_function(NEW), twin.decision_function(NEW), atol=1e-12)


def test_homer_by_hand():
    """Two clusters of two: a label is predicted where its cluster is, and then it among the rows of the cluster."""
    pairs = np.repeat((X[:, :2] > 0.5).astype(int), 2, axis=1)
    pairs[::7, 1] = 0
    pairs[::5, 3] = 0
    model = HOMER(BASE, n_children=2).fit(X, pairs)
    assert model.hierarchy_ == [[0, 1], [2, 3]]
    for part in ([0, 1], [2, 3]):
        there = pairs[:, part].any(axis=1)
        above = BinaryRelevance(BASE).fit(X, there.astype(int)).decision_function(NEW)
        inside = pairs[np.ix_(there, part)]
        for k, column in zip(part, inside.T, strict=True):
            below = 0.5 if column.all() else BASE.fit(X[there], column).decision_function(NEW)
            found = model.decision_function(NEW)[:, k]
            np.testing.assert_allclose(found, np.minimum(above, below), atol=1e-10)


# Tolerances of 1e-12 to 1e-15 are the rounding of small decompositions and of the linear systems of a ridge.


@for_each("alpha", [0.0, 0.7, 50.0])
def test_all_components_are_a_ridge_regression_a_label(alpha):
    X, Y = labels(60)
    X_new = np.random.default_rng(1).normal(size=(200, 5))
    model = PLST(alpha=alpha).fit(X, Y)
    for k in range(4):
        ridge = Ridge(alpha=alpha).fit(X, Y[:, k])
        np.testing.assert_allclose(model.coef_[:, k], ridge.coef_, atol=1e-12)
        scores = model.decision_function(X_new)[:, k]
        np.testing.assert_allclose(scores, ridge.predict(X_new) - 0.5, atol=1e-12)
        np.testing.assert_array_equal(model.predict(X_new)[:, k], ridge.predict(X_new) > 0.5)


@for_each("M", [1, 2, 3])
def test_codes_lose_no_more_than_the_singular_values_left_out(M):
    """Eckart and Young: the squared error of the labels' reconstruction is the sum of the squares of the other singular values."""
    X, Y = labels(60)
    model = PLST(n_components=M, alpha=0.7).fit(X, Y)
    assert model.components_.shape == (M, 4)
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(M), atol=1e-14)
    centred = Y - Y.mean(axis=0)
    lost = np.linalg.norm(centred - centred @ model.components_.T @ model.components_) ** 2
    singular = np.linalg.svd(centred, compute_uv=False)
    np.testing.assert_allclose(lost, np.sum(singular[M:] ** 2), rtol=1e-12)
    # what is predicted are the codes, each by a ridge regression
    ridge = Ridge(alpha=0.7).fit(X, centred @ model.components_.T)
    np.testing.assert_allclose(model.coef_, ridge.coef_.reshape(M, -1).T @ model.components_, atol=1e-12)
    scores = ridge.predict(X).reshape(-1, M) @ model.components_ + Y.mean(axis=0) - 0.5
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-12)


def test_more_labels_than_rows():
    X, Y = labels(n=6, d=3, K=9)
    model = PLST(alpha=0.5).fit(X, Y)
    assert model.components_.shape == (9, 9)
    np.testing.assert_allclose(model.coef_, Ridge(alpha=0.5).fit(X, Y).coef_.T, atol=1e-12)
