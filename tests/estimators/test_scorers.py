"""Scorers by name with our estimators and scikit-learn's, on tables with gaps."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics as theirs
from sklearn.base import clone
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC

from mtldsl.errors import DataError, ModelError
from mtldsl.estimators import (
    GroupedMultiTaskClassifier,
    GroupedMultiTaskRegressor,
    MultiTaskClassifier,
    MultiTaskClassifierCV,
    MultiTaskKFold,
    MultiTaskRegressor,
    OneClassWarning,
    report,
    scorer,
)
from mtldsl.solution.measures import MEASURES
from tests.loops import for_each
from tests.pairs import pairwise_cases
from tests.scoring.test_measures import BY_TASK, NUMBERS, WHOLE


def table(seed=0, n=80, m=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (X @ rng.normal(size=(4, m)) + rng.normal(size=(n, m)) > 0.5).astype(int)


@pytest.mark.slow
@for_each("name", [name for name, one in MEASURES.items() if one.needs != "values"])
@for_each("make", [lambda: MultiTaskClassifier(), lambda: OneVsRestClassifier(LogisticRegression())])
def test_ours_and_theirs_are_scored_alike_from_what_they_predict(name, make):
    X, Y = table()
    fitted = make().fit(X, Y)
    faces = {"labels": "predict", "scores": "decision_function", "probabilities": "predict_proba"}
    predicted = getattr(fitted, faces[MEASURES[name].needs])(X)
    if name in BY_TASK:
        wanted = np.mean([BY_TASK[name](y, p) for y, p in zip(Y.T, predicted.T, strict=True)])
    else:
        wanted = WHOLE[name](Y, predicted)
    assert np.isclose(scorer(name)(fitted, X, Y), wanted * MEASURES[name].direction, rtol=1e-10)


def test_gaps_in_y_and_the_kinds_of_labels_change_nothing():
    X, Y = table(1)
    fitted, there = MultiTaskClassifier().fit(X, Y), np.random.default_rng(1).random(Y.shape) > 0.3
    gaps, z = np.where(there, Y, np.nan), fitted.decision_function(X)
    wanted = np.mean([theirs.roc_auc_score(Y[r, k], z[r, k]) for k, r in enumerate(there.T)])
    assert np.isclose(scorer("roc_auc")(fitted, X, gaps), wanted, rtol=1e-12)
    words = pd.DataFrame(np.where(Y == 1, "yes", "no")).astype(object).where(there)
    of_words, of_numbers = (
        scorer("average_precision")(MultiTaskClassifier().fit(X, y), X, y) for y in (words, gaps)
    )
    assert np.isclose(of_words, of_numbers)


def test_one_vector_of_two_classes_and_of_more():
    X, Y = table(2)
    y = Y[:, 0]
    for fitted in (MultiTaskClassifier().fit(X, y), LogisticRegression().fit(X, y)):
        area, loss = (scorer(name)(fitted, X, y) for name in ("roc_auc", "log_loss"))
        assert np.isclose(area, theirs.roc_auc_score(y, fitted.decision_function(X)))
        assert np.isclose(loss, -theirs.log_loss(y, fitted.predict_proba(X)))
        assert scorer("neg_log_loss")(fitted, X, y) == loss
        assert scorer("jaccard")(fitted, X, y) == theirs.jaccard_score(y, fitted.predict(X))
    y = np.array(["a", "b", "c"])[Y[:, 0] + Y[:, 1]]
    fitted = MultiTaskClassifier().fit(X, y)
    assert np.isclose(scorer("subset_accuracy")(fitted, X, y), fitted.score(X, y))
    wanted = theirs.roc_auc_score(y, fitted.predict_proba(X), multi_class="ovr")
    assert np.isclose(scorer("roc_auc")(LogisticRegression().fit(X, y), X, y), wanted, atol=0.05)
    # a fold without the positive class is still labelled as the estimator learned it
    first = y == "a"
    assert np.isclose(scorer("subset_accuracy")(fitted, X[first], y[first]), fitted.score(X[first], y[first]))
    X, Y = table(3)  # of several labels scikit-learn gives a list of probabilities
    fitted = MultiOutputClassifier(LogisticRegression()).fit(X, Y)
    lists = zip(Y.T, fitted.predict_proba(X), strict=True)
    wanted = np.mean([theirs.brier_score_loss(y, p[:, 1]) for y, p in lists])
    assert np.isclose(scorer("brier")(fitted, X, Y), -wanted, rtol=1e-12)


@for_each("name, function", NUMBERS.items())
def test_numbers(name, function):
    X, _ = table(4)
    y, direction = np.random.default_rng(4).normal(size=(80, 2)) + X[:, :2], MEASURES[name].direction
    gaps = y.copy()
    gaps[:10, 0] = np.nan
    fitted = MultiTaskRegressor(lam=0.1).fit(X, gaps)
    P = fitted.predict(X)
    wanted = np.mean([function(y[10:, 0], P[10:, 0]), function(y[:, 1], P[:, 1])]) * direction
    assert np.isclose(scorer(name)(fitted, X, gaps), wanted, rtol=1e-10)
    assert np.isfinite(scorer(name)(Ridge().fit(X, y[:, 0]), X, y[:, 0]))


def test_tasks_without_a_number_are_left_out_with_a_warning():
    X, Y = table(5)
    fitted = MultiTaskClassifier().fit(X, Y)
    rows = Y[:, 1] == 0
    with pytest.warns(OneClassWarning, match=r"scorer\('roc_auc'\): 1 of 3 tasks left out: '1'"):
        value = scorer("roc_auc")(fitted, X[rows], Y[rows])
    by_task = scorer("roc_auc").score(fitted, X[rows], Y[rows]).by_task
    assert np.isnan(by_task[1]) and np.isclose(value, np.mean(by_task[[0, 2]]))
    gone = np.where(np.arange(3) == 2, np.nan, Y.astype(float))  # a column without a label
    with pytest.warns(OneClassWarning, match="'2'"):
        assert np.isfinite(scorer("accuracy")(fitted, X, gone))
    Y[:, 0] = 0
    with pytest.warns(OneClassWarning):
        fitted = MultiTaskClassifier(one_class="skip").fit(X, Y)
    with pytest.warns(OneClassWarning, match="1 of 3 tasks left out: '0'"):
        assert np.isfinite(scorer("brier")(fitted, X, Y))


def test_in_a_grid_search_over_folds_with_gaps():
    X, Y = table(7)
    gaps = np.where(np.random.default_rng(7).random(Y.shape) < 0.2, np.nan, Y)
    scoring = {"ap": scorer("average_precision"), "ll": scorer("log_loss")}
    options = {"cv": MultiTaskKFold(3), "error_score": "raise"}
    search = GridSearchCV(MultiTaskClassifier(), {"lam": [0.1, 1e3]}, scoring=scoring, refit="ll", **options)
    assert search.fit(X, gaps).best_params_ == {"lam": 0.1}
    assert (search.cv_results_["mean_test_ll"] < 0).all() and (search.cv_results_["mean_test_ap"] > 0).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = cross_val_score(MultiTaskClassifier(), X, gaps, scoring=scorer("f1_micro"), **options)
    assert found.min() > 0.5


def test_sample_weights_and_pickles():
    X, Y = table(8)
    fitted = MultiTaskClassifier().fit(X, Y)
    times = np.random.default_rng(8).integers(1, 4, len(Y))
    one = pickle.loads(pickle.dumps(scorer("accuracy")))
    repeated = one(fitted, np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0))
    assert np.isclose(one(fitted, X, Y, sample_weight=times), repeated, rtol=1e-12)


def test_mistakes_are_named():
    X, Y = table(9)
    with pytest.raises(ModelError, match="write 'roc_auc'"):
        scorer("AUC")
    with pytest.raises(ModelError, match=r"^scorer\('jaccard'\): scikit-learn's scorer does not.*as 'f1' or"):
        scorer("jaccard")(MultiTaskClassifier().fit(X, words := np.where(Y > 0, "yes", "no")), X, words)
    said = r"scorer\('brier'\): LinearSVC has no predict_proba; write a measure of labels"
    with pytest.raises(DataError, match=said):
        scorer("brier")(LinearSVC().fit(X, Y[:, 0]), X, Y[:, 0])


@pytest.mark.parametrize("ask", [
    lambda fitted, X, Y: scorer("f1")(fitted, X, Y),
    lambda fitted, X, Y: MultiTaskClassifierCV(values=[1.0], cv=2, scoring="f1").fit(X, Y.loc[X.index]).score(X, Y),
    lambda fitted, X, Y: fitted.report("fit.html", X, Y, bootstrap=0),
    lambda fitted, X, Y: report(make_pipeline(FunctionTransformer(), fitted), "fit.html", X, Y, bootstrap=0),
], ids=["scorer", "score by a name", "report", "report of a pipeline"])  # fmt: skip
def test_rows_in_another_order_are_not_scored(ask, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, Y = map(pd.DataFrame, table(12))
    fitted = MultiTaskClassifier().fit(X.to_numpy(), Y)
    with pytest.raises(DataError, match=r"in another order.*write y\.loc\[X\.index\]"):
        ask(fitted, X, Y.sample(frac=1, random_state=0))


@pytest.mark.slow
@for_each(
    "name, kind, m",
    pairwise_cases(
        ["accuracy", "balanced_accuracy", "neg_log_loss", "neg_brier_score", "f1_weighted", "f1"],
        [str, object, "category"],
        [2, 3],
    ),
)
def test_a_vector_of_words_is_scored_as_one_of_numbers(name, kind, m):
    X = np.random.default_rng(13).normal(size=(90, 3))
    numbers = pd.Series(np.digitize(X @ [1.0, 0.5, 0.0], [-0.5, 0.5] if m == 3 else [0.3]))
    words = numbers.astype(object) if kind is object else numbers.map(dict(enumerate("abc"))).astype(kind)
    found = [
        MultiTaskClassifierCV(values=[1.0], cv=3, scoring=name).fit(X, y).score(X, y)
        for y in (numbers, words)
    ]
    assert np.isclose(*found, rtol=1e-12)


def test_a_measure_of_one_label_is_not_taken_of_a_table():
    X, Y = table(14)
    with pytest.raises(ModelError, match=r"values do not sum to one.*write a measure of tables"):
        MultiTaskClassifierCV(values=[1.0], cv=2, scoring="d2_log_loss_score").fit(X, Y)


@for_each("beside", [False, True])
def test_rows_of_one_long_table_are_scored_by_their_tasks(beside):
    X, Y = table(10)
    ids = np.repeat([3.0, 1.0, 2.0], [40, 25, 15])
    given = {"groups": ids} if beside else {}
    inputs = X if beside else np.column_stack([X, ids])
    for make, y, name, function in (
        (GroupedMultiTaskClassifier, Y[:, 0], "average_precision", theirs.average_precision_score),
        (GroupedMultiTaskRegressor, X[:, 0] + Y[:, 1], "nmse",
         lambda a, f: np.mean((a - f) ** 2) / np.var(a)),
    ):  # fmt: skip
        fitted = make(**({} if beside else {"task": 4})).fit(inputs, y, **given)
        f = fitted.decision_function(inputs, **given) if name != "nmse" else fitted.predict(inputs, **given)
        wanted = [function(y[ids == one], f[ids == one]) for one in (3.0, 1.0, 2.0)]
        assert np.allclose(scorer(name).score(fitted, inputs, y, **given).by_task, wanted, rtol=1e-10)
        if not beside:
            mean = np.mean(wanted) * MEASURES[name].direction
            assert np.isclose(scorer(name)(fitted, inputs, y), mean, rtol=1e-10)


@pytest.mark.slow
@for_each("m", [2, 3])
def test_labels_in_words_are_known_through_pipelines(m):
    """Labels in words are known through pipelines and searches; rows whose first label is "no" alone too."""
    X, Y = table(11, m=m)
    words, never = np.where(Y == 1, "yes", "no"), Y[:, 0] == 0
    plain = MultiTaskClassifier().fit(X, Y)
    pipe = make_pipeline(FunctionTransformer(), MultiTaskClassifier()).fit(X, words)
    search = GridSearchCV(clone(pipe), {"multitaskclassifier__lam": [1.0]}, cv=MultiTaskKFold(3)).fit(
        X, words
    )
    for name in ("roc_auc", "f1_micro", "log_loss", "subset_accuracy"):
        wanted = scorer(name)(plain, X, Y)
        assert np.isclose(scorer(name)(pipe, X, words), wanted, rtol=1e-6)
        assert np.isclose(scorer(name)(search, X, words), wanted, rtol=1e-6)
    found = scorer("accuracy").score(pipe, X[never], words[never])
    assert found == scorer("accuracy").score(plain, X[never], Y[never])


def test_a_measure_that_is_not_defined_in_folds_says_so_once():
    X = np.random.default_rng(0).normal(size=(60, 3))
    labels = (X[:, :2] > 0.9).astype(int)  # most rows have none, so that their F-score is 0 / 0
    rare = np.column_stack([labels, np.arange(60) < 2])
    for scoring, y, kind, said in (("f1_samples", labels, UndefinedMetricWarning, "F-score is ill-defined"), ("roc_auc", rare, OneClassWarning, ".*'2'")):  # fmt: skip
        with pytest.warns(kind, match=f"MultiTaskClassifierCV, in folds: {said}") as told:
            MultiTaskClassifierCV(scoring=scoring, n_values=4, cv=3).fit(X, y)
        assert len([one for one in told if issubclass(one.category, kind)]) == 1
