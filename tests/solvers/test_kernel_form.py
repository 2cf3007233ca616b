"""Which models dual coordinate ascent on samples sees, and what it sees of them: losses by their conjugates, penalties by their kernels."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize_scalar

import mtldsl as mtl
from mtldsl.atoms.function import SeparableLoss
from mtldsl.atoms.structures import SpectralMatrix
from mtldsl.errors import ModelError
from mtldsl.solvers.samples.kernel_form import KernelForm, kernel_form
from mtldsl.solvers.samples.nodes import Nodes
from mtldsl.solvers.samples.samples import Samples
from tests.models import D, M, separate, shared
from tests.registry_cases import LOSSES

SEPARABLE = [case.values[0] for case in LOSSES if isinstance(case.values[0], SeparableLoss)]
KNOWN = [loss for loss in SEPARABLE if loss.entropic or loss.dual_quadratic(np.ones(1)) is not None]
by_loss = pytest.mark.parametrize("loss", KNOWN, ids=repr)


# ---------------------------------------------------------------------------------------------- losses by conjugates


def test_the_losses_that_have_such_a_conjugate():
    names = {
        "hinge_loss",
        "squared_hinge_loss",
        "logistic_loss",
        "squared_loss",
        "sum_of_squares",
        "absolute_loss",
        "huber_loss",
    }
    assert {loss.name for loss in KNOWN} == names | {"quantile_loss"}
    assert {loss.name for loss in SEPARABLE} - {loss.name for loss in KNOWN} == {
        "exponential_loss",
        "gamma_loss",
        "poisson_loss",
    }


def targets(loss):
    return np.array([1.0, -1.0]) if loss.labels == "sign" else np.array([-1.7, 0.0, 2.3])


def supremum(loss, u, y):
    """sup over z of u z - l(z, y), by golden section: the function is concave; every maximiser here lies within 60."""
    found = minimize_scalar(
        lambda z: float(loss.pointwise(np.array([z]), np.array([y]))[0] - u * z),
        bounds=(-60.0, 60.0),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return -found.fun


def inside(loss, y, parts):
    """Points of dom l*, 4 wide where it has no end."""
    low, high = (float(np.broadcast_to(end, (1,))[0]) for end in loss.dual_interval(np.array([y])))
    low = low if np.isfinite(low) else (high if np.isfinite(high) else 2.0) - 4.0
    high = high if np.isfinite(high) else low + 4.0
    return low + np.asarray(parts) * (high - low)


@by_loss
def test_conjugate_is_the_supremum(loss):
    """As `dual_quadratic` or as an entropy, written out here."""
    for y in targets(loss):
        for u in inside(loss, y, [0.03, 0.3, 0.5, 0.81, 0.97]):
            expected = supremum(loss, u, y)
            if loss.entropic:
                a = -y * u
                stated = a * np.log(a) + (1 - a) * np.log1p(-a)
            else:
                b, c = loss.dual_quadratic(np.array([y]))
                assert np.all(np.asarray(c) >= 0)
                stated = float((b * u + 0.5 * c * u**2).item() if np.ndim(b) else b * u + 0.5 * c * u**2)
            assert stated == pytest.approx(expected, abs=1e-7)
            assert float(loss.pointwise_conjugate(np.array([u]), np.array([y]))[0]) == pytest.approx(
                stated, abs=1e-12
            )


@by_loss
def test_domain_ends_where_the_supremum_does(loss):
    """Beyond an end, u z - l(z) grows along a ray at the rate that is said; at the end it does not."""
    for y in targets(loss):
        for end in (float(np.broadcast_to(e, (1,))[0]) for e in loss.dual_interval(np.array([y]))):
            if not np.isfinite(end):
                continue
            rises = []
            for u in (end - 0.01, end, end + 0.01):
                z = np.array([-2e6, -1e6, 1e6, 2e6])
                value = u * z - loss.pointwise(z, np.full(4, y))
                rises.append(max(value[0] - value[1], value[3] - value[2]))
            assert rises[1] <= 1e-6 * 1e6 * 1e-3 and sorted(rises)[-1] == pytest.approx(0.01 * 1e6, rel=1e-6)
            assert sum(rise > 1e3 for rise in rises) == 1


def term(name, seed=0, **layout):
    labels = next(loss.labels for loss in KNOWN if loss.name == name)
    tasks = shared(seed, n=12, labels=labels, missing=0.2, sample_weights=True, **layout)
    W = mtl.Weights(tasks)
    form = mtl.minimize(1.7 * getattr(mtl, name)(W, tasks) + mtl.ridge(W)).form()
    return kernel_form(form).loss


@pytest.mark.parametrize("name", sorted({loss.name for loss in KNOWN}))
def test_samples_with_weights(name):
    """Conjugates sum to the loss's; slopes are their derivatives; the table says the same in the kernels' numbers."""
    loss = term(name)
    samples, rng = Samples(loss), np.random.default_rng(0)
    every = np.arange(samples.n)
    low, high = np.maximum(samples.low, -3.0), np.minimum(samples.high, 3.0)
    u = low + rng.uniform(0.1, 0.9, samples.n) * (high - low)
    np.testing.assert_allclose(samples.conjugates(every, u).sum(), loss.conjugate(u), rtol=1e-12)
    first, second = samples.slopes(every, u)
    h = 1e-5 * (high - low)
    up, down = samples.slopes(every, u + h)[0], samples.slopes(every, u - h)[0]
    values = samples.conjugates(every, u + h), samples.conjugates(every, u - h)
    np.testing.assert_allclose(first, (values[0] - values[1]) / (2 * h), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(second, (up - down) / (2 * h), rtol=1e-5, atol=1e-6)
    table = samples.table(2)
    assert table.shape == (samples.n, 7) and not table[:, 5:].any()
    np.testing.assert_array_equal(table[:, 1:3], np.column_stack([samples.low, samples.high]))
    if samples.entropic:
        np.testing.assert_array_equal(table[:, 3:5], np.column_stack([samples.y, samples.weight]))
    else:
        np.testing.assert_allclose(table[:, 3] + table[:, 4] * u, first, rtol=1e-12)


@pytest.mark.parametrize("density", [None, 0.4])
def test_rows_and_supports(density):
    """Flat sample i has the row of the inputs that predictions use, and every feature of a task's rows is in its support."""
    tasks = shared(3, n=9, missing=0.3, density=density)
    W = mtl.Weights(tasks)
    samples = Samples(mtl.minimize(mtl.squared_loss(W, tasks) + mtl.ridge(W)).form().losses[0])
    X = tasks.X.toarray() if density else tasks.X
    V = np.random.default_rng(1).normal(size=(D, M))
    np.testing.assert_allclose(
        np.einsum("ij,ij->i", X[samples.rows_of], V.T[tasks.task_of]), tasks.forward(V), rtol=1e-12
    )
    for t in range(M):
        own = samples.support.features[samples.support.ends[t] : samples.support.ends[t + 1]]
        assert set(own) == (
            set(np.flatnonzero(np.any(X[tasks.mask[:, t]] != 0, axis=0))) if density else set(range(D))
        )


