"""Thresholds and probabilities that are learned on rows that the weights were not fitted on."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss, f1_score

import mtldsl as mtl
from mtldsl.estimators import (
    KernelMultiTaskClassifier,
    MultiTaskClassifier,
    MultiTaskClassifierCV,
    OneClassWarning,
)
from mtldsl.estimators.inner_folds import out_of_fold
from mtldsl.solution.thresholds import best_threshold

HINGE = "hinge_loss(W, tasks) + lam * l21_norm(W)"


def rare(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    Z = X @ rng.normal(size=(5, 3)) + 1.5 * rng.normal(size=(n, 3)) - 3.5
    return X, (Z > 0).astype(int)


def test_thresholds_are_the_best_for_scores_of_rows_left_out():
    X, Y = rare()
    plain = MultiTaskClassifier(lam=1.0)
    tuned = clone(plain).set_params(tune_thresholds=True, inner_folds=4).fit(X, Y)
    z, signs, *_ = out_of_fold(plain, X, 2.0 * Y - 1.0, None, 4, 0)
    for i in range(3):
        expected = best_threshold(z[:, i], signs[:, i], mtl.FScore())
        assert tuned.thresholds_[i] == expected != 0.0
    np.testing.assert_array_equal(tuned.predict(X), tuned.decision_function(X) >= tuned.thresholds_)
    np.testing.assert_array_equal(tuned.coef_, plain.fit(X, Y).coef_)  # the weights are those of all rows


def test_thresholds_help_rare_labels_on_new_rows():
    X, Y = rare(2000)
    train, test = slice(0, 1000), slice(1000, None)
    plain = MultiTaskClassifier(lam=1.0).fit(X[train], Y[train])
    tuned = MultiTaskClassifier(lam=1.0, tune_thresholds=True).fit(X[train], Y[train])
    scores = [f1_score(Y[test], fitted.predict(X[test]), average="macro") for fitted in (plain, tuned)]
    assert scores[1] > scores[0] + 0.02


def test_every_row_is_scored_by_weights_that_did_not_see_it():
    """Labels of pure noise: weights that had seen a row would rank it right."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 40)), rng.integers(0, 2, 60)
    signs = (2.0 * y - 1.0)[:, None]
    held = out_of_fold(MultiTaskClassifier(lam=1e-3, tol=1e-3), X, signs, None, 5, 0)
    seen = MultiTaskClassifier(lam=1e-3, tol=1e-3).fit(X, y).decision_function(X)
    assert np.mean((seen > 0) == y) == 1.0
    assert np.mean((held.z > 0) == (held.signs > 0)) < 0.7


@pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])
def test_probabilities_of_a_hinge_are_calibrated(kind):
    X, Y = rare(2000)
    train, test = slice(0, 1000), slice(1000, None)
    fitted = MultiTaskClassifier(HINGE, lam=1.0, calibration=kind).fit(X[train], Y[train])
    P = fitted.predict_proba(X[test])
    assert P.shape == Y[test].shape and ((P >= 0) & (P <= 1)).all()
    for i in range(3):
        share = Y[train, i].mean()
        assert abs(P[:, i].mean() - Y[test, i].mean()) < 0.03
        assert brier_score_loss(Y[test, i], P[:, i]) < brier_score_loss(Y[test, i], np.full(1000, share))


def test_isotonic_probabilities_are_those_of_scikit_learn_on_the_same_scores():
    X, Y = rare()
    fitted = MultiTaskClassifier(HINGE, lam=1.0, calibration="isotonic").fit(X, Y[:, 0])
    z, signs, *_ = out_of_fold(MultiTaskClassifier(HINGE, lam=1.0), X, 2.0 * Y[:, :1] - 1.0, None, 5, 0)
    expected = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(z[:, 0], signs[:, 0] > 0)
    np.testing.assert_allclose(fitted.predict_proba(X)[:, 1], expected.predict(fitted.decision_function(X)))


def test_predict_proba_is_there_only_where_it_means_something():
    assert hasattr(MultiTaskClassifier(), "predict_proba")
    assert hasattr(MultiTaskClassifier(HINGE, lam=1.0, calibration="sigmoid"), "predict_proba")
    assert not hasattr(MultiTaskClassifier(HINGE, lam=1.0), "predict_proba")
    with pytest.raises(AttributeError) as error:
        MultiTaskClassifier(HINGE, lam=1.0).predict_proba  # noqa: B018
    assert "calibration='sigmoid'" in str(error.value.__cause__)


