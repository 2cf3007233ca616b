"""`mtldsl report`: the page of a saved solution, scored on rows that were held out."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path

from mtldsl.cli.command import OK, Command
from mtldsl.cli.marks import add_marks, marks_of
from mtldsl.cli.options import OVER, PAGES, check_ending
from mtldsl.cli.output import print_content, save_text
from mtldsl.errors import DataError
from mtldsl.system.atomic_files import check_writable

__all__ = ["REPORT"]


def _arguments(parser: ArgumentParser) -> None:
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
        help="the column of labels in ROWS, where --task tells tasks apart, or where the tasks are its classes; without it a column a task",
    )  # fmt: skip
    parser.add_argument("--task", metavar="COLUMN", help="the column of ROWS that tells which task a row is of")  # fmt: skip
    add_marks(parser, "ROWS")


def _report(options) -> int:
    from mtldsl.named_models.separate import separate_models
    from mtldsl.solution.metric_measure import as_measure
    from mtldsl.solution.page.build import html_report
    from mtldsl.solution.page.facts import Facts
    from mtldsl.solution.solution import Solution

    path = options.output or options.model.with_suffix(".html")
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
    solution, training, tuned = Solution.load(options.model), None, None
    tasks = None
    if options.rows is not None and options.rows.suffix == ".toml":
        tasks, training, tuned = _of_problem_file(options, solution)
    elif options.rows is not None:
        from mtldsl.datasets.formats.held_out import read_held_out

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
        tasks = solution.schema.alike(tasks, "report")
    separate = None
    if training is not None:
        solution = replace(solution, trained_on=training)
        separate = separate_models(training, tuned if solution.thresholds is not None else None)
    title = options.title or options.model.stem
    save_text(path, html_report(Facts(solution, tasks, repeat=_typed(options), title=title, metrics=tuple(options.metric), bootstrap=options.bootstrap, separate=separate, held_out=training is not None)))  # fmt: skip
    print_content(f"{path} is written", one_line=True)
    return OK


def _of_problem_file(options, solution):
    """(rows held out, training rows, what thresholds are tuned for) as a problem file says; DataError where it states another model than was solved."""
    from mtldsl.files.problem_file import load_problem

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
    _arguments,
    _report,
    epilog="A page of a saved solution says that its proof was not verified here; `mtldsl solve FILE --report PATH` solves, proves and writes at once.",
    examples=("mtldsl report exams.npz exams.toml -o exams.html", "mtldsl report exams.npz held_out.csv --task school --labels score -o exams.html"),
)  # fmt: skip
