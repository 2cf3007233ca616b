"""Options that are one of a few: switches, and words of a list."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mtldsl.errors import DataError, MTLError
from mtldsl.values.number import quoted

__all__ = ["as_flag", "one_of"]


def as_flag(value, typed: str, error: type[MTLError] = DataError) -> bool:
    """True or False; `error` for all else, which Python would take for one of them. `typed` is such as "solve(verbose"."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    name = typed.rpartition("(")[2].rpartition(", ")[2]
    raise error(f"{typed}={quoted(value)}): write {name}=True or {name}=False", argument=name)


def one_of(value, known: Iterable[str], typed: str, error: type[MTLError] = DataError) -> str:
    """The word, where it is one of those known. `typed` is such as "store(dtype"."""
    if isinstance(value, str) and value in known:
        return str(value)
    raise error(
        f"{typed}={quoted(value)}): write one of {', '.join(map(repr, known))}",
        argument=typed.rpartition("(")[2],
    )
