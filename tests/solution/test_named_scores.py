"""Measures by name on solutions: the predictions that they need, all layouts, and what is refused."""

import numpy as np
import pytest
import sklearn.metrics as theirs

import mtldsl as mtl
from tests.loops import for_each


def data(seed=0, n=60, d=5, m=3, missing=0.2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Z = X @ rng.normal(size=(d, m)) + rng.normal(size=(n, m))
    gone = rng.random(Z.shape) < missing
    return X, np.where(gone, np.nan, Z), np.where(gone, np.nan, np.where(Z > 0, 1.0, -1.0))


def solved(tasks, loss=mtl.logistic_loss, intercept=True):
    W = mtl.Weights(tasks, intercept=intercept)
    return mtl.minimize(loss(W, tasks) + mtl.ridge(W)).solve()


BY_TASK = {
    "accuracy": (theirs.accuracy_score, "predict"),
    "f1": (theirs.f1_score, "predict"),
    "roc_auc": (theirs.roc_auc_score, "decision_function"),
    "average_precision": (theirs.average_precision_score, "decision_function"),
    "log_loss": (theirs.log_loss, "predict_proba"),
    "brier": (theirs.brier_score_loss, "predict_proba"),
}


@for_each("layout", ["shared", "separate"])
def test_scores_are_those_of_what_the_solution_predicts(layout):
    X, _, Y = data()
    rows = [~np.isnan(y) for y in Y.T]
    inputs, labels = [X[r] for r in rows], [y[r] for y, r in zip(Y.T, rows, strict=True)]
    tasks = mtl.Tasks.shared(X, Y) if layout == "shared" else mtl.Tasks.separate(inputs, labels)
    solution = solved(tasks)
    for name, (function, face) in BY_TASK.items():
        wanted = [function(y, p) for y, p in zip(labels, getattr(solution, face)(inputs), strict=True)]
        assert np.allclose(solution.scores(tasks, name), wanted, rtol=1e-10), name
        assert np.isclose(solution.score(tasks, name), np.mean(wanted), rtol=1e-10), name


def test_numbers_standardised_inputs_and_counts():
    X, Z, _ = data(2)
    tasks = mtl.Tasks.shared(X + 5.0, Z)
    solution = solved(tasks.standardize(), mtl.squared_loss)
    assert np.allclose(solution.scores(tasks, "r2"), solution.scores(tasks), rtol=1e-10)
    assert np.allclose(solution.scores(tasks, "nmse"), 1 - solution.scores(tasks), rtol=1e-10)
    counts = mtl.Tasks.shared(X, np.where(np.isnan(Z), np.nan, np.maximum(np.round(Z), 0.0)))
    poisson = solved(counts, mtl.poisson_loss)
    there = ~np.isnan(Z[:, 0])
    wanted = theirs.mean_absolute_error(counts.per_task(counts.targets)[0], poisson.predict(X)[there, 0])
    assert np.isclose(poisson.scores(counts, "mae")[0], wanted, rtol=1e-10)


def test_whole_rows_of_predicted_scores():
    X, _, Y = data(3, missing=0.0)
    tasks = mtl.Tasks.shared(X, Y)
    solution = solved(tasks)
    wanted = theirs.label_ranking_loss(Y > 0, solution.decision_function(X))
    assert np.isclose(solution.score(tasks, "ranking_loss"), wanted, rtol=1e-12)
    said = r"no task has a number of its own; write score\(tasks, metric='ranking_loss'\)"
    with pytest.raises(mtl.ModelError, match=said):
        solution.scores(tasks, "ranking_loss")


@for_each(
    "loss, labels, name, kind, says",
    [
        (mtl.logistic_loss, "signs", "mse", mtl.ModelError, "labels, and this measure is of numbers"),
        (mtl.hinge_loss, "signs", "log_loss", mtl.ModelError, "models no probabilities"),
        (mtl.squared_loss, "numbers", "roc_auc", mtl.DataError, "labels must be -1 or +1"),
        (mtl.squared_loss, "signs", "brier", mtl.ModelError, "models no probabilities"),
        (mtl.squared_loss, "numbers", "rsquared", mtl.ModelError, "write 'r2'"),
    ],
)
def test_what_does_not_suit_is_refused(loss, labels, name, kind, says):
    X, Z, Y = data(6)
    tasks = mtl.Tasks.shared(X, Y if labels == "signs" else Z)
    with pytest.raises(kind) as caught:
        solved(tasks, loss, intercept=False).score(tasks, name)
    assert says in str(caught.value)
