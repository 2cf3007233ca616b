"""The cross-check agrees where it should, and notices every kind of wrongness it claims to notice."""

from dataclasses import replace

import numpy as np
import pytest

import mtldsl as mtl
import mtldsl.problems.cross_check_blocks as by_reference
from mtldsl.atoms.losses import SquaredLoss
from mtldsl.atoms.regularizers import L21Norm
from mtldsl.errors import CrossCheckError, ModelError, SolverError
from mtldsl.problems import cross_check
from mtldsl.problems.cross_check_comparison import BlockCheck, MajorizationRow
from mtldsl.testing import assert_agrees
from tests.loops import for_each
from tests.models import shared, with_weights


def group_lasso(n=25, ridge=0.0, constraints=lambda W: []):
    tasks, W = with_weights(shared(1, n=n))
    objective = mtl.squared_loss(W, tasks) + 2.0 * mtl.l21_norm(W)
    return mtl.minimize(objective + ridge * mtl.ridge(W) if ridge else objective, subject_to=constraints(W))


@pytest.fixture(scope="module")
def solved():
    problem = group_lasso(ridge=0.5)
    solution = problem.solve(tol=1e-7)
    return problem, solution, problem.cross_check(solution)


def only(check, text):
    """The check disagrees for this reason alone."""
    assert not check.agrees and len(check.disagreements) == 1, check.disagreements
    assert text in check.disagreements[0]


def test_agreement(solved):
    _, solution, check = solved
    assert check.agrees and check.certified and check.disagreements == []
    assert check.solver == solution.solver != "cvxpy" and check.backend == "clarabel"
    assert abs(check.difference) <= 1e-7 and check.formula_difference <= 1e-13
    assert check.prediction_difference <= 1e-3 and check.weights_difference <= check.weights_reach
    assert check.fast_violation == check.reference_violation == 0.0
    assert max(abs(gap) for gap in check.gaps) <= 1e-7


@for_each("backend", ["scs", "clarabel"])
def test_backend_by_name(solved, backend):
    problem, solution, _ = solved
    check = problem.cross_check(solution, solver=backend)
    assert check.agrees and check.backend == backend


def test_the_last_solution_is_used_while_parameters_stand():
    tasks = shared(2, n=10)
    W, lam = mtl.Weights(tasks), mtl.Parameter(1.0)
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.l1_norm(W))
    solution = problem.solve()
    assert problem.cross_check().fast_objective == solution.objective
    lam.value = 2.0
    assert problem.cross_check().fast_objective > solution.objective * (1 + 1e-3)
    with pytest.raises(ModelError, match=r"computed at .*1\.0.* now stands at .*2\.0"):
        problem.cross_check(solution)


def test_a_solution_of_another_problem_is_refused(solved):
    _, solution, _ = solved
    tasks, V = with_weights(shared(1, n=10), name="V")
    with pytest.raises(ModelError, match=r"unknowns .*'W'.* but the problem has .*'V'"):
        mtl.minimize(mtl.squared_loss(V, tasks)).cross_check(solution)


@for_each("atom", [SquaredLoss, L21Norm])
def test_a_wrong_formula_is_noticed(solved, monkeypatch, atom):
    problem, solution, _ = solved
    right = atom.value
    monkeypatch.setattr(atom, "value", lambda self, *args: right(self, *args) * (1 + 1e-6))
    check = problem.cross_check(solution)
    assert any("the two formulas differ" in text for text in check.disagreements)


def test_an_infeasible_point_is_noticed():
    problem = group_lasso(constraints=lambda W: [W >= 0])
    solution = problem.solve()
    assert problem.cross_check(solution).agrees
    moved = replace(solution, blocks={"W": solution.blocks["W"] - 1e-3})
    assert any(
        "fast point violates a constraint by 1.0e-03" in text
        for text in problem.cross_check(moved).disagreements
    )


