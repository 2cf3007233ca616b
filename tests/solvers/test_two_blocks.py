"""Structured losses under a norm by ADMM on planes: held to established optima and to the reference, and proven."""

from functools import cache
from itertools import cycle, product

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.metrics import AUC, ErrorRate, FScore, PrecisionAt, RecallAt, ROCArea
from tests.known_optima import STRUCTURED, structured
from tests.loops import for_each
from tests.models import separate, shared
from tests.solvers.test_passes_structured import WorstClass

METRICS = [
    FScore(), FScore(beta=0.5), AUC(), ROCArea(), ErrorRate(), PrecisionAt(0.5), RecallAt(0.5),
    WorstClass(),
]  # fmt: skip
NORMS = {"l1": mtl.l1_norm, "l21": mtl.l21_norm, "trace": mtl.trace_norm, "ridge": mtl.ridge}
LAYOUTS = {
    "shared": lambda: shared(1, n=20, labels="sign"),
    "missing": lambda: shared(2, n=16, labels="sign", missing=0.3),
    "sparse": lambda: shared(3, n=16, labels="sign", density=0.5),
    "separate": lambda: separate(4, labels="sign"),
    "sparse separate": lambda: separate(5, labels="sign", density=0.6),
}


def weight(metric) -> float:
    """A coefficient at which the loss matters beside a norm."""
    return 0.2 if isinstance(metric, ErrorRate) else 4.0


def problem_of(tasks, metric, regularizer, intercept=False, coefficient=None, mean=False):
    W = mtl.Weights(tasks, intercept=intercept)
    c = weight(metric) if coefficient is None else coefficient
    return mtl.minimize(c * mtl.structured_hinge(W, tasks, metric=metric, mean=mean) + regularizer(W))


@cache
def reference(layout, metric, norm, intercept):  # metrics are compared by identity: METRICS' own
    problem = problem_of(LAYOUTS[layout](), metric, NORMS[norm], intercept)
    return problem.solve(solver="cvxpy", tol=1e-6).objective


def assert_solved(problem, expected, tol=1e-6, **options):
    """Certified to tol by a fast solver, at the optimum found elsewhere."""
    solution = problem.solve(tol=tol, **options)
    assert solution.status == "optimal" and solution.solver != "cvxpy", solution
    # proven again here, from the definition of the gap
    assert solution.objective == pytest.approx(problem.form().value(solution.blocks), rel=1e-12)
    assert solution.objective - solution.dual_bound <= tol * abs(solution.objective)
    assert solution.objective == pytest.approx(expected, rel=max(2 * tol, 1e-8))
    return solution


# -------------------------------------------------------------------------------------- established optima
@for_each("name", STRUCTURED)
def test_known_optima(name):
    given, problem = structured(name)
    solution = problem.solve(solver="admm", tol=1e-9)
    assert solution.status == "optimal" and solution.solver == "admm", solution
    assert solution.objective == pytest.approx(given["optimal_objective"], rel=1e-8)
    assert solution.dual_bound <= given["optimal_objective"] * (1 + 1e-10)


# --------------------------------------------------------------------- every metric under every norm and layout
#: (metric, norm, (layout, intercept where it takes one, tol, solver))
CASES = [
    *zip(METRICS[::2], cycle(["ridge", "l21"]), cycle([("shared", True, 1e-6, "auto")])),
    *zip(METRICS, 4 * ["l1"] + 4 * ["trace"], cycle([(one, True, 1e-6, "auto") for one in [*LAYOUTS][1:]])),
    *zip(METRICS, cycle(["l21", "trace"]), cycle([("shared", False, 1e-9, "auto")])),
    # ten digits beside an l1 norm
    *zip(METRICS, cycle(["l1"]), cycle([("shared", False, 1e-10, "auto"), ("missing", True, 1e-10, "auto")])),
    *product(METRICS[::3], ["ridge"], [("separate", False, 1e-9, one) for one in ("dual_ascent", "admm")]),
]


