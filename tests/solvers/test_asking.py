"""Solvers are asked as late as possible, and in the order that explain() shows."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.solvers import registry
from mtldsl.solvers.registry import answers, candidates, in_turn
from tests.models import MODELS


@pytest.mark.parametrize("name", MODELS)
def test_the_order_is_that_of_explain(name):
    form = MODELS[name]().form()
    assert candidates(form) == [one.name for one in answers(form) if one.refusal is None]


def test_a_solve_that_ends_with_the_first_asks_no_other(monkeypatch):
    asked = []
    refusal = registry.refusal
    monkeypatch.setattr(
        registry, "refusal", lambda solver, form: asked.append(solver.name) or refusal(solver, form)
    )
    tasks = mtl.Tasks.shared(np.eye(4), np.arange(8.0).reshape(4, 2))
    W = mtl.Weights(tasks)
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + 0.1 * mtl.l21_norm(W))
    assert problem.solve().solver == "coordinate_descent"
    assert asked == ["closed_form", "coordinate_descent"]


def test_solvers_that_yield_come_after_those_that_do_not(monkeypatch):
    tasks = mtl.Tasks.shared(np.eye(4), np.arange(8.0).reshape(4, 2))
    W = mtl.Weights(tasks)
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + 0.1 * mtl.l21_norm(W))
    others = list(in_turn(problem.form()))
    form = mtl.minimize(problem.objective).form()  # the first would be remembered with the other one
    first = registry.get_solver("coordinate_descent")
    monkeypatch.setattr(type(first), "yields", lambda self, form: "it is to yield here")
    found = list(in_turn(form))
    assert sorted(found) == sorted(others) and found[0] != "coordinate_descent"
    assert [one.name for one in answers(form) if one.refusal is None][: len(found)] == found
