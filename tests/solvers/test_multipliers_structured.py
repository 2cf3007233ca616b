"""Structured hinges by the method of multipliers: proven optima on every layout, its first phase, and its place among the solvers."""

from itertools import cycle, product

import numpy as np
import pytest

import mtldsl as mtl
from tests.loops import for_each
from tests.models import with_weights
from tests.solvers.test_multipliers import LAYOUTS as ALL_LAYOUTS
from tests.solvers.test_multipliers import PENALTIES, assert_solved

#: samples have no weights here
LAYOUTS = [layout for layout in ALL_LAYOUTS if layout != "weighted"]
METRICS = {"AUC": mtl.metrics.AUC(), "F1": mtl.metrics.FScore(), "F2": mtl.metrics.FScore(beta=2.0)}
METRICS["one a task"] = [METRICS["AUC"], METRICS["F1"], mtl.metrics.FScore(beta=3.0), METRICS["AUC"]]


def problem_of(layout, penalty, metric, intercept, coefficient=20.0):
    tasks, W = with_weights(ALL_LAYOUTS[layout]("sign"), intercept=intercept)
    return mtl.minimize(coefficient * mtl.structured_hinge(W, tasks, metric=metric) + PENALTIES[penalty](W))


#: every layout with intercepts and without; penalties and metrics in turn
CASES = zip(product(LAYOUTS, [False, True]), cycle(PENALTIES), cycle(METRICS), strict=False)


@pytest.mark.slow
@for_each("rows, penalty, metric", CASES)
def test_the_optimum_is_proven_and_that_of_planes(rows, penalty, metric):
    layout, intercept = rows
    problem = problem_of(layout, penalty, METRICS[metric], intercept)
    solution = assert_solved(problem, 1e-7)
    planes = problem.solve(solver="admm", tol=1e-5)
    assert planes.dual_bound <= solution.objective * (1.0 + 1e-9)
    assert solution.dual_bound <= planes.objective * (1.0 + 1e-9)


@pytest.mark.slow
@for_each("scale, coefficient, penalty", [(1e-4, 1e4, mtl.l1_norm), (1e4, 1e-6, mtl.trace_norm), (1.0, 3.0, mtl.l1_norm), (1e4, 1e4, mtl.trace_norm)])  # fmt: skip
def test_units_and_strengths(scale, coefficient, penalty):
    """At a coefficient far too small for any weights, zero is proven."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60, 30)) * scale * 10.0 ** rng.uniform(-1.0, 1.0, 30) + scale * rng.normal(size=30)
    Y = np.where(X[:, :3] @ rng.normal(size=(3, 2)) + scale * rng.normal(size=(60, 2)) > 0, 1.0, -1.0)
    tasks, W = with_weights(mtl.Tasks.shared(X, Y), intercept=True)
    hinge = mtl.structured_hinge(W, tasks, metric=mtl.metrics.FScore())
    # units from 1e-4 to 1e4: the gap, and with it the agreement, that planes reach too
    assert_solved(mtl.minimize(coefficient * hinge + scale * penalty(W)), tol=1e-5)


@for_each("coefficient", [1e-3, 1e3])
def test_ridges_far_from_and_near_to_separable(coefficient):
    """With more features than samples the hinge vanishes, and multipliers are far smaller than C."""
    rng = np.random.default_rng(12)
    X = rng.normal(size=(40, 90))
    tasks, W = with_weights(mtl.Tasks.shared(X, np.where(X[:, :3] > 0.3, 1.0, -1.0)))
    for metric in (mtl.metrics.AUC(), mtl.metrics.FScore()):
        problem = mtl.minimize(coefficient * mtl.structured_hinge(W, tasks, metric=metric) + mtl.ridge(W))
        assert_solved(problem, tol=1e-6, max_iter=1000)


@pytest.mark.slow
def test_one_positive_and_one_negative():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(40, 30))
    Y = np.ones((40, 3))
    Y[:20, 0], Y[0, 1], Y[1:, 2] = -1.0, -1.0, -1.0
    tasks = mtl.Tasks.shared(X, Y)
    for metric in (mtl.metrics.AUC(), mtl.metrics.FScore()):
        for intercept in (False, True):
            W = mtl.Weights(tasks, intercept=intercept)
            assert_solved(
                mtl.minimize(50.0 * mtl.structured_hinge(W, tasks, metric=metric) + mtl.l21_norm(W))
            )


@pytest.mark.slow
def test_it_goes_on_from_planes_and_along_a_path(tmp_path):
    """Witness of the F-score in the saved proof: a random labelling that thresholds give."""
    problem = problem_of("shared", "l21", mtl.metrics.FScore(), True)
    planes = problem.solve(solver="admm", tol=1e-3)
    solution = assert_solved(problem, warm_start=planes)
    assert mtl.verify_proof(solution.certificate.save(tmp_path / "proof", data=True)).confirmed
    tasks, C = ALL_LAYOUTS["separate"]("sign"), mtl.Parameter(1.0, name="C")
    W = mtl.Weights(tasks)
    model = mtl.minimize(C * mtl.structured_hinge(W, tasks, metric=mtl.metrics.AUC()) + mtl.l1_norm(W))
    for solution in model.path(C, [1.0, 5.0, 25.0], solver="multipliers", tol=1e-6):
        assert solution.status == "optimal"
