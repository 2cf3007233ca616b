"""Structured hinges in the reference: the statement in full against enumeration, the planes against the statement in
full, and problems whose optima were established elsewhere.
"""

import re
from dataclasses import replace
from itertools import cycle
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest

import mtldsl as mtl
import mtldsl.reference.metrics as structured_module
from mtldsl.atoms.metrics import AUC, ErrorRate, FScore, Metric, PrecisionAt, RecallAt, ROCArea
from mtldsl.errors import ModelError
from mtldsl.reference import backends
from mtldsl.reference.compile import to_cvxpy
from mtldsl.reference.model import SETTINGS
from mtldsl.reference.planes import most_violated
from mtldsl.reference.registry import FORMULAS
from mtldsl.reference.solve import solve_reference
from mtldsl.reference.solver import SOLVER
from tests.atoms.metric_data import TOP, WHOLE_BOX, Power, value_of_planes
from tests.known_optima import STRUCTURED, structured
from tests.loops import for_each
from tests.models import shared, with_weights


class Reversed(Metric):
    """A user's own metric of rankings, which the reference cannot know."""

    labellings = False


every_metric = for_each("metric", [*WHOLE_BOX, *TOP, Power(), Power(power=0.5), ROCArea()], ids=repr)
#: one of every kind
METRICS_TO_SOLVE = [FScore(), AUC(), ErrorRate(), PrecisionAt(2), RecallAt(3), ROCArea(), Power()]


def stated(metric, z, y) -> float:
    hinge = SimpleNamespace(metric=metric)
    return float(FORMULAS["structured_hinge"](cp.Constant(z), y, None, hinge).value)


def points(n=7):
    """(z, y): scores of several sizes, with ties and zeros, and classes of several sizes."""
    rng = np.random.default_rng(0)
    for positives in (1, 3, n - 1):
        y = np.where(np.arange(n) < positives, 1.0, -1.0)[rng.permutation(n)]
        for size in (0.0, 0.05, 0.3, 2.0):
            yield size * rng.normal(size=n), y
        yield np.round(0.2 * rng.normal(size=n), 1), y
        yield 0.2 * y, y


@pytest.mark.slow
@every_metric
def test_statement_and_oracle_are_the_highest_plane(metric):
    for z, y in points():
        expected = value_of_planes(metric, z, y)
        assert expected >= 0.0
        assert stated(metric, z, y) == pytest.approx(expected, rel=1e-13, abs=1e-14)
        assert most_violated(z, y, metric).value == pytest.approx(expected, rel=1e-13, abs=1e-14)


def problem_of(metric, coefficient=2.0, n=30, seed=0, regularizer=mtl.l1_norm, intercept=False, **options):
    tasks, W = with_weights(shared(seed, n=n, labels="sign"), intercept=intercept)
    return mtl.minimize(
        coefficient * mtl.structured_hinge(W, tasks, metric=metric) + regularizer(W), **options
    )


@pytest.fixture
def by_planes(monkeypatch):
    """Every task is too large to be stated."""
    none = replace(structured_module.SETTINGS, stated_rows=0, stated_pairs=0)
    monkeypatch.setattr(structured_module, "SETTINGS", none)


@pytest.mark.slow
@pytest.mark.parametrize(
    "metric, regularizer",
    list(zip(METRICS_TO_SOLVE, cycle([mtl.l1_norm, mtl.l21_norm, mtl.trace_norm]), strict=False)),
    ids=lambda value: getattr(value, "__name__", None) or repr(value),
)
def test_planes_end_where_the_statement_in_full_does(metric, regularizer, request):
    coefficient = 0.4 if isinstance(metric, ErrorRate) else 6.0
    form = problem_of(metric, coefficient, n=14, regularizer=regularizer).form()
    full = to_cvxpy(form, split=True)
    assert not full.is_relaxation
    expected = solve_reference(form, model=full)
    request.getfixturevalue("by_planes")
    model = to_cvxpy(form, split=True)
    assert model.is_relaxation
    point = solve_reference(form, model=model)
    assert point.objective == pytest.approx(expected.objective, rel=1e-8)
    assert model.objective_value(expected.blocks) == pytest.approx(expected.objective, rel=1e-12)
    assert full.objective_value(point.blocks) == pytest.approx(point.objective, rel=1e-12)
    assert np.abs(point.blocks["W"]).max() > 1e-3  # the hinges decide, not the norm alone


def test_a_backend_out_of_iterations_is_not_asked_forever(by_planes, monkeypatch):
    real, asked = backends.solve, []
    monkeypatch.setattr(backends, "solve", lambda *given, **named: asked.append(1) or real(*given, **named))
    point = solve_reference(problem_of(FScore(), 4.0).form(), "scs", max_iter=5)
    assert point.status != "optimal" and np.isfinite(point.objective) and 1 <= len(asked) <= 20


def test_rounds_that_run_out_are_said(by_planes, monkeypatch):
    monkeypatch.setattr("mtldsl.reference.model.SETTINGS", replace(SETTINGS, solve_rounds=3))
    form = problem_of(FScore(), 4.0).form()
    point = solve_reference(form)
    assert point.status == "user_limit" and SETTINGS.solve_rounds > 3
    model = to_cvxpy(form)
    assert point.objective == pytest.approx(model.objective_value(point.blocks), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["clarabel", "scs", "osqp"])
