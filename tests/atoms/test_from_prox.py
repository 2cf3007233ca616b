"""The dual norm and the nearest point of a ball from a prox alone, beside closed forms."""

import numpy as np
import pytest

from mtldsl.atoms.balls import NormBall
from mtldsl.atoms.prox import shrinkage
from mtldsl.atoms.regularizers import GroupNorm, TotalVariation
from tests.loops import for_each
from tests.registry_cases import REGULARIZERS, WEIGHTS_SHAPE

#: whose dual norm and ball are closed forms, finite everywhere
NORMS = [
    case
    for case in REGULARIZERS
    for norm in case.values
    if norm.norm and norm.exact_prox and norm.absorbs and norm.accuracy == 0.0
]
every_norm = for_each("norm", NORMS)


def matrix(seed, exponent=0.0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=WEIGHTS_SHAPE) * 10.0 ** (exponent * rng.normal(size=(WEIGHTS_SHAPE[0], 1)))


@every_norm
@for_each("exponent", [0.0, 2.0])
def test_the_dual_norm(norm, exponent):
    for seed in range(5):
        Z = matrix(seed, exponent)
        assert shrinkage.dual_norm(norm, Z) == pytest.approx(norm.dual_gauge(Z), rel=1e-13)
    assert shrinkage.dual_norm(norm, np.zeros(WEIGHTS_SHAPE)) == 0.0


@pytest.mark.slow
@every_norm
@for_each("exponent", [0.0, 2.0])
@for_each("share", [1e-6, 0.01, 0.3, 0.99, 1 - 1e-9])
def test_the_nearest_point_of_a_ball(norm, exponent, share):
    """In the ball, and no point of it lies further along W - P: <W - P, P> is the support function's value."""
    W = matrix(3, exponent)
    radius = share * norm.value(W)
    P = shrinkage.nearest_in_ball(norm, W, radius, norm.dual_gauge(W))
    assert norm.value(P) == pytest.approx(radius, rel=1e-12)
    size = np.linalg.norm(W)
    furthest = NormBall(norm, radius).support(W - P)
    assert abs(np.vdot(W - P, P) - furthest) <= 1e-12 * size**2
    assert np.linalg.norm(P - NormBall(norm, radius).project(W)) <= 1e-11 * size


def test_the_ball_of_a_seminorm_keeps_what_it_does_not_see():
    W = matrix(5)
    flat = NormBall(TotalVariation(), 0.0).project(W)
    np.testing.assert_allclose(
        flat, np.repeat(W.mean(axis=1, keepdims=True), WEIGHTS_SHAPE[1], axis=1), rtol=1e-12
    )
    free = GroupNorm([[0, 1]])
    P = NormBall(free, 0.1).project(W)
    assert np.array_equal(P[2:], W[2:]) and free.value(P) == pytest.approx(0.1, rel=1e-13)
