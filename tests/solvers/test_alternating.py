"""Models with learned matrices, solved: fixtures, every combination of the language, and the options that are refused.

Objectives are recomputed here from W and the matrices returned, by their definitions; slopes are finite differences.
"""

import json
import math
from itertools import cycle, product
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse, special

import mtldsl as mtl
from mtldsl.errors import ModelError, SolverError
from mtldsl.proof.stationarity import NO_GLOBAL
from tests.loops import for_each

FIXTURES = Path(__file__).parents[3] / "shared" / "fixtures"
has_fixtures = pytest.mark.skipif(not FIXTURES.exists(), reason=f"no fixtures at {FIXTURES}")

ETA, RHO, LOW, HIGH = 0.7, 1.3, 0.05, 20.0


# ----------------------------------------------------------------------------------------------------- fixtures


def fixture(name):
    return json.loads((FIXTURES / f"{name}.json").read_text())


def fixture_problem(data):
    inputs = data["data"]
    if data["shared"]:
        tasks = mtl.Tasks.shared(np.array(inputs["X"]), np.array(inputs["Y"]))
    else:
        tasks = mtl.Tasks.separate([np.array(X) for X in inputs["X"]], [np.array(y) for y in inputs["y"]])
    W, first, second = mtl.Weights(tasks), mtl.FeaturePrecision(tasks), mtl.TaskPrecision(tasks)
    low, high = data["l"], data["u"]
    return mtl.minimize(
        mtl.sum_of_squares(W, tasks) + mtl.matrix_normal(W, first, second, eta=data["eta"], rho=data["rho"]),
        subject_to=[first >> low, first << high, second >> low, second << high],
    )


BOTH = pytest.mark.parametrize("name", ["fetr_shared_5x3", "fetr_pertask_3x5"])


@has_fixtures
@BOTH
@for_each("w_step", ["auto", "closed_form", "conjugate_gradient", "gradient_descent"])
def test_the_papers_algorithm_gives_the_trace_of_the_fixtures(name, w_step):
    """Ten iterations from the identity."""
    data = fixture(name)
    solution = fixture_problem(data).solve(
        solver="alternating", method="block", w_step=w_step, tol=1e-15, max_iter=10
    )
    assert [look["iteration"] for look in solution.history] == list(range(1, 11))
    trace = [look["objective"] for look in solution.history]
    np.testing.assert_allclose(trace, data["bcd"]["first10"], rtol=1e-8)
    assert solution.status == "iteration_limit" and solution.iterations == 10


@pytest.mark.by_default("joint-fetr_pertask_3x5")
@has_fixtures
@BOTH
@pytest.mark.parametrize("method", ["block", "joint", "lbfgs", "auto"])
def test_the_stationary_objective_of_the_fixtures(name, method):
    """On which all methods, and forty starts of the fixture's, agree."""
    data = fixture(name)
    solution = fixture_problem(data).solve(solver="alternating", method=method, tol=1e-8)
    assert solution.status == "stationary" and solution.stationarity.residual <= 1e-8
    for key, entry in (("bcd", "stationary"), ("joint", "stationary"), ("lbfgs_profile", "value")):
        assert solution.objective == pytest.approx(data[key][entry], rel=1e-8)
    assert solution.objective == pytest.approx(data["best_of_40_starts"], rel=1e-8)
    assert_monotone(solution)


@has_fixtures
@for_each("solver", ["admm", "cvxpy", "alternating", "proximal_gradient", "auto"])
@for_each("word", ["feature_covariance_norm", "task_covariance_norm", "squared_trace_norm"])
def test_mtfl_is_mtrl_is_the_squared_trace_norm(word, solver):
    """The duality gap closes on the fixture's optimum; alternation, smoothed, comes as near as its smoothing."""
    data = fixture("mtfl_mtrl_sqtrace")
    problem = covariance_problem(
        mtl.Tasks.shared(np.array(data["data"]["X"]), np.array(data["data"]["Y"])), word, data["gamma"]
    )
    accepts = solver == "auto" or solver in accepted(problem)
    if solver == "alternating" and word == "squared_trace_norm":
        assert not accepts  # nothing is learned
    if not accepts:
        with pytest.raises(ModelError, match="does not take this model"):
            problem.solve(solver=solver)
        return
    tol = 1e-6 if solver == "alternating" else 1e-9 if solver != "cvxpy" else 1e-8
    solution = problem.solve(solver=solver, tol=tol)
    assert solution.status == "optimal" and solution.gap <= tol
    assert solution.objective == pytest.approx(data["optimum"], rel=max(tol, 1e-8))
    assert solution.dual_bound == pytest.approx(data["dual"], rel=max(tol, 1e-8))
    singular = np.linalg.svd(solution.W, compute_uv=False)
    for C, gram in (("D", solution.W @ solution.W.T), ("Omega", solution.W.T @ solution.W)):
        if C in solution.learned:
            values, V = np.linalg.eigh(gram)
            root = (V * np.sqrt(np.maximum(values, 0.0))) @ V.T / singular.sum()
            np.testing.assert_allclose(solution.learned[C].covariance, root, atol=1e-6)


