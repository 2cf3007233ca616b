"""`mtldsl predict`: a saved solution on new rows."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from mtldsl.cli.command import OK, Command
from mtldsl.cli.marks import add_marks, marks_of
from mtldsl.cli.options import OVER, TABLES, check_ending
from mtldsl.cli.output import print_content, save_text
from mtldsl.errors import DataError, ModelError

__all__ = ["PREDICT"]


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="a solution (.npz) that solve wrote")
    parser.add_argument(
        "new",
        type=Path,
        metavar="NEW",
        help="new rows: a CSV file with the features' columns by name, an .npz file with a matrix X, or - for CSV from standard input",
    )
    parser.add_argument(
        "--task",
        metavar="COLUMN",
        help="the column that tells which task a row is of: one prediction a row in place of one a task",
    )
    parser.add_argument(
        "--probabilities",
        action="store_true",
        help="the probability of +1 beside every label (losses that model it)",
    )
    parser.add_argument("--scores", action="store_true", help="the decision function beside every label")
    parser.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="COLUMN",
        help="copy this column of NEW, such as an id; may be repeated",
    )
    add_marks(parser, "NEW")
    parser.add_argument(
        "--output", type=Path, metavar="PATH", help=f"write there (.csv) in place of standard output, {OVER}"
    )


def _predict(options) -> int:
    from mtldsl.report.predictions import new_predictions
    from mtldsl.solution.solution import Solution

    check_ending(options.output, "--output", TABLES)
    with _rows_of(options.new) as new:
        text = new_predictions(
            Solution.load(options.model), new, task=options.task, keep=options.keep, probabilities=options.probabilities,
            scores=options.scores, **marks_of(options, new),
        )  # fmt: skip
    if options.output is None:
        print_content(text.rstrip("\n"), one_line=True)
    else:
        save_text(options.output, text)
    return OK


@contextmanager
def _rows_of(new: Path) -> Iterator[Path]:
    """The file of new rows; standard input, where it is -, as a file that is gone afterwards."""
    if str(new) != "-":
        yield new
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / "standard_input.csv"
        path.write_bytes(sys.stdin.buffer.read())
        try:
            yield path
        except (DataError, ModelError) as error:
            raise type(error)(str(error).replace(str(path), "standard input")) from error


PREDICT = Command(
    "predict",
    "predict new rows by a saved solution, as CSV: labels (after its thresholds), numbers or counts, a column a task",
    _arguments,
    _predict,
    epilog="the statistics of [data] standardize and impute are applied to the new rows; of a graph of labels a last column says whether the labelling "
    "is proven to be the best",
    examples=(
        "mtldsl predict exams.npz new.csv --keep id > out.csv",
        "head -n 5 new.csv | mtldsl predict exams.npz -",
    ),
)
