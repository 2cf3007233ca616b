"""y in whatever it comes, numpy, pandas, polars, sparse or lists, as the columns of one array, and where they are missing."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mtldsl.errors import DataError
from mtldsl.values.table import as_frame

__all__ = ["columns_of", "missing_in"]


def columns_of(y) -> tuple[np.ndarray, tuple[str, ...] | None, bool]:
    """(y as (n, m), names of its columns or None, whether it was a vector)."""
    if y is None:
        raise DataError("this estimator requires y to be passed, but the target y is None", argument="y")
    if sparse.issparse(y):
        y = y.toarray()
    frame = None if isinstance(y, np.ndarray) else as_frame(y)
    if frame is not None and len(getattr(y, "shape", (0,))) == 2:  # arrow's vectors have no shape
        numbers = all(column.dtype.is_numeric() for column in frame.iter_columns())
        columns = [_plain(column, numbers) for column in frame.iter_columns()]
        mixed = len({column.dtype for column in columns}) > 1 and not numbers
        table = np.stack([column.astype(object) if mixed else column for column in columns], axis=1)
        return _without_na(table), tuple(map(str, frame.columns)), False
    if frame is not None:
        return _without_na(_plain(next(iter(frame.iter_columns())))[:, None]), None, True
    table = _without_na(np.asarray(y))
    if table.ndim == 1:
        return table[:, None], None, True
    if table.ndim != 2:
        raise DataError(f"y has the shape {table.shape}", argument="y", write_instead="give (n,) or (n, m)")
    if table.shape[1] == 0:
        raise DataError("y has no columns", argument="y", write_instead="give at least one task")
    return table, None, False


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
    flat = [
        each is None or type(each).__name__ in ("NAType", "NaTType") or each != each for each in table.ravel()
    ]
    return np.array(flat, dtype=bool).reshape(table.shape)
