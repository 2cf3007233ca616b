"""What a path makes once is what every value alone would have made."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.system.once import once, remembering
from tests.loops import for_each


def lasso(seed=0, m=2, intercept=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 8))
    tasks = mtl.Tasks.shared(X, X @ rng.normal(size=(8, m)) + rng.normal(size=(40, m)))
    W, lam = mtl.Weights(tasks, intercept=intercept), mtl.Parameter(1.0)
    return mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.l1_norm(W)), lam


@for_each("intercept", [False, True])
def test_every_value_is_what_it_is_alone(intercept):
    problem, lam = lasso(intercept=intercept)
    values = [30.0, 3.0, 0.0, 3.0, 0.3]
    for value, found in zip(values, problem.path(lam, values, tol=1e-9), strict=True):
        alone, own = lasso(intercept=intercept)
        own.value = value
        expected = alone.solve(tol=1e-9)
        assert found.status == "optimal"
        assert found.objective == pytest.approx(expected.objective, rel=2e-9)
        np.testing.assert_allclose(found.W, expected.W, atol=1e-3)
    assert lam.value == 1.0


def test_losses_are_those_of_before_and_forms_are_not():
    problem, lam = lasso()
    first = problem.form()
    assert problem.form() is first
    lam.value = 2.0
    second = problem.form()
    assert second is not first and second.losses[0] is first.losses[0]
    assert second.remembered is first.remembered
    lam.value = 0.0
    assert problem.form().remembered is not first.remembered
    lam.value = 1.0
    assert problem.form().functions[0].coefficient == 1.0


def test_a_parameter_inside_an_argument_is_part_of_the_shape():
    problem, _ = lasso()
    (W,), mu = problem.weights, mtl.Parameter(1.0, name="mu")
    problem = mtl.minimize(
        problem.objective.terms[0].coefficient * mtl.squared_loss(W, W.tasks) + mtl.l21_norm(mu * W)
    )
    first = problem.form()
    mu.value = 2.0
    assert problem.form().remembered is not first.remembered


def test_a_parameter_of_a_loss_makes_a_new_loss():
    problem, _ = lasso()
    (W,), c = problem.weights, mtl.Parameter(1.0, name="c")
    problem = mtl.minimize(c * mtl.squared_loss(W, W.tasks) + mtl.l1_norm(W))
    first = problem.form().losses[0]
    c.value = 3.0
    assert problem.form().losses[0] is not first and problem.form().losses[0].scale[0] == 3.0


def test_owners_are_told_apart():
    store, a, b = {}, object(), object()
    with remembering(store):
        assert once(a, "x", lambda: 1) == 1 and once(b, "x", lambda: 2) == 2 and once(a, "y", lambda: 3) == 3
        assert once(a, "x", lambda: 4) == 1
        with remembering({}):
            assert once(a, "x", lambda: 5) == 5
    assert once(a, "x", lambda: 6) == 6
