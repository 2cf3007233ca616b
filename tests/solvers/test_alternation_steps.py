"""Alternation: the baseline's updates by hand, wrong updates that are noticed, and the smoothing that covariances need."""

import json
from pathlib import Path

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.calculus.spectral_matrix import SpectralMatrix
from mtldsl.atoms.structures import MatrixNormal
from mtldsl.errors import CrossCheckError

FIXTURES = Path(__file__).parents[3] / "shared" / "fixtures"
has_fixtures = pytest.mark.skipif(not FIXTURES.exists(), reason=f"no fixtures at {FIXTURES}")


def fixture(name):
    return json.loads((FIXTURES / f"{name}.json").read_text())


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


@pytest.mark.parametrize("fudge", [0.0, 1e-3, 0.5])
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


@pytest.mark.parametrize("unit", [1e12, 1e-9])
def test_a_feature_in_another_unit_gives_no_warning(unit):
    """scipy's solve called such systems ill-conditioned, in a RuntimeWarning, which is an error in these tests."""
    rng = np.random.default_rng(4)
    Xs = [rng.normal(size=(9, 4)) * [unit, 1.0, 1.0, 1.0] for _ in range(3)]
    problem = fetr(mtl.Tasks.separate(Xs, list(rng.normal(size=(3, 9)))))
    found = problem.solve(solver="alternating", method="block", w_step="closed_form", max_iter=5)
    assert found.status == "iteration_limit" and all(
        np.isfinite(block).all() for block in found.blocks.values()
    )


@pytest.mark.parametrize("method, word", [("block", "update_one"), ("joint", "update")])
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


def test_a_wrong_gradient_leads_nowhere(monkeypatch):
    """L-BFGS finds no way down, and nothing is called stationary."""
    right = MatrixNormal.value_and_gradient

    def wrong(self, W):
        value, gradient = right(self, W)
        return value, -gradient

    monkeypatch.setattr(MatrixNormal, "value_and_gradient", wrong)
    problem = fetr(regression())
    solution = problem.solve(solver="alternating", method="lbfgs", tol=1e-8, max_iter=200)
    assert solution.status not in ("stationary", "optimal")


# ------------------------------------------------------------------------------------------ data of the linear step


# ------------------------------------------------------------------------------------- covariances of bounded trace


def mtfl(tasks, gamma=0.6, word=mtl.feature_covariance_norm, kind=mtl.FeatureCovariance):
    W, C = mtl.Weights(tasks), kind(tasks)
    return mtl.minimize(mtl.sum_of_squares(W, tasks) + gamma * word(W, C), subject_to=[C.trace() <= 1])


@pytest.mark.slow
@has_fixtures
def test_alternation_on_the_larger_side_locks_without_smoothing():
    """The literal algorithm, D = (W W^T)^{1/2} / trace with more features than tasks, in numpy: it ends at the fixture's wrong
    point. The same on the tasks' side ends at the optimum, and so does the package on either.
    """
    data = fixture("mtfl_mtrl_sqtrace")
    X, Y, gamma = np.array(data["data"]["X"]), np.array(data["data"]["Y"]), data["gamma"]

    def objective(W):
        return np.sum((X @ W - Y) ** 2) + gamma * np.linalg.norm(W, "nuc") ** 2

    def root(M):
        values, V = np.linalg.eigh(M)
        S = (V * np.sqrt(np.maximum(values, 0.0))) @ V.T
        return S / np.trace(S)

    D = np.eye(5) / 5
    for _ in range(3000):  # W in the range of D: W = R V, D = R R^T, gamma tr(W^T D^+ W) = gamma ||V||^2
        values, V = np.linalg.eigh(D)
        R = V * np.sqrt(np.maximum(values, 0.0))
        W = R @ np.linalg.solve(R.T @ X.T @ X @ R + gamma * np.eye(5), R.T @ X.T @ Y)
        D = root(W @ W.T)
    assert objective(W) == pytest.approx(data["mtfl_altern_trapped_no_eps"], abs=1e-4)  # 11.0668
    assert objective(W) > data["optimum"] + 0.1
    tasks = mtl.Tasks.shared(X, Y)
    for problem in (mtfl(tasks), mtfl(tasks, word=mtl.task_covariance_norm, kind=mtl.TaskCovariance)):
        solution = problem.solve(solver="alternating", tol=1e-6)
        assert solution.status == "optimal"
        assert solution.objective == pytest.approx(data["optimum"], rel=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_smoothed_alternation_descends_to_near_the_optimum(seed):
    """Tasks of rank two: the optimum is singular. What descends is the smoothed objective, which the solver asserts; what it shows
    ends near the dual bound, and no look is far above the one before."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 6))
    Y = X @ rng.normal(size=(6, 2)) @ rng.normal(size=(2, 4)) + 0.1 * rng.normal(size=(20, 4))
    problem = mtfl(mtl.Tasks.shared(X, Y), gamma=2.0)
    optimum = problem.solve(solver="admm", tol=1e-8).objective
    solution = problem.solve(solver="alternating", tol=1e-10, max_iter=1000)
    objectives = np.array([look["objective"] for look in solution.history])
    assert objectives.min() >= optimum - 1e-7 * optimum
    assert objectives[-1] <= optimum * (1 + 1e-5)
    assert np.max(np.diff(objectives)) <= 1e-9 * optimum
    assert objectives[0] > optimum * (1 + 1e-4)
