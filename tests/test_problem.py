"""minimize, solve, path, lambda_max, warm starts, interruption: what a user calls on a problem."""

import signal
import threading

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.compile.normal_form import FunctionTerm
from mtldsl.solvers.solver import Point
from mtldsl.solvers.watcher import Watcher
from tests.loops import for_each
from tests.models import MODELS, separate, shared


def lasso(value=1.0, **data):
    tasks = shared(3, **data)
    W = mtl.Weights(tasks)
    lam = mtl.Parameter(value)
    return mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.l21_norm(W)), lam


@for_each(
    "objective, constraint, reason",
    [
        (lambda W, loss, lam: loss + lam * mtl.l1_norm(W), lambda W: W >= 1, "W >= 1 does not allow"),
        (lambda W, loss, lam: loss + lam * mtl.l1_norm(W), lambda W: W.sum(axis=0) == 0, "bounds on the weights' entries"),
        (lambda W, loss, lam: loss + (1 + lam) * mtl.l1_norm(W), None, "proportional"),
        (lambda W, loss, lam: loss + mtl.l1_norm(W) / lam, None, "proportional"),
        (lambda W, loss, lam: loss + mtl.l1_norm(lam * W), None, "inside the terms"),
        (lambda W, loss, lam: loss + lam * mtl.l1_norm(W) + mtl.ridge(W - np.ones(W.shape)), None, "one weight matrix with norms"),
        (lambda W, loss, lam: lam * loss + lam * mtl.l1_norm(W), None, "alone"),
        (lambda W, loss, lam: loss + lam * mtl.ridge(W) + mtl.l1_norm(W), None, "flat at zero"),
    ],
)  # fmt: skip
def test_lambda_max_is_refused_where_it_is_not_known(objective, constraint, reason):
    tasks, lam = shared(4), mtl.Parameter(1.0)
    W = mtl.Weights(tasks)
    typed = objective(W, mtl.squared_loss(W, tasks), lam)
    problem = mtl.minimize(typed, subject_to=[constraint(W)] if constraint else [])
    with pytest.raises(mtl.ModelError, match=reason):
        problem.lambda_max(lam)


def test_lambda_max_at_a_kink_is_a_bound_and_says_so():
    """With an intercept the best constant prediction meets labels, or the margin, exactly: the slope there is no one number."""
    tasks, lam = shared(5, n=41, labels="sign"), mtl.Parameter(1.0)
    W = mtl.Weights(tasks, intercept=True)
    critical = mtl.minimize(mtl.hinge_loss(W, tasks) + lam * mtl.l1_norm(W)).lambda_max(lam)
    assert not critical.exact and "hinge_loss(W, tasks) has a kink" in critical.note
    assert critical.bounds[0] < critical == critical.bounds[1]


def test_lambda_max_with_two_losses_that_share_an_intercept():
    real, sign = shared(18), shared(18, labels="sign")
    W, lam = mtl.Weights(real, intercept=True), mtl.Parameter(1.0)
    problem = mtl.minimize(
        mtl.squared_loss(W, real) + 2 * mtl.logistic_loss(W, sign, mean=True) + lam * mtl.l21_norm(W)
    )
    critical = problem.lambda_max(lam)
    lam.value = 1.0001 * critical
    assert np.abs(problem.solve(tol=1e-9).W).max() == 0
    lam.value = 0.999 * critical
    assert np.abs(problem.solve(tol=1e-9).W).max() > 1e-5


def test_parameters_inside_arguments_count():
    tasks, lam = shared(3), mtl.Parameter(1.0)
    W = mtl.Weights(tasks)
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l1_norm(lam * W))
    assert problem.parameters == [lam]
    outside = [
        mtl.minimize(mtl.squared_loss(W, tasks) + c * mtl.l1_norm(W)).solve(tol=1e-8).objective
        for c in (1.0, 3.0)
    ]
    inside = [s.objective for s in problem.path(lam, [1.0, 3.0], tol=1e-8)]
    np.testing.assert_allclose(inside, outside, rtol=3e-8)
    lam.value = 3.0  # a solution of another value is not the one to be checked
    assert problem.cross_check().agrees
    with pytest.raises(mtl.ModelError, match="both called 'lam'"):
        mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l1_norm(mtl.Parameter(2.0) * W) + lam * mtl.ridge(W))


def test_path_is_warm_started_and_puts_the_parameter_back():
    problem, lam = lasso(5.0)
    top = problem.lambda_max(lam)
    values = top * np.geomspace(1, 0.05, 8)
    solutions = list(problem.path(lam, values, tol=1e-8))
    assert lam.value == 5.0
    assert [s.parameters["lam"] for s in solutions] == pytest.approx(list(values))
    assert all(s.status == "optimal" for s in solutions)
    supports = [np.count_nonzero(np.linalg.norm(s.W, axis=1)) for s in solutions]
    assert supports[0] == 0 and supports[-1] > 0
    for s, value in zip(solutions, values, strict=True):
        lam.value = value
        assert s.objective == pytest.approx(problem.solve(tol=1e-8).objective, rel=2e-8)


def test_path_refuses_a_stranger():
    problem, _ = lasso()
    with pytest.raises(mtl.ModelError, match="no such parameter"):
        problem.path(mtl.Parameter(1.0, name="mu"), [1.0])


