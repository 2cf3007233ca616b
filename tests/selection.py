"""Which cases of a parametrised test run by default, and which only in the slow run (`-m ""`, as `.ci/run` does).

1. Every parametrised test runs in enough cases that every value of every parameter occurs: a law runs on every word, and with every step
   and every shape, but not in every combination of them; solvers x models for every solver. An atom counts by its word and its metric,
   so that one example of a word stands for all; a number that only seeds a random generator counts as one value.
2. The mixed models (`tests.models.MODELS`) and the cases of a test that is marked `few` are sampled: eight run, other ones in each test.
3. What takes more than a second or two by itself is marked `slow` where it stands.

`tests/test_selection.py` holds this to every word, every solver, every model and every class of error.
"""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict

import pytest

from mtldsl.solvers.registry import SOLVERS
from mtldsl.testing.law import Case
from tests.models import MODELS

__all__ = ["chosen", "mark_combinations"]

#: cases of a test that is marked `few`, and models of a test that runs over the mixed models
FEW = 8

#: parameters that repeat a test with other random numbers
REPETITIONS = {"seed", "salt"}


def mark_combinations(items) -> None:
    """Mark as slow what rules 1 and 2 leave out."""
    drawn = Counter()
    for cases in _by_function(items).values():
        few = cases[0].get_closest_marker("few") is not None
        kept = chosen(cases, lambda case, few=few: _values(case, few), lambda case: case.nodeid, drawn)
        names = {case.nodeid for case in kept}
        for case in cases:
            if case.nodeid not in names:
                case.add_marker(pytest.mark.slow)


def chosen(cases, values, name, drawn: Counter) -> list:
    """Some of the cases: every value occurs that one of them needs, and of the others as many as `FEW` cases bring.

    values : case -> (the values it needs, those it does not), two sets
    name   : case -> a text that tells which of the others are drawn, among those that were drawn least so far
    drawn  : how often each was, in the tests before; it is counted on
    """
    needed, others = ({name(case): values(case)[k] for case in cases} for k in (0, 1))
    seen, kept = set(), []
    for new in range(max(map(len, needed.values()), default=0), 0, -1):  # first those that bring most at once
        for case in cases:
            if len(needed[name(case)] - seen) >= new:
                seen |= needed[name(case)]
                kept.append(case)
    seen = set().union(*(others[name(case)] for case in kept))

    def turn(case):
        return sum(drawn[value] for value in others[name(case)]), zlib.crc32(name(case).encode())

    for case in sorted(cases, key=turn):
        if len(kept) >= FEW:
            break
        if others[name(case)] - seen:
            seen |= others[name(case)]
            kept.append(case)
    drawn.update(seen)
    return kept


def _values(case, few: bool) -> tuple[set, set]:
    """What a case is made of, (parameter, value) pairs: those that must occur, and those of which a few do."""
    needed, others = set(), set()
    for name, value in case.callspec.params.items():
        if isinstance(
            value, Case
        ):  # a law on an atom: every law on every word, and each of its arguments once
            law = value.law.name
            needed.add((law, _word(value.subject)))
            needed |= {(law, argument, called) for argument, (called, _) in value.arguments.items()}
            continue
        text = value if isinstance(value, str) else None
        what = _value(name, value, case.callspec.indices[name])
        is_word = isinstance(what, tuple) or text in SOLVERS
        (others if text in MODELS or (few and not is_word) else needed).add((name, what))
    return needed, others


def _value(name: str, value, index: int):
    if name in REPETITIONS:
        return "any"
    if isinstance(value, (str, int, float, type(None))):
        return repr(value)
    return _word(value) or index


def _word(value) -> tuple[str, str] | None:
    """(its word, its metric) of an atom."""
    if hasattr(type(value), "examples") and isinstance(getattr(value, "name", None), str):
        return value.name, type(getattr(value, "metric", None)).__name__
    return None


def _by_function(items) -> dict:
    groups = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec"):
            groups[item.parent.nodeid, item.originalname].append(item)
    return groups
