"""Arrays as a user may hand them over: the same real numbers in a plain numpy array, or an error that says what to write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

import numpy as np

from mtldsl.errors import DataError, MTLError
from mtldsl.values.number import INSTEAD, UnreadableError, is_missing, quoted, read_number

__all__ = ["AXES", "as_array", "place_of"]

#: entries looked at in one go, so that a check of much data needs little memory
_ENTRIES = 1 << 20
_EXACT = 2**53
#: what a message calls the axes of an array
AXES = ("row", "column", "layer")


def as_array(value, what: str, error: type[MTLError] = DataError, axes=AXES) -> np.ndarray:
    """The real numbers of arrays, lists, tables and scalars in a numpy array: float64, or of another real type that float64 holds.

    Not copied where it is such an array already. What is missing (None, pandas' NA, a masked entry) becomes NaN.
    axes : what a message calls them
    Raises `error`, which begins with `what`, for all that would become other numbers: text, times, complex and structured arrays, dicts,
    iterators, ragged lists, whole numbers that float64 does not have, numbers beyond its range.

    >>> as_array([[1, None], [2.5, True]], "X")
    array([[1. , nan],
           [2.5, 1. ]])
    """
    if isinstance(value, Mapping | AbstractSet | Iterator | str | bytes) or value is None:
        raise error(
            f"{quoted(value)} is a {type(value).__name__}, not an array of numbers",
            term=what,
            write_instead="write a list, a numpy array or a table",
        )
    if np.ma.isMaskedArray(value):
        return _filled(value, what, error)
    if isinstance(value, list | tuple):
        value = _unmasked(value, what, error)
    try:
        array = np.asarray(value)
    except Exception as problem:  # whatever a stranger's __array__ raises
        raise error(f"not an array of numbers ({problem})", term=what, write_instead=_SHAPES) from None
    if array.dtype.kind == "f" and isinstance(value, list | tuple) and _reaches(array, _EXACT):
        array = np.asarray(value, dtype=object)  # a whole number among them may have been rounded already
    kind = array.dtype.kind
    if kind == "O":
        return _of_objects(array, value, what, error)
    if kind not in "fiub":
        raise error(_KINDS.get(kind, f"{array.dtype} entries, not numbers"), term=what)
    if kind in "iu" and array.dtype.itemsize == 8:
        _require_exact(array, what, error, axes)
    return _narrowed(array, what, error, axes) if array.dtype.itemsize > 8 else array


_SHAPES = "all rows need the same number of entries, and every entry is a number"
_ENTRY = "each entry of the argument must be neither a container nor a string, but a number"
_RANGE = "rescale, for example X / np.abs(X).max(axis=0)"
_KINDS = {
    "c": f"complex numbers (Complex data not supported); {INSTEAD['complex']}",
    "M": f"not an array of numbers but of times; {INSTEAD['times']}",
    "m": f"not an array of numbers but of times; {INSTEAD['times']}",
    "U": f"not an array of numbers but of text; {INSTEAD['text']}",
    "S": f"not an array of numbers but of text; {INSTEAD['text']}",
    "T": f"not an array of numbers but of text; {INSTEAD['text']}",
    "V": "not an array of numbers but a structured array; give its fields as columns, np.column_stack([a[name] for name in a.dtype.names])",
}


def place_of(index, axes=AXES) -> str:
    """ "row 3, column 1", "row 3", or nothing of a single number."""
    return ", ".join(f"{axis} {int(k)}" for axis, k in zip(axes, index, strict=False))


def _filled(value, what, error) -> np.ndarray:
    """What numpy's mask hides is missing: it becomes NaN, and is not read through the mask."""
    mask = np.ma.getmaskarray(value)
    data = (
        value.filled(None)
        if value.dtype.kind == "O"
        else value.filled(0)
        if value.dtype.kind in "fiu"
        else value.data
    )
    numbers = np.array(as_array(data, what, error), dtype=float)
    numbers[mask] = np.nan
    return numbers


def _unmasked(value, what, error):
    """The same lists without masked arrays in them, whose mask numpy would drop."""
    if np.ma.isMaskedArray(value):
        return _filled(value, what, error)
    if isinstance(value, list | tuple) and any(
        isinstance(one, list | tuple | np.ma.MaskedArray) for one in value
    ):
        return [_unmasked(one, what, error) for one in value]
    return value


def _reaches(array, size) -> bool:
    """Whether a number is as large; without a copy. NaN and infinity do not count."""
    if not array.size:
        return False
    low, high = np.nanmin(array, initial=0), np.nanmax(array, initial=0)
    size = np.float64(size)  # beyond float16
    return bool(high >= size or low <= -size)


def _of_objects(array, value, what, error) -> np.ndarray:
    if array.ndim == 0:
        try:
            return np.array(read_number(array[()]))
        except UnreadableError as problem:
            raise error(
                f"{quoted(value)} {problem}",
                term=what,
                write_instead="write a list, a numpy array or a table",
            ) from None
    numbers = np.empty(array.size)
    for k, one in enumerate(array.flat):
        try:
            numbers[k] = np.nan if _is_no_number(one) else read_number(one)
        except UnreadableError as problem:
            place = place_of(np.unravel_index(k, array.shape))
            raise error(
                f"not an array of numbers: {quoted(one)} in {place} {problem}",
                term=what,
                write_instead=problem.instead or _ENTRY,
            ) from None
    return numbers.reshape(array.shape)


def _is_no_number(one) -> bool:
    # NaT is missing too, but of a time, which is not a number either
    return is_missing(one) and not hasattr(one, "isoformat") and not isinstance(one, np.generic)


def _require_exact(array, what, error, axes) -> None:
    if not _reaches(array, _EXACT):
        return
    flat = array.ravel()
    for a in range(0, flat.size, _ENTRIES):
        part = flat[a : a + _ENTRIES]
        for k in np.flatnonzero((part > _EXACT) | (part < -_EXACT)):
            _read_at(part[k], np.unravel_index(a + int(k), array.shape), what, error, axes)


def _narrowed(array, what, error, axes) -> np.ndarray:
    """From more than 64 bits, where no number ends as infinity or 0."""
    with np.errstate(over="ignore", under="ignore"):
        narrow = array.astype(float)
    lost = (np.isinf(narrow) & np.isfinite(array)) | ((narrow == 0) & (array != 0))
    for index in np.argwhere(lost)[:1]:
        _read_at(array[tuple(index)], index, what, error, axes)
    return narrow


def _read_at(one, index, what, error, axes) -> None:
    try:
        read_number(one)
    except UnreadableError as problem:
        place = place_of(index, axes)
        raise error(
            f"{one}{place and f' in {place}'} {problem}", term=what, write_instead=problem.instead or _RANGE
        ) from None
