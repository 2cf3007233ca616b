"""Cross-validated estimators against the same folds done one by one, and their rules of choice."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

import mtldsl as mtl
from mtldsl.estimators import (
    GroupedMultiTaskClassifierCV,
    GroupedMultiTaskRegressor,
    GroupedMultiTaskRegressorCV,
    MultiTaskClassifier,
    MultiTaskClassifierCV,
    MultiTaskKFold,
    MultiTaskRegressor,
    MultiTaskRegressorCV,
    scorer,
)
from mtldsl.problems.problem import Problem
from mtldsl.utils import interrupts
from tests.estimators.cases import regression, rows_of_tasks
from tests.loops import for_each

VALUES = [8.0, 2.0, 0.5]


def numbers(n=60, d=6, m=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    W = rng.normal(size=(d, m)) * (np.arange(d) < 2)[:, None]
    return X, X @ W + 0.5 * rng.normal(size=(n, m))


def labels(n=80, seed=1):
    X, Z = numbers(n, seed=seed)
    return X, (Z > 0.4).astype(int)


@pytest.mark.slow
@for_each(
    ("chooser", "plain", "data", "cv", "folds", "scoring"),
    [
        (MultiTaskRegressorCV, MultiTaskRegressor, numbers, KFold(4), KFold(4), None),
        (MultiTaskClassifierCV, MultiTaskClassifier, labels, 3, MultiTaskKFold(3, random_state=0), None),
        (MultiTaskClassifierCV, MultiTaskClassifier, labels, 3, MultiTaskKFold(3), "f1_macro"),
    ],
)
def test_every_score_is_that_of_a_grid_search_on_the_same_folds(chooser, plain, data, cv, folds, scoring):
    """A whole number of folds is that of the splitter."""
    X, y = data()
    one = chooser(values=VALUES, cv=cv, scoring=scoring, tol=1e-8).fit(X, y)
    many = GridSearchCV(plain(tol=1e-8), {"lam": VALUES}, cv=folds, scoring=scoring).fit(X, y)
    scores, expected = (each.cv_results_["mean_test_score"] for each in (one, many))
    np.testing.assert_allclose(scores, expected, atol=1e-4)
    assert one.best_params_ == many.best_params_
    np.testing.assert_allclose(one.coef_, many.best_estimator_.coef_, atol=1e-3)
    assert one.solution_.is_optimal and one.certificate_ is not None


def test_the_grid_goes_from_zero_weights_to_weak_regularization():
    X, y = numbers()
    falling = MultiTaskRegressorCV(n_values=5, eps=1e-2).fit(X, y)
    np.testing.assert_allclose(falling.values_ / falling.values_[0], np.geomspace(1, 1e-2, 5))
    assert not MultiTaskRegressor(lam=float(falling.values_[0]) * 1.001).fit(X, y).coef_.any()
    assert MultiTaskRegressor(lam=float(falling.values_[0]) * 0.98).fit(X, y).coef_.any()
    model = "C * squared_loss(W, tasks) + l21_norm(W)"
    rising = MultiTaskRegressorCV(model, parameter="C", n_values=5, eps=1e-2).fit(X, y)
    np.testing.assert_allclose(rising.values_, 1.0 / falling.values_, rtol=1e-6)


@pytest.mark.slow
def test_one_standard_error_takes_the_strongest_within_it():
    X, y = numbers(n=40)
    best = MultiTaskRegressorCV(n_values=12).fit(X, y)
    modest = MultiTaskRegressorCV(n_values=12, one_standard_error=True).fit(X, y)
    results = best.cv_results_
    bar = results["mean_test_score"].max() - results["standard_error"][best.best_index_]
    within = np.flatnonzero(results["mean_test_score"] >= bar)
    assert modest.best_index_ == within[0] < best.best_index_
    scores = np.stack([results[f"split{k}_test_score"] for k in range(5)])
    np.testing.assert_allclose(results["standard_error"], scores.std(axis=0, ddof=1) / np.sqrt(5))


@pytest.mark.slow
@for_each("penalty", ["ridge", "mean_regularizer", "mean_regularizer + ridge", "l1_norm + ridge", "log_rank"])
def test_every_penalty_has_a_grid(penalty):
    """The strongest value of the grid is too strong, and the weakest too weak: the choice lies between them."""
    X, y = numbers(40, d=8, seed=3)
    fitted = MultiTaskRegressorCV(penalty=penalty, n_values=12, cv=4).fit(
        X, y + np.random.default_rng(0).normal(size=y.shape)
    )
    scores = fitted.cv_results_["mean_test_score"]
    assert scores[0] < scores.max() - 0.01 and fitted.best_score_ >= scores[-1]


NAMES = ["f1", "roc_auc", "average_precision", "accuracy", "precision", "recall", "neg_log_loss"]


@pytest.mark.slow
@for_each("name", NAMES)
def test_a_score_by_name_with_gaps_is_that_of_scorer(name):
    X, y = labels(60)
    y = np.where(np.random.default_rng(0).random(y.shape) < 0.1, np.nan, y)
    given = {"values": [8.0, 1.0], "cv": 2}
    by_name = MultiTaskClassifierCV(scoring=name, **given).fit(X, y)
    by_scorer = MultiTaskClassifierCV(scoring=scorer(name.replace("neg_", "")), **given).fit(X, y)
    assert by_name.best_score_ == by_scorer.best_score_


@pytest.mark.slow
@for_each("name", ["f1", "roc_auc", "average_precision", "neg_log_loss", "jaccard"])
def test_a_table_of_one_column_is_scored_as_its_vector(name):
    """By scikit-learn's tools too, which read `classes_`."""
    X, y = labels(60)
    one, vector = (
        MultiTaskClassifierCV(scoring=name, values=[8.0, 1.0], cv=KFold(2)).fit(X, each).best_score_
        for each in (y[:, :1], y[:, 0])
    )
    assert one == pytest.approx(vector)
    one, vector = (
        cross_val_score(MultiTaskClassifier(), X, each, scoring=name, cv=KFold(2))
        for each in (y[:, :1], y[:, 0])
    )
    np.testing.assert_allclose(one, vector)


