"""The closed form against formulas written out: normal equations, Kronecker systems, pseudo-inverses, kernel forms."""

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from tests.loops import for_each
from tests.models import separate, shared

M = 4


def solve(objective):
    solution = mtl.minimize(objective).solve(solver="closed_form", tol=1e-11)
    assert solution.status == "optimal", solution
    assert abs(solution.relative_gap) <= 1e-12
    return solution


def laplacian(seed=0):
    A = np.abs(np.random.default_rng(seed).normal(size=(M, M)))
    A = A + A.T
    return np.diag(A.sum(axis=1)) - A


def coupled_by_kronecker(tasks, penalty, l=0.0):
    """argmin sum_i 1/2 ||X_i w_i - y_i||^2 + 1/2 tr(W (penalty + l I) W^T), one system over all tasks, tasks outermost."""
    d, m = tasks.n_features, tasks.n_tasks
    H = np.kron(penalty + l * np.eye(m), np.eye(d))
    rhs = np.zeros(d * m)
    for i, (X, y) in enumerate(zip(tasks.inputs, tasks.per_task(tasks.targets), strict=True)):
        X = X.toarray() if sparse.issparse(X) else X
        own = slice(i * d, (i + 1) * d)
        H[own, own] += X.T @ X
        rhs[own] = X.T @ y
    return np.linalg.solve(H, rhs).reshape(m, d).T


def least_squares_gradient(tasks, W):
    data = zip(tasks.inputs, W.T, tasks.per_task(tasks.targets), strict=True)
    return np.column_stack([X.T @ (X @ w - y) for X, w, y in data])


@for_each(
    "tasks",
    [shared(1), separate(1), shared(1, missing=0.2), shared(1, density=0.5), separate(1, density=0.6)],
)
def test_ridge_with_and_without_coupled_tasks(tasks):
    W, L = mtl.Weights(tasks), laplacian()
    alone = solve(mtl.squared_loss(W, tasks) + 3 * mtl.ridge(W))
    np.testing.assert_allclose(alone.W, coupled_by_kronecker(tasks, np.zeros((M, M)), 3.0), atol=1e-10)
    graph = solve(mtl.squared_loss(W, tasks) + 2 * mtl.graph_laplacian(W, L) + 0.1 * mtl.ridge(W))
    np.testing.assert_allclose(graph.W, coupled_by_kronecker(tasks, 2 * L, 0.1), atol=1e-10)
    mean = solve(mtl.squared_loss(W, tasks) + 5 * mtl.mean_regularizer(W))
    np.testing.assert_allclose(mean.W, coupled_by_kronecker(tasks, 5 * (np.eye(M) - 1 / M)), atol=1e-9)


def test_weights_of_samples_entries_and_an_intercept():
    tasks = shared(2, sample_weights=True)
    per_entry = np.random.default_rng(0).uniform(0.1, 3.0, (6, M))
    W = mtl.Weights(tasks, intercept=True)
    solution = solve(2 * mtl.squared_loss(W, tasks) + mtl.ridge(W, weights=per_entry))
    X, ones = tasks.X, np.ones((tasks.X.shape[0], 1))
    weights = tasks.per_task(tasks.sample_weights)
    for i, (y, s) in enumerate(zip(tasks.per_task(tasks.targets), weights, strict=True)):
        A = np.hstack([X, ones])
        H = 2 * A.T @ (A * s[:, None]) + np.diag(np.append(per_entry[:, i], 0.0))
        expected = np.linalg.solve(H, 2 * A.T @ (s * y))
        np.testing.assert_allclose(solution.W[:, i], expected[:-1], atol=1e-10)
        np.testing.assert_allclose(solution["W.intercept"][0, i], expected[-1], atol=1e-10)


@for_each("intercept", [False, True])
@for_each("make", [mtl.Tasks.shared, mtl.Tasks.separate])
def test_more_features_than_rows(make, intercept):
    """The kernel forms agree with the normal equations in feature space."""
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(8, 30)), rng.normal(size=(8, M))
    tasks = make(X, Y) if make == mtl.Tasks.shared else make([X] * M, list(Y.T))
    W = mtl.Weights(tasks, intercept=intercept)
    solution = solve(mtl.squared_loss(W, tasks) + 0.5 * mtl.ridge(W))
    A = np.hstack([X, np.ones((8, 1))])
    penalty = np.diag(np.append(np.full(30, 0.5), 0.0 if intercept else 1e12))
    expected = np.linalg.solve(A.T @ A + penalty, A.T @ Y)
    np.testing.assert_allclose(solution.W, expected[:-1], atol=1e-8)


