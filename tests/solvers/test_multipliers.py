"""The method of multipliers: losses of two slopes held to the reference on every layout, at small gaps and at weak penalties."""

from itertools import cycle, product

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.solvers.routes import get_solver
from tests.loops import for_each
from tests.models import separate, shared, with_weights
from tests.pairs import pairwise_cases

LOSSES = {
    "hinge": (mtl.hinge_loss, "sign", {}),
    "absolute": (mtl.absolute_loss, "real", {}),
    "quantile": (mtl.quantile_loss, "real", {"q": 0.8}),
    "insensitive": (mtl.epsilon_insensitive_loss, "real", {"epsilon": 0.2}),
}
LAYOUTS = {
    "shared": lambda labels: shared(1, n=24, labels=labels),
    "missing": lambda labels: shared(2, n=24, labels=labels, missing=0.3),
    "weighted": lambda labels: shared(3, n=24, labels=labels, sample_weights=True),
    "sparse": lambda labels: shared(4, n=24, labels=labels, density=0.5),
    "separate": lambda labels: separate(5, labels=labels),
    "sparse separate": lambda labels: separate(6, labels=labels, density=0.6),
}
PENALTIES = {
    "l1": lambda W: mtl.l1_norm(W),
    "l21": lambda W: mtl.l21_norm(W),
    "trace": lambda W: mtl.trace_norm(W),
    "both": lambda W: mtl.l1_norm(W) + 0.7 * mtl.l21_norm(W),
    "elastic": lambda W: mtl.l1_norm(W) + 0.2 * mtl.ridge(W),
    "max": lambda W: mtl.l1_inf_norm(W),
    "ridge": lambda W: mtl.ridge(W),
    "ridge of entries": lambda W: mtl.ridge(W, weights=np.exp(np.random.default_rng(0).normal(size=W.shape))),
}


def problem_of(loss, layout, penalty, intercept, coefficient=0.5):
    word, labels, arguments = LOSSES[loss]
    tasks, W = with_weights(LAYOUTS[layout](labels), intercept=intercept)
    return mtl.minimize(coefficient * word(W, tasks, **arguments) + PENALTIES[penalty](W))


def assert_solved(problem, tol=1e-8, **options):
    solution = problem.solve(solver="multipliers", tol=tol, **options)
    assert solution.status == "optimal", solution
    assert solution.objective - solution.dual_bound <= tol * abs(solution.objective)
    return solution


#: every loss with every penalty; layouts and intercepts in turn
CASES = zip(product(LOSSES, PENALTIES), cycle(product(LAYOUTS, [False, True])), strict=False)


@pytest.mark.slow
@for_each("first, second", CASES)
def test_the_optimum_is_the_references(first, second):
    (loss, penalty), (layout, intercept) = first, second
    problem = problem_of(loss, layout, penalty, intercept)
    expected = problem.solve(solver="cvxpy", tol=1e-7).objective
    assert assert_solved(problem).objective == pytest.approx(expected, rel=2e-7)


@for_each(("sign", "solver"), [(1, "multipliers"), (-1, "auto")])
def test_beside_a_bound(sign, solver):
    tasks, W = with_weights(shared(7, n=30), intercept=True)
    problem = mtl.minimize(mtl.absolute_loss(W, tasks) + mtl.l1_norm(W), [sign * W >= 0])
    expected = problem.solve(solver="cvxpy", tol=1e-7).objective
    assert (get_solver("multipliers").refuses(problem.form()) is None) == (solver == "multipliers")
    solution = problem.solve(solver=solver, tol=1e-8)
    assert solution.status == "optimal" and (sign * solution.W >= 0).all()
    assert solution.objective == pytest.approx(expected, rel=2e-7)


