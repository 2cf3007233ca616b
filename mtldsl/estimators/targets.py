"""What scikit-learn calls y, as columns of labels: one a task, NaN where a label is missing; and the way back."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets

from mtldsl.errors import DataError
from mtldsl.values.table import as_frame

__all__ = ["Labels", "Numbers", "columns_of", "labels_of", "missing_in", "numbers_of_targets", "vector_of"]  # fmt: skip


@dataclass(frozen=True)
class Numbers:
    """Targets of a regression: Y (n, m), NaN where one is missing; `flat` where y was a vector."""

    Y: np.ndarray
    names: tuple[str, ...] | None
    flat: bool

    def like(self, predictions: np.ndarray) -> np.ndarray:
        """Predictions (n, m) in the shape of y."""
        return predictions[:, 0] if self.flat else predictions


def numbers_of_targets(y, *, learning: bool = True) -> Numbers:
    """y (n,) or (n, m) of real numbers. ValueError for infinite ones, for text, and, to learn from, where a column has none."""
    table, names, flat = columns_of(y)
    if table.dtype.kind in "mM":
        raise DataError(
            "y holds dates or times, and a regression needs numbers",
            argument="y",
            write_instead='write (t - t.min()) / np.timedelta64(1, "D"), in days',
        )
    if table.dtype.kind in "US" or (
        table.dtype == object and any(isinstance(each, str | bytes) for each in table.ravel())
    ):
        raise DataError("y holds text, and a regression needs numbers", argument="y")
    try:
        Y = np.asarray(table, dtype=float)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"y holds {_kind(table)}, and a regression needs numbers ({error})", argument="y"
        ) from error
    if np.iscomplexobj(table):
        raise DataError("Complex data not supported: y holds complex numbers", argument="y")
    if np.isfinite(Y).all():
        return Numbers(Y, names, flat)
    if np.isinf(Y).any():
        row, column = np.argwhere(np.isinf(Y))[0]
        raise DataError(
            f"Input y contains infinity or a value too large for dtype('float64'): row {row}, column {_named(names, column)}",
            argument="y",
        )
    if learning:
        _refuse_empty(np.isnan(Y), names)
    return Numbers(Y, names, flat)


def vector_of(y):
    """y (n,); a table of one column is taken for it, with scikit-learn's warning. ValueError for more columns."""
    table, _, flat = columns_of(y)
    if flat:
        return y
    if table.shape[1] != 1:
        raise DataError(
            f"y has the shape {table.shape}", argument="y", write_instead="give one label a row, (n,)"
        )
    warnings.warn(
        "A column-vector y was passed when a 1d array was expected", DataConversionWarning, stacklevel=3
    )
    return table[:, 0]