def test_kernels_and_chosen_values_are_tuned_alike():
    X, Y = rare(150)
    kernel = KernelMultiTaskClassifier(C=1.0, tune_thresholds=mtl.FScore(beta=2), inner_folds=3, tol=1e-3)
    assert kernel.fit(X, Y).thresholds_.shape == (3,)
    chosen = MultiTaskClassifierCV(n_values=4, cv=3, tune_thresholds=True, tol=1e-9).fit(X, Y)
    at_once = MultiTaskClassifier(lam=chosen.best_value_, tol=1e-9, tune_thresholds=True).fit(X, Y)
    np.testing.assert_allclose(chosen.thresholds_, at_once.thresholds_, atol=1e-4)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"tune_thresholds": "f1"}, "a metric such as mtl.FScore"),
        ({"calibration": "platt"}, "'sigmoid' or 'isotonic'"),
        ({"calibration": "sigmoid", "inner_folds": 1}, "at least 2"),
    ],
)
def test_unknown_kinds_are_said(arguments, says):
    with pytest.raises(ValueError, match=says):
        MultiTaskClassifier(**arguments).fit(*rare(60))


def test_thresholds_are_not_for_several_classes():
    X, _ = rare(60)
    with pytest.raises(ValueError, match="highest score"):
        MultiTaskClassifier(tune_thresholds=True).fit(X, np.arange(60) % 3)


def repeated(seed=0):
    """(X, y, weights) and the same rows as often as they weigh, in another order."""
    rng = np.random.default_rng(seed)
    X, Y = rare(150, seed)
    weights = rng.integers(0, 4, len(X))
    rows = rng.permutation(np.repeat(np.arange(len(X)), weights))
    return (X, Y, weights.astype(float)), (X[rows], Y[rows])


@pytest.mark.parametrize("kind", [None, "sigmoid", "isotonic"])
def test_a_weight_is_a_number_of_rows_for_thresholds_and_probabilities(kind):
    (X, Y, weights), (X2, Y2) = repeated()
    model = MultiTaskClassifier(lam=1.0, tune_thresholds=True, calibration=kind, inner_folds=3, tol=1e-10)
    weighed, listed = clone(model).fit(X, Y, weights), clone(model).fit(X2, Y2)
    assert weighed.thresholds_.all()
    np.testing.assert_array_equal(
        weighed.thresholds_, listed.thresholds_
    )  # on the same rows, in the same order
    np.testing.assert_allclose(weighed.predict_proba(X), listed.predict_proba(X), rtol=1e-6, atol=1e-8)
    unweighed = clone(model).fit(X, Y)
    assert not np.allclose(weighed.thresholds_, unweighed.thresholds_)


def test_a_weighted_threshold_is_that_of_the_rows_as_often_as_they_weigh():
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=60), np.where(rng.random(60) < 0.3, 1.0, -1.0)
    weights = rng.integers(1, 5, 60)
    rows = np.repeat(np.arange(60), weights)
    for metric in (mtl.FScore(), mtl.FScore(beta=2), mtl.ErrorRate()):
        found = best_threshold(z, y, metric, weights=weights)
        assert found == pytest.approx(best_threshold(z[rows], y[rows], metric), abs=1e-15)
        assert found == best_threshold(z, y, metric, weights=0.3 * weights)  # fractions are not rounded
    assert best_threshold(z, y, mtl.FScore(), weights=weights) != best_threshold(z, y, mtl.FScore())


def test_thresholds_with_a_gram_matrix_are_those_with_its_kernel():
    X, Y = rare(80)
    gram = X @ X.T
    plain = {"C": 0.1, "tune_thresholds": True, "calibration": "isotonic", "inner_folds": 3, "tol": 1e-8}
    named = KernelMultiTaskClassifier(kernels="linear", **plain).fit(X, Y)
    given = KernelMultiTaskClassifier(kernels="precomputed", **plain).fit(gram, Y)
    assert given.thresholds_.shape == (3,) and given.predict(gram[:5]).shape == (5, 3)
    held = [
        out_of_fold(
            clone(each).set_params(tune_thresholds=None, calibration=None), data, 2.0 * Y - 1.0, None, 3, 0
        )
        for each, data in ((named, X), (given, gram))
    ]
    assert all(len(each.z) == 80 and np.isfinite(each.z).all() for each in held)


def test_an_inner_fold_may_lack_a_class_or_a_label():
    """One of three classes has a single row, one of three columns of text a single label: the inner fold that tests it does not learn it."""
    X, _ = rare(60)
    y = np.array(["a", "b"])[(X[:, 0] > 0).astype(int)].astype(object)
    y[7] = "c"
    several = MultiTaskClassifier(calibration="isotonic", inner_folds=3, class_weight={"a": 2.0}).fit(X, y)
    assert several.predict_proba(X).shape == (60, 3) and several.classes_.tolist() == ["a", "b", "c"]
    table = np.stack([np.where(X[:, k] > 0, "hot", "cold") for k in range(3)], axis=1).astype(object)
    table[:, 2] = None
    table[7, 2] = "hot"
    with pytest.warns(OneClassWarning):
        tuned = MultiTaskClassifier(tune_thresholds=True, inner_folds=3, class_weight="balanced").fit(
            X, table
        )
    assert tuned.thresholds_[:2].all() and tuned.thresholds_[2] == 0.0
