"""Thresholds and probabilities that are learned on rows that the weights were not fitted on."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import _SigmoidCalibration
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import f1_score

import mtldsl as mtl
from mtldsl.estimators import KernelMultiTaskClassifier, MultiTaskClassifier, OneClassWarning
from mtldsl.estimators.calibration import cuts_of_scores, out_of_fold
from mtldsl.solution.thresholds import best_threshold
from tests.loops import for_each

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
    z, signs, *_ = out_of_fold(plain, X, 2.0 * Y - 1.0, None, 4)
    for i in range(3):
        expected = best_threshold(z[:, i], signs[:, i], mtl.metrics.FScore())
        assert tuned.thresholds_[i] == expected != 0.0
    scores = plain.fit(X, Y).decision_function(X)
    np.testing.assert_array_equal(tuned.decision_function(X), scores - tuned.thresholds_)
    np.testing.assert_array_equal(tuned.predict(X), scores >= tuned.thresholds_)
    np.testing.assert_array_equal(tuned.coef_, plain.coef_)  # the weights are those of all rows


def test_the_solution_predicts_with_the_estimators_thresholds():
    X, Y = rare()
    Y[:, 1] = 0  # a task of one class, which is not learned
    model = MultiTaskClassifier(lam=1.0, tune_thresholds=True, warm_start=True)
    with pytest.warns(OneClassWarning):
        fitted = model.fit(X, Y)
    solution = fitted.solution_
    np.testing.assert_array_equal(solution.thresholds, fitted.thresholds_[[0, 2]])
    assert solution.thresholds.all()
    np.testing.assert_array_equal(solution.predict(X) > 0, fitted.predict(X)[:, [0, 2]])
    tasks = mtl.Tasks.shared(X, 2.0 * Y[:, [0, 2]] - 1.0)
    expected = [f1_score(Y[:, i], fitted.predict(X)[:, i]) for i in (0, 2)]
    np.testing.assert_allclose(solution.scores(tasks, "f1"), expected)
    with pytest.warns(OneClassWarning):  # the next fit starts there, with thresholds of its own or none
        assert clone(model).fit(X, Y).solution_.thresholds.tolist() == solution.thresholds.tolist()
        assert fitted.set_params(tune_thresholds=None).fit(X, Y).solution_.thresholds is None


def test_kernels_do_not_apply_thresholds_twice():
    X, Y = rare(150)
    options = {"tune_thresholds": mtl.metrics.FScore(beta=2), "inner_folds": 3, "tol": 1e-3}
    fitted = KernelMultiTaskClassifier(C=1.0, **options).fit(X, Y)
    z = fitted.solution_.decision_function(X)
    np.testing.assert_array_equal(fitted.decision_function(X), z - fitted.thresholds_)
    np.testing.assert_array_equal(fitted.solution_.predict(X) > 0, fitted.predict(X))


@for_each("kind", ["sigmoid", "isotonic"])
@for_each("tuned", [True, None])
def test_the_solution_predicts_the_labels_of_log_odds(kind, tuned):
    X, Y = rare(200)
    model = MultiTaskClassifier(lam=1.0, tune_thresholds=tuned, calibration=kind, inner_folds=3)
    fitted = model.fit(X, Y)
    assert (fitted.thresholds_ is None) == (tuned is None)
    np.testing.assert_array_equal(fitted.solution_.predict(X) > 0, fitted.predict(X))
    assert (fitted.predict(X) != (fitted.solution_.decision_function(X) >= 0)).any()


def test_a_probability_that_falls_with_its_score_has_no_cut():
    assert cuts_of_scores([np.array([-1.0, 0.5]), None], None) is None
    never, always = np.array([[-1.0, 1.0], [0.1, 0.3]]), np.array([[-1.0, 1.0], [0.6, 0.9]])
    np.testing.assert_array_equal(cuts_of_scores([never, always], None), [np.inf, -np.inf])


def test_every_row_is_scored_by_weights_that_did_not_see_it():
    """Labels of pure noise: weights that had seen a row would rank it right."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 40)), rng.integers(0, 2, 60)
    signs = (2.0 * y - 1.0)[:, None]
    held = out_of_fold(MultiTaskClassifier(lam=1e-3, tol=1e-3), X, signs, None, 5)
    seen = MultiTaskClassifier(lam=1e-3, tol=1e-3).fit(X, y).decision_function(X)
    assert np.mean((seen > 0) == y) == 1.0
    assert np.mean((held.z > 0) == (held.signs > 0)) < 0.7


