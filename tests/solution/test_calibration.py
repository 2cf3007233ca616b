"""Task weights and noise levels: their definitions, on every kind of data; and what they are good for."""

import numpy as np
import pytest

import mtldsl as mtl
from tests.loops import for_each
from tests.models import with_weights
from tests.pairs import pairwise_cases


def tasks_of(kind, weighted=False, seed=0, noise=(0.1, 1.0, 5.0)):
    rng = np.random.default_rng(seed)
    d, n, m = 4, 30, len(noise)
    truth = np.outer(rng.normal(size=d), np.ones(m))
    if kind == "separate":
        X = [rng.normal(size=(n + 7 * i, d)) for i in range(m)]
        y = [A @ w + s * rng.normal(size=len(A)) for A, w, s in zip(X, truth.T, noise, strict=True)]
        weights = [rng.uniform(0.5, 2.0, size=len(A)) for A in X] if weighted else None
        return mtl.Tasks.separate(X, y, sample_weights=weights)
    X = rng.normal(size=(n, d))
    Y = X @ truth + np.array(noise) * rng.normal(size=(n, m))
    if kind == "masked":
        Y[rng.random(Y.shape) < 0.3] = np.nan
    return mtl.Tasks.shared(X, Y, sample_weights=rng.uniform(0.5, 2.0, size=n) if weighted else None)


def residual_norms(solution, tasks):
    """(||r_i|| with weighted samples, total weight) in plain numpy."""
    shift = np.zeros(tasks.n_tasks) if solution.intercept is None else solution.intercept
    ones = [np.ones(n) for n in tasks.counts]
    weights = ones if tasks.sample_weights is None else tasks.per_task(tasks.sample_weights)
    rows = zip(tasks.inputs, tasks.per_task(tasks.targets), weights, solution.W.T, shift, strict=True)
    found = [(np.sqrt(s @ (X @ w + b - y) ** 2), s.sum()) for X, y, s, w, b in rows]
    return np.array(found).T


@for_each(
    "kind, weighted, intercept, mean",
    pairwise_cases(["separate", "shared", "masked"], [False, True], [False, True], [False, True]),
)
def test_weights_and_levels_are_those_of_the_residuals(kind, weighted, intercept, mean):
    tasks, W = with_weights(tasks_of(kind, weighted), intercept=intercept)
    loss = 3.0 * mtl.square_root_loss(W, tasks, eps=0.02, mean=mean)
    solution = mtl.minimize(loss + 1e-3 * mtl.trace_norm(W)).solve()
    norms, totals = residual_norms(solution, tasks)
    coefficients = 3.0 / totals if mean else 3.0  # divided by the total weight of the samples
    assert solution.task_weights == pytest.approx(coefficients / np.hypot(norms, 0.02), rel=1e-9)
    assert solution.noise_levels == pytest.approx(norms / np.sqrt(totals), rel=1e-9)
    assert solution.noise_levels == pytest.approx(np.array([0.1, 1.0, 5.0]), rel=0.5)


@for_each(("word", "weight"), [("squared_loss", 1.0), ("sum_of_squares", 2.0)])
def test_a_squared_loss_weighs_all_tasks_alike(word, weight):
    tasks, W = with_weights(tasks_of("shared"))
    solution = mtl.minimize(0.5 * getattr(mtl, word)(W, tasks) + mtl.log_rank(W)).solve()
    assert solution.task_weights == pytest.approx(np.full(3, 0.5 * weight))
    norms, totals = residual_norms(solution, tasks)
    assert solution.noise_levels == pytest.approx(norms / np.sqrt(totals))


@for_each("word", ["absolute_loss", "huber_loss", "hinge_loss", "logistic_loss"])
def test_other_losses_have_no_weights(word):
    tasks = tasks_of("shared")
    if word in ("hinge_loss", "logistic_loss"):
        tasks = mtl.Tasks.shared(tasks.X, np.where(tasks.targets.reshape(3, -1).T > 0, 1.0, -1.0))
    W = mtl.Weights(tasks)
    solution = mtl.minimize(getattr(mtl, word)(W, tasks) + mtl.trace_norm(W)).solve(tol=1e-4)
    assert solution.task_weights is solution.noise_levels is None
