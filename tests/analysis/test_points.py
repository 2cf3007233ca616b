"""Points of a path beside its solutions: the same weights, each proven of the model as given; and squares of few rows for those of many."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.problems.path import certified_points
from tests.loops import for_each
from tests.pairs import pairwise_cases

TOL = 1e-8
STATEMENTS = {
    "l21": lambda W, tasks, lam: mtl.squared_loss(W, tasks) + lam * mtl.l21_norm(W),
    "l1 and ridge": lambda W, tasks, lam: (
        mtl.sum_of_squares(W, tasks) + lam * mtl.l1_norm(W) + 0.5 * mtl.ridge(W)
    ),
    "trace": lambda W, tasks, lam: mtl.squared_loss(W, tasks) + lam * mtl.trace_norm(W),
    "on the loss": lambda W, tasks, lam: lam * mtl.squared_loss(W, tasks) + mtl.l21_norm(W),
    "logistic": lambda W, tasks, lam: mtl.logistic_loss(W, tasks) + lam * mtl.l21_norm(W),
    "hinge": lambda W, tasks, lam: mtl.hinge_loss(W, tasks) + lam * mtl.ridge(W),
}


def table(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 7))
    X[:, 3] = X[:, 2] - X[:, 1]  # of lower rank than it has columns
    Y = np.sign(X @ rng.normal(size=(7, 3)) + rng.normal(size=(120, 3)))
    if kind == "shared":
        return mtl.Tasks.shared(X, Y)
    weights = rng.uniform(0.5, 2.0, size=(3, 120))
    return mtl.Tasks.separate([X, X + 1, X + 2], list(Y.T), sample_weights=list(weights))


def path_of(name, tasks, intercept):
    W, lam = mtl.Weights(tasks, intercept=intercept), mtl.Parameter(1.0, name="lam")
    problem = mtl.minimize(STATEMENTS[name](W, tasks, lam))
    values = [0.05, 0.2, 1.0, 3.0] if name == "on the loss" else [30.0, 8.0, 2.0, 0.5]
    given = {"solver": "auto", "tol": TOL}
    points = list(certified_points(problem, lam, values, given))
    return problem, lam, values, points, given


@pytest.mark.slow
@for_each("name, kind, intercept", pairwise_cases(sorted(STATEMENTS), ["shared", "separate"], [True, False]))
def test_points_are_the_path_and_proven_of_the_given_model(name, kind, intercept):

    problem, lam, values, points, given = path_of(name, table(kind), intercept)
    assert lam.value == 1.0
    solutions = list(problem.path(lam, values, **given))
    assert len(points) == len(solutions)
    for value, point, solution in zip(values, points, solutions, strict=True):
        # a gap within tol leaves the weights the root of it; what is held to tol itself is the objective, below
        np.testing.assert_allclose(point.coef, solution.coef, atol=2e-3)
        assert (point.intercept is None) == (solution.intercept is None) == (not intercept)
        if intercept:
            np.testing.assert_allclose(point.intercept, solution.intercept, atol=2e-3)
        assert point.loss == solution.loss
        lam.value = value
        blocks = [point.coef, point.intercept] if intercept else [point.coef]
        objective = problem.value(dict(zip(solution.blocks, blocks, strict=True)))
        size = abs(solution.objective)
        assert solution.dual_bound - TOL * size <= objective <= solution.dual_bound + 3.0 * TOL * size
        assert point.certificate.within(TOL)


def test_points_have_the_same_bits():

    first, again = (path_of("l21", table("shared"), True)[3] for _ in range(2))
    assert all(np.array_equal(a.coef, b.coef) for a, b in zip(first, again, strict=True))
