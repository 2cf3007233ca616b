"""Readers that give a file to the store in checked chunks: NPZ, LIBSVM and the caller's own."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.data.input_checks import (
    as_design,
    as_rows,
    as_targets,
    by_appearance,
    labels_of,
    require_same_rows,
)
from mtldsl.data.readers.table import exact_number, how_lost
from mtldsl.data.row_storage import MAX_INT32
from mtldsl.errors import DataError, Spelled
from mtldsl.utils.arrays import MAX_EXACT_WHOLE
from mtldsl.utils.files import read_archive, reading
from mtldsl.utils.validation import as_count, plain

# --------------------------------------------------------------------------------------------------------------
# Some rows of data that are too large to be held at once, whatever they were read from.


@dataclass(frozen=True)
class StoreSettings:
    """Sizes of what is held at once while data are stored, or looked through.

    chunk_bytes     : text that is parsed; what is held for it is some ten times as much
    batch_rows      : rows of a Parquet file
    placed_entries  : entries placed in their task
    checked_entries : numbers of a stored array that are checked
    """

    chunk_bytes: int = 8 << 20
    batch_rows: int = 1 << 15
    placed_entries: int = 1 << 21
    checked_entries: int = 1 << 22


SETTINGS = StoreSettings()


@dataclass(frozen=True, eq=False)
class StoreChunk:
    """Checked rows: finite inputs (n, d) as CSR, labels (NaN: none), and the task ids[codes[k]] of row k."""

    X: sparse.csr_array
    y: np.ndarray
    ids: list  # numbers and text as they are, what else there is as (text, type)
    codes: np.ndarray
    where: str  # for messages
    first_row: int  # place of the first row within its part
    exact: bool = False  # whether X has all columns, not just those up to the largest that occurs
    features: tuple[str, ...] | None = None  # names of the columns

    @property
    def n_rows(self) -> int:
        return self.y.size


def of_arrays(X, y, ids, where: str, first_row: int = 0) -> StoreChunk:
    """Return what Tasks.grouped takes, as a chunk; DataError begins with `where`."""
    X, _, names = as_rows(X, f"{where}: X")
    y, _ = as_targets(y, f"{where}: y", columns=False)
    require_same_rows(X, y, "y", where)
    try:
        ids, codes = labels_of(ids, y.size)
    except DataError as error:
        raise error.within(where) from None
    # in a form that JSON keeps, with their types: 1 of one chunk and "1" of another stay two tasks
    ids = [
        one if isinstance(one, bool | int | float | str) else (str(one), type(one).__name__)
        for one in map(plain, ids)
    ]
    if X.dtype not in (np.float64, np.float32):  # scipy has no sparse matrices of float16
        X = X.astype(float)
    return StoreChunk(sparse.csr_array(X), y, ids, codes, where, first_row, True, names)


def hash_columns(X, n_columns: int):
    """X (n, d) in `n_columns` columns: column j of X is added, times +1 or -1, to a column that a hash of j chooses.

    The hash of j is 32-bit MurmurHash3 (scikit-learn's), h: column |h| mod n_columns, sign that of h. Inner products of rows are kept
    in expectation, with a variance of the order of |x|^2 |x'|^2 / n_columns (Weinberger et al., Feature Hashing for Large Scale
    Multitask Learning, ICML 2009, Lemma 2). Memory-bounded: nothing of size d is made. This is what `store(..., hashed=n_columns)`
    does to the inputs, and what new inputs need before `solution.predict`. Returns a CSR array, float64.

    >>> from scipy import sparse
    >>> from mtldsl import datasets
    >>> X = sparse.csr_array(([1.0, 2.0], ([0, 1], [3, 10**6])), shape=(2, 10**6 + 1))
    >>> datasets.hash_columns(X, 8).shape
    (2, 8)
    """
    from sklearn.utils import murmurhash3_32

    n_columns = as_count(n_columns, "hash_columns(X, n_columns", 2, most=MAX_INT32)
    X = sparse.csr_array(as_design(X, "hash_columns: X")[0])
    low = X.indices.astype(np.int32)  # the lower half of what is longer
    if X.indices.dtype.itemsize > 4:
        high = X.indices >> 32
        far = np.flatnonzero(high)
        if far.size:  # beyond 32 bits: the hash of the upper half is mixed into the lower
            low[far] ^= murmurhash3_32(high[far].astype(np.int32))
    h = murmurhash3_32(low) if low.size else low
    columns = (np.abs(h.astype(np.int64)) % n_columns).astype(np.int32)
    data = np.where(h >= 0, X.data, -X.data).astype(float)
    hashed = sparse.csr_array((data, columns, X.indptr.copy()), shape=(X.shape[0], n_columns))
    hashed.sum_duplicates()
    return hashed


# --------------------------------------------------------------------------------------------------------------
# Parts that are arrays already: NumPy archives, and chunks that the caller makes.

#: What scipy.sparse.save_npz writes of the formats that it knows.
_SPARSE = ("data", "indices", "indptr", "shape", "format", "row", "col", "offsets")


def npz_chunks(path: Path, task: str, label: str, name: str):
    """One chunk: the archive's arrays `label` and `task` ("file": all rows are of the task `name`), and its inputs.

    Inputs are the arrays data, indices, indptr, shape and format, as scipy.sparse.save_npz names them, or a dense X.
    """
    roles = {"label": (label,)} | ({} if task == "file" else {"task": (task,)})
    X, found = npz_arrays(path, roles)
    y = found["label"]
    ids = np.full(y.size, name, dtype=object) if task == "file" else found["task"]
    yield of_arrays(X, y.ravel(), ids, str(path))


def npz_arrays(
    path: Path, roles: Mapping[str, tuple[str, ...]], beside: Sequence[str] = ()
) -> tuple[Any, dict[str, Any]]:
    """(the inputs, {role: its array} and those `beside`, None where there is none). DataError where no array has one of the role's names."""
    what = "an .npz archive of numbers"
    archive = read_archive(path, what, [*sum(roles.values(), ()), *beside, *_SPARSE, "X"])
    if "format" not in archive and "X" not in archive:
        raise DataError(
            f"neither a dense X nor the arrays of scipy.sparse.save_npz are among {', '.join(archive)}",
            term=path,
        )
    found = {name: archive.get(name) for name in beside}
    for role, names in roles.items():
        name = next((one for one in names if one in archive), None)
        if name is None:
            hint = '; write task="file" for one task a file' if role == "task" else ""
            raise DataError(
                f"{role}={names[0]!r}: there is no such array; the archive holds {', '.join(archive)}{hint}",
                term=path,
            )
        found[role] = archive[name]
    with reading(path, what):
        return _sparse(archive) if "format" in archive else archive["X"], found