@pytest.mark.filterwarnings("ignore:The groups parameter is ignored")
def test_groups_are_tasks_in_every_fold():
    X, _ = numbers(90)
    school = np.tile(["a", "b", "c"], 30)
    y = X[:, 0] * (1 + (school == "b")) + 0.1 * X[:, 1]
    folds = KFold(3)
    chosen = GroupedMultiTaskRegressorCV(values=VALUES, cv=folds, tol=1e-8).fit(X, y, groups=school)
    by_hand = []
    for train, test in folds.split(X):
        fitted = GroupedMultiTaskRegressor(lam=2.0, tol=1e-8).fit(X[train], y[train], groups=school[train])
        by_hand.append(fitted.score(X[test], y[test], groups=school[test]))
    assert chosen.cv_results_["mean_test_score"][1] == pytest.approx(np.mean(by_hand), abs=1e-5)
    sides = GroupedMultiTaskClassifierCV(n_values=4, cv=3).fit(X, y > 0, groups=school)
    assert sides.score(X, y > 0, groups=school) > 0.9


@for_each(("arguments", "says"), [
    ({"parameter": "rho"}, "write one of 'lam'"),
    ({"values": [1.0, -2.0]}, "write numbers >= 0"),
    ({"values": []}, "write numbers >= 0"),
    ({"n_values": 0}, "whole number >= 1"),
    ({"eps": 2.0}, "between 0 and 1"),
    ({"cv": 1}, "number of folds >= 2"),
    ({"cv": 1000}, "n_samples = 60"),
    ({"scoring": "zebra"}, "or a name of scikit-learn's scorers"),
    ({"rho": 1.0}, "no parameter 'rho'"),
    ({"model": "square_root_loss(W, tasks) + mu * log_rank(W, eps=e)", "mu": 1.0, "parameter": "e", "values": [1.0]}, "GridSearchCV"),
])  # fmt: skip
def test_what_cannot_be_chosen_is_said(arguments, says):
    with pytest.raises(ValueError, match="MultiTaskRegressorCV") as error:
        MultiTaskRegressorCV(**arguments).fit(*numbers())
    assert says in str(error.value)


