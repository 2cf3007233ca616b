"""Measures by name against scikit-learn's on what is there, and their promises about gaps and single classes."""

import pickle

import numpy as np
import pytest
import sklearn.metrics as theirs

from mtldsl.errors import DataError, ModelError
from mtldsl.solution.measures import MEASURES, measure
from mtldsl.solution.score import _BY_NAME, Score, counted_measures, evaluate, mean_score
from tests.loops import for_each

N, M = 60, 5
NAMES = ["a", "b", "c", "d", "e"]


def table(seed=0, missing=0.0):
    rng = np.random.default_rng(seed)
    Y = np.where(rng.random((N, M)) < 0.4, 1.0, -1.0)
    scores = Y + rng.normal(size=(N, M)) * 1.5
    Y[rng.random((N, M)) < missing] = np.nan
    predicted = {
        "scores": scores,
        "labels": np.where(scores >= 0, 1.0, -1.0),
        "probabilities": 1 / (1 + np.exp(-scores)),
    }
    return Y, predicted


def run(name, Y, P, **options) -> Score:
    return evaluate(measure(name), list(Y.T), list(P.T), NAMES[: Y.shape[1]], table=True, **options)


BY_TASK = {
    "accuracy": theirs.accuracy_score, "balanced_accuracy": theirs.balanced_accuracy_score,
    "f1": theirs.f1_score, "precision": theirs.precision_score, "recall": theirs.recall_score,
    "roc_auc": theirs.roc_auc_score, "average_precision": theirs.average_precision_score,
    "log_loss": theirs.log_loss, "brier": theirs.brier_score_loss,
}  # fmt: skip


@for_each("name", BY_TASK)
def test_measures_by_task_are_scikit_learns_of_known_labels(name):
    Y, predicted = table(1, missing=0.3)
    P = predicted[measure(name).needs]
    score = run(name, Y, P)
    wanted = []
    for y, p in zip(Y.T, P.T, strict=True):
        there = ~np.isnan(y)
        kind = int if measure(name).needs == "labels" else float
        p = (p > 0).astype(int) if kind is int else p
        wanted.append(BY_TASK[name](y[there] > 0, p[there]))
    assert np.allclose(score.by_task, wanted, rtol=1e-12) and np.isclose(score, np.mean(wanted), rtol=1e-12)
    assert not score.left_out and repr(score) == repr(float(score))


ROWS = {
    "subset_accuracy": theirs.accuracy_score, "hamming_loss": theirs.hamming_loss,
    "ranking_loss": theirs.label_ranking_loss, "coverage_error": theirs.coverage_error,
}  # fmt: skip
WHOLE = ROWS | {
    "f1_micro": lambda y, z: theirs.f1_score(y, z, average="micro"),
    "f1_weighted": lambda y, z: theirs.f1_score(y, z, average="weighted"),
}


@for_each("name", WHOLE)
def test_measures_of_rows_are_scikit_learns_of_a_full_table(name):
    Y, predicted = table(3)
    P = predicted[measure(name).needs]
    score = run(name, Y, P)
    wanted = WHOLE[name](Y > 0, P > 0 if measure(name).needs == "labels" else P)
    assert np.isclose(score, wanted, rtol=1e-12) and (score.by_task is None) == (name in ROWS)


@for_each("name", ROWS)
@for_each("scale", [None, 1.0, 1e300])
def test_rows_with_gaps_are_scored_on_their_own_labels(name, scale):
    """One row at a time, with the columns that it has alone; with ties, and where no number is above the scores nor below them."""
    Y, predicted = table(4, missing=0.4)
    Y[0] = np.nan  # a row without a label is not counted
    Y[1] = [1.0, np.nan, np.nan, np.nan, np.nan]
    if scale is not None:
        predicted["scores"] = scale * np.round(predicted["scores"])
    P = predicted[measure(name).needs]
    each, weights = [], []
    for y, p in zip(Y, P, strict=True):
        there = ~np.isnan(y)
        if not there.any():
            continue
        truth, given = y[there] > 0, p[there]
        if name == "subset_accuracy":
            value = float(np.all(truth == (given > 0)))
        elif name == "hamming_loss":
            value = np.mean(truth != (given > 0))
        elif name == "coverage_error":
            value = float(np.sum(given >= given[truth].min())) if truth.any() else 0.0
        else:
            pairs = [(a, b) for a in given[truth] for b in given[~truth]]
            value = np.mean([a <= b for a, b in pairs]) if pairs else 0.0
        each.append(value)
        weights.append(there.sum() if name == "hamming_loss" else 1)
    assert np.isclose(run(name, Y, P), np.average(each, weights=weights), rtol=1e-12)


NUMBERS = {
    "mse": theirs.mean_squared_error,
    "mae": theirs.mean_absolute_error,
    "r2": theirs.r2_score,
    "explained_variance": theirs.explained_variance_score,
    "nmse": lambda y, p: np.mean((y - p) ** 2) / np.var(y),
}


