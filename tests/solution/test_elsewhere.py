"""Scores and predictions of rows in parts are those of the same rows here; what sums do not tell comes from all scores of a task."""

from itertools import cycle

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl import DataError, ModelError
from mtldsl.atoms.metrics import AUC, ErrorRate, FScore, PrecisionAt, ROCArea
from mtldsl.data.labels import OneClassWarning
from mtldsl.distributed.distributed_tasks import DistributedTasks
from tests.loops import for_each

RNG = np.random.default_rng(2)
N, D, M = 400, 5, 3
X = RNG.normal(size=(N, D))
TRUE = RNG.normal(size=(D, M))
NUMBERS = X @ TRUE + RNG.normal(size=(N, M)) + 3.0
SIGNS = np.where(NUMBERS > 3.5, 1.0, -1.0)
GAPS = RNG.random((N, M)) < 0.2
NUMBERS[GAPS] = SIGNS[GAPS] = np.nan
WEIGHTS = RNG.random(N) + 0.1


def solved(tasks, loss):
    W = mtl.Weights(tasks, intercept=True)
    return mtl.minimize(loss(W, tasks) + 2.0 * mtl.l21_norm(W)).solve()


CLASSES, AMOUNTS = mtl.Tasks.shared(X, SIGNS), mtl.Tasks.shared(X, NUMBERS)


@pytest.fixture(scope="module")
def classifier():
    return solved(CLASSES, mtl.logistic_loss)


@pytest.fixture(scope="module")
def regressor():
    return solved(AMOUNTS, mtl.squared_loss)


LABELS = ["accuracy", "balanced_accuracy", "f1", "f1_micro", "f1_weighted", "log_loss", "brier"]
RANKINGS = ["roc_auc", "average_precision"]
VALUES = ["mse", "mae", "nmse", "r2", "explained_variance"]


@for_each("metric, weights", list(zip([*LABELS, *RANKINGS], cycle([None, WEIGHTS]), strict=False)))
def test_measures_of_labels(classifier, metric, weights):
    here = mtl.Tasks.shared(X, SIGNS, sample_weights=weights)
    there = DistributedTasks.cut(here, 7)
    before = there.parts.passes
    found, wanted = classifier.score(there, metric), classifier.score(here, metric)
    assert there.parts.passes == before + 1
    assert found == pytest.approx(wanted, abs=1e-12)
    allowed = 0.0 if metric in RANKINGS else 1e-12  # which see all scores of a task
    np.testing.assert_allclose(found.by_task, wanted.by_task, rtol=0.0, atol=allowed)


@for_each("metric, weights", list(zip([None, *VALUES], cycle([WEIGHTS, None]), strict=False)))
def test_measures_of_numbers(regressor, metric, weights):
    here = mtl.Tasks.shared(X, NUMBERS, sample_weights=weights)
    there = DistributedTasks.cut(here, 7)
    assert regressor.score(there, metric) == pytest.approx(regressor.score(here, metric), abs=1e-12)
    assert regressor.scores(there, metric) == pytest.approx(regressor.scores(here, metric), abs=1e-12)


def test_concordance_is_that_of_the_same_rows_here():
    times = np.abs(np.nan_to_num(NUMBERS, nan=1.0)) + 0.1
    here = mtl.Tasks.shared(X, np.where(RNG.random((N, M)) < 0.6, times, -times))
    risks, there = solved_times(here), DistributedTasks.cut(here, 7)
    assert risks.score(there, "concordance") == risks.score(here, "concordance")
    np.testing.assert_array_equal(risks.scores(there), risks.scores(here))
    for tasks in (here, there):
        with pytest.raises(ModelError, match="signed times, and this measure is not of these"):
            risks.score(tasks, "r2")


def solved_times(tasks):
    W = mtl.Weights(tasks)
    return mtl.minimize(mtl.cox_loss(W, tasks) + 2.0 * mtl.l21_norm(W)).solve()


class Own(FScore):
    def score(self, z, positive, threshold):
        return float(np.mean(z))


