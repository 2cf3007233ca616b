"""Models with learned matrices, solved: fixtures, and every combination of the language.

Objectives are recomputed, by the reference or by their definitions; slopes are differences.
"""

import math
from itertools import cycle, product

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.certificates.stationarity import NO_GLOBAL
from mtldsl.errors import ModelError
from tests.known_optima import fixture
from tests.learned_models import ETA, HIGH, LOW, RHO, fetr
from tests.loops import for_each
from tests.pairs import pairwise_cases


# ----------------------------------------------------------------------------------------------------- fixtures
def fixture_problem(data):
    inputs = data["data"]
    if data["shared"]:
        tasks = mtl.Tasks.shared(np.array(inputs["X"]), np.array(inputs["Y"]))
    else:
        tasks = mtl.Tasks.separate([np.array(X) for X in inputs["X"]], [np.array(y) for y in inputs["y"]])
    return fetr(tasks, low=data["l"], high=data["u"], eta=data["eta"], rho=data["rho"])


BOTH = pytest.mark.parametrize("name", ["fetr_shared_5x3", "fetr_pertask_3x5"])


@pytest.mark.slow
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


@pytest.mark.slow
@for_each("solver", ["admm", "cvxpy", "alternating", "proximal_gradient", "auto"])
@for_each("word", ["feature_covariance_norm", "task_covariance_norm", "squared_trace_norm"])
def test_mtfl_is_mtrl_is_the_squared_trace_norm(word, solver):
    """The duality gap closes on the fixture's optimum; alternation, smoothed, comes as near as its smoothing."""
    data = fixture("mtfl_mtrl_sqtrace")
    problem = covariance_problem(
        mtl.Tasks.shared(np.array(data["data"]["X"]), np.array(data["data"]["Y"])), word, data["gamma"]
    )
    verdicts = {name: verdict for name, verdict, _ in problem.explain().verdicts()}
    if word == "squared_trace_norm":
        assert verdicts["alternating"] == "refused"  # nothing is learned
    if verdicts.get(solver) == "refused":
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


def covariance_problem(tasks, word="feature_covariance_norm", gamma=1.0, more=None):
    W, D, Omega = mtl.Weights(tasks), mtl.FeatureCovariance(tasks), mtl.TaskCovariance(tasks)
    loss = mtl.sum_of_squares(W, tasks)
    if word == "squared_trace_norm":
        return mtl.minimize(loss + gamma * mtl.squared_trace_norm(W))
    C = D if word == "feature_covariance_norm" else Omega
    objective = loss + gamma * getattr(mtl, word)(W, C)
    return mtl.minimize(objective if more is None else objective + more(W), subject_to=[C.trace() <= 1])


# ------------------------------------------------------------------------------------------------- combinations
def regression(d=4, m=3, n=12, seed=0, layout="shared", labels="real"):
    """Tasks of rank one and noise; labels +-1, counts or numbers."""
    rng = np.random.default_rng(seed)
    truth = np.outer(rng.normal(size=d), rng.normal(size=m)) + 0.2 * rng.normal(size=(d, m))
    X = rng.normal(size=(n, d))
    if "sparse" in layout:
        X = sparse.csr_array(X * (rng.random(X.shape) < 0.6))
    Y = X @ truth + 0.3 * rng.normal(size=(n, m))
    if labels == "sign":
        Y = np.where(np.median(Y, axis=0) <= Y, 1.0, -1.0)
    elif labels == "count":
        Y = rng.poisson(np.exp(np.clip(0.5 * Y, -3, 2))).astype(float)
    if "separate" in layout:
        return mtl.Tasks.separate([X[t:] for t in range(m)], [Y[t:, t] for t in range(m)])
    if layout == "missing":
        Y[rng.random(Y.shape) < 0.25] = np.nan
    return mtl.Tasks.shared(X, Y, sample_weights=rng.uniform(0.5, 2.0, n) if layout == "weighted" else None)


LAYOUTS = ["shared", "missing", "weighted", "sparse", "separate", "separate sparse"]
SMOOTH = {
    "sum_of_squares": "real", "squared_loss": "real", "logistic_loss": "sign",
    "squared_hinge_loss": "sign", "huber_loss": "real", "poisson_loss": "count",
}  # fmt: skip


def labels_of(tasks):
    return np.column_stack(tasks.per_task(tasks.targets))


def of_squares(tasks, W):
    return float(np.sum((tasks.targets - tasks.forward(W)) ** 2))


def of_matrix_normal(V, A, B, eta=ETA, rho=RHO):
    d, m = V.shape
    logs = m * np.linalg.slogdet(A)[1] + d * np.linalg.slogdet(B)[1]
    return eta * np.trace(A @ V @ B @ V.T) - rho * logs


