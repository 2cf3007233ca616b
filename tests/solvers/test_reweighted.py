"""Reweighting of tasks and spectrum: runs that never rise, and end at known values."""

from itertools import cycle

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.errors import SolverError
from tests.known_optima import fixture
from tests.loops import for_each
from tests.models import with_weights
from tests.solvers.test_nonconvex_admm import multiplier, parts_of

METHODS = ("newton", "joint", "block")


def data(d, m, kind, seed=0, weighted=False):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(d, 2)) @ rng.normal(size=(2, m))
    noise = 0.1 * 3.0 ** rng.uniform(size=m)
    if kind == "separate":
        sizes = rng.integers(3, 14, size=m)
        X = [rng.normal(size=(n, d)) for n in sizes]
        y = [A @ w + s * rng.normal(size=len(A)) for A, w, s in zip(X, truth.T, noise, strict=True)]
        weights = [rng.uniform(0.5, 2.0, size=n) for n in sizes] if weighted else None
        return mtl.Tasks.separate(X, y, sample_weights=weights)
    X = rng.normal(size=(12, d))
    Y = X @ truth + noise * rng.normal(size=(12, m))
    if kind == "masked":
        Y[rng.random(Y.shape) < 0.3] = np.nan
    return mtl.Tasks.shared(X, Y, sample_weights=rng.uniform(0.5, 2.0, size=12) if weighted else None)


# name: (d, m, kind of tasks, sample weights, intercept, mean, objective of (W, tasks, mean))
def calibrated(W, t, mean):
    return mtl.square_root_loss(W, t, eps=0.1, mean=mean) + 0.7 * mtl.log_rank(W, eps=0.02)


def least_squares(W, t, mean):
    return mtl.sum_of_squares(W, t, mean=mean) + 2.0 * mtl.log_rank(W, eps=0.05)


def several_terms(W, t, mean):
    penalties = 0.5 * mtl.schatten_norm(2.0 * W, 0.5, eps=0.1) + 0.3 * mtl.log_rank(W, eps=0.02)
    return 2.0 * mtl.square_root_loss(W, t, eps=0.2, mean=mean) + penalties + 0.4 * mtl.ridge(W)


def user_defined(W, t, mean):
    own = mtl.spectral_penalty(W, lambda x: np.log1p(x), lambda x: 1.0 / (1.0 + x), eps=0.03)
    return mtl.squared_loss(W, t, mean=mean) + 0.8 * own


CASES = {
    "d < m, separate": (4, 7, "separate", False, False, False, calibrated),
    "d > m, separate": (9, 4, "separate", False, False, False, calibrated),
    "shared": (5, 5, "shared", False, False, False, calibrated),
    "shared, d > n": (15, 3, "shared", False, False, False, least_squares),
    "masked": (4, 6, "masked", False, False, False, calibrated),
    "intercept, weights": (4, 6, "separate", True, True, False, calibrated),
    "intercept, weights, shared": (6, 4, "shared", True, True, True, several_terms),
    "masked, intercept, mean": (5, 4, "masked", True, True, True, least_squares),
    "several terms": (4, 6, "separate", True, False, True, several_terms),
    "user defined": (5, 4, "separate", False, True, False, user_defined),
}


def made(case):
    d, m, kind, weighted, intercept, mean, objective = CASES[case]
    tasks, W = with_weights(data(d, m, kind, seed=d + 10 * m, weighted=weighted), intercept=intercept)
    problem = mtl.minimize(objective(W, tasks, mean))
    return problem, problem.form()


# ------------------------------------------------------------------------------------------------- whole runs
@pytest.mark.slow
@for_each("case, method", zip(CASES, cycle(METHODS), strict=False))
def test_the_objective_never_rises(case, method):
    problem, form = made(case)
    start = form.zeros() | {"W": 3.0 * np.random.default_rng(5).normal(size=form.shapes["W"])}
    solution = problem.solve(solver="alternating", method=method, warm_start=start, tol=1e-5)
    values = [form.value(start), *(value for look in solution.history for value in look["objectives"])]
    assert solution.status == "stationary"
    size = abs(solution.objective) + sum(abs(f.value(solution.blocks)) for f in form.functions)
    assert np.all(np.diff(values) <= 1e-12 * size)
    assert values[-1] == pytest.approx(solution.objective, rel=1e-12)
    assert solution.stationarity.gradient == solution.stationarity.residual <= 1e-5
    # and as differences of the model's own value see it
    P, h = np.random.default_rng(6).normal(size=solution.W.shape), 1e-4
    sides = [form.value(solution.blocks | {"W": solution.W + by * P}) for by in (h, -h)]
    assert abs(sides[0] - sides[1]) / (2 * h) <= (2e-5 * size + 1e-6) * np.linalg.norm(P)


