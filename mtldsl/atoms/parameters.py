"""Numbers a user may type after the argument of a word: checked once when the atom is made, then trusted."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from numbers import Real

import numpy as np

from mtldsl.errors import ModelError, MTLError

__all__ = ["checked_number"]


def checked_number(
    word: str,
    name: str,
    value,
    allowed: Callable[[float], bool],
    must_be: str,
    kind: type[MTLError] = ModelError,
) -> float:
    """The value as a float; an error of that kind with the sentence `must_be` where it is not finite or not allowed."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    is_number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if not (is_number and isfinite(value) and allowed(value)):
        typed = " ".join(repr(value).split())
        typed = typed if len(typed) <= 40 else typed[:37] + "..."
        raise kind(f"{word}(..., {name}={typed}): {name} must be {must_be}")
    return float(value)
