"""Estimators inside scikit-learn: clone, parameters of the model in searches, pipelines, routing of groups, columns, output."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mtldsl as mtl
from mtldsl.estimators import (
    GroupedMultiTaskClassifier,
    GroupedMultiTaskRegressor,
    MultiTaskClassifier,
    MultiTaskRegressor,
)
from tests.estimators.cases import labels, regression, rows_of_tasks

X, Y = regression()
XL, YL = labels()
THREE = KFold(3)


def lasso(W, tasks, lam=1.0, kind="l1"):
    return mtl.squared_loss(W, tasks) + lam * (mtl.l1_norm(W) if kind == "l1" else mtl.l21_norm(W))


def test_parameters_of_the_model_are_parameters():
    one = MultiTaskRegressor("Robust-MTL", rho1=2.0)
    assert one.get_params()["rho1"] == 2.0 == one.rho1 and one.get_params()["rho2"] is None
    assert MultiTaskRegressor().get_params()["lam"] == 1.0
    one.set_params(rho2=3.0)
    assert one.fit(X, Y).solution_.parameters == {"rho1": 2.0, "rho2": 3.0}
    assert "lam" not in one.get_params()
    assert MultiTaskRegressor(lasso, lam=0.3).get_params()["kind"] == "l1"
    assert repr(MultiTaskRegressor(lam=0.3)) == "MultiTaskRegressor(lam=0.3)"


def test_another_model_takes_the_defaults_of_the_old_one_along():
    searched = clone(MultiTaskRegressor())  # which writes lam=1.0 out
    assert searched.set_params(model="L21", rho=0.5).fit(X, Y).solution_.parameters == {"rho": 0.5}
    with pytest.raises(mtl.ModelError, match="no parameter 'lam'; its parameters: rho"):
        MultiTaskRegressor(lam=0.3).set_params(model="L21", rho=0.5).fit(X, Y)


def by_hand(values):
    """The mean score of every value over the folds."""
    models = [MultiTaskRegressor(lam=value) for value in values]
    return [np.mean([m.fit(X[a], Y[a]).score(X[b], Y[b]) for a, b in THREE.split(X)]) for m in models]


@pytest.mark.parametrize("n_jobs", [None, pytest.param(2, marks=pytest.mark.process)])
def test_a_grid_over_a_parameter_of_the_model(n_jobs):
    values = [0.1, 10.0, 100.0]
    search = GridSearchCV(MultiTaskRegressor(), {"lam": values}, cv=THREE, n_jobs=n_jobs).fit(X, Y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], by_hand(values), rtol=1e-9)
    assert search.best_params_ == {"lam": values[int(np.argmax(by_hand(values)))]}
    best = MultiTaskRegressor(**search.best_params_).fit(X, Y)
    np.testing.assert_array_equal(search.predict(X), best.predict(X))


@pytest.mark.slow
def test_a_grid_over_models():
    grid = [
        {"model": ["L21", "NN-MTL"], "rho": [0.1, 100.0]},
        {"model": ["Robust-MTL"], "rho1": [1.0], "rho2": [1.0]},
        {"model": [lasso], "kind": ["l1", "l21"]},
        {"penalty": ["l21_norm", "mean_regularizer"], "lam": [1.0]},
    ]
    search = GridSearchCV(MultiTaskRegressor(), grid, cv=THREE, error_score="raise").fit(X, Y)
    assert len(search.cv_results_["params"]) == 9 and np.isfinite(search.cv_results_["mean_test_score"]).all()
    worst = search.cv_results_["params"][int(np.argmin(search.cv_results_["mean_test_score"]))]
    assert worst["rho"] == 100.0


@pytest.mark.slow
def test_predictions_by_folds():
    P = cross_val_predict(MultiTaskClassifier(), XL, YL, method="predict_proba", cv=THREE)
    assert P.shape == YL.shape and ((P > 0) & (P < 1)).all()
    for method in ("predict", "decision_function", "predict_proba"):
        answers = cross_val_predict(MultiTaskClassifier(), XL, YL[:, 0], method=method, cv=THREE)
        assert len(answers) == len(YL)


def test_names_come_through_a_pipeline_whose_output_is_a_table():
    """`set_output` is of transformers; their columns are the estimator's `feature_names_in_`."""
    frame = pd.DataFrame(X, columns=list("abcdef"))
    whole = make_pipeline(StandardScaler(), MultiTaskRegressor()).set_output(transform="pandas").fit(frame, Y)
    assert whole[-1].feature_names_in_.tolist() == list("abcdef")
    assert list(whole[-1].solution_.feature_names) == list("abcdef")
    assert not hasattr(whole[-1], "get_feature_names_out")  # as scikit-learn's predictors


