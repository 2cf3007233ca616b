"""The verdict "unattained" beside a separation program of the tests' own, over drawn models; and who says it."""

import warnings

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

import mtldsl as mtl
from mtldsl.estimators import MultiTaskClassifier
from tests.loops import for_each


def is_separable(X, side, charged):
    """Some D, zero where charged, lets no loss rise and one fall: side 0 asks for <x, D> = 0, else side <x, D> >= 0."""
    X = X[:, ~charged]
    n, d = X.shape
    moves = side != 0
    if d == 0 or not moves.any():
        return False
    signed, k = side[moves, None] * X[moves], int(moves.sum())
    still = np.hstack([X[~moves], np.zeros((n - k, k))]) if k < n else None
    found = linprog(
        np.r_[np.zeros(d), -np.ones(k)], A_ub=np.hstack([-signed, np.eye(k)]), b_ub=np.zeros(k), A_eq=still,
        b_eq=None if still is None else np.zeros(n - k), bounds=[(-1e3, 1e3)] * d + [(0, 1)] * k,
    )  # fmt: skip
    return -found.fun > 0.5


HELD = ["free", "l1 on two rows", "ridge", "box"]
LOSSES = ["logistic_loss", "exponential_loss", "poisson_loss", "squared_hinge_loss"]


@pytest.mark.by_default("squared_hinge_loss")
@pytest.mark.parametrize("loss", LOSSES)
@for_each("turn", [0, 1])
def test_the_verdict_is_that_of_a_separation_program(loss, turn):
    """Whole numbers as inputs, so that what stays where it is does so exactly; with intercepts, sample weights, several tasks."""
    rng, k = np.random.default_rng(0), LOSSES.index(loss)
    held, verdicts = HELD[(k + turn * (2 - k % 2)) % 4], set()
    for k in range(14):
        n, d, m, intercept = int(rng.integers(5, 16)), int(rng.integers(2, 5)), int(rng.integers(1, 3)), k % 2
        X = rng.integers(-3, 4, size=(n, d)).astype(float)
        Z = X @ rng.normal(size=(d, m)) + rng.normal(size=(n, m))
        Y = rng.poisson(np.exp(np.clip(Z - 1, -3, 2))).astype(float)
        if loss != "poisson_loss":
            Y = np.where(np.median(Z, axis=0) < Z, 1.0, -1.0)
        tasks = mtl.Tasks.shared(X, Y, sample_weights=rng.uniform(0.2, 5.0, n) if k % 3 == 0 else None)
        W = mtl.Weights(tasks, intercept=bool(intercept))
        objective, limits, charged = getattr(mtl, loss)(W, tasks), [], np.zeros(d + intercept, bool)
        if held == "l1 on two rows":
            objective, charged[:2] = objective + 1e-2 * mtl.l1_norm(W[:2]), True
        elif held == "ridge":
            objective, charged[:d] = objective + 1e-2 * mtl.ridge(W), True
        elif held == "box":
            limits, charged[:d] = [W <= 3, W >= -3], True
        inputs = np.hstack([X, np.ones((n, intercept))])
        truth = loss != "squared_hinge_loss" and any(
            is_separable(inputs, np.where(y == 0, -1.0, 0.0) if loss == "poisson_loss" else y, charged)
            for y in Y.T
        )
        found = mtl.minimize(objective, subject_to=limits).solve()
        assert found.status == ("unattained" if truth else "optimal"), (k, found)
        assert truth == (found.unattained is not None)
        verdicts.add(truth)
    if held != "l1 on two rows":
        assert verdicts == ({True, False} if held == "free" and loss != "squared_hinge_loss" else {False})


def test_print_says_that_no_weights_are_best():
    tasks = mtl.Tasks.shared(np.arange(10.0)[:, None], np.where(np.arange(10) > 4.5, 1.0, -1.0))
    W = mtl.Weights(tasks, intercept=True)
    solution = mtl.minimize(mtl.logistic_loss(W, tasks)).solve()
    assert solution.status == "unattained" and not solution.is_certified
    assert "no weights attain the infimum" in str(solution) and "ridge(W)" in str(solution)


def test_estimators_warn_of_weights_that_grow_for_ever():
    X = np.arange(10.0)[:, None]
    with pytest.warns(ConvergenceWarning, match="unattained"):
        MultiTaskClassifier("logistic_loss(W, tasks)").fit(X, (X[:, 0] > 4.5).astype(int))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MultiTaskClassifier("logistic_loss(W, tasks) + 0.1 * ridge(W)").fit(X, (X[:, 0] > 4.5).astype(int))
