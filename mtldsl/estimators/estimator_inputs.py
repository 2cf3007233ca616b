"""Inputs of estimators, as scikit-learn's users hand them over: read by the same functions as `Tasks` reads its own."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import validate_data

from mtldsl.data.input_checks import as_rows, labels_of, refuse_shuffled, refuse_turned, unlike
from mtldsl.errors import DataError, ModelError, MTLError
from mtldsl.utils.arrays import refuse_duplicate_columns
from mtldsl.utils.validation import listed, quoted

#: Names of columns that an error writes out.
LISTED_COLUMNS = 8


def wrong_option(estimator, name: str, instead: str, error: type[MTLError] = ModelError) -> MTLError:
    """The error of an estimator's option: what it is, and what to write instead."""
    return error(
        f"{name}={quoted(getattr(estimator, name))}", term=type(estimator).__name__, write_instead=instead
    )


class InputError(DataError, TypeError):
    """Inputs other than a matrix of numbers: a ValueError, as every DataError, and the TypeError that scikit-learn raises of some."""


def checked_inputs(estimator, X, *, reset: bool):
    """X (n, d) as floats, dense or CSR; names and number of features are kept by `reset`, and held to without it. InputError."""
    rows = matrix_of(X, empty=not reset)
    hold_columns(estimator, X.to_frame() if hasattr(X, "to_frame") else X, reset=reset)
    return rows


def hold_columns(estimator, X, *, reset: bool) -> None:
    """Names and number of the columns of X: kept, or held against those that were; in scikit-learn's words.

    scikit-learn keeps text alone; numbers, dates and the pairs of a MultiIndex are names here all the same.
    """
    try:
        refuse_duplicate_columns(X, "X")
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    except (TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise InputError(str(error) + _instead_of(estimator, X), argument="X") from None
    given = list(X.columns) if type(X).__module__.startswith("pandas") and hasattr(X, "columns") else []
    others = [] if all(isinstance(name, str) for name in given) else given
    if reset:
        estimator._column_names = others
    known = getattr(estimator, "_column_names", [])
    turned = known != others and sorted(map(str, known)) == sorted(map(str, others))
    if known and others and (turned or unlike(list(map(str, known)), list(map(str, others))) is not None):
        raise InputError(
            f"X has the columns {listed(others, LISTED_COLUMNS)}, and training had {listed(known, LISTED_COLUMNS)}, in this order",
            argument="X",
            write_instead=f"write X[{known!r}]"
            if len(known) <= LISTED_COLUMNS
            else "take X in the order of training",
        )


def _instead_of(estimator, X) -> str:
    """Return what to write in place of X where it has all columns that were learned on; "" where it has not."""
    known = list(getattr(estimator, "feature_names_in_", []))
    if known and list(getattr(X, "index", [])) == known:
        return " A row of a table is a Series here: write X.to_frame().T."
    if not known or not set(known) <= set(getattr(X, "columns", [])):
        return ""
    return f"Write X[{known!r}]." if len(known) <= LISTED_COLUMNS else "Write X[fitted.feature_names_in_]."


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
    refuse_turned(beside.get("y"), beside.get("sample_weight"), "sample_weight")
    refuse_shuffled({"X": X} | beside)
    for what, table in beside.items():
        if table is None:
            continue
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


def ids_of(ids, n: int, what: str) -> np.ndarray:
    """(n,) the task of every row, as `Tasks.grouped` tells tasks apart. DataError, which begins with `what`, where one is missing."""
    names, index = labels_of(ids, n, what)
    plain = {type(each) for each in names} in ({str}, {int}, {float}, {bool})
    return (np.array(names) if plain else objects_of(names))[index]


def number_tasks(ids: np.ndarray) -> tuple[list, np.ndarray]:
    """(the distinct ids in order of first appearance, for every row the number of its own)."""
    return labels_of(ids, len(ids), "groups")


def objects_of(values) -> np.ndarray:
    """Lists, or lists of lists, as an array of what stands in them: numpy makes text of numbers beside text."""
    if len(values) and isinstance(values[0], list | tuple | np.ndarray):
        return np.array([list(row) for row in values], dtype=object)
    return np.fromiter(values, dtype=object, count=len(values))
