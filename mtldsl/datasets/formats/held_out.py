"""Rows with labels, for a model that is there: the columns that it was learned on, and its tasks, by name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mtldsl.datasets.formats.cells import as_numbers, codes_of, is_number, number
from mtldsl.datasets.formats.new_inputs import TextRows
from mtldsl.errors import DataError
from mtldsl.system.reading import regular_file
from mtldsl.tasks import Tasks
from mtldsl.tasks.description import NOTHING_KNOWN, DataDescription, TableColumn

__all__ = ["read_held_out"]


def read_held_out(
    path, features: Sequence[str], tasks: Sequence[str], *, signs: bool, labels: str | None = None, task: str | None = None,
    description: DataDescription = NOTHING_KNOWN, delimiter: str = ",", decimal: str | None = None, fill: np.ndarray | None = None,
) -> Tasks:  # fmt: skip
    """Tasks with the features and tasks of a model, from a CSV file.

    labels      : the column of labels, where the tasks are told apart by rows (`task`), or are the classes of one column; None: those that
                  were learned on where the file has them, else a column a task
    task        : the column that tells the tasks apart by rows
    signs       : labels are -1 and +1, and 0/1 and no/yes are read as these
    description, decimal, fill : as in `read_inputs`
    Empty labels are missing. DataError for columns that are not there, labels that are not numbers, classes that are not known, and a task
    without a row.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "held.csv"
    >>> _ = path.write_text("u,maths,physics\\n1,0,1\\n2,1,\\n")
    >>> read_held_out(path, ["u"], ["maths", "physics"], signs=True).per_task(read_held_out(path, ["u"], ["maths", "physics"], signs=True).targets)
    [array([-1.,  1.]), array([1.])]
    """
    path = regular_file(path)
    if task is not None and labels is None:
        raise DataError(f"task {task!r} tells tasks apart by rows", term=path, write_instead="name the column of their labels, too")  # fmt: skip
    rows = TextRows.read(path, delimiter, description.decimal if decimal is None else decimal)
    known = {column.name for column in description.labels}
    if labels is None and known | {description.task or ""} <= rows.cells.keys() | {""}:
        task = description.task
        columns = [column for column in description.labels if task or set(column.made) & set(tasks)]
    else:
        columns = []
    if labels is not None:
        columns = [_renamed(description, labels, tasks, task is not None)]
    columns = columns or [TableColumn(name, (), (name,)) for name in tasks]
    found: dict[str, np.ndarray] = {}
    for column in columns:
        found |= _labels(rows, column, signs)
    X = rows.inputs(features, description, fill)
    names = {"task_names": list(tasks), "feature_names": list(features)}
    if task is None:
        return Tasks.shared(X, np.column_stack([found[name] for name in tasks]), **names)
    (y,) = found.values()
    ids = np.array(rows.require(task))
    strange = np.flatnonzero(~np.isin(ids, tasks))
    if strange.size:
        raise DataError(f"{rows.place(strange[0])}: column {task!r} names a task {str(ids[strange[0]])!r} that the model does not know")  # fmt: skip
    each = [np.flatnonzero((ids == name) & ~np.isnan(y)) for name in tasks]
    lacking = [name for name, own in zip(tasks, each, strict=True) if not own.size]
    if lacking:
        raise DataError(f"task {lacking[0]!r} has no labelled row ({len(lacking)} such tasks)", term=path, write_instead="give rows of every task")  # fmt: skip
    return Tasks.separate([X[own] for own in each], [y[own] for own in each], **names)


def _renamed(description: DataDescription, labels: str, tasks: Sequence[str], by_rows: bool) -> TableColumn:
    """The column of labels as the caller calls it: what was learned on, else numbers, or the classes that the tasks are called by."""
    learned = description.label_of(tasks[0])
    if learned is not None:
        return TableColumn(labels, learned.values, learned.parts)
    alone = by_rows or len(tasks) == 1
    return TableColumn(labels, (), (tasks[0],)) if alone else TableColumn(labels, tuple(tasks), tuple(tasks))


def _labels(rows: TextRows, column: TableColumn, signs: bool) -> dict[str, np.ndarray]:
    """{task: (n,) labels}, NaN where there is none."""
    cells = rows.require(column.name)
    if column.is_of_numbers:
        return {column.made[0]: _numbers(rows, column.name, signs)}
    table = 2.0 * column.indicators(codes_of(column, cells, rows.place, labels=True)) - 1.0
    return dict(zip(column.made, table.T, strict=True))


def _numbers(rows: TextRows, name: str, signs: bool) -> np.ndarray:
    cells = rows.require(name)
    cells = as_numbers(cells) if signs else cells
    wrong = next((i for i, cell in enumerate(cells) if not is_number(cell)), None)
    if wrong is not None:
        raise DataError(
            f"{rows.place(wrong)}: the labels {name!r} hold {cells[wrong]!r}, which is not a number"
        )
    y = np.array([number(cell) for cell in cells])
    known = y[~np.isnan(y)]
    if signs and np.isin(known, (0.0, 1.0)).all() and (known == 0).any():
        return 2.0 * y - 1.0
    return y
