"""Conversion of arrays, sparse matrices and data frames into checked arrays of real numbers."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.errors import DataError, MTLError
from mtldsl.utils.validation import INSTEAD, UnreadableError, distinct_names, is_missing, quoted, read_number

# --------------------------------------------------------------------------------------------------------------
# Arrays as a user may hand them over: the same real numbers in a plain numpy array, or an error that says what to write.


#: Whole numbers up to this one are exact in float64.
MAX_EXACT_WHOLE = 2**53
#: Asymmetry, and cosines above 1, that rounding explains: products over some thousand features.
CORRELATION_ROUNDING = 1e-8
#: what a message calls the axes of an array
AXES = ("row", "column", "layer")


def read_only(array: Any) -> Any:
    """A view that cannot be written to; what is None or sparse stays as it is. Kernels are compiled once where all that they read is read-only."""
    if not isinstance(array, np.ndarray):
        return array
    view = array.view()
    view.flags.writeable = False
    return view


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
    if array.dtype.kind == "f" and isinstance(value, list | tuple) and _reaches(array, MAX_EXACT_WHOLE):
        array = np.asarray(value, dtype=object)  # a whole number among them may have been rounded already
    kind = array.dtype.kind
    if kind == "O":
        return _of_objects(array, value, what, error, axes)
    if kind not in "fiub":
        raise error(_KINDS.get(kind, f"{array.dtype} entries, not numbers"), term=what)
    if kind in "iu" and array.dtype.itemsize == 8:
        _require_exact(array, what, error, axes)
    return _narrowed(array, what, error, axes) if array.dtype.itemsize > 8 else array


_SHAPES = "all rows need the same number of entries, and every entry is a number"
_ENTRY = "each entry of the argument must be neither a container nor a string, but a number"
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
    """Return what numpy's mask hides is missing: it becomes NaN, and is not read through the mask."""
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
    """Tell whether a number is as large; without a copy. NaN and infinity do not count."""
    if not array.size:
        return False
    low, high = np.nanmin(array, initial=0), np.nanmax(array, initial=0)
    size = np.float64(size)  # beyond float16
    return bool(high >= size or low <= -size)


def _of_objects(array, value, what, error, axes) -> np.ndarray:
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
            place = place_of(np.unravel_index(k, array.shape), axes)
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
    if _reaches(array, MAX_EXACT_WHOLE):  # without a copy, as few arrays do
        for index in np.argwhere((array > MAX_EXACT_WHOLE) | (array < -MAX_EXACT_WHOLE)):
            _read_at(array[tuple(index)], index, what, error, axes)


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
            f"{one}{place and f' in {place}'} {problem}", term=what, write_instead=problem.instead
        ) from None


# --------------------------------------------------------------------------------------------------------------
# A number for a value of many parts, the same in every process and on every machine.


def digest(*values: Any) -> str:
    """SHA-256 of plain values, arrays, sparse matrices, functions (by their names), and of lists, dicts and objects of these.

    An object is what it was made of: its class, and the attributes that bear the names of the arguments of its `__init__`, or the fields of
    a dataclass. What it has remembered since does not count.

    >>> digest(1.0, {"a": np.eye(2)}) == digest(1.0, {"a": np.eye(2)}), digest([1, 2]) == digest([[1], 2])
    (True, False)
    """
    total = hashlib.sha256()
    for value in values:
        _add(total, value)
    return total.hexdigest()


def _add(total, value) -> None:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        total.update(f"{type(value).__name__} {value!r};".encode())
    elif isinstance(value, np.ndarray) and value.dtype.kind in "fiubcSU":
        total.update(f"array {value.dtype.str} {value.shape};".encode())
        total.update(np.ascontiguousarray(value))
    elif sparse.issparse(value):
        rows: Any = sparse.csr_array(value)
        _several(total, "sparse", (rows.shape, rows.data, rows.indices, rows.indptr))
    elif isinstance(value, dict):
        _several(total, "dict", [one for pair in value.items() for one in pair])
    elif isinstance(value, tuple | list | np.ndarray):
        _several(total, "list", value)
    elif isinstance(value, set | frozenset):
        _several(total, "set", sorted(map(digest, value)))
    elif callable(value) and hasattr(value, "__qualname__"):
        total.update(f"function {value.__module__}.{value.__qualname__};".encode())
    else:
        kind = type(value)
        _several(total, f"{kind.__module__}.{kind.__qualname__}", _made_of(value))


def _several(total, what: str, values) -> None:
    total.update(f"{what} {len(values)}(".encode())
    for one in values:
        _add(total, one)
    total.update(b")")


def _made_of(value) -> list:
    if is_dataclass(value):
        names = [field.name for field in fields(value)]
    else:
        names = [
            name
            for name, about in inspect.signature(type(value)).parameters.items()
            if about.kind not in (about.VAR_POSITIONAL, about.VAR_KEYWORD)
        ]
    return [one for name in names for one in (name, getattr(value, name, None))]


# --------------------------------------------------------------------------------------------------------------
# A scipy sparse matrix of the caller's, whose arrays belong together: scipy reads and writes past their ends otherwise.


def read_dense(value, what: str, error: type[MTLError] = DataError) -> np.ndarray:
    """Return what `as_array` reads, of sparse matrices too, as a float64 array of our own."""
    if sparse.issparse(value):
        return require_sound(value, what, error).toarray().astype(float)
    return as_array(value, what, error).astype(float)


