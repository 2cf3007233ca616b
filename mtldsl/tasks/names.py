"""Do two lists of names mean the same columns? Names that nobody gave (x0, x1, ...; 0, 1, ...) match anything."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["elsewhere", "is_numbered", "unlike"]


def is_numbered(names: Sequence[str]) -> bool:
    """Whether these are the names given to columns without any: their positions, after one prefix or none."""
    return any(all(name == f"{prefix}{k}" for k, name in enumerate(names)) for prefix in ("", "x", "task"))


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
