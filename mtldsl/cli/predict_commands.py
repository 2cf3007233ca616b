"""`mtldsl predict` and `mtldsl report`: a saved solution on new rows, and its page."""

from __future__ import annotations

import shlex
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from mtldsl.cli.command import OK, OVER, PAGES, TABLES, Command, add_marks, check_ending, marks_of
from mtldsl.cli.output import print_content, save_text
from mtldsl.errors import DataError, ModelError
from mtldsl.utils.files import check_writable, named

# --------------------------------------------------------------------------------------------------------------
# `mtldsl predict`: a saved solution on new rows.


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
        help="the column that tells which task a row is of: one prediction per row in place of one per task",
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
        "-o",
        "--output",
        type=Path,
        metavar="PATH",
        help=f"write there (.csv) in place of standard output, {OVER}",
    )


def _saved(path: Path):
    """The solution in a file. DataError, in the terminal's words, for a file of another kind."""
    from mtldsl.solution.solution import Solution

    try:
        return Solution.load(path)
    except DataError as error:
        raise error.about(str(path)) from error


def _predict(options) -> int:
    from mtldsl.cli.output import new_predictions

    check_ending(options.output, "--output", TABLES)
    with _rows_of(options.new) as new:
        text = new_predictions(
            _saved(options.model), new, task=options.task, keep=options.keep, probabilities=options.probabilities,
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
    "predict new rows by a saved solution, as CSV: labels (after its thresholds), numbers or counts, a column per task",
    _arguments,
    _predict,
    epilog="the statistics of [data] standardize and impute are applied to the new rows; of a graph of labels a last column says whether the labelling "
    "is proven to be the best",
    examples=(
        "mtldsl predict exams.npz new.csv --keep id > out.csv",
        "head -n 5 new.csv | mtldsl predict exams.npz -",
    ),
)


# --------------------------------------------------------------------------------------------------------------
# `mtldsl report`: the page of a saved solution, scored on rows that were held out.


def _report_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="a solution (.npz) that solve wrote")
    parser.add_argument(
        "rows", type=Path, nargs="?", metavar="ROWS",
        help="rows with labels that were not learned on (.csv), or the problem file (.toml), whose held-out rows are taken; without it there are "
        "no scores",
    )  # fmt: skip
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="PATH",
        help=f"the page (.html), {OVER}; without it MODEL's name with .html, where there is no such file yet",
    )
    parser.add_argument("--title", metavar="TEXT", help="what stands on top; without it MODEL's name")
    parser.add_argument(
        "--metric", action="append", default=[], metavar="NAME",
        help="a measure to be shown, such as f1 or mae; may be repeated; without it those that suit the labels",
    )  # fmt: skip
    parser.add_argument(
        "--bootstrap", type=int, default=200, metavar="N",
        help="samples of the rows behind every interval (default 200); 0: no intervals",
    )  # fmt: skip
    parser.add_argument(
        "--labels", metavar="COLUMN",
        help="the column of labels in ROWS, where --task tells tasks apart, or where the tasks are its classes; without it a column per task",
    )  # fmt: skip
    parser.add_argument("--task", metavar="COLUMN", help="the column of ROWS that tells which task a row is of")  # fmt: skip
    add_marks(parser, "ROWS")


