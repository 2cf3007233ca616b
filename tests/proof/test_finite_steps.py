"""Steps of a finite size from points at which the gradient is zero."""

import numpy as np

import mtldsl as mtl
from mtldsl.certificates.stationarity import finite_steps
from mtldsl.solvers.monitor import Monitor
from mtldsl.solvers.solver import Point


def above_the_cap():
    """The least squares solution; the data hardly see one direction, whose singular value lies just above the cap."""
    X = np.diag([1.0, 1e-3])
    W = np.diag([100.0, 1.0005])
    tasks = mtl.Tasks.shared(X, X @ W)
    weights = mtl.Weights(tasks)
    problem = mtl.minimize(mtl.squared_loss(weights, tasks) + mtl.capped_trace_norm(weights, 1.0, eps=1e-4))
    return problem.form(), {"W": W}


def test_a_kink_within_reach_is_seen_where_the_gradient_is_zero():
    form, x = above_the_cap()
    value, at = finite_steps(form, x, 1e-6)
    assert value < 0.6 * form.value(x) and np.linalg.norm(at["W"] - x["W"]) <= 1.01e-2 * np.linalg.norm(
        x["W"]
    )
    assert np.isclose(form.value(at), value)


def test_a_lower_point_is_the_next_start_and_not_stationary():
    form, x = above_the_cap()
    monitor = Monitor(form, 1e-6, None)
    assert monitor(Point(x, iteration=1))
    assert not monitor.certificate.is_stationary(1e-6)
    assert monitor.history[0]["residual"] > 0.1 and form.value(monitor.restart) < 0.6 * form.value(x)


def test_no_step_leaves_the_constraints():
    """Lower objectives lie outside of W >= 0, one step away, and are not taken."""
    x = np.eye(4)[:, :3]
    X = np.random.default_rng(0).normal(size=(30, 4))
    tasks = mtl.Tasks.shared(X, X @ (2.0 * x - np.ones((4, 3))))  # 1 where x is, -1 elsewhere
    W = mtl.Weights(tasks)
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + 0.01 * mtl.log_rank(W), subject_to=[W >= 0])
    form = problem.form()
    assert form.value({"W": x - 0.001 * (x == 0)}) < form.value({"W": x})
    value, at = finite_steps(form, {"W": x}, 1e-9)
    assert form.violation(at) <= 1e-9