@pytest.mark.slow
@for_each("mu, eps, solver", [(0.05, 0.1, "alternating"), (0.5, 0.1, "alternating"), (0.2, 0, "admm")])
def test_a_kink_where_tasks_interpolate(mu, eps, solver):
    """Tasks of fewer rows than features are fitted exactly; no direction leads down from the point returned."""
    rng = np.random.default_rng(7)
    X = [rng.normal(size=(n, 6)) for n in (3, 4, 25, 30)]
    y = [A @ rng.normal(size=6) + rng.normal(size=len(A)) for A in X]
    tasks, W = with_weights(mtl.Tasks.separate(X, y))
    problem = mtl.minimize(mtl.square_root_loss(W, tasks) + mu * mtl.log_rank(W, eps=eps))
    solution = problem.solve(solver=solver, tol=1e-6 if eps else 1e-7)
    norms = np.array([np.linalg.norm(A @ w - b) for A, w, b in zip(X, solution.W.T, y, strict=True)])
    assert (
        solution.status == "stationary" and max(norms[:2]) < (1e-6 if eps else 1e-7) and min(norms[2:]) > 1.0
    )
    assert all(np.linalg.norm(u) <= 1 + 1e-9 for u in tasks.per_task(multiplier(solution, "loss")))
    form = problem.form()
    for scale in (1e-2, 1e-4):
        for _ in range(50):
            P = scale * rng.normal(size=solution.W.shape)
            assert form.value({"W": solution.W + P}) > solution.objective - 1e-6 * np.linalg.norm(P)


@for_each(
    ("options", "message"),
    [
        ({"continuation": -1}, "continuation=-1"),
        ({"continuation": True}, "continuation=True"),
        ({"method": "algorithm_1", "continuation": 3}, "algorithm_1.*continuation=3.*leave it out"),
        ({"w_step": "sylvester"}, "reweighted in closed form"),
    ],
)
def test_wrong_options(options, message):
    problem, _ = made("shared")
    with pytest.raises(SolverError, match=message):
        problem.solve(solver="alternating", **options)


# ------------------------------------------------------------------------------------------------ known values
@pytest.fixture
def given():
    found = fixture("cmtl_9x6")
    X, y = ([np.array(part) for part in found[key]] for key in "Xy")
    tasks = mtl.Tasks.separate(X, y)
    start = {"W": np.column_stack([A.T @ b for A, b in zip(X, y, strict=True)])}
    return found, tasks, mtl.Weights(tasks), start


def smoothed(given, case):
    found, tasks, W, _ = given
    eps = found[case]
    loss = mtl.square_root_loss(W, tasks, eps=eps["eps2"])
    loss = loss if case == "alg1_sqrt" else mtl.sum_of_squares(W, tasks)
    return mtl.minimize(loss + found["mu"] * mtl.log_rank(W, eps=eps["eps1"]))


@for_each("case", ["alg1_sqrt", "alg1_sq"])
@for_each("method", ["block", "algorithm_1"])
def test_the_first_ten_values(given, case, method):
    problem, (found, _, _, start) = smoothed(given, case), given
    solution = problem.solve(solver="alternating", method=method, warm_start=start, max_iter=10)
    values = [value for look in solution.history for value in look["objectives"]]
    first, *others = found[case]["first10"]
    assert problem.form().value(start) == pytest.approx(first, rel=1e-12)
    assert values == pytest.approx(others, rel=1e-11)


@pytest.mark.slow
@for_each("case", ["alg1_sqrt", "alg1_sq"])
@for_each("method", METHODS)
def test_the_stationary_value(given, case, method):
    problem, (found, _, _, start) = smoothed(given, case), given
    for options in ({"warm_start": start}, {}):  # without one, the solver starts there by itself
        solution = problem.solve(solver="alternating", method=method, tol=1e-5, **options)
        assert solution.status == "stationary"
        assert solution.objective == pytest.approx(found[case]["stationary"], rel=1e-9)


@pytest.mark.slow
def test_the_stationary_value_of_an_exact_penalty(given):
    """-[X_i^T theta_i] = mu (U1 diag(1 / (1 + sigma)) V1^T + Z), with Z as large as is known."""
    (found, tasks, W, _), known = given, given[0]["nc_sqrt_exact"]
    problem = mtl.minimize(mtl.square_root_loss(W, tasks) + found["mu"] * mtl.log_rank(W, eps=0))
    solution = problem.solve(tol=1e-9)
    assert solution.status == "stationary" and solution.stationarity.residual <= 1e-9
    assert solution.objective == pytest.approx(known["value"], rel=1e-8)
    assert np.linalg.matrix_rank(solution.W, tol=1e-9) == known["rank"]
    thetas, pulled = tasks.per_task(multiplier(solution, "loss")), multiplier(solution, "log_rank")
    for A, b, w, theta, pull in zip(tasks.inputs, found["y"], solution.W.T, thetas, pulled.T, strict=True):
        r = A @ w - np.array(b)
        assert np.linalg.norm(theta) <= 1 + 1e-9
        assert np.linalg.norm(r) <= 1e-6 or theta == pytest.approx(r / np.linalg.norm(r), abs=1e-7)
        assert pull == pytest.approx(-A.T @ theta, abs=1e-7)
    inner, mixed, normal, s = parts_of(solution.W, pulled / found["mu"], known["rank"])
    assert inner == pytest.approx(np.diag(1.0 / (1.0 + s)), abs=1e-7) and np.abs(mixed).max() <= 1e-7
    assert np.linalg.norm(normal, 2) == pytest.approx(known["kkt_perp_over_mu"], abs=1e-6)
