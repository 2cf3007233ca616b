"""Methods of solvers: each by its name, with the same certificate; unknown ones are told; explain() says which begins."""

from unittest.mock import Mock

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.errors import ModelError, SolverError
from mtldsl.solvers.routes import SOLVERS, get_solver
from mtldsl.solvers.solver import Method, MethodSolver, Point, StoppingWatch, single_method
from tests.loops import for_each
from tests.models import shared

RNG = np.random.default_rng(0)
TASKS = shared()
X = TASKS.X
SIGNS = mtl.Tasks.shared(X, np.where(RNG.normal(size=(len(X), 3)) > 0, 1.0, -1.0))
WIDE = mtl.Tasks.shared(RNG.normal(size=(40, 300)), np.where(RNG.normal(size=(40, 3)) > 0, 1.0, -1.0))
ONE = mtl.Tasks.shared(X, np.where(RNG.normal(size=(len(X), 1)) > 0, 1.0, -1.0))
W, V, U, w = (mtl.Weights(tasks) for tasks in (TASKS, SIGNS, WIDE, ONE))
GROUPS = [[0, 1], range(2, X.shape[1])]


def structured():
    return mtl.structured_hinge(V, SIGNS, metric=mtl.metrics.FScore())


#: method -> a model that it takes
MODELS = {
    "coordinate_descent.groups": lambda: mtl.squared_loss(W, TASKS) + 3 * mtl.group_norm(W, GROUPS),
    "coordinate_descent.rows": lambda: mtl.squared_loss(W, TASKS) + 3 * mtl.l21_norm(W),
    "multipliers.interior_point": lambda: mtl.hinge_loss(V, SIGNS) + mtl.l1_norm(V),
    "multipliers.newton": lambda: mtl.hinge_loss(V, SIGNS) + 3 * mtl.l21_norm(V),
    "proximal_gradient.rotated_squares": lambda: mtl.squared_loss(W, TASKS) + 3 * mtl.trace_norm(W),
    "proximal_gradient.row_newton": lambda: mtl.logistic_loss(V, SIGNS) + mtl.l21_norm(V),
    "proximal_gradient.group_newton": lambda: mtl.logistic_loss(w, ONE) + mtl.group_norm(w, GROUPS),
    "proximal_gradient.ridge_newton": lambda: mtl.logistic_loss(V, SIGNS) + mtl.ridge(V),
    "proximal_gradient.selected_rows": lambda: (
        mtl.logistic_loss(U, WIDE) + mtl.squared_loss(U, WIDE) + 9 * mtl.l21_norm(U)
    ),
    "proximal_gradient.gradient": lambda: mtl.logistic_loss(V, SIGNS) + mtl.trace_norm(V),
    "admm.planes": lambda: structured() + 3 * mtl.l21_norm(V),
    "admm.lifted": lambda: structured() + mtl.l21_norm(V) + mtl.trace_norm(V),
    "admm.splitting": lambda: mtl.hinge_loss(V, SIGNS) + mtl.l21_norm(V) + mtl.trace_norm(V),
    "dual_ascent.planes": lambda: structured() + mtl.ridge(V),
    "dual_ascent.samples": lambda: mtl.hinge_loss(V, SIGNS) + mtl.ridge(V),
}

#: methods of models that tests of their own have: large, not convex, with equations, of label graphs
ELSEWHERE = {"multipliers.equations", "admm.spectral", "dual_ascent.labellings"}


def test_every_method_has_a_model_here():
    named = {
        f"{name}.{method.name}"
        for name in SOLVERS
        if isinstance(solver := get_solver(name), MethodSolver)
        for method in solver.methods
    }
    assert named == MODELS.keys() | ELSEWHERE


@for_each("name", MODELS)
def test_a_method_is_chosen_by_name_with_the_same_certificate(name):
    problem = mtl.minimize(MODELS[name]())
    found, auto = problem.solve(name, tol=1e-5), problem.solve(tol=1e-5)
    assert found.solver == name and found.is_optimal
    # each lies at most 1e-5 above the optimum: the gap that was asked for
    assert found.objective == pytest.approx(auto.objective, rel=2e-5)


@for_each("name", MODELS)
def test_every_method_ends_where_it_is_told_to(name):
    """End after the look that says so, as at a signal or where the time is up, with the best point and its bound."""
    problem, seen = mtl.minimize(MODELS[name]()), []

    def told(look):
        seen.append(look)
        return len(seen) == 2

    solution = problem.solve(name, tol=1e-15, callback=told)
    assert solution.status == "stopped" and len(seen) == len(solution.history) == 2
    assert solution.dual_bound <= solution.objective <= problem.form().value(problem.form().zeros())


class Handover(MethodSolver):
    """Two methods: the first shows nothing and gives up, the second ends with what it was given."""

    name = "handover"
    methods = (
        Method("idle", "shows nothing", lambda form: None, lambda *_: (None, False)),
        Method(
            "last",
            "returns its start",
            lambda form: None,
            lambda form, tol, most, start, watch: (start, True),
        ),
    )

    def refuses(self, form):
        return None


def test_where_a_method_gives_up_the_next_goes_on():
    form = mtl.minimize(mtl.hinge_loss(V, SIGNS) + mtl.l1_norm(V)).form()
    solver, start = Handover(), Point(form.zeros())
    rest = {"tol": 1e-4, "max_iter": 10, "watch": StoppingWatch(Mock(expired=False))}
    assert solver.solve(form, start=start, **rest) is start
    alone = single_method(solver, solver.methods[0])
    assert alone.solve(form, start=start, **rest) is start
    with pytest.raises(SolverError, match=r"handover\.idle found no point on this model"):
        alone.solve(form, start=None, **rest)


def test_a_method_that_does_not_take_the_model_says_why():
    problem = mtl.minimize(mtl.squared_loss(W, TASKS) + mtl.l1_norm(W))
    with pytest.raises(
        ModelError, match=r"'proximal_gradient\.ridge_newton' does not take this model: squared_loss"
    ):
        problem.solve("proximal_gradient.ridge_newton")


def test_an_unknown_method_is_told_with_those_that_there_are():
    problem = mtl.minimize(mtl.squared_loss(W, TASKS) + mtl.l1_norm(W))
    with pytest.raises(
        SolverError, match=r"coordinate_descent has no such method; write .*'coordinate_descent\.rows'"
    ):
        problem.solve("coordinate_descent.columns")
    with pytest.raises(SolverError, match=r"closed_form has no such method; write 'closed_form'"):
        problem.solve("closed_form.fast")


def test_explain_names_the_method_that_begins():
    text = " ".join(str(mtl.minimize(mtl.logistic_loss(V, SIGNS) + mtl.ridge(V)).explain()).split())
    assert (
        "It begins with proximal_gradient.ridge_newton (Newton's method beside quadratic penalties)" in text
    )
