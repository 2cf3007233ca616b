"""The steps of an alternation: five linear solvers against one dense system, updates in turn, and the smoothing that covariances need."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import mtldsl as mtl
from mtldsl.atoms.calculus.spectral_matrix import SpectralMatrix
from mtldsl.atoms.structures import MatrixNormal
from mtldsl.compile.reductions.kept import Kept
from mtldsl.compile.reductions.smaller_side import SmallerSide
from mtldsl.compile.reductions.whitened import Whitened
from mtldsl.compile.terms.structure import learned_matrices
from mtldsl.errors import CrossCheckError, SolverError
from mtldsl.proof.certificate import certify
from mtldsl.solvers.alternation.blocks import assert_descent, flip_flop, in_turn, starting_matrices
from mtldsl.solvers.alternation.linear_step import METHODS, Penalty, fitting_method, solve_weights, why_not
from mtldsl.solvers.alternation.quadratic_data import QuadraticData, quadratic_data
from mtldsl.solvers.alternation.weights_step import ConvexStep, LinearStep, weights_step, why_not_linear

FIXTURES = Path(__file__).parents[3] / "shared" / "fixtures"
has_fixtures = pytest.mark.skipif(not FIXTURES.exists(), reason=f"no fixtures at {FIXTURES}")


class Patient:
    """A watch that is never content."""

    expired = False

    def __call__(self, point):
        return False


# -------------------------------------------------------------------------------------------- the linear system


def spectral(rng, n, kind):
    """A random positive matrix: all its eigenvectors, a few and a rest, or a multiple of the identity."""
    if kind == "identity":
        return SpectralMatrix.multiple_of_identity(rng.uniform(0.5, 2.0), n)
    basis, values = np.linalg.qr(rng.normal(size=(n, n)))[0], rng.uniform(0.2, 5.0, n)
    if kind == "full" or n == 1:
        return SpectralMatrix(basis, values, 0.0)
    return SpectralMatrix(basis[:, : n // 2], values[: n // 2], 3.0)


def step_of(rng, d, m, shared, n_penalties=1, offset=False, kind="full", rank=None):
    samples = d + 2 if rank is None else rank
    Xs = [rng.normal(size=(samples, d)) for _ in range(m)]
    gram = Xs[0].T @ Xs[0] if shared else np.stack([X.T @ X for X in Xs])
    data = QuadraticData("W", gram, rng.normal(size=(d, m)), 0.0)
    penalties = [
        Penalty(spectral(rng, d, kind), spectral(rng, m, kind), rng.normal(size=(d, m)) if offset else None)
        for _ in range(n_penalties)
    ]
    return data, penalties


def dense_solution(data, penalties):
    """K_t w_t + sum_k (A_k (W + O_k) B_k)_t = c_t as one system."""
    d, m = data.shape
    system = np.zeros((d * m, d * m))
    for t in range(m):
        K = data.gram if data.gram.ndim == 2 else data.gram[t]
        system[t * d : (t + 1) * d, t * d : (t + 1) * d] = K
    right = data.cross.T.ravel().copy()
    for p in penalties:
        block = np.kron(p.columns.dense(), p.rows.dense())
        system += block
        if p.offset is not None:
            right -= block @ p.offset.T.ravel()
    return np.linalg.solve(system, right).reshape(m, d).T


SHAPES = [(5, 3), (3, 5), (4, 4), (1, 3), (4, 1), (1, 1)]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("d, m", SHAPES)
@pytest.mark.parametrize("shared", [True, False], ids=["shared", "separate"])
@pytest.mark.parametrize("offset", [False, True], ids=["", "offset"])
@pytest.mark.parametrize("kind", ["full", "rest", "identity"])
def test_every_method_solves_the_system(method, d, m, shared, offset, kind):
    rng = np.random.default_rng(d * 10 + m)
    for n_penalties in (1, 2):
        data, penalties = step_of(rng, d, m, shared, n_penalties, offset, kind)
        if why_not(method, data, penalties) is not None:
            assert method in ("simultaneous_diagonalization", "sylvester")
            assert not shared or n_penalties == 2
            continue
        expected = dense_solution(data, penalties)
        found = solve_weights(method, data, penalties, rng.normal(size=(d, m)))
        np.testing.assert_allclose(found, expected, atol=1e-10 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("method", METHODS)
def test_fewer_samples_than_features(method):
    """K is singular: the penalty alone makes the solution unique."""
    rng = np.random.default_rng(0)
    data, penalties = step_of(rng, 6, 3, shared=True, rank=2)
    expected = dense_solution(data, penalties)
    np.testing.assert_allclose(solve_weights(method, data, penalties, np.zeros((6, 3))), expected, atol=1e-9)


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "separate"])
@pytest.mark.parametrize("side", ["features", "tasks"])
@pytest.mark.parametrize("basis", [2, 4])
def test_singular_covariances_confine_the_weights(shared, side, basis):
    """An eigenvalue inf of a precision: W has no part along it. The same system on the rest, written out."""
    rng = np.random.default_rng(3)
    d, m = (4, 3) if side == "features" else (3, 4)
    Q = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    values = np.array([2.0, 0.7, np.inf, np.inf])[:basis]
    singular, identity = (
        SpectralMatrix(Q[:, :basis], values, np.inf),
        SpectralMatrix.multiple_of_identity(1.0, 3),
    )
    penalty = Penalty(singular, identity) if side == "features" else Penalty(identity, singular)
    data = step_of(rng, d, m, shared)[0]
    free = Q[:, :2] * np.sqrt([1 / 2.0, 1 / 0.7])  # W = free @ V, and the penalty is ||V||^2
    if side == "features":
        grams = np.broadcast_to(data.gram, (m, d, d))
        expected = np.column_stack(
            [free @ np.linalg.solve(free.T @ K @ free + np.eye(2), free.T @ c) for K, c in zip(grams, data.cross.T, strict=True)]
        )  # fmt: skip
    else:
        system = np.zeros((d * 2, d * 2))
        for t in range(m):
            K = data.gram if shared else data.gram[t]
            system += np.kron(np.outer(free[t], free[t]), K)
        right = (data.cross @ free).T.ravel()
        expected = np.linalg.solve(system + np.eye(d * 2), right).reshape(2, d).T @ free.T
    fitting = [m for m in METHODS if why_not(m, data, [penalty]) is None]
    assert fitting == (["simultaneous_diagonalization"] if shared else []) + ["conjugate_gradient"]
    assert fitting_method(data, [penalty]) == fitting[0]
    for method in fitting:
        found = solve_weights(method, data, [penalty], np.zeros((d, m)))
        np.testing.assert_allclose(found, expected, atol=1e-9)


CHAIN = np.array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])


def inputs(shared):
    """(tasks, X task by task, y task by task) of four features and three tasks"""
    rng = np.random.default_rng(4)
    Xs, ys = [rng.normal(size=(9, 4)) for _ in range(3)], list(rng.normal(size=(3, 9)))
    if shared:
        return mtl.Tasks.shared(Xs[0], np.column_stack(ys)), Xs[:1] * 3, ys
    return mtl.Tasks.separate(Xs, ys), Xs, ys


def least(Xs, ys, quadratics):
    """argmin of sum ||y - X w||^2 + sum over (A, B) of tr(A W B W^T), as one system."""
    system = sum(np.kron(B, A) for A, B in quadratics)
    for t, X in enumerate(Xs):
        system[4 * t : 4 * t + 4, 4 * t : 4 * t + 4] += X.T @ X
    right = np.concatenate([X.T @ y for X, y in zip(Xs, ys, strict=True)])
    return np.linalg.solve(system, right).reshape(3, 4).T


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "separate"])
@pytest.mark.parametrize("method", ["auto", "closed_form", "gradient_descent", "conjugate_gradient"])
def test_a_laplacian_beside_a_structure(shared, method):
    """It is singular, as every Laplacian is, but the system is not: every method that takes two penalties solves it."""
    tasks, Xs, ys = inputs(shared)
    form = fetr(tasks, eta=0.7, more=lambda W: 2.0 * mtl.graph_laplacian(W, CHAIN)).form()
    rng = np.random.default_rng(5)
    A, B = spectral(rng, 4, "full"), spectral(rng, 3, "rest")
    step = weights_step(form, method, Patient())
    W = step.solve({"Sigma1": A, "Sigma2": B}, form.zeros()).blocks["W"]
    expected = least(Xs, ys, [(0.7 * A.dense(), B.dense()), (np.eye(4), CHAIN)])
    np.testing.assert_allclose(W, expected, atol=1e-9)


@pytest.mark.parametrize("unit", [1e12, 1e-9])
def test_the_unit_of_a_feature_is_no_lack_of_rank(unit):
    """scipy's solve called such systems ill-conditioned, in a RuntimeWarning; every normal equation holds in its own unit."""
    _, Xs, ys = inputs(shared=False)
    Xs = [X * [unit, 1.0, 1.0, 1.0] for X in Xs]
    form = fetr(mtl.Tasks.separate(Xs, ys), eta=0.7).form()
    rng = np.random.default_rng(5)
    A, B = spectral(rng, 4, "full"), spectral(rng, 3, "rest")
    W = (
        weights_step(form, "closed_form", Patient())
        .solve({"Sigma1": A, "Sigma2": B}, form.zeros())
        .blocks["W"]
    )
    penalty = 0.7 * A.dense() @ W @ B.dense()
    size = 0.7 * np.abs(A.dense()) @ np.abs(W) @ np.abs(B.dense())
    for t, (X, y) in enumerate(zip(Xs, ys, strict=True)):
        terms = np.abs(X).T @ (np.abs(X) @ np.abs(W[:, t]) + np.abs(y)) + size[:, t]
        assert (np.abs(X.T @ (X @ W[:, t] - y) + penalty[:, t]) <= 1e-12 * terms).all()


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "separate"])
def test_a_nearly_singular_covariance_beside_a_ridge(shared):
    """MTFL with a ridge, where alternation has all but lost two directions."""
    tasks, Xs, ys = inputs(shared)
    W, D = mtl.Weights(tasks), mtl.FeatureCovariance(tasks)
    objective = mtl.sum_of_squares(W, tasks) + 0.5 * mtl.feature_covariance_norm(W, D) + 2.0 * mtl.ridge(W)
    form = mtl.minimize(objective, subject_to=[D.trace() <= 2]).form()
    Q = np.linalg.qr(np.random.default_rng(6).normal(size=(4, 4)))[0]
    variances = np.array([1.5, 0.5, 1e-9, 1e-11])
    at = {"D": SpectralMatrix(Q, variances, 0.0)}
    found = weights_step(form, "auto", Patient()).solve(at, form.zeros()).blocks["W"]
    expected = least(Xs, ys, [(0.5 * (Q / variances) @ Q.T, np.eye(3)), (np.eye(4), np.eye(3))])
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_fastest_that_fits():
    rng = np.random.default_rng(0)
    shared, one = step_of(rng, 5, 3, shared=True)
    assert fitting_method(shared, one) == "simultaneous_diagonalization"
    assert fitting_method(shared, one * 2) == "closed_form"
    separate, one = step_of(rng, 5, 3, shared=False)
    assert fitting_method(separate, one) == "closed_form"
    large, one = step_of(rng, 40, 10, shared=False)
    assert fitting_method(large, one) == "conjugate_gradient"


