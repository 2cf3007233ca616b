"""Quadratic programs over a simplex of planes against cvxpy, and the bookkeeping of kept planes."""

import cvxpy as cp
import numpy as np
import pytest

from mtldsl.atoms.metrics import AUC, FScore, PrecisionAt, RecallAt, ROCArea
from mtldsl.atoms.planes.cutting_planes import prox_of_planes
from mtldsl.atoms.planes.simplex_kernel import solve_on_simplex

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


@pytest.mark.by_default("0.001-plain")
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


def test_without_curvature_the_highest_plane_takes_all():
    c = np.array([0.3, 2.0, -1.0, 1.999])
    beta = np.full(4, 0.25)
    solve_on_simplex(np.zeros((4, 4)), c, beta, TOL)
    np.testing.assert_array_equal(beta, [0, 1, 0, 0])


# ---------------------------------------------------------------------------------------------- the prox


@pytest.mark.by_default("1.0-badly scaled")
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
