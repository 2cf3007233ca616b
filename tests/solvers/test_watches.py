"""Watches inside watches: whose time it is, what the outer one is shown, and what is remembered."""

import numpy as np
import pytest

from mtldsl.solvers.solver import Point
from mtldsl.solvers.watches import Rhythm, Translated, Until


class Outer:
    """Remembers what it was shown; content from iteration `enough` on."""

    def __init__(self, enough=np.inf):
        self.enough, self.expired, self.shown = enough, False, []

    def __call__(self, point):
        self.shown.append(point.iteration)
        return point.iteration >= self.enough


def at(iteration):
    return Point({}, iteration=iteration)


def test_stages_are_translated_and_remember_the_answer():
    outer = Outer(enough=12)
    first, second = (
        Translated(outer, lambda point: point),
        Translated(outer, lambda point: at(point.iteration + 10)),
    )
    assert not first(at(5)) and not first.satisfied
    assert not second(at(1)) and second(at(2)) and second.satisfied and not first.satisfied
    assert outer.shown == [5, 11, 12] and second.last.iteration == 12


def test_until_shows_nothing_and_stops_where_it_is_enough():
    outer = Outer(enough=0)
    until = Until(outer, lambda point: point.iteration >= 3)
    assert [until(at(i)) for i in (1, 2, 3)] == [False, False, True]
    assert until.satisfied and until.last.iteration == 3 and outer.shown == []


@pytest.mark.parametrize(
    "watch", [Until, lambda outer: Rhythm(outer, 100), lambda outer: Translated(outer, at)]
)
def test_the_time_is_the_outer_ones(watch):
    outer = Outer()
    inner = watch(outer)
    assert not inner.expired
    outer.expired = True
    assert inner.expired


def test_until_counts_how_often_it_is_asked():
    patient = Until(Outer(), asks=3)
    assert [patient.expired for _ in range(5)] == [False, False, False, True, True]
    late = Until(Outer(), asks=0)
    assert late.expired and late(at(1)) and not late.satisfied


def test_out_of_time_is_not_enough():
    outer = Outer()
    outer.expired = True
    until = Until(outer, lambda point: False)
    assert until(at(1)) and not until.satisfied


def test_rhythm_shows_ten_then_every_tenth_of_the_way_and_the_last():
    outer = Outer()
    rhythm = Rhythm(outer, max_iter=31)
    for i in range(1, 32):
        assert not rhythm(at(i))
    assert outer.shown == [*range(1, 11), 11, 13, 15, 17, 19, 21, 24, 27, 30, 31]


def test_rhythm_shows_what_there_is_when_the_time_is_up():
    outer = Outer()
    rhythm = Rhythm(outer, max_iter=1000)
    assert not rhythm(at(100)) and not rhythm(at(101))
    outer.expired = True
    assert rhythm(at(102)) and outer.shown == [100, 102] and not rhythm.satisfied
