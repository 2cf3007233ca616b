"""A training fold may have no label at all of a task: the others are learned, and it is said; a labelling may have gaps."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from mtldsl.errors import DataError
from mtldsl.estimators import (
    GroupedMultiTaskClassifier,
    GroupedMultiTaskRegressor,
    KernelMultiTaskClassifier,
    LabelGraphClassifier,
    MultiTaskClassifier,
    MultiTaskRegressor,
    OneClassWarning,
    scorer,
)
from tests.estimators.cases import labels, regression, rows_of_tasks
from tests.loops import for_each

SMALL = "squared_loss(W, tasks) + lam * ridge(W)"


def test_a_column_without_a_number_leaves_the_others_as_they_are():
    X, Y = regression()
    said = "1 of 3 tasks have no label.*: 1; their weights and predictions are NaN"
    with pytest.warns(OneClassWarning, match=said):
        fitted = MultiTaskRegressor(lam=2.0).fit(X, np.where(np.arange(3) == 1, np.nan, Y))
    alone = MultiTaskRegressor(lam=2.0).fit(X, Y[:, [0, 2]])
    assert np.array_equal(fitted.coef_[[0, 2]], alone.coef_) and np.isnan(fitted.coef_[1]).all()
    assert np.isnan(fitted.predict(X)[:, 1]).all() and np.isnan(fitted.intercept_[1])
    score = pytest.approx(alone.score(X, Y[:, [0, 2]]), rel=1e-12)
    assert fitted.score(X, Y) == score and scorer("r2")(alone, X, Y[:, [0, 2]]) == score
    with pytest.warns(OneClassWarning, match="1 of 3 tasks left out: '1'"):
        assert scorer("r2")(fitted, X, Y) == score
    with pytest.warns(OneClassWarning, match="none of weight above zero"):
        fitted = MultiTaskRegressor(lam=2.0).fit(X, Y, np.ones(Y.shape) * [1.0, 0.0, 1.0])
    assert np.array_equal(fitted.coef_[[0, 2]], alone.coef_)


@for_each(
    "kind, make",
    [("numbers", LabelGraphClassifier), ("text", MultiTaskClassifier), ("text", KernelMultiTaskClassifier)],
)
def test_a_column_without_a_label(make, kind):
    X, Y = labels()
    table = Y.astype(float) if kind == "numbers" else np.where(Y == 1, "yes", "no").astype(object)
    table[:, 1] = np.nan if kind == "numbers" else None
    with pytest.warns(OneClassWarning, match="1 of 3 tasks have no label.*their scores are NaN"):
        fitted = make().fit(X, table)
    alone = make().fit(X, table[:, [0, 2]])
    assert np.array_equal(fitted.predict(X)[:, [0, 2]], alone.predict(X))
    assert np.isnan(fitted.decision_function(X)[:, 1]).all()
    assert (fitted.predict(X)[:, 1] == (0 if kind == "numbers" else "no")).all()
    assert fitted.one_class_.tolist() == [1]
    if hasattr(fitted, "predict_proba") and make is MultiTaskClassifier:
        assert np.isnan(fitted.predict_proba(X)[:, 1]).all() and np.isnan(fitted.coef_[1]).all()
    with pytest.raises(DataError, match="1 of 3 tasks have no label"):
        make(one_class="error").fit(X, table)


MIXED = {
    "words and numbers": (("cold", "hot"), (0, 1), None),
    "other numbers in each": ((1, 2), (3, 4), np.nan),
    "bools and words": ((False, True), ("no", "yes"), None),
}


@pytest.mark.slow
@for_each(
    "kind, make",
    list(zip(MIXED, [MultiTaskClassifier, LabelGraphClassifier, KernelMultiTaskClassifier], strict=True)),
)
def test_a_column_of_nothing_among_columns_of_other_classes(make, kind):
    """Nobody knows its classes: it is predicted to be missing, and left out of scores, also where a test fold has labels of it."""
    X, Y = labels()
    first, second, lost = MIXED[kind]
    table = pd.DataFrame({
        "a": [first[k] for k in Y[:, 0]],
        "gone": [lost] * len(Y),
        "b": [second[k] for k in Y[:, 1]],
    })  # fmt: skip
    with pytest.warns(OneClassWarning, match="1 of 3 tasks have no label.*: 'gone'; their scores are NaN"):
        fitted = make(class_weight="balanced" if make is MultiTaskClassifier else None).fit(X, table)
    alone = clone(fitted).fit(X, table[["a", "b"]])
    predicted = fitted.predict(X)
    assert (predicted[:, [0, 2]] == alone.predict(X)).all() and pd.isna(predicted[:, 1]).all()
    assert [known.tolist() for known in fitted.label_classes_] == [list(first), [], list(second)]
    assert np.isnan(fitted.decision_function(X)[:, 1]).all()
    assert fitted.score(X, table) == alone.score(X, table[["a", "b"]])
    test = table.assign(gone=np.where(Y[:, 2] == 1, "u", "v"))
    for truth in (table, test):
        with pytest.warns(OneClassWarning, match="1 of 3 tasks left out: 'gone'"):
            assert scorer("f1")(fitted, X, truth) == pytest.approx(scorer("f1")(alone, X, table[["a", "b"]]))


def test_a_column_takes_its_second_class_from_the_others():
    """Otherwise "no" would be the positive class of a fold that has no "yes"."""
    X, Y = labels()
    words = np.where(Y == 1, "yes", "no")
    words[:, 1] = "no"
    with pytest.warns(OneClassWarning):
        fitted = MultiTaskClassifier().fit(X, words)
    assert [known.tolist() for known in fitted.label_classes_] == [["no", "yes"]] * 3
    assert (fitted.predict(X)[:, 1] == "no").all() and (fitted.predict_proba(X)[:, 1] == 0).all()
    test = np.where(Y == 1, "yes", "no")
    assert scorer("f1").score(fitted, X, test).by_task[1] == 0.0  # all its positives are missed


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mtldsl.estimators.OneClassWarning")
def test_a_search_goes_on_where_a_fold_lost_a_label():
    """A column has one label: the fold that tests it has none to learn from."""
    X, Y = labels()
    table = Y.astype(float)
    table[1:, 1] = np.nan
    options = {"cv": KFold(4), "scoring": scorer("f1_micro"), "error_score": "raise"}
    search = GridSearchCV(MultiTaskClassifier(), {"lam": [0.1, 1.0]}, **options)
    assert np.isfinite(search.fit(X, table).best_score_)
    scores = cross_val_score(MultiTaskRegressor(), X, table, cv=4, scoring=scorer("mse"))
    assert np.isfinite(scores).all()


@for_each("lost", ["labels", "weights"])
def test_a_task_that_lost_its_rows_was_not_trained(lost):
    X, y, ids, words = rows_of_tasks()
    gone = ids == "task 1"
    given = {"groups": ids, "sample_weight": np.where(gone, 0.0, 1.0) if lost == "weights" else None}
    numbers = np.where(gone, np.nan, y) if lost == "labels" else y
    text = np.where(gone, None, words) if lost == "labels" else words
    for model, target in ((GroupedMultiTaskRegressor(SMALL), numbers), (GroupedMultiTaskClassifier(), text)):
        said = "1 of 3 tasks have no label.*'task 1'.*unseen='error' answers"
        with pytest.warns(OneClassWarning, match=said):
            fitted = clone(model).fit(X, target, **given)
        without = clone(model).fit(X[~gone], target[~gone], groups=ids[~gone])
        assert fitted.tasks_.tolist() == without.tasks_.tolist() and "task 1" not in fitted.tasks_
        assert np.allclose(fitted.coef_, without.coef_, rtol=1e-12, atol=0)
        with pytest.raises(DataError, match="'task 1', which training did not have, or had no label of"):
            fitted.predict(X, groups=ids)
        with pytest.warns(OneClassWarning, match="unseen='mean' answers"):
            meant = clone(model).set_params(unseen="mean").fit(X, target, **given)
        assert len(meant.predict(X, groups=ids)) == len(X)
    with pytest.raises(DataError, match="1 of 3 tasks have no label"):
        GroupedMultiTaskClassifier(one_class="error").fit(X, text, **given)


def test_nothing_at_all_is_an_error():
    X, y, ids, words = rows_of_tasks()
    half = np.where(np.arange(len(y)) % 2, np.nan, y)
    with pytest.raises(DataError, match="no row has a label of weight above zero"):
        GroupedMultiTaskRegressor().fit(X, half, groups=ids, sample_weight=np.isnan(half) * 1.0)
    with pytest.raises(DataError, match="no task has a label of weight above zero"):
        MultiTaskClassifier().fit(X, np.where(np.isnan(half), np.nan, half > 0), np.isnan(half) * 1.0)
    with pytest.raises(DataError, match="NaN alone"):
        MultiTaskClassifier().fit(X, pd.DataFrame({"a": [None] * len(X)}))


@pytest.mark.slow
def test_a_weight_of_zero_is_a_missing_label():
    inputs, whole = labels(n=60, d=3)
    there = np.random.default_rng(0).random(whole.shape) > 0.2
    by_weight = LabelGraphClassifier(lam=0.1).fit(inputs, whole, sample_weight=2.0 * there)
    by_gap = LabelGraphClassifier(lam=0.1).fit(
        inputs, np.where(there, whole, np.nan), sample_weight=np.full(60, 2.0)
    )
    np.testing.assert_array_equal(by_weight.solution_.coef, by_gap.solution_.coef)
    with pytest.raises(DataError, match="several values in row 0"):
        LabelGraphClassifier(lam=0.1).fit(inputs, whole, sample_weight=1.0 + np.arange(3.0) * there)
