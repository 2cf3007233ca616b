"""Models of few samples are solved in their span, and what comes back is of the model as stated, with its proof."""

from __future__ import annotations

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.solvers import spans
from mtldsl.solvers.registry import get_solver, in_turn

LOSSES = {
    "hinge": mtl.hinge_loss,
    "absolute": mtl.absolute_loss,
    "logistic": mtl.logistic_loss,
    "squared_hinge": mtl.squared_hinge_loss,
}
PENALTIES = {"ridge": mtl.ridge, "trace": mtl.trace_norm, "squared_trace": mtl.squared_trace_norm}


def few(seed=0, n=9, d=25, m=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(0.1, 10.0, d)
    return mtl.Tasks.shared(X, np.where(X @ rng.normal(size=(d, m)) + rng.normal(size=(n, m)) > 0, 1, -1))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_solver_agrees_with_itself_outside_the_span(loss, penalty, intercept, monkeypatch):
    tasks = few()
    W = mtl.Weights(tasks, intercept=intercept)
    problem = mtl.minimize(LOSSES[loss](W, tasks) + 0.5 * PENALTIES[penalty](W))
    form = problem.form()
    assert spans.pays(form)
    for name in in_turn(form):
        inside = problem.solve(solver=name, tol=1e-6)
        with monkeypatch.context() as patch:
            patch.setattr(spans, "pays", lambda form: False)
            outside = problem.solve(solver=name, tol=1e-6)
        assert inside.status == outside.status == "optimal", (name, inside.status, outside.status)
        assert inside.W.shape == (25, 3)
        assert inside.objective == pytest.approx(outside.objective, rel=3e-6)
        again = problem.solve(solver=name, tol=1e-6, warm_start=inside)
        assert again.status == "optimal" and again.iterations <= max(inside.iterations, 20)


def test_weights_lie_in_the_span_of_the_samples():
    tasks = few(1)
    W = mtl.Weights(tasks)
    found = mtl.minimize(mtl.absolute_loss(W, tasks) + mtl.trace_norm(W)).solve(tol=1e-8).W
    inside = tasks.X.T @ np.linalg.lstsq(tasks.X.T, found, rcond=None)[0]
    np.testing.assert_allclose(inside, found, atol=1e-9 * np.abs(found).max())


def test_a_path_has_one_span_and_the_same_bits_again():
    tasks = few(2)
    W, lam = mtl.Weights(tasks), mtl.Parameter(1.0)
    problem = mtl.minimize(mtl.hinge_loss(W, tasks) + lam * mtl.squared_trace_norm(W))
    once = [s.W for s in problem.path(lam, values=[1.0, 0.3, 0.1])]
    again = [s.W for s in problem.path(lam, values=[1.0, 0.3, 0.1])]
    for a, b in zip(once, again, strict=True):
        np.testing.assert_array_equal(a, b)


def test_where_it_does_not_pay_or_may_not_be():
    tasks, wide = few(3, n=20), few(3)
    for one, penalty in ((tasks, mtl.ridge), (wide, mtl.l1_norm), (wide, mtl.l21_norm)):
        W = mtl.Weights(one)
        assert not spans.pays(mtl.minimize(mtl.hinge_loss(W, one) + penalty(W)).form())
    W = mtl.Weights(wide)
    assert not spans.pays(mtl.minimize(mtl.hinge_loss(W, wide) + mtl.ridge(W), [W >= 0]).form())
    assert not get_solver("cvxpy").takes_spans
