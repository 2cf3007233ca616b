"""The first pass of `store`: every part checked and written once in a compact form, with its counts; finished parts are kept.

A part is `<number>.rows` - for each chunk the arrays of `_FIELDS`, one after the other - and `<number>.json`, which is written last: a
part without it was interrupted, and is done again.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from mtldsl.datasets.out_of_core.chunk import Chunk, hash_columns
from mtldsl.errors import DataError
from mtldsl.system.atomic_files import atomic_file, new_file, writing

__all__ = ["Columns", "Part", "finished_part", "read_rows", "write_json", "write_part"]

_FIELDS = ("codes", "y", "rows", "lengths", "indices", "data")
#: another layout of the spool, or another meaning of a column, is another number
_VERSION = 2


@dataclass(frozen=True)
class Columns:
    """The columns of some rows: how many, whether these are all or those up to the largest index that occurs, their names."""

    n: int
    exact: bool
    features: list[str] | None
    where: str

    def with_those_of(self, other: Columns, n_features: int | None) -> Columns:
        """The columns of both; DataError where they do not go together, or are more than `n_features`."""
        if n_features is not None and other.n > n_features:
            raise DataError(f"{other.where} has {other.n} columns, more than n_features={n_features}")
        if other.features != self.features:
            raise DataError(f"its columns are named otherwise than those of {self.where}", term=other.where)
        if self.exact and other.exact and self.n != other.n and n_features is None:
            raise DataError(
                f"{other.where} has {other.n} columns, {self.where} has {self.n}",
                write_instead="write n_features=... where those that are missing are zero",
            )
        return other if other.n > self.n else self


@dataclass
class Part:
    """What is known of a finished part. `rows` and `entries` count those with a label, task after task of `ids`."""

    signature: dict
    ids: list
    rows: list[int]
    entries: list[int]
    n_read: int  # rows, with those without a label
    columns: Columns | None  # None where there was no row
    n_bytes: int
    path: Path | None = None


def finished_part(folder: Path, number: int, signature: dict) -> Part | None:
    """The part as it was left, if it is of this very source."""
    try:
        found = json.loads((folder / f"{number:05d}.json").read_text(encoding="utf-8"))
        if found["columns"]:
            found["columns"] = Columns(**found["columns"])
        part = Part(**found)
        part.ids = [tuple(one) if isinstance(one, list) else one for one in part.ids]
        part.path = folder / f"{number:05d}.rows"
        same = part.signature == _signed(signature) and part.path.stat().st_size == part.n_bytes
    except (OSError, KeyError, ValueError, TypeError):
        return None
    return part if same else None


def write_part(
    folder: Path, number: int, signature: dict, chunks, *, n_features, hashed, dtype, advance
) -> Part:
    """`advance(rows)` is told of the rows that are written."""
    path, record = folder / f"{number:05d}.rows", folder / f"{number:05d}.json"
    with writing(record):
        record.unlink(missing_ok=True)
    codes: dict = {}
    rows, entries = [], []
    n_read, columns = 0, None
    with new_file(path) as file:
        for chunk in chunks:
            its = Columns(chunk.X.shape[1], chunk.exact, chunk.features and list(chunk.features), chunk.where)
            its = Columns(hashed, True, None, chunk.where) if hashed else its
            columns = (columns or its).with_those_of(its, n_features)
            at = np.array([codes.setdefault(one, len(codes)) for one in chunk.ids], dtype=np.int32)
            arrays = _arrays(chunk, at, hashed, dtype)
            rows = _added(rows, np.bincount(arrays["codes"], minlength=len(codes)))
            entries = _added(
                entries, np.bincount(arrays["codes"], weights=arrays["lengths"], minlength=len(codes))
            )
            with writing(path):
                for name in _FIELDS:
                    npy.write_array(_Plain(file), arrays[name], allow_pickle=False)
            n_read += chunk.n_rows
            advance(chunk.n_rows)
        size = file.tell()
    part = Part(_signed(signature), list(codes), rows, entries, n_read, columns, size)
    write_json(record, {k: v for k, v in asdict(part).items() if k != "path"})
    part.path = path
    return part


class _Plain:
    """A file that numpy writes to piece by piece. Into one that it knows it copies by itself, and does not say why that failed."""

    def __init__(self, file):
        self.write = file.write


def _arrays(chunk: Chunk, at, hashed, dtype) -> dict:
    X, y, codes = chunk.X, chunk.y, at[chunk.codes]
    rows = chunk.first_row + np.arange(y.size)
    kept = ~np.isnan(y)
    if not kept.all():
        X, y, codes, rows = X[kept], y[kept], codes[kept], rows[kept]
    X = hash_columns(X, hashed) if hashed else X
    small = X.shape[1] <= np.iinfo(np.int32).max
    return {
        "codes": codes,
        "y": y,
        "rows": rows,
        "lengths": np.diff(X.indptr).astype(np.int64),
        "indices": X.indices.astype(np.int32 if small else np.int64, copy=False),
        "data": _as_stored(X.data, dtype, chunk, rows, X.indptr),
    }


def _as_stored(data, dtype, chunk, rows, indptr):
    with np.errstate(over="ignore"):
        values = np.asarray(data).astype(dtype, copy=False)
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:  # the inputs themselves were found finite
        row = rows[int(np.searchsorted(indptr, bad[0], side="right")) - 1]
        raise DataError(f"{data[bad[0]]:g} in row {row} is beyond {dtype}; store as float64")
    return values


def _added(counts: list[int], more) -> list[int]:
    total = more.astype(np.int64)
    total[: len(counts)] += np.array(counts, dtype=np.int64)
    return total.tolist()


def read_rows(part: Part):
    """The chunks of a part again, each a dict of arrays."""
    assert part.path is not None  # write_part and finished_part name it
    with open(part.path, "rb") as file:
        while file.tell() < part.n_bytes:
            yield {name: np.load(file, allow_pickle=False) for name in _FIELDS}


def _signed(signature: dict) -> dict:
    return {"version": _VERSION, **signature}


def write_json(path: Path, content: dict) -> None:
    """All of it or nothing."""
    with atomic_file(path) as file:
        file.write(json.dumps(content, indent=1).encode())
