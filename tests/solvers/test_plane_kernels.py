"""Quadratic programs over a simplex of planes against cvxpy, and the bookkeeping of kept planes."""

import cvxpy as cp
import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.metrics import AUC, FScore, PrecisionAt, RecallAt, ROCArea
from mtldsl.atoms.planes.cutting_planes import prox_of_planes
from mtldsl.atoms.planes.simplex_kernel import solve_on_simplex
from mtldsl.solvers.kernels.plane_steps import add_planes, proximal_steps
from mtldsl.solvers.planes.bundle import Bundle
from mtldsl.solvers.planes.oracle import Oracle
from tests.models import shared

TOL = 1e-14


def random_planes(rng, kind):
    """(A, c): K planes in D dimensions, c their heights."""
    D, K = int(rng.integers(1, 9)), int(rng.integers(1, 25))
    A, c = rng.normal(size=(K, D)), rng.normal(size=K)
    if kind == "singular":
        A = rng.normal(size=(K, 2)) @ rng.normal(size=(2, D))
    elif kind == "duplicated":
        chosen = rng.integers(K, size=K)
        A, c = A[chosen], np.where(rng.random(K) < 0.5, c[chosen], c)
    elif kind == "zero planes":
        A[rng.random(K) < 0.5] = 0.0
    elif kind == "integers":  # ties and exact dependences
        A, c = np.round(2 * A), np.round(c)
    elif kind == "badly scaled":
        A *= 10.0 ** rng.uniform(-3, 3, (K, 1))
        c *= 10.0 ** rng.uniform(-3, 3)
    return A, c


KINDS = ["plain", "singular", "duplicated", "zero planes", "integers", "badly scaled"]
every_kind = pytest.mark.parametrize("kind", KINDS)


def kkt_excess(Q, c, beta) -> float:
    """How far some index gains over the support's worst, relative to the terms that cancel in a slope.

    Weights are known to eps of their sum, 1: what that alone moves a slope by is not counted.
    """
    slope = c - Q @ beta
    cancels = np.abs(c) + np.abs(Q) @ beta
    used = beta > 0
    excess = slope.max() - slope[used].min() - 2 * np.finfo(float).eps * np.abs(Q).max()
    return excess / max(cancels.max(), 1e-300)


def starts(rng, K):
    """Feasible starts: a vertex, all indices at once (more than the rank), a few of very different weights."""
    vertex = np.zeros(K)
    vertex[rng.integers(K)] = 1.0
    uneven = rng.random(K) ** 12  # some of them far below the others
    return [vertex, np.full(K, 1.0 / K), uneven / uneven.sum()]


@every_kind
@pytest.mark.parametrize("size", [1e-20, 1e-6, 1.0, 1e6])
def test_optimality_conditions_hold_from_every_start(kind, size):
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(25):
        A, c = random_planes(rng, kind)
        Q = size * (A @ A.T)
        for beta in starts(rng, len(c)):
            steps = solve_on_simplex(Q, c, beta, TOL)
            assert beta.min() >= 0.0 and beta.sum() == pytest.approx(1.0, abs=1e-14)
            assert kkt_excess(Q, c, beta) <= 1e-11
            assert steps <= 50 + 20 * len(c)


@every_kind
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_the_optimum_is_cvxpys(kind, size):
    rng = np.random.default_rng(10 + KINDS.index(kind))
    for _ in range(4):
        A, c = random_planes(rng, kind)
        root = np.sqrt(size) * A
        beta = starts(rng, len(c))[int(rng.integers(3))]
        solve_on_simplex(root @ root.T, c, beta, TOL)
        b = cp.Variable(len(c), nonneg=True)
        unit = max(np.abs(root).max() ** 2, np.abs(c).max())  # the reference's tolerances are absolute too
        objective = 0.5 * cp.sum_squares(root.T @ b) / unit - (c / unit) @ b
        best = unit * cp.Problem(cp.Minimize(objective), [cp.sum(b) == 1]).solve(
            solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11
        )
        found = 0.5 * np.sum((root.T @ beta) ** 2) - c @ beta
        assert abs(found - best) <= 1e-8 * unit


def test_a_warm_start_at_the_optimum_stays_there():
    rng = np.random.default_rng(3)
    for _ in range(20):
        A, c = random_planes(rng, "plain")
        beta = starts(rng, len(c))[1]
        solve_on_simplex(A @ A.T, c, beta, TOL)
        again = beta.copy()
        assert solve_on_simplex(A @ A.T, c, again, TOL) <= 2
        np.testing.assert_allclose(again, beta, atol=1e-12)


