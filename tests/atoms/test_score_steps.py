"""Exact proximal steps of structured hinges in the scores: against planes, linear programs over all labellings, and differences."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from mtldsl.atoms.losses import StructuredHinge
from mtldsl.atoms.metrics import AUC, ErrorRate, FScore, Metric, expectation
from mtldsl.atoms.metrics.batch import Batch
from mtldsl.atoms.metrics.violation import classes_of
from mtldsl.atoms.planes import tied_sums
from mtldsl.atoms.planes.cutting_planes import prox_of_planes
from mtldsl.atoms.planes.threshold_kernel import thresholds
from mtldsl.atoms.planes.tied_sums import TiedSums, reach_of

METRICS = [AUC(), FScore(), FScore(beta=1.3), FScore(beta=2.0), FScore(beta=30.0)]
every_metric = pytest.mark.parametrize("metric", METRICS, ids=repr)


def labels(rng, n, positives):
    return rng.permutation(np.where(np.arange(n) < positives, 1.0, -1.0))


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


def small_cases(rng, count=150):
    for trial in range(count):
        n = int(rng.integers(2, 14))
        y = labels(rng, n, int(rng.integers(1, n)))
        z = rng.normal(size=n) * 10.0 ** rng.uniform(-2.0, 1.0)
        if trial % 3 == 0:
            z = np.round(4.0 * z) / 4.0  # ties
        yield y, z, 10.0 ** rng.uniform(-3.0, 2.0)


@every_metric
def test_the_step_is_that_of_planes(metric):
    rng = np.random.default_rng(0)
    for y, z, step in small_cases(rng):
        found = metric.score_step(z, classes_of(y), step)
        expected = by_planes(metric, z, y, step)
        size = 1.0 + step + np.abs(z).max()
        np.testing.assert_allclose(z + 2.0 * step * y * found.flips, expected, rtol=0, atol=1e-12 * size)
        np.testing.assert_array_equal(
            StructuredHinge(metric).prox(z, y, step), z + 2.0 * step * y * found.flips
        )


@every_metric
def test_what_it_promises_is_the_largest_expectation_over_all_labellings(metric):
    rng = np.random.default_rng(1)
    for y, z, step in small_cases(rng, 60):
        if len(y) > 9:
            continue
        p = metric.score_step(z, classes_of(y), step).flips
        promised = metric.score_step(z, classes_of(y), step).promised
        flips = np.array(list(itertools.product((0.0, 1.0), repeat=len(y))))
        b, c = flips[:, y < 0].sum(axis=1).astype(int), flips[:, y > 0].sum(axis=1).astype(int)
        deltas = metric.table(b, c, int(np.sum(y > 0)), int(np.sum(y < 0)))
        A = np.vstack([flips.T, np.ones(len(flips))])
        solved = linprog(-deltas, A_eq=A, b_eq=np.append(p, 1.0), method="highs-ds")
        if solved.status == 2:  # rounding of p beyond what HiGHS takes
            continue
        assert promised == pytest.approx(-solved.fun, abs=1e-7)  # HiGHS' own tolerance
        assert promised == pytest.approx(-metric.conjugate(-2.0 * y * p, y), abs=1e-12)


@pytest.mark.parametrize("metric", METRICS[1:], ids=repr)
def test_conjugate_without_linear_programs(metric):
    """Thresholds promise what the linear program over tables does, and a labelling that keeps the flip probabilities attains it."""
    rng = np.random.default_rng(2)
    for trial in range(80):
        n = int(rng.integers(2, 40))
        y = labels(rng, n, int(rng.integers(1, n)))
        p = rng.random(n) ** int(rng.integers(1, 4))
        p = (p, np.round(3.0 * p) / 3.0, np.clip(3.0 * p - 1.0, 0.0, 1.0))[trial % 3]
        r, q = p[y > 0], p[y < 0]
        promised = -metric.conjugate(-2.0 * y * p, y)
        assert promised == pytest.approx(expectation.largest_expectation(metric.table, r, q), abs=1e-9)
        b, c, weights = metric.law(r, q)
        assert weights.min() >= 0.0 and weights.sum() == pytest.approx(1.0, abs=1e-14)
        assert weights @ metric.table(b, c, len(r), len(q)) == pytest.approx(promised, abs=1e-14)
        for counts, own in ((c, np.sort(r)[::-1]), (b, np.sort(q)[::-1])):
            assert weights @ counts == pytest.approx(own.sum(), abs=1e-12)
            for k in range(1, len(own)):
                assert weights @ np.minimum(counts, k) >= own[:k].sum() - 1e-12


@every_metric
def test_the_tangent_is_the_derivative(metric):
    rng = np.random.default_rng(3)
    moved = 0
    for y, z, step in small_cases(rng, 240):
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
        X = rng.normal(size=(len(y), 3))
        F = found.half(X)
        assert F.shape == (found.rank, 3)
        expected = X.T @ np.column_stack([found.product(x) for x in X.T])
        np.testing.assert_allclose(F.T @ F, expected, atol=1e-12)
        parts = X[found.alone].T @ X[found.alone]
        for sign, rows in found.signed_rows(lambda S, X=X: S @ X, 2):
            parts += sign * rows.T @ rows
        np.testing.assert_allclose(parts, expected, atol=1e-12)
        moved += found.rank > 0
    assert moved > 40


def a_tangent_of_many_pools(rng, monkeypatch, sparse):
    """That of an F-score step with several pools, `reach` an array or sparse."""
    monkeypatch.setattr(tied_sums, "_MOST_DENSE", 0 if sparse else 10**6)
    y = labels(rng, 400, 90)
    z = np.round(rng.normal(size=400), 1) / 20.0
    found = FScore().score_step(z, classes_of(y), 0.3)
    assert found is not None
    return found.tangent


@pytest.mark.parametrize("seed", range(20))
def test_sums_of_many_groups_need_no_array_of_their_products(seed, monkeypatch):
    dense = a_tangent_of_many_pools(np.random.default_rng(seed), monkeypatch, False)
    tied = a_tangent_of_many_pools(np.random.default_rng(seed), monkeypatch, True)
    if dense.rank == 0:
        return
    X = np.random.default_rng(7).normal(size=(400, 5))
    np.testing.assert_allclose(tied.product(X[:, 0]), dense.product(X[:, 0]), atol=1e-12)
    np.testing.assert_allclose(tied.half(X), dense.half(X), atol=1e-11)
    for step in (2, 7, 1000):
        gram = X[tied.alone].T @ X[tied.alone]
        for sign, rows in tied.signed_rows(lambda S: S @ X, step):
            gram += sign * rows.T @ rows
        np.testing.assert_allclose(gram, dense.half(X).T @ dense.half(X), atol=1e-10)


@pytest.mark.parametrize("jump", [False, True], ids=["", "pools that no group moves"])
@pytest.mark.parametrize("spread", [0.0, 4.0], ids=["alike", "shares and sizes of many orders"])
def test_tied_sums_are_the_factor_of_their_gram_matrix(spread, jump):
    rng = np.random.default_rng(8)
    first, shares, at = np.full(60, -1), np.zeros((60, 2)), 0
    for g in range(60):
        if rng.random() < 0.2:
            continue
        first[g], shares[g, 0] = at, 10.0 ** (spread * rng.random())
        if rng.random() < 0.3:
            shares[g, 1] = 10.0 ** (spread * rng.random())
            at += 1 if not jump else int(rng.integers(1, 4))
    pools = rng.integers(1, 50, size=at + 2).astype(float)
    sizes = 10.0 ** (spread * rng.random(60))
    reach = np.zeros((60, len(pools)))
    for g in np.flatnonzero(first >= 0):
        reach[g, first[g] : first[g] + 2] = shares[g]
    np.testing.assert_array_equal(reach_of(first, shares, len(pools)), reach)
    gram = np.diag(sizes) + (reach / pools) @ reach.T
    tied, Y = TiedSums(sizes, reach, pools), rng.normal(size=(60, 3))
    factor = np.linalg.cholesky(gram)
    np.testing.assert_allclose(tied.innovations(Y), np.linalg.solve(factor, Y), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(tied.solve(Y[:, 0]), np.linalg.solve(gram, Y[:, 0]), rtol=1e-7, atol=1e-10)


@every_metric
@pytest.mark.parametrize("n", [2, 50, 2000])
@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1.0, 1e8])
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


def test_a_start_changes_nothing_but_the_work():
    rng = np.random.default_rng(5)
    y = labels(rng, 400, 90)
    z, classes, metric = rng.normal(size=400) / 40.0, classes_of(y), FScore()
    exact = metric.score_step(z, classes, 0.01).flips
    for near in (np.zeros(400), np.ones(400), rng.random(400), exact):
        np.testing.assert_allclose(metric.score_step(z, classes, 0.01, near).flips, exact, atol=1e-11)


@pytest.mark.parametrize("beta", [1.0, 2.0])
def test_a_rough_step_follows_the_one_nearby_to_first_order(beta):
    rng, metric, left = np.random.default_rng(8), FScore(beta=beta), []
    for _ in range(40):
        n = int(rng.integers(100, 500))
        y = labels(rng, n, int(rng.integers(10, n // 2)))
        z, step = (0.5 * y + rng.normal(size=n)) / n, 10.0 ** rng.uniform(-3.0, 0.0) / n**0.5
        here, moved = metric.score_step(z, classes_of(y), step), z + 1e-3 * rng.normal(size=n) / n
        exact = metric.score_step(moved, classes_of(y), step).flips
        rough = here.flips.copy()
        batch = Batch([classes_of(y)], [0])
        metric.score_steps(moved, batch, np.array([step]), rough, np.ones(1, np.int64), 1e-2)
        assert rough.min() >= 0.0 and rough.max() <= 1.0
        apart = np.linalg.norm(exact - here.flips)
        assert np.linalg.norm(exact - rough) <= 0.5 * apart + 1e-12
        left.append(np.linalg.norm(exact - rough) / (apart + 1e-12))
    assert np.median(left) < 0.03, left


def test_a_rough_step_far_from_the_last_one_is_not_rough():
    rng, metric = np.random.default_rng(9), FScore()
    y = labels(rng, 300, 80)
    z, classes = rng.normal(size=300) / 40.0, classes_of(y)
    exact = metric.score_step(z, classes, 0.01).flips
    # a cold start takes no notice; from far away Newton's steps go on until the last one is short
    for flips, warm, rough, atol in ((np.zeros(300), 0, 1e-2, 1e-11), (rng.random(300), 1, 1e-12, 1e-7)):
        metric.score_steps(z, Batch([classes], [0]), np.array([0.01]), flips, np.array([warm]), rough)
        np.testing.assert_allclose(flips, exact, atol=atol)


def test_who_has_no_exact_step_goes_on_with_planes():
    class Cubed(FScore):
        def delta(self, b, c, positives, negatives):
            return np.asarray(super().delta(b, c, positives, negatives)) ** 3

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


@pytest.mark.parametrize("shift", [1.0, 0.0])
def test_pools_that_grow_and_pools_that_fall_apart_are_the_same(shift):
    """Thresholds are the isotonic ones: those of two neighbours pooled lie between theirs, and no part of a pool would rather lie elsewhere."""
    rng = np.random.default_rng(7)
    for _ in range(60):
        N, K = int(rng.integers(1, 200)), int(rng.integers(1, 250))
        t = np.sort(np.clip(rng.normal(size=N), -1.0, 1.0) * 10.0 ** rng.uniform(-4.0, 0.0))[::-1].copy()
        if shift == 0.0:
            t = np.sort(rng.random(N))[::-1].copy()
        mass = np.append(0.0, np.cumsum(rng.random(K) ** 3 + 1e-3))
        mass /= mass[-1]
        a, u, m = np.arange(K + 5.0, 5.0, -1.0), 10.0 ** rng.uniform(-4.0, 0.0), 40.0 + K
        u = u if shift else 1.0
        b, levels, pools = np.empty(K), np.empty(K), np.empty((K, 6), np.int64)
        sums = np.append(0.0, np.cumsum(t))
        near = np.sort(rng.random(N))[::-1].copy()  # a guess, however wrong, changes no answer
        n = thresholds(t, sums, a, mass, u, shift, m, 2.0, near, b, levels, pools)
        assert np.all(np.diff(levels[:n]) >= 0.0) and pools[0, 0] == 0 and pools[n - 1, 1] == K
        for p in range(n):
            i0, i1 = pools[p, :2]
            areas = [
                np.clip(t - shift * levels[p] - u * mass[i], 0.0, u * (mass[i + 1] - mass[i])).sum()
                for i in range(i0, i1)
            ]
            short = np.cumsum(u * np.diff(mass)[i0:i1] * b[i0:i1] - areas)
            size = 1e-9 * max(u * N, 1e-300)
            assert abs(short[-1]) <= size and np.all(
                short <= size
            )  # what comes first would rather lie lower, if anything
            for i in range(i0, i1):  # b is what the level leaves
                gain = 2.0 * a[i] / ((a[i] + m + np.arange(1.0, N + 1.0)) * (a[i] + m + np.arange(N)))
                least, most = (
                    np.sum(gain > -2.0 * levels[p] * (1.0 + 1e-9)),
                    np.sum(gain >= -2.0 * levels[p] * (1.0 - 1e-9)),
                )
                assert least - 1e-9 <= b[i] <= most + 1e-9
