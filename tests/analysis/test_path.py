"""Paths and critical values ask of a model what they name: a statement that can be solved, not a Problem."""

from itertools import repeat

import numpy as np
import pytest

import mtldsl as mtl
from tests.loops import for_each
from tests.models import shared


def of_log_rank():
    tasks = shared(1, n=20)
    W, mu = mtl.Weights(tasks), mtl.Parameter(5.0, name="mu")
    return mtl.minimize(mtl.square_root_loss(W, tasks) + mu * mtl.log_rank(W)), mu


def test_no_point_of_a_spectrum_that_locks_is_worse_than_alone():
    """Each starts from the one before and alone, and the better of the two is kept."""
    problem, mu = of_log_rank()
    for found in problem.path(mu, [4.0, 1.0, 0.3, 0.1]):
        alone, own = of_log_rank()
        own.value = found.parameters["mu"]
        assert found.objective <= alone.solve().objective * (1 + 1e-9)
    assert mu.value == 5.0


def test_what_was_kept_is_what_a_later_check_is_of():
    problem, mu = of_log_rank()
    *_, last = problem.path(mu, [4.0, 2.0])
    mu.value = 2.0
    assert problem._fresh() is last


@for_each(
    "values, said",
    [
        *zip([[-1.0], [float("inf")], "10", [[1.0]], [None]], repeat("the values must be a list of numbers")),
        *zip([[], (), np.array([]), iter([])], repeat("there are no values; write at least one")),
    ],
)
def test_values_are_numbers_and_there_are_some(values, said):
    problem, mu = of_log_rank()
    with pytest.raises(mtl.ModelError, match=rf"^path\(mu, .*{said}"):
        problem.path(mu, values)


SQUARES = {
    "on a norm": lambda W, t, lam: mtl.squared_loss(W, t) + lam * mtl.l1_norm(W),
    "on the loss": lambda W, t, lam: lam * mtl.squared_loss(W, t) + mtl.l1_norm(W),
    "on the loss, beside a ridge": lambda W, t, lam: (
        lam * mtl.squared_loss(W, t) + mtl.l1_norm(W) + 1e-3 * mtl.ridge(W)
    ),
    "inside an argument": lambda W, t, lam: mtl.squared_loss(W, t) + mtl.l21_norm((lam + 0.1) * W),
}


@pytest.mark.slow
@for_each("name", SQUARES)
@for_each("intercept", [False, True])
def test_every_value_is_what_it_is_alone(name, intercept):

    def stated():
        tasks = shared(0, n=40)
        W, lam = mtl.Weights(tasks, intercept=intercept), mtl.Parameter(1.0)
        return mtl.minimize(SQUARES[name](W, tasks, lam)), lam

    problem, lam = stated()
    values = [30.0, 3.0, 0.0, 3.0, 0.3]
    for value, found in zip(values, problem.path(lam, values, tol=1e-9), strict=True):
        alone, own = stated()
        own.value = value
        expected = alone.solve(tol=1e-9)
        assert found.status == "optimal"
        assert found.objective == pytest.approx(expected.objective, rel=2e-9, abs=1e-9)
        np.testing.assert_allclose(found.W, expected.W, atol=1e-3)
    assert lam.value == 1.0


def test_a_whole_number_is_so_many_values_of_the_grid():
    tasks = shared(0)
    W, lam = mtl.Weights(tasks), mtl.Parameter(1.0, name="lam")
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.l21_norm(W))
    found = [solution.parameters["lam"] for solution in problem.path(lam, 3)]
    top = float(problem.lambda_max(lam))
    np.testing.assert_allclose(found, np.geomspace(top, top / 1000, 3))


@for_each("on_losses", [False, True])
def test_a_grid_beside_penalties_that_never_vanish(on_losses):
    """A quadratic penalty has no value at which weights are zero: its grid spans six decades below the inputs' squared length."""
    tasks = shared(0)
    W, lam = mtl.Weights(tasks), mtl.Parameter(1.0, name="lam")
    loss, tied = mtl.squared_loss(W, tasks), mtl.mean_regularizer(W)
    problem = mtl.minimize(lam * loss + tied if on_losses else loss + lam * tied)
    found = [solution.parameters["lam"] for solution in problem.path(lam, 3)]
    squares = float(np.square(tasks.X).sum())  # half a squared residual has curvature 1
    first, last = (1 / squares, 1e6 / squares) if on_losses else (squares, squares / 1e6)
    np.testing.assert_allclose(found, np.geomspace(first, last, 3))


def test_a_path_says_that_it_is_solved_when_asked():
    tasks, lam = shared(), mtl.Parameter(5.0, name="lam")
    W = mtl.Weights(tasks)
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.l21_norm(W))
    path = problem.path(lam, [2.0, 1.0])
    assert (
        repr(path)
        == "<path of lam over 2 values, from 2 to 1: write list(...), or go over it, to solve at each>"
    )
    assert next(path).parameters == {"lam": 2.0} and lam.value == 2.0
    path.close()
    assert lam.value == 5.0 and list(path) == []
