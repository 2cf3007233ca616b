"""Output of the command line: what it prints, and the files of predictions, pictures and reports (made in `solution`) that it writes."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mtldsl.cli.problem_files.data_sections import csv_rows
from mtldsl.cli.problem_files.problem_file import ProblemFile
from mtldsl.data.derived import label_table
from mtldsl.data.readers.new_rows import read_inputs
from mtldsl.data.readers.table import answer
from mtldsl.data.table_description import TableColumn
from mtldsl.display.sections import visible, visible_in_json, visible_record
from mtldsl.errors import DataError, ModelError
from mtldsl.solution.predictors import sign_tasks
from mtldsl.solution.solution import Solution
from mtldsl.utils.files import atomic_file

#: Letters of a line of a message: what was typed is quoted in it, and may be long.
LINE_CHARACTERS = 1000


def show(options, record: dict, report, line=None) -> None:
    """A record as --json says, as one `line` as --quiet says, else as `report` lays it out."""
    if options.json:
        from mtldsl.cli.record import plain

        print_json(plain(record))
    elif line is not None and options.quiet:
        print_content(line(visible_record(record)), one_line=True)
    else:
        print_content(report(visible_record(record)))


def print_error(error: Exception) -> None:
    """The message on stderr: control characters spelled out, the middle of a long line left out."""
    said = str(error)
    lines = visible(said if said.startswith("mtldsl ") else f"mtldsl: {said}", kept="\n").split("\n")
    half = LINE_CHARACTERS // 2
    lines = [line if len(line) <= LINE_CHARACTERS else f"{line[:half]} ... {line[-half:]}" for line in lines]
    print("\n".join(lines), file=sys.stderr)


def print_json(value) -> None:
    print_content(visible_in_json(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)))


def print_content(content, one_line: bool = False) -> None:
    """Plain text as it is, anything else through rich, broken at the width of the terminal unless it is to be one line.

    A reader that has left, as `head` does, changes nothing. DataError where what is printed goes to a disk that is full, or nowhere.
    """
    if sys.stdout is None:  # the shell's >&-
        raise DataError("standard output is closed", write_instead="print to a file, or to /dev/null")
    try:
        if isinstance(content, str):
            print(content)
        else:
            console = _console()
            if console.is_terminal:
                console.print(content, soft_wrap=one_line)
            else:  # without the spaces with which rich fills lines up
                with console.capture() as held:
                    console.print(content, soft_wrap=one_line)
                print("\n".join(line.rstrip(" ") for line in held.get().split("\n")), end="")
        sys.stdout.flush()
    except BrokenPipeError:
        _leave_output()
    except OSError as error:
        _leave_output()
        raise DataError(
            f"standard output cannot be written ({error.strerror or error}); print to where there is room"
        ) from error


def _leave_output() -> None:
    """Return what is still to be printed goes nowhere, at the end of the process too."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _console():
    from rich.console import Console

    from mtldsl.display.terminal_layout import PLAIN

    class OutputPipe(Console):
        def on_broken_pipe(
            self,
        ):  # rich would end the process with exit code 1, which means something else here
            raise BrokenPipeError

    return OutputPipe(**PLAIN)


def save_text(path: Path, text: str) -> None:
    with atomic_file(path) as file:
        file.write(text.encode())


def save_picture(path: Path, draw) -> None:
    """The picture on the Axes that `draw()` returns, in the format that the ending says."""
    from mtldsl.display.pictures.axes import pyplot

    plt = pyplot()
    ax = draw()
    with atomic_file(path) as file:
        ax.figure.savefig(file, format=path.suffix[1:], bbox_inches="tight", dpi=200)
    plt.close(ax.figure)


class SolvedFile(NamedTuple):
    """A problem file that was solved: `record` is the whole of it as plain values, `code` the exit code."""

    record: dict
    file: Any
    solution: Any
    check: Any
    chosen: Any
    code: int


def write(outputs: list[tuple[str, Path]], ran: SolvedFile) -> None:
    """Write to each (kind, path) a proof, or the solution, the predictions or the report, as its ending says.

    DataError for those that cannot be written, after the others were.
    """
    refused = []
    for kind, path in outputs:
        try:
            if kind == "proof":
                ran.solution.certificate.save(path)
            elif path.suffix == ".npz":
                ran.solution.save(path)
            else:
                with atomic_file(path) as file:
                    file.write(_report(path, ran).encode())
        except (DataError, ModelError) as error:
            refused.append(str(error))
    if refused:
        raise DataError("; ".join(refused))


def _report(path: Path, ran: SolvedFile) -> str:
    if path.suffix == ".csv":
        return predictions_of(ran.file, ran.solution)
    from mtldsl.cli.record import plain
    from mtldsl.cli.run_report import run_report, to_text

    if path.suffix == ".json":
        return visible_in_json(json.dumps(plain(ran.record), indent=2, ensure_ascii=False)) + "\n"
    text = to_text(run_report(visible_record(ran.record)))
    return text if path.suffix == ".txt" else _page(path, ran, text)


