"""Models that are not convex beside equations with zero, with caps, and with kinks: each ends in a point that is what its name says."""

from itertools import cycle, product

import numpy as np
import pytest

import mtldsl as mtl
from tests.loops import for_each
from tests.models import with_weights

#: labels of each; those of margins are not separable, so that weights do not run away where a penalty is bounded
LOSSES = {
    "squared_loss": "real", "square_root_loss": "real", "huber_loss": "real", "absolute_loss": "real", "quantile_loss": "real",
    "logistic_loss": "mixed", "squared_hinge_loss": "mixed", "hinge_loss": "mixed", "poisson_loss": "count",
}  # fmt: skip

PENALTIES = {
    "log_rank": lambda W: 2.0 * mtl.log_rank(W),
    "exact_log_rank": lambda W: 2.0 * mtl.log_rank(W, eps=0),
    "capped_trace_norm": lambda W: 2.0 * mtl.capped_trace_norm(W, 1.0) + 0.1 * mtl.ridge(W),
    "schatten_norm": lambda W: 2.0 * mtl.schatten_norm(W, 0.5),
    "exact_schatten_norm": lambda W: 2.0 * mtl.schatten_norm(W, 0.5, eps=0),
    "capped_trace_norm_alone": lambda W: 2.0 * mtl.capped_trace_norm(W, 1.0),
    "smoothed_capped_trace_norm": lambda W: 2.0 * mtl.capped_trace_norm(W, 1.0, eps=1e-2),
    "rank": lambda W: 2.0 * mtl.rank(W) + 0.1 * mtl.ridge(W),
    "rank_alone": lambda W: 2.0 * mtl.rank(W),
    "spectral_penalty": lambda W: (
        2.0 * mtl.spectral_penalty(W, lambda x: -np.expm1(-x), lambda x: np.exp(-x))
    ),
    "bounded_rank": lambda W: 0.1 * mtl.ridge(W),
}

DIFFERENCES = np.array([[1.0, 0], [-1, 1], [0, -1], [0, 0]])

#: of a matrix the equations, and the projection on those that obey them
EQUATIONS = {
    "none": (None, lambda W: W),
    "row": (lambda W: W[0, :] == 0, lambda W: np.vstack([0.0 * W[:1], W[1:]])),
    "two tasks": (lambda W: W[:, 0] == W[:, 1],
     lambda W: W - (W[:, :1] - W[:, 1:2]) * [[0.5, -0.5, 0.0, 0.0]]),
    "tasks": (lambda W: W @ DIFFERENCES == 0, lambda W: W - W @ DIFFERENCES @ np.linalg.pinv(DIFFERENCES)),
    "sums of columns": (lambda W: W.sum(axis=0) == 0, lambda W: W - W.mean(axis=0)),
    "sums of rows": (lambda W: W.sum(axis=1) == 0, lambda W: W - W.mean(axis=1, keepdims=True)),
}  # fmt: skip


def tasks_of(kind: str, seed: int = 0, n: int = 20, d: int = 5, m: int = 4) -> mtl.Tasks:
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(d, 2)) @ rng.normal(size=(2, m))
    X = [rng.normal(size=(n + i, d)) for i in range(m)]
    scores = [A @ w + 0.5 * rng.normal(size=len(A)) for A, w in zip(X, truth.T, strict=True)]
    labels = {
        "real": lambda z: z,
        "sign": lambda z: np.where(z > 0, 1.0, -1.0),
        "mixed": lambda z: np.where((z > 0) == (rng.random(len(z)) < 0.75), 1.0, -1.0),
        "count": lambda z: rng.poisson(np.exp(np.clip(0.5 * z, -2.0, 2.0))).astype(float),
    }[kind]
    return mtl.Tasks.separate(X, [labels(z) for z in scores])


def word_of(loss, W, tasks):
    return mtl.quantile_loss(W, tasks, 0.3) if loss == "quantile_loss" else getattr(mtl, loss)(W, tasks)


#: the penalty of every equation and loss, in turn
PAIRED = dict(zip(product(EQUATIONS, LOSSES), cycle(PENALTIES), strict=False))


