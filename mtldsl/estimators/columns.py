"""y in whatever it comes, numpy, pandas, polars, sparse or lists, as the columns of one array, and where they are missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

import numpy as np
from scipy import sparse

from mtldsl.errors import DataError
from mtldsl.values.number import INSTEAD, is_missing, quoted
from mtldsl.values.sparse_matrix import require_sound
from mtldsl.values.table import as_frame, refuse_duplicate_columns

__all__ = ["columns_of", "is_vector", "missing_in", "require_y"]


def require_y(y) -> None:
    """DataError, in scikit-learn's words, where there is no y."""
    if y is None:
        raise DataError("this estimator requires y to be passed, but the target y is None", argument="y")


def columns_of(y) -> tuple[np.ndarray, tuple[str, ...] | None, bool]:
    """(y as (n, m), names of its columns or None, whether it was a vector). Numbers, text and flags; DataError for times and other things."""
    require_y(y)
    refuse_duplicate_columns(y, "y")
    if sparse.issparse(y):
        require_sound(y, "y")
        y = (y.astype(np.int64) if y.dtype.kind in "iu" else y).toarray()  # 100 + 100 is -56 in int8
    frame = None if isinstance(y, np.ndarray) else as_frame(y)
    if frame is not None:
        flat = is_vector(y)
        for name, dtype in frame.schema.items():
            if dtype.is_temporal():
                raise DataError(f"y: column {name!r} is {dtype}; {INSTEAD['times']}", argument="y")
        numbers = all(dtype.is_numeric() for dtype in frame.schema.values())
        columns = [_plain(column, numbers) for column in frame.iter_columns()]
        mixed = len({column.dtype for column in columns}) > 1 and not numbers
        table = np.stack([column.astype(object) if mixed else column for column in columns], axis=1)
        return _without_na(table), None if flat else tuple(map(str, frame.columns)), flat
    table = _without_na(_entries_of(y))
    if table.ndim == 1:
        return table[:, None], None, True
    if table.ndim != 2:
        raise DataError(f"y has the shape {table.shape}", argument="y", write_instead="give (n,) or (n, m)")
    if table.shape[1] == 0:
        raise DataError("y has no columns", argument="y", write_instead="give at least one task")
    return table, None, False


def is_vector(y) -> bool:
    """Whether y is one label a row, (n,), and no table of columns."""
    shape = getattr(y, "shape", None)
    if shape is not None:
        return len(shape) == 1
    if as_frame(y) is not None:  # vectors of arrow have no shape
        return True
    if not hasattr(y, "__len__"):  # a stranger's array
        return np.asarray(y).ndim == 1
    return len(y) == 0 or np.ndim(y[0]) == 0


def _entries_of(y) -> np.ndarray:
    """An array or lists as numpy holds them, None or NaN where a mask hides an entry."""
    if isinstance(y, Mapping | AbstractSet | Iterator | str | bytes):
        raise DataError(
            f"{quoted(y)} is a {type(y).__name__}, not an array of labels",
            term="y",
            write_instead="write a list, a numpy array or a table",
        )
    hidden = np.ma.getmaskarray(y) if np.ma.isMaskedArray(y) else None
    try:
        table = np.asarray(np.ma.getdata(y) if hidden is not None else y)
        if table.dtype.kind in "US" and not isinstance(y, np.ndarray):
            given = np.asarray(y, dtype=object)
            if not all(isinstance(each, str | bytes) for each in given.ravel()):
                table = given  # numpy makes text of None, NaN and numbers beside text
    except Exception as problem:  # lists of different lengths, or whatever a stranger's __array__ raises
        raise DataError(
            f"not an array of labels ({problem})",
            term="y",
            write_instead="all rows need the same number of labels",
        ) from None
    if table.dtype.kind == "c":
        raise DataError("Complex data not supported: y holds complex numbers", argument="y")
    times = table.dtype.kind in "mM" or (
        table.dtype == object and any(hasattr(each, "isoformat") for each in table.ravel())
    )
    if times:
        raise DataError("y holds dates or times, not classes", argument="y", write_instead=INSTEAD["times"])
    if table.dtype.kind not in "biufUSTO":
        raise DataError(f"y holds {table.dtype} entries, not classes", argument="y")
    if hidden is None or not hidden.any():
        return table
    table = table.copy() if table.dtype.kind == "f" else table.astype(object)
    table[hidden] = np.nan if table.dtype.kind == "f" else None
    return table


def _plain(column, numbers: bool = True) -> np.ndarray:
    """A column of a frame as numpy holds it: floats where numbers are missing, among numbers alone; objects where other things are."""
    import narwhals as nw

    if column.dtype.is_numeric() and (numbers or not column.null_count()):
        return (column.cast(nw.Float64()) if column.null_count() else column).to_numpy()
    plain = column.dtype == nw.Boolean and not column.null_count()
    return np.array(column.to_list(), dtype=bool if plain else object)


def _without_na(table: np.ndarray) -> np.ndarray:
    """None in place of pandas' NA, which nothing may be compared with."""
    if table.dtype != object:
        return table
    kept = table.copy()
    kept[missing_in(table)] = None
    return kept


def missing_in(table: np.ndarray) -> np.ndarray:
    """(n, m) where labels are None, NaN or pandas' NA."""
    if table.dtype.kind == "f":
        return np.isnan(table)
    if table.dtype != object:
        return np.zeros(table.shape, dtype=bool)
    return np.array([is_missing(each) for each in table.ravel()], dtype=bool).reshape(table.shape)
