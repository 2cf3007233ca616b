"""Weights of samples and of classes; tasks whose labels are all of one class."""

import warnings

import numpy as np
import pytest
from sklearn.metrics import f1_score
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


# ------------------------------------------------------------------------------------------------- samples


@pytest.mark.parametrize(
    "make, inputs, y",
    [(MultiTaskRegressor, XR, YR), (MultiTaskClassifier, X, Y)],
    ids=["regressor", "classifier"],
)
def test_a_weight_is_a_number_of_rows(make, inputs, y):
    times = np.random.default_rng(0).integers(0, 4, len(inputs))
    weighted = make(**TIGHT).fit(inputs, y, sample_weight=times)
    repeated = make(**TIGHT).fit(np.repeat(inputs, times, axis=0), np.repeat(y, times, axis=0))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)
    assert weighted.score(inputs, y, sample_weight=times) == pytest.approx(
        repeated.score(np.repeat(inputs, times, axis=0), np.repeat(y, times, axis=0)), abs=1e-6
    )
    # one number for all rows is as many copies of all
    np.testing.assert_allclose(
        make(**TIGHT).fit(inputs, y, sample_weight=np.full(len(inputs), 2.0)).coef_,
        make(lam=0.25, tol=1e-10).fit(inputs, y).coef_,
        atol=1e-6,
    )


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
    for estimator, target in (
        (GroupedMultiTaskRegressor(**TIGHT), y),
        (GroupedMultiTaskClassifier(**TIGHT), words),
    ):
        weighted = estimator.fit(inputs, target, groups=ids, sample_weight=times).coef_
        repeated = estimator.fit(
            np.repeat(inputs, times, axis=0), np.repeat(target, times), groups=np.repeat(ids, times)
        ).coef_
        np.testing.assert_allclose(weighted, repeated, atol=1e-6)


# ------------------------------------------------------------------------------------------------- classes


def rare():
    """Labels of which one in eight is positive."""
    inputs, scores = regression(n=160)
    return inputs, (scores > np.quantile(scores, 0.875, axis=0)).astype(int)


def test_balanced_classes_weigh_alike_in_every_task():
    inputs, y = rare()
    balanced = MultiTaskClassifier(class_weight="balanced", **TIGHT).fit(inputs, y)
    share = y.mean(axis=0)
    by_hand = np.where(y == 1, 0.5 / share, 0.5 / (1 - share))
    np.testing.assert_allclose(
        balanced.coef_, MultiTaskClassifier(**TIGHT).fit(inputs, y, sample_weight=by_hand).coef_, atol=1e-6
    )
    assert (
        balanced.predict(inputs).mean() > MultiTaskClassifier(**TIGHT).fit(inputs, y).predict(inputs).mean()
    )


@for_each(
    "class_weight, factors",
    [
        ({1: 3.0}, ([1, 1, 1], [3, 3, 3])),
        ({0: 0.5, 1: 3}, ([0.5, 0.5, 0.5], [3, 3, 3])),
        ([{1: 3.0}, {0: 2.0}, {}], ([1, 2, 1], [3, 1, 1])),
    ],
    ids=["dict", "both", "list"],
)
def test_weights_of_classes_by_name(class_weight, factors):
    by_hand = np.where(Y == 0, *factors)
    given = MultiTaskClassifier(class_weight=class_weight, **TIGHT).fit(X, Y)
    np.testing.assert_allclose(
        given.coef_, MultiTaskClassifier(**TIGHT).fit(X, Y, sample_weight=by_hand).coef_, atol=1e-6
    )


def test_weights_of_named_classes_of_a_vector():
    y = np.array(["low", "mid", "high", "top"])[Y.sum(axis=1)]
    given = MultiTaskClassifier(class_weight={"top": 4.0}, **TIGHT).fit(X, y)
    by_hand = MultiTaskClassifier(**TIGHT).fit(X, y, sample_weight=np.where(y == "top", 4.0, 1.0))
    np.testing.assert_allclose(given.coef_, by_hand.coef_, atol=1e-6)


