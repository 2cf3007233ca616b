"""Reweighting of tasks and spectrum: every piece against its definition in plain numpy, and whole runs against known values."""

import json

import numpy as np
import pytest
from scipy.linalg import block_diag

import mtldsl as mtl
from mtldsl.errors import SolverError
from mtldsl.solvers.alternation.radial_data import radial_data
from mtldsl.solvers.alternation.reweighting import Reweighting, why_not_reweighted
from mtldsl.solvers.alternation.second_order import SecondOrder
from tests.solvers.test_admm import FIXTURES

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
    tasks = data(d, m, kind, seed=d + 10 * m, weighted=weighted)
    W = mtl.Weights(tasks, intercept=intercept)
    problem = mtl.minimize(objective(W, tasks, mean))
    form = problem.form()
    assert why_not_reweighted(form) is None
    return problem, form, Reweighting(form, radial_data(form))


def weights_of(form, seed=0):
    return np.random.default_rng(seed).normal(size=form.weight_blocks[0].shape)


@pytest.mark.parametrize("case", CASES)
def test_the_value_is_that_of_the_model_at_its_best_intercepts(case):
    _, form, model = made(case)
    for W in (
        weights_of(form),
        0.0 * weights_of(form),
        np.outer(*(weights_of(form)[:, 0], weights_of(form)[0])),
    ):
        blocks = model.data.blocks(W)
        assert model.evaluate(W).value == pytest.approx(form.value(blocks), rel=1e-12)
        for name in blocks.keys() - {model.data.block}:
            for by in (1e-3, -1e-3):
                assert form.value(blocks | {name: blocks[name] + by}) > model.evaluate(W).value


