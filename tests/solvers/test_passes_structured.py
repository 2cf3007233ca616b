"""Structured hinges whose rows are elsewhere: planes that are exact, the same optimum as with the rows here, and a proof."""

from itertools import cycle

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.atoms.metrics.metric import Metric
from mtldsl.distributed.distributed_tasks import DistributedTasks
from mtldsl.errors import ModelError
from tests.loops import for_each
from tests.solvers.test_passes import PARTS

METRICS = [
    mtl.metrics.FScore(), mtl.metrics.FScore(0.5), mtl.metrics.AUC(), mtl.metrics.ROCArea(), mtl.metrics.ErrorRate(), mtl.metrics.PrecisionAt(9), mtl.metrics.RecallAt(9),
]  # fmt: skip
NAMES = [repr(metric) for metric in METRICS]


class WorstClass(Metric):
    """A user's own."""

    def delta(self, b, c, positives, negatives):
        return np.maximum(b / negatives, c / positives)


class Careless(WorstClass):
    def best_counts(self, of_negatives, of_positives, positives, negatives):
        return 0, 0


def tables(kind: str = "table", ties: bool = False):
    rng = np.random.default_rng(5)
    n, d, m = 160, 5, 3
    X = rng.normal(size=(n, d)) * np.linspace(0.5, 2.0, d) + 0.2
    X = np.round(X) if ties else X
    Y = np.where(X @ rng.normal(size=(d, m)) + 1.5 * rng.normal(size=(n, m)) > 0.8, 1.0, -1.0)
    if kind == "missing":
        Y[rng.random(Y.shape) < 0.2] = np.nan
    if kind == "grouped":
        return mtl.Tasks.grouped(X, Y[:, 0], rng.permutation(np.repeat(np.arange(3), [60, 50, 50])))
    if kind == "sparse":
        return mtl.Tasks.shared(sparse.csr_array(X * (rng.random(X.shape) < 0.5)), Y)
    return mtl.Tasks.shared(X, Y)


def problem(tasks, metric, norm=mtl.l21_norm, intercept=False, C=1.0, **options):
    W = mtl.Weights(tasks, intercept=intercept)
    C = 0.02 * C if metric.name == "ErrorRate" else C
    return mtl.minimize(0.1 * norm(W) + C * mtl.structured_hinge(W, tasks, metric=metric, **options))


def both(tasks, parts=PARTS):
    return DistributedTasks.cut(tasks, parts), tasks


@pytest.mark.slow
@for_each("ties", [False, True])
@for_each("kind", ["table", "missing", "grouped", "sparse"])
@for_each("metric", METRICS, ids=NAMES)
def test_what_a_proof_asks_for_is_that_of_rows_here(metric, kind, ties):
    tasks, found = tables(kind, ties), []
    for one in both(tasks):
        form = problem(one, metric, intercept=not metric.fixes_positives).form()
        (loss,), rng = form.losses, np.random.default_rng(1)
        x = {name: np.round(0.2 * rng.normal(size=shape), 1) for name, shape in form.shapes.items()}
        u = loss.dual_project(loss.gradient(z := loss.predictions(x)))
        told = [loss.value(z), loss.conjugate(u), loss.conjugate(0.3 * u), loss.along(u, z)]
        for dual in (u, loss.balanced(u)):
            pulls = form.zeros()
            loss.add_adjoint(dual, pulls)
            told += [loss.conjugate(dual), *pulls.values()]
        told += [loss.absolute_sums(u), loss.work(u, x)]
        found.append((told, loss.magnitude(loss.balanced(u), x)))
    (away, bound), (here, _) = found
    # rows here, of the loss and the multipliers that came last: what the absolute values add up to, which both bound from above
    columns = zip(
        tasks.inputs, tasks.per_task(np.abs(np.asarray(loss.balanced(u)))), loss.map.forward(x).T, strict=True
    )
    size = sum(float(a @ (abs(X_i) @ np.abs(w))) for X_i, a, w in columns)
    if ties and metric.labellings:
        # which of equal scores are flipped is nobody's to say: what they are worth is
        away, here = ([told[0], told[3] - told[1]] for told in (away, here))
    for a, b in zip(away, here, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)
    assert bound >= size * (1 - 1e-12)


@pytest.mark.slow
@for_each(
    "metric, norm", zip(METRICS, cycle([mtl.ridge, mtl.l21_norm, mtl.trace_norm]), strict=False), ids=NAMES
)
def test_the_optimum_is_that_of_rows_here(metric, norm):
    for intercept in (False, True)[: 1 + (not metric.fixes_positives)]:
        away, near = both(tables())
        there = problem(away, metric, norm, intercept).solve(tol=1e-4)
        here = problem(near, metric, norm, intercept).solve(tol=1e-6)
        assert there.status == here.status == "optimal" and there.solver == "planes_by_passes"
        assert abs(there.objective - here.objective) <= 1.1e-4 * abs(here.objective)
        assert there.iterations <= 60
        for look in there.history:
            assert look["dual_bound"] <= here.objective * (1 + 1e-9)
            assert look["objective"] >= here.dual_bound * (1 - 1e-9)


@pytest.mark.slow
def test_a_metric_a_task_and_constraints_and_means():
    metrics = [mtl.metrics.AUC(), mtl.metrics.FScore(), mtl.metrics.ROCArea()]
    found = []
    for one in both(tables("grouped")):
        W = mtl.Weights(one)
        loss = mtl.structured_hinge(W, one, metric=metrics, mean=True)
        found.append(mtl.minimize(90 * loss + 0.1 * mtl.l1_norm(W), [W >= 0]).solve(tol=1e-5))
    assert [one.status for one in found] == ["optimal"] * 2
    np.testing.assert_allclose(*[one.objective for one in found], rtol=2.2e-5)


@pytest.mark.slow
def test_a_metric_of_ones_own_is_checked_where_the_rows_are():
    away, here = both(tables())
    there, known = (problem(one, WorstClass()).solve(tol=1e-5) for one in (away, here))
    np.testing.assert_allclose(there.objective, known.objective, rtol=2.2e-5)
    with pytest.raises(ModelError, match=r"Careless.*best_counts or limits found a labelling"):
        problem(away, Careless()).solve()


def test_who_takes_it_and_what_moves():
    away, here = both(tables())
    said = problem(away, mtl.metrics.AUC()).explain()
    assert said.chosen == "planes_by_passes"
    assert "scores of every task go to one worker" in " ".join(str(said).split())
    assert "planes_by_passes" not in str(problem(here, mtl.metrics.AUC()).explain())
    W = mtl.Weights(away)
    two = mtl.structured_hinge(W, away, metric=mtl.metrics.AUC()) + mtl.structured_hinge(W, away)
    with pytest.raises(ModelError, match="is a second loss"):
        mtl.minimize(two + mtl.ridge(W)).solve()