def test_a_fold_without_a_class_does_not_end_the_search():
    X, y = labels()
    y[:, 2] = 0
    y[3, 2] = 1  # one positive: some training fold has none
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = MultiTaskClassifierCV(values=VALUES, cv=3).fit(X, y)
    assert np.isfinite(fitted.cv_results_["mean_test_score"]).all()
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="both classes"):
        MultiTaskClassifierCV().fit(X, np.zeros(len(X)))


def test_ids_of_text_and_numbers_are_dealt_over_folds():
    """They have no order: sorting them was a TypeError."""
    X, y, ids, _ = rows_of_tasks()
    mixed = np.array(
        [k if k else "none" for k in np.unique(ids, return_inverse=True)[1].tolist()], dtype=object
    )
    fitted = GroupedMultiTaskRegressorCV(values=[1.0], cv=2).fit(X, y, groups=mixed)
    assert set(fitted.tasks_.tolist()) == {"none", 1, 2}


@for_each("place", ["a fold", "a fold with a scorer"])
def test_an_interrupt_leaves_no_choice_among_missing_scores(monkeypatch, place):
    walked, begun, asked = Problem.path, [], []

    def path(self, parameter, values, **options):
        begun.append(parameter)
        for solution in walked(self, parameter, values, **options):
            yield solution
            return

    def pending():
        asked.append(1)
        return len(asked) == 2

    X, Y = numbers()
    Y[:, 1] = np.random.default_rng(3).normal(size=len(Y))  # noise: its best value is another one
    if place == "a fold":
        monkeypatch.setattr(interrupts, "is_signal_pending", pending)
    else:
        monkeypatch.setattr(Problem, "path", path)
    chosen = {"scoring": "r2"} if place == "a fold with a scorer" else {}
    with pytest.raises(KeyboardInterrupt):
        MultiTaskRegressorCV(values=VALUES, cv=2, **chosen).fit(X, Y)
    assert (len(asked), len(begun)) == ((2, 0) if place == "a fold" else (0, 1))


class Stopping:
    """A scorer that is interrupted after so many scores."""

    def __init__(self, after):
        self.left = after

    def __call__(self, estimator, X, y):
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        return estimator.score(X, y)


@pytest.mark.slow
@for_each("kind", [MultiTaskClassifierCV, MultiTaskRegressorCV])
def test_an_interrupted_choice_hands_over_complete_folds(kind):
    X, Y = labels()
    whole = kind(values=VALUES, cv=4, random_state=0, scoring=Stopping(np.inf)).fit(X, Y)
    estimator = kind(values=VALUES, cv=4, random_state=0, scoring=Stopping(7))  # in the third fold
    with pytest.raises(mtl.Interrupted, match="2 of 4 folds were complete; it is not fitted") as stop:
        estimator.fit(X, Y)
    found, folds = stop.value.completed, ("split0_test_score", "split1_test_score")
    assert "split2_test_score" not in found and not hasattr(estimator, "cv_results_")
    for fold in folds:
        np.testing.assert_array_equal(found[fold], whole.cv_results_[fold])
    np.testing.assert_allclose(found["mean_test_score"], np.mean([found[fold] for fold in folds], axis=0))
    np.testing.assert_array_equal(found["param_lam"], VALUES)
    with pytest.raises(mtl.Interrupted, match="0 of 4") as stop:
        kind(values=VALUES, cv=4, scoring=Stopping(1)).fit(X, Y)
    assert stop.value.completed is None


