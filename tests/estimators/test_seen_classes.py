"""A label that training did not have is wrong wherever it is, in every measure; what scorers ask of metadata routing; and which class is the positive one."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
import sklearn.metrics as theirs
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold, LeaveOneOut, cross_val_score

import mtldsl as mtl
from mtldsl.errors import DataError, ModelError
from mtldsl.estimators import (
    GroupedMultiTaskClassifier,
    GroupedMultiTaskClassifierCV,
    GroupedMultiTaskRegressor,
    MultiTaskClassifier,
    MultiTaskClassifierCV,
    MultiTaskRegressor,
    MultiTaskRegressorCV,
    PositiveClassWarning,
    scorer,
)
from mtldsl.estimators.baselines import BinaryRelevance
from tests.estimators.cases import labels, rows_of_tasks
from tests.loops import for_each


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
    with pytest.raises(ModelError, match="write sample_weight"):
        scorer("neg_max_error").set_score_request(groups=True)


def test_scorers_of_scikit_learn_ask_metadata_routing():
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(60, 3)), np.linspace(0.1, 3.0, 60)
    y = X[:, 0] + rng.normal(size=60)
    with sklearn.config_context(enable_metadata_routing=True):
        options = {"cv": 3, "params": {"sample_weight": weights}, "error_score": "raise"}
        fitting = Ridge().set_fit_request(sample_weight=True)
        for name in ("neg_median_absolute_error", "d2_absolute_error_score"):
            ours, theirs = scorer(name), get_scorer(name)
            found, by_them = (
                cross_val_score(fitting, X, y, scoring=one.set_score_request(sample_weight=True), **options)
                for one in (ours, theirs)
            )
            unweighted = cross_val_score(fitting, X, y, scoring=ours.set_score_request(sample_weight=False), **options)  # fmt: skip
            assert found.tolist() == by_them.tolist() != unweighted.tolist()


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


X = np.random.default_rng(0).normal(size=(60, 3))
ILL = pd.DataFrame({"flu": X[:, 0] > 0.8, "cold": X[:, 1] > 0.8})
TEXT = ILL.replace({True: "ill", False: "well"})
CV = {"values": [1.0], "cv": 2}
SAYS = {
    "f1": lambda y: MultiTaskClassifierCV(scoring="f1", **CV).fit(X, y),
    "a scorer": lambda y: MultiTaskClassifierCV(scoring=scorer("precision"), **CV).fit(X, y),
    "thresholds": lambda y: MultiTaskClassifier(tune_thresholds=True, inner_folds=2).fit(X, y),
    "a vector": lambda y: MultiTaskClassifierCV(scoring="recall", **CV).fit(X, y["flu"]),
    "groups": lambda y: GroupedMultiTaskClassifierCV(scoring="average_precision", **CV).fit(
        X, y["flu"], groups=np.arange(60) % 2
    ),
}
EVEN = {
    "roc_auc": lambda y: MultiTaskClassifierCV(scoring="roc_auc", **CV).fit(X, y),
    "errors": lambda y: MultiTaskClassifier(tune_thresholds=mtl.metrics.ErrorRate(), inner_folds=2).fit(X, y),
}


@for_each("name", ["f1", "recall", "average_precision"])
def test_a_scorer_that_is_called_tells_it_too(name):
    fitted, flu = MultiTaskClassifier().fit(X, TEXT), MultiTaskClassifier().fit(X, TEXT["flu"])
    with pytest.warns(
        PositiveClassWarning, match="scorer.* counts positives, .* 'well' of flu, 'well' of cold; where 'ill'"
    ):
        scorer(name)(fitted, X, TEXT)
    with pytest.warns(PositiveClassWarning, match="'well' of y;"):
        scorer(name)(flu, X, TEXT["flu"])
    once = scorer(name)
    with pytest.warns(PositiveClassWarning) as told:
        cross_val_score(MultiTaskClassifier(), X, TEXT, cv=3, scoring=once)
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", PositiveClassWarning)
        scorer(name)(MultiTaskClassifier().fit(X, ILL), X, ILL)
        scorer("roc_auc")(fitted, X, TEXT)


@pytest.mark.slow
@for_each("ask", SAYS)
def test_a_frequent_positive_class_is_told(ask):
    for words in ({}, {"ill": 1, "well": 2}):
        with pytest.warns(PositiveClassWarning, match="fit and score on y == ") as told:
            SAYS[ask](TEXT.replace(words) if words else TEXT)
        assert len(told) == 1 and (words or "'well' of " in str(told[0].message))


@pytest.mark.slow
@for_each("ask", [*SAYS, *EVEN])
def test_a_positive_class_that_was_said_is_not(ask):
    with warnings.catch_warnings():
        warnings.simplefilter("error", PositiveClassWarning)
        if ask in EVEN:
            EVEN[ask](TEXT)
            return
        for labels in (ILL, ILL.astype(int), ~ILL, TEXT.replace({"ill": "yes", "well": "no"})):
            SAYS[ask](labels)


def test_labels_1_and_2_have_one_positive_class():
    y = TEXT["flu"].map({"ill": 1, "well": 2})
    with pytest.warns(PositiveClassWarning):
        scored = MultiTaskClassifierCV(scoring="f1", **CV).fit(X, y)
    assert scored.best_score_ == MultiTaskClassifierCV(scoring="f1", **CV).fit(X, ~ILL["flu"]).best_score_


def test_a_summary_names_positive_classes():
    said = MultiTaskClassifier().fit(X, TEXT).summary()
    assert "positive, the last class in sorted order: 'well' of flu, 'well' of cold" in said


@pytest.mark.slow
def test_a_page_names_every_positive_class(tmp_path):
    def page(fitted, y, **groups):
        return fitted.report(tmp_path / "p.html", X, y, bootstrap=0, **groups).read_text(encoding="utf-8")

    mixed = TEXT.assign(cold=ILL["cold"].astype(int))
    said = page(MultiTaskClassifier().fit(X, mixed), mixed)
    assert f"{100 * (TEXT['flu'] == 'well').mean():.1f} % are well<" in said
    assert f"{100 * ILL['cold'].mean():.1f} % are 1<" in said
    ids = np.arange(60) % 2
    rows = page(GroupedMultiTaskClassifier().fit(X, TEXT["flu"], groups=ids), TEXT["flu"], groups=ids)
    assert ">positive (well)<" in rows and rows.count(" %</td><td") >= 2
    assert ">positive (1)<" in page(MultiTaskClassifier().fit(X, ILL["flu"] * 1.0), ILL["flu"] * 1.0)
