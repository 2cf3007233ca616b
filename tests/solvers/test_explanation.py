"""`explain()`: the chosen solver first and why, what stands in the way of those near by, those for other models in one sentence."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.distributed.distributed_tasks import DistributedTasks
from mtldsl.solvers.explanation import Explanation
from mtldsl.solvers.routes import SOLVERS, RouteVerdict, candidates, get_solver, refusal
from tests.loops import for_each
from tests.models import MODELS, shared, with_weights
from tests.solvers.test_alternation_steps import fetr
from tests.test_mixed_nonconvex import MODELS as NONCONVEX

ALL = {**MODELS, **NONCONVEX, "fetr": fetr}
TASKS, W = with_weights(shared())


def answers(problem):
    return {answer.name: answer for answer in problem.explain().answers}


def test_the_chosen_solver_leads_and_says_why():
    text = str(mtl.minimize(mtl.squared_loss(W, TASKS) + 2 * mtl.l21_norm(W)).explain())
    model, empty, first, *rest = text.split("\n")
    assert model == "minimize    squared_loss(W, tasks) + 2 * l21_norm(W)" and not empty
    assert first.startswith("chosen    coordinate_descent  coordinate descent on working sets")
    assert "the fastest, as measured, of the 4 that take this model" in " ".join(text.split())
    verdicts = [line.split()[0] for line in (first, *rest) if line and line[0] != " "]
    assert verdicts == ["chosen", "possible", "possible", "possible", "Not"]


def test_a_near_miss_keeps_its_line_and_another_kind_is_folded():
    """A closed form would take this model without the constraint; clique generation would take no part of it."""
    problem = mtl.minimize(mtl.squared_loss(W, TASKS) + mtl.ridge(W), [W >= 0])
    said = answers(problem)
    assert (
        said["closed_form"].refusal == "W >= 0 is a constraint." and said["closed_form"].solves_only is None
    )
    assert (
        said["clique_generation"].refusal and said["clique_generation"].solves_only == "clique_hinge models"
    )
    text = str(problem.explain())
    assert "refused   closed_form         W >= 0 is a constraint." in text
    assert "Not for this model: clique_generation solves only clique_hinge models;" in text
    assert "squared_loss(W, tasks) is not a clique_hinge" not in text


def test_solvers_of_convex_models_fold_into_one_clause():
    text = " ".join(str(NONCONVEX["nonnegative_log_rank"]().explain()).split())
    assert text.count("is not convex") == 1
    assert " and cvxpy solve only convex models (" in text


def test_verdicts_still_have_every_solver_with_its_own_reason():
    problem = mtl.minimize(mtl.squared_loss(W, TASKS) + 2 * mtl.l21_norm(W))
    verdicts = {name: (verdict, reason) for name, verdict, reason in problem.explain().verdicts()}
    assert set(verdicts) == {name for name in SOLVERS if get_solver(name).needs_rows}
    assert verdicts["clique_generation"] == ("refused", "squared_loss(W, tasks) is not a clique_hinge.")


@for_each("name", ALL)
def test_solvers_are_asked_late_and_in_the_order_that_it_shows(name):
    """Sentences of `solves_only` are never said of a form that the solver accepts."""
    problem = ALL[name]()
    form = problem.form()
    assert candidates(form) == [one.name for one in problem.explain().answers if one.refusal is None]
    takers = [solver for solver in map(get_solver, SOLVERS) if refusal(solver, form) is None]
    assert takers
    for solver in takers:
        assert solver.solves_only(form) is None, f"{solver.name}: {solver.solves_only(form)}"


@pytest.mark.slow
@for_each("columns", [40, 80, 133])
@for_each("name", ALL)
def test_no_line_is_wider_than_the_terminal(name, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = str(ALL[name]().explain()).split("\n")
    assert max(map(len, lines)) <= columns
    assert all(line == line.rstrip() for line in lines)


def test_every_solver_is_for_some_model_and_most_are_not_for_all():
    forms = [build().form() for build in ALL.values()]
    forms += [mtl.minimize(mtl.squared_loss(W, TASKS) + mtl.ridge(W)).form()]
    away, V = with_weights(DistributedTasks.cut(TASKS, 2))
    elsewhere = [mtl.minimize(mtl.absolute_loss(V, away) + mtl.ridge(V)).form()]
    signs = DistributedTasks.cut(TASKS.with_targets(np.resize([1.0, -1.0], TASKS.n_samples)), 2)
    S = mtl.Weights(signs)
    elsewhere += [mtl.minimize(mtl.structured_hinge(S, signs) + mtl.ridge(S)).form()]
    asked = {name: forms + elsewhere * (not get_solver(name).needs_rows) for name in SOLVERS}
    said = {name: {get_solver(name).solves_only(form) for form in asked[name]} for name in SOLVERS}
    assert all(None in kinds for kinds in said.values()), said
    assert sum(len(kinds) > 1 for kinds in said.values()) >= 6, said


def test_a_model_that_no_solver_takes_has_no_reason_for_a_choice():
    explanation = Explanation("minimize    f(W)", (RouteVerdict("one", "does this", "f(W) is odd."),))
    assert explanation.chosen is None and explanation.why is None
    assert str(explanation).split("\n") == ["minimize    f(W)", "", "refused   one  f(W) is odd."]
    only = Explanation("minimize    f(W)", (RouteVerdict("one", "does this", None),))
    assert only.why == "the only one that takes this model"