def accepted(problem):
    return [name for name, verdict, _ in problem.explain().verdicts() if verdict != "refused"]


def covariance_problem(tasks, word, gamma):
    W, D, Omega = mtl.Weights(tasks), mtl.FeatureCovariance(tasks), mtl.TaskCovariance(tasks)
    loss = mtl.sum_of_squares(W, tasks)
    if word == "squared_trace_norm":
        return mtl.minimize(loss + gamma * mtl.squared_trace_norm(W))
    C = D if word == "feature_covariance_norm" else Omega
    return mtl.minimize(loss + gamma * getattr(mtl, word)(W, C), subject_to=[C.trace() <= 1])


# ------------------------------------------------------------------------------------------------- combinations


def regression(d=4, m=3, n=12, seed=0, layout="shared", labels="real"):
    """Tasks of rank one and noise; labels +-1, counts or numbers."""
    rng = np.random.default_rng(seed)
    truth = np.outer(rng.normal(size=d), rng.normal(size=m)) + 0.2 * rng.normal(size=(d, m))

    def label(X, w):
        z = X @ w + 0.3 * rng.normal(size=X.shape[:1] + w.shape[1:])
        if labels == "sign":
            return np.where(z >= np.median(z, axis=0), 1.0, -1.0)
        return rng.poisson(np.exp(np.clip(0.5 * z, -3, 2))).astype(float) if labels == "count" else z

    if layout in ("shared", "missing", "weighted", "sparse"):
        X = rng.normal(size=(n, d))
        if layout == "sparse":
            X = X * (rng.random(X.shape) < 0.6)
        Y = label(X, truth)
        if layout == "missing":
            Y[rng.random(Y.shape) < 0.25] = np.nan
        weights = rng.uniform(0.5, 2.0, n) if layout == "weighted" else None
        return mtl.Tasks.shared(sparse.csr_array(X) if layout == "sparse" else X, Y, sample_weights=weights)
    Xs = [rng.normal(size=(n + 2 * i, d)) for i in range(m)]
    if layout == "separate sparse":
        Xs = [X * (rng.random(X.shape) < 0.6) for X in Xs]
    ys = [label(X, w) for X, w in zip(Xs, truth.T, strict=True)]
    return mtl.Tasks.separate([sparse.csr_array(X) for X in Xs] if layout == "separate sparse" else Xs, ys)


LOSSES = {
    "sum_of_squares": ("real", lambda z, y: (z - y) ** 2),
    "squared_loss": ("real", lambda z, y: 0.5 * (z - y) ** 2),
    "logistic_loss": ("sign", lambda z, y: np.logaddexp(0.0, -y * z)),
    "squared_hinge_loss": ("sign", lambda z, y: np.maximum(0.0, 1.0 - y * z) ** 2),
    "huber_loss": ("real", lambda z, y: special.huber(1.0, z - y)),
    "poisson_loss": ("count", lambda z, y: np.exp(z) - y * z),
    "absolute_loss": ("real", lambda z, y: np.abs(z - y)),
    "hinge_loss": ("sign", lambda z, y: np.maximum(0.0, 1.0 - y * z)),
}


def of_losses(problem, tasks, pointwise, scores):
    """sum over tasks and samples, weighted; `scores` task by task."""
    weights = np.ones(tasks.n_samples) if tasks.sample_weights is None else tasks.sample_weights
    return float(np.sum(weights * pointwise(np.concatenate(scores), tasks.targets)))


def scores_of(tasks, W, intercept=None):
    b = np.zeros(W.shape[1]) if intercept is None else np.ravel(intercept)
    return [np.asarray(X @ W[:, t]) + b[t] for t, X in enumerate(inputs_of(tasks))]


def inputs_of(tasks):
    """The rows that belong to each task's labels."""
    identity = np.eye(tasks.n_features)
    columns = [tasks.per_task(tasks.forward(np.outer(e, np.ones(tasks.n_tasks)))) for e in identity]
    return [np.column_stack([column[t] for column in columns]) for t in range(tasks.n_tasks)]


def of_matrix_normal(V, A, B, eta=ETA, rho=RHO):
    d, m = V.shape
    logs = m * np.linalg.slogdet(A)[1] + d * np.linalg.slogdet(B)[1]
    return eta * np.trace(A @ V @ B @ V.T) - rho * logs


def assert_monotone(solution):
    objectives = np.array([look["objective"] for look in solution.history if look["violation"] <= 1e-12])
    size = max(1.0, np.abs(objectives).max(initial=0.0))
    assert np.all(np.diff(objectives) <= 1e-9 * size), np.diff(objectives).max()


