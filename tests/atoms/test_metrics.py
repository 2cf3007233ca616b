"""Oracles of metrics against every labelling for small tasks, every table for larger ones; what is typed; and metrics that a user writes."""

import itertools

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.losses import StructuredHinge
from mtldsl.atoms.metrics import AUC, ErrorRate, FScore, Metric, PrecisionAt, RecallAt, ROCArea
from mtldsl.atoms.metrics.metric import classes_of
from mtldsl.errors import ModelError
from tests.atoms.metric_data import (
    TOP,
    WHOLE_BOX,
    Arbitrary,
    Cubed,
    Power,
    labels,
    planes_of,
    scores,
    value_of_planes,
)
from tests.loops import for_each
from tests.models import with_weights


class WeighedError(Metric):
    def delta(self, b, c, positives, negatives):
        return 0.5 * (b / negatives + c / positives)


class WithCounts(WeighedError):
    """Separable: each class by itself."""

    def best_counts(self, of_negatives, of_positives, positives, negatives):
        b = np.argmax(of_negatives + 0.5 * np.arange(len(of_negatives)) / negatives)
        return b, np.argmax(of_positives + 0.5 * np.arange(len(of_positives)) / positives)


OF_LABELLINGS = [*WHOLE_BOX, *(FScore(beta=beta) for beta in (0.05, 1e-100, 1e100)), *TOP]
FORBIDDING = Arbitrary(0.5)
OWN = [WeighedError(), WithCounts(), FORBIDDING, Power(), Power(power=0.5)]
labellings = for_each("metric", [*OF_LABELLINGS, *OWN], ids=repr)
ALL = [*OF_LABELLINGS, ROCArea()]
every_metric = for_each("metric", ALL, ids=repr)


def assert_consistent(plane, z, y, metric):
    """The plane is one of the hinge, and has the value it says."""
    slope = plane.gradient(y)
    size = plane.delta + np.abs(slope) @ np.abs(z)  # of what is added up
    assert plane.value == pytest.approx(plane.delta + slope @ z, rel=0, abs=1e-14 * size)
    if metric.labellings:
        assert len(np.unique(plane.flipped)) == len(plane.flipped)
        other = y + slope
        assert set(other) <= {-1.0, 1.0} and set(np.flatnonzero(other != y)) == set(plane.flipped)
        b, c = np.sum((y < 0) & (other > 0)), np.sum((y > 0) & (other < 0))
        expected = metric.table(b, c, int(np.sum(y > 0)), int(np.sum(y < 0)))
        assert plane.delta == pytest.approx(float(expected), rel=0, abs=1e-14)


@pytest.mark.slow
@labellings
def test_oracle_against_every_labelling(metric):
    rng = np.random.default_rng(1)
    for n in (2, 3, 4, 6, 9):
        for positives in {1, n - 1, int(rng.integers(1, n)), int(rng.integers(1, n))}:
            y = labels(rng, n, positives)
            if metric.check(positives, n - positives):
                continue
            slopes, heights = planes_of(metric, y)
            for size in (1e-3, 0.3, 1e3):
                for kind in ("normal", "ties", "alike"):
                    z = scores(rng, n, size, kind)
                    plane = metric.most_violated(z, y)
                    # among few labellings large scores may have to cancel
                    rounding = 1e-14 * max(1.0, np.abs(z).sum() if metric is FORBIDDING else 0.0)
                    expected = np.max(heights + slopes @ z)
                    assert plane.value == pytest.approx(expected, rel=1e-13, abs=rounding)
                    assert_consistent(plane, z, y, metric)
            zero = metric.most_violated(np.zeros(n), y)
            assert zero.value == pytest.approx(heights.max(), abs=1e-15)


