"""Thresholds: the best of all, by brute force; and what a tuned solution predicts, scores, saves and refuses."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, fbeta_score

import mtldsl as mtl
from mtldsl.solution.thresholds import best_threshold
from tests.loops import for_each
from tests.models import separate, shared, with_weights


class Balanced(mtl.Metric):
    def delta(self, b, c, positives, negatives):
        return 0.5 * (b / negatives + c / positives)


@dataclass(frozen=True, eq=False, repr=False)
class Cost(mtl.Metric):
    """Errors at a price; at most half the negatives may be labelled +1."""

    price: float = 3.0

    def delta(self, b, c, positives, negatives):
        return np.where(np.asarray(b) <= negatives / 2, self.price * b + c, -np.inf)


EACH = [mtl.metrics.FScore(), mtl.metrics.ErrorRate(), Balanced(), mtl.metrics.FScore(beta=2)]
METRICS = [
    mtl.metrics.FScore(), mtl.metrics.FScore(beta=2), mtl.metrics.FScore(beta=0.3),
    mtl.metrics.ErrorRate(), Balanced(), Cost(),
]  # fmt: skip


def table(z, y, threshold):
    labelled = z >= threshold
    return np.sum(labelled & (y < 0)), np.sum(~labelled & (y > 0)), np.sum(y > 0), np.sum(y < 0)


def every_threshold(z):
    """One for every labelling that a threshold can make."""
    distinct = np.unique(z)
    return [distinct[0] - 1.0, *(0.5 * (distinct[1:] + distinct[:-1])), distinct[-1] + 1.0]


def samples(values):
    """Scores and labels of both classes."""
    pairs = st.lists(st.tuples(values, st.sampled_from([-1.0, 1.0])), min_size=2, max_size=14)
    both = pairs.filter(lambda rows: len({label for _, label in rows}) == 2)
    return both.map(lambda rows: np.array(rows).T)


@pytest.mark.slow
@given(samples(st.integers(-4, 4).map(float) | st.floats(-3, 3, width=16)))
def test_no_threshold_is_better(data):
    z, y = data
    tables = [table(z, y, t) for t in every_threshold(z)]
    for metric in METRICS:
        chosen = metric.delta(*table(z, y, best_threshold(z, y, metric)))
        least = min(delta for one in tables if np.isfinite(delta := float(metric.delta(*one))))
        assert chosen == pytest.approx(least, rel=1e-12, abs=1e-15), metric


@pytest.mark.slow
@given(samples(st.floats(-3, 3, width=32)))
def test_at_k_exactly_k_are_positive_or_it_says_why_not(data):
    z, y = data
    ordered = np.sort(z)[::-1]
    for metric in (
        mtl.metrics.PrecisionAt(1),
        mtl.metrics.PrecisionAt(0.5),
        mtl.metrics.RecallAt(2),
        mtl.metrics.RecallAt(0.3),
    ):
        k = metric.count(int(np.sum(y > 0)), int(np.sum(y < 0)))
        gap = np.inf if k == len(z) else ordered[k - 1] - ordered[k]
        if gap > 1e-12 * np.abs(z).max():
            assert np.sum(z >= best_threshold(z, y, metric)) == k
        elif gap == 0.0:
            with pytest.raises(mtl.DataError, match="equal scores get equal labels"):
                best_threshold(z, y, metric)


def test_places_by_hand():
    y = np.array([1.0, 1.0, -1.0, -1.0])
    assert best_threshold([0.75, 0.5, 0.25, -1.0], y, mtl.metrics.ErrorRate()) == 0.375  # half way
    assert (
        best_threshold([5.0, 4.0, 3.0, 2.0], np.array([1.0, 1.0, 1.0, -1.0]), mtl.metrics.ErrorRate()) == 2.5
    )
    # one label for all is best: 0 where it gives that, else half a mean gap beyond the last score
    mostly = np.array([-1.0, 1.0, 1.0, 1.0])
    assert best_threshold([4.0, 3.0, 2.0, 1.0], mostly, mtl.metrics.FScore()) == 0.0
    assert best_threshold([2.0, 1.0, 0.0, -1.0], mostly, mtl.metrics.FScore()) == -1.5
    assert best_threshold([-1.0, -2.0, -3.0, -4.0], mostly, mtl.metrics.ErrorRate()) == -4.5
    assert best_threshold([1.0, 2.0, 3.0, 4.0], -mostly, mtl.metrics.ErrorRate()) == 4.5
    assert best_threshold([-4.0, -3.0, -2.0, -1.0], -mostly, mtl.metrics.ErrorRate()) == 0.0
    assert best_threshold([3.0, 3.0, 3.0, 3.0], mostly, mtl.metrics.FScore()) == 0.0
    assert best_threshold([-3.0, -3.0, -3.0, -3.0], mostly, mtl.metrics.FScore()) == -6.0
    assert best_threshold(np.zeros(4), mostly, mtl.metrics.FScore()) == -1.0
    # one error at -2 and at 2.25: the nearest to zero
    z, y = np.array([-3.0, -1.0, 0.5, 4.0]), np.array([-1.0, 1.0, -1.0, 1.0])
    assert (
        best_threshold(z, y, mtl.metrics.ErrorRate()) == -2.0
        and best_threshold(-z, -y, mtl.metrics.ErrorRate()) == 2.0
    )
    assert best_threshold(z - 2.0, y, mtl.metrics.ErrorRate()) == 0.25


def test_neighbouring_floats_are_one_score():
    """Two rows alike, whose products a matrix product rounded apart, get one label."""
    y = np.array([1.0, -1.0, 1.0, -1.0])
    z = np.array([1.0, 1.0 - 1e-16, 1.0 + 3e-16, -1.0])
    assert best_threshold(z, y, mtl.metrics.ErrorRate()) == pytest.approx(0.0, abs=1e-15)
    huge = np.array([1e300, -1e300, 5e307, -5e307])
    assert np.array_equal(huge >= best_threshold(huge, y, mtl.metrics.ErrorRate()), y > 0)
    tiny = np.array([5e-324, 0.0, 1e-323, -5e-324])  # the least floats there are
    assert np.array_equal(tiny >= best_threshold(tiny, y, mtl.metrics.ErrorRate()), y > 0)


def test_what_is_refused_says_the_call_the_metric_and_the_task():
    z, y = np.array([0.5, 0.1, -0.3]), np.array([1.0, -1.0, 1.0])

    class Nowhere(mtl.Metric):
        def delta(self, b, c, positives, negatives):
            return np.where((np.asarray(b) == 0) & (np.asarray(c) == 0), 0.0, np.nan)

    for metric, said in (
        (mtl.metrics.ROCArea(), r"ROCArea\(\) measures the ranking.*metric=FScore\(\)"),
        (mtl.metrics.AUC(),
         r"^best_threshold: under AUC\(\) it costs nothing to label every sample \+1.*metric=FScore\(\)"),
        (Nowhere(), r"Nowhere\(\) is NaN at b="),
    ):  # fmt: skip
        with pytest.raises(mtl.ModelError, match=said):
            best_threshold(z, y, metric)
    with pytest.raises(mtl.DataError, match=r"^tune_threshold\(tasks, metric=RecallAt\(k=2\)\): task 'a': no threshold gives labels"):  # fmt: skip
        best_threshold([0.5, 0.5, 0.5], y, mtl.metrics.RecallAt(k=2), "tune_threshold(tasks)", "a")


def solved(tasks, metric=None, intercept=True):
    W = mtl.Weights(tasks, intercept=intercept)
    loss = mtl.logistic_loss(W, tasks) if metric is None else mtl.structured_hinge(W, tasks, metric=metric)
    return mtl.minimize(loss + 0.05 * mtl.l21_norm(W)).solve(tol=1e-4)


def labels(change):
    tasks = shared(3, n=60, labels="sign")
    Y = tasks.targets.reshape(4, 60).T.copy()
    change(Y)
    return mtl.Tasks.shared(tasks.X, Y)


LAYOUTS = {
    "shared": lambda: shared(3, n=60, labels="sign"),
    "separate": lambda: separate(3, labels="sign"),
    "missing labels": lambda: shared(3, n=60, labels="sign", missing=0.15),
}


@pytest.mark.slow
@for_each("layout, standardised", [("shared", False), ("separate", True), ("missing labels", True)])
def test_a_tuned_solution_has_every_tasks_best_threshold(layout, standardised):
    raw, metric = LAYOUTS[layout](), mtl.metrics.FScore(beta=2)
    tasks = raw.standardize() if standardised else raw
    solution = solved(tasks)
    scores = solution.decision_function(raw.inputs)
    for given_tasks in (raw, tasks):
        tuned = solution.tune_threshold(given_tasks, metric=metric)
        assert tuned is not solution and solution.thresholds is None and tuned.thresholds.shape == (4,)
        labels, found = tuned.predict(raw.inputs), tuned.scores(given_tasks, metric=metric)
        for i, (z, y) in enumerate(zip(scores, raw.per_task(raw.targets), strict=True)):
            np.testing.assert_array_equal(tuned.decision_function(raw.inputs)[i], z)
            np.testing.assert_array_equal(labels[i], np.where(z >= tuned.thresholds[i], 1.0, -1.0))
            best = max(fbeta_score(y > 0, z >= t, beta=2) for t in every_threshold(z))
            assert fbeta_score(y > 0, labels[i] > 0, beta=2) == pytest.approx(best, rel=1e-12)
            assert found[i] == pytest.approx(best, rel=1e-12)
            assert tuned.scores(given_tasks)[i] == pytest.approx(accuracy_score(y, labels[i]), rel=1e-12)
        assert np.all(tuned.scores(raw, metric=metric) >= solution.scores(raw, metric=metric) - 1e-12)
    if raw.is_shared:
        z = solution.decision_function(raw.X)
        np.testing.assert_array_equal(tuned.predict(raw.X), np.where(z >= tuned.thresholds, 1.0, -1.0))


@pytest.mark.slow
def test_the_metric_of_the_loss_is_the_default():
    tasks = shared(3, n=60, labels="sign")

    def thresholds(solution, **options):
        return solution.tune_threshold(tasks, **options).thresholds

    plain, weighted, of_each = (
        solved(tasks, m) for m in (mtl.metrics.FScore(), mtl.metrics.FScore(beta=5), EACH)
    )
    cases = (
        (plain, mtl.metrics.FScore()),
        (weighted, mtl.metrics.FScore(beta=5)),
        (solved(tasks), mtl.metrics.FScore()),
    )
    for solution, metric in cases:
        np.testing.assert_array_equal(thresholds(solution), thresholds(solution, metric=metric))
    each = [thresholds(of_each, metric=m)[i] for i, m in enumerate(EACH)]
    np.testing.assert_array_equal(thresholds(of_each), each)
    by_name = dict(zip(tasks.task_names, EACH, strict=True))
    np.testing.assert_array_equal(thresholds(of_each, metric=by_name), each)
    assert not np.array_equal(thresholds(weighted, metric=mtl.metrics.FScore()), thresholds(weighted))
    # tuned again, it forgets the first thresholds
    again = plain.tune_threshold(tasks, metric=mtl.metrics.FScore(beta=9)).tune_threshold(tasks)
    np.testing.assert_array_equal(again.thresholds, thresholds(plain))


def test_a_least_squares_fit_to_labels_becomes_a_classifier():
    tasks, W = with_weights(shared(3, n=60, labels="sign"), intercept=True)
    solution = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.ridge(W)).solve()
    tuned = solution.tune_threshold(tasks)
    assert set(np.unique(tuned.predict(tasks.X))) == {-1.0, 1.0}
    accuracy = np.mean(tuned.predict(tasks.X) == tasks.targets.reshape(4, 60).T, axis=0)
    np.testing.assert_allclose(tuned.scores(tasks), accuracy)
    np.testing.assert_allclose(tuned.scores(tasks, metric=mtl.metrics.ErrorRate()), accuracy)
    assert tuned.score(tasks, metric=mtl.metrics.FScore()) >= solution.score(
        tasks, metric=mtl.metrics.FScore()
    )
    np.testing.assert_array_equal(solution.predict(tasks.X), solution.decision_function(tasks.X))


def test_wrong_tuning_is_refused():
    tasks = shared(3, n=60, labels="sign")
    solution = solved(tasks, mtl.metrics.AUC())

    def ones(Y):
        Y[:, 1] = 1.0

    def zeros(Y):
        Y[Y < 0] = 0.0

    weighted = mtl.Tasks.shared(tasks.X, tasks.targets.reshape(4, 60).T, sample_weights=np.full(60, 2.0))
    for given_tasks, metric, kind, message in (
        (labels(ones), mtl.metrics.FScore(), mtl.DataError, r"^tune_threshold\(tasks\): task 'task1' has one class only"),
        (labels(zeros), mtl.metrics.FScore(), mtl.DataError, "labels must be -1 or .1; for labels 0/1 write"),
        (weighted, mtl.metrics.FScore(), mtl.DataError, "sample weights.*repeat rows"),
        (tasks.select([0, 1]), mtl.metrics.FScore(), mtl.DataError, r"^tune_threshold: the tasks are .* x 2 tasks"),
        (tasks, [mtl.metrics.FScore()] * 2 + [mtl.metrics.ROCArea()] * 2, mtl.ModelError, r"^tune_threshold\(tasks, metric=ROCArea\(\)\): task 'task2': "),
        (tasks, None, mtl.ModelError, r"under AUC\(\) it costs nothing to label every sample \+1"),
        (tasks, "F1", mtl.ModelError, r"^tune_threshold\(tasks, metric='F1'\): this is not a metric; .*without quotes"),
        (tasks, mtl.metrics.FScore, mtl.ModelError, r"metric=FScore\): this is not a metric; write metric=FScore\(\)"),
        (tasks, [mtl.metrics.FScore()] * 2, mtl.ModelError, r"^tune_threshold\(tasks, metric=\[...\]\): 2 metrics for 4 tasks"),
        (tasks, {"nobody": mtl.metrics.FScore()}, mtl.ModelError, "there is no task 'nobody'"),
        (tasks, mtl.metrics.PrecisionAt(61), mtl.ModelError, r"metric=PrecisionAt\(k=61\)\): task 'task0'.*the task has 60"),
    ):  # fmt: skip
        with pytest.raises(kind, match=message):
            solution.tune_threshold(given_tasks, metric)
    standardised = tasks.take_rows(np.arange(30)).standardize()
    said = r"^tune_threshold: these tasks were standardised with statistics other"
    with pytest.raises(mtl.DataError, match=said):
        solution.tune_threshold(standardised, mtl.metrics.FScore())
    counts, W = with_weights(shared(3, labels="count"))
    of_counts = mtl.minimize(mtl.poisson_loss(W, counts) + mtl.ridge(W)).solve()
    with pytest.raises(mtl.ModelError, match="poisson_loss predicts counts, and a metric is of labels"):
        of_counts.tune_threshold(counts)
