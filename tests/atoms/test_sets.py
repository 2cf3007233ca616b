"""The sets: membership, projections by the variational inequality, support functions by their maximisers."""

import numpy as np
import pytest

from mtldsl.atoms.regularizers import FrobeniusNorm, L1Norm, L21Norm, TraceNorm
from mtldsl.atoms.sets import (
    AtLeast,
    AtMost,
    ColumnsOnSimplex,
    EqualTo,
    NormBall,
)
from tests.loops import for_each

INF = np.inf
SHAPE = (5, 4)


def L1Ball(radius):
    return NormBall(L1Norm(), radius)


def L21Ball(radius):
    return NormBall(L21Norm(), radius)


def TraceNormBall(radius):
    return NormBall(TraceNorm(), radius)


def FrobeniusBall(radius):
    return NormBall(FrobeniusNorm(), radius)


# ------------------------------------------------- for every bounded set: the maximiser of <Z, .>, from geometry


def _corner_of_l1(radius, Z):
    V = np.zeros_like(Z)
    at = np.unravel_index(np.argmax(np.abs(Z)), Z.shape)
    V[at] = radius * np.sign(Z[at])
    return V


def _corner_of_l21(radius, Z):
    V = np.zeros_like(Z)
    norms = [np.sqrt(sum(x * x for x in row)) for row in Z]
    r = int(np.argmax(norms))
    V[r] = radius * Z[r] / norms[r]
    return V


def _corner_of_trace(radius, Z):
    U, _, Vt = np.linalg.svd(Z)
    return radius * np.outer(U[:, 0], Vt[0])


def _corner_of_simplex(total, Z):
    V = np.zeros_like(Z)
    V[np.argmax(Z, axis=0), np.arange(Z.shape[1])] = total
    return V


CORNERS = [
    (lambda size: L1Ball(size), _corner_of_l1),
    (lambda size: L21Ball(size), _corner_of_l21),
    (lambda size: TraceNormBall(size), _corner_of_trace),
    (lambda size: FrobeniusBall(size), lambda size, Z: size * Z / np.sqrt(np.sum(Z**2))),
    (lambda size: ColumnsOnSimplex(size), _corner_of_simplex),
]
bounded = pytest.mark.parametrize(
    ("make", "corner"), CORNERS, ids=["l1_ball", "l21_ball", "trace_norm_ball", "frobenius_ball", "simplex"]
)


# ------------------------------------------------------------------------------------------------ by hand


def test_projections_by_hand():
    W = np.array([[3.0, -1.0], [0.0, 0.5]])
    assert L1Ball(2.0).project(W).tolist() == [[2.0, 0.0], [0.0, 0.0]]
    assert L1Ball(3.0).project(W).tolist() == [[2.5, -0.5], [0.0, 0.0]]
    assert L1Ball(4.5).project(W).tolist() == W.tolist()
    rows = np.array([[3.0, 4.0], [0.0, -2.0]])
    assert L21Ball(5.0).project(rows) == pytest.approx(np.array([[2.4, 3.2], [0.0, -1.0]]))
    assert TraceNormBall(4.0).project(np.diag([5.0, 3.0])) == pytest.approx(np.diag([3.0, 1.0]))
    assert FrobeniusBall(2.5).project(np.array([[3.0, 4.0]])) == pytest.approx(np.array([[1.5, 2.0]]))
    columns = np.array([[1.0, 0.2, 5.0], [1.0, 0.2, 0.0], [0.0, 0.2, -5.0]])
    assert ColumnsOnSimplex().project(columns) == pytest.approx(
        np.array([[0.5, 1 / 3, 1.0], [0.5, 1 / 3, 0.0], [0.0, 1 / 3, 0.0]])
    )


def test_violations_by_hand():
    W = np.array([[3.0, -4.0], [0.0, 0.0]])
    assert L1Ball(5.0).violation(W) == 2.0
    assert L21Ball(4.0).violation(W) == 1.0
    assert TraceNormBall(2.0).violation(W) == pytest.approx(3.0)
    assert FrobeniusBall(2.0).violation(W) == 3.0
    assert FrobeniusBall(6.0).violation(W) == 0.0
    assert AtLeast(-1.0).violation(W) == 3.0 and AtMost(-1.0).violation(W) == 4.0
    assert AtLeast(-4.0).violation(W) == AtMost(3.0).violation(W) == 0.0
    assert EqualTo([3.0, 1.0]).violation(W) == 5.0
    assert ColumnsOnSimplex().violation(W) == 5.0  # the second column sums to -4
    assert ColumnsOnSimplex().violation(np.array([[1.5], [-0.5]])) == 0.5