@pytest.mark.parametrize("method", ["simultaneous_diagonalization", "sylvester"])
def test_a_method_that_does_not_fit_says_why(method):
    rng = np.random.default_rng(0)
    data, one = step_of(rng, 5, 3, shared=False)
    with pytest.raises(
        SolverError, match=f"w_step='{method}': it needs inputs that all tasks share.*w_step='auto'"
    ):
        solve_weights(method, data, one, np.zeros((5, 3)))
    data, two = step_of(rng, 5, 3, shared=True, n_penalties=2)
    with pytest.raises(
        SolverError, match="it needs one quadratic penalty between features and tasks, and there are 2"
    ):
        solve_weights(method, data, two, np.zeros((5, 3)))


@pytest.mark.parametrize("method", ["sylvester", "closed_form", "gradient_descent"])
def test_methods_that_need_the_inverse_of_a_covariance_say_so(method):
    singular = SpectralMatrix(np.eye(5)[:, :1], np.array([1.0]), np.inf)
    data = step_of(np.random.default_rng(0), 5, 3, shared=True)[0]
    penalty = Penalty(singular, SpectralMatrix.multiple_of_identity(1.0, 3))
    with pytest.raises(SolverError, match="a learned covariance is singular, or nearly; write w_step='auto'"):
        solve_weights(method, data, [penalty], np.zeros((5, 3)))


