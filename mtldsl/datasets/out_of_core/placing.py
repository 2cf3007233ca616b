"""The second pass of `store`: every row to its place, task after task, in files that grow no list in memory."""

from __future__ import annotations

import hashlib
import os
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from numpy.lib import format as npy
from scipy import sparse

from mtldsl.datasets.out_of_core.spool import Part, read_rows
from mtldsl.system.atomic_files import writing

__all__ = ["ARRAYS", "digest", "place"]

#: files of a folder, each `<name>.npy`
ARRAYS = ("data", "indices", "indptr", "y", "rows", "offsets")
#: entries placed at once
_ENTRIES = 1 << 21
_BYTES = 1 << 24
_INT32 = np.iinfo(np.int32).max


def place(parts: list[Part], folder: Path, ids: list, n_columns: int, dtype, advance) -> dict[str, list]:
    """Writes the arrays; returns {name: [dtype, length]}. `advance(rows)` is told of the rows that are done."""
    order = {one: i for i, one in enumerate(ids)}
    rows, entries = np.zeros(len(ids), dtype=np.int64), np.zeros(len(ids), dtype=np.int64)
    for part in parts:
        at = [order[one] for one in part.ids]
        np.add.at(rows, at, part.rows)
        np.add.at(entries, at, part.entries)
    n, size = int(rows.sum()), int(entries.sum())
    index = np.dtype(np.int32 if n_columns <= _INT32 else np.int64)
    pointer = np.dtype(np.int64 if size > _INT32 else index)
    kinds = {
        "data": (np.dtype(dtype), size),
        "indices": (index, size),
        "y": (np.dtype(float), n),
        "rows": (np.dtype(np.int64), n),
        "lengths": (np.dtype(np.int64), n),
    }
    files = {name: _Array(folder / f"{name}.npy", *kind) for name, kind in kinds.items()}
    row_at, entry_at = _starts(rows), _starts(entries)
    first_row = 0
    try:
        for part in parts:
            at = np.array([order[one] for one in part.ids], dtype=np.int64)
            for batch in _batches(part):
                codes = at[batch["codes"]] if at.size else batch["codes"]
                _place(batch, codes, batch["rows"] + first_row, files, row_at, entry_at)
                advance(codes.size)
            first_row += part.n_read
    finally:
        with ExitStack() as closing:  # all of them, also where the disk is full
            for file in files.values():
                closing.callback(file.close)
    lengths = np.load(folder / "lengths.npy", mmap_mode="r")
    pointers = _Array(folder / "indptr.npy", pointer, n + 1)
    pointers.write(0, np.zeros(1, dtype=np.int64))
    last = 0
    for a in range(0, n, _ENTRIES):
        ends = last + np.cumsum(lengths[a : a + _ENTRIES])
        pointers.write(a + 1, ends)
        last = int(ends[-1])
    pointers.close()
    del lengths
    (folder / "lengths.npy").unlink()
    offsets = _Array(folder / "offsets.npy", np.dtype(np.int64), len(ids) + 1)
    offsets.write(0, np.concatenate([[0], np.cumsum(rows)]))
    offsets.close()
    kinds |= {"indptr": (pointer, n + 1), "offsets": (np.dtype(np.int64), len(ids) + 1)}
    return {name: [kinds[name][0].name, kinds[name][1]] for name in ARRAYS}


def _batches(part: Part):
    """The chunks of a part, neighbours put together until they are worth the calls that place them."""
    held, size = [], 0
    for chunk in read_rows(part):
        if held and size + chunk["data"].size > _ENTRIES:
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
    lengths = batch["lengths"][order]
    in_order = {"y": batch["y"][order], "rows": rows[order], "lengths": lengths}
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    for a, b in zip(starts.tolist(), [*starts[1:].tolist(), codes.size], strict=True):
        task, e, f = codes[a], int(X.indptr[a]), int(X.indptr[b])
        for name, values in in_order.items():
            files[name].write(row_at[task], values[a:b])
        files["data"].write(entry_at[task], X.data[e:f])
        files["indices"].write(entry_at[task], X.indices[e:f])
        row_at[task] += b - a
        entry_at[task] += f - e


class _Array:
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
            while block := file.read(_BYTES):
                total.update(block)
    return total.hexdigest()
