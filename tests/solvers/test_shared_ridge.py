"""Ridge on one X: Cholesky factors, eigenvectors and conjugate gradients against one system written out."""

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from tests.loops import for_each

M = 3


def written_out(X, Y, L, scale, weights, intercept):
    """The weights and intercepts of one dense system over all tasks."""
    n, d = X.shape
    A = np.hstack([X, np.ones((n, 1))]) if intercept else X
    H = scale * A.T @ (A * weights[:, None])
    border = np.zeros(A.shape[1])
    border[:d] = 1.0
    system = np.kron(np.eye(M), H) + np.kron(L, np.diag(border))
    rhs = scale * (A.T @ (weights[:, None] * Y)).T.ravel()
    solution = np.linalg.solve(system, rhs).reshape(M, -1).T
    return solution[:d], solution[d:]


def graph(ridge):
    L = np.array([[2.0, -1.0, -1.0], [-1.0, 1.5, -0.5], [-1.0, -0.5, 1.5]])
    return L, L + ridge * np.eye(M)


@for_each("intercept", [False, True])
@for_each("coupled", [False, True])
@for_each("weighted", [False, True])
@for_each("shape", [(60, 9), (9, 14)])
def test_dense_inputs(shape, weighted, coupled, intercept):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=shape) + 3.0, rng.normal(size=(shape[0], M)) + 2.0
    weights = rng.uniform(0.5, 2.0, shape[0]) if weighted else np.ones(shape[0])
    tasks = mtl.Tasks.shared(X, Y, sample_weights=np.column_stack([weights] * M) if weighted else None)
    W = mtl.Weights(tasks, intercept=intercept)
    L, whole = graph(0.3)
    term = 0.3 * mtl.ridge(W) + mtl.graph_laplacian(W, L) if coupled else 0.3 * mtl.ridge(W)
    solution = mtl.minimize(2 * mtl.squared_loss(W, tasks) + term).solve(solver="closed_form", tol=1e-11)
    assert solution.status == "optimal"
    expected, b = written_out(X, Y, whole if coupled else 0.3 * np.eye(M), 2.0, weights, intercept)
    np.testing.assert_allclose(solution.W, expected, atol=1e-9)
    if intercept:
        np.testing.assert_allclose(solution["W.intercept"], b, atol=1e-8)


@pytest.mark.slow
@for_each("intercept", [False, True])
@for_each("coupled", [False, True])
@for_each("shape", [(700, 520), (520, 700)])
def test_large_sparse_inputs_by_conjugate_gradients(shape, coupled, intercept):
    rng = np.random.default_rng(1)
    X = sparse.random_array(shape, density=0.01, rng=rng, format="csr")
    X.data += 1.0
    Y = rng.normal(size=(shape[0], M)) + 2.0
    tasks = mtl.Tasks.shared(X, Y)
    W = mtl.Weights(tasks, intercept=intercept)
    L, whole = graph(0.01)
    term = 0.01 * mtl.ridge(W) + mtl.graph_laplacian(W, L) if coupled else 0.01 * mtl.ridge(W)
    form = mtl.minimize(mtl.squared_loss(W, tasks) + term)
    exact = form.solve(solver="closed_form", tol=1e-10)
    assert exact.status == "optimal"
    dense = X.toarray()
    expected, _ = written_out(
        dense, Y, whole if coupled else 0.01 * np.eye(M), 1.0, np.ones(shape[0]), intercept
    )
    np.testing.assert_allclose(exact.W, expected, atol=1e-4 * np.abs(expected).max())
    assert form.solve(solver="closed_form", tol=1e-3).objective == pytest.approx(exact.objective, rel=1e-3)


def test_ill_conditioned_inputs_are_refined_or_decomposed():
    """Ill conditioned inputs are refined or left to singular values."""
    rng = np.random.default_rng(2)
    Q = np.linalg.qr(rng.normal(size=(80, 12)))[0]
    for condition, lam in ((1e4, 1e-6), (1e7, 1e-9), (1e9, 1e-12)):
        X = Q * np.geomspace(1.0, 1.0 / condition, 12) @ np.linalg.qr(rng.normal(size=(12, 12)))[0]
        tasks = mtl.Tasks.shared(X, rng.normal(size=(80, M)))
        W = mtl.Weights(tasks)
        solution = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.ridge(W)).solve(tol=1e-9)
        assert solution.status == "optimal"


@for_each("weighted", [False, True])
@for_each("mean", [0.5, 50.0, 5000.0])
def test_labels_far_from_zero_beside_an_intercept(mean, weighted):
    """Their means are taken off the sums where that costs no digits, and off the labels elsewhere."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 9)), rng.normal(size=(60, M)) + mean
    weights = rng.uniform(0.5, 2.0, 60) if weighted else np.ones(60)
    tasks = mtl.Tasks.shared(X, Y, sample_weights=weights if weighted else None)
    W = mtl.Weights(tasks, intercept=True)
    solution = mtl.minimize(mtl.squared_loss(W, tasks) + 0.3 * mtl.ridge(W)).solve(tol=1e-9)
    expected, intercepts = written_out(X, Y, 0.3 * np.eye(M), 1.0, weights, True)
    assert solution.status == "optimal"
    np.testing.assert_allclose(solution.W, expected, rtol=0, atol=1e-13 * mean + 1e-13)
    np.testing.assert_allclose(solution.intercept, intercepts[0], rtol=1e-12)