@pytest.fixture
def routed():
    with sklearn.config_context(enable_metadata_routing=True):
        yield rows_of_tasks(n=20)


def test_groups_are_handed_on_by_routing(routed):
    inputs, y, ids, words = routed
    plain = GroupedMultiTaskRegressor(lam=0.5)
    regressor = clone(plain).set_fit_request(groups=True).set_predict_request(groups=True)
    regressor.set_score_request(groups=True)
    scores = cross_val_score(regressor, inputs, y, params={"groups": ids}, cv=THREE, error_score="raise")
    own = []
    for train, test in THREE.split(inputs):
        fitted = clone(plain).fit(inputs[train], y[train], groups=ids[train])
        own.append(fitted.score(inputs[test], y[test], groups=ids[test]))
    np.testing.assert_allclose(scores, own, rtol=1e-12)

    search = GridSearchCV(regressor, {"lam": [0.5, 500.0]}, cv=THREE, error_score="raise")
    assert search.fit(inputs, y, groups=ids).best_params_ == {"lam": 0.5}
    assert search.best_estimator_.predict(inputs, groups=ids).shape == y.shape  # a search hands nothing on

    whole = make_pipeline(StandardScaler(), regressor).fit(inputs, y, groups=ids)
    scaled = StandardScaler().fit_transform(inputs)
    by_steps = clone(plain).fit(scaled, y, groups=ids)
    np.testing.assert_array_equal(whole[-1].coef_, by_steps.coef_)
    np.testing.assert_array_equal(whole.predict(inputs, groups=ids), by_steps.predict(scaled, groups=ids))

    classifier = GroupedMultiTaskClassifier(lam=0.5).set_fit_request(groups=True, sample_weight=True)
    classifier.set_predict_request(groups=True).set_score_request(groups=True, sample_weight=False)
    given = {"groups": ids, "sample_weight": np.ones(len(ids))}
    found = cross_validate(classifier, inputs, words, params=given, cv=THREE, error_score="raise")
    assert found["test_score"].min() > 0.5


def test_groups_keep_rows_together_while_a_column_is_the_task():
    inputs, y, ids, _ = rows_of_tasks()
    frame = pd.DataFrame(inputs, columns=list("abcd")).assign(school=ids)
    regressor = GroupedMultiTaskRegressor(task="school", unseen="mean", lam=0.5)
    scores = cross_val_score(regressor, frame, y, groups=ids, cv=GroupKFold(3), error_score="raise")
    assert np.isfinite(scores).all()  # schools that training did not have
    assert cross_val_score(regressor, frame, y, cv=THREE, error_score="raise").min() > scores.max()


def test_no_warning_is_raised_by_a_plain_fit():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GridSearchCV(MultiTaskClassifier(), {"lam": [0.1, 1.0]}, cv=THREE).fit(XL, YL).predict(XL)
        named = pd.DataFrame(XL, columns=list("abcdef"))
        fitted = MultiTaskClassifier(tune_thresholds=True, calibration="sigmoid").fit(named, YL)
        assert len(fitted.predict_proba(named)) > 0