@for_each(
    "metric",
    [
        *(None, FScore(), FScore(beta=2.0), AUC(), ErrorRate(), [FScore(), AUC(), ErrorRate()]),
        *(ROCArea(), PrecisionAt(k=3), Own(), [FScore(), ROCArea(), Own()]),
    ],
)
def test_metrics_are_those_of_the_same_rows_here(classifier, metric):
    there = DistributedTasks.cut(CLASSES, 7)
    for solution in (classifier, classifier.tune_threshold(CLASSES)):
        found = solution.scores(there, metric)
        np.testing.assert_allclose(found, solution.scores(CLASSES, metric), rtol=1e-13)


@for_each("metric", ["roc_auc", "hamming_loss", ROCArea()])
def test_scores_of_arrays_of_dask(classifier, metric):
    da = pytest.importorskip("dask.array", reason="pip install -e .[dask]")
    there = mtl.Tasks.from_dask(da.from_array(X, chunks=(100, D)), da.from_array(SIGNS, chunks=(100, M)))
    assert classifier.score(there, metric) == pytest.approx(classifier.score(CLASSES, metric), abs=1e-12)


@for_each("metric", [None, ErrorRate(), PrecisionAt(k=3), [FScore(), ErrorRate(), FScore(beta=2.0)]])
def test_thresholds_are_those_of_the_same_rows_here(classifier, regressor, metric):
    there = DistributedTasks.cut(CLASSES, 7)
    found, wanted = classifier.tune_threshold(there, metric), classifier.tune_threshold(CLASSES, metric)
    np.testing.assert_allclose(found.thresholds, wanted.thresholds, rtol=1e-13)
    with pytest.raises(ModelError, match="ROCArea"):
        classifier.tune_threshold(there, ROCArea())
    for numbers in (AMOUNTS, DistributedTasks.cut(AMOUNTS, 3)):
        with pytest.raises(DataError):
            regressor.tune_threshold(numbers, FScore())


@for_each("metric", ["hamming_loss", "subset_accuracy", "ranking_loss", "coverage_error"])
def test_measures_of_whole_rows(classifier, metric):
    Y = SIGNS.copy()
    Y[:60, 1] = np.nan  # a part without one of the tasks
    Y[60:70] = np.nan  # rows without a label
    here = mtl.Tasks.shared(X, Y)
    for solution in (classifier, classifier.tune_threshold(CLASSES)):
        found = solution.score(DistributedTasks.cut(here, 7), metric)
        assert found == pytest.approx(solution.score(here, metric), abs=1e-13) and found.by_task is None
    weighted = DistributedTasks.cut(mtl.Tasks.shared(X, Y, sample_weights=WEIGHTS), 3)
    with pytest.raises(DataError, match="counts rows"):
        classifier.score(weighted, metric)
    separate = mtl.Tasks.separate([X] * M, [np.where(np.isnan(y), 1.0, y) for y in SIGNS.T])
    with pytest.raises(DataError, match="rows of their own"):
        classifier.score(DistributedTasks.cut(separate, 3), metric)


def test_what_does_not_suit_is_refused(classifier, regressor):
    there = DistributedTasks.cut(CLASSES, 3)
    before = there.parts.passes
    with pytest.raises(ModelError, match="predicts labels"):
        classifier.score(there, "mse")
    assert there.parts.passes == before
    with pytest.raises(DataError, match="partition 0"):
        classifier.score(DistributedTasks.cut(AMOUNTS, 3), "f1")
    with pytest.raises(DataError, match="the tasks are"):
        regressor.score(DistributedTasks.cut(AMOUNTS, 3).select([0]))
    weighted = DistributedTasks.cut(mtl.Tasks.shared(X, SIGNS, sample_weights=WEIGHTS), 3)
    with pytest.raises(DataError, match="metric counts samples"):
        classifier.scores(weighted, FScore())


def test_statistics_of_training_go_with_the_weights():
    train = CLASSES.standardize()
    solution = solved(train, mtl.logistic_loss)
    assert solution.score(DistributedTasks.cut(CLASSES, 4)) == solution.score(CLASSES)


def model(tasks):
    W, lam = mtl.Weights(tasks, intercept=True), mtl.Parameter(1.0, name="lam")
    return mtl.minimize(mtl.logistic_loss(W, tasks) + lam * mtl.l21_norm(W)), lam


