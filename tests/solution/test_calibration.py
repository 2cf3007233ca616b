"""Task weights and noise levels: their definitions, on every kind of data; and what they are good for."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.solution.calibration import calibration


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


@pytest.mark.by_default("True-True-True-masked")
@pytest.mark.parametrize("kind", ["separate", "shared", "masked"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("mean", [False, True])
def test_weights_and_levels_are_those_of_the_residuals(kind, weighted, intercept, mean):
    tasks = tasks_of(kind, weighted)
    W = mtl.Weights(tasks, intercept=intercept)
    problem = mtl.minimize(
        3.0 * mtl.square_root_loss(W, tasks, eps=0.02, mean=mean) + 1e-3 * mtl.trace_norm(W)
    )
    solution = problem.solve()
    norms, totals = residual_norms(solution, tasks)
    coefficients = 3.0 / totals if mean else 3.0  # divided by the total weight of the samples
    assert solution.task_weights == pytest.approx(coefficients / np.hypot(norms, 0.02), rel=1e-9)
    assert solution.noise_levels == pytest.approx(norms / np.sqrt(totals), rel=1e-9)
    assert solution.noise_levels == pytest.approx(np.array([0.1, 1.0, 5.0]), rel=0.5)


def test_the_quadratic_touches_the_loss_from_above():
    """v_i / 2 t^2 + constant lies above the loss of a task with ||r_i|| = t, and meets it at the solution with the same slope."""
    tasks = tasks_of("separate")
    W = mtl.Weights(tasks)
    solution = mtl.minimize(mtl.square_root_loss(W, tasks) + mtl.log_rank(W)).solve()
    t0 = residual_norms(solution, tasks)[0]
    grid = np.linspace(0.0, 5.0, 200)[:, None] * t0
    above = 0.5 * solution.task_weights * (grid**2 - t0**2) + t0
    assert np.all(above >= grid - 1e-12)
    assert solution.task_weights * t0 == pytest.approx(np.ones(3))  # the slope of ||r|| is one


@pytest.mark.parametrize(("word", "weight"), [("squared_loss", 1.0), ("sum_of_squares", 2.0)])
def test_a_squared_loss_weighs_all_tasks_alike(word, weight):
    tasks = tasks_of("shared")
    W = mtl.Weights(tasks)
    solution = mtl.minimize(0.5 * getattr(mtl, word)(W, tasks) + mtl.log_rank(W)).solve()
    assert solution.task_weights == pytest.approx(np.full(3, 0.5 * weight))
    norms, totals = residual_norms(solution, tasks)
    assert solution.noise_levels == pytest.approx(norms / np.sqrt(totals))


@pytest.mark.by_default("absolute_loss")
@pytest.mark.parametrize("word", ["absolute_loss", "huber_loss", "hinge_loss", "logistic_loss"])
def test_other_losses_have_no_weights(word):
    tasks = tasks_of("shared")
    if word in ("hinge_loss", "logistic_loss"):
        tasks = mtl.Tasks.shared(tasks.X, np.where(tasks.targets.reshape(3, -1).T > 0, 1.0, -1.0))
    W = mtl.Weights(tasks)
    problem = mtl.minimize(getattr(mtl, word)(W, tasks) + mtl.trace_norm(W))
    solution = problem.solve(tol=1e-4)
    assert solution.task_weights is solution.noise_levels is None
    assert calibration(problem.form(), solution.blocks) is None


def test_a_task_without_residuals():
    tasks = mtl.Tasks.separate([np.eye(3), np.eye(3)], [np.zeros(3), np.ones(3)])
    W = mtl.Weights(tasks)
    form = mtl.minimize(mtl.square_root_loss(W, tasks) + mtl.ridge(W)).form()
    weights, levels = calibration(form, {"W": np.zeros((3, 2))})
    assert levels == pytest.approx([0.0, 1.0]) and weights[0] == np.inf
    assert weights[1] == pytest.approx(1 / np.sqrt(3))


def test_labels_in_other_units():
    """c times the labels: c times the noise level, and 1 / c of the weight."""
    tasks = tasks_of("separate", noise=(1.0, 1.0, 1.0))
    W = mtl.Weights(tasks)
    form = mtl.minimize(mtl.square_root_loss(W, tasks) + mtl.ridge(W)).form()
    x = np.random.default_rng(0).normal(size=(4, 3))
    weights, levels = calibration(form, {"W": x})
    for c in (10.0, 1e-3):
        targets = [c * y for y in tasks.per_task(tasks.targets)]
        scaled = mtl.Tasks.separate(list(tasks.inputs), targets)
        V = mtl.Weights(scaled)
        other = mtl.minimize(mtl.square_root_loss(V, scaled) + mtl.ridge(V)).form()
        w, noise = calibration(other, {"W": c * x})
        assert noise == pytest.approx(c * levels) and w == pytest.approx(weights / c)


def test_the_tasks_of_a_decomposition():
    tasks = tasks_of("separate")
    L, S = mtl.Weights(tasks, name="L"), mtl.Weights(tasks, name="S")
    problem = mtl.minimize(mtl.square_root_loss(L + S, tasks) + 2 * mtl.trace_norm(L) + 3 * mtl.l12_norm(S))
    solution = problem.solve()
    norms, totals = residual_norms(solution, tasks)
    assert solution.task_weights == pytest.approx(1.0 / norms)
    assert solution.noise_levels == pytest.approx(norms / np.sqrt(totals))