def test_without_curvature_the_highest_plane_takes_all():
    c = np.array([0.3, 2.0, -1.0, 1.999])
    beta = np.full(4, 0.25)
    solve_on_simplex(np.zeros((4, 4)), c, beta, TOL)
    np.testing.assert_array_equal(beta, [0, 1, 0, 0])


# ---------------------------------------------------------------------------------------------- the prox


@every_kind
@pytest.mark.parametrize("step", [1e-2, 1.0, 1e2])
def test_prox_of_a_maximum_of_planes_is_cvxpys(kind, step):
    rng = np.random.default_rng(20 + KINDS.index(kind))
    for _ in range(3):
        A, c = random_planes(rng, kind)
        if kind == "badly scaled":
            A, c = A / np.abs(A).max(), c / np.abs(c).max()
        z = rng.normal(size=A.shape[1])

        def oracle(x, A=A, c=c):
            k = int(np.argmax(c + A @ x))
            return A[k], c[k]

        x = prox_of_planes(oracle, z, step)
        v = cp.Variable(z.size)
        objective = step * cp.max(A @ v + c) + 0.5 * cp.sum_squares(v - z)
        best = cp.Problem(cp.Minimize(objective)).solve(
            solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11
        )
        # strong convexity: the point is known from the value
        found = step * np.max(A @ x + c) + 0.5 * np.sum((x - z) ** 2)
        size = abs(best) + step * np.abs(c).max() + 1.0
        assert abs(found - best) <= 1e-8 * size
        np.testing.assert_allclose(x, v.value, atol=2e-4 * size)


@pytest.mark.parametrize("metric", [FScore(), AUC(), PrecisionAt(2), RecallAt(0.5), ROCArea()], ids=repr)
def test_prox_of_a_structured_hinge_cannot_be_improved(metric):
    """F(x + e) >= F(x) + 1/2 ||e||^2 for the minimiser of a convex function + 1/2 ||. - z||^2, F by the definition's own oracle."""
    rng = np.random.default_rng(5)
    y = np.where(np.arange(14) % 3 == 0, 1.0, -1.0)
    for step in (0.03, 1.0, 30.0):
        z = rng.normal(size=14)

        def value(x, step=step, z=z):
            return step * metric.most_violated(x, y).value + 0.5 * np.sum((x - z) ** 2)

        def oracle(x):
            plane = metric.most_violated(x, y)
            return plane.gradient(y), plane.delta

        x = prox_of_planes(oracle, z, step)
        for size in (1.0, 1e-2, 1e-4):
            for _ in range(10):
                e = size * rng.normal(size=14)
                assert value(x + e) >= value(x) + 0.5 * e @ e - 1e-12 * (1 + abs(value(x)))


# --------------------------------------------------------------------------------------- planes that are kept


def filled_bundle(rng, intercept=True, rounds=30, metric=None):
    """A bundle with planes of random points, and the Oracle that found them."""
    tasks = shared(1, n=20, labels="sign")
    W = mtl.Weights(tasks, intercept=intercept)
    hinge = mtl.structured_hinge(W, tasks, metric=FScore() if metric is None else metric)
    (loss,) = mtl.minimize(hinge + mtl.l1_norm(W)).form().losses
    oracle = Oracle(loss)
    bundle = Bundle(oracle)
    for k in range(rounds):
        chosen = rng.permutation(tasks.n_tasks)[: rng.integers(0, tasks.n_tasks + 1)]
        bundle.add(
            oracle(rng.normal(size=(tasks.n_tasks, oracle.size)) * 10.0 ** rng.uniform(-3, 1)),
            np.sort(chosen),
        )
        if k % 7 == 0:
            found = oracle.one(1, rng.normal(size=oracle.size))
            bundle.add_one(1, found.slopes[0], found.deltas[0], found.stored[0])
    return bundle, oracle


def assert_consistent(bundle, oracle):
    """Gram matrices, slopes and offsets are those of the stored labellings."""
    loss, tasks = oracle.loss, oracle.tasks
    for i, n in enumerate(bundle.counts):
        planes = bundle.planes[i, :n]
        np.testing.assert_allclose(bundle.gram[i, :n, :n], planes @ planes.T, rtol=1e-12, atol=1e-12)
        assert len(bundle.stored[i]) == n
        _, _, metric, y, classes = loss.tasks_apart[i]
        X = np.column_stack([np.asarray(tasks.inputs[i]), np.full(len(y), oracle.unit)])[:, : bundle.size]
        for k in range(n):
            flips = np.unpackbits(bundle.stored[i][k], count=len(y)).view(bool)
            np.testing.assert_allclose(
                planes[k], X.T @ np.where(flips, -2.0 * y, 0.0), rtol=1e-12, atol=1e-12
            )
            b, c = int(np.sum(flips & (y < 0))), int(np.sum(flips & (y > 0)))
            assert bundle.deltas[i, k] == pytest.approx(
                float(metric.delta(b, c, *map(len, classes))), abs=1e-15
            )
        assert np.all(bundle.planes[i, 0] == 0.0) and bundle.deltas[i, 0] == 0.0  # the true labelling


