"""The radius of a ball as a Parameter: the same model as with the number, along paths, folds, files and pickles."""

import pickle

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.errors import ModelError
from tests.loops import for_each

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 6))
TASKS = mtl.Tasks.shared(X, X @ rng.normal(size=(6, 3)) + rng.normal(size=(60, 3)))
BALLS = {
    "l1": (lambda W, r: mtl.l1_norm(W) <= r, [0.0, 0.5, 3.0]),
    "l21, scaled": (lambda W, r: 2 * mtl.l21_norm(W) <= 0.5 * r, [1.0, 8.0]),
    "trace": (lambda W, r: mtl.trace_norm(W) <= r / 2, [0.1, 4.0]),
    "rank": (lambda W, r: mtl.rank(W) <= r, [1, 2, 3]),
}


@pytest.fixture
def W():
    return mtl.Weights(TASKS)


def model(ball):
    (W,) = {part.weights for part in ball.argument.parts}
    return mtl.minimize(mtl.squared_loss(W, TASKS), subject_to=[ball])


@for_each("name", BALLS)
def test_a_path_over_the_radius_solves_its_models(W, name):
    ball, values = BALLS[name]
    r = mtl.Parameter(1.0, name="r")
    problem = model(ball(W, r))
    assert problem.parameters == [r] and str(problem) == str(model(ball(W, r)))
    for value, solution in zip(values, problem.path(r, values), strict=True):
        alone = model(ball(W, value)).solve()
        assert solution.parameters == {"r": value} and solution.status in ("optimal", "stationary")
        assert solution.objective == pytest.approx(alone.objective, rel=2e-6) and solution.violation <= 1e-9
    assert r.value == 1.0


def test_a_new_radius_is_seen_by_solver_reference_and_form(W):
    r = mtl.Parameter(1.0, name="r")
    problem = model(mtl.l1_norm(W) <= r)
    first = problem.form()
    assert problem.form() is first
    r.value = 2.0
    assert problem.form() is not first and np.abs(problem.solve().W).sum() == pytest.approx(2.0, rel=1e-5)
    assert problem.cross_check().agrees


def test_the_most_regularised_value_is_the_smallest_radius(W):
    r = mtl.Parameter(1.0, name="r")
    found = model(mtl.l1_norm(W) <= r).cross_validate(r, [2.0, 8.0, 1e6, 2e6], folds=3)
    assert found.best_value == found.one_se_value == 1e6  # both hold nothing back, and give the same weights


def test_a_problem_with_such_a_ball_is_pickled(W):
    problem = model(mtl.l1_norm(W) <= mtl.Parameter(2.0, name="r"))
    again = pickle.loads(pickle.dumps(problem))
    assert str(again) == str(problem) and again.solve().objective == problem.solve().objective


def test_what_is_wrong_with_it_is_said(W):
    r = mtl.Parameter(0.5, name="r")
    with pytest.raises(ModelError, match=r"a rank is bounded by a whole number"):
        model(mtl.rank(W) <= r)
    with pytest.raises(ModelError, match=r"r \* l1_norm\(W\) <= 1: .*divide the radius by r instead"):
        model(r * mtl.l1_norm(W) <= 1)
    with pytest.raises(ModelError, match=r"lambda_max\(r\): r is a radius.*from small to large"):
        model(mtl.l1_norm(W) <= r).lambda_max(r)
    with pytest.raises(ModelError, match="squared_trace_norm is not a norm"):
        model(mtl.squared_trace_norm(W) <= r)
