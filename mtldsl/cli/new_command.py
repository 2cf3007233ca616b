"""`mtldsl new`: a commented draft of a problem file, guessed from the columns of a CSV file."""

from __future__ import annotations

import os
import shlex
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import TextWrapper
from typing import NamedTuple

from mtldsl.cli.command import OK, Command, check_ending
from mtldsl.cli.output import print_content
from mtldsl.cli.problem_files.column_roles import SETTINGS as ROLES
from mtldsl.cli.problem_files.column_roles import (
    ColumnRole,
    decimal_of,
    guess_of,
    inspect_column,
    shorten_list,
)
from mtldsl.data.readers.csv import delimiter_of, rows_of
from mtldsl.display.html import template
from mtldsl.display.sections import visible
from mtldsl.errors import DataError
from mtldsl.solution.measures import measure_of_rare
from mtldsl.utils.files import atomic_file, regular_file
from mtldsl.utils.validation import MISSING_TEXTS

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
    drafted = draft(
        options.table, labels, options.task, options.delimiter, options.output and options.output.parent
    )
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


@dataclass(frozen=True)
class NewSettings:
    """Size of what was guessed: `line_characters` of a line."""

    line_characters: int = 120


SETTINGS = NewSettings()


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
    path, labels: Sequence[str] = (), task: str | None = None, delimiter: str | None = None, folder=None
) -> Draft:
    """A commented problem file for a CSV file: `mtldsl new`.

    labels : columns of labels, one task each; none: the last column, or all columns at the end that say yes or no
    task   : the column that tells the tasks apart by rows; None: a column of text whose values all come often, of one label
    folder : where the problem file will stand; None: beside the table
    delimiter : what stands between cells; None: what makes the most columns of the first line
    The file says what was seen of every column, and why it is a feature or not. DataError for a column that is not there, and where
    nothing is left to learn from.
    """
    path = regular_file(path)
    if path.suffix.lower() in _OTHERS:
        raise DataError("is not a CSV file", term=path, write_instead=_OTHERS[path.suffix.lower()])
    delimiter = delimiter or delimiter_of(path)
    names, rows, _ = rows_of(path, delimiter, True)
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
    chosen = list(labels)
    if task and len(chosen) > 1:
        raise DataError(
            f"--task {task} tells the tasks apart by rows, and the labels {', '.join(chosen)} by columns", term=path,
            write_instead=f"write one of the two, such as --task {shlex.quote(task)} --labels {shlex.quote(chosen[0])}",
        )  # fmt: skip
    asked = task

    def can_be_tasks(label: str, name: str) -> bool:
        loss, options, _ = _loss([columns[label]])
        lacking = _by_task(rows, names.index(label), names.index(name), loss)[1]
        return (
            not lacking
            and not any("one_vs_rest" in one for one in options)
            and bool(_features(columns, {label, name})[2])
        )

    found = guess_of(
        columns, path.name, labels, task, lambda taken: bool(_features(columns, taken)[2]), can_be_tasks
    )
    chosen, task = found.labels, found.task
    dropped, one_hot, features = _features(columns, {*chosen, *found.dropped, *([task] if task else [])})
    dropped = found.dropped | dropped
    gaps = [(name, columns[name].missing) for name in features if columns[name].missing]
    if not features:
        raise DataError("no column is left to learn from", term=path)
    loss, options, why = _loss([columns[name] for name in chosen])
    parts = [columns[name] for name in chosen]
    lacking: list[str] = []
    if task:
        parts, lacking = _by_task(rows, names.index(chosen[0]), names.index(task), loss)
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
    wrap = TextWrapper(SETTINGS.line_characters, initial_indent="- ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False).wrap  # fmt: skip
    text = template("problem_file.toml.jinja", "cli").render(
        table=path.name, stem=path.stem, n_rows=len(rows), said=[line for one in found.said for line in wrap(one)],
        path=path.name if folder is None else os.path.relpath(path, folder),
        delimiter=delimiter, decimal=decimal, labels=chosen, task=task, lacking=lacking,
        loss=loss, options=options, why=why, metric=metric, alike=alike, shorten_list=shorten_list,
        one_hot=one_hot, dropped=dropped, gaps=gaps,
        repeated=len(rows) - len(set(map(tuple, rows))),
        ids=[one for one in columns.values() if one.is_called_id and 2 < len(one.values) < len(rows) - one.missing],
        roles=ROLES,
    )  # fmt: skip
    return Draft(text, found.said)


def _features(columns: dict[str, ColumnRole], taken: set[str]):
    """({name: why not}, categories, features)."""
    dropped, one_hot, features = {}, [], []
    for name, column in columns.items():
        if name in taken:
            continue
        if not name:
            dropped[name] = "no name, as where a data frame was written with its index"
        elif column.missing == column.rows:
            dropped[name] = "no value at all"
        elif 2 * column.missing > column.rows:
            dropped[name] = f"{column.missing:,} of {column.rows:,} cells are empty; fill them in to use it"
        elif column.wrong:
            many = (
                "one cell is not"
                if len(column.wrong) == 1
                else f"{len(column.wrong):,} cells are not, such as"
            )
            dropped[name] = (
                f"numbers, but {many} ({column.wrong[0]!r}); mend or empty {'it' if len(column.wrong) == 1 else 'them'} to use the column"
            )
        elif column.is_constant:
            dropped[name] = "one value only"
        elif column.is_id:
            dropped[name] = "a value of its own in every row, as an id has"
        elif column.kind == "text":
            again = " that repeat: it may tell tasks apart" if column.repeats else ""
            dropped[name] = f"text with {len(column.values):,} values{again}"
        else:
            features.append(name)
            if column.kind == "category":
                one_hot.append(name)
    return dropped, one_hot, features


def _by_task(rows, label: int, task: int, loss: str) -> tuple[list[ColumnRole], list[str]]:
    """(the labels of every task that can be split, the names of the others)."""
    cells: dict[str, list[str]] = {}
    for row in rows:
        if row[label].strip() not in MISSING_TEXTS and row[task].strip() not in MISSING_TEXTS:
            cells.setdefault(row[task].strip(), []).append(row[label])
    found = {name: inspect_column(name, texts) for name, texts in cells.items()}
    two = loss == "logistic_loss"
    lacking = [
        name for name, one in found.items() if (min(one.counts) < 2 or len(one.counts) < 2 if two else one.rows < 2)
    ]  # fmt: skip
    return [one for name, one in found.items() if name not in lacking], sorted(lacking)


def _loss(labels: list[ColumnRole]) -> tuple[str, list[str], str]:
    """(the word, options of [data], what the labels look like)."""
    if all(one.signs for one in labels):
        return "logistic_loss", [], "The labels are -1 and +1"
    if all(one.signs or one.zero_one for one in labels):
        return "logistic_loss", ["binary = true  # labels 0/1 are read as -1/+1"], "The labels are 0 and 1"
    if all(one.signs or one.zero_one or one.answers for one in labels):
        return (
            "logistic_loss",
            ["binary = true  # no and yes are read as -1 and +1"],
            "Every label says yes or no",
        )
    if len(labels) == 1 and labels[0].classes:
        shown = ", ".join(map(str, labels[0].values[:5]))
        return (
            "logistic_loss",
            ["one_vs_rest = true  # a task for each class against the rest"],
            f"The labels are classes ({shown}, ...)",
        )
    whole = all(float(v).is_integer() for one in labels if one.kind == "number" for v in one.values)
    few = len(labels) == 1 and labels[0].kind == "number" and 2 < len(labels[0].values) <= ROLES.class_values
    if few and whole and labels[0].rows > 5 * len(labels[0].values):
        hint = f"The labels are {len(labels[0].values)} whole numbers, read as amounts; if they are classes: logistic_loss and one_vs_rest = true"
        return "squared_loss", ["# one_vs_rest = true"], hint
    wrong = next((one for one in labels if one.kind != "number" and not one.answers), None)
    wrong = wrong or next((one for one in labels if one.kind != "number"), None)
    if wrong is None:
        return "squared_loss", [], "The labels are numbers"
    instead = "name labels that are numbers or classes, --labels COLUMN"
    if wrong.classes:
        said = (
            f"is text ({', '.join(wrong.values[:3])}{', ...' * (len(wrong.values) > 3)}), and one of several"
        )
        instead = f"write 0/1 or no/yes in its cells, as in those of the others, or name it alone, --labels {shlex.quote(wrong.name)}"
    elif wrong.wrong:
        said = f"has numbers, and text in {len(wrong.wrong):,} of its cells, such as {wrong.wrong[0]!r}"
        instead = "mend them, or leave them empty: these labels are then missing"
    elif wrong.is_constant:
        said = f"is {', '.join(map(repr, wrong.values)) or 'empty'} in every row"
        instead = "name labels that differ, --labels COLUMN"
    else:
        said = f"is text with {len(wrong.values):,} values"
    raise DataError(f"the label {wrong.name!r} {said}", write_instead=instead)
