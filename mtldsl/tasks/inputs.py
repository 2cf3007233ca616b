"""What a user hands over - numpy, scipy sparse, pandas, polars, lists - as checked float64 arrays with names."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.errors import DataError
from mtldsl.system.memory import as_dense
from mtldsl.tasks.entries import require_finite
from mtldsl.tasks.sparse_input import as_csr
from mtldsl.tasks.stacked import never_written, stack
from mtldsl.values.array import as_array
from mtldsl.values.size import LARGEST, SMALLEST
from mtldsl.values.sparse_matrix import require_sound
from mtldsl.values.table import as_frame, numbers_of, refuse_duplicate_columns

__all__ = ["as_design", "as_numbers", "as_rows", "as_targets", "as_weights", "refuse_shuffled", "weights_of"]


def as_numbers(table, what: str) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """(float64 array of our own, of any shape, column names or None). What is missing is NaN; DataError for all that is not a real number."""
    array, names = _real(table, what)
    return array.astype(float), names


def _real(table, what: str) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """(array of real numbers, not copied where it was one; column names or None)."""
    refuse_duplicate_columns(table, what)
    frame = as_frame(table)
    return (as_array(table, what), None) if frame is None else numbers_of(frame, what)


def as_design(table, what: str = "X", fill: np.ndarray | None = None) -> tuple[Any, tuple[str, ...] | None]:
    """(n, d) inputs: a float64 array, or CSR for any scipy sparse matrix; and the column names where the table has them.

    A copy, for the caller may go on writing to theirs; but what nobody can write to is taken as it is: see `as_rows`.
    fill : (d,) what stands in the place of NaN, column by column; None: it is refused
    """
    X, fixed, names = as_rows(table, what, fill)
    return X if fixed else stack([(X, None)]), names


def as_rows(
    table, what: str = "X", fill: np.ndarray | None = None
) -> tuple[Any, bool, tuple[str, ...] | None]:
    """The inputs checked, in bounded memory: (X, whether X can be kept as it is, column names or None).

    What cannot be kept - the caller may write to it, it is not float64, its rows are not contiguous - is for `stack` to copy.
    Kept are float64 arrays and canonical CSR that are read-only all the way down, such as memory-mapped files (mode "r"), and
    CSR with float32 values where these are memory-mapped: products with float64 vectors are float64.
    """
    if sparse.issparse(table):
        X, fixed = as_csr(table, what)
        require_finite(X, None, what)
        return X, fixed, None
    X, names = _real(table, what)
    if X.ndim != 2:
        raise DataError(
            f"{what} has shape {X.shape}: inputs must be a matrix of n rows and d feature columns",
            write_instead="Reshape your data: a single feature is .reshape(-1, 1), a single row .reshape(1, -1)"
            if X.ndim == 1
            else "",
        )
    if X.shape[1] == 0:
        raise DataError(
            f"{what} has no columns: 0 feature(s) (shape={X.shape}) while a minimum of 1 is required."
        )
    if fill is not None and X.shape[1] == len(fill):
        X = np.where(np.isnan(X), fill, X)
    require_finite(X, names, what)
    ours = names is not None or isinstance(table, list | tuple)
    return X, X.dtype == float and X.flags.c_contiguous and (ours or never_written(X)), names


def as_targets(table, what: str, *, columns: bool):
    """Labels: (n, m) where `columns`, else (n,); NaN is kept (a missing label), infinity refused."""
    if sparse.issparse(table):
        advice = (
            "give the labels of fewer tasks, or tasks with inputs of their own: Tasks.separate, Tasks.grouped"
        )
        table = as_dense(
            require_sound(table, what).astype(float),
            f"{what}, {table.shape[0]:,} x {table.shape[-1]:,} labels,",
            advice,
            DataError,
        )
    Y, names = as_numbers(table, what)
    if columns:
        Y = Y[:, None] if Y.ndim == 1 else Y
    elif Y.ndim == 2 and Y.shape[1] == 1:
        Y = Y[:, 0]
    if Y.ndim != (2 if columns else 1):
        raise DataError(
            f"{what} has shape {Y.shape}: "
            + ("labels must be n x m" if columns else "labels must be a vector")
        )
    if columns and Y.shape[1] == 0:
        raise DataError(f"{what} has no columns: at least one task is needed")
    large = ~(np.abs(Y) <= LARGEST) & ~np.isnan(Y)
    if large.any():
        place = np.argwhere(large)[0]
        where = f"row {place[0]}" + (f", task {names[place[1]] if names else place[1]}" if columns else "")
        if np.isinf(Y[tuple(place)]):
            raise DataError(
                f"infinite label in {where}; labels must be finite (NaN: not labelled)", term=what
            )
        raise DataError(
            f"the label {Y[tuple(place)]} in {where}; labels are at most {LARGEST:g}, or their squares are not in float64 - "
            "rescale them",
            term=what,
        )
    return Y, names


def weights_of(values, what: str) -> np.ndarray:
    """Numbers, one a row (n,) - a column of a table is such a vector - or one a label (n, m); or one for all, ()."""
    weights, _ = as_numbers(values, what)
    return weights[:, 0] if weights.ndim == 2 and weights.shape[1] == 1 else weights


def as_weights(values, shape, what: str) -> np.ndarray:
    """Sample weights of that shape, finite and > 0, between `SMALLEST` and `LARGEST`."""
    weights = weights_of(values, what)
    if weights.ndim == 1 and len(shape) == 2 and weights.shape[0] == shape[0]:
        weights = np.repeat(weights[:, None], shape[1], axis=1)
    if weights.shape != tuple(shape):
        raise DataError(
            f"{what} has shape {weights.shape}, but the labels have shape {tuple(shape)}",
            write_instead="give one weight a sample",
        )
    bad = ~((weights >= SMALLEST) & (weights <= LARGEST))
    if bad.any():
        place = np.argwhere(bad)[0]
        raise DataError(
            f"{weights[tuple(place)]} in row {place[0]}; weights must be finite and > 0, from {SMALLEST:g} to {LARGEST:g} "
            "(leave out rows that should not count)",
            term=what,
        )
    return weights


def refuse_shuffled(X, Y, what: str) -> None:
    """DataError where two pandas tables hold the same rows in another order, or some rows that both have: rows are matched by position.

    An index 0, 1, ... may be one that nobody gave, and says something only of all of its rows together.
    """
    a, b = (
        table.index if type(table).__module__.startswith("pandas") and hasattr(table, "iloc") else None
        for table in (X, Y)
    )
    if a is None or b is None or len(a) != len(b) or a.equals(b):
        return
    rows = np.sort(np.reshape(a.append(b).factorize()[0], (2, -1)))
    same = np.array_equal(rows[0], rows[1])
    if same or (np.isin(rows[0], rows[1]).any() and not _is_default(a) and not _is_default(b)):
        held = "the same index in another order" if same else "some rows of their index in common, not all"
        raise DataError(
            f"X and {what} have {held}, and rows are matched by position: "
            f"write {what}.loc[X.index], or reset_index(drop=True) where the positions are right"
        )


def _is_default(index) -> bool:
    """Whether it is 0, 1, ..., as of a table that was given none."""
    return np.array_equal(np.asarray(index), np.arange(len(index)))
