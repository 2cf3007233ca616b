"""Conjugates of structured hinges against linear programs over all labellings (or pairs), and their domains."""

from dataclasses import replace

import numpy as np
import pytest

from mtldsl.atoms.metrics import AUC, ErrorRate, FScore, Metric, PrecisionAt, RecallAt, ROCArea, expected_loss
from tests.atoms.metric_data import TOP, WHOLE_BOX, Arbitrary, labels, minus_conjugate, planes_of
from tests.loops import for_each

FORBIDDING, WITHOUT_STRUCTURE = Arbitrary(0.5), Arbitrary()
OF_LABELLINGS = [*WHOLE_BOX, *TOP, WITHOUT_STRUCTURE, FORBIDDING]
ALL = [*OF_LABELLINGS, ROCArea()]
labellings = for_each("metric", OF_LABELLINGS, ids=repr)
every_metric = for_each("metric", ALL, ids=repr)


def mixture(rng, metric, y, planes=3):
    """A point of dom f*: a mixture of planes that are highest somewhere, the true labelling's zero plane among them."""
    slopes = [
        metric.most_violated(size * rng.normal(size=len(y)), y).gradient(y)
        for size in rng.exponential(0.5, planes)
    ]
    return rng.dirichlet(np.ones(planes + 1))[:planes] @ np.array(slopes)


@pytest.mark.slow
@every_metric
def test_conjugate_against_every_plane(metric):
    rng = np.random.default_rng(1)
    finite = infinite = 0
    for _ in range(8):
        n = int(rng.integers(2, 9 if metric.labellings else 7))
        y = labels(rng, n)
        positives = int(np.sum(y > 0))
        if metric.check(positives, n - positives):
            continue
        slopes, _ = planes_of(metric, y)
        several = rng.dirichlet(np.ones(3)) @ slopes[rng.integers(0, len(slopes), 3)]
        of_positives = several[y > 0]
        steeper = several.copy()  # of the same sum
        steeper[y > 0] += 0.3 * (of_positives - of_positives.mean())
        points = [several, 1e-6 * several, slopes[rng.integers(len(slopes))], steeper]
        if metric.labellings:
            uniform, with_certain = rng.random(n), np.clip(rng.normal(0.5, 0.7, n), 0.0, 1.0)
            points += [-2.0 * y * p for p in (uniform, with_certain, np.round(2.0 * uniform) / 2.0)]
        for u in points:
            conjugate = metric.conjugate(u, y)
            # both are linear programs of HiGHS, whose own tolerance is 1e-10
            assert conjugate == pytest.approx(-minus_conjugate(metric, u, y), rel=1e-9, abs=1e-12)
            finite += np.isfinite(conjugate)
            infinite += np.isinf(conjugate)
    assert finite > 8 and infinite > 0


@pytest.mark.slow
@for_each("metric", [*WHOLE_BOX, WITHOUT_STRUCTURE], ids=repr)
def test_for_large_tasks_it_is_an_upper_bound(metric, monkeypatch):
    """The labellings that can be written down promise no more than the linear program, and all of it for AUC's Delta."""
    rng = np.random.default_rng(4)
    ratios = []
    for _ in range(8):
        n = int(rng.integers(2, 30))
        y = labels(rng, n)
        p, q = rng.random(int(np.sum(y > 0))) ** 2, rng.random(int(np.sum(y < 0))) ** 3
        monkeypatch.setattr(expected_loss, "SETTINGS", replace(expected_loss.SETTINGS, program_tables=3000))
        exact = expected_loss.best_law(metric.delta, p, q)[0]
        monkeypatch.setattr(expected_loss, "SETTINGS", replace(expected_loss.SETTINGS, program_tables=0))
        bound = expected_loss.best_law(metric.delta, p, q)[0]
        assert bound <= exact + 1e-10
        ratios.append(bound / exact)
    if isinstance(metric, (AUC, ErrorRate)):
        np.testing.assert_allclose(ratios, 1.0, rtol=1e-9)  # `exact` is a linear program of HiGHS
    if isinstance(metric, FScore):
        assert np.mean(ratios) > 0.95