@for_each("n", [3, 50, 400])
@for_each("kind", ["normal", "ties", "halves"])
def test_roc_area_against_the_sum_over_pairs(n, kind):
    """Also where many pairs are exactly at the margin."""
    rng = np.random.default_rng(n)
    for size in (1e-3, 0.3, 1.0, 5.0, 1e3):
        y = labels(rng, n)
        z = 0.5 * rng.integers(-3, 4, n) if kind == "halves" else scores(rng, n, size, kind)
        terms = 1.0 - 2.0 * (z[y > 0][:, None] - z[y < 0][None, :])
        violated = terms > 0.0
        plane = ROCArea().most_violated(z, y)
        assert plane.value == pytest.approx(np.maximum(terms, 0.0).mean(), rel=1e-12, abs=1e-13)
        assert_consistent(plane, z, y, ROCArea())
        if kind == "halves":  # nothing rounds: the plane itself is known
            assert plane.delta == violated.mean()
            np.testing.assert_allclose(
                plane.slope[y > 0], -2.0 * violated.sum(axis=1) / terms.size, rtol=1e-15
            )
            np.testing.assert_allclose(
                plane.slope[y < 0], 2.0 * violated.sum(axis=0) / terms.size, rtol=1e-15
            )


def scanned(metric, z, y):
    """The highest table by the plain scan, nothing screened."""
    positive, negative = classes_of(y)
    of_positives = np.append(0.0, np.cumsum(-2.0 * np.sort(z[positive])))
    of_negatives = np.append(0.0, np.cumsum(2.0 * np.sort(z[negative])[::-1]))
    b, c = Metric.best_counts(metric, of_negatives, of_positives, len(positive), len(negative))
    return float(metric.delta(b, c, len(positive), len(negative)) + of_negatives[b] + of_positives[c])


