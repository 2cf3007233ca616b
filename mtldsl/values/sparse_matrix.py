"""A scipy sparse matrix of the caller's, whose arrays belong together: scipy reads and writes past their ends otherwise."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mtldsl.errors import DataError, MTLError
from mtldsl.values.array import as_array

__all__ = ["read_dense", "require_sound"]


def read_dense(value, what: str, error: type[MTLError] = DataError) -> np.ndarray:
    """What `as_array` reads, of sparse matrices too, as a float64 array of our own."""
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