def model(
    tasks,
    loss="sum_of_squares",
    more=None,
    constraints=None,
    argument=None,
    given=(None, None),
    box=None,
    factor=1.0,
    **weights,
):
    """(problem, W): loss + factor * matrix_normal(argument(W), Sigma1 or given, Sigma2 or given) + more(W)."""
    W = mtl.Weights(tasks, **weights)
    unknown = mtl.FeaturePrecision(tasks), mtl.TaskPrecision(tasks)
    matrices = [S if A is None else A for S, A in zip(unknown, given, strict=True)]
    lows, highs = box or ((LOW, LOW), (HIGH, HIGH))
    bounds = []
    for S, A, low, high in zip(unknown, given, lows, highs, strict=True):
        bounds += [S >> low, S << high] if A is None else []
    objective = getattr(mtl, loss)(W, tasks)
    objective = objective + factor * mtl.matrix_normal(
        W if argument is None else argument(W), *matrices, eta=ETA, rho=RHO
    )
    objective = objective if more is None else objective + more(W)
    return mtl.minimize(objective, subject_to=bounds + ([] if constraints is None else constraints(W)))


def matrices_of(solution, given=(None, None)):
    return [
        solution.learned[name].precision if A is None else A
        for name, A in zip(("Sigma1", "Sigma2"), given, strict=True)
    ]


def slope(problem, solution, step=1e-5):
    """The norm of the profile's gradient by central differences of its value, in all unknowns."""
    form, at = problem.form(), {name: np.array(block) for name, block in solution.blocks.items()}
    found = []
    for block in at.values():
        for k in np.ndindex(block.shape):
            kept, sides = block[k], []
            for h in (step, -step):
                block[k] = kept + h
                sides.append(form.value(at))
            block[k] = kept
            found.append((sides[0] - sides[1]) / (2 * step))
    return float(np.linalg.norm(found))


def size_of_slopes(problem):
    """That of the losses at zero."""
    form = problem.form()
    into = form.zeros()
    for loss in form.losses:
        loss.add_adjoint(loss.gradient(loss.predictions(form.zeros())), into)
    return math.sqrt(sum(float(np.vdot(part, part)) for part in into.values()))


LAYOUTS = ["shared", "missing", "weighted", "sparse", "separate", "separate sparse"]
SMOOTH = [
    "sum_of_squares",
    "squared_loss",
    "logistic_loss",
    "squared_hinge_loss",
    "huber_loss",
    "poisson_loss",
]


@pytest.mark.slow
@for_each("pair, intercept", zip(product(LAYOUTS, SMOOTH), cycle([False, True, True]), strict=False))
def test_smooth_losses_on_every_layout(pair, intercept):
    layout, loss = pair
    labels, pointwise = LOSSES[loss]
    tasks = regression(layout=layout, labels=labels, seed=LAYOUTS.index(layout))
    problem = model(tasks, loss, intercept=intercept)
    solution = problem.solve(tol=1e-7)
    assert solution.status == "stationary" and solution.stationarity.residual <= 1e-7
    assert NO_GLOBAL in str(solution)
    assert solution.dual_bound <= solution.objective
    scores = scores_of(tasks, solution.W, solution.intercept)
    expected = of_losses(problem, tasks, pointwise, scores) + of_matrix_normal(
        solution.W, *matrices_of(solution)
    )
    assert solution.objective == pytest.approx(expected, rel=1e-10, abs=1e-9)
    assert slope(problem, solution) <= 1e-5 * size_of_slopes(problem) + 1e-6
    assert_monotone(solution)


@for_each("d, m", [(5, 2), (2, 5), (3, 3), (5, 1), (1, 5), (1, 1)])
@for_each("method, layout", [("lbfgs", "shared"), ("joint", "separate"), ("block", "shared")])
def test_shapes(d, m, layout, method):
    """More features than tasks, as many, fewer; one of either: all methods end at stationary points."""
    tasks = regression(d, m, layout=layout, seed=d + m)
    problem = model(tasks)
    solution = problem.solve(solver="alternating", method=method, tol=1e-6)
    assert solution.status == "stationary"
    A, B = matrices_of(solution)
    assert A.shape == (d, d) and B.shape == (m, m)
    expected = of_losses(problem, tasks, LOSSES["sum_of_squares"][1], scores_of(tasks, solution.W))
    assert solution.objective == pytest.approx(expected + of_matrix_normal(solution.W, A, B), rel=1e-10)
    assert slope(problem, solution) <= 1e-4 * size_of_slopes(problem)
    assert_monotone(solution)


CHAIN = np.array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])  # singular, as every Laplacian is
PENALTIES = {
    "laplacian": (lambda W: mtl.graph_laplacian(W, CHAIN), lambda W: 0.5 * np.trace(W @ CHAIN @ W.T)),
    "mean": (
        lambda W: 2.0 * mtl.mean_regularizer(W),
        lambda W: np.sum((W - W.mean(axis=1, keepdims=True)) ** 2),
    ),
    "ridge on two tasks": (
        lambda W: mtl.ridge(W, weights=np.array([0.0, 1.0, 2.0])),
        lambda W: 0.5 * np.sum(W**2 * [0.0, 1.0, 2.0]),
    ),
    "l1": (lambda W: 0.3 * mtl.l1_norm(W), lambda W: 0.3 * np.abs(W).sum()),
    "l21": (lambda W: 0.3 * mtl.l21_norm(W), lambda W: 0.3 * np.linalg.norm(W, axis=1).sum()),
    "ridge": (lambda W: 0.5 * mtl.ridge(W), lambda W: 0.25 * np.sum(W**2)),
    "trace": (lambda W: 0.3 * mtl.trace_norm(W), lambda W: 0.3 * np.linalg.norm(W, "nuc")),
    "l1 and ridge": (
        lambda W: 0.3 * mtl.l1_norm(W) + 0.5 * mtl.ridge(W),
        lambda W: 0.3 * np.abs(W).sum() + 0.25 * np.sum(W**2),
    ),
}


