"""Newton's method for smooth losses: against the reference, on every layout of the data, and where the loss is flat or steep."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.atoms.atom import REGISTRY
from mtldsl.atoms.loss import SeparableLoss
from mtldsl.solvers.linear_systems import ridge_newton
from tests.loops import for_each
from tests.models import with_weights
from tests.pairs import pairwise_cases

N, D, M = 60, 40, 3


def _data(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D))
    true = np.zeros((D, M))
    true[:5] = rng.normal(size=(5, M))
    return X, X @ true + 0.3 * rng.normal(size=(N, M)), rng


def _layouts(Y):
    X, _, rng = _data()
    S = sparse.csr_array(np.where(np.abs(X) > 0.8, X, 0.0))
    holes = np.where(rng.random(Y.shape) < 0.2, np.nan, Y)
    parts = [slice(i, None, M) for i in range(M)]
    return {
        "shared": mtl.Tasks.shared(X, Y),
        "sparse": mtl.Tasks.shared(S, Y),
        "missing": mtl.Tasks.shared(X, holes),
        "separate": mtl.Tasks.separate([X[p] for p in parts], [Y[p, i] for i, p in enumerate(parts)]),
        "separate sparse": mtl.Tasks.separate([S[p] for p in parts], [Y[p, i] for i, p in enumerate(parts)]),
    }


def _signs():
    return np.where(_data()[1] > 0.5, 1.0, -1.0)


LAYOUTS = ["shared", "sparse", "missing", "separate", "separate sparse"]
PENALTIES = {
    "l1": lambda W: 2 * mtl.l1_norm(W),
    "l21": lambda W: 2 * mtl.l21_norm(W),
    "both": lambda W: mtl.l1_norm(W) + mtl.l21_norm(W),
    "l1 and ridge": lambda W: mtl.l1_norm(W) + 0.5 * mtl.ridge(W),
    "l21 and ridge": lambda W: 2 * mtl.l21_norm(W) + 0.5 * mtl.ridge(W),
    "ridge": lambda W: 0.3 * mtl.ridge(W),
    "mean and ridge": lambda W: 3 * mtl.mean_regularizer(W) + 0.3 * mtl.ridge(W),
}


def _agrees(problem, tol=1e-7):
    solution = problem.solve(solver="proximal_gradient", tol=tol, max_iter=200)
    reference = problem.solve(solver="cvxpy", tol=1e-7)
    assert solution.status == "optimal", solution
    assert solution.objective == pytest.approx(reference.objective, rel=3e-6, abs=1e-7)
    return solution


@pytest.mark.slow
@for_each("layout, penalty, intercept", pairwise_cases(LAYOUTS, PENALTIES, [True, False]))
def test_logistic_agrees_with_the_reference(layout, penalty, intercept, monkeypatch):
    tasks, W = with_weights(_layouts(_signs())[layout], intercept=intercept)
    problem = mtl.minimize(mtl.logistic_loss(W, tasks) + PENALTIES[penalty](W))
    _agrees(problem, tol=1e-9 if penalty == "ridge" else 1e-7)
    with monkeypatch.context() as patch:  # where Hessians are too large to be formed
        patch.setattr(ridge_newton, "SETTINGS", replace(ridge_newton.SETTINGS, hessian_rows=2))
        _agrees(problem)


@pytest.mark.slow
@for_each("word", ["squared_hinge_loss", "huber_loss", "exponential_loss", "poisson_loss", "gamma_loss"])
@for_each("penalty, tol", [("l1", 1e-7), ("l21", 1e-7), ("ridge", 1e-9)])
def test_other_losses_agree_with_the_reference(word, penalty, tol):
    X, Z, rng = _data()
    labels = {
        "huber_loss": 3 * Z,
        "poisson_loss": rng.poisson(np.exp(0.3 * Z)),
        "gamma_loss": np.exp(0.3 * Z),
    }
    tasks = mtl.Tasks.shared(X[:, :10] if penalty == "ridge" else X, labels.get(word, _signs()))
    W = mtl.Weights(tasks, intercept=True)
    _agrees(mtl.minimize(getattr(mtl, word)(W, tasks) + PENALTIES[penalty](W)), tol)


def test_weights_that_may_not_be_negative():
    tasks, W = with_weights(_layouts(_signs())["shared"])
    solution = _agrees(mtl.minimize(mtl.logistic_loss(W, tasks) + mtl.l1_norm(W), [W >= 0]))
    assert np.min(solution.W) >= 0


@for_each("scale", [1e-4, 1e4])
def test_columns_of_any_size_duplicates_and_constants(scale):
    X, _, _ = _data()
    X = np.column_stack([X, X[:, :3], np.ones(N), np.zeros(N)]) * scale
    tasks, W = with_weights(mtl.Tasks.shared(X, _signs()), intercept=True)
    problem = mtl.minimize(mtl.logistic_loss(W, tasks) + 2 * scale * mtl.l21_norm(W))
    solution = problem.solve(solver="proximal_gradient", tol=1e-8, max_iter=500)
    assert solution.status == "optimal", solution


@for_each("word", sorted(w for w, a in REGISTRY.items() if issubclass(a, SeparableLoss) and a.smooth))
def test_second_slopes_are_the_derivatives_of_slopes(word):
    rng = np.random.default_rng(1)
    z = rng.normal(size=50)
    for loss in REGISTRY[word].examples():
        y = {"sign": np.sign(rng.normal(size=50)), "count": rng.poisson(2.0, 50).astype(float)}.get(
            loss.labels, np.abs(rng.normal(size=50)) + 0.1
        )
        h = 1e-6
        both = [(loss.slope(z + e, y) - loss.slope(z + e - h, y)) / h for e in (0.0, h)]
        second = loss.second_slope(z, y)
        near = np.minimum(*both) - 1e-4, np.maximum(*both) + 1e-4
        assert np.all((near[0] <= second) & (second <= near[1]))


@for_each("twice", [False, True])
def test_more_features_than_samples_go_by_the_kernel(twice):
    X, _, _ = _data()
    X = X[:20] if not twice else np.vstack([X[:10], X[:10]])  # rows that repeat: a kernel without an inverse
    tasks = mtl.Tasks.shared(X, np.vstack([_signs()[:10], -_signs()[:10]]) if twice else _signs()[:20])
    W = mtl.Weights(tasks, intercept=True)
    _agrees(mtl.minimize(mtl.logistic_loss(W, tasks) + 0.05 * mtl.ridge(W)), tol=1e-7)


@for_each("penalty", ["ridge", "mean", "mean and ridge"])
@for_each("weight", [1e-4, 1e4])
def test_a_quadratic_penalty_of_any_strength(penalty, weight):
    X, _, _ = _data()
    tasks = mtl.Tasks.shared(np.column_stack([X[:, :15], 1e3 * X[:, :2], np.ones(N)]), _signs())
    W = mtl.Weights(tasks, intercept=True)
    quadratics = PENALTIES | {"mean": mtl.mean_regularizer}
    problem = mtl.minimize(mtl.logistic_loss(W, tasks) + weight * quadratics[penalty](W))
    solver = "proximal_gradient.ridge_newton"
    # two digits more than by default: steps by a wrong Hessian would not get there
    assert problem.solve(solver, tol=1e-8, max_iter=100).status == "optimal"


@pytest.mark.slow
def test_models_of_more_rows_than_samples_are_handed_over():
    """By `auto`, with a certificate; the solver by its name goes on to the same answer."""
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.normal(size=(20, 200)), axis=1) / 10
    labels = np.sign(X[:, :12] @ rng.normal(size=(12, 3)) + rng.normal(size=(20, 3)))
    tasks = mtl.Tasks.shared(X, labels)
    W, lam = mtl.Weights(tasks), mtl.Parameter(1.0)
    problem = mtl.minimize(mtl.logistic_loss(W, tasks) + lam * mtl.l21_norm(W))
    lam.value = 5e-3 * float(problem.lambda_max(lam))
    found = problem.solve()
    assert found.status == "optimal", found.reason
    assert np.count_nonzero(found.W.any(axis=1)) > 20
    alone = problem.solve("proximal_gradient", tol=1e-5)
    assert alone.objective == pytest.approx(found.objective, rel=2e-5)