def require_sound(table, what: str, error: type[MTLError] = DataError):
    """The matrix, in a format made of arrays; `error` where these do not belong together or do not hold real numbers."""
    if table.format in ("lil", "dok", "dia"):
        table = table.tocoo()
    if table.format == "coo":
        _require(
            all(one.shape == table.data.shape for one in table.coords),
            what, "its arrays of positions and values have different lengths", error,
        )  # fmt: skip
        for axis, (indices, size) in enumerate(zip(table.coords, table.shape, strict=True)):
            _require_within(
                indices, size, what, ("row", "column", "layer")[axis] if table.ndim == 2 else "", error
            )
    else:
        _require_pointers(table, what, error)
    as_array(table.data, what, error, axes=("stored entry",))
    # entries at one place are added up later, and 100 + 100 is -56 in int8
    return table if table.dtype in (np.float64, np.float32) else table.astype(float)


def _require_pointers(table, what, error):
    """`error` where the pointers or indices of CSR, CSC or BSR do not fit."""
    per_block = table.blocksize if table.format == "bsr" else (1, 1)
    n, d = (side // block for side, block in zip(table.shape, per_block, strict=True))
    kinds = ["row", "column"]
    if table.format == "csc":
        n, d, kinds = d, n, kinds[::-1]
    indptr, indices = table.indptr, table.indices
    _require(
        indptr.shape == (n + 1,) and indptr.dtype.kind in "iu",
        what, f"indptr has shape {indptr.shape}, and {n} {kinds[0]}s need {n + 1} whole numbers", error,
    )  # fmt: skip
    _require(indptr[0] == 0, what, f"indptr begins with {indptr[0]}, not 0", error)
    falls = np.flatnonzero(indptr[1:] < indptr[:-1])
    _require(not falls.size, what, f"indptr falls at {kinds[0]} {falls[0] if falls.size else ''}", error)
    _require(
        indptr[-1] <= min(len(indices), len(table.data)),
        what, f"indptr ends at {indptr[-1]}, and there are {len(indices)} indices and {len(table.data)} values", error,
    )  # fmt: skip
    _require_within(indices[: indptr[-1]], d, what, kinds[1], error)


def _require_within(indices, size, what, kind, error):
    _require(indices.dtype.kind in "iu", what, f"its indices are {indices.dtype}, not whole numbers", error)
    if indices.size and not (indices.min() >= 0 and indices.max() < size):
        worst = indices.min() if indices.min() < 0 else indices.max()
        # "column index 9 in a matrix of 2 columns"
        raise error(f"{kind} index {worst} in a matrix of {size} {kind}s; it is damaged", term=what)


def _require(holds, what, problem, error):
    if not holds:
        raise error(
            f"the sparse matrix is damaged: {problem}",
            term=what,
            write_instead="make it anew from its entries, with scipy.sparse.coo_array",
        )


# --------------------------------------------------------------------------------------------------------------
# Tables of pandas, polars and pyarrow, column by column: the same real numbers, or an error that names the column.

_TIME = "not numeric; give the time since a start, such as (t - t.min()).dt.total_seconds()"
_TEXT = "not numeric; encode it first (for example one column per category), or write astype(float) where it holds numbers"
_LABELS = "not numeric; of two classes write -1 and +1, such as Y.replace({'no': -1, 'yes': 1}); mtldsl.estimators take text"


def as_frame(table):
    """The table as a narwhals frame where it is a pandas or polars object, else None. Nothing is imported for plain arrays."""
    if (
        isinstance(table, np.ndarray)
        or sparse.issparse(table)
        or not ({"pandas", "polars", "pyarrow"} & set(sys.modules))
    ):
        return None
    import narwhals as nw

    native = nw.from_native(table, allow_series=True, pass_through=True)
    if isinstance(native, nw.Series):
        return native.to_frame()
    if isinstance(native, nw.LazyFrame):
        raise DataError("a lazy frame has no rows yet", write_instead="write frame.collect()")
    return native if isinstance(native, nw.DataFrame) else None


def numbers_of(frame, what: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """(float64 array of our own, column names). What is missing becomes NaN."""
    names = tuple(distinct_names(frame.columns))
    columns = [numbers_of_column(column, f"{what}: column {name!r}") for name, column in zip(names, frame.iter_columns(), strict=True)]  # fmt: skip
    return np.column_stack(columns).astype(float) if columns else np.empty((len(frame), 0)), names


def numbers_of_column(column, what: str) -> np.ndarray:
    """The numbers of a series of narwhals; NaN is missing. DataError for text, times, and whole numbers that float64 does not have."""
    import narwhals as nw

    dtype = column.dtype
    if dtype.is_temporal():
        raise DataError(f"{what} is {dtype}, {_TIME}")
    if column.null_count() == len(column):  # no row, or no value in any: the type says nothing
        return np.full(len(column), np.nan)
    if dtype in (nw.Object, nw.Unknown):  # numbers of several types, a sparse column, or nothing but nulls
        return as_array(column.to_numpy(), what)
    if not (dtype.is_numeric() or dtype == nw.Boolean):
        raise DataError(f"{what} is {dtype}, {_LABELS if what.lower().startswith(('y:', 'y of')) else _TEXT}")
    if (dtype.is_integer() or dtype.is_decimal()) and any(
        abs(end or 0) > MAX_EXACT_WHOLE for end in (column.min(), column.max())
    ):
        return as_array(
            np.array(column.to_list(), dtype=object), what
        )  # names the first that float64 does not have
    return column.cast(nw.Float64()).to_numpy()


def refuse_duplicate_columns(table, what: str) -> None:
    """Before narwhals meets them, whose error names neither the argument nor what to do."""
    is_frame = type(table).__module__.startswith("pandas") and hasattr(table, "columns")
    columns = list(table.columns) if is_frame else []
    if len(set(columns)) < len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        raise DataError(f"two columns are named {twice!r}", term=what, write_instead="rename one")
