"""Passes of the store: parts checked and written in compact form, then every row put in its place."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.lib import format as npy
from scipy import sparse

from mtldsl.data.row_storage import MAX_INT32
from mtldsl.data.store_chunks import SETTINGS, StoreChunk, hash_columns
from mtldsl.errors import DataError
from mtldsl.utils.files import atomic_file, new_file, writing

# --------------------------------------------------------------------------------------------------------------
# The first pass of `store`: every part checked and written once in a compact form, with its counts; finished parts are kept.
#
# A part is `<number>.rows` - for each chunk the arrays of `_FIELDS`, one after the other - and `<number>.json`, which is written last: a
# part without it was interrupted, and is done again.

_FIELDS = ("codes", "y", "rows", "lengths", "indices", "data")
#: Another layout of the spool, or another meaning of a column, is another number.
_FORMAT_VERSION = 2


@dataclass(frozen=True)
class ColumnSummary:
    """The columns of some rows: how many, whether these are all or those up to the largest index that occurs, their names."""

    n: int
    exact: bool
    features: list[str] | None
    where: str

    def with_those_of(self, other: ColumnSummary, n_features: int | None) -> ColumnSummary:
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
class PartSummary:
    """Facts of a finished part. `rows` and `entries` count those with a label, task after task of `ids`."""

    signature: dict
    ids: list
    rows: list[int]
    entries: list[int]
    n_read: int  # rows, with those without a label
    columns: ColumnSummary | None  # None where there was no row
    n_bytes: int
    path: Path | None = None


def finished_part(folder: Path, number: int, signature: dict) -> PartSummary | None:
    """The part as it was left, if it is of this very source."""
    try:
        found = json.loads((folder / f"{number:05d}.json").read_text(encoding="utf-8"))
        if found["columns"]:
            found["columns"] = ColumnSummary(**found["columns"])
        part = PartSummary(**found)
        part.ids = [tuple(one) if isinstance(one, list) else one for one in part.ids]
        part.path = folder / f"{number:05d}.rows"
        same = part.signature == _signed(signature) and part.path.stat().st_size == part.n_bytes
    except (OSError, KeyError, ValueError, TypeError):
        return None
    return part if same else None


def write_part(
    folder: Path, number: int, signature: dict, chunks, *, n_features, hashed, dtype
) -> PartSummary:
    path, record = folder / f"{number:05d}.rows", folder / f"{number:05d}.json"
    with writing(record):
        record.unlink(missing_ok=True)
    codes: dict = {}
    rows, entries = [], []
    n_read, columns = 0, None
    with new_file(path) as file:
        for chunk in chunks:
            its = ColumnSummary(
                chunk.X.shape[1], chunk.exact, chunk.features and list(chunk.features), chunk.where
            )
            its = ColumnSummary(hashed, True, None, chunk.where) if hashed else its
            columns = (columns or its).with_those_of(its, n_features)
            at = np.array([codes.setdefault(one, len(codes)) for one in chunk.ids], dtype=np.int32)
            arrays = _arrays(chunk, at, hashed, dtype)
            rows = _added(rows, np.bincount(arrays["codes"], minlength=len(codes)))
            entries = _added(
                entries, np.bincount(arrays["codes"], weights=arrays["lengths"], minlength=len(codes))
            )
            with writing(path):
                for name in _FIELDS:
                    npy.write_array(_PlainFile(file), arrays[name], allow_pickle=False)
            n_read += chunk.n_rows
        size = file.tell()
    part = PartSummary(_signed(signature), list(codes), rows, entries, n_read, columns, size)
    write_json(record, {k: v for k, v in asdict(part).items() if k != "path"})
    part.path = path
    return part


class _PlainFile:
    """A file that numpy writes to piece by piece. Into one that it knows it copies by itself, and does not say why that failed."""

    def __init__(self, file):
        self.write = file.write


def _arrays(chunk: StoreChunk, at, hashed, dtype) -> dict:
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


def read_rows(part: PartSummary):
    """The chunks of a part again, each a dict of arrays."""
    assert part.path is not None  # write_part and finished_part name it
    with open(part.path, "rb") as file:
        while file.tell() < part.n_bytes:
            yield {name: np.load(file, allow_pickle=False) for name in _FIELDS}


def _signed(signature: dict) -> dict:
    return {"version": _FORMAT_VERSION, **signature}


def write_json(path: Path, content: dict) -> None:
    """All of it or nothing."""
    with atomic_file(path) as file:
        file.write(json.dumps(content, indent=1).encode())


# --------------------------------------------------------------------------------------------------------------
# The second pass of `store`: every row to its place, task after task, in files that grow no list in memory.

#: files of a folder, each `<name>.npy`
ARRAYS = ("data", "indices", "indptr", "y", "rows", "offsets")


def place(parts: list[PartSummary], folder: Path, ids: list, n_columns: int, dtype) -> dict[str, list]:
    """Writes the arrays; returns {name: [dtype, length]}."""
    order = {one: i for i, one in enumerate(ids)}
    rows, entries = np.zeros(len(ids), dtype=np.int64), np.zeros(len(ids), dtype=np.int64)
    for part in parts:
        at = [order[one] for one in part.ids]
        np.add.at(rows, at, part.rows)
        np.add.at(entries, at, part.entries)
    n, size = int(rows.sum()), int(entries.sum())
    index = np.dtype(np.int32 if n_columns <= MAX_INT32 else np.int64)
    pointer = np.dtype(np.int64 if size > MAX_INT32 else index)
    kinds = {
        "data": (np.dtype(dtype), size),
        "indices": (index, size),
        "indptr": (pointer, n + 1),
        "y": (np.dtype(float), n),
        "rows": (np.dtype(np.int64), n),
        "offsets": (np.dtype(np.int64), len(ids) + 1),
    }
    files = {name: _NpyArray(folder / f"{name}.npy", *kinds[name]) for name in ARRAYS}
    row_at, entry_at = _starts(rows), _starts(entries)
    first_row = 0
    try:
        files["indptr"].write(0, np.zeros(1, dtype=np.int64))
        files["offsets"].write(0, np.concatenate([[0], np.cumsum(rows)]))
        for part in parts:
            at = np.array([order[one] for one in part.ids], dtype=np.int64)
            for batch in _batches(part):
                codes = at[batch["codes"]] if at.size else batch["codes"]
                _place(batch, codes, batch["rows"] + first_row, files, row_at, entry_at)
            first_row += part.n_read
    finally:
        with ExitStack() as closing:  # all of them, also where the disk is full
            for file in files.values():
                closing.callback(file.close)
    return {name: [kinds[name][0].name, kinds[name][1]] for name in ARRAYS}


def _batches(part: PartSummary):
    """The chunks of a part, neighbours put together until they are worth the calls that place them."""
    held, size = [], 0
    for chunk in read_rows(part):
        if held and size + chunk["data"].size > SETTINGS.placed_entries:
            yield _joined(held)
            held, size = [], 0
        held.append(chunk)
        size += chunk["data"].size
    if held:
        yield _joined(held)


def _joined(chunks: list[dict]) -> dict:
    return chunks[0] if len(chunks) == 1 else {k: np.concatenate([c[k] for c in chunks]) for k in chunks[0]}


def _place(batch, codes, rows, files, row_at, entry_at) -> None:
    """Rows in the order of their tasks, then every task's run in one piece."""
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    indptr = np.concatenate([[0], np.cumsum(batch["lengths"])])
    d = int(batch["indices"].max()) + 1 if batch["indices"].size else 1
    X = sparse.csr_array((batch["data"], batch["indices"], indptr), shape=(codes.size, d))[order]
    in_order = {"y": batch["y"][order], "rows": rows[order]}
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    for a, b in zip(starts.tolist(), [*starts[1:].tolist(), codes.size], strict=True):
        task, e, f = codes[a], int(X.indptr[a]), int(X.indptr[b])
        for name, values in in_order.items():
            files[name].write(row_at[task], values[a:b])
        files["indptr"].write(row_at[task] + 1, entry_at[task] + (X.indptr[a + 1 : b + 1] - e))
        files["data"].write(entry_at[task], X.data[e:f])
        files["indices"].write(entry_at[task], X.indices[e:f])
        row_at[task] += b - a
        entry_at[task] += f - e


