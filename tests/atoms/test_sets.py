"""The sets beside the laws: radius zero, precision at size, parameters that are refused and with which words, and how a set is printed."""

import numpy as np
import pytest

from mtldsl.atoms.function import Set
from mtldsl.atoms.regularizers import FrobeniusNorm, L1Norm, L21Norm, TraceNorm
from mtldsl.atoms.sets import AtLeast, AtMost, ColumnsOnSimplex, EqualTo, NormBall
from mtldsl.errors import ModelError
from tests.loops import for_each
from tests.registry_cases import examples

INF = np.inf
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
    """Simplex projection does not cancel under a common offset."""
    rng = np.random.default_rng(4)
    W = rng.integers(-8, 8, size=(30, 3)) / 16  # exact in binary, with the offset too
    P = ColumnsOnSimplex().project(W + 2.0**30)
    assert pytest.approx(ColumnsOnSimplex().project(W), abs=1e-15) == P
    assert P.sum(axis=0) == pytest.approx(np.ones(3), abs=1e-15)


@for_each(
    ("make", "quoted", "instead"),
    [
        (lambda: AtLeast(np.nan), ">= nan", "finite"),
        (lambda: AtLeast(INF), ">= inf", "-inf means: no bound there"),
        (lambda: AtMost([[0.0, 1.0], [np.nan, 1.0]]), "at (1, 0) is nan", "inf means: no bound there"),
        (lambda: AtMost([0.0, -INF]), "at 1 is -inf", "inf means: no bound there"),
        (lambda: EqualTo([0.0, INF]), "at 1 is inf", "finite numbers"),
        (lambda: EqualTo("one"), "== 'one'", "number"),
        (lambda: AtLeast([[1.0], [1.0, 2.0]]), ">= [[1.0], [1.0, 2.0]]", "array of numbers"),
        (lambda: NormBall(L1Norm(), -1.0), "radius=-1.0", ">= 0"),
        (lambda: NormBall(L21Norm(), np.nan), "radius=nan", "finite"),
        (lambda: NormBall(TraceNorm(), INF), "radius=inf", "finite"),
        (lambda: NormBall(FrobeniusNorm(), [1.0]), "radius=[1.0]", "number"),
        (lambda: ColumnsOnSimplex(0.0), "total=0.0", "> 0"),
        (lambda: ColumnsOnSimplex(total="1"), "total='1'", "number"),
    ],
)
def test_wrong_parameters_are_refused_as_typed(make, quoted, instead):
    with pytest.raises(ModelError) as refusal:
        make()
    assert quoted in str(refusal.value) and instead in str(refusal.value)


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


@for_each("set_", examples(Set))
def test_latex_shows_the_argument_and_leaves_no_gap(set_):
    shown = set_.latex("L + S")
    assert "L + S" in shown and "{}" not in shown and shown.count("{") == shown.count("}")


def test_latex_shows_the_size():
    assert AtLeast(0.0).latex("W") == r"W \geq 0" and AtMost(np.eye(2)).latex("W") == r"W \leq B"
    assert EqualTo(1.5).latex("W") == "W = 1.5" and NormBall(L1Norm(), 2).latex("W") == r"\|W\|_1 \leq 2"
    assert ColumnsOnSimplex(3).latex("W").count("= 3") == 1
