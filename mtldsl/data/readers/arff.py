"""ARFF files, dense and sparse, and Mulan's XML label lists.

scipy.io.arff reads dense files only, stops at the quoted names in Mulan's own files, and does not tell the line of an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np
from scipy import sparse

from mtldsl.data.readers.table import DataColumn, DataTable, how_lost, is_number, number
from mtldsl.data.tasks import Tasks
from mtldsl.errors import DataError, Spelled
from mtldsl.utils.files import reading, regular_file
from mtldsl.utils.validation import as_flag, as_whole

_QUOTED = r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\""""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|[^\s{{]+)(?:\s+|(?=\{{))(\{{.*\}}|\S.*)$", re.IGNORECASE)
_PIECE = re.compile(rf"{_QUOTED}|[,\t]|[^,\t'\"]+|['\"]")
_LINES = re.compile(r"\r\n?|\n")  # a cell may hold what else Python takes for the end of a line
_MEKA = re.compile(r":.*?\s-[Cc]\s+(-?\d+)(?![\w.])")
_SPARSE_CELL = re.compile(r"(\d+)\s+(\S.*)$")


def read_arff(
    path,
    labels: int | str | Sequence[str] | None = None,
    *,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    binary: bool = False,
    impute: str = "error",
) -> Tasks:
    """Tasks that share the inputs of an ARFF file, dense or sparse ("{index value, ...}"; then X is CSR).

    labels   : how many of the last attributes are labels; or their names; or Mulan's XML file that lists them, named from where
               we are or from beside the ARFF file. In a file of MEKA's, whose relation says "-C 6" (the first six attributes are labels) or
               "-C -6" (the last six), that decides where they are: None, or the same number
    features : the input attributes (None: all others that are not in `drop`)
    binary   : numeric labels are 0/1 and are read as -1/+1
    impute   : as in `read_csv`, of dense files

    Nominal labels with two values become -1 and +1, in whatever order they are declared: +1 is yes of yes and no, the larger number, the
    later word, as in `read_csv`. With k > 2 values they are k one-vs-rest tasks.
    Nominal features with two values become one column 0/1, "name=second value"; with k > 2, k columns "name=value".
    "?" in a label: the row is not in that task. DataError, with file and line, for what does not parse, a missing feature, text.

    >>> import tempfile, pathlib
    >>> from mtldsl import datasets
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "flags.arff"
    >>> head = "@relation flags\\n@attribute zone {n, e, s}\\n@attribute red {0,1}\\n@data\\n"
    >>> _ = path.write_text(head + "n,1\\ns,0\\n")
    >>> tasks = datasets.read_arff(path, labels=1)
    >>> tasks.feature_names, tasks.task_names, tasks.targets
    (('zone=n', 'zone=e', 'zone=s'), ('red',), array([ 1., -1.]))
    """
    binary = as_flag(binary, "read_arff(path, labels, binary")
    return arff_tasks([path], labels, features=features, drop=drop, binary=binary, impute=impute)


def arff_tasks(paths: Sequence, labels, **options) -> Tasks:
    """`read_arff` on the rows of several files with the same attributes."""
    found = [_parse(regular_file(path, "data")) for path in paths]
    tables = [table for table, _ in found]
    (first, count) = found[0]
    for table, other in found[1:]:
        if table.columns != first.columns or other != count:
            raise DataError(f"its attributes are not those of {first.path}", term=table.path)
    cells: list[Any] = [table.cells for table in tables]
    stack: Any = sparse.vstack(cells, format="csc") if sparse.issparse(cells[0]) else np.vstack(cells)
    table = DataTable(first.path, first.columns, stack, np.concatenate([table.lines for table in tables]))
    if isinstance(labels, Path) or (isinstance(labels, str) and labels.lower().endswith(".xml")):
        beside = first.path.parent / labels
        labels = _label_names(regular_file(beside if beside.is_file() else labels, "data"))
    return table.tasks(_as_meka_says(first, count, labels), **options)


def _as_meka_says(table: DataTable, count: int | None, labels):
    """Names of the labels where the relation says "-C n" and the caller no names; else what the caller says. DataError where both differ."""
    number = as_whole(labels)
    if labels is not None and number is None:
        return labels
    if count is None or count == 0:
        if labels is None:
            raise DataError("does not say which attributes are labels", term=table.path, write_instead="write " + Spelled.option("labels", "1"), argument="labels")  # fmt: skip
        return labels
    where = f"its {'first' if count > 0 else 'last'} {abs(count)} attributes are labels (-C {count} in its @relation)"
    if number not in (None, abs(count)) or abs(count) >= len(table.columns):
        raise DataError(
            where, term=table.path, write_instead="leave labels out, or name them", argument="labels"
        )
    return table.names[:count] if count > 0 else table.names[count:]


def _label_names(path: Path) -> list[str]:
    """The labels that a Mulan XML file lists. Entities, which can stand for gigabytes of text, are not read."""
    names: list[str] = []

    def refuse(*entity):
        raise DataError("declares an entity; a Mulan label list is read without", term=path)

    def start(tag: str, attributes: dict[str, str]):
        if tag.endswith("label") and "name" in attributes:
            names.append(attributes["name"])

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EntityDeclHandler = start, refuse
    with reading(path, "a Mulan label list"):
        parser.Parse(path.read_bytes(), True)
    if not names:
        raise DataError('lists no label; a Mulan label list holds <label name="..."/>', term=path)
    return names


def _parse(path: Path) -> tuple[DataTable, int | None]:
    """(the table, MEKA's number of labels where the relation says it)."""
    count, columns = None, list[DataColumn]()
    rows, lines, readers = [], [], None
    for at, line in enumerate(_LINES.split(_text(path)), start=1):
        line = line.strip()
        if not line or line.startswith("%"):
            continue
        where = f"{path}:{at}"
        if readers is not None:
            rows.append(
                _sparse_row(line, columns, readers, where)
                if line[0] == "{"
                else _dense_row(line, columns, readers, where)
            )
            lines.append(at)
        elif line.lower().startswith("@attribute"):
            columns.append(_attribute(line, where))
        elif line.lower().startswith("@data"):
            readers = [_reader(column) for column in columns]
        elif line.lower().startswith("@relation"):
            said = _MEKA.search(line)
            count = None if said is None else int(said[1])
        else:
            raise DataError(f"expected @attribute or @data, found {line[:40]!r}", term=where)
    if not rows or not columns:
        raise DataError("no @data section with rows; is this an ARFF file?", term=path)
    return DataTable(path, tuple(columns), _cells(rows, len(columns)), np.array(lines)), count


def _text(path: Path) -> str:
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:  # what older programs write; all bytes mean something in it
        return data.decode("latin-1")


def _cells(rows, p):
    """Dense where all rows are; CSC where some are sparse."""
    if all(isinstance(row, list) for row in rows):
        return np.array(rows, dtype=float)
    entries = [row if isinstance(row, dict) else dict(enumerate(row)) for row in rows]
    counts = [len(row) for row in entries]
    row_of = np.repeat(np.arange(len(rows)), counts)
    column_of = np.fromiter((j for row in entries for j in row), dtype=int, count=sum(counts))
    values = np.fromiter((v for row in entries for v in row.values()), dtype=float, count=sum(counts))
    return sparse.csc_array((values, (row_of, column_of)), shape=(len(rows), p))


def _attribute(line: str, where: str) -> DataColumn:
    match = _ATTRIBUTE.match(line)
    if match is None:
        raise DataError(f"an attribute needs a name and a type, found {line[:60]!r}", term=where)
    name, kind = _unquoted(match[1]), match[2].strip()
    if kind.startswith("{"):
        values = tuple(_split(kind[1:-1]))
        if len(set(values)) < len(values):
            raise DataError(f"attribute {name!r} declares a value twice", term=where)
        return DataColumn(name, values)
    word = kind.split()[0].lower()
    if word in ("numeric", "real", "integer"):
        return DataColumn(name)
    if word in ("string", "date"):
        return DataColumn(
            name,
            unusable=f"is of type {word}, not a number or a category; leave it out with "
            + Spelled.option("drop", f"[{name!r}]"),
        )
    raise DataError(
        f"attribute {name!r} has the unknown type {kind[:30]!r}; numeric or nominal {{...}} can be read",
        term=where,
    )


def _reader(column: DataColumn) -> Callable[[str], float]:
    """Text of a cell -> its number; ValueError or KeyError for a cell that does not fit the column."""
    if column.unusable:
        return lambda text: 0.0
    if column.values is None:
        return _finite
    return ({"?": np.nan} | {value: float(k) for k, value in enumerate(column.values)}).__getitem__


def _finite(text: str) -> float:
    value = number(text)
    if np.isinf(value):
        raise ValueError(text)
    return value


def _value(text: str, column: DataColumn, reader, where: str) -> float:
    try:
        return reader(text)
    except (ValueError, KeyError):
        why, instead = how_lost(text) if column.values is None else ("", "")
        if why:
            raise DataError(
                f"{text!r} in attribute {column.name!r} is {why}", term=where, write_instead=instead
            ) from None
        numbers = "a finite number" if is_number(text) else "a number"
        expected = numbers if column.values is None else f"one of {', '.join(column.values[:8])}"
        raise DataError(f"{text!r} in attribute {column.name!r} is not {expected}", term=where) from None


def _dense_row(line, columns, readers, where) -> list[float]:
    texts = _split(line)
    if len(texts) != len(columns):
        raise DataError(f"{len(texts)} values for {len(columns)} attributes", term=where)
    try:
        return [reader(text) for reader, text in zip(readers, texts, strict=True)]
    except (ValueError, KeyError):  # once more, cell by cell, for the message
        return [_value(*cell, where) for cell in zip(texts, columns, readers, strict=True)]


def _sparse_row(line, columns, readers, where) -> dict[int, float]:
    """Return what is not named is 0: of a nominal attribute the first value."""
    if line[-1] != "}" or "}" in re.sub(_QUOTED, "", line[1:-1]):
        raise DataError("a sparse row is written {index value, ...}, and nothing after it", term=where)
    row: dict[int, float] = {}
    inside = line[1:-1].strip()
    for text in map(str.strip, _pieces(inside, ",") if inside else ()):
        match = _SPARSE_CELL.match(text)
        if match is None or int(match[1]) >= len(columns):
            raise DataError(
                f"{text!r} is not 'index value' with an index of 0 to {len(columns) - 1}", term=where
            )
        j = int(match[1])
        if j in row:
            raise DataError(f"index {j} occurs twice", term=where)
        row[j] = _value(_unquoted(match[2]), columns[j], readers[j], where)
    return row


def _split(text: str) -> list[str]:
    """Values between commas, or between tabs where there is no comma; quotes protect both."""
    if "'" not in text and '"' not in text:
        return [cell.strip() for cell in text.split("," if "," in text else "\t")]
    outside = re.sub(_QUOTED, "", text)
    return [_unquoted(cell) for cell in _pieces(text, "," if "," in outside else "\t")]


def _pieces(text: str, separator: str) -> list[str]:
    cells = [""]
    for piece in _PIECE.findall(text):
        if piece == separator:
            cells.append("")
        else:
            cells[-1] += piece
    return cells


def _unquoted(text: str) -> str:
    text = text.strip()
    if len(text) >= 2 and text[0] in "'\"" and text[-1] == text[0]:
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text
