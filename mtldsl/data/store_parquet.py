"""Reader of a Parquet file of any size, some rows at a time; by pyarrow, imported where a file is read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

import numpy as np
from scipy import sparse

from mtldsl.data.input_checks import weights_of
from mtldsl.data.readers.table import require_distinct
from mtldsl.data.store_chunks import SETTINGS, StoreChunk, of_arrays
from mtldsl.errors import DataError, MissingExtraError
from mtldsl.utils.validation import as_list, listed, quoted


def parquet_chunks(path: Path, task: str, label: str, name: str, features, partition: Mapping[str, Any]):
    """Chunks of the file: columns `label` and `task` ("file": all rows are of the task `name`), and features.

    features  : names of numeric columns; None: lists `indices` (from 0) and `values` where there are such columns, else all others but
                the index of a data frame
    partition : the columns that the names of its folders are
    """
    with opened_parquet(path) as file:
        from pyarrow import types

        schema = file.schema_arrow
        known, default = known_columns(schema, path, partition)
        lists = {name for name, t in zip(schema.names, schema.types, strict=True) if types.is_list(t) or types.is_large_list(t)}  # fmt: skip
        as_lists = features is None and {"indices", "values"} <= lists
        features = ["indices", "values"] if as_lists else features
        named = named_columns(known, features, label, None if task == "file" else task, None, str(path), default)  # fmt: skip
        columns = named["features"]
        roles = [*named["labels"], *named["others"]]
        wanted = [name for name in dict.fromkeys([*roles, *columns]) if name not in partition]
        batches = file.iter_batches(batch_size=SETTINGS.batch_rows, columns=wanted)
        row = 0
        while True:
            try:
                batch = next(batches, None)
            except Exception as error:
                raise DataError(f"cannot be read beyond row {row}: {error}", term=path) from None
            if batch is None:
                return
            if batch.num_rows:
                yield _chunk(
                    path, with_partition(batch, partition), task, label, name, columns, as_lists, row
                )
            row += batch.num_rows


def opened_parquet(path, system=None) -> Any:
    """A file of pyarrow's, on this machine or a file system of fsspec's; MissingExtraError where pyarrow is not installed."""
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingExtraError(
            f"Parquet parts are read by pyarrow, which cannot be imported ({error})",
            term=path,
            write_instead="write: pip install '.[parquet]' in the checkout",
        ) from None
    try:
        return parquet.ParquetFile(path if system is None else system.open(path))
    except Exception as error:  # pyarrow's own kinds of errors, and those of whoever brings the bytes
        raise DataError(f"cannot be read as Parquet: {error}", term=path) from None


def named_columns(
    known: list, features, labels, task, sample_weights, typed: str, default: list | None = None
) -> dict:
    """The columns by what they are for. DataError for unknown ones, and for one that is used twice. features None: all others in `default`."""
    labels = [labels] if isinstance(labels, str) or as_list(labels) is None else list(as_list(labels) or [])
    others = [one for one in (task, sample_weights) if one is not None]
    if features is None:
        features = [one for one in (known if default is None else default) if one not in (*labels, *others)]
    chosen = as_list(features)
    features = [features] if chosen is None else chosen
    if task is not None and len(labels) != 1:
        raise DataError(
            f"{len(labels)} columns of labels beside a column of task ids",
            term=typed,
            write_instead="name one",
        )
    seen: dict = {}
    for role, names in (
        ("features", features),
        ("labels", labels),
        ("task", others[: task is not None]),
        ("sample_weights", others[task is not None :]),
    ):
        if not names and role in ("features", "labels"):
            raise DataError(f"{role}: no column is named", term=typed, write_instead="name at least one")
        for name in names:
            if name not in known:
                hint = '; write task="file" for one task a file' if role == "task" else ""
                raise DataError(
                    f"{role}: there is no column {quoted(name)}; the columns are {listed(known)}{hint}",
                    term=typed,
                )
            if name in seen:
                raise DataError(
                    f"the column {quoted(name)} is named as {seen[name]} and as {role}", term=typed
                )
            seen[name] = role
    return {"features": features, "labels": labels, "others": others, "task": task, "weights": sample_weights}


def _chunk(path, batch, task, label, name, columns, lists, row) -> StoreChunk:
    import pyarrow

    where, table = f"{path}, rows from {row}", pyarrow.Table.from_batches([batch])
    y, ids = table.select([label]), np.full(len(table), name, dtype=object)
    ids = ids if task == "file" else table.column(task)
    if lists:
        X = _sparse_rows(batch.column("indices"), batch.column("values"), path, row)
        chunk = of_arrays(X, y, ids, where)
        return replace(chunk, where=str(path), first_row=row, exact=False)
    return replace(of_arrays(table.select(columns), y, ids, where, row), where=str(path))


def known_columns(schema, path, partition: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """(names of all columns, those that are features where none are named): without the index that pandas and Dask wrote beside them.

    partition : the columns that the names of folders are
    """
    require_distinct(schema.names, path)
    twice = next((name for name in partition if name in schema.names), None)
    if twice is not None:
        raise DataError(
            f"the column {twice!r} is in the file and in the name of its folder",
            term=path,
            write_instead="rename one",
        )
    names = [*schema.names, *partition]
    index = _index_columns(schema)
    return names, [name for name in names if name not in index]


def _index_columns(schema) -> set[str]:
    """The columns that are the index of a data frame, as its writer noted."""
    try:
        noted = json.loads((schema.metadata or {}).get(b"pandas", b"{}")).get("index_columns", [])
        return {one for one in noted if isinstance(one, str)}
    except (ValueError, AttributeError, TypeError):
        return set()


def partitions_of(files: Sequence[str], root: str | None) -> list[dict[str, Any]]:
    """{column: value} of every file: the folders "column=value" below the root. Whole numbers where all files have such, else text, as
    pyarrow.dataset reads them; None for the folder of missing values.

    >>> partitions_of(["t/shop=3/a.parquet", "t/shop=12/b.parquet"], "t")
    [{'shop': 3}, {'shop': 12}]
    """
    if root is None:
        return [{} for _ in files]
    found = []
    for path in files:
        folders = PurePosixPath(Path(path).as_posix()).relative_to(Path(root).as_posix()).parts[:-1]
        pairs = [folder.partition("=") for folder in folders if "=" in folder]
        found.append(
            {unquote(key): None if value == _HIVE_MISSING else unquote(value) for key, _, value in pairs}
        )
    for path, one in zip(files, found, strict=True):
        if one.keys() != found[0].keys():
            raise DataError(
                f"its folders are {', '.join(one) or 'not called column=value'}, and those of {files[0]} {', '.join(found[0]) or 'are not'}",
                term=path, write_instead="give files whose folders are called alike",
            )  # fmt: skip
    for key in found[0]:
        if all(one[key] is None or re.fullmatch(r"-?\d+", str(one[key])) for one in found):
            found = [one | {key: None if one[key] is None else int(str(one[key]))} for one in found]
    return found


_HIVE_MISSING = "__HIVE_DEFAULT_PARTITION__"


def with_partition(rows, partition: Mapping[str, Any]):
    """A table or batch of pyarrow with the columns that the names of its folders are."""
    import pyarrow

    if not partition:
        return rows
    own = [pyarrow.array([value] * rows.num_rows) for value in partition.values()]
    return type(rows).from_arrays([*rows.columns, *own], names=[*rows.schema.names, *partition])


def _sparse_rows(indices, values, path, row):
    import pyarrow

    lengths = [column.value_lengths().to_pylist() for column in (indices, values)]  # None where a row is null
    for k, (a, b) in enumerate(zip(*lengths, strict=True)):
        if a is None or b is None or a != b:
            raise DataError(
                f"row {row + k} has {a or 'no'} indices and {b or 'no'} values",
                term=path,
                write_instead="give one of each",
            )
    flat_indices = np.asarray(indices.flatten().to_numpy(False))
    if flat_indices.dtype.kind not in "iu" and flat_indices.size:
        raise DataError(f"indices are {indices.type}, not whole numbers", term=path)
    flat_indices = flat_indices.astype(np.int64)
    indptr = np.concatenate([[0], np.cumsum(lengths[0])]).astype(np.int64)
    if flat_indices.size and flat_indices.min() < 0:
        k = int(np.searchsorted(indptr, int(np.argmin(flat_indices)), side="right")) - 1
        raise DataError(f"index {flat_indices.min()} in row {row + k}; indices count from 0", term=path)
    d = int(flat_indices.max()) + 1 if flat_indices.size else 1
    flat_values = weights_of(pyarrow.chunked_array([values.flatten()]), f"{path}: column 'values'")
    return sparse.csr_array((flat_values, flat_indices, indptr), shape=(len(indptr) - 1, d))
