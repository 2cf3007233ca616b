"""Alternation: the baseline's updates by hand, wrong updates that are noticed, and the smoothing that covariances need."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.calculus.spectral_matrix import SpectralMatrix
from mtldsl.atoms.structures import MatrixNormal
from mtldsl.errors import CrossCheckError
from tests.loops import for_each


def fetr(
    tasks,
    low=0.05,
    high=20.0,
    eta=0.7,
    rho=1.3,
    more=None,
    constraints=None,
    loss=mtl.sum_of_squares,
    **weights,
):
    W = mtl.Weights(tasks, **weights)
    first, second = mtl.FeaturePrecision(tasks), mtl.TaskPrecision(tasks)
    objective = loss(W, tasks) + mtl.matrix_normal(W, first, second, eta=eta, rho=rho)
    box = [first >> low, first << high, second >> low, second << high]
    return mtl.minimize(
        objective if more is None else objective + more(W),
        subject_to=box + ([] if constraints is None else constraints(W)),
    )


def regression(d=5, m=3, n=14, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = X @ np.outer(rng.normal(size=d), rng.normal(size=m)) + 0.3 * rng.normal(size=(n, m))
    return mtl.Tasks.shared(X, Y)


@for_each("fudge", [0.0, 1e-3, 0.5])
def test_flip_flop_is_the_sample_estimate_plus_the_fudge_factor(fudge):
    """After one iteration: the first matrix for the weights beside the identity, the second for both."""
    problem = fetr(regression())
    found = problem.solve(solver="alternating", method="flip_flop", fudge=fudge, max_iter=1)
    W = found.W

    def estimate(covariance):
        values, V = np.linalg.eigh(covariance + fudge * np.eye(len(covariance)))
        with np.errstate(divide="ignore"):
            return (V * np.clip(1.0 / np.maximum(values, 0.0), 0.05, 20.0)) @ V.T

    first = estimate(0.7 * W @ W.T / (1.3 * 3))
    np.testing.assert_allclose(found.Sigma1.precision, first, atol=1e-9)
    second = estimate(0.7 * W.T @ first @ W / (1.3 * 5))
    np.testing.assert_allclose(found.Sigma2.precision, second, atol=1e-9)


@for_each("unit", [1e12, 1e-9])
def test_a_feature_in_another_unit_gives_no_warning(unit):
    """scipy's solve called such systems ill-conditioned, in a RuntimeWarning, which is an error in these tests."""
    rng = np.random.default_rng(4)
    Xs = [rng.normal(size=(9, 4)) * [unit, 1.0, 1.0, 1.0] for _ in range(3)]
    problem = fetr(mtl.Tasks.separate(Xs, list(rng.normal(size=(3, 9)))))
    found = problem.solve(solver="alternating", method="block", w_step="closed_form", max_iter=5)
    assert found.status == "iteration_limit" and all(
        np.isfinite(block).all() for block in found.blocks.values()
    )


@for_each("method, word", [("block", "update_one"), ("joint", "update")])
def test_a_wrong_update_is_noticed(method, word, monkeypatch):
    """Every iteration asserts that it goes down: updates that are right until nearly the end, and then are not. What was reached
    before is kept, and said to be no more than that. The matrices that a wrong joint update shows beside it are not those of the objective,
    which the second evaluation says.
    """
    problem, right, calls = fetr(regression()), getattr(MatrixNormal, word), []

    def wrong(self, *arguments):
        calls.append(arguments)
        if len(calls) < 30:
            return right(self, *arguments)
        return tuple(SpectralMatrix.multiple_of_identity(0.05, side) for side in (5, 3))

    monkeypatch.setattr(MatrixNormal, word, wrong)
    options = {"solver": "alternating", "method": method, "tol": 1e-14, "max_iter": 200}
    if method == "joint":
        with pytest.raises(CrossCheckError, match="as typed") as caught:
            problem.solve(**options)
        solution = caught.value.solution
    else:
        solution = problem.solve(**options)
    assert solution.status == "stalled" and len(calls) >= 30
    assert "the objective rose from" in solution.reason and "a fault in mtldsl" in solution.reason
