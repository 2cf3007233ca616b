"""`mtldsl predict`: a saved solution on new rows."""

from __future__ import annotations

import csv
import io
from argparse import ArgumentParser
from pathlib import Path

import numpy as np

from mtldsl.cli.command import OK, Command
from mtldsl.cli.output import print_content
from mtldsl.errors import DataError
from mtldsl.system.atomic_files import atomic_file

__all__ = ["PREDICT"]


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="a solution (.npz) that solve wrote")
    parser.add_argument(
        "new",
        type=Path,
        metavar="NEW",
        help="new rows: a CSV file with the features' columns by name, or an .npz file with a matrix X",
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
    parser.add_argument("--delimiter", default=",", metavar="C", help="of NEW, such as ';'")
    parser.add_argument("--output", type=Path, metavar="PATH", help="write there in place of standard output")


def _predict(options) -> int:
    from mtldsl.datasets.formats.new_inputs import read_inputs
    from mtldsl.solution.solution import Solution

    solution = Solution.load(options.model)
    names = solution.feature_names or tuple(map(str, range(len(solution.W))))
    if solution.kernel_map is not None:
        raise DataError(
            f"{options.model}: it was learned on kernels, whose inputs are not columns",
            write_instead="write Solution.load(path).predict(X) in Python",
        )
    beside = [*options.keep, *([options.task] if options.task else [])]
    X, kept = read_inputs(options.new, names, list(dict.fromkeys(beside)), delimiter=options.delimiter)
    columns = {name: kept[name] for name in options.keep}
    columns |= (
        _by_row(solution, X, kept[options.task], options) if options.task else _by_task(solution, X, options)
    )
    text = _as_csv(columns)
    if options.output is None:
        print_content(text.rstrip("\n"), one_line=True)
    else:
        with atomic_file(options.output) as file:
            file.write(text.encode())
    return OK


def _by_task(solution, X, options) -> dict:
    """One column a task, and what was asked for beside it."""
    columns = {}
    told = _told(solution, X, options)
    for i, task in enumerate(solution.task_names):
        columns |= {task if not what else f"{task}:{what}": values[:, i] for what, values in told.items()}
    if solution.label_graph is not None:
        _, certified = solution.predict(X, return_certified=True)
        columns["certified"] = ["yes" if one else "no" for one in certified]
    return columns


def _by_row(solution, X, ids: list[str], options) -> dict:
    """Every row by the weights of its own task."""
    place = {name: i for i, name in enumerate(solution.task_names)}
    strange = next((name for name in ids if name not in place), None)
    if strange is not None:
        known = ", ".join(map(repr, solution.task_names[:8]))
        raise DataError(
            f"{options.new}: column {options.task!r} names a task {strange!r} that the model does not know; it knows {known}"
        )
    at = np.array([place[name] for name in ids])
    told = _told(solution, X, options)
    found = {what or "prediction": values[np.arange(len(at)), at] for what, values in told.items()}
    return {options.task: ids} | found


def _told(solution, X, options) -> dict[str, np.ndarray]:
    """{"": predictions, "probability": ..., "score": ...}, (n, m) each."""
    told = {"": np.asarray(solution.predict(X))}
    if options.probabilities:
        told["probability"] = np.asarray(solution.predict_proba(X))
    if options.scores:
        told["score"] = np.asarray(solution.decision_function(X))
    return told


def _as_csv(columns: dict) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow([f"{cell:.10g}" if isinstance(cell, float | np.floating) else cell for cell in row])
    return out.getvalue()


PREDICT = Command(
    "predict",
    "predict new rows by a saved solution, as CSV: labels (after its thresholds), numbers or counts, a column a task",
    _arguments,
    _predict,
    epilog="the statistics of [data] standardize are applied to the new rows; of a graph of labels a last column says whether the labelling "
    "is proven to be the best",
)
