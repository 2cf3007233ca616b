"""Sparse inputs of any of scipy's formats as canonical CSR."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mtldsl.errors import DataError
from mtldsl.tasks.stacked import is_mapped, never_written
from mtldsl.values.sparse_matrix import require_sound

__all__ = ["as_csr"]


def as_csr(table, what: str):
    """(canonical CSR, whether it can be kept as it is): real numbers of type float64, or of one that it holds.

    Entries at the same place are added up, in float64, as scipy does; of CSR, another object on the same arrays.
    """
    table = require_sound(table, what)
    if table.ndim != 2:
        raise DataError(f"{what} has shape {table.shape}: inputs must be a matrix of n rows and d columns")
    if table.shape[1] == 0:
        raise DataError(f"{what} has no columns: at least one feature is needed")
    ours = table.format != "csr"
    # duplicates are added on the way to CSR, and 100 + 100 is -56 in int8
    X = sparse.csr_array(table.astype(float) if ours else table)
    if len(X.data) > X.nnz:  # room that nothing uses
        X.data, X.indices = X.data[: X.nnz], X.indices[: X.nnz]
    if not X.has_canonical_format:
        X, ours = X.astype(float), True
        X.sum_duplicates()
    arrays = (X.data, X.indices, X.indptr)
    for array in arrays if ours else ():
        array.flags.writeable = False
    kept = X.dtype == float or (X.dtype == np.float32 and is_mapped(X.data))
    return X, kept and all(map(never_written, arrays))