def test_a_number_that_is_wrong_is_noticed(solved):
    """The penalty differs from its minimum over the learned matrices up or down; weights of a unique solution are one."""
    problem, solution, check = solved
    moved = replace(solution, blocks={"W": 1.01 * solution.blocks["W"]})
    bound = replace(solution, dual_bound=solution.objective * (1 + 1e-4))
    apart = replace(check, weights_difference=2 * check.weights_reach)
    only(problem.cross_check(moved), "the fast objective is above the reference's by")
    only(problem.cross_check(bound), "the reference's objective is below the fast side's proven lower bound")
    only(apart, "the solution is unique, but the weights differ")
    for excess in (2 * check.tol, -2 * check.tol, np.inf, np.nan):
        only(replace(check, learned_excess=excess), "with what is shown as learned")
    assert replace(check, learned_excess=0.5 * check.tol).agrees


def test_formulas_have_to_agree_at_both_points(solved):
    _, _, check = solved
    for name in ("fast_by_reference", "reference_by_fast"):
        other = replace(check, **{name: getattr(check, name) * (1 + 1e-6)})
        assert other.formula_difference == pytest.approx(1e-6, rel=1e-3)
        assert any("the two formulas differ" in text for text in other.disagreements)


def test_a_majoriser_has_to_touch_and_to_lie_above():
    right = MajorizationRow("step 1", 5.0, 5.0, "cvxpy", 5.0, 0.1, 1e-7, touching=0.0, margin=0.0)
    assert right.agrees and replace(right, margin=0.3).agrees
    (text,) = replace(right, touching=1e-6).disagreements
    assert "misses the objective before the step" in text
    assert not replace(right, touching=-1e-6).agrees
    (text,) = replace(right, margin=-1e-6).disagreements
    assert "after the step the majoriser is below the objective" in text


def test_a_block_check_believes_no_number_of_the_solution():
    right = BlockCheck(
        "model", "the whole problem", "alternating", "stationary", objective=2.0, objective_by_reference=2.0, claimed=2.0,
        dual_bound=1.5, residual=0.0, violation=0.0, blocks=(), size=2.0, fast_seconds=0.1, tol=1e-6,
    )  # fmt: skip
    assert right.agrees and replace(right, dual_bound=-np.inf).agrees
    for changes, said in (
        ({"dual_bound": 2.0 + 1e-5}, "is above the objective of its own point"),
        ({"claimed": 1.9}, "recomputed, it is another"),
        ({"violation": 1e-5}, "violates a constraint"),
        ({"objective": 2.1}, "the two formulas differ"),
    ):
        (text,) = replace(right, **changes).disagreements
        assert said in text


def test_an_early_stop_of_the_reference_is_no_disagreement(solved):
    *_, check = solved
    worse = check.reference_objective * (1 + 1e-4)
    early = replace(check, reference_objective=worse, reference_by_fast=worse)
    assert early.agrees  # its multipliers prove no more than a gap of 1e-4 either
    assert "the reference stopped 1.0e-04 above the fast objective; its own gap is 1.0e-04" in early.notes[0]
    uncertified = replace(early, status="stalled")
    assert not uncertified.agrees and "stalled" in uncertified.notes[0]
    # a reference whose own multipliers prove its worse objective optimal cannot have stopped early
    only_one_can_be_right = replace(early, reference_bound=worse, reference_status="user_limit")
    assert len(only_one_can_be_right.disagreements) == 2


def test_cvxpys_status_is_told_unless_the_certificate_knows(solved):
    *_, check = solved
    assert replace(check, reference_status="optimal_inaccurate").notes == []
    vague = replace(check, reference_status="optimal_inaccurate", reference_bound=-np.inf)
    assert vague.agrees and vague.notes == ["cvxpy's status is 'optimal_inaccurate'"]


def test_disagreement_is_raised_on_request(solved):
    problem, solution, check = solved
    wrong = replace(solution, blocks={"W": 1.01 * solution.blocks["W"]})
    with pytest.raises(CrossCheckError, match=r"DISAGREE[\s\S]*above the reference's"):
        problem.cross_check(wrong, raise_on_disagreement=True)
    assert problem.cross_check(wrong, tol=0.1).agrees
    with pytest.raises(AssertionError, match="DISAGREE"):
        assert_agrees(problem, wrong)
    with pytest.raises(CrossCheckError, match="not certified: iteration_limit"):
        assert_agrees(problem, replace(solution, status="iteration_limit"))
    assert assert_agrees(problem, solution).agrees


