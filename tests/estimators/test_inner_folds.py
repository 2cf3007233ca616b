"""Thresholds and probabilities that are learned on rows that the weights were not fitted on."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss, f1_score

import mtldsl as mtl
from mtldsl.estimators import KernelMultiTaskClassifier, MultiTaskClassifier, MultiTaskClassifierCV
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
    z = out_of_fold(plain, X, Y, None, 2.0 * Y - 1.0, 4, 0)
    for i in range(3):
        expected = best_threshold(z[:, i], 2.0 * Y[:, i] - 1.0, mtl.FScore())
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
    z = out_of_fold(MultiTaskClassifier(lam=1e-3, tol=1e-3), X, y, None, signs, 5, 0)
    seen = MultiTaskClassifier(lam=1e-3, tol=1e-3).fit(X, y).decision_function(X)
    assert np.mean((seen > 0) == y) == 1.0
    assert np.mean((z[:, 0] > 0) == y) < 0.7


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
    z = out_of_fold(MultiTaskClassifier(HINGE, lam=1.0), X, Y[:, 0], None, (2.0 * Y[:, :1] - 1.0), 5, 0)
    expected = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(z[:, 0], Y[:, 0])
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
