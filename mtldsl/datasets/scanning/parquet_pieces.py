"""Parquet files as partitions: a file each, or several row groups of a large one. pyarrow is imported where a file is read."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from mtldsl.datasets.out_of_core.parquet import (
    column_numbers,
    known_columns,
    partitions_of,
    pyarrow_parquet,
    with_partition,
)
from mtldsl.datasets.scanning.pieces import Piece, stem
from mtldsl.errors import DataError
from mtldsl.tasks.distributed.given import named_columns
from mtldsl.tasks.distributed.loading import Rows

__all__ = ["parquet_pieces", "parquet_rows"]

#: bytes of inputs in memory that are one partition at most, where row groups allow it
_BYTES = 128 << 20
#: files whose ends are read at once
_THREADS = 16
#: rows of all columns that are written at once, so that a column's numbers do not lie far apart
_ROWS = 512


def parquet_pieces(
    system, files: list[str], root: str | None, features, labels, task, weights, typed: str
) -> tuple[list[Piece], dict]:
    """(the partitions, the columns by what they are for). DataError for columns that the first file does not have.

    root : the folder below which folders are columns
    """
    below = partitions_of(files, root)
    with ThreadPoolExecutor(min(_THREADS, len(files))) as pool:
        ends = list(pool.map(lambda one: _end(system, one), files))
    known, default = known_columns(ends[0][0], files[0], below[0])
    columns = named_columns(
        known, features, labels, None if task == "file" else task, weights, typed, default
    )
    columns["file"] = task == "file"
    d = len(columns["features"])
    pieces = []
    for path, partition, (_, groups) in zip(files, below, ends, strict=True):
        for first, last, row, n in _runs(groups, d):
            name = PurePosixPath(path).name
            if last - first < len(groups):
                name += f", row groups {first} to {last - 1} (rows from {row})"
            size = 8.0 * n * (d + 2 * len(columns["labels"]))
            own = columns | {"partition": partition}
            pieces.append(Piece(name, parquet_rows, (system, path, list(range(first, last)), own), size))
    return pieces, columns


def _end(system, path: str) -> tuple[Any, list[int]]:
    """(the schema, rows of every row group): what stands at the end of the file."""
    with _opened(system, path) as file:
        groups = [file.metadata.row_group(k).num_rows for k in range(file.metadata.num_row_groups)]
        return file.schema_arrow, groups


def _opened(system, path: str) -> Any:
    parquet, _ = pyarrow_parquet(path)
    try:
        return parquet.ParquetFile(path if system is None else system.open(path))
    except Exception as error:  # pyarrow's own kinds of errors, and those of whoever brings the bytes
        raise DataError(f"cannot be read as Parquet: {error}", term=path) from None


def _runs(groups: list[int], d: int):
    """(first, last + 1, rows before, rows) of neighbouring row groups that are a partition."""
    first, row, held = 0, 0, 0
    for k, n in enumerate(groups):
        if held and 8 * d * (held + n) > _BYTES:
            yield first, k, row, held
            first, row, held = k, row + held, 0
        held += n
    yield first, len(groups), row, held


def parquet_rows(system, path: str, groups: list[int], columns: dict) -> Rows:
    """These row groups of the file."""
    named = [*columns["features"], *columns["labels"], *columns["others"]]
    wanted = [name for name in dict.fromkeys(named) if name not in columns["partition"]]
    with _opened(system, path) as file:
        missing = [name for name in wanted if name not in file.schema_arrow.names]
        if missing:
            raise DataError(f"there is no column {missing[0]!r}, which other files have", term=path)
        try:
            table = file.read_row_groups(groups, columns=wanted, use_threads=False)
        except Exception as error:
            raise DataError(f"cannot be read: {error}", term=path) from None
    table = with_partition(table, columns["partition"])
    Y = _matrix(table, columns["labels"], path)
    weights = None if columns["weights"] is None else _matrix(table, [columns["weights"]], path)[:, 0]
    ids: Any = None
    if columns["file"]:
        ids = np.full(len(Y), stem(path), dtype=object)
    elif columns["task"] is not None:
        column = table.column(columns["task"])
        plain = str(column.type) in ("int64", "int32", "int16", "int8") and not column.null_count
        ids = column.to_numpy() if plain else np.array(column.to_pylist(), dtype=object)
    return Rows(_matrix(table, columns["features"], path), Y if ids is None else Y[:, 0], ids, weights)


def _matrix(table, names: list[str], path: str) -> np.ndarray:
    """(n, columns) float64; null is NaN."""
    columns = [column_numbers(table.column(name), path, name) for name in names]
    out = np.empty((table.num_rows, len(names)))
    for first in range(0, len(out), _ROWS):
        for j, column in enumerate(columns):
            out[first : first + _ROWS, j] = column[first : first + _ROWS]
    return out