@pytest.mark.parametrize("intercept", [False, True])
def test_planes_and_gram_matrices_stay_those_of_the_stored_labellings(intercept):
    rng = np.random.default_rng(0)
    bundle, oracle = filled_bundle(rng, intercept)
    assert bundle.counts.max() > 16  # it has grown
    assert_consistent(bundle, oracle)
    m = len(bundle.counts)
    for round_ in range(12):
        B = rng.normal(size=(m, bundle.size)) * 10.0 ** rng.uniform(-2, 1)
        steps = 10.0 ** rng.uniform(-2, 0.5, m)
        bundle.proximal_steps(B, steps, TOL)
        weights = [dict(zip(map(bytes, bundle.stored[i]), bundle.beta[i], strict=False)) for i in range(m)]
        before = bundle.counts.copy()
        if round_ % 3 == 2:
            bundle.drop_idle(3)
            assert np.all(bundle.counts <= before) and np.all(bundle.counts >= 1)
        for i, n in enumerate(bundle.counts):
            # nothing with weight was dropped
            assert bundle.beta[i, :n].sum() == pytest.approx(1.0, abs=1e-12)
            assert not bundle.beta[i, n:].any() and not bundle.planes[i, n:].any()
            for k in range(n):
                assert bytes(bundle.stored[i][k]) in weights[i]
        assert_consistent(bundle, oracle)
        bundle.add(oracle(rng.normal(size=(m, bundle.size))), np.arange(m))
    assert np.any(before > bundle.counts)


def test_a_step_of_every_task_is_the_prox_of_its_model():
    rng = np.random.default_rng(1)
    bundle, _ = filled_bundle(rng)
    m = len(bundle.counts)
    B, steps = rng.normal(size=(m, bundle.size)), np.array([1e-3, 0.1, 1.0, 30.0])
    V, promised = bundle.proximal_steps(B, steps, TOL)
    # the mixture's planes are the highest ones
    np.testing.assert_allclose(bundle.values(V), promised, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(V, B - steps[:, None] * bundle.slopes(), rtol=1e-12, atol=1e-12)
    for i, n in enumerate(bundle.counts):
        A, delta = bundle.planes[i, :n], bundle.deltas[i, :n]
        v = cp.Variable(bundle.size)
        objective = steps[i] * cp.max(A @ v + delta) + 0.5 * cp.sum_squares(v - B[i])
        best = cp.Problem(cp.Minimize(objective)).solve(
            solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11
        )
        found = steps[i] * np.max(A @ V[i] + delta) + 0.5 * np.sum((V[i] - B[i]) ** 2)
        assert found == pytest.approx(best, rel=1e-8, abs=1e-9)


def test_kernels_by_hand():
    """Two planes in one dimension: |v| as max(v, -v), and its prox with step 0.5 at 2 and at 0.2."""
    planes, gram = np.zeros((1, 4, 1)), np.zeros((1, 4, 4))
    deltas, beta, idle = np.zeros((1, 4)), np.zeros((1, 4)), np.zeros((1, 4), np.int64)
    counts = np.zeros(1, np.int64)
    for slope in (1.0, -1.0, 0.5):
        add_planes(planes, gram, deltas, beta, counts, idle, np.array([0]), np.array([[slope]]), np.zeros(1))
    beta[0, 2] = 1.0
    np.testing.assert_array_equal(gram[0, :3, :3], np.outer([1, -1, 0.5], [1, -1, 0.5]))
    V, promised = np.empty((1, 1)), np.empty(1)
    arrays = planes, gram, deltas, beta, counts, idle
    proximal_steps(*arrays, np.array([0.5]), np.array([[2.0]]), TOL, V, promised)
    assert (V[0, 0], promised[0]) == pytest.approx((1.5, 1.5))
    np.testing.assert_array_equal(idle[0, :3], [0, 1, 1])
    proximal_steps(*arrays, np.array([0.5]), np.array([[0.2]]), TOL, V, promised)
    assert (V[0, 0], promised[0]) == pytest.approx((0.0, 0.0), abs=1e-15)
