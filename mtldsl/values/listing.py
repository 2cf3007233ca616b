"""Lists as a user may write them, and positions in one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from scipy import sparse

from mtldsl.errors import MTLError
from mtldsl.values.number import as_whole, quoted

__all__ = ["as_list", "as_positions", "shape_of"]


def as_list(value) -> list | None:
    """The entries of a list, tuple, array, column, range or iterator; None for what is none of these.

    Text would give its letters, sets no order, dicts and tables their names, sparse matrices what their arrays say, damaged or not.
    """
    if isinstance(value, str | bytes | bytearray | Mapping | set | frozenset) or not isinstance(
        value, Iterable
    ):
        return None
    shape = getattr(value, "shape", (1,))
    fits = isinstance(shape, tuple) and (
        len(shape) == 1 or (len(shape) > 1 and isinstance(value, np.ndarray))
    )
    if not fits or sparse.issparse(value):
        return None
    try:
        return list(value)
    except MTLError:
        raise
    except Exception:  # whatever a stranger's iterator raises
        return None


def shape_of(value) -> tuple[int, ...] | None:
    """The shape that numpy would give it, read off without making an array; None where it has none."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return shape
    if not isinstance(value, list | tuple):
        return ()
    inner = {shape_of(one) for one in value}
    if len(inner) > 1 or None in inner:
        return None
    return (len(value), *(next(iter(inner), ()) or ()))


def as_positions(index, size: int, typed: str, error: type[MTLError]) -> np.ndarray:
    """The positions, 0 to size - 1, that are meant by a whole number, a slice, a list of numbers, or a mask of `size` booleans.

    `error`, which begins with `typed`, for all else, and for positions that there are not. Negative ones count from the end.
    """
    if isinstance(index, slice):
        try:
            return np.arange(size)[index]
        except (TypeError, ValueError) as problem:
            raise error(f"{quoted(index)}: {problem}", term=typed) from None
    if isinstance(index, np.ndarray) and index.ndim == 1 and index.dtype.kind in "iu" and index.size:
        out = (index < -size) | (index >= size)  # a long array is not walked entry by entry
        if not out.any():
            return index.astype(int) % size
    given = [index] if as_whole(index) is not None else as_list(index)
    if given is None:
        raise error(
            f"{quoted(index)}: write positions, whole numbers from 0 to {size - 1}, a slice, or a mask of {size} booleans",
            term=typed,
        )
    if given and all(isinstance(one, bool | np.bool_) for one in given):
        if len(given) != size:
            raise error(
                f"a mask of {len(given)} booleans for {size}", term=typed, write_instead="give one each"
            )
        return np.flatnonzero(given)
    for one in given:
        whole = as_whole(one)
        if whole is None:
            raise error(
                f"{quoted(one)} is not a position",
                term=typed,
                write_instead=f"write whole numbers from 0 to {size - 1}, or a mask of {size} booleans",
            )
        if not -size <= whole < size:
            raise error(f"index {whole} is out of range for size {size}", term=typed)
    return np.array([int(one) % size for one in given], dtype=int)
