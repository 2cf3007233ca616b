"""What stands between the cells of a table on the command line, and between the digits of a number."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

__all__ = ["add_marks", "marks_of"]


def add_marks(parser: ArgumentParser, table: str) -> None:
    parser.add_argument(
        "--delimiter",
        metavar="C",
        help=f"of {table}, such as ';'; without it what makes the most columns of the first line",
    )
    parser.add_argument(
        "--decimal",
        metavar="C",
        help="a comma where 1,5 is one and a half: --decimal ,; without it as in the table that was learned on",
    )


def marks_of(options, path: Path) -> dict[str, Any]:
    """{"delimiter": ..., "decimal": ...} of a table in a CSV file, as its readers take them."""
    if path.suffix == ".npz":
        return {}
    from mtldsl.datasets.formats.csv_files import delimiter_of

    return {"delimiter": options.delimiter or delimiter_of(path), "decimal": options.decimal}