def _sparse(arrays):
    """The matrix that scipy.sparse.save_npz wrote. Its indices are looked at: compiled loops follow them without a look."""
    kind, shape = arrays["format"].item(), tuple(arrays["shape"].tolist())
    kind = kind.decode("ascii") if isinstance(kind, bytes) else kind
    if kind == "coo":
        return sparse.coo_array((arrays["data"], (arrays["row"], arrays["col"])), shape)
    if kind == "dia":
        return sparse.dia_array((arrays["data"], arrays["offsets"]), shape)
    if kind not in ("csr", "csc", "bsr"):
        raise ValueError(f"its sparse format is {kind!r}")
    made = getattr(sparse, f"{kind}_array")((arrays["data"], arrays["indices"], arrays["indptr"]), shape)
    made.check_format(full_check=True)
    return made


def given_chunks(items):
    """Return what the caller's iterator gives, one chunk after the other."""
    row = 0
    for k, item in enumerate(items):
        if not isinstance(item, list | tuple) or len(item) != 3:
            raise DataError(
                f"chunk {k} is {type(item).__name__}, not (X, y, task_ids); see mtl.datasets.store"
            )
        X, y, ids = item
        chunk = of_arrays(X, y, ids, f"chunk {k}", row)
        if chunk.n_rows:
            yield chunk
        row += chunk.n_rows


