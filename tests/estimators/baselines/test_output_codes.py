"""MMOC: the metric against a general solver of the same convex problem, its bound, and the nearest labels against enumeration."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

from mtldsl.estimators.baselines import MMOC, PLST
from mtldsl.estimators.baselines.label_embedding import learned_codes
from tests.estimators.baselines.cases import labels

X, Y = labels(n=60, K=3)
NEW = np.random.default_rng(9).normal(size=(100, 5))


def objective(Q, Y, Z, C):
    """1/2 trace(Q) + C R(Q): the inner maximum, of a concave function over a box, is at one of the 3^K choices of labels at 0, free, at 1."""
    best = np.full(len(Y), -np.inf)
    for choice in product([0.0, None, 1.0], repeat=Y.shape[1]):
        free = [k for k, value in enumerate(choice) if value is None]
        y = np.tile([0.0 if value is None else value for value in choice], (len(Y), 1))
        fixed = [k for k in range(Y.shape[1]) if k not in free]
        if free:  # 2 Q (z - y) + slope = 0 on the free labels
            right = (1.0 - 2.0 * Y[:, free]) + 2.0 * (Z[:, fixed] - y[:, fixed]) @ Q[np.ix_(fixed, free)]
            y[:, free] = Z[:, free] + right @ np.linalg.pinv(2.0 * Q[np.ix_(free, free)])
        inside = ((y >= 0) & (y <= 1)).all(axis=1)
        away = Z - y
        value = np.abs(y - Y).sum(axis=1) - np.einsum("nk,kl,nl->n", away, Q, away)
        best = np.where(inside, np.maximum(best, value), best)
    right = Z - Y
    return 0.5 * np.trace(Q) + C * np.mean(best + np.einsum("nk,kl,nl->n", right, Q, right))


@pytest.fixture(scope="module")
def learned():
    Z = Ridge(alpha=1.0).fit(X, Y).predict(X)
    return Z, learned_codes(Y, Z, 10.0, 5e-4, 300)


@pytest.mark.slow
def test_the_objective_and_its_bound(learned):
    Z, codes = learned
    assert codes.gap <= 5e-4 * codes.objective
    np.testing.assert_allclose(codes.objective, objective(codes.Q, Y, Z, 10.0), rtol=1e-4)
    assert np.linalg.eigvalsh(codes.Q)[0] >= -1e-12


@pytest.mark.slow
def test_no_other_metric_is_better(learned):
    """A general solver over factors of Q, where the problem is not convex and the bound holds all the same, comes to the same value."""
    Z, codes = learned

    def of_factor(v):
        V = v.reshape(3, 3)
        return objective(V @ V.T, Y, Z, 10.0)

    done = minimize(of_factor, np.eye(3).ravel(), method="L-BFGS-B", options={"maxiter": 20})
    assert done.fun >= codes.objective - codes.gap - 1e-9
    np.testing.assert_allclose(done.fun, codes.objective, rtol=1e-3)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-1, 1.0):
        for _ in range(5):
            V = np.linalg.cholesky(codes.Q + 1e-9 * np.eye(3)) + size * rng.normal(size=(3, 3))
            assert objective(V @ V.T, Y, Z, 10.0) >= codes.objective - codes.gap - 1e-6


@pytest.mark.slow
def test_codes_are_a_factor_and_labels_apart_are_least_squares():
    model = MMOC().fit(X, Y)
    np.testing.assert_allclose(model.codes_ @ model.codes_.T, model.metric_, atol=1e-9)
    np.testing.assert_allclose(model.coef_, PLST(alpha=1.0).fit(X, Y).coef_, atol=1e-10)
    assert model.gap_ <= 1e-2 * model.objective_
    one = MMOC().fit(X, Y[:, 0])  # one label: any code is the label
    np.testing.assert_array_equal(one.predict(NEW), PLST(alpha=1.0).fit(X, Y[:, 0]).predict(NEW))


def test_too_few_steps_are_told():
    with pytest.warns(ConvergenceWarning, match=r"after 2 planes .* is within"):
        MMOC(max_iter=2, tol=1e-9).fit(X, Y)
