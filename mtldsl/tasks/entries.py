"""What the entries of inputs have to be: finite, and of a size that float64 can square. Looked at piece by piece, in bounded memory."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mtldsl.errors import DataError
from mtldsl.values.size import LARGEST, SMALLEST

__all__ = ["require_finite", "require_visible"]

#: entries looked at in one go: as many as stay in a core's own cache while several questions are asked of them
_ENTRIES = 1 << 14


def require_finite(X, names, what: str) -> None:
    """DataError, with row and column, unless every entry of X (n, d), dense or CSR, is a number of at most `LARGEST`."""
    if X.dtype.kind in "iub" or all(
        part.min() >= -LARGEST and part.max() <= LARGEST for _, part in _pieces(X)
    ):  # NaN is not <=
        return
    bad, first = 0, None
    for at, part in _pieces(X):
        wrong = ~(np.abs(part) <= LARGEST)  # NaN, too
        found = int(np.count_nonzero(wrong))
        if found and first is None:
            first = _place(X, at, np.argwhere(wrong)[0])
        bad += found
    if first is None:
        return
    row, column, value = first
    where = f"{what}: {value} in row {row}, {names[column] if names else f'column {column}'}"
    if np.isfinite(value):
        raise DataError(
            f"{where}; products of such numbers are not in float64, so inputs are at most {LARGEST:g} - rescale or standardise the "
            f"column ({bad} such entries)"
        )
    raise DataError(
        f"{where}; inputs must be finite, neither NaN nor inf - impute or drop it ({bad} such entries)"
    )


def require_visible(X, names, what: str) -> None:
    """DataError where a column is not zero, but so small that its squares are: solvers would take it for zero."""
    if X.dtype.kind in "iub" or not X.shape[0] or not _has_small_entries(X):
        return
    if sparse.issparse(X):  # of the columns that have an entry: there may be very many columns
        columns, places = np.unique(X.indices, return_inverse=True)
        largest = np.zeros(columns.size)
        for at, part in _pieces(X):
            np.maximum.at(largest, places[at : at + part.size], np.abs(part))
    else:
        columns, largest = np.arange(X.shape[1]), np.zeros(X.shape[1])
        for _, part in _pieces(X):
            np.maximum(largest, np.abs(part).max(axis=0), out=largest)
    lost = np.flatnonzero((largest > 0) & (largest < SMALLEST))
    if lost.size:
        column = int(columns[lost[0]])
        raise DataError(
            f"the largest entry of {names[column] if names else f'column {column}'} is {largest[lost[0]]:g}, whose square is 0 in "
            f"float64; rescale or standardise the column, or write zeros ({lost.size} such columns)",
            term=what,
        )


def _has_small_entries(X) -> bool:
    """Asked first: a column for each of them may be more than there is memory for."""
    for _, part in _pieces(X):
        small = np.abs(part) < SMALLEST
        if small.any() and (small & (part != 0)).any():  # most data have none, or zeros alone
            return True
    return False


def _pieces(X):
    """(position, rows of a dense matrix from there on or stored entries of a sparse one)."""
    numbers = X.data if sparse.issparse(X) else X
    step = _ENTRIES if sparse.issparse(X) else max(_ENTRIES // X.shape[1], 1)
    return ((at, numbers[at : at + step]) for at in range(0, len(numbers), step))


def _place(X, at: int, index) -> tuple[int, int, float]:
    """(row, column, value) of an entry of the piece that begins at `at`."""
    if not sparse.issparse(X):
        row, column = at + int(index[0]), int(index[1])
        return row, column, X[row, column]
    entry = at + int(index[0])
    return int(np.searchsorted(X.indptr, entry, side="right")) - 1, int(X.indices[entry]), X.data[entry]