def test_balanced_is_within_every_task_of_rows():
    inputs, _, ids, words = rows_of_tasks(n=40)
    balanced = GroupedMultiTaskClassifier(class_weight="balanced", **TIGHT).fit(inputs, words, groups=ids)
    by_hand = np.empty(len(words))
    for each in np.unique(ids):
        rows = ids == each
        share = (words[rows] == "yes").mean()
        by_hand[rows] = np.where(words[rows] == "yes", 0.5 / share, 0.5 / (1 - share))
    again = GroupedMultiTaskClassifier(**TIGHT).fit(inputs, words, groups=ids, sample_weight=by_hand)
    np.testing.assert_allclose(balanced.coef_, again.coef_, atol=1e-6)


# --------------------------------------------------------------------------------------------- one class

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
    with pytest.raises(DataError, match="'task 0'"):
        GroupedMultiTaskClassifier(one_class="error").fit(
            inputs, np.where(ids == "task 0", "yes", words), groups=ids
        )


@for_each("one_class", ["constant", "skip"])
def test_a_task_of_rows_with_one_class(one_class):
    inputs, _, ids, words = rows_of_tasks()
    given = np.where(ids == "task 1", "no", words)
    with pytest.warns(OneClassWarning, match="task 1"):
        fitted = GroupedMultiTaskClassifier(one_class=one_class, **TIGHT).fit(inputs, given, groups=ids)
    mine = ids == "task 1"
    assert (
        fitted.one_class_.tolist() == ["task 1"] and (fitted.predict(inputs, groups=ids)[mine] == "no").all()
    )
    z = fitted.decision_function(inputs, groups=ids)
    np.testing.assert_array_equal(z[mine], np.nan if one_class == "skip" else -1.0)
    alone = GroupedMultiTaskClassifier(**TIGHT).fit(inputs[~mine], given[~mine], groups=ids[~mine])
    np.testing.assert_allclose(z[~mine], alone.decision_function(inputs[~mine], groups=ids[~mine]), atol=1e-9)


@pytest.mark.parametrize("estimator", [LabelGraphClassifier(lam=0.1), KernelMultiTaskClassifier()])
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
@pytest.mark.parametrize("model", ["CGM", "No edges", "HLLM-L1"])
def test_over_a_graph_of_labels_a_row_weighs_what_its_classes_do(model):
    """The product over columns, as scikit-learn's trees have it; the loss of a row is one of its whole labelling."""
    X, Y = labels()
    options = {"lam": 0.1, "tol": 1e-7} | ({"mu": 0.01} if model == "HLLM-L1" else {})
    stated = [{1: 3.0}, {0: 2.0}, None]
    for class_weight, theirs in (
        ("balanced", "balanced"),
        ({1: 3.0}, [{0: 1.0, 1: 3.0}] * 3),
        ([each or {} for each in stated], [{0: 1.0, 1: 3.0}, {0: 2.0, 1: 1.0}, {0: 1.0, 1: 1.0}]),
    ):
        fitted = LabelGraphClassifier(model, class_weight=class_weight, **options).fit(X, Y)
        rows = compute_sample_weight(theirs, Y)
        weighed = LabelGraphClassifier(model, **options).fit(X, Y, rows)
        np.testing.assert_allclose(fitted.decision_function(X), weighed.decision_function(X), atol=1e-6)
        by_table = LabelGraphClassifier(model, **options).fit(X, Y, np.tile(rows[:, None], 3))
        np.testing.assert_array_equal(by_table.decision_function(X), weighed.decision_function(X))
    plain = LabelGraphClassifier(model, **options).fit(X, Y)
    assert np.abs(plain.decision_function(X) - fitted.decision_function(X)).max() > 1e-2


@pytest.mark.slow
def test_balanced_classes_over_a_graph_find_rare_labels():
    """Balanced classes over a graph of labels find rare labels."""
    X, Y = labels(300, seed=3)
    rare = np.where(np.random.default_rng(0).random(Y.shape) < 0.85, 0, Y)
    plain, balanced = (
        LabelGraphClassifier(lam=0.1, class_weight=each).fit(X, rare) for each in (None, "balanced")
    )
    assert (
        f1_score(rare, balanced.predict(X), average="macro")
        > f1_score(rare, plain.predict(X), average="macro") + 0.1
    )