# ----------------------------------------------------------------------------------------------------- fixtures


def fixture(name):
    return json.loads((FIXTURES / f"{name}.json").read_text())


def fixture_problem(data):
    if data["shared"]:
        tasks = mtl.Tasks.shared(np.array(data["data"]["X"]), np.array(data["data"]["Y"]))
    else:
        tasks = mtl.Tasks.separate(
            [np.array(X) for X in data["data"]["X"]], [np.array(y) for y in data["data"]["y"]]
        )
    W, first, second = mtl.Weights(tasks), mtl.FeaturePrecision(tasks), mtl.TaskPrecision(tasks)
    low, high = data["l"], data["u"]
    return mtl.minimize(
        mtl.sum_of_squares(W, tasks) + mtl.matrix_normal(W, first, second, eta=data["eta"], rho=data["rho"]),
        subject_to=[first >> low, first << high, second >> low, second << high],
    )


@has_fixtures
@pytest.mark.parametrize("method", ["auto", *METHODS])
@pytest.mark.parametrize("name", ["fetr_shared_5x3", "fetr_pertask_3x5"])
def test_the_weights_step_of_the_fixtures(name, method):
    data = fixture(name)
    form = fixture_problem(data).form()
    matrices = {
        key: SpectralMatrix.of(np.array(data[short])) for key, short in (("Sigma1", "S1"), ("Sigma2", "S2"))
    }
    step = weights_step(form, method, Patient())
    assert isinstance(step, LinearStep)
    if not data["shared"] and method in ("simultaneous_diagonalization", "sylvester"):
        with pytest.raises(SolverError, match="it needs inputs that all tasks share"):
            step.solve(matrices, form.zeros())
        return
    W = step.solve(matrices, form.zeros()).blocks["W"]
    np.testing.assert_allclose(W, np.array(data["w_step"]["W"]), rtol=1e-8, atol=1e-8)
    logs = sum(
        count * np.linalg.slogdet(np.array(data[S]))[1] for S, count in (("S1", data["m"]), ("S2", data["d"]))
    )
    assert step.value({"W": W}, matrices) == pytest.approx(
        data["w_step"]["optimum"] - data["rho"] * logs, rel=1e-8
    )


