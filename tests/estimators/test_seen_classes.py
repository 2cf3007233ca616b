"""A label that training did not have is wrong wherever it is, in every measure; and what scorers ask of metadata routing."""

import warnings

import numpy as np
import pytest
import sklearn
import sklearn.metrics as theirs
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, LeaveOneOut, cross_val_score

from mtldsl.errors import DataError, ModelError
from mtldsl.estimators import (
    GroupedMultiTaskClassifier,
    GroupedMultiTaskRegressor,
    MultiTaskClassifier,
    MultiTaskRegressor,
    MultiTaskRegressorCV,
    scorer,
)
from mtldsl.estimators.baselines import BinaryRelevance
from tests.estimators.cases import labels, rows_of_tasks


def three():
    X, Y = labels()
    return X, np.array(["a", "b", "c"])[Y[:, 0] + Y[:, 1]]


def test_a_class_that_training_did_not_have_counts_as_wrong():
    X, y = three()
    seen = y != "c"
    for make in (MultiTaskClassifier, LogisticRegression):
        fitted = make().fit(X[seen], y[seen])
        assert scorer("subset_accuracy")(fitted, X, y) == pytest.approx(fitted.score(X, y))
        wanted = theirs.f1_score(y, fitted.predict(X), average="macro", zero_division=0.0)
        assert scorer("f1")(fitted, X, y) == pytest.approx(wanted)
        found, z = scorer("roc_auc").score(fitted, X, y), fitted.decision_function(X)
        wanted = [theirs.roc_auc_score(y == "a", -z), theirs.roc_auc_score(y == "b", z)]
        assert found.by_task[:2].tolist() == pytest.approx(wanted)
        assert np.isnan(found.by_task[2]) and found.left_out == ("c",)
    fitted, further = LogisticRegression().fit(X, y), np.where(np.arange(len(y)) < 5, "d", y)
    found = scorer("brier").score(fitted, X, further)
    wanted = theirs.brier_score_loss(further == "c", fitted.predict_proba(X)[:, 2])
    assert found.left_out == ("d",) and found.by_task[2] == pytest.approx(wanted)


@pytest.mark.filterwarnings("ignore::mtldsl.estimators.OneClassWarning")
def test_where_training_had_one_class_the_other_is_its_opposite():
    X, Y = labels()
    words = np.where(Y[:, 0] == 1, "yes", "no")
    for known, share in (("no", 0.0), ("yes", 1.0)):
        fitted = MultiTaskClassifier().fit(X, np.full(len(X), known))
        P = np.full(len(X), share)
        assert scorer("accuracy")(fitted, X, words) == np.mean(words == known)
        assert scorer("brier")(fitted, X, words) == -theirs.brier_score_loss(words == "yes", P)
        assert scorer("roc_auc")(fitted, X, words) == 0.5
    # of columns: no other tells that "no" has a "yes" beside it
    test = np.stack([np.where(Y[:, 1] == 1, "hot", "cold"), words], axis=1).astype(object)
    fitted = MultiTaskClassifier().fit(X, np.where(np.arange(2) == 1, "no", test))
    assert scorer("brier").score(fitted, X, test).by_task[1] == np.mean(words == "yes")
    assert scorer("f1").score(fitted, X, test).by_task[1] == 0.0


def test_a_third_class_and_other_kinds_of_classes_are_refused():
    X, Y = labels()
    fitted = MultiTaskClassifier().fit(X, Y)
    with pytest.raises(DataError, match="column 0 of y holds 2, and training had 0 and 1"):
        scorer("accuracy")(fitted, X, Y + 2 * (np.arange(3) == 0))
    with pytest.raises(DataError, match="text and numbers"):
        scorer("accuracy")(fitted, X, Y.astype(str))
    assert scorer("accuracy")(fitted, X, Y.astype(bool)) == scorer("accuracy")(fitted, X, Y)


