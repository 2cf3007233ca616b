"""Squares on one X under functions of singular values: the same optimum as other solvers and formulas, whatever the shape of X."""

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from tests.loops import for_each
from tests.pairs import pairwise_cases

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


@for_each(
    "penalty, shape, kind, intercept",
    pairwise_cases(PENALTIES, [(40, 8), (10, 25)], ["plain", "duplicates", "units", "sparse"], [False, True]),
)
def test_agrees_with_admm(penalty, shape, kind, intercept):
    tasks = data(*shape, kind=kind)
    W = mtl.Weights(tasks, intercept=intercept)
    term, constraints = PENALTIES[penalty](W)
    problem = mtl.minimize(2 * mtl.squared_loss(W, tasks) + term, subject_to=constraints)
    # lengths of columns from 1e-3 to 1e3 are beyond it at times: then others go on
    ours = problem.solve(tol=1e-6) if kind == "units" else problem.solve(solver="proximal_gradient", tol=1e-8)
    assert ours.status == "optimal"
    other = problem.solve(solver="admm", tol=1e-7)
    assert ours.objective == pytest.approx(other.objective, rel=3e-6)


def test_inputs_that_are_zero():
    tasks = mtl.Tasks.shared(np.zeros((7, 3)), np.ones((7, 2)))
    W = mtl.Weights(tasks, intercept=True)
    solution = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.trace_norm(W)).solve(solver="proximal_gradient")
    assert solution.status == "optimal" and not solution.W.any()
