"""Losses of several classes that share a row: beside scikit-learn, with their proofs, predictions and refusals."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_score
from sklearn.svm import LinearSVC

import mtldsl as mtl
from mtldsl.data.labels import OneClassWarning
from mtldsl.estimators import MultiTaskClassifier
from tests.loops import for_each
from tests.pairs import pairwise_cases

X, CLASSES = load_wine(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
WORDS = [mtl.softmax_loss, mtl.crammer_singer_loss]
REGULARIZERS = [mtl.ridge, mtl.l1_norm, mtl.l21_norm, mtl.trace_norm]


def model(
    loss, regularizer, intercept=True, lam=1.0, rows: Any = slice(None, None, 3), weights=None, **options
):
    tasks = mtl.Tasks.from_classes(X[rows], CLASSES[rows], sample_weights=weights)
    W = mtl.Weights(tasks, intercept=intercept)
    return mtl.minimize(loss(W, tasks, **options) + mtl.Parameter(lam) * regularizer(W)), tasks


@pytest.mark.slow
@for_each("loss, regularizer, intercept", pairwise_cases(WORDS, REGULARIZERS, [False, True]))
def test_it_is_certified_and_agrees_with_the_reference(loss, regularizer, intercept):
    problem, _ = model(loss, regularizer, intercept)
    solution = problem.solve()
    assert solution.status == "optimal" and problem.cross_check(solution).agrees


def test_softmax_with_ridge_is_multinomial_logistic():
    problem, tasks = model(mtl.softmax_loss, mtl.ridge, rows=slice(None))
    ours = problem.solve(tol=1e-9)
    theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(X, CLASSES)
    form = problem.form()
    at = {"W": theirs.coef_.T, "W.intercept": theirs.intercept_[None, :]}
    assert form.value(at) == pytest.approx(ours.objective, rel=1e-8)
    np.testing.assert_allclose(ours.predict_proba(tasks.X), theirs.predict_proba(X), atol=1e-4)


def test_crammer_singer_beside_a_ridge_is_that_of_liblinear():
    problem, _ = model(mtl.crammer_singer_loss, mtl.ridge, intercept=False, rows=slice(None))
    ours = problem.solve(tol=1e-7)
    # where an answer is wrong the loss is the same in both, and C multiplies it
    theirs = LinearSVC(
        multi_class="crammer_singer", C=1.0, fit_intercept=False, tol=1e-8, max_iter=100_000
    ).fit(X, CLASSES)
    assert problem.form().value({"W": theirs.coef_.T}) == pytest.approx(ours.objective, rel=1e-5)


@pytest.mark.parametrize("loss", WORDS)
def test_weights_of_rows_equal_replication(loss):
    rows = np.arange(0, 178, 6)
    times = np.arange(len(rows)) % 3 + 1
    weighted, _ = model(loss, mtl.ridge, rows=rows, weights=times.astype(float))
    repeated, _ = model(loss, mtl.ridge, rows=np.repeat(rows, times))
    one, two = weighted.solve(tol=1e-8), repeated.solve(tol=1e-8)
    assert one.objective == pytest.approx(two.objective, rel=1e-6)


def test_every_row_is_of_the_class_with_the_highest_score(tmp_path):
    problem, tasks = model(mtl.softmax_loss, mtl.l21_norm)
    solution = problem.solve()
    z = tasks.X @ solution.W + solution.intercept
    P = solution.predict(tasks.X)
    assert np.all(P.sum(axis=1) == 2 - P.shape[1]) and np.array_equal(P.argmax(axis=1), z.argmax(axis=1))
    np.testing.assert_allclose(solution.predict_proba(tasks.X).sum(axis=1), 1.0)
    np.testing.assert_allclose(
        solution.scores(tasks), np.mean(np.sign(P) == tasks.targets.reshape(3, -1).T, axis=0)
    )
    assert solution.score(tasks, "subset_accuracy") == np.mean(z.argmax(axis=1) == CLASSES[::3])
    loaded = mtl.Solution.load(solution.save(tmp_path / "classes"))
    np.testing.assert_array_equal(loaded.predict(tasks.X), P)


@pytest.mark.parametrize("intercept", [False, True])
def test_weights_are_zero_from_the_critical_value_on(intercept):
    problem, _ = model(mtl.softmax_loss, mtl.l21_norm, intercept)
    (lam,) = problem.parameters
    critical: Any = problem.lambda_max(lam)
    assert critical.exact
    lam.value = 1.001 * critical
    assert np.abs(problem.solve(tol=1e-9).W).max() < 1e-6
    lam.value = 0.98 * critical
    assert np.abs(problem.solve(tol=1e-9).W).max() > 1e-4


def test_the_formula_is_of_the_scores_of_a_row():
    tasks = mtl.Tasks.from_classes(X, CLASSES)
    W, V = mtl.Weights(tasks), mtl.Weights(tasks, intercept=True, name="V")
    shown = r"\sum_j \big[\log\sum_k e^{x_j^\top w_k} - x_j^\top w_{c(j)}\big]"
    assert shown in mtl.minimize(mtl.softmax_loss(W, tasks) + mtl.ridge(W)).latex()
    typed = mtl.minimize(mtl.crammer_singer_loss(W + V, tasks, mean=True)).latex()
    assert r"\tfrac1n \sum_j" in typed and r"(x_j^\top (W + V) + b)_{c(j)}" in typed
    weighted = mtl.Tasks.from_classes(X, CLASSES, sample_weights=np.ones(len(X)))
    typed = mtl.minimize(mtl.softmax_loss(mtl.Weights(weighted), weighted)).latex()
    assert r"\sum_j s_j \big[" in typed


def test_rows_that_are_not_of_one_class_are_refused():
    Y = np.where(CLASSES[:, None] == np.arange(3), 1.0, -1.0)
    Y[5, (CLASSES[5] + 1) % 3] = 1.0
    tasks = mtl.Tasks.shared(X, Y)
    with pytest.raises(mtl.DataError, match="row 5 is \\+1 in 2 tasks, and belongs to one class"):
        mtl.softmax_loss(mtl.Weights(tasks), tasks)
    Y[5] = [np.nan, 1, -1]
    tasks = mtl.Tasks.shared(X, Y)
    with pytest.raises(mtl.DataError, match="lack labels in some rows"):
        mtl.crammer_singer_loss(mtl.Weights(tasks), tasks)
    with pytest.raises(mtl.DataError, match="there is one class"):
        mtl.Tasks.from_classes(X[:3], ["a", "a", "a"])
    with pytest.raises(mtl.DataError, match="row 1 has no class"):
        mtl.Tasks.from_classes(X[:3], np.array(["a", None, "b"], dtype=object))


@pytest.mark.by_default("softmax_loss")
@pytest.mark.parametrize("loss", ["softmax_loss", "crammer_singer_loss"])
def test_an_estimator_has_a_column_for_each_of_two_classes(loss):
    """At half of a ridge a column, the difference of the two columns is logistic regression."""
    y = np.array(["low", "high"])[(CLASSES > 0).astype(int)]
    fitted = MultiTaskClassifier(f"{loss}(W, tasks) + lam * ridge(W)", lam=2.0, tol=1e-9).fit(X, y)
    z = fitted.decision_function(X)
    assert fitted.coef_.shape == (2, 13) and z.shape == (178,)
    assert np.array_equal(fitted.predict(X), np.where(z > 0, "low", "high"))
    if loss == "softmax_loss":
        theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(X, y)
        np.testing.assert_allclose(fitted.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
        np.testing.assert_allclose(z, theirs.decision_function(X), atol=1e-3)
        assert np.all(cross_val_score(fitted, X, y, scoring="roc_auc", cv=3) > 0.9)


def test_an_estimator_learns_the_classes_that_are_there():
    """Sorted folds lack a class each; weights of zero take one away."""
    model = MultiTaskClassifier("softmax_loss(W, tasks) + lam * l21_norm(W)", lam=1.0)
    order = np.argsort(CLASSES, kind="stable")
    found = cross_val_score(model, X[order], CLASSES[order], cv=KFold(3), error_score="raise")
    assert np.isfinite(found).all()
    with pytest.warns(OneClassWarning):
        fitted = model.fit(X, CLASSES, sample_weight=(CLASSES != 1) * 1.0)
    assert set(fitted.predict(X).tolist()) == {0, 2}
    P = fitted.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert not P[:, 1].any()


def test_an_estimator_says_what_to_write_for_other_tables():
    tags = np.random.default_rng(0).integers(0, 2, (178, 3))
    with pytest.raises(mtl.DataError, match="give an estimator a vector y of classes"):
        MultiTaskClassifier("softmax_loss(W, tasks) + lam * ridge(W)", lam=1.0).fit(X, tags)


def test_class_weights_are_weights_of_rows():
    model = MultiTaskClassifier("softmax_loss(W, tasks) + lam * ridge(W)", lam=1.0, tol=1e-9)
    given = {0: 2.0, 1: 1.0, 2: 0.5}
    one = clone(model).set_params(class_weight=given).fit(X, CLASSES)
    two = clone(model).fit(X, CLASSES, sample_weight=np.array([2.0, 1.0, 0.5])[CLASSES])
    theirs = LogisticRegression(C=1.0, class_weight=given, tol=1e-10, max_iter=10_000).fit(X, CLASSES)
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-6)
    np.testing.assert_allclose(one.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


@for_each("one_class", ["skip", "constant", "error"])
def test_folds_that_lack_a_class(one_class):
    problem, _ = model(mtl.softmax_loss, mtl.l21_norm)
    y = CLASSES[::3]
    folds = [(np.flatnonzero(y != k), np.flatnonzero(y == k)) for k in (0, 1)]
    (lam,) = problem.parameters
    if one_class == "error":
        with pytest.raises(mtl.DataError, match="training fold 0 has labels of one class alone"):
            problem.cross_validate(lam, [1.0], folds=folds, one_class=one_class)
        return
    with pytest.warns(OneClassWarning, match="fold 0: '0'; fold 1: '1'"):
        found = problem.cross_validate(lam, [1.0], folds=folds, one_class=one_class)
    # every row held out is of a class that nobody knew: of two known ones one is said, wrongly; a constant -1 is wrong as well
    assert found.mean == pytest.approx([0.5 if one_class == "skip" else 1 / 3])
    assert found.metric == "accuracy"
