"""The reference's side of multiple kernel learning: its parts, problems whose optima were established elsewhere, the cross-check, and the models that it has as special cases."""

from dataclasses import replace
from itertools import cycle

import cvxpy as cp
import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.learned_structures.mkl_norm import MKLNorm
from mtldsl.certificates.certificate import certify
from mtldsl.reference.kernels import least, statement_at_weights, violation
from mtldsl.reference.registry import FORMULAS
from mtldsl.reference.solve import solve_reference
from mtldsl.solution.learned import LearnedWeights
from tests.known_optima import fixture
from tests.loops import for_each
from tests.models import separate, with_weights

LOSSES = {"hinge": mtl.hinge_loss, "logistic": mtl.logistic_loss}
FORMS = ("kept", "eliminated", "given")


def tasks_of(labels="sign"):
    return separate(0, labels, sizes=(8, 9, 7, 8))


def model(tasks, loss, similarities, form, p, C=1.0, given=None, intercept=False):
    W = mtl.Weights(tasks, intercept=intercept)
    objective = C * loss(W, tasks)
    if form == "eliminated":
        return mtl.minimize(objective + mtl.mkl_norm(W, similarities, p=p))
    if form == "given":
        return mtl.minimize(objective + mtl.mkl_norm(W, similarities, given))
    theta = mtl.KernelWeights(similarities) if given is None else mtl.KernelWeights(len(given))
    return mtl.minimize(
        objective + mtl.mkl_norm(W, similarities, theta), subject_to=[mtl.p_norm(theta, p) <= 1]
    )


def optimum(problem) -> float:
    return solve_reference(problem.form()).objective


@pytest.mark.slow
@for_each("i", range(len(MKLNorm.examples())))
def test_parts_are_parts(i):
    """They add up to W, and cost what is said; outside the range the value is infinite, near it rounding is forgiven."""
    atom = MKLNorm.examples()[i]
    W = np.random.default_rng(i).normal(size=(5, 4))[:, [0, 0, 1, 1]]
    found = least(W, atom)
    rows = [slice(None) if k.columns is None else k.columns for k in atom.kernels]
    sums = np.zeros_like(W)
    for kernel, where, U in zip(atom.kernels, rows, found.parts, strict=True):
        sums[where] += U @ kernel.factor.toarray().T
    np.testing.assert_allclose(sums, W, atol=1e-12)
    costs = [np.sum(U**2) / t for U, t in zip(found.parts, found.theta, strict=True)]
    assert 0.5 * sum(costs) == pytest.approx(found.value, rel=1e-12)
    assert violation(found.theta, atom) <= 1e-12
    V = cp.Variable((5, 4), value=W)
    stated = statement_at_weights(V, atom)
    stated.settle()
    assert stated.value.value == pytest.approx(found.value, rel=1e-12)
    assert all(tie.value(tolerance=1e-10) for tie in stated.ties)
    assert stated.expression.is_dcp() and stated.expression.is_convex()


def test_outside_the_range():
    atom = MKLNorm.examples()[5]
    W = np.random.default_rng(0).normal(size=(5, 4))
    assert least(W, atom).value == np.inf and FORMULAS["mkl_norm"](cp.Constant(W), atom).value == np.inf
    assert np.isfinite(least(W[:, [0, 0, 1, 1]] + 1e-10 * W, atom).value)
    V = cp.Variable((5, 4), value=W)
    stated = statement_at_weights(V, atom)
    stated.settle()
    assert stated.value.value == np.inf


