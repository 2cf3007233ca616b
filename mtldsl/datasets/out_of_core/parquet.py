"""A Parquet file of any size, some rows at a time; by pyarrow, imported where a file is read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import sparse

from mtldsl.datasets.out_of_core.chunk import Chunk, of_arrays
from mtldsl.errors import DataError, MissingExtraError

__all__ = ["column_numbers", "parquet_chunks", "pyarrow_parquet"]

_ROWS = 1 << 15


def parquet_chunks(path: Path, task: str, label: str, name: str, features):
    """Chunks of the file: columns `label` and `task` ("file": all rows are of the task `name`), and features.

    features: names of numeric columns; None: lists `indices` (from 0) and `values` where there are such columns, else all others.
    """
    parquet, types = pyarrow_parquet(path)
    try:
        file = parquet.ParquetFile(path)
        schema = file.schema_arrow
    except Exception as error:  # pyarrow's own kinds of errors, which are not its public words
        raise DataError(f"cannot be read as Parquet: {error}", term=path) from None
    with file:
        known = schema.names
        roles = [label] if task == "file" else [label, task]
        for role, column in zip(("label", "task"), roles, strict=False):
            if column not in known:
                hint = '; write task="file" for one task a file' if role == "task" else ""
                raise DataError(
                    f"{role}={column!r}: there is no such column; the columns are {_listed(known)}{hint}",
                    term=path,
                )
        is_list = [types.is_list(t) or types.is_large_list(t) for t in schema.types]
        lists = features is None and {"indices", "values"} <= {
            name for name, listed in zip(known, is_list, strict=True) if listed
        }
        columns = ["indices", "values"] if lists else _features(path, schema, types, roles, features)
        batches = file.iter_batches(batch_size=_ROWS, columns=[*dict.fromkeys([*roles, *columns])])
        row = 0
        while True:
            try:
                batch = next(batches, None)
            except Exception as error:
                raise DataError(f"cannot be read beyond row {row}: {error}", term=path) from None
            if batch is None:
                return
            if batch.num_rows:
                yield _chunk(path, batch, task, label, name, columns, lists, row)
            row += batch.num_rows


def pyarrow_parquet(path):
    """(pyarrow.parquet, pyarrow.types); MissingExtraError where pyarrow is not installed."""
    try:
        import pyarrow.parquet as parquet
        import pyarrow.types as types
    except ImportError as error:
        raise MissingExtraError(
            f"Parquet parts are read by pyarrow, which cannot be imported ({error})",
            term=path,
            write_instead="write: pip install 'mtldsl[parquet]'",
        ) from None
    return parquet, types


def _features(path, schema, types, roles, features) -> list[str]:
    if features is not None:
        for name in features:
            if name not in schema.names:
                raise DataError(
                    f"features: there is no column {name!r}; the columns are {_listed(schema.names)}",
                    term=path,
                )
        columns = list(features)
    else:
        columns = [name for name in schema.names if name not in roles]
    for name in columns:
        kind = schema.field(name).type
        if name in roles:
            raise DataError(f"column {name!r} is a feature and a label or task", term=path)
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
            raise DataError(
                f"column {name!r} is {kind}, not numeric",
                term=path,
                write_instead="name the columns to use with features=[...]",
            )
    if not columns:
        raise DataError("no columns are left for the features", term=path)
    return columns


def _chunk(path, batch, task, label, name, columns, lists, row) -> Chunk:
    where = f"{path}, rows from {row}"
    y = column_numbers(batch.column(label), f"{path}: column {label!r}")
    if task == "file":
        ids = np.full(y.size, name, dtype=object)
    else:
        ids = np.array(batch.column(task).to_pylist(), dtype=object)
    if lists:
        X = _sparse_rows(batch.column("indices"), batch.column("values"), path, row)
        chunk = of_arrays(X, y, ids, where)
        return replace(chunk, where=str(path), first_row=row, exact=False, features=None)
    table = np.column_stack([column_numbers(batch.column(c), f"{path}: column {c!r}") for c in columns])
    bad = ~np.isfinite(table)
    if bad.any():
        k, j = np.argwhere(bad)[0]
        raise DataError(
            f"{table[k, j]} in row {row + k}, column {columns[j]!r}; inputs must be finite - impute or drop it",
            term=path,
        )
    return replace(of_arrays(sparse.csr_array(table), y, ids, where, row, tuple(columns)), where=str(path))


def column_numbers(column, what) -> np.ndarray:
    """float64; null is NaN."""
    try:
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=float)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} is {column.type}, not numbers: {error}") from None


def _sparse_rows(indices, values, path, row):
    lengths = [_lengths(column) for column in (indices, values)]
    for k, (a, b) in enumerate(zip(*lengths, strict=True)):
        if a is None or b is None or a != b:
            raise DataError(
                f"row {row + k} has {a or 'no'} indices and {b or 'no'} values",
                term=path,
                write_instead="give one of each",
            )
    flat_indices, flat_values = (np.asarray(c.flatten().to_numpy(False)) for c in (indices, values))
    if flat_indices.dtype.kind not in "iu" and flat_indices.size:
        raise DataError(f"indices are {indices.type}, not whole numbers", term=path)
    flat_indices = flat_indices.astype(np.int64)
    indptr = np.concatenate([[0], np.cumsum(lengths[0])]).astype(np.int64)
    if flat_indices.size and flat_indices.min() < 0:
        k = int(np.searchsorted(indptr, int(np.argmin(flat_indices)), side="right")) - 1
        raise DataError(f"index {flat_indices.min()} in row {row + k}; indices count from 0", term=path)
    d = int(flat_indices.max()) + 1 if flat_indices.size else 1
    return sparse.csr_array((flat_values.astype(float), flat_indices, indptr), shape=(len(indptr) - 1, d))


def _lengths(column) -> list:
    """The length of every row, None where it is null."""
    return column.value_lengths().to_pylist()


def _listed(names) -> str:
    return ", ".join(names[:12]) + ", ..." * (len(names) > 12)
