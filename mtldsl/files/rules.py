"""What may stand under a key of a problem file, and what is said where something else stands there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from mtldsl.language.words.did_you_mean import meant

__all__ = [
    "ANYTHING", "FINITE", "PATH", "SECONDS", "SEED", "SWITCH", "TABLE", "TEXT", "TOLERANCE", "Rule", "Rules", "number", "one_of", "whole",
    "wrong",
]  # fmt: skip

Rule = tuple[Callable[[object], bool], str]  # (does the value fit, "what it must be")
Rules = dict[str, Rule]  # by key


def wrong(table: str, key: str, value, rules: Rules, advice: Callable[[str], str]) -> str:
    """What is wrong with a key and its value, "" where they fit; `advice` says what to write in place of a key without a rule."""
    if key not in rules:
        return f"{table} has no key {key!r}{advice(key)}"
    fits, must_be = rules[key]
    if fits(value):
        return ""
    near = None
    if isinstance(value, str) and must_be.startswith("one of "):
        near = meant(value, re.findall(r"'([^']+)'", must_be))
    return f"{key} must be {must_be}" + (f"; did you mean {near!r}?" if near else "")


def number(low: float, high: float, must_be: str) -> Rule:
    """A number between the two."""
    return lambda v: isinstance(v, int | float) and not isinstance(v, bool) and low < v < high, must_be


def whole(low: int, must_be: str, high: float = float("inf")) -> Rule:
    """A whole number of at least `low`."""
    return lambda v: isinstance(v, int) and not isinstance(v, bool) and low <= v <= high, must_be


def one_of(words: Iterable[str]) -> Rule:
    """One of a few words."""
    words = list(words)
    return lambda v: v in words, f"one of {', '.join(map(repr, words))}"


TEXT: Rule = (lambda v: isinstance(v, str), "text in quotes")
SWITCH: Rule = (lambda v: isinstance(v, bool), "true or false")
ANYTHING: Rule = (lambda v: True, "")
TABLE: Rule = (lambda v: isinstance(v, dict), "a table")
PATH: Rule = (lambda v: isinstance(v, str) and v != "", "the path of a file, in quotes")
TOLERANCE = number(0.0, 1.0, "a number between 0 and 1, such as 1e-6")
FINITE = number(float("-inf"), float("inf"), "a number")
SECONDS = number(0.0, float("inf"), "a number of seconds > 0")
SEED = whole(0, "a whole number >= 0")