@pytest.mark.slow
def test_scorers_ask_metadata_routing():
    X, Y = labels()
    weights, plain = np.linspace(0.0, 3.0, len(X)), MultiTaskClassifier()
    folds = KFold(3, shuffle=True, random_state=0)
    X2, _, ids, words = rows_of_tasks()
    with sklearn.config_context(enable_metadata_routing=True):
        fitting = MultiTaskClassifier().set_fit_request(sample_weight=False)
        asking = scorer("f1").set_score_request(sample_weight=True)
        found = cross_val_score(fitting, X, Y, cv=folds, params={"sample_weight": weights}, scoring=asking)
        by_hand = [
            scorer("f1")(plain.fit(X[train], Y[train]), X[test], Y[test], sample_weight=weights[test])
            for train, test in folds.split(X)
        ]
        unweighted = cross_val_score(plain, X, Y, cv=folds, scoring=scorer("f1"))
        assert found.tolist() == pytest.approx(by_hand) and found.tolist() != unweighted.tolist()
        grouped = GroupedMultiTaskClassifier().set_fit_request(groups=True)
        options = {"params": {"groups": ids}, "scoring": scorer("roc_auc").set_score_request(groups=True)}
        assert (cross_val_score(grouped, X2, words, cv=folds, error_score="raise", **options) > 0.5).all()
    with pytest.raises(ModelError, match="write sample_weight or groups"):
        scorer("f1").set_score_request(weights=True)


def test_labels_that_no_training_had_are_refused_by_score_too():
    """Each counted as wrong: a score of 0 for labels read as text, and of labels -1 and +1 for 0 and 1."""
    X, Y = labels()
    ids = np.arange(len(X)) % 2
    words = np.where(Y > 0, "yes", "no")
    for fitted, right, wrongs in (
        (MultiTaskClassifier().fit(X, Y), Y, (Y.astype(str), words, 2 * Y - 1)),
        (MultiTaskClassifier().fit(X, words), words, (Y, np.where(Y > 0, "ja", "nein"))),
        (BinaryRelevance().fit(X, Y), Y, (words, 2 * Y - 1)),
        (MultiTaskClassifier().fit(X, Y[:, 0]), Y[:, 0], (words[:, 0],)),
    ):
        assert fitted.score(X, right) > 0.5
        for wrong in wrongs:
            with pytest.raises(
                DataError, match=r"y holds .*, and training had .*give the classes of training"
            ):
                fitted.score(X, wrong)
    rows = GroupedMultiTaskClassifier().fit(X, Y[:, 0], groups=ids)
    with pytest.raises(DataError, match="text and numbers are not the same classes"):
        rows.score(X, words[:, 0], groups=ids)


def test_a_score_that_is_not_defined_says_so():
    X, Y = labels()
    ids, gone = np.arange(len(X)) % 2, np.full(len(X), np.nan)
    numbers = Y + np.arange(len(Y))[:, None]
    for fitted, y, beside in (
        (MultiTaskClassifier().fit(X, Y), np.full(Y.shape, np.nan), {}),
        (MultiTaskRegressor().fit(X, numbers), np.full(Y.shape, np.nan), {}),
        (MultiTaskRegressor().fit(X, numbers), np.ones(Y.shape), {}),
        (GroupedMultiTaskRegressor().fit(X, numbers[:, 0], groups=ids), gone, {"groups": ids}),
        (GroupedMultiTaskClassifier().fit(X, Y[:, 0], groups=ids), gone, {"groups": ids}),
    ):
        with pytest.warns(UndefinedMetricWarning, match="the score is NaN: "):
            assert np.isnan(fitted.score(X, y, **beside))


def test_folds_without_a_score_say_what_to_write():
    X, Y = labels()
    y = np.where(np.arange(len(X)) < 40, 1.0, Y[:, 0] + np.arange(len(X)))  # equal labels in the first fold
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MultiTaskRegressorCV(
            values=[1.0], cv=[(np.arange(40, 60), np.arange(40)), (np.arange(50), np.arange(50, 60))]
        ).fit(X, y)
        with pytest.raises(DataError, match="no fold could be scored at any value; write fewer folds"):
            MultiTaskRegressorCV(values=[1.0], cv=LeaveOneOut()).fit(X[:6], y[40:46])