class _NpyArray:
    """A one-dimensional .npy file whose pieces are written at their places; not mapped, so that none of it stays in memory."""

    def __init__(self, path: Path, dtype, length: int):
        self.path, self.dtype = path, dtype
        with writing(path):
            self.file = open(path, "wb", buffering=0)  # noqa: SIM115 - closed by close()
            npy.write_array_header_1_0(
                self.file, {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": (length,)}
            )
            self.start = self.file.tell()
            self.file.truncate(self.start + length * dtype.itemsize)

    def write(self, at: int, values) -> None:
        if not len(values):  # which a memoryview cannot be cast to bytes
            return
        with writing(self.path):
            self.file.seek(self.start + int(at) * self.dtype.itemsize)
            left = np.ascontiguousarray(values, dtype=self.dtype).data.cast("B")
            while len(left):  # an unbuffered write may take less than all
                left = left[self.file.write(left) :]

    def close(self) -> None:
        """Only what is on the disk may be vouched for by the file that names all the others."""
        with writing(self.path), self.file:
            os.fsync(self.file.fileno())


def _starts(counts) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)])[:-1]


def digest(folder: Path) -> str:
    """SHA-256 of all files of the folder, read through once in bounded memory."""
    total = hashlib.sha256()
    for name in ARRAYS:
        total.update(name.encode())
        with open(folder / f"{name}.npy", "rb") as file:
            hashlib.file_digest(file, lambda: total)
    return total.hexdigest()
