"""Losses with kinks beside functions of the spectrum that are not convex: stationary, by conditions in plain numpy, and below simple ways."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import mtldsl as mtl
from tests.loops import for_each
from tests.models import with_weights
from tests.pairs import pairwise_cases
from tests.solvers.test_nonconvex_admm import parts_of


def signs(n=60, d=10, m=4, r=2, noise=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    scores = X @ rng.normal(size=(d, r)) @ rng.normal(size=(r, m)) + noise * rng.normal(size=(n, m))
    return mtl.Tasks.shared(X, np.where(scores > 0.5, 1.0, -1.0))


LOSSES = {
    "hinge": (mtl.hinge_loss, {}, 0.3),
    "absolute": (mtl.absolute_loss, {}, 0.3),
    "quantile": (mtl.quantile_loss, {"q": 0.7}, 0.5),
    "fscore": (mtl.structured_hinge, {"metric": mtl.metrics.FScore()}, 6.0),
    "auc": (mtl.structured_hinge, {"metric": mtl.metrics.AUC()}, 6.0),
}


def slope_of(penalty, s):
    return 1.0 / (1.0 + s) if penalty == "log" else np.where(s < 0.3, 1.0, 0.0)


def word(penalty, W):
    return mtl.log_rank(W, eps=0) if penalty == "log" else mtl.capped_trace_norm(W, tau=0.3)


@pytest.mark.slow
@for_each("name, penalty, intercept", pairwise_cases(LOSSES, ["log", "capped"], [False, True]))
def test_the_first_order_conditions_hold_in_plain_numpy(name, penalty, intercept):
    """-X^T u = U diag(phi'(s)) V^T + Z with ||Z||_2 <= 1 beside the singular vectors, and u a subgradient: f(z) + f*(u) = <u, z>."""
    tasks, W = with_weights(signs(), intercept=intercept)
    make, options, C = LOSSES[name]
    found = mtl.minimize(C * make(W, tasks, **options) + word(penalty, W)).solve(tol=1e-6)
    assert found.status == "stationary"
    assert found.stationarity.residual <= 1e-6
    u = multipliers_of(tasks, found)
    pull = -tasks.X.T @ u.T
    s = np.linalg.svd(found.W, compute_uv=False)
    rank = int(np.count_nonzero(s > 1e-8 * max(s[0], 1e-300)))
    inner, mixed, normal, s = parts_of(found.W, pull, rank)
    size = max(np.linalg.norm(pull), 1.0)
    assert np.abs(inner - np.diag(slope_of(penalty, s))).max(initial=0.0) <= 1e-4 * size
    assert np.abs(mixed).max(initial=0.0) <= 1e-4 * size
    assert not normal.size or np.linalg.norm(normal, 2) <= 1.0 + 1e-4
    if intercept:
        # where every sample is beyond its margin, u is rounding of nought
        assert np.abs(u.sum(axis=1)).max() <= 1e-5 * np.abs(u).sum() + 1e-12 * C
    if name == "hinge":
        # the accuracy asked for is in relation to the scores
        assert_at_the_kinks(tasks, found, u / C, 1e-5 * np.abs(found.decision_function(tasks.X)).max())


def multipliers_of(tasks, found):
    (u,) = (v for key, v in found.multipliers.items() if "loss" in key or "structured" in key)
    return np.asarray(u, float).reshape(tasks.n_tasks, -1)


def assert_at_the_kinks(tasks, found, u, edge=0.0):
    """A hinge counts in full below its margin, and not at all beyond it."""
    labels = tasks.per_task(tasks.targets)
    margins, share, edge = labels * found.decision_function(tasks.X).T, -u * labels, max(1e-4, edge)
    assert np.all((share > -1e-9) & (share < 1 + 1e-9))
    assert np.abs(share[margins > 1 + edge]).max(initial=0.0) <= 1e-9
    assert np.abs(share[margins < 1 - edge] - 1.0).max(initial=0.0) <= 1e-9


def table(name):
    if name == "digits":
        X, digit = load_digits(return_X_y=True)
        X, Y = X[:250] / 16.0, np.where(digit[:250, None] == np.arange(10), 1.0, -1.0)
        U, s, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
        return mtl.Tasks.shared(U[:, :8] * s[:8], Y), 3  # few enough features for no digit to be separable
    return signs(n=120, seed=int(name)), 2


@pytest.mark.slow
@for_each("data, intercept, ridge", pairwise_cases(["digits", "0"], [False, True], [0.0, 1e-2]))
def test_a_hinge_beside_a_bound_on_the_rank_alone(data, intercept, ridge):
    """Plain numpy: the loss's subgradient X^T u, plus the ridge's, is orthogonal to the tangent space at W, and u lies at the kinks."""
    tasks, r = table(data)
    W = mtl.Weights(tasks, intercept=intercept)
    terms = mtl.hinge_loss(W, tasks) + (ridge * mtl.ridge(W) if ridge else 0)
    found = mtl.minimize(terms, subject_to=[mtl.rank(W) <= r]).solve(tol=1e-6)
    assert found.status == "stationary"
    assert found.stationarity.residual <= 1e-6 and np.linalg.matrix_rank(found.W, 1e-9) == r
    u = multipliers_of(tasks, found)
    pull = tasks.X.T @ u.T
    G = pull + ridge * found.W
    U, _, Vt = np.linalg.svd(found.W)
    assert np.linalg.norm(U[:, :r].T @ G) <= 1e-5 * np.linalg.norm(pull)
    assert np.linalg.norm(G @ Vt[:r].T) <= 1e-5 * np.linalg.norm(pull)
    if intercept:
        assert np.abs(u.sum(axis=1)).max() <= 1e-5 * np.abs(u).sum()
    assert_at_the_kinks(tasks, found, u)


@pytest.mark.slow
@for_each("name", ["absolute", "quantile", "fscore"])
def test_other_losses_beside_a_bound_on_the_rank_alone(name):
    tasks, W = with_weights(signs(n=200, seed=4))
    make, options, C = LOSSES[name]
    problem = mtl.minimize(C * make(W, tasks, **options), subject_to=[mtl.rank(W) <= 2])
    found = problem.solve()
    assert found.status == "stationary"
    free = mtl.minimize(C * make(W, tasks, **options) + 1e-6 * mtl.ridge(W)).solve(tol=1e-4).W
    U, s, Vt = np.linalg.svd(free, full_matrices=False)
    assert found.objective < problem.form().value({"W": (U[:, :2] * s[:2]) @ Vt[:2]})


@pytest.mark.slow
@for_each("metric", [mtl.metrics.AUC(), mtl.metrics.FScore(beta=0.5), mtl.metrics.ROCArea()])
def test_planes_beside_a_capped_norm_and_a_constraint(metric):
    """Weights are small here: a step that misses the equation by `tol` would lower the objective by one percent."""
    tasks, W = with_weights(signs())
    terms = 20 * mtl.structured_hinge(W, tasks, metric=metric) + 3 * mtl.capped_trace_norm(W, tau=2.0)
    found = mtl.minimize(terms + 0.1 * mtl.ridge(W), subject_to=[W[:, 0] == W[:, 1]]).solve(tol=1e-4)
    assert found.status == "stationary" and found.solver == "admm"
    assert np.abs(found.W[:, 0] - found.W[:, 1]).max() <= 1e-6
