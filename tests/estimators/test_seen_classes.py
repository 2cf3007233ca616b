"""A label that training did not have is wrong wherever it is, in every measure; and what scorers ask of metadata routing."""

import numpy as np
import pytest
import sklearn
import sklearn.metrics as theirs
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_score

from mtldsl.errors import DataError, ModelError
from mtldsl.estimators import GroupedMultiTaskClassifier, MultiTaskClassifier, scorer
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
