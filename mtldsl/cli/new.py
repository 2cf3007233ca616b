"""`mtldsl new`: a commented problem file for a table, to begin with."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser
from pathlib import Path

from mtldsl.cli.command import OK, Command
from mtldsl.cli.options import check_ending
from mtldsl.cli.output import print_content
from mtldsl.errors import DataError
from mtldsl.system.atomic_files import atomic_file
from mtldsl.system.visible import visible

__all__ = ["NEW"]


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
    from mtldsl.files.drafting import draft

    labels = [name.strip() for text in options.labels for name in text.split(",") if name.strip()]
    check_ending(options.output, "--output", (".toml",))
    path = options.output or options.table.with_suffix(".toml")
    drafted = draft(
        options.table, labels, options.task, options.delimiter, options.output and options.output.parent
    )
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
