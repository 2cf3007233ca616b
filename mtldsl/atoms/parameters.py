"""Numbers a user may type after the argument of a word: checked once when the atom is made, then trusted."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite

from mtldsl.errors import ModelError, MTLError
from mtldsl.values.number import as_float, quoted
from mtldsl.values.size import LARGEST

__all__ = ["checked_number"]


def checked_number(
    word: str,
    name: str,
    value,
    allowed: Callable[[float], bool],
    must_be: str,
    kind: type[MTLError] = ModelError,
    largest: float = LARGEST,
) -> float:
    """The value as a float; an error of that kind with the sentence `must_be` where it is not finite, not allowed or too large."""
    number = as_float(value)
    if number is None or not isfinite(number) or not allowed(number):
        raise kind(f"{word}(..., {name}={quoted(value)}): {name} must be {must_be}")
    if abs(number) > largest:
        raise kind(f"{word}(..., {name}={quoted(value)}): {name} must be {must_be}, and at most {largest:g}")
    return number