# --------------------------------------------------------------------------------------------------------------
# A LIBSVM file of any size, some lines at a time: "label [qid:task] index:value index:value ... # comment".


_OPEN = {".gz": gzip.open, ".bz2": bz2.open}


def has_qid(path: Path) -> bool:
    """Tell whether the first line with something on it says its task."""
    with _OPEN.get(path.suffix, open)(path, "rb") as file:
        try:
            words = next((words for line in file if (words := line.split(b"#", 1)[0].split())), [])
        except (OSError, EOFError) as error:
            raise DataError(f"cannot be read: {error}", term=path) from None
    return len(words) > 1 and words[1].startswith(b"qid:")


def libsvm_rows(
    path: Path, task: str | None, name: str, zero_based: bool, n_features: int | None, labels: list | None = None
) -> tuple[sparse.csr_array, np.ndarray, np.ndarray]:  # fmt: skip
    """(X, y, the task of every row) of the whole file; see `libsvm_chunks`. DataError without a row."""
    chunks = list(libsvm_chunks(path, task, name, zero_based, n_features, labels))
    if not chunks:
        raise DataError("there is no row in it", term=path)
    d = n_features or max(chunk.X.shape[1] for chunk in chunks)
    parts = [sparse.csr_array((X.data, X.indices, X.indptr), (X.shape[0], d)) for X in (c.X for c in chunks)]
    ids = np.concatenate([np.array(chunk.ids, dtype=object)[chunk.codes] for chunk in chunks])
    return sparse.csr_array(sparse.vstack(parts)), np.concatenate([chunk.y for chunk in chunks]), ids


def libsvm_chunks(
    path: Path, task: str | None, name: str, zero_based: bool, n_features: int | None, labels: list | None = None
):  # fmt: skip
    """Chunks of the file. task: "qid", or "file": all rows are of the task `name`; None: and no row says another.

    Indices count from 1, or from 0 where zero_based, and ascend within a line; at most `n_features` where that is given. labels: a list
    that the labels of every row go to, where rows have several; their y is 0. DataError names file and line.
    """
    row, line = 0, 1
    with _OPEN.get(path.suffix, open)(path, "rb") as file:
        while True:
            try:
                text = file.read(SETTINGS.chunk_bytes)
                text += b"" if text.endswith(b"\n") else file.readline()
            except (OSError, EOFError) as error:
                raise DataError(f"cannot be read beyond line {line}: {error}", term=path) from None
            if not text:
                return
            plain = text if labels is None else _without_labels(text, path, line, labels)
            parsed = _numbers(plain, path, line)
            _check(parsed, path, line, zero_based, n_features)
            chunk = _chunk(parsed, task, name, zero_based, row, path, line)
            if chunk.n_rows:
                yield chunk
            row += chunk.n_rows
            line += text.count(b"\n")


def _chunk(parsed, task, name, zero_based, row, path, line) -> StoreChunk:
    lines, labels, qids, counts, index, value = parsed
    columns = index.astype(np.int64) - (not zero_based)
    d = int(columns.max()) + 1 if columns.size else 0
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    X = sparse.csr_array((value, columns, indptr), shape=(labels.size, max(d, 1)))
    without = np.isnan(qids)
    if task is None and not without.all():
        raise DataError(
            f'{path}:{line + lines[np.argmin(without)]}: the row says its task, "qid:..."',
            write_instead="write datasets.scan(path) or datasets.store(path, folder)",
        )
    if task != "qid":
        return StoreChunk(X, labels, [name], np.zeros(labels.size, dtype=int), str(path), row)
    if without.any():
        raise DataError(
            f'{path}:{line + lines[np.argmax(without)]}: there is no "qid:" that says the task',
            write_instead='write it in every line, or task="file" for one task a file',
        )
    distinct, codes = by_appearance(qids)
    return StoreChunk(X, labels, [str(int(q)) for q in distinct], codes, str(path), row)


