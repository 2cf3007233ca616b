"""`mtldsl new`: a commented draft of a problem file, guessed from the columns of a CSV file."""

from __future__ import annotations

import os
import shlex
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from textwrap import TextWrapper
from typing import NamedTuple

from mtldsl.cli.command import OK, Command, check_ending
from mtldsl.cli.output import print_content
from mtldsl.cli.problem_files.column_roles import SETTINGS as ROLES
from mtldsl.cli.problem_files.column_roles import (
    decimal_of,
    features_of,
    guess_roles,
    inspect_column,
    labels_by_task,
    loss_of_labels,
    shorten_list,
)
from mtldsl.data.readers.csv import delimiter_of, rows_of
from mtldsl.data.readers.table import is_number, require_distinct
from mtldsl.display.html import template
from mtldsl.display.sections import visible
from mtldsl.errors import DataError
from mtldsl.solution.measures import measure_of_rare
from mtldsl.utils.files import atomic_file, regular_file

# --------------------------------------------------------------------------------------------------------------
# `mtldsl new`: a commented problem file for a table, to begin with.


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "table", type=Path, metavar="TABLE", help="a CSV file whose first line names the columns"
    )
    parser.add_argument(
        "--labels",
        metavar="COLUMN",
        nargs="+",
        default=[],
        help="columns of labels, with spaces or commas between; without it the last column, or all at the end that say yes or no",
    )
    parser.add_argument(
        "--task",
        metavar="COLUMN",
        help="the column that tells the tasks apart by rows; without it a column of text whose values all come often, where there is one label",
    )
    parser.add_argument(
        "--delimiter",
        metavar="C",
        help="such as ';'; without it what makes the most columns of the first line",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="PATH",
        help="write there (.toml) in place of beside TABLE; a problem file is edited by hand, and none that is there is overwritten",
    )
    parser.add_argument(
        "--print",
        action="store_true",
        dest="shown",
        help="print it, and write nothing",
    )


def _new(options) -> int:

    labels = [name.strip() for text in options.labels for name in text.split(",") if name.strip()]
    check_ending(options.output, "--output", (".toml",))
    drafted = draft(options.table, labels, options.task, options.delimiter, options.output)
    path = options.output or options.table.with_suffix(".toml")
    text = visible(drafted.text, kept="\n")
    if options.shown:
        print_content(text.rstrip("\n"), one_line=True)
        return OK
    if path.exists():
        raise DataError(
            f"{path} is there already", write_instead="write --output PATH or --print, or move it away"
        )
    with atomic_file(path) as file:
        file.write(text.encode())
    print_content(f"{path} is written. Read it, then: mtldsl solve {shlex.quote(str(path))}", one_line=True)
    for one in drafted.said:
        print_content(visible(one), one_line=True)
    return OK


NEW = Command(
    "new",
    "write a commented problem file for a CSV file, after a look at its columns",
    _arguments,
    _new,
    examples=("mtldsl new exams.csv", "mtldsl new exams.csv --labels maths physics"),
)


# --------------------------------------------------------------------------------------------------------------
# A first problem file for a table: which columns are labels, features, ids or tasks is guessed, said, and left to the reader to change.


#: Letters of a line of what was guessed.
LINE_CHARACTERS = 120


#: what to write of files that this does not draft
_OTHERS = {
    ".arff": 'write a problem file with [data] path = "...", labels = "LABELS.xml", or how many columns at the end are labels',
    ".mat": 'write a problem file with [data] path = "...", X = "X", Y = "Y"',
    ".npz": 'write a problem file with [data] path = "...", X = "X", Y = "Y"',
    ".parquet": 'write a problem file with [data] path = "...", engine = "dask", labels = [...]',
    ".xlsx": "save the sheet as CSV",
    ".xls": "save the sheet as CSV",
}


class Draft(NamedTuple):
    """The text of a problem file, and what was guessed in it, a paragraph each."""

    text: str
    said: list[str]