@pytest.mark.parametrize(
    "name", ["robust_multi_task_low_rank_plus_outlier_tasks", "poisson_group_sparse_ridge"]
)
def test_warm_start_from_the_solution_is_certified_at_once(name):
    problem = MODELS[name]()
    cold = problem.solve(tol=1e-7)
    warm = problem.solve(tol=1e-6, warm_start=cold)
    assert warm.status == "optimal" and warm.iterations <= cold.iterations
    again = problem.solve(tol=1e-6, warm_start=cold.blocks)
    assert again.status == "optimal"


def test_explain_names_every_solver_with_a_reason():
    problem = MODELS["hinge_in_an_l1_ball_with_sum_zero_tasks"]()
    explanation = problem.explain()
    from mtldsl.solvers.registry import SOLVERS, get_solver

    here = {name for name in SOLVERS if not get_solver(name).takes_distributed}
    assert {name for name, _, _ in explanation.verdicts()} == here
    assert sum(verdict == "chosen" for _, verdict, _ in explanation.verdicts()) == 1
    assert all(reason for _, _, reason in explanation.verdicts())
    refused = dict((name, reason) for name, verdict, reason in explanation.verdicts() if verdict == "refused")
    assert "hinge_loss(W, tasks)" in refused["proximal_gradient"]
    assert str(explanation).startswith("minimize    hinge_loss(W, tasks)")


def test_a_time_limit_returns_the_best_point_uncertified():
    """A time limit returns the best point and does not call it optimal."""
    problem = MODELS["absolute_deviation_frobenius_elastic"]()
    solution = problem.solve(tol=1e-13, max_seconds=1e-3)
    assert solution.status == "time_limit"
    assert np.isfinite(solution.objective) and solution.dual_bound <= solution.objective


@pytest.mark.slow
def test_ctrl_c_returns_the_best_point_with_its_certificate():
    tasks = separate(3, sizes=(400, 500, 300, 200))
    W = mtl.Weights(tasks)
    problem = mtl.minimize(mtl.absolute_loss(W, tasks) + mtl.trace_norm(W))
    problem.solve(tol=1e-3)  # compile and import before the clock runs
    # a shell's background job starts with SIGINT ignored: the handler that a user's terminal has is put in place here
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
    try:
        timer.start()
        solution = problem.solve(solver="admm", tol=1e-15, max_seconds=120)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert solution.status == "interrupted"
    assert np.isfinite(solution.relative_gap) and solution.dual_bound <= solution.objective


def test_coefficients_of_zero_leave_the_model():
    tasks = shared(2)
    W, lam = mtl.Weights(tasks), mtl.Parameter(0.0)
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.trace_norm(W) + mtl.ridge(W))
    assert [f.atom.name for f in problem.form().functions] == ["ridge"]
    assert problem.solve(tol=1e-10).objective == pytest.approx(
        mtl.minimize(mtl.squared_loss(W, tasks) + mtl.ridge(W)).solve(tol=1e-10).objective, rel=1e-9
    )


def test_simplex_is_recognised_from_its_two_halves():
    tasks = shared(2)
    W = mtl.Weights(tasks)
    form = mtl.minimize(mtl.squared_loss(W, tasks), subject_to=[W.sum(axis=0) == 1, W <= 0.9, W >= 0]).form()
    assert [f.atom.name for f in form.functions] == ["at_most", "columns_on_simplex"]
    assert all(isinstance(f, FunctionTerm) for f in form.constraints)


def test_with_tasks_solves_the_same_model_on_other_data():
    problem, _ = lasso()
    other = problem.with_tasks(shared(9))
    assert str(other) == str(problem)
    assert other.solve().status == "optimal"
    with pytest.raises(mtl.ModelError, match="features x tasks"):
        problem.with_tasks(mtl.Tasks.shared(np.eye(3), np.ones((3, 2))))


def one_weight():
    tasks = mtl.Tasks.shared([[1.0]], [[2.0]])
    W = mtl.Weights(tasks)
    return mtl.minimize(mtl.squared_loss(W, tasks), subject_to=[W <= 1]).form()  # optimum 0.5 at w = 1


def test_a_point_below_the_optimum_does_not_keep_out_the_optimum():
    """Within tol of feasible, its objective is too low; the bound tells which of two such points is better."""
    watcher = Watcher(one_weight(), 6e-7, None)
    multipliers = ([np.array([-1.0])], [np.array([[1.0]])])
    assert not watcher(Point({"W": np.array([[1 + 5e-7]])}, *multipliers, 1))
    assert watcher.certificate.relative_gap < -6e-7
    assert watcher(Point({"W": np.array([[1.0]])}, *multipliers, 2))
    assert watcher.certificate.relative_gap == 0 and watcher.kept.blocks["W"][0, 0] == 1.0


def test_interrupted_before_the_first_point_zero_is_certified(monkeypatch):
    problem, _ = lasso()

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("mtldsl.solvers.admm.admm.SOLVER.solve", interrupted)
    solution = problem.solve(solver="admm")
    assert solution.status == "interrupted" and not solution.W.any()
    assert solution.objective == pytest.approx(problem.form().value({"W": solution.W}))
    assert 0 <= solution.dual_bound <= problem.solve(tol=1e-8).objective
