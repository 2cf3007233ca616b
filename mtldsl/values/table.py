"""Tables of pandas, polars and pyarrow, column by column: the same real numbers, or an error that names the column."""

from __future__ import annotations

import sys

import numpy as np
from scipy import sparse

from mtldsl.errors import DataError
from mtldsl.values.array import as_array
from mtldsl.values.names import distinct_names

__all__ = ["as_frame", "numbers_of", "numbers_of_column", "refuse_duplicate_columns"]

_TIME = "not numeric; give the time since a start, such as (t - t.min()).dt.total_seconds()"
_TEXT = "not numeric; encode it first (for example one column per category)"
_LABELS = "not numeric; of two classes write -1 and +1, such as Y.replace({'no': -1, 'yes': 1}); mtldsl.estimators take text"
_EXACT = 2**53


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
    if dtype in (nw.Object, nw.Unknown):  # numbers of several types, a sparse column, or nothing but nulls
        return as_array(column.to_numpy(), what)
    if not (dtype.is_numeric() or dtype == nw.Boolean):
        raise DataError(f"{what} is {dtype}, {_LABELS if what.lower().startswith(('y:', 'y of')) else _TEXT}")
    if dtype.is_integer() and any(abs(end or 0) > _EXACT for end in (column.min(), column.max())):
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