def draft(
    path,
    labels: Sequence[str] = (),
    task: str | None = None,
    delimiter: str | None = None,
    output: Path | None = None,
) -> Draft:
    """A commented problem file for a CSV file: `mtldsl new`.

    labels : columns of labels, one task each; none: the last column, or all columns at the end that say yes or no
    task   : the column that tells the tasks apart by rows; None: a column of text whose values all come often, of one label
    output : the problem file, whose name the files that it writes get; None: beside the table
    delimiter : what stands between cells; None: what makes the most columns of the first line
    The file says what was seen of every column, and why it is a feature or not. DataError for a column that is not there, and where
    nothing is left to learn from.
    """
    path = regular_file(path)
    output = output or path.with_suffix(".toml")
    if path.suffix.lower() in _OTHERS:
        raise DataError("is not a CSV file", term=path, write_instead=_OTHERS[path.suffix.lower()])
    delimiter = delimiter or delimiter_of(path)
    names, rows, _ = rows_of(path, delimiter, True)
    require_distinct(names, path)
    decimal = decimal_of(rows, delimiter)
    if decimal == ",":
        names, rows, _ = rows_of(path, delimiter, True, decimal)
    columns = {
        name: inspect_column(name, texts) for name, texts in zip(names, zip(*rows, strict=True), strict=True)
    }
    for name in (*labels, *([task] if task else [])):
        if name not in columns:
            raise DataError(
                f"there is no column {name!r}; the columns are {', '.join(names[:12])}", term=path
            )
    twice = next((name for name in labels if labels.count(name) > 1 or name == task), None)
    if twice is not None:
        raise DataError(
            f"--labels {','.join(labels)}{f' --task {task}' * bool(task)}: the column {twice!r} is named twice", term=path
        )  # fmt: skip
    if task and len(labels) > 1:
        raise DataError(
            f"--task {task} tells the tasks apart by rows, and the labels {', '.join(labels)} by columns", term=path,
            write_instead=f"write one of the two, such as --task {shlex.quote(task)} --labels {shlex.quote(labels[0])}",
        )  # fmt: skip
    asked = task
    chosen, task, left_out, said = guess_roles(columns, names, rows, path.name, labels, task)
    if all(map(is_number, names)):
        first = shorten_list(names)
        said.append(
            f"Names: {first}, the first line, which has numbers alone. If it is a row: put a line of names above it."
        )
    dropped, one_hot, features = features_of(columns, {*chosen, *left_out, *([task] if task else [])})
    dropped = left_out | dropped
    gaps = [(name, columns[name].missing) for name in features if columns[name].missing]
    if not features:
        raise DataError("no column is left to learn from", term=path)
    loss, options, why = loss_of_labels([columns[name] for name in chosen])
    parts = [columns[name] for name in chosen]
    lacking: list[str] = []
    if task:
        parts, lacking = labels_by_task(rows, names.index(chosen[0]), names.index(task), loss)
        if not parts:
            raise DataError(
                f"no task of {task!r} has two rows of either label {chosen[0]!r}, one to learn from and one to hold out", term=path,
                write_instead="leave --task out, or join tasks",
            )  # fmt: skip
    metric = (
        measure_of_rare(share for one in parts for share in one.shares) if loss == "logistic_loss" else None
    )
    # features that say yes and no in words as the label does may be labels, too
    others = [name for name in features if columns[name].answers] if columns[chosen[0]].answers else []
    alike = [] if labels or asked else chosen[:-1] or others
    wrap = TextWrapper(LINE_CHARACTERS, initial_indent="- ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False).wrap  # fmt: skip
    text = template("problem_file.toml.jinja", "cli").render(
        table=path.name, stem=output.stem, n_rows=len(rows), said=[line for one in said for line in wrap(one)],
        path=os.path.relpath(path, output.parent),
        delimiter=delimiter, decimal=decimal, labels=chosen, task=task, lacking=lacking,
        loss=loss, options=options, why=why, metric=metric, alike=alike, shorten_list=shorten_list,
        one_hot=one_hot, dropped=dropped, gaps=gaps,
        repeated=len(rows) - len(set(map(tuple, rows))),
        ids=[one for one in columns.values() if one.is_called_id and 2 < len(one.values) < len(rows) - one.missing],
        roles=ROLES,
    )  # fmt: skip
    return Draft(text, said)