# --------------------------------------------------------------------------------------------- penalties by kernels

PATH = np.diag([1.0, 2, 2, 1]) - np.diag(np.ones(3), 1) - np.diag(np.ones(3), -1)
MULTIPLE = SpectralMatrix(np.zeros((D, 0)), np.zeros(0), 1.5)  # 1.5 I, as its parts


def quadratics(W):
    return {
        "ridge": 0.7 * mtl.ridge(W),
        "ridges": mtl.ridge(W) + 0.5 * mtl.ridge(W),
        "laplacian": 2.0 * mtl.graph_laplacian(W, PATH) + 0.3 * mtl.ridge(W),
        "mean": mtl.mean_regularizer(W) + 0.1 * mtl.ridge(W),
        "kronecker": mtl.kronecker_ridge(W, MULTIPLE, PATH + np.eye(M)),
        "weighted": mtl.ridge(W, weights=np.array([1.0, 2.0, 0.5, 3.0])),
    }


@pytest.mark.parametrize("which", ["ridge", "ridges", "laplacian", "mean", "kronecker", "weighted"])
def test_quadratics_between_tasks_are_one_kernel(which):
    """coefficient * 1/2 tr(W K^{-1} W^T) is the penalty, and its conjugate that of the sum."""
    tasks = shared(1, n=8)
    W = mtl.Weights(tasks)
    form = mtl.minimize(mtl.absolute_loss(W, tasks) + quadratics(W)[which]).form()
    found = kernel_form(form)
    assert isinstance(found, KernelForm) and found.name is None
    V = np.random.default_rng(0).normal(size=(D, M))
    assert found.coefficient * found.norm.value(V) == pytest.approx(
        sum(f.value({"W": V}) for f in form.functions), rel=1e-10
    )
    (kernel,) = found.norm.kernels
    best = minimize_conjugate(form, V)
    assert found.coefficient * found.norm.conjugate(V / found.coefficient) == pytest.approx(best, rel=1e-8)
    assert kernel.n_tasks == M


def minimize_conjugate(form, Z):
    """sup over W of <Z, W> - penalty(W), a quadratic, by its normal equations in all entries."""
    size, value = D * M, lambda v: sum(f.value({"W": v.reshape(D, M)}) for f in form.functions)
    unit = np.eye(size)
    diagonal = np.array([value(e) for e in unit])
    H = np.array(
        [
            [value(a + b) - va - vb for b, vb in zip(unit, diagonal, strict=True)]
            for a, va in zip(unit, diagonal, strict=True)
        ]
    )
    z = Z.ravel()
    return 0.5 * float(z @ np.linalg.solve(H, z))