@for_each("penalty", PENALTIES)
@for_each("loss, layout", [("sum_of_squares", "separate"), ("logistic_loss", "shared")])
def test_penalties_beside_it(penalty, loss, layout):
    labels, pointwise = LOSSES[loss]
    tasks = regression(layout=layout, labels=labels)
    typed, formula = PENALTIES[penalty]
    problem = model(tasks, loss, more=typed)
    solution = problem.solve(tol=1e-6)
    assert solution.status == "stationary"
    expected = of_losses(problem, tasks, pointwise, scores_of(tasks, solution.W)) + formula(solution.W)
    expected += of_matrix_normal(solution.W, *matrices_of(solution))
    assert solution.objective == pytest.approx(expected, rel=1e-10)
    no_move_goes_lower(problem, solution)
    assert_monotone(solution)


def no_move_goes_lower(problem, solution, project=lambda W: W, rise=1e-6):
    """Small moves of the weights, along coordinates and at random, matrices at their best: none is lower by more than rounding and
    tol allow. A smooth descent direction would show at one of the lengths.
    """
    form, rng = problem.form(), np.random.default_rng(0)
    W = solution.W
    now = form.value(solution.blocks)
    directions = [np.eye(W.size)[k].reshape(W.shape) for k in range(W.size)]
    directions += [rng.normal(size=W.shape) for _ in range(20)] + [W]
    allowed = rise * max(abs(now), 1.0)
    for direction in directions:
        direction = direction / max(np.linalg.norm(direction), 1e-300)
        for length in (1e-1, -1e-1, 1e-2, -1e-2, 1e-3, -1e-3):
            other = project(W + length * direction)
            moved = {**solution.blocks, "W": other}
            if form.violation(moved) <= 1e-9:
                assert form.value(moved) >= now - allowed, (length, form.value(moved) - now)


def simplex(W):
    out = np.empty_like(W)
    for t, w in enumerate(W.T):
        u = np.sort(w)[::-1]
        k = np.flatnonzero(u + (1 - np.cumsum(u)) / np.arange(1, len(u) + 1) > 0)[-1]
        out[:, t] = np.maximum(w + (1 - np.cumsum(u)[k]) / (k + 1), 0.0)
    return out


CONSTRAINTS = {
    "nonnegative": (lambda W: [W >= 0], lambda W: np.maximum(W, 0.0)),
    "column sums": (lambda W: [W.sum(axis=0) == 1], lambda W: W + (1 - W.sum(axis=0)) / len(W)),
    "simplex": (lambda W: [W >= 0, W.sum(axis=0) == 1], simplex),
    "ball": (lambda W: [mtl.frobenius_norm(W) <= 0.8], lambda W: W * min(1.0, 0.8 / np.linalg.norm(W))),
}


@for_each("name", CONSTRAINTS)
@for_each("loss, layout", [("sum_of_squares", "shared"), ("logistic_loss", "separate")])
def test_constraints_on_the_weights(name, loss, layout):
    labels, pointwise = LOSSES[loss]
    tasks = regression(layout=layout, labels=labels)
    constraints, project = CONSTRAINTS[name]
    problem = model(tasks, loss, constraints=constraints)
    solution = problem.solve(tol=1e-6)
    assert solution.status == "stationary" and solution.violation <= 1e-6
    assert np.abs(project(solution.W) - solution.W).max() <= 1e-6
    expected = of_losses(problem, tasks, pointwise, scores_of(tasks, solution.W))
    expected += of_matrix_normal(solution.W, *matrices_of(solution))
    assert solution.objective == pytest.approx(expected, rel=1e-10)
    no_move_goes_lower(problem, solution, project, rise=1e-5)


@pytest.mark.slow
@for_each("loss", ["absolute_loss", "hinge_loss"])
def test_losses_that_are_not_smooth(loss):
    labels, pointwise = LOSSES[loss]
    tasks = regression(labels=labels, seed=4)
    problem = model(tasks, loss)
    solution = problem.solve(tol=1e-5)
    assert solution.status == "stationary" and solution.stationarity.gradient is None
    expected = of_losses(problem, tasks, pointwise, scores_of(tasks, solution.W))
    assert solution.objective == pytest.approx(
        expected + of_matrix_normal(solution.W, *matrices_of(solution)), rel=1e-10
    )
    no_move_goes_lower(problem, solution, rise=1e-4)


def positive(n, seed):
    A = np.random.default_rng(seed).normal(size=(n, n))
    return A @ A.T / n + 0.3 * np.eye(n)