def model(
    tasks, loss="sum_of_squares", more=None, constraints=lambda W: [], argument=lambda W: W, given=(None, None),
    box=((LOW, LOW), (HIGH, HIGH)), factor=1.0, sides=None, **weights,
):  # fmt: skip
    """loss + factor * matrix_normal(argument(W), Sigma1 or given, Sigma2 or given) + more(W)."""
    W = mtl.Weights(tasks, **weights)
    p, q = W.shape if sides is None else sides
    like = mtl.Tasks.shared(np.ones((2, p)), np.ones((2, q)))
    unknown = mtl.FeaturePrecision(like), mtl.TaskPrecision(like)
    matrices = [S if A is None else A for S, A in zip(unknown, given, strict=True)]
    bounds = []
    for S, A, low, high in zip(unknown, given, *box, strict=True):
        bounds += [S >> low, S << high] if A is None else []
    objective = getattr(mtl, loss)(W, tasks) + factor * mtl.matrix_normal(
        argument(W), *matrices, eta=ETA, rho=RHO
    )
    objective = objective if more is None else objective + more(W)
    return mtl.minimize(objective, subject_to=bounds + constraints(W))


def matrices_of(solution, given=(None, None)):
    return [
        solution.learned[name].precision if A is None else A
        for name, A in zip(("Sigma1", "Sigma2"), given, strict=True)
    ]


def assert_ends_well(problem, solution, status="stationary"):
    """Its status, the value as the reference computes it, and no look that is higher than the one before."""
    assert solution.status == status
    stated = problem.to_cvxpy(at=solution) if status == "stationary" else problem.to_cvxpy()
    assert solution.objective == pytest.approx(stated.objective_value(solution.blocks), rel=1e-10)
    objectives = np.array([look["objective"] for look in solution.history if look["violation"] <= 1e-12])
    size = max(1.0, np.abs(objectives).max(initial=0.0))
    assert np.all(np.diff(objectives) <= 1e-9 * size), np.diff(objectives).max()


def assert_flat(problem, solution, tolerance=1e-4, step=1e-5):
    """The profile's gradient, by central differences, is small beside that of the losses at zero."""
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
    into = form.zeros()
    for loss in form.losses:
        loss.add_adjoint(loss.gradient(loss.predictions(form.zeros())), into)
    size = math.sqrt(sum(float(np.vdot(part, part)) for part in into.values()))
    assert np.linalg.norm(found) <= tolerance * size


@pytest.mark.slow
@for_each("pair, intercept", zip(product(LAYOUTS, SMOOTH), cycle([False, True, True]), strict=False))
def test_smooth_losses_on_every_layout(pair, intercept):
    layout, loss = pair
    tasks = regression(layout=layout, labels=SMOOTH[loss], seed=LAYOUTS.index(layout))
    problem = model(tasks, loss, intercept=intercept)
    solution = problem.solve(tol=1e-7)
    assert_ends_well(problem, solution)
    assert_flat(problem, solution, 1e-5)
    assert solution.stationarity.residual <= 1e-7 and solution.dual_bound <= solution.objective
    assert NO_GLOBAL in str(solution)


@pytest.mark.slow
@for_each("d, m", [(5, 2), (2, 5), (3, 3), (5, 1), (1, 5), (1, 1)])
@for_each("method, layout", [("lbfgs", "shared"), ("joint", "separate"), ("block", "shared")])
def test_shapes(d, m, layout, method):
    """More features than tasks, as many, fewer; one of either: all methods end at stationary points."""
    problem = model(regression(d, m, layout=layout, seed=d + m))
    solution = problem.solve(solver="alternating", method=method, tol=1e-6)
    assert_ends_well(problem, solution)
    assert_flat(problem, solution)
    assert [S.shape for S in matrices_of(solution)] == [(d, d), (m, m)]


CHAIN = np.array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])  # singular, as every Laplacian is
PENALTIES = {
    "laplacian": lambda W: mtl.graph_laplacian(W, CHAIN),
    "mean": lambda W: 2.0 * mtl.mean_regularizer(W),
    "ridge on two tasks": lambda W: mtl.ridge(W, weights=np.array([0.0, 1.0, 2.0])),
    "l1": lambda W: 0.3 * mtl.l1_norm(W),
    "l21": lambda W: 0.3 * mtl.l21_norm(W),
    "ridge": lambda W: 0.5 * mtl.ridge(W),
    "trace": lambda W: 0.3 * mtl.trace_norm(W),
    "l1 and ridge": lambda W: 0.3 * mtl.l1_norm(W) + 0.5 * mtl.ridge(W),
}
CONSTRAINTS = {
    "nonnegative": lambda W: [W >= 0],
    "column sums": lambda W: [W.sum(axis=0) == 1],
    "simplex": lambda W: [W >= 0, W.sum(axis=0) == 1],
    "ball": lambda W: [mtl.frobenius_norm(W) <= 0.8],
}
BESIDE = {name: ({"more": term}, "separate", "shared") for name, term in PENALTIES.items()}
BESIDE |= {name: ({"constraints": held}, "shared", "separate") for name, held in CONSTRAINTS.items()}


