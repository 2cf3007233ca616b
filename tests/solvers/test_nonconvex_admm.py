"""Exact penalties of the spectrum, and bounded ranks: known values, global optima in closed form, and conditions in plain numpy."""

import numpy as np
import pytest

import mtldsl as mtl
from tests.concave_functions import laplace, laplace_slope
from tests.loops import for_each
from tests.models import with_weights


def low_rank(m=6, d=5, rows=(15, 30), noise=0.5, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(d, 2)) @ rng.normal(size=(2, m))
    X = [rng.normal(size=(n, d)) for n in rng.integers(*rows, size=m)]
    return mtl.Tasks.separate(
        X, [scale * (A @ w + noise * rng.normal(size=len(A))) for A, w in zip(X, truth.T, strict=True)]
    )


def multiplier(solution, word):
    (found,) = (v for name, v in solution.multipliers.items() if word in name)
    return found


def parts_of(W, Z, rank):
    """Z in the bases of W's first `rank` singular vectors: (inner, of range and null space together, null space), with s."""
    U, s, Vt = np.linalg.svd(W)
    Z = U.T @ Z @ Vt.T
    mixed = np.concatenate([Z[:rank, rank:].ravel(), Z[rank:, :rank].ravel()])
    return Z[:rank, :rank], mixed, Z[rank:, rank:], s[:rank]


# ------------------------------------------------------------------------------------ global optima in closed form
# word of W, and what one singular value costs
PENALTIES = {
    "log_rank": (lambda W: mtl.log_rank(W, eps=0), np.log1p),
    "capped_trace_norm": (lambda W: mtl.capped_trace_norm(W, 1.5), lambda s: np.minimum(s, 1.5)),
    "schatten_norm": (lambda W: mtl.schatten_norm(W, 0.5, eps=0), np.sqrt),
    "rank": (mtl.rank, lambda s: 1.0 * (s > 0)),
    "spectral_penalty": (lambda W: mtl.spectral_penalty(W, laplace, laplace_slope, eps=0),
     lambda s: 1.0 - np.exp(-(s**2))),
}  # fmt: skip


@pytest.mark.by_default("capped_trace_norm-3.0")
@pytest.mark.parametrize("mu", [0.4, 3.0])
@pytest.mark.parametrize("name", PENALTIES)
def test_orthonormal_inputs_have_the_prox_for_an_optimum(name, mu):
    """1/2 ||X W - Y||^2 + mu g(W) with X^T X = I: singular value by singular value a problem of one number, solved on a grid."""
    rng = np.random.default_rng(3)
    X = np.linalg.qr(rng.normal(size=(12, 5)))[0]
    Y = X @ rng.normal(size=(5, 2)) @ rng.normal(size=(2, 4)) + 0.3 * rng.normal(size=(12, 4))
    tasks, W = with_weights(mtl.Tasks.shared(X, Y))
    word, cost = PENALTIES[name]
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + mu * word(W))
    solution = problem.solve(solver="admm", starts=4, tol=1e-8)
    s = np.linalg.svd(X.T @ Y, compute_uv=False)
    best = 0.5 * (np.sum(Y**2) - np.sum(s**2))
    for value in s:
        grid = np.append(0.0, np.linspace(1e-9, 1.5 * value, 100_001))
        best += np.min(mu * cost(grid) + 0.5 * (grid - value) ** 2)
    assert solution.status == "stationary"
    assert solution.objective == pytest.approx(best, rel=1e-6)


@for_each("rank", [1, 2, 3])
def test_reduced_rank_regression(rank):
    """Shared inputs, squared loss, rank(W) <= r: least squares, projected on the first right singular vectors of its fit."""
    rng = np.random.default_rng(rank)
    X = rng.normal(size=(40, 6))
    Y = X @ rng.normal(size=(6, 3)) @ rng.normal(size=(3, 5)) + rng.normal(size=(40, 5))
    tasks, W = with_weights(mtl.Tasks.shared(X, Y))
    solution = mtl.minimize(mtl.squared_loss(W, tasks), [mtl.rank(W) <= rank]).solve(tol=1e-8)
    ols = np.linalg.lstsq(X, Y, rcond=None)[0]
    V = np.linalg.svd(X @ ols, full_matrices=False)[2][:rank].T
    assert solution.status == "stationary" and solution.violation <= 1e-8
    assert np.linalg.matrix_rank(solution.W, tol=1e-9) == rank
    assert solution.objective == pytest.approx(0.5 * np.sum((X @ ols @ V @ V.T - Y) ** 2), rel=1e-8)