GIVEN = {
    "Sigma1": (positive(4, 1), None),
    "Sigma2": (None, positive(3, 2)),
    "both": (positive(4, 1), positive(3, 2)),
}


@for_each("which", GIVEN)
@for_each("layout", ["shared", "separate"])
@for_each("loss", ["sum_of_squares", "logistic_loss"])
def test_matrices_that_are_given(which, layout, loss):
    labels, pointwise = LOSSES[loss]
    given, tasks = GIVEN[which], regression(layout=layout, labels=labels)
    problem = model(tasks, loss, given=given)
    solution = problem.solve(tol=1e-7)
    assert problem.is_convex == (which == "both")
    assert solution.status == ("optimal" if which == "both" else "stationary")
    assert set(solution.learned) == ({"Sigma1", "Sigma2"} - {which} if which != "both" else set())
    expected = of_losses(problem, tasks, pointwise, scores_of(tasks, solution.W))
    expected += of_matrix_normal(solution.W, *matrices_of(solution, given))
    assert solution.objective == pytest.approx(expected, rel=1e-10)
    tolerance = 1e-5 if which != "both" else 1e-3  # the gap bounds the square of the gradient
    assert slope(problem, solution) <= tolerance * size_of_slopes(problem)


def test_equal_bounds_are_a_given_multiple_of_the_identity():
    """One, then both: convex, with the logarithms in the objective. The solution shows the multiple beside what is learned."""
    tasks = regression()
    one = model(tasks, box=((2.0, LOW), (2.0, HIGH))).solve(tol=1e-8)
    same = model(tasks, given=(2.0 * np.eye(4), None)).solve(tol=1e-8)
    assert one.objective == pytest.approx(same.objective, rel=1e-9)
    np.testing.assert_array_equal(one.Sigma1.precision, 2.0 * np.eye(4))
    np.testing.assert_allclose(one.Sigma2.precision, same.Sigma2.precision, rtol=1e-4)
    both = model(tasks, box=((2.0, 0.5), (2.0, 0.5))).solve(tol=1e-8)
    X, Y = tasks.X, np.column_stack(tasks.per_task(tasks.targets))
    W = np.linalg.solve(X.T @ X + ETA * np.eye(4), X.T @ Y)
    np.testing.assert_allclose(both.W, W, atol=1e-6)
    expected = np.sum((X @ W - Y) ** 2) + of_matrix_normal(W, 2.0 * np.eye(4), 0.5 * np.eye(3))
    assert both.status == "optimal" and both.objective == pytest.approx(expected, rel=1e-8)


@for_each("box", [((0.01, 0.5), (100.0, 2.0)), ((1.5, 1e-3), (3.0, 1e3)), ((0.2, 0.2), (0.4, 0.4))])
def test_boxes_of_their_own(box):
    tasks = regression()
    solution = model(tasks, box=box).solve(tol=1e-7)
    assert solution.status == (
        "optimal" if box[1][0] == 0.4 else "stationary"
    )  # so narrow that the bound is tight
    for k, S in enumerate(matrices_of(solution)):
        values = np.linalg.eigvalsh(S)
        assert values[0] >= box[0][k] * (1 - 1e-10) and values[-1] <= box[1][k] * (1 + 1e-10)
    expected = of_losses(None, tasks, LOSSES["sum_of_squares"][1], scores_of(tasks, solution.W))
    assert solution.objective == pytest.approx(
        expected + of_matrix_normal(solution.W, *matrices_of(solution)), rel=1e-10
    )


W0 = np.random.default_rng(8).normal(size=(4, 3))
ARGUMENTS = {
    "W - W0": (lambda W: W - W0, lambda W: W - W0),
    "2 * W": (lambda W: 2 * W, lambda W: 2 * W),
    "0.5 * W + W0": (lambda W: 0.5 * W + W0, lambda W: 0.5 * W + W0),
    "-W": (lambda W: -W, lambda W: -W),
}


@pytest.mark.by_default("block-separate-0.5 * W + W0")
@pytest.mark.parametrize("argument", ARGUMENTS)
@pytest.mark.parametrize("layout", ["shared", "separate"])
@pytest.mark.parametrize("method", ["lbfgs", "block"])
def test_arguments_that_are_not_the_weights_themselves(argument, layout, method):
    typed, formula = ARGUMENTS[argument]
    tasks = regression(layout=layout)
    problem = model(tasks, argument=typed)
    solution = problem.solve(solver="alternating", method=method, tol=1e-6)
    assert solution.status == "stationary"
    expected = of_losses(problem, tasks, LOSSES["sum_of_squares"][1], scores_of(tasks, solution.W))
    expected += of_matrix_normal(formula(solution.W), *matrices_of(solution))
    assert solution.objective == pytest.approx(expected, rel=1e-10)
    assert slope(problem, solution) <= 1e-4 * size_of_slopes(problem)
    assert_monotone(solution)