def problem_of(given, word, form, p, theta=None):
    tasks = mtl.Tasks.grouped(*(np.array(given[k]) for k in ("X", "y", "tau")))
    return model(
        tasks, LOSSES[word], [mtl.similarities.from_kernel(R) for R in given["R"]], form, p, given["C"], theta
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mtmkl_pd_kernels", "mtmkl_tree_indicator"])
def test_known_optimum(name):
    """To 1e-9, by one form after the other, and proven by the multipliers; both formulas agree to rounding."""
    given = fixture(name)
    for (key, result), form in zip(given["results"].items(), cycle(FORMS), strict=False):
        word, p = key.split("_p")
        stated = problem_of(given, word, form, float(p), np.array(result["theta"])).form()
        point = solve_reference(stated)
        proven = certify(stated, point.blocks, point.loss_duals, point.function_duals)
        assert point.objective == pytest.approx(result["optimum"], rel=1e-9), (key, form)
        assert proven.dual_bound == pytest.approx(result["optimum"], rel=1e-9), (key, form)
        assert proven.objective == pytest.approx(point.objective, rel=1e-11), (key, form)


def test_theta_is_a_variable_that_a_user_may_read():
    """`problem.to_cvxpy()`: parts and theta are variables of their own, which a solve leaves at their best."""
    given = fixture("mtmkl_pd_kernels")
    known = given["results"]["hinge_p2.0"]
    stated = problem_of(given, "hinge", "kept", 2.0).to_cvxpy()
    stated.solve(solver="CLARABEL")
    (theta,) = [v for v in stated.problem.variables() if v.name() == "theta"]
    np.testing.assert_allclose(theta.value, known["theta"], atol=1e-4)
    blocks = stated.blocks()
    assert stated.objective_value(blocks) == pytest.approx(known["optimum"], rel=1e-7)
    at_zero = stated.objective_value({"W": np.zeros_like(blocks["W"])})
    assert at_zero == pytest.approx(given["C"] * len(given["y"]))


@pytest.mark.slow
@for_each("loss, form", list(zip(cycle(LOSSES), FORMS, strict=False)))
def test_cross_check_of_the_reference_itself(loss, form):
    tasks = tasks_of()
    problem = model(
        tasks, LOSSES[loss], [mtl.similarities.union(), mtl.similarities.individual()], form, 2,
        given=np.array([0.5, 1, 1, 0.2, 0.7]), intercept=True,
    )  # fmt: skip
    solution = problem.solve(solver="cvxpy")
    assert solution.status == "optimal"
    check = problem.cross_check(solution)
    assert check.agrees, check.disagreements
    assert check.formula_difference <= 1e-11 and check.learned_excess <= 1e-8
    assert ("theta" in solution.learned) == (form == "kept")


@pytest.mark.slow
def test_cross_check_of_an_expression_beside_other_terms():
    """theta of a sum of two blocks, with a constraint."""
    tasks = tasks_of()
    L, S, theta = mtl.Weights(tasks, name="L"), mtl.Weights(tasks, name="S"), mtl.KernelWeights()
    objective = (
        mtl.squared_loss(L + S, tasks)
        + mtl.mkl_norm(L + S, [mtl.similarities.union(), mtl.similarities.identity()], theta)
        + mtl.l1_norm(S)
    )
    problem = mtl.minimize(objective, subject_to=[theta.sum() <= 2, S >= 0])
    solution = problem.solve(solver="cvxpy")
    check = problem.cross_check(solution)
    assert check.agrees, check.disagreements


@pytest.mark.slow
def test_weights_that_are_not_the_best_are_noticed():
    """Others of the ball, too large, too small, one negative."""
    problem = model(
        tasks_of(), mtl.hinge_loss, [mtl.similarities.union(), mtl.similarities.individual()], "kept", 2
    )
    solution = problem.solve(solver="cvxpy")
    shown = solution.learned["theta"]
    assert isinstance(shown, LearnedWeights)
    v = shown.values
    for values in (v[::-1], 1.001 * v, 0.9 * v, v - 2 * v * (v == v.min())):
        check = problem.cross_check(replace(solution, learned={"theta": replace(shown, values=values)}))
        assert any("with what is shown as learned" in text for text in check.disagreements), values
    assert problem.cross_check(replace(solution, learned={})).learned_excess == np.inf


@pytest.mark.slow
def test_beside_a_term_that_is_not_convex():
    """Block by block: kernel weights stay eliminated, as their penalty is convex."""
    tasks, W = with_weights(tasks_of(labels="real"))
    objective = (
        mtl.squared_loss(W, tasks)
        + 0.1 * mtl.log_rank(W)
        + mtl.mkl_norm(W, [mtl.similarities.union(), mtl.similarities.identity()], p=2)
    )
    check = mtl.minimize(objective).cross_check()
    assert check.agrees, check


def test_laplacian_and_from_similarity_are_kronecker_ridges():
    tasks = tasks_of()
    Lap = np.diag([1.0, 2, 2, 1]) - np.diag(np.ones(3), 1) - np.diag(np.ones(3), -1)
    Q = np.diag([2.0, 1.0, 1.5, 1.0]) - 0.3 * np.diag(np.ones(3), 1) - 0.3 * np.diag(np.ones(3), -1)
    for similarity, columns in (
        (mtl.similarities.laplacian(Lap, 0.8), np.eye(4) + 0.8 * Lap),
        (mtl.similarities.from_similarity(Q), Q),
    ):
        W = mtl.Weights(tasks, intercept=False)
        ridge = mtl.minimize(mtl.logistic_loss(W, tasks) + mtl.kronecker_ridge(W, np.eye(6), columns))
        problem = model(tasks, mtl.logistic_loss, [similarity], "eliminated", np.inf)
        assert optimum(problem) == pytest.approx(optimum(ridge), rel=1e-8)


def test_views_of_own_weights_are_models_of_own_features():
    """Given weights: the sum of the penalties of the rows."""
    tasks, W = with_weights(tasks_of(), intercept=False)
    sims = [
        mtl.similarities.union(columns=[0, 1]),
        mtl.similarities.identity(columns=[0, 1]),
        mtl.similarities.identity(columns=[2, 3, 4, 5]),
    ]
    together = mtl.minimize(mtl.hinge_loss(W, tasks) + mtl.mkl_norm(W, sims, [0.5, 1.0, 2.0]))
    penalty = mtl.mkl_norm(
        W[:2], [mtl.similarities.union(), mtl.similarities.identity()], [0.5, 1.0]
    ) + 0.5 * mtl.ridge(W[2:])
    assert optimum(together) == pytest.approx(
        optimum(mtl.minimize(mtl.hinge_loss(W, tasks) + penalty)), rel=1e-8
    )


def test_more_parts_than_a_backend_manages_are_refused(monkeypatch):
    from mtldsl.problems import cross_check_blocks

    monkeypatch.setattr(cross_check_blocks, "SETTINGS", replace(cross_check_blocks.SETTINGS, own_entries=8))
    tasks, W = with_weights(mtl.Tasks.shared(np.eye(3), np.array([[1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]])))
    problem = mtl.minimize(
        mtl.hinge_loss(W, tasks)
        + mtl.mkl_norm(W, [mtl.similarities.union(), mtl.similarities.identity()], p=2)
    )
    with pytest.raises(mtl.SolverError, match=r"are 9 variables, .* fewer tasks or features"):
        problem.cross_check()
