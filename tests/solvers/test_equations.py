"""Linear equations of the weights beside losses of two slopes: interior points held to the reference."""

from itertools import cycle, product

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.errors import InfeasibleError
from mtldsl.solvers.routes import get_solver
from tests.loops import for_each
from tests.models import with_weights
from tests.solvers.test_multipliers import LAYOUTS, LOSSES, PENALTIES

EQUATIONS = {
    "rows": lambda W: [W.sum(axis=1) == 0],
    "columns": lambda W: [W.sum(axis=0) == 1],
    "both": lambda W: [W.sum(axis=1) == 0, 2.0 * W[1:3, :] == W[0:2, :]],
    "shifted": lambda W: [W[0:1, :] == W[1:2, :] + 0.1],
    "twice": lambda W: [W.sum(axis=1) == 0.5, 3.0 * W.sum(axis=1) == 1.5],
    "and a bound": lambda W: [W[0:1, :] == 0.5 * W[1:2, :] + 0.2, W >= 0],
}


def problem_of(loss, layout, penalty, equations, intercept):
    word, labels, arguments = LOSSES[loss]
    tasks, W = with_weights(LAYOUTS[layout](labels), intercept=intercept)
    return mtl.minimize(0.5 * word(W, tasks, **arguments) + PENALTIES[penalty](W), EQUATIONS[equations](W))


#: every equation with either penalty and intercepts or not, losses of one kink and layouts in turn
CASES = zip(
    product(EQUATIONS, ["l1", "elastic"], [False, True]),
    cycle(
        [(loss, "shared") for loss in LOSSES if loss != "insensitive"]
        + [("hinge", layout) for layout in LAYOUTS]
    ),
    strict=False,
)


@pytest.mark.slow
@for_each("first, second", CASES)
def test_the_optimum_is_the_references(first, second):
    (equations, penalty, intercept), (loss, layout) = first, second
    problem = problem_of(loss, layout, penalty, equations, intercept)
    solution = problem.solve(solver="multipliers", tol=1e-8)
    assert solution.status == "optimal", solution
    assert problem.form().violation(solution.blocks) <= 1e-9
    expected = problem.solve(solver="cvxpy", tol=1e-7).objective
    assert solution.objective == pytest.approx(expected, rel=3e-7)


@for_each("n, d", [(120, 20), (20, 60)], ids=["tall", "wide"])
def test_twins_and_a_weak_penalty(n, d):
    """A third of the columns are copies of others: their weights are not unique, and multipliers are."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-1.0, 1.0, d)
    X[:, : d // 3] = X[:, d // 3 : 2 * (d // 3)]
    tasks, W = with_weights(mtl.Tasks.shared(X, X[:, :3] @ rng.normal(size=(3, 4)) + rng.normal(size=(n, 4))))
    problem = mtl.minimize(mtl.absolute_loss(W, tasks) + 0.05 * mtl.l1_norm(W), [W.sum(axis=1) == 0])
    solution = problem.solve(tol=1e-7)
    assert solution.status == "optimal"
    assert np.abs(solution.blocks["W"].sum(axis=1)).max() <= 1e-9


def test_rows_that_are_zero_stay_so():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 12))
    Y = X[:, :2] @ np.array([[2.0, -2.0, 0.0], [0.0, 3.0, -3.0]]) + 0.1 * rng.normal(size=(60, 3))
    tasks, W = with_weights(mtl.Tasks.shared(X, Y))
    problem = mtl.minimize(mtl.absolute_loss(W, tasks) + 15.0 * mtl.l1_norm(W), [W.sum(axis=1) == 0])
    solution = problem.solve(solver="multipliers", tol=1e-6)
    assert solution.status == "optimal"
    assert not solution.blocks["W"][2:].any() and solution.blocks["W"][:2].any()


def test_what_it_takes():
    tasks, W = with_weights(LAYOUTS["shared"]("real"), intercept=True)
    refuses = get_solver("multipliers").refuses

    def model(loss, penalty, constraints):
        return mtl.minimize(loss(W, tasks) + penalty, constraints).form()

    equation = [W.sum(axis=1) == 0]
    assert refuses(model(mtl.absolute_loss, mtl.l1_norm(W), equation)) is None
    assert "W.sum(axis=1)" in refuses(model(mtl.absolute_loss, mtl.l21_norm(W), equation))
    assert "W.sum(axis=1)" in refuses(model(mtl.squared_loss, mtl.l1_norm(W), equation))


@pytest.mark.slow
def test_equations_that_contradict_one_another():
    tasks, W = with_weights(LAYOUTS["shared"]("real"))
    with pytest.raises(InfeasibleError):
        mtl.minimize(
            mtl.absolute_loss(W, tasks) + mtl.l1_norm(W), [W.sum(axis=0) == 1, W.sum(axis=0) == 2]
        ).solve(max_iter=1000)