@pytest.mark.slow
@for_each("metric, norm, how", CASES)
def test_every_metric_norm_and_layout(metric, norm, how):
    layout, intercept, tol, solver = how
    intercept = intercept and not metric.fixes_positives
    problem = problem_of(LAYOUTS[layout](), metric, NORMS[norm], intercept)
    solution = assert_solved(problem, reference(layout, metric, norm, intercept), tol=tol, solver=solver)
    assert np.abs(solution.W).max() > 1e-3  # the hinges decide, not the norm alone


# --------------------------------------------------------------------------------------------- high accuracy
def test_structure_is_exact_in_the_answer():
    tasks = LAYOUTS["shared"]()
    rows = problem_of(tasks, FScore(), lambda W: 48.0 * mtl.l21_norm(W)).solve(tol=1e-8).W
    assert 0 < np.sum(np.all(rows == 0, axis=1)) < 6
    rank = np.linalg.matrix_rank(
        problem_of(tasks, AUC(), lambda W: 60.0 * mtl.trace_norm(W)).solve(tol=1e-8).W, tol=1e-10
    )
    assert 0 < rank < 4


# --------------------------------------------------------------------------------------------- warm starts
@pytest.mark.slow
@for_each(
    "solver, norm, metric",
    [("admm", "l1", FScore()), ("admm", "trace", AUC()), ("dual_ascent", "ridge", ROCArea())],
)
def test_a_path_ends_where_each_solve_does(solver, norm, metric):
    lam, values = mtl.Parameter(1.0, name="lam"), [2.0, 2.5, 3.2, 30.0]
    problem = problem_of(shared(8, n=20, labels="sign"), metric, NORMS[norm], coefficient=lam)
    for value, on_path in zip(values, list(problem.path(lam, values, solver=solver, tol=1e-6)), strict=True):
        lam.value = value
        best = problem.solve(solver="cvxpy", tol=1e-6).objective
        assert on_path.status == "optimal" and on_path.objective == pytest.approx(best, rel=2e-6), value


@pytest.mark.slow
@for_each("solver, norm", [("admm", "l1"), ("dual_ascent", "ridge")])
def test_planes_of_other_data_or_another_metric_are_not_kept(solver, norm):
    """A start from another problem of the same shapes gives its point alone: its planes would be wrong here."""
    first = problem_of(shared(1, n=20, labels="sign"), FScore(), NORMS[norm]).solve(solver=solver, tol=1e-6)
    for tasks, metric in [
        (shared(9, n=20, labels="sign"), FScore()),
        (shared(1, n=20, labels="sign"), AUC()),
        (shared(9, n=24, labels="sign"), FScore(beta=2.0)),
    ]:
        problem = problem_of(tasks, metric, NORMS[norm])
        warm = problem.solve(solver=solver, tol=1e-8, warm_start=first)
        cold = problem.solve(solver=solver, tol=1e-8)
        assert warm.status == cold.status == "optimal"
        assert warm.objective == pytest.approx(cold.objective, rel=2e-8)
        assert cold.objective == pytest.approx(problem.solve(solver="cvxpy", tol=1e-6).objective, rel=2e-6)


@for_each(
    "solver, name, value",
    [
        *(("admm", "pull", value) for value in (0.0, 1.5, float("nan"))),
        *(("admm", "inner", value) for value in ("x", None)),
        *(("admm", "relaxation", value) for value in (0, 2.0)),
        ("admm", "anderson_memory", -1),
        *(("admm", "inner_steps", value) for value in (0, 2.5)),
        *(("dual_ascent", "pull", value) for value in (0.0, -1.0, 1.01)),
    ],
)
def test_options_out_of_range_are_refused(solver, name, value):
    problem = problem_of(LAYOUTS["shared"](), FScore(), mtl.l1_norm if solver == "admm" else mtl.ridge)
    with pytest.raises(mtl.SolverError, match=f"{name}={value!r}"):
        problem.solve(solver=solver, **{name: value})
