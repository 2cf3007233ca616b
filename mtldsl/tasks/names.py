"""Names of tasks and columns. Do two lists mean the same columns? Names that nobody gave (x0, x1, ...; 0, 1, ...) match anything."""

from __future__ import annotations

from collections.abc import Sequence

from mtldsl.errors import DataError
from mtldsl.system.memory import require_memory
from mtldsl.values.listing import as_list
from mtldsl.values.names import distinct_names
from mtldsl.values.number import is_missing, quoted

__all__ = ["as_names", "elsewhere", "is_numbered", "numbered", "unlike"]


def as_names(names, found, count: int, what: str, prefix: str | None = None) -> tuple[str, ...]:
    """`count` distinct names, as text: those given, else those found with the data, else the prefix with numbers."""
    names = found if names is None else names
    if names is None and prefix is not None:
        return tuple(numbered(prefix, count))
    listed = as_list(names)
    if listed is None or getattr(names, "ndim", 1) != 1:
        raise DataError(f"{what}={quoted(names)}: write a list of names")
    names = listed
    for k, name in enumerate(names):
        if is_missing(name):
            raise DataError(
                f"name {k} is {name}", term=what, write_instead=f"give every one of the {count} a name"
            )
    names = tuple(distinct_names(names))
    if len(names) != count:
        raise DataError(f"{len(names)} names for {count}", term=what, write_instead=f"give exactly {count}")
    seen = set()
    for name in names:
        if name in seen:
            raise DataError(f"the name {name!r} occurs twice; names must be distinct", term=what)
        seen.add(name)
    return names


def is_numbered(names: Sequence[str]) -> bool:
    """Whether these are the names given to columns without any: their positions, after one prefix or none."""
    return any(all(name == f"{prefix}{k}" for k, name in enumerate(names)) for prefix in ("", "x", "task"))


def numbered(prefix: str, count: int) -> list[str]:
    """x0, x1, ...: what columns are called that have no names. DataError where there are too many even for that."""
    require_memory(
        150.0 * count, f"so many as {count:,} columns (their names alone)",
        "hash them to fewer: datasets.hash_columns(X, n), or store(..., hashed=n)", DataError,
    )  # fmt: skip
    return [f"{prefix}{k}" for k in range(count)]


def elsewhere(names: Sequence[str], others: Sequence[str]) -> str | None:
    """The first name that `others` hold at another position, which can only be a mistake; None where there is none."""
    if is_numbered(names) or is_numbered(others):
        return None
    position = {name: k for k, name in enumerate(others)}
    return next((name for k, name in enumerate(names) if position.get(name, k) != k), None)


def unlike(learned: Sequence[str], given: Sequence[str] | None) -> str | None:
    """What is wrong with the columns given, in one clause; None where they are those learned on."""
    if given is None or tuple(given) == tuple(learned) or is_numbered(learned) or is_numbered(given):
        return None
    missing = [name for name in learned if name not in given]
    unknown = [name for name in given if name not in learned]
    if not missing:  # another order, or columns too many
        return (
            f"they must be those learned on, in that order: write X[{list(learned)!r}]"
            if len(learned) <= 8
            else ("they must be those learned on, in the order of feature_names")
        )
    return f"{missing[0]!r} is missing" + (f", and {unknown[0]!r} was not learned on" if unknown else "")
