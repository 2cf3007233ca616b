"""From normal form to cvxpy and back: objective, violations, multipliers, backends and their failures."""

from itertools import pairwise

import cvxpy as cp
import numpy as np
import pytest

import mtldsl as mtl
import mtldsl.reference.solve as module
from mtldsl.certificates.certificate import certify
from mtldsl.errors import DataError, InfeasibleError, SolverError
from mtldsl.reference.compile import to_cvxpy
from mtldsl.reference.solve import backends_to_try, solve_reference
from tests.loops import for_each
from tests.models import MODELS, shared, with_weights

every_model = for_each("name", MODELS)


def small(tasks=None, *functions, **options):
    tasks, W = with_weights(tasks if tasks is not None else shared(0, n=8))
    return mtl.minimize(mtl.squared_loss(W, tasks) + sum(f(W) for f in functions), **options).form()


@pytest.mark.slow
@every_model
@for_each("split", [False, True])
def test_both_shapes_are_convex_and_have_the_forms_value(name, split):
    form = MODELS[name]().form()
    model = to_cvxpy(form, split=split)
    assert model.problem.is_dcp() and set(model.variables) == set(form.shapes)
    rng = np.random.default_rng(0)
    near = max([1e-12, *(f.atom.accuracy for f in form.functions)])  # some values are found by an iteration
    for size in (0.0, 0.3, 1.5):
        blocks = {block: size * rng.normal(size=shape) for block, shape in form.shapes.items()}
        assert model.objective_value(blocks) == pytest.approx(form.value(blocks), rel=near)
        assert model.violation(blocks) == pytest.approx(form.violation(blocks), rel=1e-11, abs=1e-14)


@pytest.mark.slow
@every_model
def test_multipliers_prove_the_optimum(name):
    form = MODELS[name]().form()
    point = solve_reference(form)
    proven = certify(form, point.blocks, point.loss_duals, point.function_duals)
    assert proven.within(1e-6), proven


@for_each("backend", ["clarabel", "scs", "osqp"])
def test_backends_agree(backend):
    form = small(None, lambda W: 2 * mtl.l1_norm(W), lambda W: mtl.ridge(W))
    point = solve_reference(form, backend)
    assert point.backend == backend and point.iteration > 0 and point.status == "optimal"
    assert point.objective == pytest.approx(solve_reference(form).objective, rel=1e-8)


def test_wrong_backends_are_refused():
    model = to_cvxpy(small(None, mtl.l21_norm))
    with pytest.raises(SolverError, match=r"backend='mosek'.*'clarabel', 'scs', 'osqp'"):
        backends_to_try(model, "mosek")
    with pytest.raises(SolverError, match="'osqp' solves quadratic programs only"):
        backends_to_try(model, "osqp")


@for_each("backend", ["clarabel", "scs"])
def test_an_infeasible_model_is_refused_as_typed(backend):
    tasks, W = with_weights(shared(0, n=8))
    form = mtl.minimize(mtl.squared_loss(W, tasks), subject_to=[W >= 2, W <= 1]).form()
    with pytest.raises(
        InfeasibleError, match=r"no weights( up to .*)? satisfy all constraints at once .*W >= 2; W <= 1"
    ):
        solve_reference(form, backend)


def test_a_failed_backend_hands_over_to_the_other(monkeypatch):
    form = small(None, mtl.l21_norm)
    solve, asked = module.backends.solve, []

    def failing(problem, *, solver, **options):
        asked.append(solver)
        if solver == "CLARABEL":
            raise cp.error.SolverError("numerical trouble")
        return solve(problem, solver=solver, **options)

    monkeypatch.setattr(module.backends, "solve", failing)
    assert solve_reference(form).backend == "scs" and asked == ["CLARABEL", "SCS"]
    with pytest.raises(SolverError, match=r"'clarabel' failed on .*numerical trouble"):
        solve_reference(form, "clarabel")


def test_tightens_until_the_certificate_is_content():
    """A watch that is never content sees ever more accurate points, and the last one is returned."""
    from mtldsl.reference.solver import SOLVER

    seen = []
    form = small(None, mtl.l21_norm)
    last = SOLVER.solve(
        form, tol=1e-6, max_iter=SOLVER.max_iter, start=None, watch=lambda point: bool(seen.append(point))
    )
    assert len(seen) >= 2 and seen[-1] is last
    assert all(a.accuracy > b.accuracy for a, b in pairwise(seen))


def test_stops_where_the_iterations_run_out():
    solution = MODELS["square_root_loss_low_rank"]().solve(solver="cvxpy", backend="scs", max_iter=5)
    assert solution.status != "optimal" and np.isfinite(solution.objective)


#: London School problems: optima that were established elsewhere to twelve digits
SCHOOL = {
    "trace_norm": (100, 725844.67783737),
    "l21_norm": (50, 708730.74427390),
    "l1_norm": (10, 729570.63966130),
}


@pytest.mark.slow
@pytest.mark.papers
@pytest.mark.parametrize("word", SCHOOL)
def test_school(word):
    try:
        tasks = mtl.datasets.load_school()
    except DataError as reason:
        pytest.skip(str(reason))
    coefficient, optimum = SCHOOL[word]
    W = mtl.Weights(tasks)
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + coefficient * getattr(mtl, word)(W))
    assert solve_reference(problem.form()).objective == pytest.approx(optimum, rel=1e-9)


@for_each("labels", [1e4, 1e6])
@for_each("bounded", [False, True])
def test_large_labels_make_no_model_infeasible(labels, bounded):
    """Clarabel says so of them; a model without constraints never is, nor one whose solution satisfies them."""
    X, Y = shared(0, n=20).X, labels * shared(0, n=20).targets.reshape(-1, 20).T
    tasks, W = with_weights(mtl.Tasks.shared(X, Y))
    problem = mtl.minimize(
        mtl.squared_loss(W, tasks) + mtl.squared_trace_norm(W), subject_to=[W[0] >= -1] if bounded else []
    )
    assert problem.cross_check(problem.solve()).agrees
