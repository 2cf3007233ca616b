"""Paths of hinges beside ridges: steps that begin near the solution begin with penalties as high as they would come to be."""

import numpy as np

import mtldsl as mtl
from mtldsl.solvers.multipliers.outer import Outer


def statement(seed=1, n=1500, d=60, m=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.uniform(0.2, 3.0, size=d)
    tasks = mtl.Tasks.shared(X, np.sign(X @ rng.normal(size=(d, m)) + 6.0 * rng.normal(size=(n, m))))
    W, lam = mtl.Weights(tasks, intercept=True), mtl.Parameter(1.0, name="lam")
    return mtl.minimize(mtl.hinge_loss(W, tasks) + lam * mtl.ridge(W)), lam


def test_near_steps_end_at_the_same_weights_in_fewer_outer_steps(monkeypatch):
    begun, steps, step, first = [], [], Outer.step, Outer._first_penalties

    def counted(self, most):
        steps.append(1)
        return step(self, most)

    monkeypatch.setattr(Outer, "step", counted)
    problem, lam = statement()
    values = [300.0, 240.0, 190.0, 150.0]
    near = list(problem.path(lam, values, tol=1e-6))
    few = len(steps)
    assert all(one.is_certified for one in near) and few > 0
    again = list(problem.path(lam, values, tol=1e-6))
    assert all(np.array_equal(a.coef, b.coef) for a, b in zip(near, again, strict=True))

    def far(self, is_near):
        begun.append(is_near)
        return first(self, False)

    monkeypatch.setattr(Outer, "_first_penalties", far)
    steps.clear()
    plain = list(problem.path(lam, values, tol=1e-6))
    assert sum(begun) == 3 and few < 0.8 * len(steps)
    for value, one, other in zip(values, near, plain, strict=True):
        lam.value = value
        cold = problem.solve(tol=1e-6)
        for each in (other, cold):
            assert abs(one.objective - each.objective) <= 2e-6 * abs(each.objective)
            np.testing.assert_allclose(one.coef, each.coef, atol=1e-2 * np.abs(each.coef).max())