def _page(path: Path, ran: SolvedFile, text: str) -> str:
    from mtldsl.display.html import PageSection
    from mtldsl.display.sections import Panel
    from mtldsl.problems.separate_models import separate_models
    from mtldsl.solution.headline_sections import ReportContext
    from mtldsl.solution.solution_page import html_report

    file = ran.file
    facts = ReportContext(
        ran.solution, file.tasks_test, ran.check, ran.chosen, repeat=f"mtldsl solve {file.path.name}",
        title=file.title or path.stem, metrics=tuple(file.metrics), separate=separate_models(file.tasks_train, file.tuned_for), held_out=True,
        more=(PageSection("Everything, as the terminal shows it", panels=[Panel("", text=text)], folded=True),),
    )  # fmt: skip
    return html_report(facts)


# --------------------------------------------------------------------------------------------------------------
# Predictions as CSV: of new rows, or of those that were held out.


def predictions_of(file: ProblemFile, solution: Solution) -> str:
    """Return what [output] predictions of a problem file says: of new rows, or of those held out."""
    said = dict(file.predictions or {})
    if "new" not in said:
        return held_out_predictions(file, solution, **said)
    marks = {key: file.data[key] for key in ("delimiter", "decimal") if key in file.data}
    return new_predictions(solution, said.pop("new"), **marks, **said)


def new_predictions(
    solution: Solution, path: Path, *, task: str | None = None, keep: Sequence[str] = (), probabilities: bool | None = None,
    scores: bool = False, delimiter: str = ",", decimal: str | None = None,
) -> str:  # fmt: skip
    """A line a row of a CSV file (or of X in an .npz file), columns found by name: a prediction a task, or, where `task` names the column
    that tells tasks apart, one of its own task.

    Labels are those of the table that was learned on: 0 and 1, no and yes, the names of classes.

    keep          : columns that are copied
    probabilities : of +1, beside the labels; None: where the loss models them
    scores        : the decision function beside them
    A last column, of a graph of labels, says whether the labelling is proven to be the best.
    """
    names = solution.feature_names or tuple(map(str, range(len(solution.W))))
    if solution.kernel_map is not None:
        raise DataError(
            "the model was learned on kernels, whose inputs are not columns",
            write_instead="write Solution.load(path).predict(X) in Python",
        )
    beside = [*keep, *([task] if task else [])]
    X, kept = read_inputs(
        path,
        names,
        list(dict.fromkeys(beside)),
        description=solution.description,
        delimiter=delimiter,
        decimal=decimal,
        fill=solution.schema.fill,
    )
    told = _prediction_tables(solution, X, probabilities, scores)
    columns: dict[str, Any] = {name: kept[name] for name in keep}
    if task:
        at = _places(solution, path, task, kept[task])
        columns[task] = kept[task]
        own = {what or "prediction": values[np.arange(len(at)), at] for what, values in told.items()}
        return _as_csv(columns | own | {"prediction": _spelled(_units(solution)[0], own["prediction"])})
    return _as_csv(columns | _by_label(solution, told, X) | _certified(solution, X))


def held_out_predictions(
    file: ProblemFile, solution: Solution, *, keep: Sequence[str] = (), probabilities: bool | None = None, scores: bool = False
) -> str:  # fmt: skip
    """A line a row that was held out: its number among the rows of the data, from 1, its labels, and what is predicted."""
    tasks, rows = file.tasks_test, file.test_rows
    assert tasks is not None and rows is not None
    seen = replace(solution, scaling=None, imputation=None)  # these inputs are scaled and filled already
    columns: dict[str, Any] = {"row": [str(row + 1) for row in rows], **_copied_columns(file, rows, keep)}
    if tasks.is_shared:
        told = _prediction_tables(seen, tasks.X, probabilities, scores)
        labels = label_table(tasks, tasks.targets)
        columns |= {f"{name}:label": column for name, column in _as_learned(seen, labels, labels).items()}
        columns |= _by_label(seen, told, tasks.X) | _certified(seen, tasks.X)
    else:
        unit = _units(seen)[0]
        columns |= {
            "task": [tasks.task_names[i] for i in tasks.task_of],
            "label": _spelled(unit, tasks.targets),
        }
        found = [_prediction_tables(seen, X, probabilities, scores) for X in tasks.inputs]
        for what in found[0]:
            own = [told[what][:, i] for i, told in enumerate(found)]
            columns[what or "prediction"] = (
                np.concatenate(own) if what else _spelled(unit, np.concatenate(own))
            )
    order = np.argsort(rows, kind="stable")
    return _as_csv({name: [values[k] for k in order] for name, values in columns.items()})