@for_each("ball", [L1Ball, L21Ball, TraceNormBall, FrobeniusBall])
def test_the_ball_of_radius_zero_is_the_zero_matrix(ball):
    W = np.random.default_rng(2).normal(size=SHAPE)
    assert np.abs(ball(0).project(W)).max() <= 1e-15
    assert not ball(0).project(np.zeros(SHAPE)).any()
    assert ball(0).support(W) == 0.0


# --------------------------------------------------------------------------------------- precision at size


def test_large_projections_keep_their_precision():
    rng = np.random.default_rng(3)
    W = rng.normal(size=(100_000, 1))
    P = L1Ball(50.0).project(W)
    assert np.abs(P).sum() == pytest.approx(50.0, rel=1e-13)
    level = np.abs(W - P).max()
    moved = P != 0
    assert np.abs(W[moved] - P[moved]) == pytest.approx(np.full(moved.sum(), level), rel=1e-13)
    assert np.abs(W[~moved]).max() <= level


def test_simplex_projection_does_not_cancel_under_an_offset():
    """Simplex projection does not cancel under a common offset."""
    rng = np.random.default_rng(4)
    W = rng.integers(-8, 8, size=(30, 3)) / 16  # exact in binary, with the offset too
    P = ColumnsOnSimplex().project(W + 2.0**30)
    assert pytest.approx(ColumnsOnSimplex().project(W), abs=1e-15) == P
    assert P.sum(axis=0) == pytest.approx(np.ones(3), abs=1e-15)


@for_each("shape", [(7, 3), (3, 7), (1, 4), (6, 1)])
@for_each("fraction", [0.01, 0.5, 0.99, 0.9999999])
def test_trace_ball_projects_the_singular_values(shape, fraction):
    rng = np.random.default_rng(5)
    W = rng.normal(size=shape)
    s = np.linalg.svd(W, compute_uv=False)
    radius = fraction * s.sum()
    P = TraceNormBall(radius).project(W)
    expected = np.abs(L1Ball(radius).project(s[:, None])).ravel()
    assert np.linalg.svd(P, compute_uv=False) == pytest.approx(expected, abs=1e-13)
    assert TraceNormBall(radius).violation(P) <= 1e-13


# ------------------------------------------------------------------------------------ bounds and their duals


def test_bounds_by_hand_with_missing_entries():
    W = np.array([[-2.0, 1.0], [0.5, -7.0]])
    some = AtLeast([[0.0, -INF], [1.0, -INF]])
    assert some.project(W).tolist() == [[0.0, 1.0], [1.0, -7.0]]
    assert some.violation(W) == 2.0
    assert some.violation(np.array([[0.0, -99.0], [1.0, 0.0]])) == 0.0
    assert AtMost([0.0, INF]).project(W).tolist() == [[-2.0, 1.0], [0.0, -7.0]]
    assert AtMost([0.0, INF]).violation(W) == 0.5


def test_multipliers_of_bounds_form_a_cone():
    bound = np.array([[1.0, -INF], [-2.0, 3.0]])
    lower, upper = AtLeast(bound), AtMost(-bound)
    inside = np.array([[-1.0, 0.0], [-4.0, 0.0]])
    # sup of <Z, W> over W >= bound is at the bound; for W <= -bound with -Z at the same place
    assert lower.support(inside) == -1.0 + 8.0 == upper.support(-inside)
    assert lower.dual_gauge(inside) == upper.dual_gauge(-inside) == 0.0
    for outside in ([[0.5, 0.0], [0.0, 0.0]], [[0.0, -0.5], [0.0, 0.0]], [[0.0, 0.5], [0.0, 0.0]]):
        Z = np.array(outside)
        assert lower.support(Z) == upper.support(-Z) == INF
        assert lower.dual_gauge(Z) == upper.dual_gauge(-Z) == INF
    Z = np.array([[-1.0, -5.0], [2.0, -3.0]])
    assert lower.dual_project(Z).tolist() == [[-1.0, 0.0], [0.0, -3.0]]
    assert lower.dual_gauge(lower.dual_project(Z)) == 0.0
    assert not lower.absorbs and not lower.finite_dual


def test_equality_takes_any_multiplier():
    Z = np.array([[1.0, -5.0], [2.0, 3.0]])
    assert EqualTo([2.0, 1.0]).support(Z) == 2.0 - 5.0 + 4.0 + 3.0
    assert EqualTo(0.0).dual_gauge(Z) == 0.0 and EqualTo.finite_dual
