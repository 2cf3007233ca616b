"""A LIBSVM file of any size, some lines at a time: "label [qid:task] index:value index:value ... # comment"."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import numpy as np
from scipy import sparse

from mtldsl.datasets.out_of_core.chunk import Chunk
from mtldsl.errors import DataError

__all__ = ["has_qid", "libsvm_chunks", "require_plain"]

#: bytes of text parsed at once; what is held for them is some ten times as much
_BYTES = 8 << 20
#: bytes of text that are not worth a compiled loop
_FEW = 200_000
_OPEN = {".gz": gzip.open, ".bz2": bz2.open}
#: whole numbers up to here are exact in float64, as which all numbers of a file are read
_LARGEST = 2.0**53


def has_qid(path: Path) -> bool:
    """Whether the first line with something on it says its task."""
    with _OPEN.get(path.suffix, open)(path, "rb") as file:
        try:
            words = next((words for line in file if (words := line.split(b"#", 1)[0].split())), [])
        except (OSError, EOFError) as error:
            raise DataError(f"cannot be read: {error}", term=path) from None
    return len(words) > 1 and words[1].startswith(b"qid:")


def require_plain(path: Path) -> None:
    """DataError, with file and line, for what other readers pass over or misread: a task "qid:", an index or value 1_000."""
    with _OPEN.get(path.suffix, open)(path, "rb") as file:
        try:
            for k, line in enumerate(file, start=1):
                text = line.split(b"#", 1)[0]
                if b"qid:" in text:
                    raise DataError(
                        f'{path}:{k}: the row says its task, "qid:..."', write_instead="write datasets.scan(path) or datasets.store(path, folder)"
                    )  # fmt: skip
                if b"_" in text:
                    word = next(word for word in text.decode(errors="replace").split() if "_" in word)
                    raise DataError(f"{path}:{k}: {word!r} has no number on one side of the colon")
        except (OSError, EOFError) as error:
            raise DataError(f"cannot be read: {error}", term=path) from None


def libsvm_chunks(path: Path, task: str, name: str, zero_based: bool, n_features: int | None):
    """Chunks of the file. task: "qid", or "file": all rows are of the task `name`. DataError names file and line.

    Indices count from 1, or from 0 where zero_based, and ascend within a line; at most `n_features` where that is given.
    """
    row, line = 0, 1
    with _OPEN.get(path.suffix, open)(path, "rb") as file:
        while True:
            try:
                text = file.read(_BYTES)
                text += b"" if text.endswith(b"\n") else file.readline()
            except (OSError, EOFError) as error:
                raise DataError(f"cannot be read beyond line {line}: {error}", term=path) from None
            if not text:
                return
            # a few lines are read before the compiled loop is there
            parsed = _numbers(text, path, line) if len(text) > _FEW else None
            parsed = parsed or _numbers_by_line(text, path, line)
            _check(parsed, path, line, zero_based, n_features)
            chunk = _chunk(parsed, task, name, zero_based, row, path, line)
            if chunk.n_rows:
                yield chunk
            row += chunk.n_rows
            line += text.count(b"\n")


def _chunk(parsed, task, name, zero_based, row, path, line) -> Chunk:
    lines, labels, qids, counts, index, value = parsed
    columns = index.astype(np.int64) - (not zero_based)
    d = int(columns.max()) + 1 if columns.size else 0
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    X = sparse.csr_array((value, columns, indptr), shape=(labels.size, max(d, 1)))
    if task == "file":
        return Chunk(X, labels, [name], np.zeros(labels.size, dtype=int), str(path), row)
    without = np.flatnonzero(np.isnan(qids))
    if without.size:
        raise DataError(
            f'{path}:{line + lines[without[0]]}: there is no "qid:" that says the task',
            write_instead='write it in every line, or task="file" for one task a file',
        )
    distinct, first, codes = np.unique(qids, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(order.size, dtype=int)
    place[order] = np.arange(order.size)
    return Chunk(X, labels, [str(int(q)) for q in distinct[order]], place[codes], str(path), row)


def _numbers(text: bytes, path, first_line: int):
    """(line, label, qid or NaN, number of entries) of every row, and index and value of every entry, quickly; None where in doubt."""
    from mtldsl.datasets.out_of_core.scan import KINDS, scan

    code = np.frombuffer(text, dtype=np.uint8)
    n, m = text.count(b"\n") + 1, text.count(b":")
    lines, counts = np.empty((2, n), dtype=int)
    labels, qids = np.empty((2, n))
    index, value = np.empty((2, m))
    odd = np.empty((2 * (n + m), 4), dtype=np.int32)
    rows, entries, strange = scan(code, lines, labels, qids, counts, index, value, odd)
    if rows < 0:
        return None
    arrays = labels, qids, index, value
    for kind, place, a, b in odd[:strange].tolist():
        word = text[a:b].decode(errors="replace")
        number = _float(word)
        if number is None:
            line = first_line + text.count(b"\n", 0, a)
            raise _no_number(word, f"{path}:{line}", KINDS[kind])
        arrays[kind][place] = number
    return lines[:rows], labels[:rows], qids[:rows], counts[:rows], index[:entries], value[:entries]


def _numbers_by_line(text: bytes, path, first_line: int):
    """The same, slowly: this knows what is wrong."""
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
    number = _float(word)
    if number is None:
        raise _no_number(word, where, what)
    return number


def _float(word: str) -> float | None:
    try:
        return None if "_" in word else float(word)  # Python reads 1_000 as a number
    except ValueError:
        return None


def _no_number(word: str, where: str, what: str) -> DataError:
    hint = "; several labels a line are not tasks of stored data" if what == "label" and "," in word else ""
    return DataError(f"the {what} {word!r} is not a number{hint}", term=where)


def _check(parsed, path, line, zero_based, n_features) -> None:
    """DataError for the first line with numbers that cannot be meant."""
    lines, labels, qids, counts, index, value = parsed
    row_of = np.repeat(np.arange(labels.size), counts)

    def refuse(bad, rows, tell):
        if bad.any():
            k = int(np.flatnonzero(bad)[0])
            raise DataError(f"{path}:{line + lines[rows[k]]}: {tell(k)}")

    every = np.arange(labels.size)
    refuse(
        np.isinf(labels),
        every,
        lambda k: f"the label {labels[k]:g}; labels must be finite (nan: not labelled)",
    )
    known = np.where(np.isnan(qids), 0.0, qids)
    refuse(
        (known != np.floor(known)) | (np.abs(known) > _LARGEST),
        every,
        lambda k: f"qid:{qids[k]:.17g} is not a whole number",
    )
    refuse(
        (index != np.floor(index)) | ~(np.abs(index) <= _LARGEST),
        row_of,
        lambda k: f"the index {index[k]:.17g} is not a whole number up to 2^53",
    )
    lowest = 0 if zero_based else 1
    refuse(
        index < lowest,
        row_of,
        lambda k: (
            f"the index {index[k]:.0f}: LIBSVM counts from 1; write zero_based=True if this file counts from 0"
            if index[k] == 0
            else f"the index {index[k]:.0f} is negative"
        ),
    )
    if n_features is not None:
        refuse(
            index >= n_features + lowest,
            row_of,
            lambda k: f"the index {index[k]:.0f} is beyond n_features={n_features}",
        )
    if index.size:
        falls = np.concatenate([[False], (np.diff(index) <= 0) & (np.diff(row_of) == 0)])
        refuse(
            falls,
            row_of,
            lambda k: f"the index {index[k]:.0f} follows {index[k - 1]:.0f}; indices must ascend",
        )
    refuse(
        ~np.isfinite(value),
        row_of,
        lambda k: f"the value {value[k]} of index {index[k]:.0f}; inputs must be finite",
    )
