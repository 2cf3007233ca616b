"""X, y and what stands beside them, as scikit-learn's users hand them over: read by the same functions as `Tasks` reads its own."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import validate_data

from mtldsl.errors import DataError
from mtldsl.tasks.ids import labels_of
from mtldsl.tasks.inputs import as_rows, refuse_shuffled
from mtldsl.values.table import refuse_duplicate_columns

__all__ = [
    "InputError",
    "checked_inputs",
    "hold_columns",
    "ids_of",
    "matrix_of",
    "objects_of",
    "refuse_unpaired",
]


class InputError(DataError, TypeError):
    """Inputs other than a matrix of numbers: a ValueError, as every DataError, and the TypeError that scikit-learn raises of some."""


def checked_inputs(estimator, X, *, reset: bool):
    """X (n, d) as floats, dense or CSR; names and number of features are kept by `reset`, and held to without it. InputError."""
    rows = matrix_of(X, empty=not reset)
    hold_columns(estimator, X.to_frame() if hasattr(X, "to_frame") else X, reset=reset)
    return rows


def hold_columns(estimator, X, *, reset: bool) -> None:
    """Names and number of the columns of X: kept, or held against those that were; in scikit-learn's words."""
    try:
        refuse_duplicate_columns(X, "X")
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    except (TypeError, ValueError) as error:
        raise error if isinstance(error, DataError) else InputError(str(error), argument="X") from None


def matrix_of(X, *, empty: bool):
    """X (n, d) as floats, dense or CSR: what `Tasks.shared` makes of it. InputError; also for no rows, unless it may be `empty`."""
    try:
        rows, _, _ = as_rows(X, "X")
    except DataError as error:
        raise error.as_kind(InputError) from None
    if not rows.shape[0] and not empty:
        raise InputError("X has no rows: there is nothing to learn from", argument="X")
    return rows if rows.dtype == np.float64 else rows.astype(np.float64)


def refuse_unpaired(X, **beside) -> None:
    """DataError where X and what stands beside it have other lengths, or are pandas tables of the same rows in another order."""
    for what, table in beside.items():
        if table is None:
            continue
        refuse_shuffled(X, table, what)
        lengths = [_length(X), _length(table)]
        if None not in lengths and lengths[0] != lengths[1]:
            raise DataError(
                f"Found input variables with inconsistent numbers of samples: {lengths}: X has {lengths[0]} rows, {what} has {lengths[1]}",
                argument=what,
                write_instead="give one a row",
            )


def _length(table) -> int | None:
    """The number of rows; None where there are none to count, as of one number for all rows."""
    if not hasattr(table, "shape") and not isinstance(table, list | tuple) and hasattr(table, "__array__"):
        table = np.asarray(table)
    shape = getattr(table, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else None
    return len(table) if isinstance(table, list | tuple) else None


def ids_of(ids, n: int) -> np.ndarray:
    """(n,) the task of every row, as `Tasks.grouped` tells tasks apart. DataError where one is missing."""
    names, index = labels_of(ids, n, "groups")
    plain = {type(each) for each in names} in ({str}, {int}, {float}, {bool})
    return (np.array(names) if plain else objects_of(names))[index]


def objects_of(values) -> np.ndarray:
    """Lists, or lists of lists, as an array of what stands in them: numpy makes text of numbers beside text."""
    if len(values) and isinstance(values[0], list | tuple | np.ndarray):
        return np.array([list(row) for row in values], dtype=object)
    return np.fromiter(values, dtype=object, count=len(values))
