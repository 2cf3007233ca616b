"""Smooth losses on selected rows: the selection must not be seen in the solution."""

from __future__ import annotations

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.compile.reductions.rows import Rows
from mtldsl.solvers.rows import selection as row_selection
from tests.models import separate, shared

PG = "proximal_gradient"
SLOPES = {
    "logistic": (mtl.logistic_loss, "sign", lambda z, y: -y / (1 + np.exp(y * z))),
    "huber": (mtl.huber_loss, "real", lambda z, y: np.clip(z - y, -1, 1)),
}


@pytest.fixture(autouse=True)
def select_from_few(monkeypatch):
    """The small models of these tests are large enough."""
    monkeypatch.setattr(row_selection, "_FEWEST_ROWS", 1)


def violation(solution, tasks, slope, l1, l21, ridge=0.0, nonneg=False) -> float:
    """The distance of -gradient from the penalty's subdifferential, row by row, and of the intercepts' derivatives from 0."""
    W, worst = solution.W, 0.0
    d, m = W.shape
    b = np.zeros(m) if solution.intercept is None else solution.intercept
    q = np.empty((d, m))
    for i, (X, y) in enumerate(zip(tasks.inputs, tasks.per_task(tasks.targets), strict=True)):
        s = 1.0 if tasks.sample_weights is None else tasks.per_task(tasks.sample_weights)[i]
        u = s * slope(X @ W[:, i] + b[i], y)
        q[:, i] = -(X.T @ u) - ridge * W[:, i]
        worst = max(worst, abs(np.sum(u)) if solution.intercept is not None else 0.0)
    l1, l21 = np.broadcast_to(l1, (d, m)), np.broadcast_to(l21, d)
    for j in range(d):
        norm = np.linalg.norm(W[j])
        if norm == 0:
            left = np.maximum((q[j] if nonneg else np.abs(q[j])) - l1[j], 0)
            worst = max(worst, np.linalg.norm(left) - l21[j])
            continue
        v, on = q[j] - l21[j] * W[j] / norm, W[j] != 0
        worst = max(worst, np.abs(v - l1[j] * np.sign(W[j]))[on].max())
        worst = max(worst, ((v if nonneg else np.abs(v)) - l1[j])[~on].max(initial=0.0))
    return worst


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("layout", ["shared", "missing", "weighted", "sparse", "separate"])
@pytest.mark.parametrize("name", SLOPES)
@pytest.mark.parametrize("kind", ["l1", "l21", "both", "nonneg", "weights"])
def test_optimality_conditions_hold(kind, name, layout, intercept):
    word, labels, slope = SLOPES[name]
    options = {"missing": {"missing": 0.2}, "weighted": {"sample_weights": True}, "sparse": {"density": 0.5}}
    tasks = (
        separate(1, labels, sizes=(30, 17, 29, 25))
        if layout == "separate"
        else shared(1, 40, labels, **options.get(layout, {}))
    )
    W = mtl.Weights(tasks, intercept=intercept)
    a = np.linspace(0.5, 2.0, 6)
    penalty, parameters = {
        "l1": (1.5 * mtl.l1_norm(W), {"l1": 1.5, "l21": 0.0}),
        "l21": (2.5 * mtl.l21_norm(W), {"l1": 0.0, "l21": 2.5}),
        "both": (
            0.5 * mtl.l1_norm(W) + 1.5 * mtl.l21_norm(W) + 0.2 * mtl.ridge(W),
            {"l1": 0.5, "l21": 1.5, "ridge": 0.2},
        ),
        "nonneg": (1.0 * mtl.l1_norm(W), {"l1": 1.0, "l21": 0.0, "nonneg": True}),
        "weights": (
            mtl.l1_norm(W, weights=a[:, None]) + mtl.l21_norm(W, weights=a[::-1]),
            {"l1": a[:, None], "l21": a[::-1]},
        ),
    }[kind]
    problem = mtl.minimize(word(W, tasks) + penalty, subject_to=[W >= 0] if kind == "nonneg" else [])
    assert row_selection.pays(problem.form())
    solution = problem.solve(PG, tol=1e-11)
    assert solution.status == "optimal"
    assert violation(solution, tasks, slope, **parameters) < 2e-4


@pytest.mark.parametrize("intercept", [False, True])
def test_many_features_few_samples(intercept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 400))
    Y = np.where(X[:, :3] + 0.3 * rng.normal(size=(30, 3)) > 0, 1.0, -1.0)
    tasks = mtl.Tasks.shared(X, Y)
    W, lam = mtl.Weights(tasks, intercept=intercept), mtl.Parameter(1.0)
    problem = mtl.minimize(mtl.logistic_loss(W, tasks) + lam * mtl.l21_norm(W))
    critical = problem.lambda_max(lam)
    for share in (1.001, 0.5, 0.05):
        lam.value = share * critical
        solution = problem.solve(PG, tol=1e-9)
        assert solution.status == "optimal"
        assert violation(solution, tasks, SLOPES["logistic"][2], 0.0, lam.value) < 1e-4 * lam.value
        assert solution.W.any() == (share < 1)


def test_a_restricted_form_is_the_form_on_these_rows():
    tasks = shared(2, labels="sign", missing=0.2, sample_weights=True)
    W = mtl.Weights(tasks, intercept=True)
    weights = np.arange(1.0, 7.0)
    problem = mtl.minimize(
        mtl.logistic_loss(W, tasks)
        + 0.3 * mtl.l21_norm(W, weights=weights)
        + mtl.l1_norm(W, weights=weights[:, None])
    )
    form, rows = problem.form(), np.array([1, 3, 4])
    small, _ = Rows(rows).apply(form)
    blocks = {name: np.random.default_rng(1).normal(size=shape) for name, shape in form.shapes.items()}
    blocks["W"][[0, 2, 5]] = 0.0
    inner = {name: V[rows] if name == "W" else V for name, V in blocks.items()}
    assert small.value(inner) == pytest.approx(form.value(blocks), rel=1e-12)


def test_it_is_for_one_row_sparse_matrix():
    tasks = shared(3)
    W, S = mtl.Weights(tasks), mtl.Weights(tasks, name="S")
    loss = mtl.huber_loss(W, tasks)
    assert row_selection.pays(mtl.minimize(loss + mtl.l1_norm(W)).form())
    for objective in (
        loss + mtl.trace_norm(W),
        loss + mtl.ridge(W),
        loss + mtl.l1_norm(W[:3, :]),
        mtl.huber_loss(W + S, tasks) + mtl.l1_norm(W) + mtl.l1_norm(S),
    ):
        assert not row_selection.pays(mtl.minimize(objective).form())
