"""The dual norm and the nearest point of a ball from a prox alone, beside closed forms; and how many proxes they take."""

from dataclasses import dataclass

import numpy as np
import pytest

from mtldsl.atoms.calculus import from_prox
from mtldsl.atoms.regularizers import (
    FrobeniusNorm,
    GroupNorm,
    L1InfNorm,
    L1Norm,
    L12Norm,
    L21Norm,
    TotalVariation,
    TraceNorm,
)
from mtldsl.atoms.regularizers.sorted_entries import SortedL1Norm
from mtldsl.atoms.sets import NormBall
from tests.loops import for_each

WEIGHTS = np.random.default_rng(9).uniform(0.2, 3.0, size=40)
NORMS = [
    L1Norm(),
    L1Norm(weights=np.outer(WEIGHTS, [1.0, 2.0, 0.3, 1.0, 5.0, 0.1])),
    L21Norm(),
    L21Norm(weights=WEIGHTS),
    L12Norm(),
    L1InfNorm(),
    L1InfNorm(weights=WEIGHTS),
    GroupNorm([range(0, 10), range(10, 40)], weights=[1.0, 3.0]),
    SortedL1Norm(weights=np.linspace(1.0, 0.0, 240)),
    TraceNorm(),
    FrobeniusNorm(),
]
every_norm = for_each("norm", NORMS, ids=lambda norm: norm.name)


@dataclass
class Counted:
    """A norm's value and prox, and how often it was asked."""

    norm: object
    proxes: int = 0
    absorbs: bool = True

    def value(self, W):
        return self.norm.value(W)

    def prox(self, W, step):
        self.proxes += 1
        return self.norm.prox(W, step)


def matrix(seed, exponent=0.0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(40, 6)) * 10.0 ** (exponent * rng.normal(size=(40, 1)))


@every_norm
@for_each("exponent", [0.0, 2.0])
def test_the_dual_norm(norm, exponent):
    for seed in range(5):
        Z, counted = matrix(seed, exponent), Counted(norm)
        assert from_prox.dual_norm(counted, Z) == pytest.approx(norm.dual_gauge(Z), rel=1e-13)
        assert counted.proxes <= 10
    assert from_prox.dual_norm(norm, np.zeros((40, 6))) == 0.0


def test_the_dual_norm_of_a_seminorm_is_infinite_off_its_span():
    Z = matrix(0)
    assert from_prox.dual_norm(TotalVariation(), Z) == np.inf
    inside = TotalVariation().dual_project(Z)
    assert from_prox.dual_norm(TotalVariation(), inside) == pytest.approx(
        TotalVariation().dual_gauge(inside), rel=1e-12
    )


@every_norm
@for_each("exponent", [0.0, 2.0])
@for_each("share", [1e-6, 0.01, 0.3, 0.99, 1 - 1e-9])
def test_the_nearest_point_of_a_ball(norm, exponent, share):
    """In the ball, and no point of it lies further along W - P: <W - P, P> is the support function's value."""
    W = matrix(3, exponent)
    radius, counted = share * norm.value(W), Counted(norm)
    P = from_prox.nearest_in_ball(counted, W, radius, norm.dual_gauge(W))
    assert norm.value(P) == pytest.approx(radius, rel=1e-12)
    size = np.linalg.norm(W)
    furthest = NormBall(norm, radius).support(W - P)
    assert abs(np.vdot(W - P, P) - furthest) <= 1e-12 * size**2
    assert np.linalg.norm(P - NormBall(norm, radius).project(W)) <= 1e-11 * size
    assert counted.proxes <= 45


@every_norm
def test_a_guess_of_the_level_may_be_far_off(norm):
    W = matrix(4)
    radius, level = 0.2 * norm.value(W), norm.dual_gauge(W)
    expected = NormBall(norm, radius).project(W)
    for factor in (1e-9, 1e9):
        found = from_prox.nearest_in_ball(norm, W, radius, factor * level)
        np.testing.assert_allclose(found, expected, atol=1e-10)


def test_the_ball_of_a_seminorm_keeps_what_it_does_not_see():
    W = matrix(5)
    flat = NormBall(TotalVariation(), 0.0).project(W)
    np.testing.assert_allclose(flat, np.repeat(W.mean(axis=1, keepdims=True), 6, axis=1), rtol=1e-12)
    free = GroupNorm([[0, 1]])
    P = NormBall(free, 0.1).project(W)
    assert np.array_equal(P[2:], W[2:]) and free.value(P) == pytest.approx(0.1, rel=1e-13)


def test_what_every_matrix_obeys_says_nothing():
    assert NormBall(TotalVariation(), 1.0).holds_all((5, 1))
    assert not NormBall(TotalVariation(), 1.0).holds_all((5, 2))
    assert NormBall(L21Norm(weights=0.0), 1.0).holds_all((5, 2))
