"""Where double precision ends: nothing warns, a solver that leaves it has failed, and another takes its place."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.errors import ModelError, SolverError
from mtldsl.solvers.monitor import Monitor
from mtldsl.solvers.solver import Point, breakdowns
from tests.loops import for_each
from tests.models import with_weights


@for_each(
    "leave",
    [
        lambda: np.array([1e200]) * 1e200,
        lambda: np.array([np.inf]) - np.inf,
        lambda: np.linalg.svd(np.full((2, 2), np.nan)),
        lambda: 1.0 / 0.0,
    ],
)
def test_leaving_double_precision_is_a_solver_error(leave):
    with pytest.raises(SolverError, match="some_solver broke down numerically"), breakdowns("some_solver"):
        leave()


def _problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2))
    tasks, W = with_weights(mtl.Tasks.shared(X, np.sign(X + 0.1)))
    return mtl.minimize(mtl.logistic_loss(W, tasks) + 0.3 * mtl.half_squared_group_norm(W))


def test_a_solver_that_overflows_leaves_the_model_to_the_next(monkeypatch):
    from mtldsl.solvers.admm import admm

    def diverges(self, form, *, watch, **_):
        return np.full(3, 1e200) @ np.full(3, 1e200)

    monkeypatch.setattr(type(admm.SOLVER), "solve", diverges)
    problem = _problem()
    with pytest.raises(SolverError, match=r"admm broke down numerically .overflow"):
        problem.solve(solver="admm")
    solution = problem.solve()
    assert solution.status == "optimal"
    assert solution.solver != "admm"


def test_a_point_at_infinity_is_no_best_point():
    form = _problem().form()
    monitor = Monitor(form, 1e-6, None)
    monitor(Point({"W": np.zeros((2, 2))}))
    with breakdowns("admm"):
        monitor(Point({"W": np.full((2, 2), 1e300)}))
    assert monitor.certificate.objective == pytest.approx(24 * np.log(2))


def test_entries_of_a_laplacian_that_overflow_are_refused():
    L = np.array([[1.2e308, -1.2e308], [-1.2e308, 1.2e308]])
    with pytest.raises(ModelError, match=r"L\[0, 0\] is 1.2e\+308, .* are not in float64"):
        mtl.graph_laplacian(_weights(), L)


def _weights():
    return mtl.Weights(mtl.Tasks.shared(np.eye(2), np.ones((2, 2))))


@for_each("value", [1e60, 1e-60])
def test_a_coefficient_that_leaves_double_precision_is_refused(value):
    W = _weights()
    lam = mtl.Parameter(1.0)
    problem = mtl.minimize(mtl.squared_loss(W, W.tasks) + lam * lam * mtl.l1_norm(W))
    lam.value = value
    with pytest.raises(ModelError, match=r"the coefficient lam \* lam is 1e"):
        problem.solve()
    lam.value = 1e-3
    assert problem.solve().status == "optimal"