@dataclass(frozen=True)
class Labels:
    """Classes as tasks.

    signs   : (n, m) of -1 and +1, NaN where a label is missing
    classes : (k,) of a vector y; of a table one array a column, the second class of each its positive one
    kind    : "binary", "multiclass" (one task a class, against the rest) or "multilabel" (one task a column)
    """

    signs: np.ndarray
    classes: Any
    kind: str
    names: tuple[str, ...] | None
    dtype: Any = None

    def without_rows(self) -> Labels:
        """The classes alone."""
        return replace(self, signs=np.empty((0, self.signs.shape[1])))

    @property
    def known(self) -> np.ndarray:
        """scikit-learn's `classes_`: of a vector its classes, of a table the positions of its columns, as one against the rest has them."""
        return self.classes if self.kind != "multilabel" else np.arange(len(self.classes))

    def decoded(self, positive: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Classes (n,) or (n, m), in the type of y, from who is positive (n, m) and the scores behind it."""
        if self.kind == "binary":
            return self.classes[positive[:, 0].astype(int)]
        if self.kind == "multiclass":
            return self.classes[np.argmax(scores, axis=1)]
        if self._sides is not None:
            return np.where(positive, self._sides[1], self._sides[0])
        columns = [
            np.where(each, known[-1], known[0]) for known, each in zip(self.classes, positive.T, strict=True)
        ]
        kinds = {column.dtype.kind for column in columns}
        if len(kinds) > 1 and not kinds <= set("iuf"):  # text beside numbers stays what each of them is
            columns = [column.astype(object) for column in columns]
        return np.stack(columns, axis=1)

    @cached_property
    def _sides(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The first and the second class of every column of a table of one type; a row is then decoded at once."""
        if self.dtype is None:
            return None
        first, second = zip(*((known[0], known[-1]) for known in self.classes), strict=True)
        return np.array(first, dtype=self.dtype), np.array(second, dtype=self.dtype)


def labels_of(y) -> Labels:
    """y (n,) of two or more classes, or (n, m) of two classes a column: bool, numbers or text; None and NaN are missing labels.

    Columns of nothing but 0/1, -1/+1 or False/True have both as classes, also where one of them does not occur.
    ValueError for real numbers ("Unknown label type"), columns of three classes and more, and columns without a label.
    """
    table, names, flat = columns_of(y)
    missing = missing_in(table)
    if np.issubdtype(table.dtype, np.complexfloating):
        raise DataError("Complex data not supported: y holds complex numbers", argument="y")
    if table.dtype.kind == "f" and np.isinf(table).any():
        raise DataError("Input y contains infinity or a value too large for dtype('float64')", argument="y")
    _refuse_empty(missing, names)
    if flat or (table.shape[1] == 1 and _n_classes(table[:, 0], missing[:, 0]) > 2):
        return _of_vector(table[:, 0], missing[:, 0])
    found = _indicators(table, missing)
    if found is None:
        classes = [_two(table[:, i], missing[:, i], _named(names, i)) for i in range(table.shape[1])]
        columns = zip(table.T, missing.T, classes, strict=True)
        signs = np.stack([_signs(column, gone, known[-1]) for column, gone, known in columns], axis=1)
    else:
        classes, signs = [found[0]] * table.shape[1], found[1]
    kinds = {known.dtype for known in classes}
    dtype = None if len(kinds) > 1 or table.dtype == object else table.dtype
    if (
        dtype is not None
        and dtype.kind == "f"
        and missing.any()
        and all((known == known.astype(int)).all() for known in classes)
    ):
        dtype = np.dtype(int)  # labels are floats only because NaN is one
    return Labels(signs, classes, "multilabel", names, dtype)


def _indicators(table, missing) -> tuple[np.ndarray, np.ndarray] | None:
    """(both classes, signs) of a table of nothing but 0/1, -1/+1 or False/True, which is seen without sorting its columns; else None."""
    if table.dtype.kind not in "biuf":
        return None
    positive = table == 1
    for low in (0, -1):
        if (positive | (table == low) | missing).all():
            signs = np.where(positive, 1.0, -1.0)
            signs[missing] = np.nan
            return np.array([low, 1]).astype(table.dtype), signs
    return None


def _of_vector(y, missing) -> Labels:
    seen = _classes(y, missing)
    if len(seen) > 2:
        signs = np.where(y[:, None] == seen[None, :], 1.0, -1.0)
        signs[missing] = np.nan
        return Labels(signs, seen, "multiclass", tuple(map(str, seen)))
    known = seen if len(seen) == 2 else _both(seen)
    return Labels(_signs(y, missing, known[-1])[:, None], known, "binary", None)


def _two(column, missing, name) -> np.ndarray:
    """The negative and the positive class of a column."""
    seen = _classes(column, missing)
    if len(seen) > 2:
        raise DataError(
            f"Unknown label type: column {name} of y has {len(seen)} classes, {_listed(seen)}, and columns of a table are labels of "
            "two classes each",
            argument="y",
            write_instead="fit one estimator on this column alone, or make a column of each class",
        )
    return seen if len(seen) == 2 else _both(seen)


def _both(seen) -> np.ndarray:
    """Both classes where only one is there: of 0/1, -1/+1 and False/True the other is known."""
    only = seen[0]
    if isinstance(only, bool | np.bool_):
        return np.array([False, True])
    if seen.dtype.kind in "iuf" and only in (0, 1):
        return np.array([0, 1], dtype=seen.dtype)
    if seen.dtype.kind in "if" and only == -1:
        return np.array([-1, 1], dtype=seen.dtype)
    return seen


def _signs(column, missing, positive) -> np.ndarray:
    signs = np.where(column == positive, 1.0, -1.0)
    signs[missing] = np.nan
    return signs


def _n_classes(column, missing) -> int:
    return len(_classes(column, missing))


def _classes(column, missing) -> np.ndarray:
    kept = column[~missing]
    if kept.dtype == object:
        kinds = {type(each) for each in kept}
        if len(kinds) == 1 and kinds <= {str, bool, int, float}:
            kept = kept.astype(str if kinds == {str} else kinds.pop())
        elif kinds <= {bool, int, float, np.float64, np.int64}:
            kept = kept.astype(float)
    if kept.dtype.kind not in "biu":
        check_classification_targets(kept)
    return np.unique(kept)


def columns_of(y) -> tuple[np.ndarray, tuple[str, ...] | None, bool]:
    """(y as (n, m), names of its columns or None, whether it was a vector)."""
    if y is None:
        raise DataError("this estimator requires y to be passed, but the target y is None", argument="y")
    if sparse.issparse(y):
        y = y.toarray()
    frame = None if isinstance(y, np.ndarray) else as_frame(y)
    if frame is not None and getattr(y, "ndim", 2) == 2:
        numbers = all(column.dtype.is_numeric() for column in frame.iter_columns())
        columns = [_plain(column, numbers) for column in frame.iter_columns()]
        kinds = {column.dtype for column in columns}
        table = np.stack([column.astype(object) if len(kinds) > 1 else column for column in columns], axis=1)
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


def _refuse_empty(missing: np.ndarray, names) -> None:
    empty = np.flatnonzero(missing.all(axis=0)) if missing.any() else np.empty(0)
    if len(missing) and empty.size:
        raise DataError(
            f"Input y contains NaN alone in column {_named(names, empty[0])}: a task needs a label",
            argument="y",
            write_instead="leave the column out",
        )


def _named(names, column) -> str:
    return repr(names[column]) if names else str(column)


def _listed(values) -> str:
    return ", ".join(map(str, values[:4])) + ", ..." * (len(values) > 4)


def _kind(table: np.ndarray) -> str:
    return "text" if table.dtype.kind in "OUS" else str(table.dtype)