@pytest.mark.slow
@every_metric
@pytest.mark.parametrize("n", [40, 300])
def test_fenchel_young(metric, n):
    rng = np.random.default_rng([5, n])
    for _ in range(3):
        y = labels(rng, n)
        if metric.check(int(np.sum(y > 0)), int(np.sum(y < 0))):
            continue
        for u in (mixture(rng, metric, y), metric.dual_project(rng.normal(size=n), y), np.zeros(n)):
            conjugate = metric.conjugate(u, y)
            # with forbidden tables and many of them, no law may be known
            assert conjugate <= 1e-15 or (metric is FORBIDDING and n == 300)
            for size in (1.0 / n, 0.1, 1.0):
                z = size * rng.normal(size=n)
                value = metric.most_violated(z, y).value
                assert value + conjugate >= z @ u - 1e-12 * (1.0 + np.abs(z) @ np.abs(u))
        z = rng.normal(size=n) / n
        plane = metric.most_violated(z, y)
        g = plane.gradient(y)
        assert plane.value + metric.conjugate(g, y) == pytest.approx(
            z @ g, abs=1e-13 * (1.0 + np.abs(z) @ np.abs(g))
        )


@for_each("metric", [PrecisionAt(k=2), RecallAt(k=5), PrecisionAt(k=12), ROCArea()], ids=repr)
def test_infinite_where_the_sums_do_not_fit(metric):
    """Signs and sizes are right, sums of p or of pairs are not."""
    y = np.where(np.arange(12) < 5, 1.0, -1.0)
    u = np.zeros(12)
    u[0] = -1e-9  # one positive flipped, no negative
    assert metric.conjugate(u, y) == np.inf


@pytest.mark.slow
@every_metric
@pytest.mark.parametrize("n, draws", [(3, 4), (12, 2), (200, 1)])
def test_dual_project(metric, n, draws):
    """It lands inside, moves nothing inside, and moves little what is nearly inside."""
    rng = np.random.default_rng([7, n])
    for _ in range(draws):
        y = labels(rng, n)
        if metric.check(int(np.sum(y > 0)), int(np.sum(y < 0))):
            continue
        for size in (1e-3, 1.0, 50.0):
            inside = metric.dual_project(size * rng.normal(size=n), y)
            assert np.isfinite(metric.conjugate(inside, y))
            np.testing.assert_array_equal(metric.dual_project(inside, y), inside)
        u = mixture(rng, metric, y)
        if metric is not FORBIDDING or n < 50:  # for many tables no law may be known
            np.testing.assert_array_equal(metric.dual_project(u, y), u)
        if metric is not FORBIDDING:  # its domain may be flat, where only multiples are looked at
            moved = metric.dual_project(u + 1e-12 * rng.normal(size=n), y)
            # a projection onto a slice moves by no more than what it starts off by, times n where a sum is put right
            np.testing.assert_allclose(moved, u, rtol=0, atol=1e-12 * 20 * n)
            assert metric.conjugate(moved, y) == pytest.approx(metric.conjugate(u, y), abs=1e-10 * n)


def test_dual_project_of_forbidden_tables_takes_the_largest():
    class AtMostOne(Metric):
        def delta(self, b, c, positives, negatives):
            return np.where(np.asarray(b) + c <= 1, 1.0 * b + c, -np.inf)

    y = np.array([1.0, 1.0, -1.0, -1.0])
    p = np.array([0.5, 0.3, 0.9, 0.8])  # probabilities may sum to one
    inside = AtMostOne().dual_project(-2.0 * y * p, y)
    # dual_project stays 1e-9 inside the largest multiple, so that rounding does not lead out again
    np.testing.assert_allclose(inside, -2.0 * y * p / p.sum(), rtol=1e-8)
    assert AtMostOne().conjugate(inside, y) == pytest.approx(-1.0, rel=1e-8)