@has_fixtures
@pytest.mark.parametrize("name", ["fetr_shared_5x3", "fetr_pertask_3x5"])
def test_the_joint_step_of_the_fixtures(name):
    """Both matrices at the weights of the first step: the whole objective."""
    data = fixture(name)
    form = fixture_problem(data).form()
    x = {"W": np.array(data["w_step"]["W"])}
    step = weights_step(form, "auto", Patient())
    for value in (step.value(x, learned_matrices(form, x)), step.value(x), form.value(x)):
        assert value == pytest.approx(data["joint_S_step"]["optimum"], rel=1e-8)


# --------------------------------------------------------------------------------------------- updates, by hand


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


def clipped(M, count, low=0.05, high=20.0, rho=1.3):
    """argmin tr(S M) - rho count log|S| over the box, from the spectrum of M."""
    nu, V = np.linalg.eigh(M)
    with np.errstate(divide="ignore"):
        return (V * np.clip(rho * count / np.maximum(nu, 0.0), low, high)) @ V.T


def test_in_turn_is_the_papers_order():
    """Sigma1 for the old Sigma2, then Sigma2 for the new Sigma1."""
    form = fetr(regression()).form()
    W = 0.3 * np.random.default_rng(1).normal(size=(5, 3))
    start = starting_matrices(form)
    for S in start.values():
        np.testing.assert_array_equal(S.dense(), np.eye(S.side))
    updated = in_turn(form, {"W": W}, start)
    first = clipped(0.7 * W @ W.T, 3)
    second = clipped(0.7 * W.T @ first @ W, 5)
    np.testing.assert_allclose(updated["Sigma1"].dense(), first, atol=1e-10)
    np.testing.assert_allclose(updated["Sigma2"].dense(), second, atol=1e-10)


def test_the_start_is_the_matrix_within_the_bounds_nearest_to_the_identity():
    form = fetr(regression(), low=2.0, high=9.0).form()
    for S in starting_matrices(form).values():
        np.testing.assert_array_equal(S.dense(), 2.0 * np.eye(S.side))
    form = fetr(regression(), low=0.1, high=0.5).form()
    for S in starting_matrices(form).values():
        np.testing.assert_array_equal(S.dense(), 0.5 * np.eye(S.side))