@pytest.mark.slow
@for_each("beside", BESIDE.values(), ids=BESIDE)
@for_each("loss, k", [("sum_of_squares", 0), ("logistic_loss", 1)])
def test_penalties_and_constraints_beside_it(beside, loss, k):
    more, *layouts = beside
    problem = model(regression(layout=layouts[k], labels=SMOOTH[loss]), loss, **more)
    solution = problem.solve(tol=1e-6)
    assert_ends_well(problem, solution)
    assert problem.cross_check(solution).agrees and solution.violation <= 1e-6


@pytest.mark.slow
@for_each("loss, labels", [("absolute_loss", "real"), ("hinge_loss", "sign")])
def test_losses_that_are_not_smooth(loss, labels):
    problem = model(regression(labels=labels, seed=4), loss)
    solution = problem.solve(tol=1e-5)
    assert_ends_well(problem, solution)
    assert problem.cross_check(solution).agrees and solution.stationarity.gradient is None


def positive(n, seed):
    A = np.random.default_rng(seed).normal(size=(n, n))
    return A @ A.T / n + 0.3 * np.eye(n)


GIVEN = {
    "Sigma1": (positive(4, 1), None),
    "Sigma2": (None, positive(3, 2)),
    "both": (positive(4, 1), positive(3, 2)),
}


@pytest.mark.slow
@for_each("which", GIVEN)
@for_each("layout", ["shared", "separate"])
@for_each("loss", ["sum_of_squares", "logistic_loss"])
def test_matrices_that_are_given(which, layout, loss):
    """Beside two given matrices it is convex; there the gap bounds the square of the gradient."""
    problem = model(regression(layout=layout, labels=SMOOTH[loss]), loss, given=GIVEN[which])
    solution, all_given = problem.solve(tol=1e-7), which == "both"
    assert problem.is_convex == all_given
    assert set(solution.learned) == (set() if all_given else {"Sigma1", "Sigma2"} - {which})
    assert_ends_well(problem, solution, "optimal" if all_given else "stationary")
    assert_flat(problem, solution, 1e-3 if all_given else 1e-5)


def test_equal_bounds_are_a_given_multiple_of_the_identity():
    """One, then both: convex, with the logarithms in the objective. The solution shows the multiple beside what is learned."""
    tasks = regression()
    one = model(tasks, box=((2.0, LOW), (2.0, HIGH))).solve(tol=1e-8)
    same = model(tasks, given=(2.0 * np.eye(4), None)).solve(tol=1e-8)
    assert one.objective == pytest.approx(same.objective, rel=1e-9)
    np.testing.assert_array_equal(one.Sigma1.precision, 2.0 * np.eye(4))
    np.testing.assert_allclose(one.Sigma2.precision, same.Sigma2.precision, rtol=1e-4)
    both = model(tasks, box=((2.0, 0.5), (2.0, 0.5))).solve(tol=1e-8)
    W = np.linalg.solve(tasks.X.T @ tasks.X + ETA * np.eye(4), tasks.X.T @ labels_of(tasks))
    np.testing.assert_allclose(both.W, W, atol=1e-6)
    expected = of_squares(tasks, W) + of_matrix_normal(W, 2.0 * np.eye(4), 0.5 * np.eye(3))
    assert both.status == "optimal" and both.objective == pytest.approx(expected, rel=1e-8)


@for_each("box", [((0.01, 0.5), (100.0, 2.0)), ((1.5, 1e-3), (3.0, 1e3)), ((0.2, 0.2), (0.4, 0.4))])
def test_boxes_of_their_own(box):
    """The last one is so narrow that the bound on all optima is tight."""
    tasks = regression()
    solution = model(tasks, box=box).solve(tol=1e-7)
    assert solution.status == ("optimal" if box[1][0] == 0.4 else "stationary")
    A, B = matrices_of(solution)
    for S, low, high in zip((A, B), *box, strict=True):
        values = np.linalg.eigvalsh(S)
        assert values[0] >= low * (1 - 1e-10) and values[-1] <= high * (1 + 1e-10)
    expected = of_squares(tasks, solution.W) + of_matrix_normal(solution.W, A, B)
    assert solution.objective == pytest.approx(expected, rel=1e-10)