ROWS, COLUMNS = np.random.default_rng(9).normal(size=(5, 4)), np.random.default_rng(10).normal(size=(3, 2))
PRODUCTS = {
    "A @ W": (lambda W: ROWS @ W, lambda W: ROWS @ W, (5, 3)),
    "W @ B": (lambda W: W @ COLUMNS, lambda W: W @ COLUMNS, (4, 2)),
    "two rows": (lambda W: W[[0, 2]], lambda W: W[[0, 2]], (2, 3)),
}


@for_each("product", PRODUCTS)
@for_each("method", ["lbfgs", "joint"])
def test_products_with_the_weights(product, method):
    """The matrices have the sides of what they stand beside."""
    typed, formula, (p, q) = PRODUCTS[product]
    tasks = regression()
    W, sides = mtl.Weights(tasks), mtl.Tasks.shared(np.ones((2, p)), np.ones((2, q)))
    A, B = mtl.FeaturePrecision(sides), mtl.TaskPrecision(sides)
    problem = mtl.minimize(
        mtl.sum_of_squares(W, tasks)
        + mtl.matrix_normal(typed(W), A, B, eta=ETA, rho=RHO)
        + 0.1 * mtl.ridge(W),
        subject_to=[A >> LOW, A << HIGH, B >> LOW, B << HIGH],
    )
    solution = problem.solve(solver="alternating", method=method, tol=1e-6)
    assert solution.status == "stationary"
    expected = of_losses(problem, tasks, LOSSES["sum_of_squares"][1], scores_of(tasks, solution.W))
    expected += of_matrix_normal(formula(solution.W), *matrices_of(solution)) + 0.05 * np.sum(solution.W**2)
    assert solution.objective == pytest.approx(expected, rel=1e-10)
    assert slope(problem, solution) <= 1e-4 * size_of_slopes(problem)


@pytest.mark.slow
@for_each("layout", ["shared", "separate"])
@for_each("penalty", ["ridge", "laplacian"])
def test_covariances_of_bounded_trace_beside_a_quadratic(layout, penalty):
    """Alternation ends where ADMM proves the optimum."""
    tasks = regression(layout=layout)
    W, D = mtl.Weights(tasks), mtl.FeatureCovariance(tasks)
    objective = mtl.sum_of_squares(W, tasks) + mtl.feature_covariance_norm(W, D) + PENALTIES[penalty][0](W)
    problem = mtl.minimize(objective, subject_to=[D.trace() <= 1])
    optimum = problem.solve(solver="admm", tol=1e-8).objective
    solution = problem.solve(solver="alternating", tol=1e-5)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(optimum, rel=1e-5)


def test_a_sum_of_two_weight_matrices():
    """The penalty on L alone, the l1 norm on S."""
    tasks = regression()
    L, S = mtl.Weights(tasks, name="L"), mtl.Weights(tasks, name="S")
    A, B = mtl.FeaturePrecision(tasks), mtl.TaskPrecision(tasks)
    problem = mtl.minimize(
        mtl.sum_of_squares(L + S, tasks)
        + mtl.matrix_normal(L, A, B, eta=ETA, rho=RHO)
        + 2.0 * mtl.l1_norm(S),
        subject_to=[A >> LOW, A << HIGH, B >> LOW, B << HIGH],
    )
    solution = problem.solve(tol=1e-6)
    assert solution.status == "stationary"
    np.testing.assert_allclose(solution.W, solution.L + solution.S)
    expected = of_losses(problem, tasks, LOSSES["sum_of_squares"][1], scores_of(tasks, solution.W))
    expected += of_matrix_normal(solution.L, *matrices_of(solution)) + 2.0 * np.abs(solution.S).sum()
    assert solution.objective == pytest.approx(expected, rel=1e-10)


def test_two_structures_at_once():
    tasks = regression()
    W, A, B = mtl.Weights(tasks), mtl.FeaturePrecision(tasks), mtl.TaskPrecision(tasks)
    A2, B2 = mtl.FeaturePrecision(tasks, "A2"), mtl.TaskPrecision(tasks, "B2")
    problem = mtl.minimize(
        mtl.sum_of_squares(W, tasks)
        + mtl.matrix_normal(W, A, B, eta=ETA, rho=RHO)
        + 0.5 * mtl.matrix_normal(W - W0, A2, B2),
        subject_to=[bound for S in (A, B, A2, B2) for bound in (S >> LOW, S << HIGH)],
    )
    solution = problem.solve(tol=1e-6)
    assert solution.status == "stationary" and list(solution.learned) == ["Sigma1", "Sigma2", "A2", "B2"]
    expected = of_losses(problem, tasks, LOSSES["sum_of_squares"][1], scores_of(tasks, solution.W))
    expected += of_matrix_normal(solution.W, *matrices_of(solution))
    expected += 0.5 * of_matrix_normal(
        solution.W - W0, solution.A2.precision, solution.B2.precision, 1.0, 1.0
    )
    assert solution.objective == pytest.approx(expected, rel=1e-10)
    assert slope(problem, solution) <= 1e-4 * size_of_slopes(problem)