def test_a_kronecker_ridge_whose_rows_are_the_identity_as_typed():
    tasks = shared(1, n=8, labels="sign")
    W = mtl.Weights(tasks)
    problem = mtl.minimize(mtl.hinge_loss(W, tasks) + mtl.kronecker_ridge(W, 2 * np.eye(D), PATH + np.eye(M)))
    assert isinstance(kernel_form(problem.form()), KernelForm)


VIEWS = [mtl.union(columns=slice(0, 4)), mtl.individual(columns=[2, 3, 4]), mtl.identity(columns=[0, 5])]


@pytest.mark.parametrize(
    "similarities",
    [
        [mtl.union(), mtl.individual()],
        [mtl.tree([4, 4, 5, 5, 6, 6, -1])],
        [mtl.laplacian(PATH), mtl.union()],
        VIEWS,
    ],
    ids=["rank one", "tree", "dense", "views"],
)
def test_nodes_hold_what_the_kernels_say(similarities):
    """b_m = tr(Z R_m Z^T) and W = -Z K_theta, from dense matrices."""
    tasks = shared(1, n=8)
    W = mtl.Weights(tasks)
    norm = kernel_form(
        mtl.minimize(mtl.squared_loss(W, tasks) + mtl.mkl_norm(W, similarities, p=2)).form()
    ).norm
    nodes, rng = Nodes(norm, D), np.random.default_rng(0)
    Z, theta = rng.normal(size=(D, M)), rng.uniform(0.1, 2.0, len(norm.kernels))
    nodes.fill(Z)
    b, expected = [], np.zeros((D, M))
    for weight, kernel in zip(theta, norm.kernels, strict=True):
        rows = slice(None) if kernel.columns is None else kernel.columns
        b.append(np.trace(Z[rows] @ kernel.matrix @ Z[rows].T))
        expected[rows] -= weight * Z[rows] @ kernel.matrix
    np.testing.assert_allclose(nodes.sizes(), b, rtol=1e-12)
    np.testing.assert_allclose(nodes.weights(theta), expected, rtol=1e-12, atol=1e-13)
    assert not nodes.tasks_are_apart


def test_tasks_are_apart_where_no_node_is_of_two():
    for similarity, apart in (
        (mtl.identity(), True),
        (mtl.individual(), True),
        (mtl.union(), False),
        (mtl.clusters(["a", "b", "c", "d"]), True),
        (mtl.clusters(["a", "b", "b", "c"]), False),
    ):
        tasks = shared(1, n=8)
        W = mtl.Weights(tasks)
        norm = kernel_form(
            mtl.minimize(mtl.squared_loss(W, tasks) + mtl.mkl_norm(W, similarity, p=2)).form()
        ).norm
        assert Nodes(norm, D).tasks_are_apart is apart


# -------------------------------------------------------------------------------------------------- what is refused


def answer(problem, name="dual_ascent"):
    return next(one for one in problem.explain().answers if one.name == name)


def both(labels="sign", **layout):
    tasks = shared(2, n=12, labels=labels, **layout)
    return tasks, mtl.Weights(tasks)


SIMILARITIES = [mtl.union(), mtl.individual()]


def refused_models():
    tasks, W = both()
    real, V = both("real")
    S = mtl.Weights(tasks, name="S")
    off = mtl.Parameter(0.0)
    norm = mtl.mkl_norm(W, SIMILARITIES, p=2)
    hinge = mtl.hinge_loss(W, tasks)
    counts, U = both("count")
    yield "is a second loss", hinge + mtl.logistic_loss(W, tasks) + norm, []
    yield "is not a sum over samples", mtl.square_root_loss(V, real) + mtl.mkl_norm(V, SIMILARITIES, p=2), []
    yield (
        "neither quadratic on an interval nor an entropy",
        mtl.poisson_loss(U, counts) + mtl.mkl_norm(U, SIMILARITIES, p=2),
        [],
    )
    yield "there are 2 weight matrices: W, S.", mtl.hinge_loss(W + S, tasks) + norm + mtl.ridge(S), []
    yield "l1_norm(W) <= 1", mtl.hinge_loss(W, tasks), [mtl.l1_norm(W) <= 1]
    yield "no regularizer whose conjugate is finite", hinge + off * norm, []
    yield "is not quadratic", hinge + norm + mtl.ridge(W), []
    yield "is not quadratic", hinge + norm + mtl.l1_norm(W), []
    yield (
        "is not a function of W itself",
        hinge + mtl.ridge(W) + mtl.mkl_norm(W - np.ones((D, M)), SIMILARITIES, p=2),
        [],
    )
    yield "W >= 0", hinge + norm, [W >= 0]
    yield "singular: + 1e-6 * ridge", hinge + mtl.graph_laplacian(W, PATH), []