@pytest.mark.slow
def test_the_score_is_by_scoring_as_folds_are():
    (X, Y), (XL, YL), (rows, y, ids, words) = numbers(), labels(), rows_of_tasks()
    two = {"values": [1.0], "cv": 2}
    mse = MultiTaskRegressorCV(scoring="neg_mean_squared_error", **two).fit(X, Y)
    assert mse.score(X, Y) == scorer("mse")(mse, X, Y) < 0
    weights = np.linspace(0.1, 1.0, len(X))
    assert mse.score(X, Y, weights) == scorer("mse")(mse, X, Y, sample_weight=weights)
    f1 = MultiTaskClassifierCV(scoring="f1", **two).fit(XL, YL)
    assert f1.score(XL, YL) == scorer("f1")(f1, XL, YL)
    mae = GroupedMultiTaskRegressorCV(scoring="mae", **two).fit(rows, y, groups=ids)
    assert mae.score(rows, y, groups=ids) == scorer("mae")(mae, rows, y, groups=ids)
    auc = GroupedMultiTaskClassifierCV(scoring="roc_auc", **two).fit(rows, words, groups=ids)
    assert auc.score(rows, words, ids) == scorer("roc_auc")(auc, rows, words, groups=ids)


def test_scoring_by_a_function_may_ask_for_the_own_score():
    X, Y = numbers()
    by, own = (MultiTaskRegressorCV(values=[1.0], cv=2, scoring=one).fit(X, Y) for one in (lambda e, X, y: e.score(X, y), None))  # fmt: skip
    assert by.score(X, Y) == own.score(X, Y) and by.best_score_ == own.best_score_


def test_folds_may_be_ranges_masks_and_an_index():
    X, Y = regression()
    n, first = len(X), np.arange(len(X)) < 30
    wanted = MultiTaskRegressorCV(values=[1.0], cv=[(np.arange(30, n), np.arange(30))]).fit(X, Y).best_score_
    for fold in ((range(30, n), range(30)), (~first, first), (pd.RangeIndex(30, n), list(range(30)))):
        assert MultiTaskRegressorCV(values=[1.0], cv=[fold]).fit(X, Y).best_score_ == wanted


def test_a_regret_chooses_among_all_values_with_a_proof():
    """The fits that a proof needs have the scores that the grid of the same values has."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    Y = X[:, :2] + rng.normal(size=(60, 2)) > 0
    proven = MultiTaskClassifierCV(penalty="ridge", values=[0.1, 100.0], regret=0.05, cv=3).fit(X, Y)
    same = MultiTaskClassifierCV(penalty="ridge", values=proven.values_, cv=3, tol=1e-8).fit(X, Y)
    assert (
        proven.proof_.value <= 0.05
        and proven.proof_.fits == 3 * len(proven.values_)
        and proven.proof_.between == (0.1, 100.0)
    )
    assert np.allclose(proven.cv_results_["mean_test_score"], same.cv_results_["mean_test_score"])
    assert proven.best_value_ == same.best_value_ == proven.solution_.parameters["lam"]
    errors = MultiTaskRegressorCV(penalty="ridge", values=[0.1, 100.0], regret=0.2, cv=3, scoring="mae").fit(
        X, X[:, :2] + 1.0
    )
    assert errors.best_score_ < 0 < errors.proof_.value <= 0.2


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"scoring": lambda estimator, X, y: 1.0}, "cannot be bounded"),
        ({"class_weight": "balanced"}, "count in learning and not in scores"),
        ({"regret": -1.0}, "a number above 0"),
    ],
)
def test_what_a_regret_is_not_proven_of_is_refused(options, says):
    X = np.random.default_rng(0).normal(size=(40, 3))
    with pytest.raises(mtl.errors.ModelError, match=says):
        MultiTaskClassifierCV(**({"penalty": "ridge", "regret": 0.1, "cv": 2} | options)).fit(
            X, X[:, :2] > 0.3
        )
