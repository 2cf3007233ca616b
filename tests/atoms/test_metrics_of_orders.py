"""Metrics of orders: oracles against the reference's, scores against scikit-learn, orders that slopes tell."""

import numpy as np
import pytest
from sklearn import metrics as sk

import mtldsl as mtl
from mtldsl.atoms.metrics import NDCG, AveragePrecision, PartialAUC
from mtldsl.errors import ModelError
from mtldsl.reference.planes import most_violated
from mtldsl.solution.score import score_of
from tests.atoms.metric_data import labels, scores
from tests.loops import for_each

AREAS = [PartialAUC(0.6), PartialAUC(0.9, 0.3), PartialAUC(0.5, 0.25), PartialAUC(1.0), PartialAUC(0.3, 0.29)]
ALL = [*AREAS, AveragePrecision(), NDCG()]
every_metric = for_each("metric", ALL, ids=repr)


def some_scores(rng, n):
    return scores(rng, n, rng.choice([1e-3, 0.1, 0.3, 1.0, 1e3]), rng.choice(["normal", "ties"]))


@pytest.mark.slow
@every_metric
@for_each("n", [7, 40, 300])
def test_oracle_against_the_references_dynamic_program(metric, n):
    rng = np.random.default_rng(n)
    for positives in (1, 2, n // 3, n - 1):
        y = labels(rng, n, positives)
        for _ in range(4):
            z = some_scores(rng, n)
            here, there = metric.most_violated(z, y), most_violated(z, y, metric)
            size = 1.0 + np.abs(there.slope) @ np.abs(z)
            assert here.value == pytest.approx(max(there.value, 0.0), rel=1e-12, abs=1e-13 * size)


@every_metric
def test_a_slope_tells_its_order(metric):
    rng = np.random.default_rng(3)
    for n in (2, 5, 30, 200):
        y = labels(rng, n)
        plane = metric.most_violated(some_scores(rng, n), y)
        ranks, places, again = metric.orders_of(plane.slope[None, :], y)
        assert np.array_equal(again[0], plane.slope) and np.array_equal(
            np.sort(places[0]), np.arange(np.sum(y < 0))
        )
        assert metric.deltas(ranks, int(np.sum(y < 0)))[0] == pytest.approx(plane.delta, abs=1e-14)
        assert metric.conjugate(plane.slope, y) == pytest.approx(-plane.delta, abs=1e-14)
        if n > 2:
            with pytest.raises(ValueError, match="not the slope of an order"):
                metric.orders_of(plane.slope[None, :] + 0.3 / n * rng.normal(size=n), y)


@pytest.mark.slow
@every_metric
def test_conjugates_of_many_samples_are_bounds(metric):
    """No mixture of planes promises less than -conjugate says of its mean, whether few samples or many."""
    rng = np.random.default_rng(4)
    for n in (6, 20, 150):
        y = labels(rng, n, max(1, n // 3))
        planes = [metric.most_violated(0.3 * rng.exponential() * rng.normal(size=n), y) for _ in range(4)]
        weights = rng.dirichlet(np.ones(4))
        u = weights @ np.array([plane.slope for plane in planes])
        promised = -metric.conjugate(u, y)
        assert np.isfinite(promised) and np.array_equal(metric.dual_project(u, y), u)
        for _ in range(8):  # Fenchel-Young
            z = rng.exponential() * rng.normal(size=n)
            assert metric.most_violated(z, y).value >= u @ z + promised - 1e-11 * (1 + np.abs(u) @ np.abs(z))
        if n <= 20:
            assert promised >= weights @ [plane.delta for plane in planes] - 1e-9


@for_each("kind", ["apart", "ties"])
def test_scores_are_scikit_learns(kind):
    rng = np.random.default_rng(6)
    for n in (5, 20, 101):
        y, z = labels(rng, n, n // 3), rng.normal(size=n)
        z = np.round(2 * z) if kind == "ties" else z
        for p in (0.07, 0.3, 0.5):
            standard = sk.roc_auc_score(y > 0, z, max_fpr=p)  # McClish's
            area = (p * p / 2 + (2 * standard - 1) * (p - p * p / 2)) / p
            assert score_of(PartialAUC(p), z, y) == pytest.approx(area)
        low, high = (p * score_of(PartialAUC(p), z, y) for p in (0.2, 0.7))
        assert score_of(PartialAUC(0.7, 0.2), z, y) == pytest.approx((high - low) / 0.5)
        assert score_of(AveragePrecision(), z, y) == pytest.approx(sk.average_precision_score(y > 0, z))
        assert score_of(NDCG(), z, y) == pytest.approx(
            sk.ndcg_score((y > 0)[None, :].astype(float), z[None, :])
        )


@for_each("rates", [(0.0, 0.0), (0.2, 0.3), (1.1, 0.0), (0.5, -0.1), ("0.1", 0.0), (np.nan, 0.0)])
def test_rates_that_are_none(rates):
    with pytest.raises(ModelError, match="0 <= min_fpr < max_fpr <= 1"):
        PartialAUC(*rates)


@pytest.mark.slow
@pytest.mark.parametrize("metric", [PartialAUC(0.9, 0.3), AveragePrecision(), NDCG()], ids=repr)
def test_a_solution_is_proven_and_agrees_with_the_reference(metric, tmp_path):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(24, 4))
    tasks = mtl.Tasks.shared(X, np.where(X @ rng.normal(size=(4, 2)) + rng.normal(size=(24, 2)) > 0.7, 1, -1))
    W = mtl.Weights(tasks)
    problem = mtl.minimize(mtl.l21_norm(W) + 20 * mtl.structured_hinge(W, tasks, metric=metric))
    solution = problem.solve()
    assert solution.status == "optimal" and problem.cross_check(solution).agrees
    verdict = mtl.verify_proof(solution.certificate.save(tmp_path / "found"), tasks)
    assert verdict.confirmed and not verdict.unchecked