rng = np.random.default_rng(8)
W0, ROWS, COLUMNS = rng.normal(size=(4, 3)), rng.normal(size=(5, 4)), rng.normal(size=(3, 2))
#: what stands in the structure, its sides, and how strong a ridge is needed beside it
ARGUMENTS = {
    "W - W0": (lambda W: W - W0, (4, 3), 0.0),
    "2 * W": (lambda W: 2 * W, (4, 3), 0.0),
    "0.5 * W + W0": (lambda W: 0.5 * W + W0, (4, 3), 0.0),
    "-W": (lambda W: -W, (4, 3), 0.0),
    "A @ W": (lambda W: ROWS @ W, (5, 3), 0.1),
    "W @ B": (lambda W: W @ COLUMNS, (4, 2), 0.1),
    "two rows": (lambda W: W[[0, 2]], (2, 3), 0.1),
}


@pytest.mark.slow
@for_each(
    "name, layout, method", pairwise_cases(ARGUMENTS, ["shared", "separate"], ["lbfgs", "joint", "block"])
)
def test_arguments_that_are_not_the_weights_themselves(name, layout, method):
    """Moved, scaled and multiplied; the matrices have the sides of what they stand beside."""
    argument, sides, ridge = ARGUMENTS[name]
    tasks = regression(layout=layout)
    more = (lambda W: ridge * mtl.ridge(W)) if ridge else None
    problem = model(tasks, argument=argument, sides=sides, more=more)
    solution = problem.solve(solver="alternating", method=method, tol=1e-6)
    assert_ends_well(problem, solution)
    assert_flat(problem, solution)
    expected = of_squares(tasks, solution.W) + 0.5 * ridge * np.sum(solution.W**2)
    expected += of_matrix_normal(argument(solution.W), *matrices_of(solution))
    assert solution.objective == pytest.approx(expected, rel=1e-10)


@pytest.mark.slow
@for_each("layout", ["shared", "separate"])
@for_each("penalty", ["ridge", "laplacian"])
def test_covariances_of_bounded_trace_beside_a_quadratic(layout, penalty):
    """Alternation ends where ADMM proves the optimum."""
    problem = covariance_problem(regression(layout=layout), more=PENALTIES[penalty])
    optimum = problem.solve(solver="admm", tol=1e-8).objective
    solution = problem.solve(solver="alternating", tol=1e-5)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(optimum, rel=1e-5)


def test_a_sum_of_two_weight_matrices():
    """The penalty on L alone, the l1 norm on S."""
    tasks = regression()
    L, S = mtl.Weights(tasks, name="L"), mtl.Weights(tasks, name="S")
    A, B = mtl.FeaturePrecision(tasks), mtl.TaskPrecision(tasks)
    loss, structure = mtl.sum_of_squares(L + S, tasks), mtl.matrix_normal(L, A, B, eta=ETA, rho=RHO)
    box = [A >> LOW, A << HIGH, B >> LOW, B << HIGH]
    solution = mtl.minimize(loss + structure + 2.0 * mtl.l1_norm(S), box).solve(tol=1e-6)
    assert solution.status == "stationary"
    np.testing.assert_allclose(solution.W, solution.L + solution.S)
    expected = of_squares(tasks, solution.W) + 2.0 * np.abs(solution.S).sum()
    expected += of_matrix_normal(solution.L, *matrices_of(solution))
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
    assert_ends_well(problem, solution)
    assert_flat(problem, solution)
    assert list(solution.learned) == ["Sigma1", "Sigma2", "A2", "B2"]
    moved = of_matrix_normal(solution.W - W0, solution.A2.precision, solution.B2.precision, 1.0, 1.0)
    expected = of_squares(tasks, solution.W) + of_matrix_normal(solution.W, *matrices_of(solution))
    assert solution.objective == pytest.approx(expected + 0.5 * moved, rel=1e-10)


def test_a_parameter_as_its_coefficient():
    """Each value is solved as if it had been typed; at zero the losses are left, at their optimum."""
    tasks = regression()
    lam = mtl.Parameter(1.0)
    problem = model(tasks, factor=lam)
    for value in (0.1, 1.0, 4.0):
        lam.value = value
        solution, typed = problem.solve(tol=1e-8), model(tasks, factor=value).solve(tol=1e-8)
        assert solution.status == typed.status == "stationary"
        assert solution.objective == pytest.approx(typed.objective, rel=1e-8)
    lam.value = 0.0
    solution = problem.solve(tol=1e-8)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(np.linalg.lstsq(tasks.X, labels_of(tasks))[1].sum(), rel=1e-6)


@pytest.mark.slow
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


@pytest.mark.slow
@for_each("method", ["lbfgs", "joint", "block"])
@for_each("scale", [1e-6, 1e-3, 1e3, 1e6])
def test_labels_of_any_size(method, scale):
    tasks = regression(seed=3)
    solution = model(mtl.Tasks.shared(tasks.X, scale * labels_of(tasks))).solve(
        solver="alternating", method=method
    )
    assert solution.status in ("stationary", "optimal")
