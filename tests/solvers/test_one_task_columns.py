"""One task's sparse columns: the model of a Newton step against its optimality conditions and against dense inputs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.solvers.rows.penalty import RowPenalty
from mtldsl.solvers.smooth.designs import design_of_task
from mtldsl.solvers.smooth.model import violation
from mtldsl.solvers.smooth.one_task import ColumnsOfTask, TaskModel

N, D = 80, 50


def _inputs(seed=0):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((N, D)) < 0.2, rng.normal(size=(N, D)), 0.0)
    X[:, 7] = 0.0
    X[:, 9] = X[:, 8]
    return X, rng


def _columns(X, rows) -> ColumnsOfTask:
    return ColumnsOfTask(rows, sparse.csr_array(X.T))


@pytest.mark.parametrize("rows", [np.arange(D), np.array([1, 4, 7, 8, 9, 30])], ids=["all", "some"])
def test_products_with_columns(rows):
    X, rng = _inputs()
    u, weights = rng.normal(size=N), rng.random(N)
    columns = _columns(X, rows)
    np.testing.assert_allclose(columns.pull(u)[0], X[:, rows].T @ u, atol=1e-12)
    np.testing.assert_allclose(columns.forward(u[None, : len(rows)]), X[:, rows] @ u[: len(rows)], atol=1e-12)
    border, diagonal = columns.weighed(weights)
    np.testing.assert_allclose(border, X[:, rows].T @ weights, atol=1e-12)
    np.testing.assert_allclose(diagonal, (X[:, rows] ** 2).T @ weights, atol=1e-12)


@pytest.mark.parametrize("precision", [0.1, 0.01, 1e-6], ids=["coarse", "fine", "finest"])
@pytest.mark.parametrize("nonneg", [False, True], ids=["", "nonnegative"])
@pytest.mark.parametrize("ridge", [0.0, 0.3], ids=["", "ridge"])
@pytest.mark.parametrize("centred", [False, True], ids=["", "intercept"])
def test_the_model_is_minimised(centred, ridge, nonneg, precision):
    """What subgradients are left, divided by curvatures, is the asked part of what there was: against a dense Hessian."""
    X, rng = _inputs(1)
    rows = np.setdiff1d(np.arange(D), [3, 11])
    X = X[:, rows]
    p = len(rows)
    penalty = RowPenalty(np.full((1, p), 0.4), np.zeros(p), np.full(p, ridge), nonneg)
    weights, slope = 0.05 + rng.random(N), rng.normal(size=N)
    W = np.where(rng.random((1, p)) < 0.3, rng.random((1, p)), 0.0)
    total, slopes = (weights.sum(), slope.sum()) if centred else (0.0, 0.0)
    model = TaskModel(_columns(X, np.arange(p)), penalty, W, (slope @ X)[None], weights, total, slopes)
    model.descend(precision, 0.0)
    H, border = (X.T * weights) @ X, weights @ X
    if centred:
        H -= np.outer(border, border) / weights.sum()
    gradient = slope @ X - (border * slope.sum() / weights.sum() if centred else 0.0)
    diagonal = np.where(H.diagonal() > 1e-10, H.diagonal(), 0.0)[None]
    before = violation(penalty, W, gradient[None], diagonal)
    left = violation(penalty, model.W, (gradient + H @ (model.W - W)[0])[None], diagonal)
    assert left <= 4.0 * max(precision, 0.2 if precision >= 0.1 else 0.0) ** 2 * before
    np.testing.assert_allclose(model.change, X @ (model.W - W)[0], atol=1e-10)
    step = (model.W - W)[0]
    if centred:
        assert model.sums[0] == pytest.approx(slope.sum() + border @ step, abs=1e-9)
    value = gradient @ step + 0.5 * step @ H @ step + penalty.value(model.W) - penalty.value(W)
    known = model.objective(model.W, model.carried) - model.objective(W, np.zeros(N))
    assert known == pytest.approx(value, abs=1e-9)
    assert value < 0


PENALTIES = {
    "l1": lambda W: 0.7 * mtl.l1_norm(W),
    "l21": lambda W: 0.7 * mtl.l21_norm(W),
    "l1 and ridge": lambda W: 0.5 * mtl.l1_norm(W) + 0.3 * mtl.ridge(W),
}
LOSSES = {"logistic": mtl.logistic_loss, "squared hinge": mtl.squared_hinge_loss, "poisson": mtl.poisson_loss}


@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_sparse_and_dense_inputs_agree(loss, penalty, intercept):
    X, rng = _inputs(2)
    z = X @ np.where(np.arange(D) < 6, rng.normal(size=D), 0.0) + 0.3 * rng.normal(size=N)
    y = (
        rng.poisson(np.exp(np.clip(z, -3, 2))).astype(float)
        if loss == "poisson"
        else np.where(z > 0.2, 1.0, -1.0)
    )
    found = []
    for inputs in (X, sparse.csr_array(X)):
        tasks = mtl.Tasks.shared(inputs, y[:, None])
        W = mtl.Weights(tasks, intercept=intercept)
        problem = mtl.minimize(LOSSES[loss](W, tasks) + PENALTIES[penalty](W))
        found.append(problem.solve(solver="proximal_gradient", tol=1e-9))
    dense, columns = found
    assert columns.status == dense.status == "optimal"
    assert columns.objective == pytest.approx(dense.objective, rel=3e-9)
    np.testing.assert_allclose(columns.predict(X)[0], dense.predict(X)[0], atol=1e-3)


def test_one_task_has_its_columns_where_they_lie():
    X, _ = _inputs()
    columns = design_of_task(sparse.csr_array(X)).columns(np.array([2, 5]))
    assert isinstance(columns, ColumnsOfTask)