def test_backends_agree_on_planes(backend):
    # OSQP runs out of iterations, and says so, where a ranking's planes are among them
    metrics = [FScore(), AUC(), RecallAt(0.4), FScore() if backend == "osqp" else ROCArea()]
    form = problem_of(metrics, n=50).form()
    point = solve_reference(form, backend)
    assert point.backend == backend and point.status == "optimal" and point.iteration > 0
    assert point.objective == pytest.approx(solve_reference(form).objective, rel=1e-7)


@pytest.mark.by_default("ROCArea()-30")
@pytest.mark.parametrize("metric, n", list(zip(METRICS_TO_SOLVE, cycle([50, 30]), strict=False)), ids=repr)
def test_selectable_as_a_solver(metric, n):
    """In full and by planes, the multipliers prove the point optimal."""
    coefficient = 0.2 if isinstance(metric, ErrorRate) else 4.0
    solution = problem_of(metric, coefficient, n=n).solve(solver="cvxpy", tol=1e-6)
    assert solution.status == "optimal" and abs(solution.gap) <= 1e-6


@pytest.mark.slow
def test_every_task_has_the_metric_that_it_was_given():
    """Four tasks apart under the l1 norm: the optimum is the sum of four optima."""
    metrics = [FScore(beta=2.0), AUC(), Power(), ROCArea()]
    tasks = shared(3, n=30, labels="sign")
    total = 0.0
    for i, metric in enumerate(metrics):
        one, w = with_weights(tasks.select(i))
        objective = 3.0 * mtl.structured_hinge(w, one, metric=metric) + mtl.l1_norm(w)
        total += solve_reference(mtl.minimize(objective).form()).objective
    W = mtl.Weights(tasks)
    objective = 3.0 * mtl.structured_hinge(W, tasks, metric=metrics) + mtl.l1_norm(W)
    assert solve_reference(mtl.minimize(objective).form()).objective == pytest.approx(total, rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("n", [30, 50])
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_intercepts_constraints_and_other_losses_stand_beside(n):
    tasks, W = with_weights(shared(4, n=n, labels="sign"), intercept=True)
    hinges = mtl.structured_hinge(W, tasks, metric=FScore(), mean=True)
    objective = 20.0 * hinges + 0.1 * mtl.squared_hinge_loss(W, tasks) + 0.1 * mtl.l21_norm(W)
    form = mtl.minimize(objective, subject_to=[W >= -0.2, W <= 0.3]).form()
    model = to_cvxpy(form, split=True)
    point = solve_reference(form, model=model)
    assert point.objective == pytest.approx(form.value(point.blocks), rel=1e-12)
    assert model.violation(point.blocks) <= 1e-8
    assert len(point.loss_duals) == 2 and point.loss_duals[1].shape == (tasks.n_samples,)
    plain = to_cvxpy(form)
    plain.solve(solver="CLARABEL", tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)
    assert plain.problem.value == pytest.approx(point.objective, rel=1e-7)
    assert plain.duals() is None


def test_a_metric_under_a_taken_name_keeps_its_definition():

    class FScore(Metric):  # not the language's
        def delta(self, b, c, positives, negatives):
            return (b + c) / (positives + negatives)

    z, y = np.array([0.1, -0.2, 0.0]), np.array([1.0, 1.0, -1.0])
    assert stated(FScore(), z, y) == pytest.approx(value_of_planes(FScore(), z, y), rel=1e-13)


def test_a_ranking_metric_without_a_formula_is_refused():
    form = problem_of(Reversed()).form()
    refusal = SOLVER.refuses(form)
    assert "metric=Reversed()" in refusal and "no formula for the metric Reversed()" in refusal
    assert SOLVER.refuses(problem_of(Power()).form()) is None
    with pytest.raises(ModelError, match=r"no formula for the metric Reversed\(\)"):
        to_cvxpy(form)


@pytest.mark.by_default("auc_trace_n10-as it comes")
@pytest.mark.parametrize(
    "name, way", list(zip(STRUCTURED, cycle(["as it comes", "by planes"]), strict=False))
)
def test_known_optima(name, way, request):
    given, problem = structured(name)
    if way == "by planes":
        request.getfixturevalue("by_planes")
    point = solve_reference(problem.form())
    assert point.objective == pytest.approx(given["optimal_objective"], rel=1e-8)
    model = to_cvxpy(problem.form())
    at = model.objective_value({"W": np.array(given["W_approx"])})
    assert at == pytest.approx(given["optimal_objective"], rel=1e-6)


def test_a_relaxation_says_so():
    rng = np.random.default_rng(0)
    for n, said in ((20, "states all of it"), (60, r"call .solve\(\), not .problem.solve\(\)")):
        X = rng.normal(size=(n, 3))
        tasks, W = with_weights(mtl.Tasks.shared(X, np.where(X[:, :1] > 0, 1.0, -1.0)))
        model = mtl.minimize(mtl.l1_norm(W) + mtl.structured_hinge(W, tasks)).to_cvxpy()
        assert re.search(said, repr(model))
