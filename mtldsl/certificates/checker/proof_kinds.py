"""The kinds of values that a proof's file may hold.

Each reads one value and returns it, or raises ValueError that says where it stands.

Nothing is converted that is not the same number: text and booleans are not numbers, and an array of other numbers than a file of ours has
is refused. What these return may be relied on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

Kind = Callable[[Any, str], Any]

#: float64 has every whole number up to here.
MAX_WHOLE = 2**53


def text(value, where: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{where} is not text")
    return value


def flag(value, where: str) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{where} is neither true nor false")
    return value


def number(low: float = -np.inf, high: float = np.inf, *, finite: bool = True) -> Kind:
    """low <= x <= high; NaN only where `finite` is False."""

    def read(value, where: str) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(f"{where} is not a number")
        if isinstance(value, int) and abs(value) > MAX_WHOLE:
            raise ValueError(f"{where} is a whole number that float64 has not")
        value = float(value)
        if finite and not (np.isfinite(value) and low <= value <= high):
            raise ValueError(f"{where} of {value:g} is not a number from {low:g} to {high:g}")
        return value

    return read


def whole(low: int, high: int) -> Kind:
    def read(value, where: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"{where} is not a whole number from {low:,} to {high:,}")
        return value

    return read


def one_of(*values: str) -> Kind:
    def read(value, where: str) -> str:
        if text(value, where) not in values:
            raise ValueError(f"{where} is none of {', '.join(values)}")
        return value

    return read


def optional(kind: Kind) -> Kind:
    return lambda value, where: None if value is None else kind(value, where)


def list_of(kind: Kind, least: int = 0) -> Kind:
    def read(value, where: str) -> list:
        if not isinstance(value, list) or len(value) < least:
            raise ValueError(f"{where} is not a list of {least} or more")
        return [kind(one, f"{where}[{k}]") for k, one in enumerate(value)]

    return read


def each(kind: Kind) -> Kind:
    """A value for every name."""

    def read(value, where: str) -> dict:
        if not isinstance(value, dict):
            raise ValueError(f"{where} has no names")
        return {name: kind(one, f"{where}.{name}") for name, one in value.items()}

    return read


def fields(required: dict[str, Kind], absent: dict[str, Kind] | None = None) -> Kind:
    """Exactly these names; those of `absent` may be absent, and are None then."""
    absent = absent or {}

    def read(value, where: str) -> dict:
        if not isinstance(value, dict):
            raise ValueError(f"{where} has no names")
        missing, unknown = required.keys() - value.keys(), value.keys() - required.keys() - absent.keys()
        if missing or unknown:
            wrong = (
                f"lacks {sorted(missing)[0]!r}" if missing else f"holds the unknown {sorted(unknown)[0]!r}"
            )
            raise ValueError(f"{where} {wrong}")
        given = {name: kind(value[name], f"{where}.{name}") for name, kind in required.items()}
        return given | {
            name: optional(kind)(value.get(name), f"{where}.{name}") for name, kind in absent.items()
        }

    return read


def array(shape: tuple | None, low: float = -np.inf, high: float = np.inf, *, finite: bool = True) -> Kind:
    """float64 numbers of exactly this shape (None: any length; no shape: any), none of them NaN."""

    def read(value, where: str) -> np.ndarray:
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiu" or value.dtype.itemsize > 8:
            raise ValueError(f"{where} is not an array of numbers")
        fits = shape is None or (
            len(shape) == value.ndim and all(k in (None, n) for k, n in zip(shape, value.shape, strict=True))
        )
        if not fits:
            raise ValueError(f"{where} has the shape {value.shape}, not {shape}")
        if value.dtype.kind in "iu" and value.size and max(-int(value.min()), int(value.max())) > MAX_WHOLE:
            raise ValueError(f"{where} has whole numbers that float64 has not")
        found = np.ascontiguousarray(value, dtype=np.float64)
        inside = np.isfinite(found) if finite else ~np.isnan(found)
        if not (inside & (found >= low) & (found <= high)).all():
            raise ValueError(f"{where} has numbers that are not finite or not from {low:g} to {high:g}")
        return found

    return read


def wholes(shape: tuple, low: int, high: int) -> Kind:
    """int64 numbers of exactly this shape, none of them outside of low to high."""

    def read(value, where: str) -> np.ndarray:
        found = array(shape, low, high)(value, where)
        if not (found == np.floor(found)).all():
            raise ValueError(f"{where} has numbers that are not whole")
        return found.astype(np.int64)

    return read


def matrix(value, where: str):
    """Finite numbers, dense or CSR, of which no entry is stored twice; a matrix without entries is refused."""
    if sparse.issparse(value):
        value = sparse.csr_array(value)
        value.sort_indices()
        if not value.has_canonical_format:
            raise ValueError(f"{where} stores an entry twice")
        found = sparse.csr_array(
            (array((None,))(value.data, where), value.indices, value.indptr), shape=value.shape
        )
    else:
        found = array((None, None))(value, where)
    if 0 in found.shape:
        raise ValueError(f"{where} has no entries")
    return found


def spread(
    shape: tuple[int, ...], low: float = -np.inf, high: float = np.inf, *, finite: bool = True
) -> Kind:
    """A number, or an array that stands for one of this shape by the rule of numpy, as the language has it: written out here, once."""

    def read(value, where: str) -> np.ndarray:
        if isinstance(value, np.ndarray):
            found = array(None, low, high, finite=finite)(value, where)
        else:
            found = np.asarray(number(finite=finite)(value, where))
            array((), low, high, finite=finite)(found, where)
        if found.ndim > len(shape) or any(
            own not in (1, whole) for own, whole in zip(found.shape[::-1], shape[::-1], strict=False)
        ):
            raise ValueError(f"{where} has the shape {found.shape}, which does not stand for {shape}")
        return np.array(np.broadcast_to(found, shape))

    return read