def _copied_columns(file: ProblemFile, rows, keep: Sequence[str]) -> dict[str, list[str]]:
    """Columns of the data file that are copied."""
    if not keep:
        return {}
    found = csv_rows(file.path.parent, file.data)
    if found is None:
        raise DataError("keep copies columns of a CSV file", term="[output] predictions", write_instead="leave it out")  # fmt: skip
    names, cells, _ = found
    lacking = next((name for name in keep if name not in names), None)
    if lacking is not None:
        raise DataError(f"there is no column {lacking!r} to keep", term=file.path.parent / file.data["path"])
    return {name: [cells[row][names.index(name)].strip() for row in rows] for name in keep}


def _prediction_tables(
    solution: Solution, X, probabilities: bool | None, scores: bool
) -> dict[str, np.ndarray]:
    """{"": predictions, "probability": ..., "score": ...}, (n, m) each."""
    told = {"": np.asarray(solution.predict(X))}
    if probabilities is not False:
        try:
            told["probability"] = np.asarray(solution.predict_proba(X))
        except ModelError:
            if probabilities:
                raise
    if scores:
        told["score"] = np.asarray(solution.decision_function(X))
    return told


def _units(solution: Solution) -> list[TableColumn | None]:
    """The column of labels whose categories a task's -1 and +1 stand for; None where they are numbers, or where not all classes are here."""
    found: list[TableColumn | None] = []
    for name, signs in zip(
        solution.task_names, sign_tasks(solution.loss, len(solution.task_names)), strict=True
    ):
        column = solution.description.label_of(name)
        whole = (
            column is not None
            and len(column.values) > 1
            and (len(column.values) == 2 or {*column.made} <= {*solution.task_names})
        )
        found.append(column if signs and whole else None)
    return found


def _spelled(unit: TableColumn | None, signs: np.ndarray) -> np.ndarray:
    """-1 and +1 of one task as its two categories, "" where there is none."""
    if unit is None:
        return signs
    return np.where(np.isnan(signs), "", np.where(signs > 0, unit.values[1], unit.values[0]))


def _as_learned(solution: Solution, answers: np.ndarray, ranks: np.ndarray) -> dict[str, np.ndarray]:
    """{column of labels: (n,) answers as the table that was learned on has them}: of several classes that with the highest rank.

    answers, ranks : (n, m)
    """
    columns: dict[str, np.ndarray] = {}
    for i, (name, unit) in enumerate(zip(solution.task_names, _units(solution), strict=True)):
        if unit is None or len(unit.values) == 2:
            columns[name] = _spelled(unit, answers[:, i])
        elif unit.name not in columns:
            classes = ranks[:, [solution.task_names.index(part) for part in unit.made]]
            lacking = np.isnan(classes).all(axis=1)
            best = np.where(np.isnan(classes), -np.inf, classes).argmax(axis=1)
            columns[unit.name] = np.where(lacking, "", np.array(unit.values)[best])
    return columns


def _by_label(solution: Solution, told: dict[str, np.ndarray], X) -> dict[str, np.ndarray]:
    """One column a label, and behind it what was asked for beside it, task by task."""
    units = _units(solution)
    several = any(unit is not None and len(unit.values) > 2 for unit in units)
    cuts = 0.0 if solution.thresholds is None else solution.thresholds
    ranks = np.asarray(solution.decision_function(X)) - cuts if several else told[""]
    answers, columns = _as_learned(solution, told[""], ranks), {}
    for i, (name, unit) in enumerate(zip(solution.task_names, units, strict=True)):
        label = name if name in answers else unit.name if unit is not None else name
        columns[label] = answers[label]
        positive = name
        if (
            unit is not None and len(unit.values) == 2 and answer(unit.values[1]) is None
        ):  # a class, and not yes
            positive = f"{name}={unit.values[1]}"
        columns |= {
            f"{name if what == 'score' else positive}:{what}": values[:, i]
            for what, values in told.items()
            if what
        }
    return columns


def _certified(solution: Solution, X) -> dict[str, list[str]]:
    if solution.label_graph is None:
        return {}
    return {"certified": ["yes" if one else "no" for one in solution.predict(X, return_certified=True)[1]]}


def _places(solution: Solution, path: Path, task: str, ids: Sequence[str]) -> np.ndarray:
    """The position of every row's task."""
    place = {name: i for i, name in enumerate(solution.task_names)}
    strange = next((name for name in ids if name not in place), None)
    if strange is not None:
        known = ", ".join(map(repr, solution.task_names[:8]))
        raise DataError(
            f"{path}: column {task!r} names a task {strange!r} that the model does not know; it knows {known}"
        )
    return np.array([place[name] for name in ids])


def _as_csv(columns: dict[str, Any]) -> str:
    def cell(value) -> str:
        return "" if isinstance(value, float | np.floating) and np.isnan(value) else value

    return as_csv(columns, (map(cell, row) for row in zip(*columns.values(), strict=True)))


def as_csv(head: Iterable[str], rows: Iterable[Iterable]) -> str:
    """A table as CSV, its numbers with ten digits."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([f"{v:.10g}" if isinstance(v, float | np.floating) else v for v in row] for row in rows)
    return out.getvalue()