@for_each("name, function", NUMBERS.items())
def test_measures_of_numbers(name, function):
    rng = np.random.default_rng(5)
    Y = rng.normal(size=(N, 2)) * [1.0, 10.0]
    P = Y + rng.normal(size=(N, 2))
    Y[rng.random(Y.shape) < 0.2] = np.nan
    wanted = [function(y[~np.isnan(y)], p[~np.isnan(y)]) for y, p in zip(Y.T, P.T, strict=True)]
    assert np.allclose(run(name, Y, P).by_task, wanted, rtol=1e-10)


@for_each("name", [name for name, one in MEASURES.items() if not one.of_rows and one.needs != "values"])
def test_a_task_of_one_class_has_a_number_where_defined(name):
    Y, predicted = table(6)
    Y[:, 1], Y[:, 3] = -1.0, 1.0
    one = measure(name)
    by_task = run(name, Y, predicted[one.needs]).by_task
    assert np.isnan(by_task[1]) == (one.defined != "any")
    assert np.isnan(by_task[3]) == one.two_classes
    assert not np.isnan(by_task[[0, 2, 4]]).any()


def test_left_out_tasks_are_named_and_do_not_move_the_mean():
    Y, predicted = table(7)
    with_one = Y.copy()
    with_one[:, 1] = -1.0
    rest = [0, 2, 3, 4]
    score = run("roc_auc", with_one, predicted["scores"])
    assert np.isclose(score, np.mean(run("roc_auc", Y, predicted["scores"]).by_task[rest]), rtol=1e-12)
    assert score.left_out == ("b",) and score.note == "1 of 5 tasks left out: 'b'" and "'b'" in repr(score)
    assert f"{score:.3f}" == f"{float(score):.3f}"
    again = pickle.loads(pickle.dumps(score))
    assert again == score and again.note == score.note
    assert np.array_equal(again.by_task, score.by_task, equal_nan=True)


@for_each("name", ["roc_auc", "f1_micro", "ranking_loss", "hamming_loss"])
def test_a_task_that_was_not_learned_is_left_out(name):
    Y, predicted = table(8)
    P = predicted[measure(name).needs].copy()
    P[:, 2] = np.nan
    kept = [0, 1, 3, 4]
    score = run(name, Y, P)
    assert score.left_out == ("c",)
    assert np.isclose(score, run(name, Y[:, kept], P[:, kept]), rtol=1e-12)


def test_without_any_number_the_mean_is_nan():
    score = mean_score(np.full(2, np.nan), ["a", "b"])
    assert np.isnan(score) and score.left_out == ("a", "b")
    assert np.isnan(run("ranking_loss", np.full((3, 2), np.nan), np.zeros((3, 2))))


@for_each("name", ["accuracy", "f1_micro", "roc_auc", "log_loss"])
def test_weights_count_as_repeated_labels(name):
    Y, predicted = table(9)
    P = predicted[measure(name).needs]
    times = np.random.default_rng(9).integers(1, 4, N)
    weights = [times.astype(float)] * M
    weighted = run(name, Y, P, weights=weights)
    repeated = run(name, np.repeat(Y, times, axis=0), np.repeat(P, times, axis=0))
    assert np.isclose(weighted, repeated, rtol=1e-10)


def test_what_rows_cannot_do_is_said():
    Y, predicted = table(10)
    one = measure("ranking_loss")
    args = list(Y.T), list(predicted["scores"].T), NAMES
    with pytest.raises(DataError, match="these tasks have rows of their own"):
        evaluate(one, *args, table=False)
    with pytest.raises(DataError, match="sample weights, and ranking_loss counts rows"):
        evaluate(one, *args, table=True, weights=[np.ones(N)] * M)
    with pytest.raises(DataError, match="there is one task"):
        run("coverage_error", Y[:, :1], predicted["scores"][:, :1])


@for_each(
    "typed, said",
    [
        ("auc", "write 'roc_auc'"),
        ("pr_auc", "write 'average_precision'"),
        ("F1", "write 'f1'"),
        ("rsquared", "write 'r2'"),
        ("neg_log_loss", "write 'log_loss'"),
        ("acuracy", "write 'accuracy'"),
        (3, "write one of 'mse', 'nmse'"),
    ],
)
def test_names_that_others_use_are_answered_with_ours(typed, said):
    with pytest.raises(ModelError) as caught:
        measure(typed)
    assert said in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(_BY_NAME))
def test_what_is_counted_is_what_is_repeated(name):
    rng = np.random.default_rng(0)
    by, undefined = measure(name), 0
    for _ in range(10):
        n = int(rng.integers(2, 9))
        y = 1e3 + rng.normal(size=n) if by.needs == "values" else rng.choice([-1.0, 1.0], size=n)
        p = y + rng.normal(size=n) if by.needs == "values" else rng.integers(-2, 3, size=n).astype(float)
        if by.needs == "labels":
            p = np.where(p >= 0, 1.0, -1.0)
        if by.needs == "probabilities":
            p = (p + 2.0) / 4.0
        times = np.stack([np.bincount(rng.integers(0, n, n), minlength=n) for _ in range(12)])
        found = counted_measures(by)(y, p, times.astype(float))
        for row, score in zip(times, found, strict=True):
            rows = np.repeat(np.arange(n), row)
            np.testing.assert_allclose(score, by.of_task(y[rows], p[rows]), rtol=1e-9, atol=1e-12)
            undefined += bool(np.isnan(score))
    assert undefined > 0 or by.defined == "any"