def test_a_parameter_as_its_coefficient():
    """Each value is solved as if it had been typed; at zero the losses are left, at their optimum."""
    tasks = regression()
    lam = mtl.Parameter(1.0)
    W, A, B = mtl.Weights(tasks), mtl.FeaturePrecision(tasks), mtl.TaskPrecision(tasks)
    problem = mtl.minimize(
        mtl.sum_of_squares(W, tasks) + lam * mtl.matrix_normal(W, A, B, eta=ETA, rho=RHO),
        subject_to=[A >> LOW, A << HIGH, B >> LOW, B << HIGH],
    )
    for value in (0.1, 1.0, 4.0):
        lam.value = value
        solution, typed = problem.solve(tol=1e-8), model(tasks, factor=value).solve(tol=1e-8)
        assert solution.status == typed.status == "stationary"
        assert solution.objective == pytest.approx(typed.objective, rel=1e-8)
    lam.value = 0.0
    solution = problem.solve(tol=1e-8)
    Y = np.column_stack(tasks.per_task(tasks.targets))
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(np.linalg.lstsq(tasks.X, Y)[1].sum(), rel=1e-6)


@for_each("method", ["lbfgs", "joint", "block"])
def test_warm_starts_go_no_higher(method):
    problem = model(regression(seed=2))
    solution = problem.solve(solver="alternating", method=method, tol=1e-7)
    again = problem.solve(solver="alternating", method=method, tol=1e-7, warm_start=solution)
    assert again.status == "stationary" and again.iterations <= solution.iterations
    assert again.objective <= solution.objective + 1e-9 * abs(solution.objective)
    from_zero = problem.solve(
        solver="alternating", method=method, tol=1e-7, warm_start={"W": np.zeros((4, 3))}
    )
    assert from_zero.objective == pytest.approx(solution.objective, rel=1e-6)


@for_each("method", ["lbfgs", "joint", "block"])
@for_each("scale", [1e-6, 1e-3, 1e3, 1e6])
def test_labels_of_any_size(method, scale):
    tasks = regression(seed=3)
    Y = scale * np.column_stack(tasks.per_task(tasks.targets))
    solution = model(mtl.Tasks.shared(tasks.X, Y)).solve(solver="alternating", method=method)
    assert solution.status in ("stationary", "optimal")


@pytest.mark.slow
def test_the_baseline_minimises_nothing_and_says_so():
    """MTFRL: it ends above the stationary point, and its matrices are not the best for its weights."""
    problem = model(regression(seed=5))
    best, baseline = problem.solve(), problem.solve(solver="alternating", method="flip_flop", max_iter=100)
    assert baseline.objective > best.objective and baseline.status != "stationary"
    A, B = matrices_of(baseline)
    expected = of_losses(
        problem, regression(seed=5), LOSSES["sum_of_squares"][1], scores_of(regression(seed=5), baseline.W)
    )
    assert baseline.objective == pytest.approx(expected + of_matrix_normal(baseline.W, A, B), rel=1e-10)
    other = problem.solve(solver="alternating", method="flip_flop", fudge=0.5, max_iter=100)
    assert abs(other.objective - baseline.objective) > 1e-3


# ------------------------------------------------------------------------------------------------ refused options


def lasso():
    tasks = regression()
    W = mtl.Weights(tasks)
    return mtl.minimize(mtl.sum_of_squares(W, tasks) + mtl.l1_norm(W))


def fetr():
    return model(regression())


def with_l1():
    return model(regression(), more=mtl.l1_norm)


def mtfl():
    return covariance_problem(regression(), "feature_covariance_norm", 1.0)


def mtfl_with_l1():
    tasks = regression()
    W, D = mtl.Weights(tasks), mtl.FeatureCovariance(tasks)
    objective = mtl.sum_of_squares(W, tasks) + mtl.feature_covariance_norm(W, D) + mtl.l1_norm(W)
    return mtl.minimize(objective, subject_to=[D.trace() <= 1])


def here(problem, **options):
    return lambda: problem().solve(solver="alternating", **options)