@pytest.mark.slow
@labellings
@pytest.mark.parametrize("n", [30, 300])
def test_oracle_against_the_scan(metric, n):
    rng = np.random.default_rng(n)
    for positives in (1, n // 10, n // 2, n - 1):
        y = labels(rng, n, positives)
        for size, kind in itertools.product((0.1 / n, 1.0 / n, 1.0, 100.0), ("normal", "ties")):
            for shift in (0.0, 0.5):
                z = scores(rng, n, size, kind) + shift * size * y
                plane = metric.most_violated(z, y)
                rounding = 1e-15 * (1.0 + np.abs(z).sum())  # the scan adds up all scores
                assert plane.value == pytest.approx(scanned(metric, z, y), rel=1e-12, abs=rounding)
                assert_consistent(plane, z, y, metric)


def test_own_metrics_print_and_save_themselves():
    assert repr(Power(power=0.5)) == "Power(power=0.5)" and repr(WeighedError()) == "WeighedError()"
    assert Power(power=0.5).plain() == {"metric": "Power", "power": 0.5}
    again = Metric.from_plain(Power(power=0.5).plain())
    assert type(again) is Power and again.power == 0.5
    with pytest.raises(ModelError, match=r"'Nothing' is not known here: import the module"):
        Metric.from_plain({"metric": "Nothing"})


def test_a_new_delta_inherits_no_oracle_of_the_old_one():
    class Separate(ErrorRate):
        def best_counts(self, of_negatives, of_positives, positives, negatives):
            return 0, 0

    class Renamed(FScore):
        """The same Delta: it keeps the oracle."""

    rng = np.random.default_rng(7)
    y = labels(rng, 12, 5)
    for size in (0.01, 0.1, 1.0):
        z = size * rng.normal(size=12)
        expected = value_of_planes(Cubed(), z, y)
        assert Cubed().most_violated(z, y).value == pytest.approx(expected, rel=1e-13)
        assert Separate().most_violated(z, y).value == 0.0
    assert Renamed.exact_conjugate == FScore.exact_conjugate and not Cubed.exact_conjugate


@every_metric
def test_a_prediction_that_is_not_a_number_is_not_passed_over(metric):
    z = np.array([0.1, np.nan, 3.0, -4.0])
    for y in (np.array([1.0, 1.0, -1.0, -1.0]), np.array([1.0, -1.0, 1.0, -1.0])):
        plane = metric.most_violated(z, y)
        assert np.isnan(plane.value) and plane.gradient(y).shape == (4,)


@pytest.mark.slow
@every_metric
def test_a_million_samples(metric):
    """In O(n) memory; the plane agrees with its value."""
    rng = np.random.default_rng(11)
    n = 1_000_000 if not isinstance(metric, (PrecisionAt, RecallAt, FScore)) or metric is ALL[0] else 100_000
    y = labels(rng, n, n // 3)
    z = 1e-6 * rng.normal(size=n) + (0.25 * y if isinstance(metric, ROCArea) else 0.0)
    plane = metric.most_violated(z, y)
    assert plane.value == pytest.approx(plane.delta + plane.gradient(y) @ z, rel=1e-9) and plane.value > 0.0


@for_each("cls", [PrecisionAt, RecallAt])
@for_each("k", [0, -3, 0.0, -0.5, True, np.True_, "10", None, np.nan, np.inf, 2.5, [3], 1j])
def test_wrong_k(cls, k):
    with pytest.raises(ModelError) as error:
        cls(k=k)
    message = str(error.value)
    assert message.startswith(f"{cls.__name__}(k={k!r}): k must be a count of samples, a whole number >= 1")
    assert message.endswith("a number between 0 and 1 such as k=0.1")


@for_each("k, count", [(1.0, 1), (10.0, 10), (np.float64(3.0), 3)])
def test_a_count_with_a_point(k, count):
    with pytest.raises(
        ModelError, match=rf"is not a fraction between 0 and 1; .*without a point, k={count}$"
    ):
        PrecisionAt(k=k)


def test_k_of_numpy_and_how_fractions_round():
    assert (
        repr(PrecisionAt(k=np.int64(3))) == "PrecisionAt(k=3)" and type(PrecisionAt(k=np.int32(3)).k) is int
    )
    assert PrecisionAt(k=np.array(4)).k == 4 and type(RecallAt(k=np.float32(0.5)).k) is float
    counts = {0.01: 1, 0.1: 1, 0.25: 2, 0.35: 4, 0.5: 5, 0.96: 10}  # halves to the even number, at least one
    assert {k: RecallAt(k=k).count(4, 6) for k in counts} == counts


def test_a_count_that_the_task_does_not_have():
    assert PrecisionAt(k=12).check(5, 7) is None and RecallAt(k=0.999).check(5, 7) is None
    assert PrecisionAt(k=13).check(5, 7) == (
        "k=13 samples are to be labelled +1, but the task has 12; write at most k=12, or a fraction such as k=0.1"
    )
    with pytest.raises(ModelError, match=r"metric=RecallAt\(k=13\)\): task 'b': k=13 samples"):
        StructuredHinge(metric=RecallAt(k=13)).for_tasks(["a", "b"], [(10, 10), (5, 7)])


@for_each("beta", [0, -1.0, np.nan, np.inf, True, "1", None, 1e-101, 1e101, [1.0]])
def test_wrong_beta(beta):
    with pytest.raises(ModelError) as error:
        FScore(beta=beta)
    assert str(error.value) == (
        f"FScore(..., beta={beta!r}): beta must be a number between 1e-100 and 1e100, such as beta=1.0"
    )


def test_examples_and_what_they_print():
    assert [repr(m) for m in FScore.examples()] == ["FScore()", "FScore(beta=2.0)", "FScore(beta=0.5)"]
    assert repr(PrecisionAt(k=5)) == "PrecisionAt(k=5)" and repr(ROCArea()) == "ROCArea()"
    for metric in ALL:
        again = Metric.from_plain(metric.plain())
        assert type(again) is type(metric) and again.arguments() == metric.arguments()


@for_each(
    "metrics",
    [[FScore()], [AUC()], [WeighedError()], [FScore(beta=0.4), AUC(), ROCArea(), FScore(beta=0.4)]],
    ids=repr,
)
def test_the_planes_of_all_tasks_are_those_of_each(metrics):
    rng = np.random.default_rng(12)
    sizes = rng.integers(2, 30, 4 * len(metrics))
    ys = [labels(rng, n) for n in sizes]
    each = [metrics[i % len(metrics)] for i in range(len(ys))]
    tasks, W = with_weights(mtl.Tasks.separate([np.eye(30)[:n] for n in sizes], ys))
    metric = each if len(metrics) > 1 else metrics[0]
    (loss,) = mtl.minimize(mtl.structured_hinge(W, tasks, metric=metric) + mtl.l1_norm(W)).form().losses
    for size in (0.0, 0.02, 0.3):
        z = np.round(size * rng.normal(size=loss.tasks.n_samples), 2)
        found = loss.highest(z)
        for i, (rows, _, metric, y, _) in enumerate(loss.tasks_apart):
            plane = metric.most_violated(z[rows], y)
            assert found.values[i] == plane.value and found.deltas[i] == plane.delta
            np.testing.assert_array_equal(found.slopes[rows], plane.gradient(y))
        assert loss.value(z) == pytest.approx(
            sum(c * v for (_, c, *_), v in zip(loss.tasks_apart, found.values, strict=True))
        )
    z[0] = np.nan
    assert np.isnan(loss.value(z)) and np.isfinite(loss.highest(z).values[1:]).all()


rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
Y = np.where(X @ rng.normal(size=(4, 3)) + 0.5 * rng.normal(size=(60, 3)) > 0.4, 1.0, -1.0)
TASKS = mtl.Tasks.shared(X, Y)


def solve(**members):
    W = mtl.Weights(TASKS)
    metric = type("Mine", (mtl.Metric,), members)()
    return mtl.minimize(mtl.l21_norm(W) + 5 * mtl.structured_hinge(W, TASKS, metric=metric)).solve()


@for_each(
    "delta, message",
    [
        (lambda self, b, c, p, n: max(b, c), r"Mine\(\): its delta fails with ValueError"),
        (lambda self, b, c, p, n: 1.0, r"its delta is 1 at b=0, c=0 of \d+ positives"),
        (lambda self, b, c, p, n: b / n - 0.5 * c / p, r"its delta is -0\.\d+ at b=0, c=1"),
        (lambda self, b, c, p, n: np.where(b > 3, np.nan, b), r"its delta is nan at b=4, c=0"),
    ],
)
def test_a_delta_that_is_no_loss_is_refused_where_it_is_typed(delta, message):
    W = mtl.Weights(TASKS)
    with pytest.raises(mtl.ModelError, match=message):
        mtl.structured_hinge(W, TASKS, metric=type("Mine", (mtl.Metric,), {"delta": delta})())


@for_each("delta", [lambda self, b, c, p, n: b + c, lambda self, b, c, p, n: np.maximum(b, c)])
def test_whole_numbers_are_numbers(delta):
    assert solve(delta=delta).is_optimal


BELIEVED = r"best_counts or limits found a labelling worth 0 where b=\d+, c=\d+ is worth 1"
WRONG = [
    ({}, "the class Mine has no delta; write delta"),
    ({"delta": WeighedError.delta, "best_counts": lambda self, of_negatives, of_positives, p, n: (0, 0)}, BELIEVED),
    ({"delta": WeighedError.delta, "limits": lambda self, p, n: (-1.0, 1.0)}, BELIEVED),
    ({"delta": WeighedError.delta, "best_counts": lambda self, of_negatives, of_positives, p, n: (1000, 0)},
     "best_counts gave b=1000, c=0, but"),
]  # fmt: skip


@for_each("members, message", WRONG)
def test_an_own_oracle_is_checked_and_not_believed(members, message):
    with pytest.raises(mtl.ModelError, match=message):
        solve(**members)


def test_a_metric_is_no_term():
    parameter = mtl.Parameter(1.0)
    for typed in (lambda m: 2 * m, lambda m: m + mtl.metrics.AUC(), lambda m: parameter * m, lambda m: m / 2):
        with pytest.raises(
            mtl.ModelError, match=r"FScore\(\) is a metric, no term of a model: write structured_hinge"
        ):
            typed(mtl.metrics.FScore())


def test_a_warm_start_leaves_the_solution_it_starts_from_alone():
    W, lam = mtl.Weights(TASKS), mtl.Parameter(2.0)
    problem = mtl.minimize(mtl.l21_norm(W) + lam * mtl.structured_hinge(W, TASKS))
    first = problem.solve()
    lam.value = 3.0
    again = [problem.solve(warm_start=first) for _ in range(3)]
    assert len({s.objective for s in again}) == 1 and len({s.iterations for s in again}) == 1