@pytest.mark.slow
@pytest.mark.parametrize("equation", EQUATIONS)
@for_each("loss", LOSSES)
def test_stationary_beside_equations_with_zero(loss, equation):
    """Every loss, every kind of equation, and penalties in turn: an end, and nothing nearby lies lower."""
    penalty = PAIRED[equation, loss]
    tasks, W = with_weights(tasks_of(LOSSES[loss], d=6))
    equations, project = EQUATIONS[equation]
    bounds = [mtl.rank(W) <= 2] if penalty == "bounded_rank" else []
    bounds += [] if equations is None else [equations(W)]
    problem = mtl.minimize(word_of(loss, W, tasks) + PENALTIES[penalty](W), bounds)
    solution = problem.solve()
    assert solution.status == "stationary", repr(solution)
    assert solution.violation <= 1e-12
    assert equation != "row" or not solution.W[0].any()
    at = project(solution.W)
    assert np.abs(at - solution.W).max() <= 1e-12 * np.abs(at).max()
    form, rng, at = problem.form(), np.random.default_rng(1), solution.W
    for size in (1e-2, 1e-3):
        for _ in range(20):
            moved = project(at + size * np.abs(at).max() * rng.normal(size=at.shape))
            if penalty == "bounded_rank":  # what moves them among the matrices of their rank
                A, B = (np.eye(n) + size * rng.normal(size=(n, n)) for n in at.shape)
                U, s, Vt = np.linalg.svd(project(A @ at @ B))
                moved = (U[:, :2] * s[:2]) @ Vt[:2]
                moved = moved if form.violation({"W": moved}) <= 1e-12 else at
            assert form.value({"W": moved}) >= solution.objective - 1e-5 * size * abs(solution.objective)


@pytest.mark.slow
def test_several_matrices_intercepts_and_equations_between_them():
    """Equations of one matrix are solved beforehand; one that ties two, and an offset, stay constraints."""
    tasks = tasks_of("real", seed=5)
    W, S = mtl.Weights(tasks, intercept=True), mtl.Weights(tasks, name="S")
    sparse = 0.5 * mtl.l1_norm(S) + 0.1 * mtl.ridge(S)
    problem = mtl.minimize(
        mtl.squared_loss(W + S, tasks) + 2.0 * mtl.log_rank(W, eps=0) + 0.1 * mtl.ridge(W) + sparse,
        subject_to=[W[0, :] == 0, W[1, :] + 1.0 == 1.0, S[1, :] == W[2, :], S[3, :] == 0.5],
    )
    solution = problem.solve()
    assert solution.status == "stationary", repr(solution)
    assert not solution.blocks["W"][:2].any() and solution.violation <= 1e-5
    again = problem.solve(warm_start=solution)
    assert again.status == "stationary" and again.objective <= solution.objective * (1.0 + 1e-5)


@pytest.mark.slow
def test_explain_is_about_the_model_without_equations():
    """Explain and a solver by name are about the model without equations."""
    tasks, W = with_weights(tasks_of("real"))
    problem = mtl.minimize(mtl.square_root_loss(W, tasks) + mtl.log_rank(W), [W[0, :] == 0])
    assert problem.explain().chosen == "alternating"
    found = problem.solve(solver="alternating", method="newton")  # which takes no constraints
    assert found.status == "stationary" and not found.W[0].any()
    free = mtl.minimize(mtl.square_root_loss(W, tasks) + mtl.log_rank(W)).solve()
    assert found.objective > free.objective
    assert "agree on every block" in str(problem.cross_check())


@pytest.mark.slow
@for_each("loss, intercept", [
    ("squared_loss", True), ("square_root_loss", True), ("absolute_loss", False), ("squared_hinge_loss", False)
])  # fmt: skip
def test_a_cap_below_every_singular_value_of_wide_weights(loss, intercept):
    """Penalties are constants there: the solution without them is stationary, and no step minds them."""
    tasks = tasks_of("sign" if loss == "squared_hinge_loss" else "real", seed=3, n=5, d=9, m=3)
    W = mtl.Weights(tasks, intercept=intercept)
    problem = mtl.minimize(getattr(mtl, loss)(W, tasks) + 0.01 * mtl.capped_trace_norm(W, 0.01))
    solution = problem.solve()
    assert solution.status == "stationary", repr(solution)
    assert np.abs(solution.W).max() < 100.0
    assert np.linalg.svd(solution.W, compute_uv=False)[0] > 0.01
