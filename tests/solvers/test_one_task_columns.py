"""One task's sparse columns: the model of a Newton step against its optimality conditions and against dense inputs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl

N, D = 80, 50


def _inputs(seed=0):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((N, D)) < 0.2, rng.normal(size=(N, D)), 0.0)
    X[:, 7] = 0.0
    X[:, 9] = X[:, 8]
    return X, rng


PENALTIES = {
    "l1": lambda W: 0.7 * mtl.l1_norm(W),
    "l21": lambda W: 0.7 * mtl.l21_norm(W),
    "l1 and ridge": lambda W: 0.5 * mtl.l1_norm(W) + 0.3 * mtl.ridge(W),
}
LOSSES = {"logistic": mtl.logistic_loss, "squared hinge": mtl.squared_hinge_loss, "poisson": mtl.poisson_loss}


@pytest.mark.by_default("poisson-l1-intercept")
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