@pytest.mark.parametrize("fudge", [0.0, 1e-3, 0.5])
def test_flip_flop_is_the_sample_estimate_plus_the_fudge_factor(fudge):
    form = fetr(regression()).form()
    W = 0.3 * np.random.default_rng(1).normal(size=(5, 3))
    updated = flip_flop(fudge)(form, {"W": W}, starting_matrices(form))

    def estimate(covariance):
        values, V = np.linalg.eigh(covariance + fudge * np.eye(len(covariance)))
        with np.errstate(divide="ignore"):
            return (V * np.clip(1.0 / np.maximum(values, 0.0), 0.05, 20.0)) @ V.T

    first = estimate(0.7 * W @ W.T / (1.3 * 3))
    second = estimate(0.7 * W.T @ first @ W / (1.3 * 5))
    np.testing.assert_allclose(updated["Sigma1"].dense(), first, atol=1e-9)
    np.testing.assert_allclose(updated["Sigma2"].dense(), second, atol=1e-9)


def test_a_rise_is_a_fault():
    assert_descent(np.inf, 5.0, 1, 0.0)
    assert_descent(5.0, 5.0 + 1e-11, 2, 1e-10)
    with pytest.raises(
        SolverError, match=r"the objective rose from 5 to 5\.001 in iteration 7.*a fault in mtldsl"
    ):
        assert_descent(5.0, 5.001, 7, 1e-4)


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


LAYOUTS = {
    "shared": {},
    "intercept": {"intercept": True},
    "missing": {"missing": True},
    "missing, intercept": {"missing": True, "intercept": True},
    "weighted": {"weights": True},
    "weighted, intercept": {"weights": True, "intercept": True},
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "loss, mean", [("sum_of_squares", False), ("squared_loss", False), ("squared_loss", True)]
)
def test_reduced_data_have_the_value_and_the_minimiser_of_the_losses(layout, loss, mean):
    """Against least squares row by row: K, C, the constant, and intercepts put back."""
    options, rng = LAYOUTS[layout], np.random.default_rng(5)
    X, Y = rng.normal(size=(15, 3)) + 0.7, rng.normal(size=(15, 2)) - 2.0
    if options.get("missing"):
        Y[rng.random(Y.shape) < 0.25] = np.nan
    sample_weights = rng.uniform(0.5, 2.0, 15) if options.get("weights") else None
    tasks = mtl.Tasks.shared(X, Y, sample_weights=sample_weights)
    has_intercept = bool(options.get("intercept"))
    W = mtl.Weights(tasks, intercept=has_intercept)
    form = mtl.minimize(3.0 * getattr(mtl, loss)(W, tasks, mean=mean) + mtl.ridge(W)).form()
    data = quadratic_data(form)
    at = rng.normal(size=(3, 2))
    blocks = data.blocks(at)
    assert data.value(at) == pytest.approx(
        sum(t.value(t.predictions(blocks)) for t in form.losses), rel=1e-11
    )
    for t in range(2):
        held = ~np.isnan(Y[:, t])
        v = np.ones(15) if sample_weights is None else sample_weights
        scale = 3.0 * (1.0 if loss == "sum_of_squares" else 0.5) / (v[held].sum() if mean else 1.0)
        residual = Y[held, t] - X[held] @ at[:, t]
        b = np.average(residual, weights=v[held]) if has_intercept else 0.0
        if has_intercept:
            assert blocks["W.intercept"][0, t] == pytest.approx(b, rel=1e-11)
        gradient = -2.0 * scale * X[held].T @ (v[held] * (residual - b))
        np.testing.assert_allclose((data.product(at) - data.cross)[:, t], gradient, atol=1e-9)


def test_what_is_linear_and_what_is_not():
    tasks = regression()
    assert why_not_linear(fetr(tasks).form()) is None
    assert why_not_linear(fetr(tasks, more=lambda W: 2.0 * mtl.ridge(W)).form()) is None
    for problem, reason in (
        (fetr(tasks, more=mtl.l1_norm), r"l1_norm\(W\) is not quadratic"),
        (fetr(tasks, constraints=lambda W: [W >= 0]), "W >= 0 is a constraint"),
        (fetr(tasks, loss=mtl.huber_loss), "huber_loss.* is not quadratic"),
        (fetr(tasks, more=lambda W: mtl.ridge(W[:2])), "is not a function of W itself"),
        (fetr(tasks, more=lambda W: mtl.ridge(mtl.Weights(tasks, name="V"))), "2 weight matrices"),
    ):
        assert why_not_linear(problem.form()) is not None
        with pytest.raises(SolverError, match=f"{reason}.*Write w_step='auto'"):
            weights_step(problem.form(), "sylvester", Patient())
        assert isinstance(weights_step(problem.form(), "auto", Patient()), ConvexStep)


