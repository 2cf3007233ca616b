"""Weights of samples and of classes; tasks whose labels are all of one class."""

import warnings

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_sample_weight

from mtldsl import DataError
from mtldsl.estimators import (
    GroupedMultiTaskClassifier,
    GroupedMultiTaskRegressor,
    KernelMultiTaskClassifier,
    LabelGraphClassifier,
    MultiTaskClassifier,
    MultiTaskRegressor,
    OneClassWarning,
)
from tests.estimators.cases import labels, regression, rows_of_tasks
from tests.loops import for_each

X, Y = labels()
XR, YR = regression()
TIGHT = {"lam": 0.5, "tol": 1e-10}


def assert_same_weights(one, other):
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-6)


@for_each("make, inputs, y", [(MultiTaskRegressor, XR, YR), (MultiTaskClassifier, X, Y)])
def test_a_weight_is_a_number_of_rows(make, inputs, y):
    """One number for all rows is as many copies of all."""
    times = np.random.default_rng(0).integers(0, 4, len(inputs))
    rows, again = np.repeat(inputs, times, axis=0), np.repeat(y, times, axis=0)
    weighted, repeated = make(**TIGHT).fit(inputs, y, sample_weight=times), make(**TIGHT).fit(rows, again)
    assert_same_weights(weighted, repeated)
    score = weighted.score(inputs, y, sample_weight=times)
    assert score == pytest.approx(repeated.score(rows, again), abs=1e-6)
    twice = make(**TIGHT).fit(inputs, y, sample_weight=np.full(len(inputs), 2.0))
    assert_same_weights(twice, make(lam=0.25, tol=1e-10).fit(inputs, y))


@for_each(
    "make, inputs, y",
    [(MultiTaskRegressor, XR, YR), (MultiTaskClassifier, X, Y.astype(float))],
    ids=["regressor", "classifier"],
)
def test_a_weight_of_zero_is_a_missing_label(make, inputs, y):
    keep = np.random.default_rng(1).random(y.shape) > 0.2
    weighted = make(**TIGHT).fit(inputs, y, sample_weight=keep.astype(float))
    missing = make(**TIGHT).fit(inputs, np.where(keep, y, np.nan))
    np.testing.assert_array_equal(weighted.coef_, missing.coef_)


def test_weights_by_label_scale_a_task_of_its_own():
    by_task = np.broadcast_to([1.0, 3.0, 1.0], Y.shape)
    ours = MultiTaskClassifier("logistic_loss(W, tasks) + lam * ridge(W)", **TIGHT)
    plain, weighted = ours.fit(X, Y).coef_, ours.fit(X, Y, sample_weight=by_task).coef_
    np.testing.assert_allclose(weighted[[0, 2]], plain[[0, 2]], atol=1e-6)
    np.testing.assert_allclose(weighted[1], ours.set_params(lam=0.5 / 3).fit(X, Y).coef_[1], atol=1e-5)


def test_weights_of_rows_of_tasks():
    inputs, y, ids, words = rows_of_tasks()
    times = np.random.default_rng(0).integers(1, 4, len(inputs))
    rows, groups = np.repeat(inputs, times, axis=0), np.repeat(ids, times)
    for make, target in ((GroupedMultiTaskRegressor, y), (GroupedMultiTaskClassifier, words)):
        weighted = make(**TIGHT).fit(inputs, target, groups=ids, sample_weight=times)
        assert_same_weights(weighted, make(**TIGHT).fit(rows, np.repeat(target, times), groups=groups))


def rare():
    """Labels of which one in eight is positive."""
    inputs, scores = regression(n=160)
    return inputs, (scores > np.quantile(scores, 0.875, axis=0)).astype(int)


def test_balanced_classes_weigh_alike_in_every_task():
    inputs, y = rare()
    balanced = MultiTaskClassifier(class_weight="balanced", **TIGHT).fit(inputs, y)
    share, plain = y.mean(axis=0), MultiTaskClassifier(**TIGHT)
    by_hand = np.where(y == 1, 0.5 / share, 0.5 / (1 - share))
    assert_same_weights(balanced, plain.fit(inputs, y, sample_weight=by_hand))
    assert balanced.predict(inputs).mean() > plain.fit(inputs, y).predict(inputs).mean()


CLASSES = np.array(["low", "mid", "high", "top"])[Y.sum(axis=1)]


@for_each(
    "class_weight, y, by_hand",
    [
        ({1: 3.0}, Y, np.where(Y == 0, 1, 3)),
        ({0: 0.5, 1: 3}, Y, np.where(Y == 0, 0.5, 3)),
        ([{1: 3.0}, {0: 2.0}, {}], Y, np.where(Y == 0, [1, 2, 1], [3, 1, 1])),
        ({"top": 4.0}, CLASSES, np.where(CLASSES == "top", 4.0, 1.0)),
    ],
    ids=["dict", "both", "list", "vector"],
)
def test_weights_of_classes_by_name(class_weight, y, by_hand):
    given = MultiTaskClassifier(class_weight=class_weight, **TIGHT).fit(X, y)
    assert_same_weights(given, MultiTaskClassifier(**TIGHT).fit(X, y, sample_weight=by_hand))