@for_each("intercept", [False, True])
@for_each("make", ["shared", "separate"])
def test_no_penalty_is_least_squares_of_smallest_norm(make, intercept):
    """No penalty gives the least squares solution of smallest norm."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(20, 5)) @ np.diag([1, 1, 1, 0, 1.0])  # a column of zeros
    X[:, 4] = X[:, 0] + X[:, 1]  # and one that adds nothing
    Y = rng.normal(size=(20, M))
    tasks = mtl.Tasks.shared(X, Y) if make == "shared" else mtl.Tasks.separate([X] * M, list(Y.T))
    W = mtl.Weights(tasks, intercept=intercept)
    found, means = solve(mtl.squared_loss(W, tasks)), intercept * X.mean(axis=0)
    np.testing.assert_allclose(
        found.W, np.linalg.pinv(X - means) @ (Y - intercept * Y.mean(axis=0)), atol=1e-10
    )
    if intercept:
        np.testing.assert_allclose(found.intercept, Y.mean(axis=0) - means @ found.W, atol=1e-10)


@for_each("make", ["shared", "separate"])
def test_interpolation_is_certified_at_zero(make):
    rng = np.random.default_rng(5)
    X, Y = rng.normal(size=(4, 9)), rng.normal(size=(4, M))
    tasks = mtl.Tasks.shared(X, Y) if make == "shared" else mtl.Tasks.separate([X] * M, list(Y.T))
    W = mtl.Weights(tasks)
    solution = mtl.minimize(mtl.squared_loss(W, tasks)).solve(solver="closed_form")
    assert solution.status == "optimal" and solution.objective < 1e-20
    np.testing.assert_allclose(solution.W, np.linalg.pinv(X) @ Y, atol=1e-10)


def test_sums_of_blocks_and_maps():
    """w_i = l_i + s_i with both ridged is ridge with the harmonic coefficient: minimise over the split by hand."""
    tasks = separate(6)
    L, S = mtl.Weights(tasks, name="L"), mtl.Weights(tasks, name="S")
    together = solve(mtl.sum_of_squares(L + S, tasks) + 3 * mtl.ridge(L) + 6 * mtl.ridge(S))
    W = mtl.Weights(tasks)
    alone = solve(mtl.sum_of_squares(W, tasks) + 2 * mtl.ridge(W))  # 1 / (1/3 + 1/6) = 2
    assert together.objective == pytest.approx(alone.objective, rel=1e-12)
    np.testing.assert_allclose(together["L"] + together["S"], alone.W, atol=1e-10)

    A = np.random.default_rng(0).normal(size=(M, M))
    moved = solve(mtl.squared_loss(W, tasks) + mtl.ridge(W - 1.0) + mtl.ridge(W @ A)).W
    gradient = least_squares_gradient(tasks, moved) + (moved - 1.0) + moved @ A @ A.T
    assert np.abs(gradient).max() < 1e-9


def test_large_coupled_problems_go_through_conjugate_gradients():
    rng = np.random.default_rng(7)
    inputs = [rng.normal(size=(60, 80)) for _ in range(20)]
    tasks = mtl.Tasks.separate(inputs, [rng.normal(size=60) for _ in range(20)])
    W = mtl.Weights(tasks)
    solution = solve(mtl.squared_loss(W, tasks) + mtl.mean_regularizer(W) + 0.1 * mtl.ridge(W))
    gradient = least_squares_gradient(tasks, solution.W)
    gradient += solution.W - solution.W.mean(axis=1, keepdims=True) + 0.1 * solution.W
    assert np.abs(gradient).max() < 1e-9


def test_refusals_quote_the_term():
    tasks = shared(8)
    W = mtl.Weights(tasks)
    for objective, constraints, quoted in (
        (mtl.huber_loss(W, tasks) + mtl.ridge(W), [], "huber_loss(W, tasks)"),
        (mtl.squared_loss(W, tasks) + 2 * mtl.l1_norm(W), [], "2 * l1_norm(W)"),
        (mtl.squared_loss(W, tasks) + mtl.ridge(W), [W >= 0], "W >= 0"),
    ):
        said = dict((name, why) for name, _, why in mtl.minimize(objective, constraints).explain().verdicts())
        assert said["closed_form"].startswith(quoted)


@for_each("intercept", [False, True])
@for_each(
    "tasks",
    [
        separate(1), shared(1, missing=0.2), shared(1, density=0.5, missing=0.2), separate(1, density=0.6),
        shared(3, missing=0.3, sample_weights=True),
    ],
)  # fmt: skip
def test_tasks_of_their_own_are_solved_one_after_another(tasks, intercept):
    W = mtl.Weights(tasks, intercept=intercept)
    found = solve(mtl.squared_loss(W, tasks) + 0.5 * mtl.ridge(W))
    weights = tasks.sample_weights if tasks.sample_weights is not None else np.ones(tasks.n_samples)
    for i, (X, y) in enumerate(zip(tasks.inputs, tasks.per_task(tasks.targets), strict=True)):
        X, s = X.toarray() if sparse.issparse(X) else X, tasks.per_task(weights)[i]
        A = np.column_stack([X, np.ones(len(X))]) if intercept else X
        ridge = 0.5 * np.eye(A.shape[1])
        ridge[X.shape[1] :] = 0.0
        expected = np.linalg.solve(A.T @ (s[:, None] * A) + ridge, A.T @ (s * y))
        np.testing.assert_allclose(found.W[:, i], expected[: X.shape[1]], atol=1e-10)