@pytest.mark.parametrize("i", range(11))
def test_refusals_say_which_part_is_in_the_way(i):
    reason, objective, constraints = list(refused_models())[i]
    problem = mtl.minimize(objective, subject_to=constraints)
    said = answer(problem).refusal
    assert said is not None and reason in said, said
    assert said.endswith(".") and len(said) < 250
    with pytest.raises(ModelError, match="does not take this model"):
        problem.solve(solver="dual_ascent")
    solution = problem.solve(tol=1e-5)
    assert solution.status == "optimal" and solution.solver != "dual_ascent"


def test_losses_with_coefficient_zero():
    """What remains is a penalty with minimum 0, whoever solves it."""
    tasks = shared(2, n=12, labels="sign")
    for intercept in (False, True):
        W = mtl.Weights(tasks, intercept=intercept)
        for penalty in (
            mtl.ridge(W),
            mtl.mkl_norm(W, SIMILARITIES, p=2),
            mtl.mkl_norm(W, SIMILARITIES, p=1) + mtl.l1_norm(W),
        ):
            for word in (mtl.hinge_loss, mtl.logistic_loss, mtl.squared_loss):
                problem = mtl.minimize(mtl.Parameter(0.0) * word(W, tasks) + penalty)
                assert "no loss has a coefficient > 0" in answer(problem).refusal
                solution = problem.solve()
                assert solution.status == "optimal" and solution.objective == pytest.approx(0.0, abs=1e-12)


def test_who_is_chosen():
    tasks, W = both()
    real, V = both("real")
    counts, U = both("count")
    text, T = both("sign", density=0.4)
    chosen = {
        "hinge and mkl_norm": (mtl.hinge_loss(W, tasks) + mtl.mkl_norm(W, SIMILARITIES, p=2), "dual_ascent"),
        "logistic and mkl_norm": (mtl.logistic_loss(W, tasks) + mtl.mkl_norm(W, SIMILARITIES, p=1), "dual_ascent"),
        "squared and mkl_norm": (mtl.squared_loss(V, real) + mtl.mkl_norm(V, SIMILARITIES, p=1), "dual_ascent"),
        "poisson and mkl_norm": (mtl.poisson_loss(U, counts) + mtl.mkl_norm(U, SIMILARITIES, p=2), "proximal_gradient"),
        "structured and mkl_norm": (
            mtl.structured_hinge(W, tasks, metric=mtl.FScore()) + mtl.mkl_norm(W, SIMILARITIES, p=2), "admm",
        ),
        "structured and ridge": (mtl.structured_hinge(W, tasks, metric=mtl.FScore()) + mtl.ridge(W), "dual_ascent"),
        "hinge and ridge": (mtl.hinge_loss(W, tasks) + mtl.ridge(W), "dual_ascent"),
        "hinge and ridge, sparse": (mtl.hinge_loss(T, text) + mtl.ridge(T), "dual_ascent"),
        "logistic and ridge, sparse": (mtl.logistic_loss(T, text) + mtl.ridge(T), "proximal_gradient"),
        "squared and ridge": (mtl.squared_loss(V, real) + mtl.ridge(V), "closed_form"),
    }  # fmt: skip
    assert {name: mtl.minimize(objective).explain().chosen for name, (objective, _) in chosen.items()} == {
        name: solver for name, (_, solver) in chosen.items()
    }
    for name in ("poisson and mkl_norm", "structured and mkl_norm"):
        assert answer(mtl.minimize(chosen[name][0])).refusal
    yields = answer(mtl.minimize(mtl.logistic_loss(W, tasks) + mtl.ridge(W)))
    assert yields.refusal is None and "slower than Newton steps" in yields.yields


@pytest.mark.slow
def test_weights_given_and_inputs_as_integers():
    """CSR inputs with 64-bit indices and integer values go through the compiled kernels as well."""
    tasks = separate(3, labels="sign", density=0.5)
    inputs = []
    for X in tasks.inputs:
        X = sparse.csr_array(X)
        inputs.append(
            sparse.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)
        )
    other = mtl.Tasks.separate(inputs, tasks.per_task(tasks.targets))
    objectives = []
    for data in (tasks, other):
        W = mtl.Weights(data)
        solution = mtl.minimize(mtl.hinge_loss(W, data) + mtl.mkl_norm(W, SIMILARITIES, p=2)).solve(
            solver="dual_ascent"
        )
        objectives.append(solution.objective)
    assert objectives[0] == objectives[1]