def _report(options) -> int:
    from mtldsl.problems.separate_models import separate_models
    from mtldsl.solution.headline_sections import ReportContext, of_tasks
    from mtldsl.solution.score import as_measure
    from mtldsl.solution.solution_page import html_report

    if options.model.suffix == ".toml":
        raise DataError(
            f"{options.model} is a problem file, and MODEL is the solution that solve writes",
            write_instead=f"write mtldsl report {shlex.quote(str(options.model.with_suffix('.npz')))} {shlex.quote(str(options.model))}",
        )
    path = options.output or named(options.model).with_suffix(".html")
    check_ending(path, "--output", PAGES)
    if (
        options.output is None and path.is_file()
    ):  # nobody typed this name, and `solve` may have written a fuller page there
        raise DataError(
            f"{path} is there already",
            write_instead=f"write -o and another name, or -o {shlex.quote(str(path))} to overwrite it",
        )
    check_writable(path)
    for name in options.metric:
        as_measure(name, "--metric")
    solution, training, tuned = _saved(options.model), None, None
    tasks = None
    if options.rows is not None and options.rows.suffix == ".toml":
        tasks, training, tuned = _of_problem_file(options, solution)
    elif options.rows is not None:
        from mtldsl.data.readers.new_rows import read_held_out

        names = solution.feature_names or tuple(map(str, range(len(solution.W))))
        try:
            tasks = read_held_out(
                options.rows, names, solution.task_names, signs=solution.loss["labels"] in ("sign", "indicators"), labels=options.labels,
                task=options.task, **marks_of(options, options.rows), description=solution.description, fill=solution.schema.fill,
            )  # fmt: skip
        except DataError as error:
            lacking = any(f"no column {name!r}" in str(error) for name in solution.task_names)
            if options.labels is not None or not lacking:
                raise
            raise DataError(
                error.what, term=error.term,
                write_instead="where tasks are told apart by rows write --task COLUMN --labels COLUMN, and where they are the classes of one "
                "column --labels COLUMN",
            ) from error  # fmt: skip
    if tasks is not None:
        # a problem file whose tasks stand in another order has other rows now, and so another split
        judged = of_tasks(solution, tasks, by_name=True) if training is None else solution
        tasks = judged.schema.alike(tasks, "report")
    separate = None
    if training is not None:
        solution = replace(solution, trained_on=training)
        separate = separate_models(training, tuned if solution.thresholds is not None else None)
    title = options.title or options.model.stem
    save_text(path, html_report(ReportContext(solution, tasks, repeat=_typed(options), title=title, metrics=tuple(options.metric), bootstrap=options.bootstrap, separate=separate, held_out=training is not None, by_name=True)))  # fmt: skip
    print_content(f"{path} is written", one_line=True)
    return OK


def _of_problem_file(options, solution):
    """(rows held out, training rows, what thresholds are tuned for) as a problem file says; DataError where it states another model than was solved."""
    from mtldsl.cli.problem_files.problem_file import load_problem

    for key in ("labels", "task"):
        if getattr(options, key) is not None:
            raise DataError(f"--{key} is for a table; a problem file says it itself", term=options.rows)
    with load_problem(options.rows) as file:
        if str(file.problem) != solution.model:
            raise DataError(
                f"states another model now than {options.model} was learned with ({solution.model})", term=options.rows,
                write_instead="solve it again, or give held-out rows as a table",
            )  # fmt: skip
        if file.tasks_test is None:
            raise DataError("holds no rows out", term=options.rows, write_instead="write [split], or give held-out rows as a table")  # fmt: skip
        return file.tasks_test, file.tasks_train, file.tuned_for


def _typed(options) -> str:
    words = ["mtldsl", "report", options.model.name, *([options.rows.name] if options.rows else [])]
    for key in ("labels", "task"):
        if getattr(options, key) is not None:
            words += [f"--{key}", getattr(options, key)]
    words += ["--bootstrap", str(options.bootstrap)] if options.bootstrap != 200 else []
    return shlex.join([*words, *(part for name in options.metric for part in ("--metric", name))])


REPORT = Command(
    "report",
    "write the page of a saved solution: its proof as saved, scores on held-out rows, weights, the model",
    _report_arguments,
    _report,
    epilog="A page of a saved solution says that its proof was not verified here; `mtldsl solve FILE --report PATH` solves, proves and writes at once.",
    examples=("mtldsl report exams.npz exams.toml -o exams.html", "mtldsl report exams.npz held_out.csv --task school --labels score -o exams.html"),
)  # fmt: skip
