"""The sets' parameters: what is refused and with which words, and how a set is printed."""

import numpy as np
import pytest

from mtldsl.atoms import sets
from mtldsl.atoms.regularizers import FrobeniusNorm, L1Norm, L21Norm, TraceNorm
from mtldsl.atoms.sets import (
    AtLeast,
    AtMost,
    ColumnsOnSimplex,
    EqualTo,
    NormBall,
)
from mtldsl.errors import ModelError
from tests.loops import for_each

INF = np.inf
SHAPE = (5, 4)
SETS = [example for name in sets.__all__ for example in getattr(sets, name).examples()]


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


@for_each("set_", SETS, ids=lambda s: s.name)
def test_latex_shows_the_argument_and_leaves_no_gap(set_):
    shown = set_.latex("L + S")
    assert "L + S" in shown and "{}" not in shown and shown.count("{") == shown.count("}")


def test_latex_shows_the_size():
    assert AtLeast(0.0).latex("W") == r"W \geq 0" and AtMost(np.eye(2)).latex("W") == r"W \leq B"
    assert EqualTo(1.5).latex("W") == "W = 1.5" and NormBall(L1Norm(), 2).latex("W") == r"\|W\|_1 \leq 2"
    assert ColumnsOnSimplex(3).latex("W").count("= 3") == 1