def _without_labels(text: bytes, path, first_line: int, labels: list) -> bytes:
    """The lines with the label 0; their own, "1,3" or none, go to the list."""
    lines = text.split(b"\n")
    for k, line in enumerate(lines):
        words = line.split(b"#", 1)[0].split()
        if not words:
            continue
        listed = [] if b":" in words[0] else words.pop(0).decode(errors="replace").split(",")
        labels.append([_number(one, f"{path}:{first_line + k}", "label") for one in listed])
        lines[k] = b" ".join([b"0", *words])
    return b"\n".join(lines)


def _numbers(text: bytes, path, first_line: int):
    """(line, label, qid or NaN, number of entries) of every row, and index and value of every entry."""
    lines, labels, qids, counts, index, value = [], [], [], [], [], []
    for k, line in enumerate(text.split(b"\n")):
        words = line.split(b"#", 1)[0].decode(errors="replace").split()
        if not words:
            continue
        where = f"{path}:{first_line + k}"
        lines.append(k)
        labels.append(_number(words[0], where, "label"))
        has_qid = len(words) > 1 and words[1].startswith("qid:")
        qids.append(_number(words[1][4:], where, "qid") if has_qid else np.nan)
        entries = words[2 if has_qid else 1 :]
        counts.append(len(entries))
        for word in entries:
            pair = word.split(":")
            if len(pair) != 2:
                raise DataError(f'{word!r} is not "index:value"', term=where)
            index.append(_number(pair[0], where, "index"))
            value.append(_number(pair[1], where, "value"))
    numbers = (np.array(part, dtype=float) for part in (labels, qids, index, value))
    labels, qids, index, value = numbers
    return np.array(lines, dtype=int), labels, qids, np.array(counts, dtype=int), index, value


def _number(word: str, where: str, what: str) -> float:
    try:
        return exact_number(word)
    except ValueError:
        pass
    why, instead = how_lost(word)
    if why:
        raise DataError(f"the {what} {word!r} is {why}", term=where, write_instead=instead)
    several = what == "label" and "," in word
    raise DataError(
        f"the {what} {word!r} is not a number{'; several labels a line are for read_libsvm' * several}",
        term=where,
        write_instead="write " + Spelled.option("multilabel", "True") if several else "",
    )


def _check(parsed, path, line, zero_based, n_features) -> None:
    """DataError for the first line with numbers that cannot be meant."""
    lines, labels, qids, counts, index, value = parsed
    row_of, lowest = np.repeat(np.arange(labels.size), counts), int(not zero_based)
    highest = np.inf if n_features is None else n_features + lowest - 1
    whole = (index == np.floor(index)) & (np.abs(index) <= MAX_EXACT_WHOLE)
    ascending = np.ones(index.size, dtype=bool)
    ascending[1:] = (np.diff(index) > 0) | (np.diff(row_of) > 0)
    known = np.where(np.isnan(qids), 0.0, qids)
    every = np.arange(labels.size)
    zero = "LIBSVM counts from 1; write zero_based=True if this file counts from 0"
    for fits, rows, said in (
        (~np.isinf(labels), every, "the label {label:g}; labels must be finite (nan: not labelled)"),
        ((known == np.floor(known)) & (np.abs(known) <= MAX_EXACT_WHOLE), every, "qid:{qid:.17g} is not a whole number"),
        (whole, row_of, "the index {index:.17g} is not a whole number up to 2^53"),
        ((index >= lowest) | (index != 0), row_of, f"the index {{index:.0f}}: {zero}"),
        (index >= lowest, row_of, "the index {index:.0f} is negative"),
        (index <= highest, row_of, f"the index {{index:.0f}} is beyond {n_features=}"),
        (ascending, row_of, "the index {index:.0f} follows {before:.0f}; indices must ascend"),
        (np.isfinite(value), row_of, "the value {value} of index {index:.0f}; inputs must be finite"),
    ):  # fmt: skip
        if not fits.all():
            k = int(np.flatnonzero(~fits)[0])
            row = rows[k]
            entry = {"index": index[k], "before": index[k - 1], "value": value[k]} if rows is row_of else {}
            said = said.format(label=labels[row], qid=qids[row], **entry)
            raise DataError(f"{path}:{line + lines[row]}: {said}")