def test_balanced_is_within_every_task_of_rows():
    inputs, _, ids, words = rows_of_tasks(n=40)
    balanced = GroupedMultiTaskClassifier(class_weight="balanced", **TIGHT).fit(inputs, words, groups=ids)
    share = np.array([np.mean(words[ids == each] == "yes") for each in ids])
    by_hand = np.where(words == "yes", 0.5 / share, 0.5 / (1 - share))
    again = GroupedMultiTaskClassifier(**TIGHT).fit(inputs, words, groups=ids, sample_weight=by_hand)
    assert_same_weights(balanced, again)


ONE = Y.copy()
ONE[:, 1] = 0


@for_each("one_class", ["constant", "skip"])
def test_tasks_of_one_class_leave_the_others_alone(one_class):
    with pytest.warns(OneClassWarning, match="1 of 3 tasks have labels of one class alone: 1"):
        fitted = MultiTaskClassifier(one_class=one_class, **TIGHT).fit(X, ONE)
    others = MultiTaskClassifier(**TIGHT).fit(X, ONE[:, [0, 2]])
    assert fitted.one_class_.tolist() == [1] and fitted.coef_.shape == (3, 6)
    np.testing.assert_array_equal(fitted.coef_[[0, 2]], others.coef_)
    np.testing.assert_array_equal(fitted.predict(X)[:, [0, 2]], others.predict(X))
    assert (fitted.predict(X)[:, 1] == 0).all()
    z, P = fitted.decision_function(X)[:, 1], fitted.predict_proba(X)[:, 1]
    if one_class == "skip":
        assert np.isnan(z).all() and np.isnan(P).all() and np.isnan(fitted.coef_[1]).all()
    else:
        assert (z == -1).all() and (P == 0).all() and not fitted.coef_[1].any()


def test_tasks_of_one_class_may_be_an_error():
    with pytest.raises(DataError, match="one_class='constant' or 'skip'"):
        MultiTaskClassifier(one_class="error").fit(X, ONE)
    inputs, _, ids, words = rows_of_tasks()
    given = np.where(ids == "task 0", "yes", words)
    with pytest.raises(DataError, match="'task 0'"):
        GroupedMultiTaskClassifier(one_class="error").fit(inputs, given, groups=ids)


@for_each("one_class", ["constant", "skip"])
def test_a_task_of_rows_with_one_class(one_class):
    inputs, _, ids, words = rows_of_tasks()
    given = np.where(ids == "task 1", "no", words)
    with pytest.warns(OneClassWarning, match="task 1"):
        fitted = GroupedMultiTaskClassifier(one_class=one_class, **TIGHT).fit(inputs, given, groups=ids)
    mine = ids == "task 1"
    assert fitted.one_class_.tolist() == ["task 1"]
    assert (fitted.predict(inputs, groups=ids)[mine] == "no").all()
    z = fitted.decision_function(inputs, groups=ids)
    np.testing.assert_array_equal(z[mine], np.nan if one_class == "skip" else -1.0)
    alone = GroupedMultiTaskClassifier(**TIGHT).fit(inputs[~mine], given[~mine], groups=ids[~mine])
    np.testing.assert_allclose(z[~mine], alone.decision_function(inputs[~mine], groups=ids[~mine]), atol=1e-9)


@for_each("estimator", [LabelGraphClassifier(lam=0.1), KernelMultiTaskClassifier()])
def test_one_class_with_graphs_and_kernels(estimator):
    with pytest.warns(OneClassWarning):
        fitted = estimator.fit(X, ONE)
    assert fitted.predict(X).shape == Y.shape and (fitted.predict(X)[:, 1] == 0).all()
    assert (fitted.decision_function(X)[:, 1] == -1).all()


def test_nothing_but_tasks_of_one_class():
    with pytest.warns(OneClassWarning, match="3 of 3"):
        fitted = MultiTaskClassifier().fit(X, np.zeros_like(Y))
    assert fitted.solution_ is None and fitted.certificate_ is None
    assert not fitted.predict(X).any() and not fitted.predict_proba(X).any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.fit(X, Y)  # what was left out then is not left out now
    assert fitted.one_class_.size == 0 and fitted.solution_ is not None


@pytest.mark.slow
@for_each(
    ("model", "class_weight", "theirs"),
    [
        ("CGM", {1: 3.0}, [{0: 1.0, 1: 3.0}] * 3),
        ("No edges", "balanced", "balanced"),
        ("HLLM-L1", [{1: 3.0}, {0: 2.0}, {}], [{0: 1.0, 1: 3.0}, {0: 2.0, 1: 1.0}, {0: 1.0, 1: 1.0}]),
    ],
)
def test_over_a_graph_of_labels_a_row_weighs_what_its_classes_do(model, class_weight, theirs):
    """The product over columns, as scikit-learn's trees have it; the loss of a row is one of its whole labelling."""
    X, Y = labels(n=40)
    options = {"lam": 0.1, "tol": 1e-7} | ({"mu": 0.01} if model == "HLLM-L1" else {})
    rows = compute_sample_weight(theirs, Y)
    fitted = LabelGraphClassifier(model, class_weight=class_weight, **options).fit(X, Y)
    weighed, by_table, plain = (
        LabelGraphClassifier(model, **options).fit(X, Y, weights).decision_function(X)
        for weights in (rows, np.tile(rows[:, None], 3), None)
    )
    np.testing.assert_allclose(fitted.decision_function(X), weighed, atol=1e-6)
    np.testing.assert_array_equal(by_table, weighed)
    assert np.abs(plain - weighed).max() > 1e-2