@pytest.mark.slow
@for_each("kind", ["sigmoid", "isotonic"])
def test_probabilities_are_scikit_learns_of_the_same_scores(kind):
    """Fitted to Platt's targets: what isotonic regression makes of 0 and 1 is then between them."""
    X, Y = rare()
    fitted = MultiTaskClassifier(HINGE, lam=1.0, calibration=kind).fit(X, Y[:, 0])
    plain = MultiTaskClassifier(HINGE, lam=1.0)
    z, signs, *_ = out_of_fold(plain, X, 2.0 * Y[:, :1] - 1.0, None, 5)
    z, positive, new = z[:, 0], signs[:, 0] > 0, plain.fit(X, Y[:, 0]).decision_function(X)
    high, low = (positive.sum() + 1) / (positive.sum() + 2), 1 / ((~positive).sum() + 2)
    if kind == "isotonic":
        theirs = IsotonicRegression(out_of_bounds="clip").fit(z, np.where(positive, high, low)).predict(new)
        assert (theirs.min(), theirs.max()) == pytest.approx((low, high), rel=1e-12)  # never 0 or 1
    else:
        theirs = _SigmoidCalibration().fit(z, positive.astype(float)).predict(new)  # stops at 1e-4
    allowed = 1e-12 if kind == "isotonic" else 1e-4
    np.testing.assert_allclose(fitted.predict_proba(X)[:, 1], theirs, atol=allowed)


