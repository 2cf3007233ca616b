"""Exact proximal steps of structured hinges in the scores: against planes, conjugates, and differences."""

import numpy as np
import pytest

from mtldsl.atoms.losses import StructuredHinge
from mtldsl.atoms.metrics import AUC, ErrorRate, FScore, Metric
from mtldsl.atoms.metrics.metric import classes_of
from mtldsl.atoms.structured_prox.polytope import prox_of_planes
from tests.atoms.metric_data import Cubed, labels
from tests.loops import for_each

METRICS = [AUC(), FScore(), FScore(beta=1.3), FScore(beta=2.0), FScore(beta=30.0)]
every_metric = for_each("metric", METRICS, ids=repr)


def by_planes(metric, z, y, step):
    def oracle(x):
        plane = metric.most_violated(x, y)
        return plane.gradient(y), plane.delta

    return prox_of_planes(oracle, z, step)


def gap(metric, z, y, step, found):
    """The duality gap of a step, relative to the terms that cancel in it."""
    p = found.flips
    x = z + 2.0 * step * y * p
    plane = metric.most_violated(x, y)
    terms = plane.value, 4.0 * step * (p @ p), 2.0 * (y * p) @ z, -found.promised
    cancels = plane.delta + 2.0 * np.abs(x[plane.flipped]).sum() + 2.0 * np.abs(p) @ np.abs(z)
    return sum(terms) / max(sum(map(abs, terms)) + cancels, 1e-300)


def small_cases(rng, count):
    for trial in range(count):
        n = int(rng.integers(2, 14))
        y = labels(rng, n, int(rng.integers(1, n)))
        z = rng.normal(size=n) * 10.0 ** rng.uniform(-2.0, 1.0)
        if trial % 3 == 0:
            z = np.round(4.0 * z) / 4.0  # ties
        yield y, z, 10.0 ** rng.uniform(-3.0, 2.0)


@pytest.mark.slow
@every_metric
def test_the_step_is_that_of_planes(metric):
    rng = np.random.default_rng(0)
    for y, z, step in small_cases(rng, 50):
        found = metric.score_step(z, classes_of(y), step)
        expected = by_planes(metric, z, y, step)
        size = 1.0 + step + np.abs(z).max()
        np.testing.assert_allclose(z + 2.0 * step * y * found.flips, expected, rtol=0, atol=1e-12 * size)
        np.testing.assert_array_equal(
            StructuredHinge(metric).prox(z, y, step), z + 2.0 * step * y * found.flips
        )
        promised = -metric.conjugate(-2.0 * y * found.flips, y)
        assert found.promised == pytest.approx(promised, abs=1e-12)


@pytest.mark.slow
@every_metric
def test_the_tangent_is_the_derivative(metric):
    rng = np.random.default_rng(3)
    moved = 0
    for y, z, step in small_cases(rng, 75):
        if len(np.unique(z)) < len(z):
            continue  # ties: there the step has kinks
        d, h = rng.normal(size=len(y)), 1e-7 * np.abs(z).max()
        classes = classes_of(y)

        def multiplier(at, classes=classes, step=step, y=y):
            return -2.0 * step * y * metric.score_step(at, classes, step).flips

        found = metric.score_step(z, classes, step).tangent
        sides = [(multiplier(z + s * h * d) - multiplier(z)) / (s * h) for s in (1.0, -1.0)]
        if np.abs(sides[0] - sides[1]).max() > 1e-5:
            continue  # at a kink
        product = found.product(d)
        np.testing.assert_allclose(product, sides[0], atol=2e-6 * (1.0 + step / np.abs(z).max()))
        np.testing.assert_allclose(found.product(product), product, atol=1e-12)  # a projection
        moved += found.rank > 0
    assert moved > 12


@for_each("step, scale", [(1e-4, 1e-3), (1e-3, 1.5e-3), (1e-2, 1.0)])
def test_the_tangents_rows_make_its_product(step, scale):
    """X^T (I - J) X: by all rows of `half`, by products, and by signed rows a few at a time."""
    rng, n = np.random.default_rng(0), 1500
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    z, X = y * rng.normal(0.3 / n, scale, size=n), rng.normal(size=(n, 4))
    for metric in (FScore(), AUC()):
        tangent = metric.score_step(z, classes_of(y), step).tangent
        half = tangent.half(X)
        assert len(half) == tangent.rank
        expected = half.T @ half
        products = X.T @ np.column_stack([tangent.product(column) for column in X.T])
        signed = X[tangent.alone].T @ X[tangent.alone]
        for sign, rows in tangent.signed_rows(lambda sums: sums @ X, 7):
            signed += sign * (rows.T @ rows)
        for found in (products, signed):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.slow
@for_each("metric", METRICS, ids=repr)
@for_each("n", [2, 50, 2000])
@for_each("scale", [1e-8, 1e-3, 1.0, 1e8])
def test_the_gap_is_rounding_at_any_size_and_scale(metric, n, scale):
    rng = np.random.default_rng([4, n])
    for positives in sorted({1, max(1, n // 5), n - 1}):  # one positive, one negative
        y = labels(rng, n, positives)
        for step in (1e-6, 1e-2 * n * scale, 10.0):
            z = scale * (0.5 * y + rng.normal(size=n))
            for at in (z, scale * np.round(8.0 * z / scale) / 8.0, np.zeros(n)):
                found = metric.score_step(at, classes_of(y), step)
                if found is None:  # where Delta, at most 1, is lost beside rounding, planes take over
                    assert max(step * n, np.abs(at).max()) > 1e7
                    continue
                assert found.flips.min() >= 0.0 and found.flips.max() <= 1.0
                # flips are found as differences of numbers near 1: to eps, relatively to eps over the largest
                rounding = 10.0 * np.finfo(float).eps * (n + 1.0 / found.flips.max(initial=1e-300))
                assert abs(gap(metric, at, y, step, found)) <= max(1e-12, rounding)


def test_who_has_no_exact_step_goes_on_with_planes():
    class OwnAUC(AUC):
        def delta(self, b, c, positives, negatives):
            return 0.5 * super().delta(b, c, positives, negatives)

    rng = np.random.default_rng(6)
    for metric in (FScore(beta=0.5), ErrorRate(), Cubed(), OwnAUC()):
        assert not metric.exact_prox
        y = labels(rng, 12, 5)
        z = rng.normal(size=12)
        found = StructuredHinge(metric).prox(z, y, 0.1)
        np.testing.assert_allclose(found, by_planes(metric, z, y, 0.1), atol=1e-12)
    assert Cubed.law is Metric.law and FScore().exact_prox