@pytest.mark.slow
@for_each("metric", ["roc_auc", FScore(beta=2.0)])
def test_cross_validate_scores_the_rows_held_out(metric):
    tasks = DistributedTasks.cut(CLASSES.take_rows(np.arange(120)), 3)
    problem, lam = model(tasks)
    found = problem.cross_validate(lam, [30.0, 3.0], folds=2, metric=metric, tol=1e-8)
    for fold, (train, test) in enumerate(tasks.folds(2)):
        one, own = model(train)
        for k, value in enumerate((30.0, 3.0)):
            own.value = value
            score = float(one.solve(tol=1e-8).score(test, metric))
            assert found.scores[fold, k] == pytest.approx(score, abs=1e-6)
    assert found.solution.status == "optimal" and tasks.parts.passes > 20
    again = problem.cross_validate(lam, [30.0, 3.0], folds=2, metric=metric, tol=1e-8, n_jobs=2)
    np.testing.assert_array_equal(again.scores, found.scores)
    with pytest.raises(DataError, match="as long as the data"):
        problem.cross_validate(lam, [1.0], folds=[([0, 1], [2, 3])])
    with pytest.raises(ModelError, match=r"^certificate.save.*: the rows are elsewhere.*tasks.subsample"):
        found.solution.certificate.save("never.npz")


@pytest.mark.slow
@for_each("one_class", ["skip", "constant", "error"])
def test_a_task_that_a_fold_cannot_learn_is_left_out_of_it(one_class):
    Y = SIGNS.copy()
    Y[:, 2] = np.nan
    Y[:6, 2], Y[7, 2] = -1.0, 1.0
    tasks = DistributedTasks.cut(mtl.Tasks.shared(X, Y), 3)
    problem, lam = model(tasks)
    if one_class == "error":
        with pytest.raises(DataError, match="one class alone"):
            problem.cross_validate(lam, [1.0], folds=3, one_class=one_class)
        return
    with pytest.warns(OneClassWarning):
        found = problem.cross_validate(lam, [1.0], folds=3, one_class=one_class, refit=False)
    without = [fold for fold, names in enumerate(found.left_out) if names]
    assert len(without) == 1 and np.isfinite(found.scores).all()
    (row,) = [row for row in found.table if row["fold"] == without[0] and row["task"] == "task2"]
    assert np.isnan(row["score"]) == (one_class == "skip")


def test_predictions_of_arrays_and_frames_of_dask_stay_there(classifier, regressor):
    da = pytest.importorskip("dask.array", reason="pip install -e .[dask]")
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    lazy = da.from_array(X, chunks=(100, 3))
    for solution, faces in (
        (classifier, ("predict", "decision_function", "predict_proba")),
        (regressor, ("predict", "decision_function")),
    ):
        for face in faces:
            found, wanted = getattr(solution, face)(lazy), getattr(solution, face)(X)
            assert isinstance(found, da.Array) and found.shape == (N, M) and found.chunks[0] == (100,) * 4
            np.testing.assert_allclose(found.compute(), wanted, rtol=1e-12)
    frame = pd.DataFrame(X, columns=list("pqrst"))
    named = solved(mtl.Tasks.shared(frame, SIGNS), mtl.logistic_loss)
    there = named.predict(dd.from_pandas(frame, npartitions=3))
    assert isinstance(there, da.Array)
    np.testing.assert_array_equal(there.compute(), named.predict(frame))
    for call, kind, said in (
        (lambda: classifier.predict(lazy[:, :4]), DataError, "5 features"),
        (lambda: named.predict(dd.from_pandas(frame[frame.columns[::-1]], npartitions=3)), DataError, "predict: X has the columns"),
        (lambda: regressor.predict_proba(lazy), ModelError, "models no probabilities"),
    ):  # fmt: skip
        with pytest.raises(kind, match=said):
            call()


def test_predicting_never_computes_an_input_here(classifier):
    da = pytest.importorskip("dask.array", reason="pip install -e .[dask]")
    asked = []

    def block(block_id=None):
        asked.append(block_id)
        return np.zeros((50, D))

    lazy = da.map_blocks(block, chunks=((50, 50), (D,)), dtype=float, meta=np.empty((0, D)))
    asked.clear()
    found = classifier.predict(lazy)
    assert not asked
    assert found.compute().shape == (100, M) and len(asked) == 2
