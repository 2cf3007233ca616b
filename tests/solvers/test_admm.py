"""ADMM: its linear algebra piece by piece, its multipliers, its hand-over to Newton steps, hard models, and its refusals."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.function import Loss
from mtldsl.atoms.regularizers import FrobeniusNorm
from mtldsl.atoms.sets import AtLeast, NormBall
from mtldsl.reference.compile import to_cvxpy
from mtldsl.reference.solve import solve_reference
from mtldsl.solvers.admm.admm import SOLVER
from mtldsl.solvers.admm.points import dykstra
from mtldsl.solvers.linear_algebra.anderson import Anderson
from mtldsl.solvers.linear_algebra.curvature import Part, find_curvatures
from mtldsl.solvers.linear_algebra.dense import DenseUpdate
from mtldsl.solvers.linear_algebra.inverses import inverses
from mtldsl.solvers.linear_algebra.kernel import KernelUpdate
from mtldsl.solvers.linear_algebra.layout import Layout
from mtldsl.solvers.linear_algebra.matrix_free import ConjugateGradientUpdate
from mtldsl.solvers.linear_algebra.split import Split
from mtldsl.solvers.linear_algebra.systems import mixes_tasks
from mtldsl.solvers.linear_algebra.x_update import TaskwiseUpdate, choose_x_update
from tests.models import separate, shared

D, M = 6, 4
FIXTURES = Path(__file__).parents[3] / "shared" / "fixtures"


def solve(objective, constraints=(), tol=1e-8, **options):
    solution = mtl.minimize(objective, subject_to=constraints).solve(solver="admm", tol=tol, **options)
    assert solution.status == "optimal", solution
    return solution


def solve_as_the_reference(objective, constraints=()):
    """To 1e-7 by our own gap, which is not asked alone: the reference's optimum, by its formulas, is the same, and so is the value of
    our point."""
    form = mtl.minimize(objective, subject_to=constraints).form()
    solution = solve(objective, constraints, tol=1e-7)
    stated, found = to_cvxpy(form), solve_reference(form)
    assert stated.objective_value(solution.blocks) == pytest.approx(solution.objective, rel=1e-9)
    assert stated.violation(solution.blocks) <= 1e-7
    assert solution.objective == pytest.approx(found.objective, rel=1e-6)
    return solution


# ------------------------------------------------------------------------------------------- the x-update


def forms():
    """Models whose maps cover what an x-update meets."""
    rng = np.random.default_rng(0)
    A, B, R = rng.normal(size=(3, D)), rng.normal(size=(D, D)), rng.normal(size=(M, M))
    for tasks in (
        shared(1),
        separate(1),
        shared(2, missing=0.3, sample_weights=True),
        separate(3, density=0.6),
    ):
        W = mtl.Weights(tasks, intercept=True)
        L, S = mtl.Weights(tasks, name="L", intercept=True), mtl.Weights(tasks, name="S")
        yield mtl.squared_loss(W, tasks) + mtl.l1_norm(W), []
        yield (
            mtl.absolute_loss(B @ W, tasks) + mtl.ridge(W, weights=np.arange(D)[:, None]) + mtl.l1_norm(W),
            [],
        )
        yield mtl.huber_loss(L - 2 * S, tasks) + mtl.trace_norm(L) + mtl.l21_norm(S[:4, :]), [A @ S <= 1]
        yield mtl.squared_loss(L + S, tasks) + mtl.l1_norm(L) + mtl.l1_norm(S - 1), [L[:, [0, 2]] >= 0]
        yield mtl.absolute_loss(W, tasks) + mtl.l1_norm(W), [W.sum(axis=1) == 0]
        yield mtl.squared_loss(W, tasks) + mtl.l1_norm(W) + mtl.trace_norm(W @ R), [W[0, :] == W[1, :]]
        V = mtl.Weights(tasks, name="V")
        yield mtl.squared_loss(V @ R, tasks) + mtl.l21_norm(V), []


FORMS = [mtl.minimize(objective, subject_to=constraints).form() for objective, constraints in forms()]


def residual(split, metric, solve, rhs):
    """How far x = solve(rhs) is from the system, by the operators alone."""
    x = solve(rhs)
    product = split.quadratic_product(x)
    split.add_adjoint(metric * split.linear_image(x), product)
    scale = max(np.abs(array).max() for array in rhs.values())
    return max(np.abs(product[name] - rhs[name]).max() for name in rhs) / scale


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.typed[12:60])
def test_every_x_update_solves_its_system(form):
    split = Split(form)
    rng = np.random.default_rng(0)
    rhs = {name: rng.normal(size=shape) for name, shape in form.shapes.items()}
    penalties = rng.uniform(0.5, 2.0, len(split.copies))
    chosen = choose_x_update(split)
    fallback = ConjugateGradientUpdate(split, None, reduction=1e-12, max_iter=2000)
    for update in (chosen, DenseUpdate(split), fallback):
        assert residual(split, split.metric(penalties), update.solver(penalties), rhs) < 1e-8
    mixing = "V @" in form.typed
    assert isinstance(chosen, DenseUpdate if mixing else TaskwiseUpdate)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("make", [shared, separate])
def test_systems_in_the_space_of_rows(make, intercept):
    """More features than rows: the same x-updates and Newton steps as in the space of features."""
    tasks = make(5)
    rng = np.random.default_rng(0)
    inputs = [np.hstack([X, rng.normal(size=(len(X), 40))]) for X in tasks.inputs]
    wide = mtl.Tasks.separate(inputs, tasks.per_task(tasks.targets))
    if make == shared:
        wide = mtl.Tasks.shared(inputs[0], tasks.targets.reshape(M, -1).T)
    W = mtl.Weights(wide, intercept=intercept)
    per_entry = rng.uniform(0.0, 1.0, (D + 40, M))
    for objective, constraints in (
        (mtl.absolute_loss(W, wide) + mtl.l1_norm(2 * W), []),
        (mtl.squared_loss(W, wide) + mtl.ridge(W, weights=per_entry) + mtl.l1_norm(W[:5, :]), [W >= -1]),
    ):
        form = mtl.minimize(objective, subject_to=constraints).form()
        split = Split(form)
        assert KernelUpdate.fits(split)
        rhs = {name: rng.normal(size=shape) for name, shape in form.shapes.items()}
        penalties, damping = rng.uniform(0.5, 2.0, (2, len(split.copies)))
        parts = [Part(weights=rng.uniform(size=copy.rows.stop - copy.rows.start)) for copy in split.copies]
        rows, features = KernelUpdate(split), TaskwiseUpdate(split, Layout(form))
        for one, other in (
            (rows.solver(penalties)(rhs), features.solver(penalties)(rhs)),
            (rows.newton_solver(parts, damping)(rhs), features.newton_solver(parts, damping)(rhs)),
        ):
            for name in rhs:
                np.testing.assert_allclose(one[name], other[name], atol=1e-9)


def test_wide_data_takes_the_space_of_rows():
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(20, 900)), rng.choice([-1.0, 1.0], (20, 3))
    Y[0], Y[1] = 1.0, -1.0
    tasks = mtl.Tasks.shared(X, Y)
    W = mtl.Weights(tasks, intercept=True)
    problem = mtl.minimize(mtl.hinge_loss(W, tasks) + 2 * mtl.l21_norm(W))
    assert isinstance(choose_x_update(Split(problem.form())), KernelUpdate)
    assert problem.solve(solver="admm", tol=1e-7).status == "optimal"


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.typed[12:60])
def test_newton_systems_hold_the_derivatives_of_the_proxes(form):
    """newton_solver inverts Q + K^T (M (I - D) + damping) K, where M (I - D) is compared with differences of the prox."""
    split = Split(form)
    rng = np.random.default_rng(1)
    penalties = rng.uniform(0.5, 2.0, len(split.copies))
    metric = split.metric(penalties)
    xi = rng.normal(size=split.size)
    curvatures = find_curvatures(split, xi, split.prox(xi, metric), metric)
    change = rng.normal(size=split.size)
    for copy, part in zip(split.copies, curvatures.parts, strict=True):
        if part is not None:
            np.testing.assert_allclose(
                part.product(change[copy.rows], copy.shape), curvatures.product(copy, change), atol=2e-4
            )
    if any(part is None for part in curvatures.parts):
        return  # conjugate gradients use products: nothing to invert
    # a map that mixes tasks is damped within the tasks only, so not at all here
    damping = 0.01 * penalties * [not mixes_tasks(copy, form) for copy in split.copies]

    def apply(x):
        image = split.linear_image(x)
        curved = split.metric(damping) * image
        for copy, part in zip(split.copies, curvatures.parts, strict=True):
            curved[copy.rows] += part.product(image[copy.rows], copy.shape)
        product = split.quadratic_product(x)
        split.add_adjoint(curved, product)
        return product

    x = {name: rng.normal(size=shape) for name, shape in form.shapes.items()}
    solution = choose_x_update(split).newton_solver(curvatures.parts, damping)(apply(x))
    assert max(np.abs(solution[name] - x[name]).max() for name in x) < 1e-7


@pytest.mark.parametrize(
    "term",
    [
        lambda W: mtl.total_variation(W),
        lambda W: mtl.l1_inf_norm(W),
        lambda W: mtl.l21_norm(W),
        lambda W: mtl.l12_norm(W),
        lambda W: mtl.mean_regularizer(W),
        lambda W: mtl.columns_on_simplex(W),
    ],
)
def test_curvature_of_rows_and_columns(term):
    """Derivatives found entry by entry give the same products as one difference along the direction."""
    tasks = separate(4)
    W, made = mtl.Weights(tasks), term(mtl.Weights(tasks))
    if isinstance(made, mtl.language.expressions.constraint.Constraint):
        problem = mtl.minimize(mtl.squared_loss(made.argument, tasks), subject_to=[made])
    else:
        problem = mtl.minimize(mtl.squared_loss(W, tasks) + term(W))
    split = Split(problem.form())
    rng = np.random.default_rng(2)
    for size in (0.3, 1.0, 3.0):
        xi, change = size * rng.normal(size=split.size), rng.normal(size=split.size)
        metric = np.full(split.size, 0.7)
        curvatures = find_curvatures(split, xi, split.prox(xi, metric), metric)
        (copy,), (part,) = split.copies, curvatures.parts
        np.testing.assert_allclose(
            part.product(change, copy.shape), curvatures.product(copy, change), atol=5e-4
        )


# ------------------------------------------------------------------------------------------- small pieces


@pytest.mark.parametrize("cores", [1, 8])
@pytest.mark.parametrize("size", [3, 60])
def test_inverses_of_stacks(size, cores, monkeypatch):
    """By numpy or scipy, in threads or not; features in other units, and matrices without full rank."""
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(60, size, 2 * size)) * 10.0 ** rng.uniform(-3, 3, (1, size, 1))
    H = roots @ roots.transpose(0, 2, 1)
    scale = np.sqrt(np.einsum("gii->gi", H))
    identity = inverses(H) @ H * (scale[:, :, None] / scale[:, None, :])
    np.testing.assert_allclose(identity, np.broadcast_to(np.eye(size), H.shape), atol=1e-10)
    H[7, :, -1] = H[7, -1, :] = 0.0
    found = inverses(H)[7]
    assert np.all(found[-1] == 0) and np.all(found[:, -1] == 0)
    identity = (found @ H[7] * (scale[7, :, None] / scale[7]))[:-1, :-1]
    np.testing.assert_allclose(identity, np.eye(size - 1), atol=1e-9)


def test_anderson_solves_a_linear_fixed_point_in_as_many_steps_as_dimensions():
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    A, b = Q @ np.diag([0.999, 0.99, 0.9, -0.5, 0.3, 0.0]) @ Q.T, rng.normal(size=6)
    s, anderson = np.zeros(6), Anderson(memory=8)
    for _ in range(12):
        s = anderson.step(s, A @ s + b, np.ones(6))
    np.testing.assert_allclose(s, np.linalg.solve(np.eye(6) - A, b), rtol=1e-5)


def test_dykstra_projects_on_an_intersection():
    """W >= 0 and ||W||_F <= 1 from (3, -1): (1, 0); alternating projections without corrections stop there too, so also (3, 1)."""
    sets = [AtLeast(0.0), NormBall(FrobeniusNorm(), 1.0)]
    np.testing.assert_allclose(dykstra(sets, np.array([[3.0, -1.0]])), [[1.0, 0.0]], atol=1e-12)
    np.testing.assert_allclose(
        dykstra(sets, np.array([[3.0, 1.0]])), [[3.0, 1.0]] / np.sqrt(10.0), atol=1e-12
    )
    # here plain alternating projections end elsewhere: W >= (0.8, 0) from (0, 2)
    sets = [AtLeast(np.array([[0.8, 0.0]])), NormBall(FrobeniusNorm(), 1.0)]
    near = dykstra(sets, np.array([[0.0, 2.0]]), rounds=500)
    np.testing.assert_allclose(near, [[0.8, 0.6]], atol=1e-6)


# ---------------------------------------------------------------------------------------------- solutions


def test_optimality_conditions_of_a_linear_program_by_hand():
    """Least absolute deviations with an l1 norm: X_i^T u_i + lam v_i = 0, u and v subgradients of | | at residuals and weights."""
    tasks = separate(5)
    W, lam = mtl.Weights(tasks), 2.0
    form = mtl.minimize(mtl.absolute_loss(W, tasks) + lam * mtl.l1_norm(W)).form()
    points = []
    point = SOLVER.solve(form, tol=1e-10, max_iter=3000, start=None, watch=lambda p: points.append(p))
    w, (u,), (v,) = point.blocks["W"], point.loss_duals, point.function_duals
    assert np.abs(u).max() <= 1 + 1e-12 and np.abs(v).max() <= lam * (1 + 1e-12)
    residuals = tasks.forward(w) - tasks.targets
    np.testing.assert_allclose(tasks.adjoint(u) + v, 0, atol=1e-7)
    clear = np.abs(residuals) > 1e-6
    np.testing.assert_allclose(u[clear], np.sign(residuals[clear]), atol=1e-9)
    np.testing.assert_allclose(v[w != 0], lam * np.sign(w[w != 0]), atol=1e-7)
    assert np.sum(~clear) >= M  # a vertex: some residuals vanish
    assert len(points) < 200


LOSSES = [
    "squared",
    "square_root",
    "absolute",
    "quantile",
    "huber",
    "hinge",
    "squared_hinge",
    "logistic",
    "poisson",
]
TERMS = {
    "l1": lambda W: mtl.l1_norm(W),
    "l21 + trace": lambda W: mtl.l21_norm(W) + mtl.trace_norm(W),
    "l1,inf": lambda W: mtl.l1_inf_norm(W),
    "variation": lambda W: mtl.total_variation(W) + 0.1 * mtl.l1_norm(W),
    "squared trace": lambda W: 0.1 * mtl.squared_trace_norm(W),
    "graph": lambda W: mtl.mean_regularizer(W) + 0.01 * mtl.ridge(W),
}
SETS = {
    "free": lambda W: [],
    "box": lambda W: [W >= -0.2, W <= 0.3],
    "simplex": lambda W: [W >= 0, W.sum(axis=0) == 1],
    "ball, sums": lambda W: [mtl.trace_norm(W) <= 1.5, W.sum(axis=1) == 0.1],
}
KINDS = {"hinge": "sign", "squared_hinge": "sign", "logistic": "sign", "poisson": "count"}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("term", TERMS)
def test_every_loss_with_every_kind_of_penalty(loss, term):
    tasks = shared(6, n=25, labels=KINDS.get(loss, "real"))
    W = mtl.Weights(tasks, intercept=loss in ("hinge", "huber"))
    solve_as_the_reference(getattr(mtl, f"{loss}_loss")(W, tasks) + TERMS[term](W))


@pytest.mark.parametrize("loss", ["squared", "square_root", "absolute", "hinge", "poisson"])
@pytest.mark.parametrize("sets", SETS)
def test_constraints_are_met(loss, sets):
    tasks = shared(7, n=25, labels=KINDS.get(loss, "real"))
    W = mtl.Weights(tasks)
    solve_as_the_reference(getattr(mtl, f"{loss}_loss")(W, tasks) + mtl.l1_norm(W), SETS[sets](W))


def test_quadratics_around_known_weights():
    """The constant of ridge(W - A) pulls W towards A, and that inside a loss moves its labels."""
    tasks, A = shared(8, n=25), np.random.default_rng(0).normal(size=(D, M))
    W = mtl.Weights(tasks)
    found = solve_as_the_reference(mtl.absolute_loss(W, tasks) + 1e3 * mtl.ridge(W - A) + mtl.l1_norm(W))
    np.testing.assert_allclose(found.W, A, atol=0.1)
    solve_as_the_reference(mtl.squared_loss(W - A, tasks) + mtl.l1_norm(W) + mtl.trace_norm(W))


@pytest.mark.skipif(not FIXTURES.is_dir(), reason=f"needs {FIXTURES}")
@pytest.mark.parametrize("key", ["sqrt_nuc", "sqrt_l21", "ls_nuc", "ls_l1", "ls_nuc+l12"])
def test_known_optima(key):
    data = json.loads((FIXTURES / "cmtl_9x6.json").read_text())
    tasks = mtl.Tasks.separate([np.array(X) for X in data["X"]], [np.array(y) for y in data["y"]])
    W, L, S = (mtl.Weights(tasks, name=name) for name in "WLS")
    lams = data[key].get("lams", [data["mu"]])
    objective = {
        "sqrt_nuc": lambda: mtl.square_root_loss(W, tasks) + lams[0] * mtl.trace_norm(W),
        "sqrt_l21": lambda: mtl.square_root_loss(W, tasks) + lams[0] * mtl.l21_norm(W),
        "ls_nuc": lambda: mtl.squared_loss(W, tasks) + lams[0] * mtl.trace_norm(W),
        "ls_l1": lambda: mtl.squared_loss(W, tasks) + lams[0] * mtl.l1_norm(W),
        "ls_nuc+l12": lambda: (
            mtl.squared_loss(L + S, tasks) + lams[0] * mtl.trace_norm(L) + lams[1] * mtl.l12_norm(S)
        ),
    }[key]()
    assert solve(objective, tol=1e-10).objective == pytest.approx(data[key]["optimum"], rel=3e-10)


def test_square_root_loss_with_tasks_that_interpolate():
    """A task with fewer rows than features has residual exactly 0 at a small penalty: no smoothing may hide that."""
    rng = np.random.default_rng(8)
    inputs = [rng.normal(size=(n, 5)) for n in (3, 30, 30)]
    W0 = np.outer(rng.normal(size=5), [1.0, 1.0, -1.0])
    targets = [X @ w + 0.5 * rng.normal(size=len(X)) for X, w in zip(inputs, W0.T, strict=True)]
    tasks = mtl.Tasks.separate(inputs, targets)
    W = mtl.Weights(tasks)
    solution = solve(mtl.square_root_loss(W, tasks) + 0.05 * mtl.trace_norm(W), tol=1e-9)
    residuals = [np.linalg.norm(X @ w - y) for X, w, y in zip(inputs, solution.W.T, targets, strict=True)]
    assert residuals[0] < 1e-7 and min(residuals[1:]) > 0.5


def test_structure_is_exact_in_the_answer():
    tasks = shared(9)
    W = mtl.Weights(tasks)
    sparse = solve(mtl.huber_loss(W, tasks) + 6 * mtl.l21_norm(W), tol=1e-6)
    assert np.any(np.all(sparse.W == 0, axis=1))
    low_rank = solve(mtl.squared_loss(W, tasks) + 15 * mtl.trace_norm(W), tol=1e-6)
    assert np.linalg.matrix_rank(low_rank.W, tol=1e-12) < M
    positive = solve(mtl.absolute_loss(W, tasks) + mtl.trace_norm(W), [W >= 0, mtl.l1_norm(W) <= 2], tol=1e-6)
    assert positive.W.min() >= 0 and np.abs(positive.W).sum() <= 2 + 1e-12


def test_newton_steps_take_over_where_admm_crawls():
    """Nearly separable labels and a small total variation: ADMM alone needs tens of thousands of iterations."""
    tasks = shared(10, n=40, labels="sign")
    W = mtl.Weights(tasks)
    for objective in (
        mtl.hinge_loss(W, tasks) + 0.05 * mtl.total_variation(W) + 0.05 * mtl.l1_norm(W),
        mtl.quantile_loss(W, tasks, q=0.9) + 0.01 * mtl.l1_inf_norm(W),
    ):
        assert solve(objective, tol=1e-9).iterations < 3000


def test_warm_starts_save_iterations():
    tasks = separate(11)
    W, lam = mtl.Weights(tasks), mtl.Parameter(3.0, name="lam")
    problem = mtl.minimize(mtl.absolute_loss(W, tasks) + lam * mtl.trace_norm(W), subject_to=[W >= -1])
    cold = problem.solve(solver="admm", tol=1e-7)
    again = problem.solve(solver="admm", tol=1e-7, warm_start=cold)
    assert again.status == "optimal" and again.iterations <= 10 < cold.iterations
    lam.value = 2.9
    near = problem.solve(solver="admm", tol=1e-7, warm_start=cold)
    other = problem.solve(solver="admm", tol=1e-7, warm_start={"W": np.ones((D, M))})
    assert near.objective == pytest.approx(other.objective, rel=2e-7)


def test_inner_options():
    tasks = shared(12)
    W = mtl.Weights(tasks)
    objective = mtl.huber_loss(W, tasks) + 2 * mtl.trace_norm(W)
    plain = solve(objective, anderson_memory=0, relaxation=1.0)
    fast = solve(objective)
    assert plain.objective == pytest.approx(fast.objective, rel=2e-8)
    assert fast.iterations < plain.iterations


@pytest.mark.parametrize("option", [{"relaxation": 2.0}, {"relaxation": 0}, {"anderson_memory": -1}])
def test_options_out_of_range_are_refused(option):
    tasks = shared(12)
    W = mtl.Weights(tasks)
    problem = mtl.minimize(mtl.huber_loss(W, tasks) + mtl.trace_norm(W))
    with pytest.raises(mtl.SolverError, match=next(iter(option))):
        problem.solve(solver="admm", **option)


def test_a_loss_without_a_proximal_step_is_refused():
    @dataclass(frozen=True, eq=False)
    class Opaque(Loss):
        name: ClassVar[str] = "opaque_loss"

    form = mtl.minimize(mtl.squared_loss(mtl.Weights(shared(0)), shared(0))).form()
    loss = form.losses[0]
    opaque = type(loss)(
        Opaque(), loss.coefficients, loss.tasks, loss.map, loss.intercepts, "opaque_loss(W, tasks)"
    )
    refused = type(form)(form.blocks, (opaque,), form.functions, form.typed)
    assert SOLVER.refuses(refused) == "opaque_loss(W, tasks) is not quadratic and has no proximal step."
    assert SOLVER.refuses(form) is None


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss, labels", [(mtl.hinge_loss, "sign"), (mtl.absolute_loss, "real")])
def test_terms_that_only_together_bound_the_weights_still_give_a_bound(loss, labels, intercept):
    tasks = shared(1, n=8, labels=labels)
    W = mtl.Weights(tasks, intercept=intercept)
    rows = mtl.l21_norm(W[:3, :]) + 0.2 * mtl.l1_norm(2 * W[3:, :])
    columns = 0.2 * mtl.l1_norm(W[:, 1:]) + 0.3 * mtl.l1_norm(W[:, 0])
    steps = 0.2 * mtl.l1_norm(W[:, 1:] - W[:, :-1])
    for penalty, constraints in ((rows, [W[:, :2] >= 0]), (columns, []), (steps, [W >= -2, W <= 2])):
        solve(loss(W, tasks) + penalty, constraints, tol=1e-7)