def generated(n, d, m, seed, scale=1.0):
    """Columns that follow one another closely (AR(.9)), some twice, of sizes apart by `scale`."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    for j in range(1, d):
        X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(0.19) * X[:, j]
    X = np.hstack([X, X[:, : d // 3]]) * np.geomspace(1.0, scale, d + d // 3) + 3.0
    Z = X[:, :d] @ (rng.normal(size=(d, m)) / np.geomspace(1.0, scale, d)[:, None]) + 2.0 * rng.normal(
        size=(n, m)
    )
    return X, np.where(np.quantile(Z, 0.6, axis=0) < Z, 1.0, -1.0)


@pytest.mark.slow
@for_each(
    "shape, penalty, coefficient",
    pairwise_cases([(80, 9, 3), (15, 60, 2)], ["l1", "l21", "trace"], [0.02, 1.0, 50.0]),
)
def test_small_gaps_on_badly_conditioned_data(shape, penalty, coefficient):
    X, Y = generated(*shape, seed=1, scale=100.0 if penalty != "trace" else 1.0)
    tasks, W = with_weights(mtl.Tasks.shared(X, Y), intercept=True)
    assert_solved(mtl.minimize(coefficient * mtl.hinge_loss(W, tasks) + PENALTIES[penalty](W)), max_iter=2000)


@pytest.mark.slow
@for_each("penalty", ["l1", "l21", "trace"])
def test_a_strong_penalty_gives_zero(penalty):
    problem = problem_of("hinge", "shared", penalty, True, coefficient=1e-4)
    solution = assert_solved(problem)
    assert not solution.blocks["W"].any()


def test_refusals_name_the_term():
    tasks, W = with_weights(shared(1))
    for objective, constraints, said in (
        (mtl.huber_loss(W, tasks) + mtl.l1_norm(W), [], "huber_loss(W, tasks) is not piecewise linear."),
        (mtl.absolute_loss(W, tasks) + mtl.l1_norm(W), [W.sum(axis=1) <= 0], "W.sum(axis=1)"),
        (mtl.absolute_loss(W, tasks), [], "there is no regularizer."),
    ):
        with pytest.raises(mtl.ModelError) as refused:
            mtl.minimize(objective, subject_to=constraints).solve(solver="multipliers")
        assert said in str(refused.value)


def test_weak_penalties_that_fit_every_sample():
    """Fewer samples than features and a penalty of a thousandth: every residual is zero in the end."""
    rng = np.random.default_rng(3)
    X = sparse.random(40, 200, 0.1, random_state=4, format="csr")
    tasks, W = with_weights(mtl.Tasks.shared(X, rng.normal(size=(40, 1))), intercept=True)
    problem = mtl.minimize(mtl.quantile_loss(W, tasks, q=0.3) + 1e-4 * mtl.l1_norm(W))
    solution = problem.solve(solver="multipliers", tol=1e-8)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(problem.solve(solver="cvxpy", tol=1e-8).objective, rel=1e-6)


@for_each("coefficient", [0.01, 1.0, 100.0])
@for_each("scale", [1.0, 1e3])
def test_raw_inputs_far_from_the_equations_at_first(coefficient, scale):
    """Counts, some columns constant, and a loss so heavy that the first multipliers are far too large."""
    rng = np.random.default_rng(6)
    X = rng.poisson(4.0, size=(150, 40)) * 1.0
    X[:, :3] = 0.0
    X *= scale
    Y = np.where(X[:, 3:7] @ rng.normal(size=(4, 3)) > rng.normal(size=3), 1.0, -1.0)
    Y[:2] = [[1.0], [-1.0]]
    tasks, W = with_weights(mtl.Tasks.shared(X, Y), intercept=True)
    problem = mtl.minimize(coefficient * mtl.hinge_loss(W, tasks) + mtl.l1_norm(W))
    assert problem.solve(solver="multipliers", tol=1e-8).status == "optimal"


def test_kinks_beside_a_penalty_of_rows_are_proven():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1000, 60))
    Z = X @ (rng.normal(size=(60, 5)) * (rng.random((60, 1)) < 0.5))
    tasks = mtl.Tasks.shared(X, Z / Z.std() + 0.6 * rng.normal(size=Z.shape))
    W = mtl.Weights(tasks, intercept=True)
    problem = mtl.minimize(mtl.absolute_loss(W, tasks) + 10 * mtl.total_variation(W))
    assert problem.solve("multipliers").status == "optimal"
