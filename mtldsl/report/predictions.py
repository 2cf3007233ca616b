"""Predictions as CSV: of new rows, or of those that were held out."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mtldsl.datasets.formats.csv_files import rows_of
from mtldsl.datasets.formats.new_inputs import read_inputs
from mtldsl.errors import DataError, ModelError
from mtldsl.files.problem_file import ProblemFile
from mtldsl.solution.solution import Solution
from mtldsl.tasks.derived import label_table

__all__ = ["held_out_predictions", "new_predictions", "predictions_of"]


def predictions_of(file: ProblemFile, solution: Solution) -> str:
    """What [output] predictions of a problem file says: of new rows, or of those held out."""
    said = dict(file.predictions or {})
    if "new" not in said:
        return held_out_predictions(file, solution, **said)
    marks = {key: file.data[key] for key in ("delimiter", "decimal") if key in file.data}
    return new_predictions(solution, said.pop("new"), **marks, **said)


def new_predictions(
    solution: Solution, path: Path, *, task: str | None = None, keep: Sequence[str] = (), probabilities: bool | None = None,
    scores: bool = False, delimiter: str = ",", decimal: str = ".",
) -> str:  # fmt: skip
    """A line a row of a CSV file (or of X in an .npz file), columns found by name: a prediction a task, or, where `task` names the column
    that tells tasks apart, one of its own task.

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
        delimiter=delimiter,
        decimal=decimal,
        fill=solution.schema.fill,
    )
    told = _told(solution, X, probabilities, scores)
    columns: dict[str, Any] = {name: kept[name] for name in keep}
    if task:
        at = _places(solution, path, task, kept[task])
        columns[task] = kept[task]
        columns |= {what or "prediction": values[np.arange(len(at)), at] for what, values in told.items()}
        return _as_csv(columns)
    return _as_csv(columns | _by_task(solution, told) | _certified(solution, X))


def held_out_predictions(
    file: ProblemFile, solution: Solution, *, keep: Sequence[str] = (), probabilities: bool | None = None, scores: bool = False
) -> str:  # fmt: skip
    """A line a row that was held out: its number among the rows of the data, from 1, its labels, and what is predicted."""
    tasks, rows = file.tasks_test, file.test_rows
    assert tasks is not None and rows is not None
    seen = replace(solution, scaling=None, imputation=None)  # these inputs are scaled and filled already
    columns: dict[str, Any] = {"row": [str(row + 1) for row in rows], **_kept(file, rows, keep)}
    if tasks.is_shared:
        told = _told(seen, tasks.X, probabilities, scores)
        labels = label_table(tasks, tasks.targets)
        columns |= {f"{name}:label": labels[:, i] for i, name in enumerate(tasks.task_names)}
        columns |= _by_task(seen, told) | _certified(seen, tasks.X)
    else:
        columns |= {"task": [tasks.task_names[i] for i in tasks.task_of], "label": tasks.targets}
        found = [_told(seen, X, probabilities, scores) for X in tasks.inputs]
        for what in found[0]:
            own = [told[what][:, i] for i, told in enumerate(found)]
            columns[what or "prediction"] = np.concatenate(own)
    order = np.argsort(rows, kind="stable")
    return _as_csv({name: [values[k] for k in order] for name, values in columns.items()})


def _kept(file: ProblemFile, rows, keep: Sequence[str]) -> dict[str, list[str]]:
    """Columns of the data file that are copied."""
    if not keep:
        return {}
    path = file.data.get("path")
    if not isinstance(path, str) or (
        Path(path).suffix.lower() != ".csv" and file.data.get("format") != "csv"
    ):
        raise DataError("keep copies columns of a CSV file", term="[output] predictions", write_instead="leave it out")  # fmt: skip
    names, cells, _ = rows_of(
        file.path.parent / path, file.data.get("delimiter", ","), file.data.get("header", True)
    )
    lacking = next((name for name in keep if name not in names), None)
    if lacking is not None:
        raise DataError(f"there is no column {lacking!r} to keep", term=file.path.parent / path)
    return {name: [cells[row][names.index(name)].strip() for row in rows] for name in keep}


def _told(solution: Solution, X, probabilities: bool | None, scores: bool) -> dict[str, np.ndarray]:
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


def _by_task(solution: Solution, told: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """One column a task, and what was asked for beside it."""
    return {
        name if not what else f"{name}:{what}": values[:, i]
        for i, name in enumerate(solution.task_names)
        for what, values in told.items()
    }


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
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow([_cell(cell) for cell in row])
    return out.getvalue()


def _cell(cell) -> str:
    if isinstance(cell, float | np.floating):
        return "" if np.isnan(cell) else f"{cell:.10g}"
    return cell