@pytest.mark.slow
@for_each("kind", ["sigmoid", "isotonic"])
@for_each("several", [False, True])
def test_what_is_predicted_is_what_is_more_probable_than_not(kind, several):
    """As CalibratedClassifierCV predicts; the score is the log-odds, 0 at one half."""
    X, Y = rare()
    noise = np.random.default_rng(0).normal(size=len(X))
    y = np.digitize(X[:, 0] + noise, [-0.7, 0.7]) if several else Y[:, 0]
    fitted = MultiTaskClassifier(HINGE, lam=1.0, calibration=kind).fit(X, y)
    P, z = fitted.predict_proba(X), fitted.decision_function(X)
    np.testing.assert_array_equal(fitted.predict(X), np.argmax(P, axis=1))
    raw = MultiTaskClassifier(HINGE, lam=1.0).fit(X, y)
    assert (fitted.predict(X) != raw.predict(X)).any()  # which is not the sign of the hinge's score
    if not several:
        np.testing.assert_allclose(z, np.log(P[:, 1] / P[:, 0]), rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(fitted.predict(X), z > 0)
        table = MultiTaskClassifier(HINGE, lam=1.0, calibration=kind).fit(X, Y)
        np.testing.assert_array_equal(table.predict(X), table.predict_proba(X) > 0.5)
        np.testing.assert_array_equal(table.predict(X), table.decision_function(X) > 0.0)


@pytest.mark.slow
def test_thresholds_beside_probabilities_are_on_their_log_odds():
    X, Y = rare()
    fitted = MultiTaskClassifier(HINGE, lam=1.0, calibration="sigmoid", tune_thresholds=True).fit(X, Y)
    P = fitted.predict_proba(X)
    odds = np.log(P / (1 - P)) - fitted.thresholds_
    np.testing.assert_allclose(fitted.decision_function(X), odds, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(fitted.predict(X), fitted.decision_function(X) >= 0.0)
    alone = MultiTaskClassifier(HINGE, lam=1.0, tune_thresholds=True).fit(X, Y)
    scores = alone.decision_function(X)
    learned = np.ptp(scores, axis=0) > 1e-3  # one label is too rare: its weights are zero
    assert learned.sum() == 2
    assert (np.corrcoef(P[:, learned].T, scores[:, learned].T)[range(2), range(2, 4)] > 0).all()
    np.testing.assert_array_equal(fitted.predict(X)[:, learned], alone.predict(X)[:, learned])


def test_class_weights_count_for_thresholds_and_probabilities():
    """{class: weight} as that class's rows so often; "balanced" is for the fit alone."""
    X, Y = rare()
    options = {
        "lam": 1.0, "tune_thresholds": mtl.metrics.ErrorRate(), "calibration": "isotonic", "tol": 1e-10,
    }  # fmt: skip
    stated = MultiTaskClassifier(class_weight={1: 5.0}, **options).fit(X, Y[:, 0])
    weighed = MultiTaskClassifier(**options).fit(X, Y[:, 0], 1.0 + 4.0 * Y[:, 0])
    np.testing.assert_array_equal(stated.thresholds_, weighed.thresholds_)
    np.testing.assert_allclose(stated.predict_proba(X), weighed.predict_proba(X), rtol=1e-9)
    balanced = MultiTaskClassifier(class_weight="balanced", **options).fit(X, Y[:, 0])
    assert balanced.predict_proba(X)[:, 1].mean() == pytest.approx(Y[:, 0].mean(), abs=0.02)
    assert stated.predict_proba(X)[:, 1].mean() > 2 * Y[:, 0].mean()


def test_predict_proba_is_there_only_where_it_means_something():
    assert hasattr(MultiTaskClassifier(), "predict_proba")
    assert hasattr(MultiTaskClassifier(HINGE, lam=1.0, calibration="sigmoid"), "predict_proba")
    assert not hasattr(MultiTaskClassifier(HINGE, lam=1.0), "predict_proba")
    with pytest.raises(AttributeError) as error:
        MultiTaskClassifier(HINGE, lam=1.0).predict_proba  # noqa: B018
    assert "calibration='sigmoid'" in str(error.value)


@for_each(
    ("arguments", "says"),
    [
        ({"tune_thresholds": "f1"}, "a metric such as mtl.metrics.FScore"),
        ({"calibration": "platt"}, "'sigmoid' or 'isotonic'"),
        ({"calibration": "sigmoid", "inner_folds": 1}, "at least 2"),
        ({"tune_thresholds": True}, "highest score"),
    ],
)
def test_what_cannot_be_tuned_is_said(arguments, says):
    X, Y = rare(60)
    with pytest.raises(ValueError, match=says):
        MultiTaskClassifier(**arguments).fit(X, np.arange(60) % 3 if says == "highest score" else Y)


def repeated(seed=0):
    """(X, y, weights) and the same rows as often as they weigh, in another order."""
    rng = np.random.default_rng(seed)
    X, Y = rare(150, seed)
    weights = rng.integers(0, 4, len(X))
    rows = rng.permutation(np.repeat(np.arange(len(X)), weights))
    return (X, Y, weights.astype(float)), (X[rows], Y[rows])


@pytest.mark.slow
@for_each("kind", [None, "sigmoid", "isotonic"])
def test_a_weight_is_a_number_of_rows(kind):
    (X, Y, weights), (X2, Y2) = repeated()
    model = MultiTaskClassifier(lam=1.0, tune_thresholds=True, calibration=kind, inner_folds=3, tol=1e-10)
    weighed, listed = clone(model).fit(X, Y, weights), clone(model).fit(X2, Y2)
    assert weighed.thresholds_.all()
    np.testing.assert_array_equal(weighed.thresholds_, listed.thresholds_)
    np.testing.assert_allclose(weighed.predict_proba(X), listed.predict_proba(X), rtol=1e-6, atol=1e-8)
    unweighed = clone(model).fit(X, Y)
    assert not np.allclose(weighed.thresholds_, unweighed.thresholds_)


@pytest.mark.slow
def test_thresholds_with_a_gram_matrix_are_those_with_its_kernel():
    X, Y = rare(80)
    gram = X @ X.T
    plain = {"C": 0.1, "tune_thresholds": True, "calibration": "isotonic", "inner_folds": 3, "tol": 1e-8}
    given = KernelMultiTaskClassifier(kernels="precomputed", **plain).fit(gram, Y)
    assert given.thresholds_.shape == (3,) and given.predict(gram[:5]).shape == (5, 3)
    bare = clone(given).set_params(tune_thresholds=None, calibration=None)
    held = out_of_fold(bare, gram, 2.0 * Y - 1.0, None, 3)
    assert len(held.z) == 80 and np.isfinite(held.z).all()


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
        tuned = MultiTaskClassifier(tune_thresholds=True, inner_folds=3, class_weight="balanced")
        tuned.fit(X, table)
    assert tuned.thresholds_[:2].all() and tuned.thresholds_[2] == 0.0
