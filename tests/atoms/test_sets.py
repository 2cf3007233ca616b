"""The sets beside the laws: radius zero, precision at size, what does not broadcast, how they are printed."""

import numpy as np
import pytest

from mtldsl.atoms.regularizers import FrobeniusNorm, L1Norm, L21Norm, TraceNorm
from mtldsl.atoms.sets import AtLeast, AtMost, ColumnsOnSimplex, EqualTo, NormBall
from tests.loops import for_each

SHAPE = (5, 4)


@for_each("norm", [L1Norm(), L21Norm(), TraceNorm(), FrobeniusNorm()])
def test_the_ball_of_radius_zero_is_the_zero_matrix(norm):
    W, ball = np.random.default_rng(2).normal(size=SHAPE), NormBall(norm, 0)
    assert np.abs(ball.project(W)).max() <= 1e-15
    assert not ball.project(np.zeros(SHAPE)).any()
    assert ball.support(W) == 0.0


def test_large_projections_keep_their_precision():
    rng = np.random.default_rng(3)
    W = rng.normal(size=(100_000, 1))
    P = NormBall(L1Norm(), 50.0).project(W)
    assert np.abs(P).sum() == pytest.approx(50.0, rel=1e-13)
    level = np.abs(W - P).max()
    moved = P != 0
    assert np.abs(W[moved] - P[moved]) == pytest.approx(np.full(moved.sum(), level), rel=1e-13)
    assert np.abs(W[~moved]).max() <= level


def test_simplex_projection_does_not_cancel_under_an_offset():
    rng = np.random.default_rng(4)
    W = rng.integers(-8, 8, size=(30, 3)) / 16  # exact in binary, with the offset too
    P = ColumnsOnSimplex().project(W + 2.0**30)
    assert pytest.approx(ColumnsOnSimplex().project(W), abs=1e-15) == P
    assert P.sum(axis=0) == pytest.approx(np.ones(3), abs=1e-15)


def test_bounds_that_do_not_broadcast_are_named():
    for kind in (AtLeast, AtMost, EqualTo):
        assert kind(np.zeros((5, 1))).check(SHAPE) is None
        assert kind(np.zeros(4)).check(SHAPE) is None and kind(1.0).check(SHAPE) is None
        message = kind(np.zeros(5)).check(SHAPE)
        assert "(5,)" in message and "(5, 4)" in message
        # larger than the argument: the comparison would silently repeat the argument
        assert "(2, 5, 4)" in kind(np.zeros((2, 5, 4))).check(SHAPE)
        assert kind(np.zeros((5, 4))).check((1, 4)) is not None


def test_a_set_does_not_change_with_the_array_it_was_made_from():
    bound = np.zeros(SHAPE)
    set_ = AtLeast(bound)
    bound[:] = 5.0
    assert set_.project(np.ones(SHAPE)).max() == 1.0
    with pytest.raises(ValueError, match="read-only"):
        set_.bound[0, 0] = 1.0
    assert type(AtMost(np.int64(3)).bound) is float and type(EqualTo(np.array(2.0)).bound) is float


def test_latex_shows_the_size():
    assert AtLeast(0.0).latex("W") == r"W \geq 0" and AtMost(np.eye(2)).latex("W") == r"W \leq B"
    assert EqualTo(1.5).latex("W") == "W = 1.5" and NormBall(L1Norm(), 2).latex("W") == r"\|W\|_1 \leq 2"
    assert ColumnsOnSimplex(3).latex("W").count("= 3") == 1
