"""Ridge on one X: Cholesky factors, eigenvectors and conjugate gradients against one system written out; more in test_closed_form.py."""

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.data.products import gram, require_gram_memory
from mtldsl.errors import SolverError
from tests.loops import for_each
from tests.models import with_weights
from tests.solvers.test_coordinate_descent import data

M = 3


def written_out(X, Y, L, weights, intercept):
    """The weights and intercepts of one dense system over all tasks."""
    n, d = X.shape
    A = np.hstack([X, np.ones((n, 1))]) if intercept else X
    H = A.T @ (A * weights[:, None])
    border = np.zeros(A.shape[1])
    border[:d] = 1.0
    system = np.kron(np.eye(M), H) + np.kron(L, np.diag(border))
    rhs = (A.T @ (weights[:, None] * Y)).T.ravel()
    solution = np.linalg.solve(system, rhs).reshape(M, -1).T
    return solution[:d], solution[d:]


def stated(tasks, lam, coupled, intercept):
    """(the problem, the matrix of its penalties)"""
    W, L = mtl.Weights(tasks, intercept=intercept), lam * np.eye(M)
    term = lam * mtl.ridge(W)
    if coupled:
        graph = np.array([[2.0, -1.0, -1.0], [-1.0, 1.5, -0.5], [-1.0, -0.5, 1.5]])
        term, L = term + mtl.graph_laplacian(W, graph), L + graph
    return mtl.minimize(mtl.squared_loss(W, tasks) + term), L


@pytest.mark.slow
@for_each("intercept", [False, True])
@for_each("coupled", [False, True])
@for_each("shape", [(700, 520), (520, 700)])
def test_large_sparse_inputs_by_conjugate_gradients(shape, coupled, intercept):
    rng = np.random.default_rng(1)
    X = sparse.random_array(shape, density=0.01, rng=rng, format="csr")
    X.data += 1.0
    Y = rng.normal(size=(shape[0], M)) + 2.0
    problem, L = stated(mtl.Tasks.shared(X, Y), 0.01, coupled, intercept)
    exact = problem.solve(solver="closed_form", tol=1e-10)
    assert exact.status == "optimal"
    expected, _ = written_out(X.toarray(), Y, L, np.ones(shape[0]), intercept)
    np.testing.assert_allclose(exact.W, expected, atol=1e-4 * np.abs(expected).max())
    assert problem.solve(solver="closed_form", tol=1e-3).objective == pytest.approx(exact.objective, rel=1e-3)


def test_ill_conditioned_inputs_are_refined_or_decomposed():
    rng = np.random.default_rng(2)
    Q = np.linalg.qr(rng.normal(size=(80, 12)))[0]
    for condition, lam in ((1e4, 1e-6), (1e7, 1e-9), (1e9, 1e-12)):
        X = Q * np.geomspace(1.0, 1.0 / condition, 12) @ np.linalg.qr(rng.normal(size=(12, 12)))[0]
        tasks = mtl.Tasks.shared(X, rng.normal(size=(80, M)))
        assert stated(tasks, lam, False, False)[0].solve(tol=1e-9).status == "optimal"


@for_each("weighted", [False, True])
@for_each("mean", [0.5, 50.0, 5000.0])
def test_labels_far_from_zero_beside_an_intercept(mean, weighted):
    """Their means are taken off the sums where that costs no digits, and off the labels elsewhere."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 9)), rng.normal(size=(60, M)) + mean
    weights = rng.uniform(0.5, 2.0, 60) if weighted else np.ones(60)
    tasks = mtl.Tasks.shared(X, Y, sample_weights=weights if weighted else None)
    problem, L = stated(tasks, 0.3, False, True)
    solution = problem.solve(tol=1e-9)
    expected, intercepts = written_out(X, Y, L, weights, True)
    assert solution.status == "optimal"
    np.testing.assert_allclose(solution.W, expected, rtol=0, atol=1e-13 * mean + 1e-13)
    np.testing.assert_allclose(solution.intercept, intercepts[0], rtol=1e-12)


# systems of the features' size, and of the rows'
@pytest.mark.slow
@for_each("d, norm, lam", [(400, "half_squared_group_norm", 1e-3), (500, "l21_norm", 0.1)])
def test_weak_penalties_beside_steep_squares_are_proven(d, norm, lam):
    """Gaps stood still at 1e-3 to 1e-5: the loss's gradient multiplied what rounding had left in the weights."""
    X, rng = data(80, d, correlation=0.999)[0], np.random.default_rng(0)
    Y = X[:, ::7] @ rng.normal(size=(len(range(0, d, 7)), 6)) + rng.normal(size=(80, 6))
    tasks, W = with_weights(mtl.Tasks.shared(100.0 * X, Y))
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + lam * getattr(mtl, norm)(W))
    solution = problem.solve(solver="admm", tol=1e-6)  # below the gaps that stood still
    assert solution.status == "optimal"


RNG = np.random.default_rng(5)
X = RNG.normal(size=(9, 3))

WEIGHTS = {
    "none": None,
    "many": RNG.uniform(0.5, 2.0, 9),
    "few": np.where(np.arange(9) % 4 == 0, 2.0, 0.0),
    "zero": np.zeros(9),
}


@for_each("form", [np.asarray, sparse.csr_array, lambda A: A.astype(np.float32)])
@for_each("weights", WEIGHTS)
def test_gram(form, weights):
    given, w = form(X), WEIGHTS[weights]
    dense = given.toarray() if sparse.issparse(given) else given.astype(float)
    expected = dense.T @ np.diag(np.ones(9) if w is None else w) @ dense
    found = gram(given, w)
    assert isinstance(found, np.ndarray) and found.dtype == float
    assert np.allclose(found, expected, rtol=1e-13, atol=1e-13)
    of_rows = RNG.uniform(0.5, 2.0, 3)
    assert np.allclose(gram(given.T, of_rows), dense @ np.diag(of_rows) @ dense.T, rtol=1e-13, atol=1e-13)


def test_too_large_says_what_and_what_to_write():
    require_gram_memory(10, 1, "")
    said = r"the Gram matrices of 7 tasks with 10,000,000 features .* take fewer"
    with pytest.raises(SolverError, match=said):
        require_gram_memory(10**7, 7, "take fewer")