def test_the_convex_step_is_the_linear_one_where_both_can():
    form = fetr(regression(), more=lambda W: 2.0 * mtl.ridge(W)).form()
    matrices = learned_matrices(form, {"W": np.ones((5, 3))})
    linear = weights_step(form, "auto", Patient()).solve(matrices, form.zeros())
    convex = ConvexStep(form, Patient()).solve(matrices, form.zeros(), 1e-12)
    np.testing.assert_allclose(convex.blocks["W"], linear.blocks["W"], atol=1e-5)


def hinge_with_a_spectrum(inputs="dense", eps=1e-2):
    """A step of it has a quadratic between the features and no gradient."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 6))
    Z = X @ np.outer(rng.normal(size=6), rng.normal(size=3)) + rng.normal(size=(40, 3))
    Y = np.where(Z > 0, 1.0, -1.0)
    if inputs == "sparse":
        X = scipy.sparse.csr_array(np.where(abs(X) > 0.5, X, 0.0))
    tasks = mtl.Tasks.separate([X] * 3, list(Y.T)) if inputs == "separate" else mtl.Tasks.shared(X, Y)
    W = mtl.Weights(tasks, intercept=True)
    return mtl.minimize(mtl.hinge_loss(W, tasks) + 0.7 * mtl.schatten_norm(W, 0.5, eps=eps))


@pytest.mark.parametrize("inputs", ["dense", "sparse", "separate"])
@pytest.mark.parametrize("eps", [1e-1, 1e-4])
def test_a_step_in_white_coordinates_is_the_general_one(inputs, eps, monkeypatch):
    """Weights near rank one, so that eigenvalues of the matrix are far apart: by a ridge, and as it stands."""
    form = hinge_with_a_spectrum(inputs, eps).form()
    rng = np.random.default_rng(4)
    x = form.zeros() | {
        "W": np.outer(rng.normal(size=6), rng.normal(size=3)) + 1e-3 * rng.normal(size=(6, 3))
    }
    matrices, kept = learned_matrices(form, x), Kept(learned_matrices(form, x)).apply(form)[0]
    assert Whitened().accepts(kept) is None
    white = ConvexStep(form, Patient()).solve(matrices, x, 1e-10)
    with monkeypatch.context() as patch:
        patch.setattr(Whitened, "accepts", lambda self, form: "not today")
        general = ConvexStep(form, Patient()).solve(matrices, x, 1e-10)
    assert kept.value(white.blocks) == pytest.approx(kept.value(general.blocks), rel=1e-8)
    np.testing.assert_allclose(
        white.blocks["W"], general.blocks["W"], atol=1e-6 * abs(general.blocks["W"]).max()
    )
    proof = certify(kept, white.blocks, white.loss_duals, white.function_duals)
    assert proof.objective - proof.dual_bound <= 1e-8 * proof.objective


def test_white_coordinates_lead_to_the_same_stationary_point(monkeypatch):
    """From the same weights, the steps being the same, and no lower."""
    problem = hinge_with_a_spectrum(eps=1e-1)  # a smaller one costs the general steps minutes
    white = problem.solve(solver="alternating", method="block", tol=1e-4)
    monkeypatch.setattr(Whitened, "accepts", lambda self, form: "not today")
    general = problem.solve(solver="alternating", method="block", tol=1e-4)
    assert white.status == general.status == "stationary"
    assert white.objective == pytest.approx(general.objective, rel=1e-6)
    np.testing.assert_allclose(white.W, general.W, atol=1e-3)


# ------------------------------------------------------------------------------------- covariances of bounded trace


def mtfl(tasks, gamma=0.6, word=mtl.feature_covariance_norm, kind=mtl.FeatureCovariance):
    W, C = mtl.Weights(tasks), kind(tasks)
    return mtl.minimize(mtl.sum_of_squares(W, tasks) + gamma * word(W, C), subject_to=[C.trace() <= 1])


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


@pytest.mark.parametrize("d, m", [(6, 3), (3, 6), (4, 4), (4, 1), (1, 4)])
def test_the_smaller_side_is_the_same_function(d, m):
    tasks = regression(d, m)
    for problem in (mtfl(tasks), mtfl(tasks, word=mtl.task_covariance_norm, kind=mtl.TaskCovariance)):
        form = problem.form()
        other, _ = SmallerSide().apply(form)
        (f,) = other.functions
        (S,) = f.structure.start((d, m))
        assert S.side == min(d, m)
        x = {"W": np.random.default_rng(2).normal(size=(d, m))}
        assert other.value(x) == pytest.approx(form.value(x), rel=1e-13)


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