@for_each("rank", [5, 9])
def test_a_rank_that_every_matrix_has_bounds_nothing(rank):
    """W is (6, 5): the model is convex, least squares, and proven to be solved."""
    rng = np.random.default_rng(rank)
    tasks, W = with_weights(mtl.Tasks.shared(rng.normal(size=(40, 6)), rng.normal(size=(40, 5))))
    problem = mtl.minimize(mtl.squared_loss(W, tasks), [mtl.rank(W) <= rank])
    assert problem.is_convex and not mtl.minimize(mtl.squared_loss(W, tasks), [mtl.rank(W) <= 4]).is_convex
    solution, free = problem.solve(), mtl.minimize(mtl.squared_loss(W, tasks)).solve()
    assert solution.status == "optimal" and solution.solver == free.solver
    np.testing.assert_array_equal(solution.W, free.W)
    # of an expression, its own shape counts
    assert mtl.minimize(mtl.squared_loss(W, tasks), [mtl.rank(W[:3, :]) <= 3]).is_convex
    assert not mtl.minimize(mtl.squared_loss(W, tasks), [mtl.rank(W[:3, :]) <= 2]).is_convex


@pytest.mark.slow
@for_each("word", [mtl.rank, lambda W: mtl.capped_trace_norm(W, 0.05)])
@for_each("loss", [mtl.squared_loss, mtl.huber_loss])
def test_a_penalty_that_is_flat_where_the_solution_is(loss, word):
    """A tiny penalty of the rank of data of full rank: the optimum is the loss's own, where every gradient is zero."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    tasks, W = with_weights(mtl.Tasks.shared(X, X @ rng.normal(size=(3, 4)) + 0.3 * rng.normal(size=(30, 4))))
    least = mtl.minimize(loss(W, tasks) + 1e-12 * mtl.ridge(W)).solve(tol=1e-10).objective
    penalty = 0.01 * word(W)
    problem = mtl.minimize(loss(W, tasks) + penalty)
    solution = problem.solve()
    assert solution.objective == pytest.approx(
        least + problem.form().functions[0].value(solution.blocks), rel=1e-8
    )
    assert solution.status == "stationary"


# --------------------------------------------------------------------------------------------------- conditions
@pytest.mark.by_default("square_root_loss-rank")
@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("loss", ["square_root_loss", "huber_loss", "squared_loss"])
def test_the_conditions_of_every_penalty(loss, name):
    tasks, W = with_weights(low_rank(seed=len(loss)))
    word, cost = PENALTIES[name]
    mu = 3.0 if loss == "square_root_loss" else 12.0
    solution = mtl.minimize(getattr(mtl, loss)(W, tasks) + mu * word(W)).solve(tol=1e-7)
    assert solution.status == "stationary" and solution.stationarity.residual <= 1e-7
    s = np.linalg.svd(solution.W, compute_uv=False)
    rank = int(np.sum(s > 1e-7 * s[0]))
    u = tasks.per_task(multiplier(solution, "loss"))
    pulled = -np.column_stack([A.T @ ui for A, ui in zip(tasks.inputs, u, strict=True)]) / mu
    inner, mixed, normal, s = parts_of(solution.W, pulled, rank)
    slopes = (cost(s * (1 + 1e-6)) - cost(s * (1 - 1e-6))) / (2e-6 * s)
    scale = np.abs(pulled).max()
    assert np.abs(inner - np.diag(slopes)).max() <= 1e-4 * scale + 1e-6
    assert np.abs(mixed).max(initial=0.0) <= 1e-4 * scale
    if name in ("log_rank", "capped_trace_norm") and normal.size:
        assert np.linalg.norm(normal, 2) <= 1 + 1e-4


# ------------------------------------------------------------------------------------------------- several terms
MODELS = {
    "rank and rows": lambda W, t: mtl.minimize(
        mtl.squared_loss(W, t) + 2 * mtl.l21_norm(W), [mtl.rank(W) <= 2]
    ),
    "two penalties": lambda W, t: mtl.minimize(
        mtl.huber_loss(W, t) + 2 * mtl.capped_trace_norm(W, 2.0) + 0.5 * mtl.l1_norm(W) + 0.1 * mtl.ridge(W)
    ),
}


@for_each("name", MODELS)
def test_several_terms(name):
    tasks = low_rank(seed=9)
    problem = MODELS[name](mtl.Weights(tasks), tasks)
    solution = problem.solve(tol=1e-6)
    assert solution.status == "stationary" and solution.violation <= 1e-6
    form, rng = problem.form(), np.random.default_rng(1)
    for _ in range(100):
        W = solution.W + 1e-3 * rng.normal(size=solution.W.shape)
        if name == "rank and rows":
            others = np.linalg.svd(W)[2][2:]
            W = W - W @ others.T @ others
        assert form.value({"W": W}) > solution.objective - 1e-7 * abs(solution.objective)


def test_a_time_limit_is_no_proof():
    tasks, W = with_weights(low_rank(m=20, d=15, seed=2))
    problem = mtl.minimize(mtl.square_root_loss(W, tasks) + mtl.log_rank(W, eps=0))
    solution = problem.solve(tol=1e-12, max_seconds=1e-3)
    assert solution.status == "time_limit" and np.isfinite(solution.objective)
    zero = {"W": np.zeros((15, 20))}
    assert problem.solve(max_iter=1, warm_start=zero).status != "stationary"
