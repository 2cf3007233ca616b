"""Reader of CSV files by the csv module of Python; errors name the file, the line and the column."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from mtldsl.data.readers.table import (
    ANSWERS,
    DataColumn,
    DataTable,
    answers_of,
    as_numbers,
    how_lost,
    in_order,
    is_missing,
    is_number,
    number,
    with_point,
)
from mtldsl.data.tasks import Tasks
from mtldsl.errors import DataError, Spelled
from mtldsl.utils.files import regular_file
from mtldsl.utils.validation import as_flag, as_list, as_whole, quoted

# --------------------------------------------------------------------------------------------------------------
# What to say of a column that was to hold numbers and has text: what the text is decides what there is to write.


@dataclass(frozen=True)
class CsvSettings:
    """Limits of mistakes.

    mistake_share : a column with text in at most this share of its cells is one of numbers
    code_values   : so is one with more values than these, all numbers but one
    """

    mistake_share: float = 0.1
    code_values: int = 12


SETTINGS = CsvSettings()


_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:([,. \u00a0\u202f'\u2019])\d{3})(?:\1\d{3})*(?:[.,]\d*)?")
_MARKS = {",": "commas", ".": "points", "'": "apostrophes", "\u2019": "apostrophes"}


def no_number(texts: Sequence[str], lines: Sequence[int], role: str) -> str | Spelled:
    """The end of a sentence that begins with the column.

    role : "feature", "label", "weights", or "answer" for a label that was to say yes or no

    >>> print(no_number(["no", "yes", "?"], [2, 3, 4], "label"))
    has text that is not a number, 'no' in line 2; write binary=True, which reads no and yes as -1 and +1
    >>> print(no_number(["1,5", "2,5"], [2, 3], "feature").on("file"))
    has text that is not a number, '1,5' in line 2; where commas stand for decimal points write decimal = ','
    """
    wrong = [(line, text) for line, text in zip(lines, texts, strict=True) if not is_number(text)]
    line, text = wrong[0]
    why, instead = how_lost(text)
    if why:
        return (
            f"has {text!r} in line {line}, {why}; {instead}, or, where it is a code, leave the column out with "
            + Spelled.option("drop", "[...]")
        )
    said = f"has text that is not a number, {text!r} in line {line}"
    if role == "answer":
        return f"has {text!r} in line {line}, which says neither yes nor no; mend it, or leave the cell empty: the label is then missing"
    if role == "label" and all(one.strip().lower() in ANSWERS for _, one in wrong):
        return f"{said}; write " + Spelled.option("binary", "True") + ", which reads no and yes as -1 and +1"
    points = all(is_number(with_point(one)) for _, one in wrong)
    thousands = [_THOUSANDS.fullmatch(one.strip()) for _, one in wrong]
    marks = sorted({_MARKS.get(found[1], "blanks") for found in thousands if found})
    if all(thousands):
        said = f"{said}; where {' or '.join(marks)} separate thousands leave them out"
        if not points:
            return said
    if points:
        return f"{said}; where commas stand for decimal points write " + Spelled.option("decimal", "','")
    if role == "weights":
        return f"{said}; mend it, or name a column of weights"
    alike = len({one.strip() for _, one in wrong}) == 1 and len(wrong) < len(texts)
    if len(wrong) <= SETTINGS.mistake_share * len(texts) or alike:
        many = (
            "this cell alone is none" if len(wrong) == 1 else f"{len(wrong):,} such cells of {len(texts):,}"
        )
        said = f"{said} ({many}); mend {'it' if len(wrong) == 1 else 'them'} or leave {'it' if len(wrong) == 1 else 'them'} empty, or "
    else:
        said = f"{said}; "
    if role == "label":
        return (
            f"{said}write "
            + Spelled.option("one_vs_rest", "True")
            + " where it holds classes, or name another label"
        )
    return (
        f"{said}leave the column out with "
        + Spelled.option("drop", "[...]")
        + ", or, where it holds categories, write "
        + Spelled.option("one_hot", "[...]")
    )


# --------------------------------------------------------------------------------------------------------------
# CSV files.


def read_csv(
    path,
    labels: str | Sequence[str] | int,
    *,
    task: str | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    sample_weights: str | None = None,
    one_hot: Sequence[str] | bool = (),
    one_vs_rest: bool = False,
    binary: bool = False,
    impute: str = "error",
    delimiter: str = ",",
    decimal: str = ".",
    header: bool = True,
) -> Tasks:
    """Tasks from a CSV file in UTF-8 whose first line names the columns (header=False: they are "0", "1", ...).

    labels         : a column's name; a list of names, one task each; or a number k: the last k columns
    task           : the column that tells the tasks apart by rows; then every task has its own rows of one label column
    features       : the input columns (None: all others that are not in `drop`)
    sample_weights : a column of weights > 0
    one_hot        : columns to turn into 0/1 indicators, one per value in sorted order (two values: one, of the second);
                     True: every feature column with text, unless its other cells say that it is one of numbers: then the text is
                     refused
    one_vs_rest    : the label column holds classes: a task per class in sorted order, labels +1 against -1 (two classes: one
                     task, the second against the first)
    binary         : labels are 0/1, no/yes, n/y, false/true or f/t, in upper or lower case, and are read as -1/+1
    impute         : what stands in the place of an input that is missing: "mean" or "median" of the column's values that are there
                     (scikit-learn's SimpleImputer); `split`, `folds` and cross-validation learn these on their training rows alone, and
                     `solution.predict` puts the same into new rows. "error": DataError
    decimal        : "," where 1,5 is one and a half, beside another delimiter

    Empty cells, ?, NA, NaN, N/A, n/a, #N/A, <NA>, NaT, null and NULL are missing: a row without a label is not in that task. DataError, with the line and the column, for a
    feature that is missing or not a number, a line with too few or too many cells, a column that does not exist.

    >>> import tempfile, pathlib
    >>> from mtldsl import datasets
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "exams.csv"
    >>> _ = path.write_text("school,hours,score\\nA,1,2.5\\nA,2,3.5\\nB,4,7\\n")
    >>> tasks = datasets.read_csv(path, "score", task="school")
    >>> tasks.task_names, tasks.feature_names, tasks.targets
    (('A', 'B'), ('hours',), array([2.5, 3.5, 7. ]))
    """
    one_vs_rest = as_flag(one_vs_rest, "read_csv(path, labels, one_vs_rest")
    binary, header = (
        as_flag(binary, "read_csv(path, labels, binary"),
        as_flag(header, "read_csv(path, labels, header"),
    )
    if not isinstance(one_hot, bool | str) and as_list(one_hot) is None:
        raise DataError(term=f"read_csv(path, labels, one_hot={quoted(one_hot)})", write_instead="write names of columns, or one_hot=True", argument="one_hot")  # fmt: skip
    path = regular_file(path, "data")
    names, rows, lines = rows_of(path, delimiter, header, decimal)
    if header and as_whole(labels) is not None and all(map(is_number, names)):
        raise DataError(
            f"the first line, {', '.join(names[:4])}{', ...' * (len(names) > 4)}, is to name the columns, and has numbers alone", term=path,
            write_instead="write " + Spelled.option("header", "False") + ", or name the labels if these are names", argument="header",
        )  # fmt: skip
    # which columns hold classes follows from the roles that the caller gave, so these are looked up on the names first
    outline = DataTable(path, tuple(DataColumn(name) for name in names), np.zeros((1, len(names))), lines)
    named = () if isinstance(one_hot, bool) else one_hot
    roles = outline.roles(labels, task, sample_weights, one_hot=named)
    label_columns = {names[j] for j in roles["labels"]}
    if one_vs_rest and len(label_columns) > 1:
        raise DataError(
            f"{path}: "
            + Spelled.option("one_vs_rest", "True")
            + " makes tasks of one column of classes, but "
            + Spelled.option("labels", repr(labels)),
            argument="labels",
        )
    nominal = {names[j] for j in roles["one_hot"] + roles["task"] + roles["labels"] * one_vs_rest}
    weights = {names[j] for j in roles["sample_weights"]}
    label_role = "answer" if binary and not one_vs_rest else "label"
    columns = [
        _column(
            name,
            texts,
            lines,
            name in nominal,
            one_hot is True and name not in label_columns,
            label_role if name in label_columns else "weights" if name in weights else "feature",
        )
        for name, texts in zip(names, zip(*rows, strict=True), strict=True)
    ]
    cells = np.column_stack([cells for _, cells in columns])
    table = DataTable(path, tuple(column for column, _ in columns), cells, lines, decimal)
    return table.tasks(
        labels,
        features=features,
        drop=drop,
        task=task,
        sample_weights=sample_weights,
        binary=binary,
        impute=impute,
    )


def delimiter_of(path) -> str:
    """Return what makes the most columns of a file's first line."""
    with regular_file(path).open(newline="", encoding="utf-8-sig", errors="replace") as file:
        first = file.readline(1 << 20)
    return max(",;\t|", key=lambda mark: len(next(csv.reader([first], delimiter=mark), [])))


def rows_of(path, delimiter, header, decimal=".", known: bool = True):
    """(names, rows of text, their lines); cells such as 1,5 as 1.5 where the decimal mark is a comma.

    known : the decimal mark is that of this file; else of one like it, and numbers may all have points
    """
    if decimal not in (".", ",") or decimal == delimiter:
        raise DataError(
            f"decimal={decimal!r}: write '.', or ',' where delimiter is another",
            term=path,
            argument="decimal",
        )
    if not isinstance(delimiter, str) or len(delimiter) != 1:
        raise DataError(
            f"delimiter={delimiter!r}: write one character, such as ';' or '\\t'",
            term=path,
            argument="delimiter",
        )
    _refuse_other_formats(path)
    rows, lines, before = [], [], 0  # the last line of the row before
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(_sound_lines(file, path), delimiter=delimiter, skipinitialspace=True, strict=True)
        try:
            for row in reader:
                if row:
                    rows.append(row)
                    lines.append(reader.line_num)
                before = reader.line_num
        except UnicodeDecodeError as error:
            raise DataError(
                f"is not in UTF-8 ({error})", term=path, write_instead="save it in UTF-8"
            ) from None
        except csv.Error as error:
            raise _wrong_row(path, delimiter, before, reader.line_num, error) from None
    if len(rows) <= header:
        raise DataError(f"needs {'a line of names and ' * header}at least one row", term=path)
    first = rows[0][0].strip()
    if first.lower().startswith("sep=") and len(rows[0]) <= 2:
        mark = (first + delimiter)[4]
        raise DataError(
            f"{path}:1: 'sep={mark}' tells spreadsheets alone what stands between cells",
            write_instead="leave the line out, and write " + Spelled.option("delimiter", repr(mark)),
        )
    names = [name.strip() for name in rows[0]] if header else [str(j) for j in range(len(rows[0]))]
    other = next((mark for mark in ";\t|," if len(names) == 1 and mark in names[0]), None)
    if other is not None:
        raise DataError(
            f"{path}: one column, named {names[0]!r}",
            write_instead="write " + Spelled.option("delimiter", repr(other)),
        )
    rows, lines = (rows[1:], lines[1:]) if header else (rows, lines)
    rows = _with_points(rows, lines, path, known) if decimal == "," else rows
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(names):
            raise DataError(
                f"{path}:{line}: {len(row)} cell{'s' * (len(row) != 1)}, but there {'is 1 column' if len(names) == 1 else f'are {len(names)} columns'} ({delimiter=})",
                argument="delimiter",
            )
    return names, rows, np.array(lines)


_INSTEAD = "write format={!r} in a problem file, or save the rows as CSV with a line of names"

#: what files of other formats begin with -> what they are, what there is to do
_OTHER_FORMATS = {
    rb"(%.*\n|\s)*@(?i:relation)\s": ("is an ARFF file", _INSTEAD.format("arff")),
    rb"[-+.,\d]+([ \t]+\d+:[-+.e\d]+)+\s": ("is a LIBSVM file", _INSTEAD.format("libsvm")),
    b"\x1f\x8b": ("is packed by gzip", "unpack it first"),
    b"PK\x03\x04": ("is a zip archive or a spreadsheet", "unpack it, or save the sheet as CSV in UTF-8"),
    b"\xd0\xcf\x11\xe0": ("is a spreadsheet", "save the sheet as CSV in UTF-8"),
    b"BZh": ("is packed by bzip2", "unpack it first"),
    b"\xfd7zX": ("is packed by xz", "unpack it first"),
    b"[(]\xb5/\xfd": ("is packed by zstd", "unpack it first"),
    b"\x93NUM": ("is an array of numpy", "write np.savez(path, X=X), which has its name"),
    b"PAR1": ("is a Parquet file", "write engine='dask' in a problem file, or pandas.read_parquet"),
    b"\xff\xfe": ("is in UTF-16", "save it in UTF-8"),
    b"\xfe\xff": ("is in UTF-16", "save it in UTF-8"),
}


def _refuse_other_formats(path) -> None:
    """DataError for a file whose first bytes are those of another format."""
    with path.open("rb") as file:
        start = file.read(1 << 12)
    for mark, (what, instead) in _OTHER_FORMATS.items():
        if re.match(mark, start):
            raise DataError(f"{what}, and no CSV", term=path, write_instead=instead)


def _sound_lines(file: Iterable[str], path) -> Iterator[str]:
    """The lines; DataError for one with a NUL, as files have that are damaged, or in an encoding of two bytes a letter."""
    for k, line in enumerate(file, start=1):
        if "\0" in line:
            raise DataError(f"{path}:{k}: has a NUL, which no text has", write_instead="save it in UTF-8")
        yield line


def _with_points(rows: list[list[str]], lines: list[int], path, known: bool) -> list[list[str]]:
    """Numbers with a point in the place of the comma. DataError where one has a point already, which may be of thousands.

    known : a comma is the mark whatever stands in the file; else only where some number has one
    """
    found = [list(map(with_point, row)) for row in rows]
    if known or found != rows:
        for row, line in zip(rows, lines, strict=True):
            for text in row:
                if "." in text and is_number(text):
                    raise DataError(
                        f"{path}:{line}: {text.strip()!r} has a point, and the decimal mark is a comma",
                        write_instead="write it without the point, or leave decimal out where the point is the mark",
                        argument="decimal",
                    )
    return found


def _wrong_row(path, delimiter: str, before: int, at: int, error: csv.Error) -> DataError:
    """Return what is wrong with the row behind the line `before`, of which `csv` refused the line `at`."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        text = list(islice(file, before, at))
    opened, closed = _last_quote(text, delimiter)
    if opened is None:
        return DataError(f"{path}:{at}: cannot be read as CSV: {error}")
    if closed is None:
        return DataError(
            f"{path}:{before + opened}: a cell begins with a quote that is never closed, so that the lines below belong to it",
            write_instead="close it, or leave it out; a quote inside of a quoted cell is written twice",
        )
    return DataError(
        f"{path}:{before + opened}: a cell begins with a quote that is closed in line {before + closed}, and text follows it",
        write_instead="put the other quote right behind it, or leave it out; a quote inside of a quoted cell is written twice",
    )


def _last_quote(lines: Sequence[str], delimiter: str) -> tuple[int | None, int | None]:
    """(line, from 1, in which the last quoted cell begins, the line in which it ends); None for what there is not.

    >>> _last_quote(['a,"b\\n', 'c",d,"e\\n', 'f\\n'], ","), _last_quote(['"a"b,c'], ","), _last_quote(["a,5\\" pipe"], ",")
    ((2, None), (1, 1), (None, None))
    """
    text, last, cell = "".join(lines), None, rf'(?:^|[{re.escape(delimiter)}\r\n]) *(")(?:[^"]|"")*(")?'
    for last in re.finditer(cell, text):
        if last[2] and text[last.end() : last.end() + 1] not in ("", delimiter, "\r", "\n"):
            break
    if last is None:
        return None, None
    opened, closed = (len(re.findall(r"\r\n?|\n", text[: last.start(k)])) + 1 for k in (1, 2))
    return opened, closed if last[2] else None


def _column(name, texts, lines, nominal: bool, nominal_if_text: bool, role: str):
    """(column, numbers). Text that is not a category is marked unusable, to be refused where it is used."""
    if role == "answer":
        said = answers_of(texts)
        if said is not None:
            return DataColumn(name, said[0]), said[1]
        texts = as_numbers(texts)
    if nominal:
        return _nominal(name, texts)
    try:
        numbers = [number(text) for text in texts]
    except ValueError:
        if nominal_if_text and not _is_one_of_numbers(texts):
            return _nominal(name, texts)
    else:
        for value, text, line in zip(numbers, texts, lines, strict=True):
            if np.isinf(value):
                return DataColumn(name, unusable=f"is infinite, {text!r} in line {line}"), numbers
        return DataColumn(name), numbers
    return DataColumn(name, unusable=no_number(texts, lines, role)), [np.nan] * len(texts)


def _is_one_of_numbers(texts) -> bool:
    """Tell whether a column with text is meant to hold numbers: by few cells with text, or by one text beside many numbers.

    >>> _is_one_of_numbers(["unknown", *map(str, range(20))]), _is_one_of_numbers(["1", "2", "other"])
    (True, False)
    """
    there = [text.strip() for text in texts if not is_missing(text)]
    words = [text for text in there if not is_number(text)]
    if len(words) <= SETTINGS.mistake_share * len(texts):
        return True
    return len(set(words)) == 1 and len(set(there)) - 1 > SETTINGS.code_values


def _nominal(name, texts):
    """Categories in the order of `in_order`."""
    texts = [text.strip() for text in texts]
    present = {text for text in texts if not is_missing(text)}
    values = in_order(present)
    code = {value: float(k) for k, value in enumerate(values)}
    return DataColumn(name, tuple(values)), [code.get(text, np.nan) for text in texts]
