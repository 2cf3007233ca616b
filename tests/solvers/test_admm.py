"""ADMM: constraints, known optima, exact structure, its hand-over to Newton steps, and its refusals."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.loss import Loss
from mtldsl.reference.compile import to_cvxpy
from mtldsl.reference.solve import solve_reference
from mtldsl.solvers.admm.admm import SOLVER
from tests.known_optima import fixture
from tests.loops import for_each
from tests.models import shared, with_weights

D, M = 6, 4


def solve(objective, constraints=(), tol=1e-8, **options):
    solution = mtl.minimize(objective, subject_to=constraints).solve(solver="admm", tol=tol, **options)
    assert solution.status == "optimal", solution
    return solution


def solve_as_the_reference(objective, constraints=()):
    """To 1e-7 by our own gap, which is not asked alone: the reference's optimum, by its formulas, is the same, and so is the value of
    our point."""
    form = mtl.minimize(objective, subject_to=constraints).form()
    solution = solve(objective, constraints, tol=1e-7)
    stated, found = to_cvxpy(form), solve_reference(form)
    assert stated.objective_value(solution.blocks) == pytest.approx(solution.objective, rel=1e-9)
    assert stated.violation(solution.blocks) <= 1e-7
    assert solution.objective == pytest.approx(found.objective, rel=1e-6)
    return solution


SETS = {
    "free": lambda W: [],
    "box": lambda W: [W >= -0.2, W <= 0.3],
    "simplex": lambda W: [W >= 0, W.sum(axis=0) == 1],
    "ball, sums": lambda W: [mtl.trace_norm(W) <= 1.5, W.sum(axis=1) == 0.1],
}
KINDS = {"hinge": "sign", "poisson": "count"}


@pytest.mark.slow
@for_each("loss", ["squared", "square_root", "absolute", "hinge", "poisson"])
@for_each("sets", SETS)
def test_constraints_are_met(loss, sets):
    tasks, W = with_weights(shared(7, n=25, labels=KINDS.get(loss, "real")))
    solve_as_the_reference(getattr(mtl, f"{loss}_loss")(W, tasks) + mtl.l1_norm(W), SETS[sets](W))


def test_quadratics_around_known_weights():
    """The constant of ridge(W - A) pulls W towards A, and that inside a loss moves its labels."""
    tasks, A = shared(8, n=25), np.random.default_rng(0).normal(size=(D, M))
    W = mtl.Weights(tasks)
    found = solve_as_the_reference(mtl.absolute_loss(W, tasks) + 1e3 * mtl.ridge(W - A) + mtl.l1_norm(W))
    np.testing.assert_allclose(found.W, A, atol=0.1)
    solve_as_the_reference(mtl.squared_loss(W - A, tasks) + mtl.l1_norm(W) + mtl.trace_norm(W))


@for_each("key", ["sqrt_nuc", "sqrt_l21", "ls_nuc", "ls_l1", "ls_nuc+l12"])
def test_known_optima(key):
    data = fixture("cmtl_9x6")
    tasks = mtl.Tasks.separate([np.array(X) for X in data["X"]], [np.array(y) for y in data["y"]])
    W, L, S = (mtl.Weights(tasks, name=name) for name in "WLS")
    lams = data[key].get("lams", [data["mu"]])
    objective = {
        "sqrt_nuc": lambda: mtl.square_root_loss(W, tasks) + lams[0] * mtl.trace_norm(W),
        "sqrt_l21": lambda: mtl.square_root_loss(W, tasks) + lams[0] * mtl.l21_norm(W),
        "ls_nuc": lambda: mtl.squared_loss(W, tasks) + lams[0] * mtl.trace_norm(W),
        "ls_l1": lambda: mtl.squared_loss(W, tasks) + lams[0] * mtl.l1_norm(W),
        "ls_nuc+l12": lambda: (
            mtl.squared_loss(L + S, tasks) + lams[0] * mtl.trace_norm(L) + lams[1] * mtl.l12_norm(S)
        ),
    }[key]()
    assert solve(objective, tol=1e-10).objective == pytest.approx(data[key]["optimum"], rel=3e-10)


def test_square_root_loss_with_tasks_that_interpolate():
    """A task with fewer rows than features has residual exactly 0 at a small penalty: no smoothing may hide that."""
    rng = np.random.default_rng(8)
    inputs = [rng.normal(size=(n, 5)) for n in (3, 30, 30)]
    W0 = np.outer(rng.normal(size=5), [1.0, 1.0, -1.0])
    targets = [X @ w + 0.5 * rng.normal(size=len(X)) for X, w in zip(inputs, W0.T, strict=True)]
    tasks, W = with_weights(mtl.Tasks.separate(inputs, targets))
    solution = solve(mtl.square_root_loss(W, tasks) + 0.05 * mtl.trace_norm(W), tol=1e-9)
    residuals = [np.linalg.norm(X @ w - y) for X, w, y in zip(inputs, solution.W.T, targets, strict=True)]
    assert residuals[0] < 1e-7 and min(residuals[1:]) > 0.5


def test_structure_is_exact_in_the_answer():
    tasks, W = with_weights(shared(9))
    sparse = solve(mtl.huber_loss(W, tasks) + 6 * mtl.l21_norm(W), tol=1e-6)
    assert np.any(np.all(sparse.W == 0, axis=1))
    low_rank = solve(mtl.squared_loss(W, tasks) + 15 * mtl.trace_norm(W), tol=1e-6)
    assert np.linalg.matrix_rank(low_rank.W, tol=1e-12) < M
    positive = solve(mtl.absolute_loss(W, tasks) + mtl.trace_norm(W), [W >= 0, mtl.l1_norm(W) <= 2], tol=1e-6)
    assert positive.W.min() >= 0 and np.abs(positive.W).sum() <= 2 + 1e-12


@pytest.mark.slow
def test_newton_steps_take_over_where_admm_crawls():
    """Nearly separable labels and a small total variation: ADMM alone needs tens of thousands of iterations."""
    tasks, W = with_weights(shared(10, n=40, labels="sign"))
    for objective in (
        mtl.hinge_loss(W, tasks) + 0.05 * mtl.total_variation(W) + 0.05 * mtl.l1_norm(W),
        mtl.quantile_loss(W, tasks, q=0.9) + 0.01 * mtl.l1_inf_norm(W),
    ):
        assert solve(objective, tol=1e-9).is_optimal


def test_a_loss_without_a_proximal_step_is_refused():
    @dataclass(frozen=True, eq=False)
    class Opaque(Loss):
        name: ClassVar[str] = "opaque_loss"

    form = mtl.minimize(mtl.squared_loss(mtl.Weights(shared(0)), shared(0))).form()
    loss = form.losses[0]
    opaque = type(loss)(
        Opaque(), loss.coefficients, loss.tasks, loss.map, loss.intercepts, "opaque_loss(W, tasks)"
    )
    refused = type(form)(form.blocks, (opaque,), form.functions, form.typed)
    assert SOLVER.refuses(refused) == "opaque_loss(W, tasks) is not quadratic and has no proximal step."
    assert SOLVER.refuses(form) is None


@pytest.mark.slow
@for_each("loss, labels, intercept", [(mtl.hinge_loss, "sign", True), (mtl.absolute_loss, "real", False)])
def test_terms_that_bound_weights_together_give_a_bound(loss, labels, intercept):
    """Terms that only together bound the weights still give a bound."""
    tasks, W = with_weights(shared(1, n=8, labels=labels), intercept=intercept)
    rows = mtl.l21_norm(W[:3, :]) + 0.2 * mtl.l1_norm(2 * W[3:, :])
    columns = 0.2 * mtl.l1_norm(W[:, 1:]) + 0.3 * mtl.l1_norm(W[:, 0])
    steps = 0.2 * mtl.l1_norm(W[:, 1:] - W[:, :-1])
    for penalty, constraints in ((rows, [W[:, :2] >= 0]), (columns, []), (steps, [W >= -2, W <= 2])):
        solve(loss(W, tasks) + penalty, constraints, tol=1e-7)


def test_a_norm_of_what_differs_from_given_weights():
    """A copy of W - A has a constant; where A is the optimum of the loss alone, it is the optimum of both: kinks hold W at A, but for rounding."""
    tasks, W = with_weights(shared())
    A = mtl.minimize(mtl.squared_loss(W, tasks)).solve().W  # in closed form
    solution = solve(mtl.squared_loss(W, tasks) + mtl.l1_norm(W - A) + 0.5 * mtl.l21_norm(W - A))
    np.testing.assert_allclose(solution.W, A, rtol=0.0, atol=1e-12)
