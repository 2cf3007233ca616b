"""minimize, solve, path, lambda_max, warm starts, interruption: what a user calls on a problem."""

import pickle

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.normal_form.form import FunctionTerm
from mtldsl.solvers.monitor import Monitor
from mtldsl.solvers.solver import Point
from tests.loops import for_each
from tests.models import shared, with_weights


def lasso(value=1.0, **data):
    tasks, W = with_weights(shared(3, **data))
    lam = mtl.Parameter(value)
    return mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.l21_norm(W)), lam


@for_each("objective, constraint, reason", [
    (lambda W, loss, lam: loss + lam * mtl.l1_norm(W), lambda W: W >= 1, "W >= 1 does not allow"),
    (lambda W, loss, lam: loss + lam * mtl.l1_norm(W), lambda W: W.sum(axis=0) == 0, "bounds on the weights' entries"),
    (lambda W, loss, lam: loss + (1 + lam) * mtl.l1_norm(W), None, "proportional"),
    (lambda W, loss, lam: loss + mtl.l1_norm(W) / lam, None, "proportional"),
    (lambda W, loss, lam: loss + mtl.l1_norm(lam * W), None, "inside the terms"),
    (lambda W, loss, lam: loss + lam * mtl.l1_norm(W) + mtl.ridge(W - np.ones(W.shape)), None, "one weight matrix with norms"),
    (lambda W, loss, lam: lam * loss + lam * mtl.l1_norm(W), None, "alone"),
    (lambda W, loss, lam: loss + lam * mtl.ridge(W) + mtl.l1_norm(W), None, "flat at zero"),
])  # fmt: skip
def test_lambda_max_is_refused_where_it_is_not_known(objective, constraint, reason):
    tasks, lam = shared(4), mtl.Parameter(1.0)
    W = mtl.Weights(tasks)
    typed = objective(W, mtl.squared_loss(W, tasks), lam)
    problem = mtl.minimize(typed, subject_to=[constraint(W)] if constraint else [])
    with pytest.raises(mtl.ModelError, match=reason):
        problem.lambda_max(lam)


def test_parameters_inside_arguments_count():
    tasks, lam = shared(3), mtl.Parameter(1.0)
    W = mtl.Weights(tasks)
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l1_norm(lam * W))
    assert problem.parameters == [lam]
    problem.solve()
    lam.value = 3.0  # a solution of another value is not the one to be checked
    assert problem.cross_check().agrees


def test_coefficients_of_zero_leave_the_model():
    tasks = shared(2)
    W, lam = mtl.Weights(tasks), mtl.Parameter(0.0)
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.trace_norm(W) + mtl.ridge(W))
    assert [f.atom.name for f in problem.form().functions] == ["ridge"]
    assert problem.solve(tol=1e-10).objective == pytest.approx(
        mtl.minimize(mtl.squared_loss(W, tasks) + mtl.ridge(W)).solve(tol=1e-10).objective, rel=1e-9
    )


def test_simplex_is_recognised_from_its_two_halves():
    tasks, W = with_weights(shared(2))
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
    tasks, W = with_weights(mtl.Tasks.shared([[1.0]], [[2.0]]))
    return mtl.minimize(mtl.squared_loss(W, tasks), subject_to=[W <= 1]).form()  # optimum 0.5 at w = 1


def test_a_point_below_the_optimum_does_not_keep_out_the_optimum():
    """Within tol of feasible, its objective is too low; the bound tells which of two such points is better."""
    monitor = Monitor(one_weight(), 6e-7, None)
    multipliers = ([np.array([-1.0])], [np.array([[1.0]])])
    assert not monitor(Point({"W": np.array([[1 + 5e-7]])}, *multipliers, 1))
    assert monitor.certificate.relative_gap < -6e-7
    assert monitor(Point({"W": np.array([[1.0]])}, *multipliers, 2))
    assert monitor.certificate.relative_gap == 0 and monitor.incumbent.blocks["W"][0, 0] == 1.0


def test_a_solved_problem_of_two_matrices_is_pickled():
    """Without what its form has found out, of which functions are a part."""
    tasks = shared(3)
    L, S = mtl.Weights(tasks, name="L"), mtl.Weights(tasks, name="S")
    problem = mtl.minimize(mtl.squared_loss(L + S, tasks) + mtl.trace_norm(L) + mtl.l1_norm(S))
    objective = problem.solve().objective
    again = pickle.loads(pickle.dumps(problem))
    assert str(again) == str(problem) and again.solve().objective == objective


def _similarities(tasks):
    """All helpers of similarities in one model."""
    of = mtl.similarities
    names = tasks.task_names
    found = [
        of.union(), of.individual(), of.identity(), of.evgeniou_pontil(1.0, 2.0), of.domain_adaptation(), of.clusters(names),
        of.tree(dict.fromkeys(names, "all") | {"all": None}), of.laplacian(np.zeros((len(names),) * 2)), of.from_kernel(np.eye(len(names))),
    ]  # fmt: skip
    W = mtl.Weights(tasks)
    return mtl.minimize(mtl.squared_loss(W, tasks) + mtl.mkl_norm(W, found, p=2))


def _label_graph(loss):
    def of(tasks):
        tasks = mtl.Tasks.shared(tasks.X, np.where(tasks.targets > 0, 1, -1).reshape(-1, tasks.X.shape[0]).T)
        U, V = mtl.NodeWeights(tasks, intercept=True), mtl.EdgeWeights(tasks, [(0, 1)])
        return mtl.minimize(loss(U, V, tasks) + 0.1 * mtl.ridge(U) + 0.1 * mtl.ridge(V))

    return of


@for_each("make", [_similarities, _label_graph(mtl.clique_hinge), _label_graph(mtl.pairwise_log_loss)])
def test_models_of_similarities_and_label_graphs_are_pickled(make):
    problem = make(shared(3))
    solution = problem.solve(tol=1e-4)
    assert pickle.loads(pickle.dumps(solution)).objective == solution.objective
    assert str(pickle.loads(pickle.dumps(problem))) == str(problem)