@pytest.mark.parametrize("case", CASES)
def test_gradient_and_hessian_are_differences_of_the_value(case):
    _, form, model = made(case)
    W, P, Q = (weights_of(form, seed) for seed in range(3))
    value = lambda V: form.value(model.data.blocks(V))  # noqa: E731
    gradient = lambda V: sum(model.gradient_parts(model.evaluate(V)))  # noqa: E731
    h = 1e-5
    assert np.vdot(gradient(W), P) == pytest.approx((value(W + h * P) - value(W - h * P)) / (2 * h), rel=1e-6)
    for at in (W, np.outer(W[:, 0], W[0]) + 0.1 * P):
        second = SecondOrder(model, model.evaluate(at))
        expected = (gradient(at + h * P) - gradient(at - h * P)) / (2 * h)
        found = second.hessian(P)
        assert np.linalg.norm(found - expected) <= 1e-5 * np.linalg.norm(expected)
        assert np.vdot(found, Q) == pytest.approx(np.vdot(P, second.hessian(Q)), rel=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_steps_invert_the_hessian_of_the_majoriser(case):
    """blockdiag(v_i X_i^T X_i) + A with A = 2 sum c D, made dense from the data and from the definition of D."""
    _, form, model = made(case)
    W, G = weights_of(form), weights_of(form, 1)
    (loss,), tasks, d = form.losses, form.losses[0].tasks, len(W)
    blocks = model.data.blocks(W)
    r = loss.predictions(blocks) - tasks.targets
    s = np.ones(len(r)) if tasks.sample_weights is None else tasks.sample_weights
    A = np.zeros((d, d))
    for f in form.functions:
        c = f.map.multiple_of("W")
        if hasattr(f.atom, "slope"):
            x, U = np.linalg.eigh(c**2 * W @ W.T + f.atom.eps * np.eye(d))
            A += 2.0 * f.coefficient * c**2 * (U * f.atom.slope(x)) @ U.T
        else:
            A += f.coefficient * np.eye(d)  # ridge
    dense = []
    for i, (X, ri, si) in enumerate(zip(tasks.inputs, tasks.per_task(r), tasks.per_task(s), strict=True)):
        X = X - (np.average(X, axis=0, weights=si) if loss.intercepts else 0.0)
        v = loss.coefficients[i] * loss.atom.weight_of_norm(np.sqrt(si @ ri**2))
        dense.append(v * (X.T * si) @ X + A)
    dense = block_diag(*dense)
    at = model.evaluate(W)
    exact = model.inverses(at, *model.spectral_weights(at), model.task_weights(at)).apply
    expected = np.linalg.solve(dense, G.T.ravel()).reshape(G.T.shape).T
    assert np.linalg.norm(exact(G) - expected) <= 1e-8 * np.linalg.norm(expected)
    # one step goes to the majoriser's minimiser, which is a Newton step in it
    newton = W - exact(sum(model.gradient_parts(at)))
    assert np.linalg.norm(model.step(at) - newton) <= 1e-8 * np.linalg.norm(newton)
    assert model.evaluate(newton).value < at.value
    # conjugate gradients may use something near it, as long as it is symmetric and positive
    metric = SecondOrder(model, at).metric
    assert np.vdot(G, metric(W)) == pytest.approx(np.vdot(metric(G), W), rel=1e-9)
    for H in (G, W):
        assert np.vdot(H, metric(H)) > 0.1 * np.vdot(H, exact(H))


# ------------------------------------------------------------------------------------------------- whole runs


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", CASES)
def test_the_objective_never_rises(case, method):
    problem, form, model = made(case)
    start = model.data.blocks(3.0 * weights_of(form, 5))
    solution = problem.solve(solver="alternating", method=method, warm_start=start, tol=1e-5)
    values = [model.evaluate(start["W"]).value]
    values += [value for look in solution.history for value in look["objectives"]]
    assert solution.status == "stationary" and len(values) == solution.iterations + 1
    size = abs(solution.objective) + sum(abs(f.value(solution.blocks)) for f in form.functions)
    assert np.all(np.diff(values) <= 1e-12 * size)
    assert values[-1] == pytest.approx(solution.objective, rel=1e-12)
    residual = solution.stationarity.residual
    assert solution.stationarity.gradient == residual <= 1e-5
    # and as differences of the model's own value see it
    P, h = weights_of(form, 6), 1e-4
    slope = (model.evaluate(solution.W + h * P).value - model.evaluate(solution.W - h * P).value) / (2 * h)
    parts = [np.linalg.norm(part) for part in model.gradient_parts(model.evaluate(solution.W))]
    assert abs(slope) <= (2e-5 * max(parts) + 1e-6) * np.linalg.norm(P)


@pytest.mark.parametrize("mu", [0.05, 0.5])
def test_a_kink_where_tasks_interpolate(mu):
    """Tasks of fewer rows than features are fitted exactly; no direction leads down from the point returned."""
    rng = np.random.default_rng(7)
    X = [rng.normal(size=(n, 6)) for n in (3, 4, 25, 30)]
    y = [A @ rng.normal(size=6) + rng.normal(size=len(A)) for A in X]
    tasks = mtl.Tasks.separate(X, y)
    W = mtl.Weights(tasks)
    problem = mtl.minimize(mtl.square_root_loss(W, tasks) + mu * mtl.log_rank(W, eps=0.1))
    solution = problem.solve(solver="alternating")
    norms = np.array([np.linalg.norm(A @ w - b) for A, w, b in zip(X, solution.W.T, y, strict=True)])
    assert solution.status == "stationary" and max(norms[:2]) < 1e-6 and min(norms[2:]) > 1.0
    (multiplier,) = (v for k, v in solution.multipliers.items() if "loss" in k)
    assert all(np.linalg.norm(u) <= 1 + 1e-9 for u in tasks.per_task(multiplier))
    form = problem.form()
    for scale in (1e-2, 1e-4):
        for _ in range(50):
            P = scale * rng.normal(size=solution.W.shape)
            assert form.value({"W": solution.W + P}) > solution.objective - 1e-6 * np.linalg.norm(P)


def test_continuation_starts_from_easier_models():
    problem, *_ = made("d < m, separate")
    one = problem.solve(solver="alternating", tol=1e-7)
    more = problem.solve(solver="alternating", continuation=3, tol=1e-7)
    assert more.status == one.status == "stationary" and more.iterations > one.iterations
    values = [value for look in more.history for value in look["objectives"]]
    assert values[-1] == pytest.approx(more.objective, rel=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"continuation": -1}, "continuation=-1"),
        ({"continuation": True}, "continuation=True"),
        ({"method": "fast"}, "there is no such method"),
        ({"w_step": "sylvester"}, "reweighted in closed form"),
    ],
)
def test_wrong_options(options, message):
    problem, *_ = made("shared")
    with pytest.raises(SolverError, match=message):
        problem.solve(solver="alternating", **options)


# ------------------------------------------------------------------------------------------------ known values


@pytest.fixture
def given():
    if not FIXTURES.is_dir():
        pytest.skip(f"needs {FIXTURES}")
    found = json.loads((FIXTURES / "cmtl_9x6.json").read_text())
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


@pytest.mark.parametrize("case", ["alg1_sqrt", "alg1_sq"])
@pytest.mark.parametrize("method", ["block", "algorithm_1"])
def test_the_first_ten_values(given, case, method):
    problem, (found, _, _, start) = smoothed(given, case), given
    solution = problem.solve(solver="alternating", method=method, warm_start=start, max_iter=10)
    values = [value for look in solution.history for value in look["objectives"]]
    first, *others = found[case]["first10"]
    assert problem.form().value(start) == pytest.approx(first, rel=1e-12)
    assert values == pytest.approx(others, rel=1e-11)


@pytest.mark.parametrize("case", ["alg1_sqrt", "alg1_sq"])
@pytest.mark.parametrize("method", METHODS)
def test_the_stationary_value(given, case, method):
    problem, (found, _, _, start) = smoothed(given, case), given
    for options in ({"warm_start": start}, {}):  # without one, the solver starts there by itself
        solution = problem.solve(solver="alternating", method=method, tol=1e-5, **options)
        assert solution.status == "stationary"
        assert solution.objective == pytest.approx(found[case]["stationary"], rel=1e-9)