TYPED = "matrix_normal(W, Sigma1, Sigma2, eta=0.7, rho=1.3)"
METHODS = "'auto', 'newton', 'lbfgs', 'joint', 'block', 'flip_flop', 'algorithm_1'"
STEPS = "'auto', 'simultaneous_diagonalization', 'sylvester', 'closed_form', 'gradient_descent', 'conjugate_gradient'"
WRONG = {
    "method": (here(fetr, method="sgd"), ["method='sgd'", "there is no such method", METHODS]),
    "method of reweighted models": (
        here(fetr, method="newton"),
        ["method='newton'", TYPED, "neither reweighted nor a multiple of ridge", "method='joint'"],
    ),
    "method None": (here(fetr, method=None), ["method=None", "there is no such method", METHODS]),
    "method a list": (here(fetr, method=["block"]), ["method=['block']", METHODS]),
    "w_step": (here(fetr, w_step="qr"), ["w_step='qr'", STEPS]),
    "w_step a list": (here(fetr, w_step=[1]), ["w_step=[1]", STEPS]),
    "w_step of an l1 norm": (
        here(with_l1, w_step="sylvester"),
        [
            "w_step='sylvester'",
            "this step solves a linear system",
            "l1_norm(W) is not quadratic",
            "w_step='auto'",
        ],
    ),
    "w_step of constraints": (
        here(lambda: model(regression(), constraints=lambda W: [W >= 0]), w_step="closed_form"),
        ["w_step='closed_form'", "W >= 0 is a constraint", "w_step='auto'"],
    ),
    "w_step of a logistic loss": (
        here(lambda: model(regression(labels="sign"), "logistic_loss"), w_step="conjugate_gradient"),
        ["logistic_loss(W, tasks) is not quadratic", "w_step='auto'"],
    ),
    "w_step of separate inputs": (
        here(lambda: model(regression(layout="separate")), w_step="sylvester"),
        ["w_step='sylvester'", "it needs inputs that all tasks share", "w_step='auto'"],
    ),
    "w_step of missing labels": (
        here(lambda: model(regression(layout="missing")), w_step="simultaneous_diagonalization"),
        ["it needs inputs that all tasks share, with every label present"],
    ),
    "w_step of two penalties": (
        here(lambda: model(regression(), more=mtl.ridge), method="block", w_step="sylvester"),
        ["it needs one quadratic penalty between features and tasks, and there are 2"],
    ),
    "lbfgs with an l1 norm": (
        here(with_l1, method="lbfgs"),
        ["method='lbfgs'", "l1_norm(W) is not smooth", "Write method='joint'"],
    ),
    "lbfgs with a constraint": (
        here(lambda: model(regression(), constraints=lambda W: [W >= 0]), method="lbfgs"),
        ["W >= 0 is a constraint", "Write method='joint'"],
    ),
    "lbfgs with a kink": (
        here(lambda: model(regression(), "absolute_loss"), method="lbfgs"),
        ["absolute_loss(W, tasks) is not smooth", "Write method='joint'"],
    ),
    "lbfgs of a covariance": (
        here(mtfl, method="lbfgs"),
        ["method='lbfgs'", "feature_covariance_norm(W, D) is not smooth; write method='block'"],
    ),
    "joint of a covariance": (here(mtfl, method="joint"), ["write method='block'"]),
    "flip_flop of a covariance": (here(mtfl, method="flip_flop"), ["write method='block'"]),
    "fudge negative": (here(fetr, method="flip_flop", fudge=-1), ["fudge=-1", "a number >= 0"]),
    "fudge text": (here(fetr, method="flip_flop", fudge="a"), ["fudge='a'", "a number >= 0"]),
    "fudge NaN": (here(fetr, method="flip_flop", fudge=np.nan), ["fudge=nan", "a number >= 0"]),
    "fudge infinite": (here(fetr, method="flip_flop", fudge=np.inf), ["fudge=inf", "a number >= 0"]),
    "fudge true": (here(fetr, method="flip_flop", fudge=True), ["fudge=True", "a number >= 0"]),
    "fudge an array": (here(fetr, method="flip_flop", fudge=np.ones(2)), ["fudge=", "a number >= 0"]),
    "fudge elsewhere": (
        here(fetr, method="block", fudge=0.1),
        ["fudge=0.1", "fudge belongs to method='flip_flop'", "leave it out"],
    ),
    "fudge with auto": (here(fetr, fudge=1e-3), ["fudge belongs to method='flip_flop'"]),
    "unknown option": (here(fetr, steps=3), ["steps=...", "unknown option", "method='auto'"]),
    "option without solver": (lambda: fetr().solve(method="block"), ["options belong to one solver"]),
}

REFUSED = {
    "nothing learned": (here(lasso), ["no term learns a matrix beside the weights", "coordinate_descent"]),
    "all given": (
        here(lambda: model(regression(), given=GIVEN["both"])),
        ["no term learns a matrix beside the weights", "closed_form"],
    ),
    "covariance and l1": (
        here(mtfl_with_l1),
        [
            "beside feature_covariance_norm(W, D) it solves linear systems only",
            "l1_norm(W) is not quadratic",
            "admm",
        ],
    ),
    **{
        f"{solver} of a model that is not convex": (
            lambda solver=solver: fetr().solve(solver=solver),
            [f"solver={solver!r} does not take this model", f"{TYPED} is not convex", "alternating"],
        )
        for solver in (
            "admm",
            "cvxpy",
            "proximal_gradient",
            "closed_form",
            "coordinate_descent",
            "dual_ascent",
        )
    },
}


@for_each("name", WRONG)
def test_options_that_are_refused(name):
    mistake, fragments = WRONG[name]
    with pytest.raises(SolverError) as refusal:
        mistake()
    for fragment in fragments:
        assert fragment in str(refusal.value)


@for_each("name", REFUSED)
def test_models_that_are_refused(name):
    mistake, fragments = REFUSED[name]
    with pytest.raises(ModelError) as refusal:
        mistake()
    for fragment in fragments:
        assert fragment in str(refusal.value)


def test_explain_names_the_chosen_solver():
    explanation = fetr().explain()
    assert explanation.chosen == "alternating"
    assert sum(f"{TYPED} is not convex" in reason for _, _, reason in explanation.verdicts()) >= 5
