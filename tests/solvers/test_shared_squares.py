"""Squares on one X under functions of singular values: the same optimum as other solvers and formulas, whatever the shape of X."""

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.solvers.proximal import shared_squares
from mtldsl.solvers.proximal.shared_squares import SharedSquares

M = 5


def data(n, d, seed=0, kind="plain"):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if kind == "duplicates":
        X[:, d // 2 :] = X[:, : d - d // 2]
    if kind == "units":
        X = X * np.logspace(-3, 3, d)
    if kind == "sparse":
        X = sparse.csr_array(X * (rng.random((n, d)) < 0.3))
    W = rng.normal(size=(d, 2)) @ rng.normal(size=(2, M))
    return mtl.Tasks.shared(X, X @ W + rng.normal(size=(n, M)) + 3.0)


PENALTIES = {
    "trace": lambda W: (8 * mtl.trace_norm(W), []),
    "trace + ridge": lambda W: (6 * mtl.trace_norm(W) + 0.5 * mtl.ridge(W), []),
    "squared": lambda W: (0.3 * mtl.squared_trace_norm(W), []),
    "ball": lambda W: (0.1 * mtl.ridge(W), [mtl.trace_norm(W) <= 4.0]),
}


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", ["plain", "duplicates", "units", "sparse"])
@pytest.mark.parametrize("shape", [(40, 8), (10, 25)])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_agrees_with_admm(penalty, shape, kind, intercept):
    tasks = data(*shape, kind=kind)
    W = mtl.Weights(tasks, intercept=intercept)
    term, constraints = PENALTIES[penalty](W)
    problem = mtl.minimize(2 * mtl.squared_loss(W, tasks) + term, subject_to=constraints)
    assert shared_squares.why_not(problem.form()) is None
    # lengths of columns from 1e-3 to 1e3 are beyond it at times: then others go on
    ours = problem.solve(tol=1e-6) if kind == "units" else problem.solve(solver="proximal_gradient", tol=1e-8)
    assert ours.status == "optimal"
    other = problem.solve(solver="admm", tol=1e-7)
    assert ours.objective == pytest.approx(other.objective, rel=3e-6)


def test_the_gap_that_steers_is_the_certificates():
    tasks = data(60, 12, seed=1)
    W = mtl.Weights(tasks, intercept=True)
    form = mtl.minimize(mtl.squared_loss(W, tasks) + 20 * mtl.trace_norm(W)).form()
    steered = SharedSquares(form)
    from mtldsl.proof.certificate import certify

    class Seen:
        expired = False

        def __call__(self, point):
            seen = certify(form, point.blocks, point.loss_duals, point.function_duals)
            self.gap = seen.relative_gap
            return True

    seen = Seen()
    for tol in (1e-2, 1e-5, 1e-8):
        point, done = steered.run(tol, 1000, None, seen)
        assert done and point.iteration < 100
        assert -1e-11 <= seen.gap <= tol


def test_a_warm_start_goes_on_from_there():
    tasks = data(60, 12, seed=2)
    W = mtl.Weights(tasks)
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + 20 * mtl.trace_norm(W))
    first = problem.solve(tol=1e-8)
    assert first.solver == "proximal_gradient"
    again = problem.solve(tol=1e-6, warm_start=first)
    assert again.status == "optimal" and again.iterations <= 3 < first.iterations


def test_a_threshold_above_all_leaves_zero():
    tasks = data(30, 6, seed=3)
    W = mtl.Weights(tasks)
    solution = mtl.minimize(mtl.squared_loss(W, tasks) + 1e5 * mtl.trace_norm(W)).solve(
        solver="proximal_gradient"
    )
    assert solution.status == "optimal" and not solution.W.any()


def test_inputs_that_are_zero():
    tasks = mtl.Tasks.shared(np.zeros((7, 3)), np.ones((7, 2)))
    W = mtl.Weights(tasks, intercept=True)
    solution = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.trace_norm(W)).solve(solver="proximal_gradient")
    assert solution.status == "optimal" and not solution.W.any()