def test_too_large_a_problem_is_checked_on_a_seeded_subsample():
    problem = group_lasso(n=60)
    solution = problem.solve()
    size = 60 * 6 * 4
    checks = [problem.cross_check(solution, max_size=size // 4, random_state=seed) for seed in (0, 0, 1)]
    assert all(check.agrees for check in checks)
    assert "on 15 rows a task, random_state=1" in checks[2].scope and "1,440 > 360" in checks[2].scope
    assert checks[0].reference_objective == checks[1].reference_objective != checks[2].reference_objective
    assert checks[0].fast_objective < solution.objective
    assert problem.cross_check(solution, max_size=None).scope == "the whole problem"


def test_a_model_on_two_data_sets_cannot_be_subsampled():
    first, second = shared(4, n=10), shared(5, n=10)
    W = mtl.Weights(first)
    problem = mtl.minimize(mtl.squared_loss(W, first) + mtl.squared_loss(W, second) + mtl.l1_norm(W))
    with pytest.raises(ModelError, match=r"size 480, above max_size=100.*2 different Tasks.*max_size=None"):
        problem.cross_check(max_size=100)
    assert problem.cross_check().agrees


def test_a_semidefinite_matrix_beyond_cvxpy_is_refused(monkeypatch):
    tasks, W = with_weights(shared(1, n=10))
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.trace_norm(W))
    monkeypatch.setattr(by_reference, "SETTINGS", replace(by_reference.SETTINGS, semidefinite_rows=9))
    with pytest.raises(SolverError, match=r"trace_norm\(W\)[\s\S]*side 10, and its solvers manage 9"):
        problem.cross_check()


def test_table(solved):
    *_, check = solved
    text = str(check)
    header, rule = text.splitlines()[2:4]
    assert header.split() == ["fast", "reference"] and set(rule) == {"-", " "}
    columns = [line.index(word) for line, word in ((header, "fast"), (header, "reference"))]
    for what, fast, reference in check.rows():
        line = next(line for line in text.splitlines() if line.startswith(what))
        assert line[columns[0] :].startswith(fast) and line[columns[1] :].startswith(reference)
    assert text.startswith("minimize    squared_loss(W, tasks) + 2 * l21_norm(W)")
    assert text.endswith("The two agree (the whole problem).")


def test_rich_table(solved):
    from rich.console import Console

    *_, check = solved
    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(check)
    printed = console.export_text()
    assert "The two agree" in printed and f"{check.fast_objective:.12g}" in printed


def test_weights_are_not_compared_where_they_need_not_be_unique():
    problem = group_lasso()
    check = problem.cross_check()
    assert check.agrees and check.weights_difference is None
    assert ("weights, ||fast - reference||", "-", "need not be unique") in check.rows()
    other = problem.cross_check(problem.solve(solver="cvxpy"))  # which is not an independent witness
    assert other.agrees and "came from cvxpy too" in other.notes[0]


def test_intercepts_and_sums_of_blocks():
    tasks = shared(3, n=20, missing=0.2)
    L, S = mtl.Weights(tasks, intercept=True, name="L"), mtl.Weights(tasks, name="S")
    problem = mtl.minimize(
        mtl.squared_loss(L + S, tasks) + mtl.trace_norm(L) + 3 * mtl.ridge(L) + 2 * mtl.ridge(S)
    )
    check = problem.cross_check(problem.solve(tol=1e-8))
    assert check.agrees and check.strong_convexity == 2.0
    assert 0.0 <= check.weights_difference <= check.weights_reach <= 0.1
    assert np.isfinite(check.prediction_difference)


def test_too_many_tasks_for_cvxpy_are_not_stated(monkeypatch):
    monkeypatch.setattr(cross_check, "SETTINGS", replace(cross_check.SETTINGS, max_tasks=3))
    problem = group_lasso()
    with pytest.raises(mtl.ModelError, match=r"4 tasks are too many to state in cvxpy.*tasks\.select"):
        problem.cross_check(max_size=100)
    assert problem.cross_check(max_size=None).agrees and problem.cross_check().agrees
