"""Rows with labels, for a model that is there: the columns that it was learned on, and its tasks, by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mtldsl.datasets.formats.cells import as_numbers, is_number, number
from mtldsl.datasets.formats.new_inputs import read_inputs
from mtldsl.errors import DataError
from mtldsl.tasks import Tasks

__all__ = ["read_held_out"]


def read_held_out(
    path, features: Sequence[str], tasks: Sequence[str], *, signs: bool, labels: str | None = None, task: str | None = None,
    delimiter: str = ",", decimal: str = ".", fill: np.ndarray | None = None,
) -> Tasks:  # fmt: skip
    """Tasks with the features and tasks of a model, from a CSV file.

    labels : the column of labels, where the tasks are told apart by rows (`task`), or are the classes of one column; None: a column a task
    task   : the column that tells the tasks apart by rows
    signs  : labels are -1 and +1, and 0/1 and no/yes are read as these
    fill   : (d,) as in `read_inputs`
    Empty labels are missing. DataError for columns that are not there, labels that are not numbers, and a task without a row.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "held.csv"
    >>> _ = path.write_text("u,maths,physics\\n1,0,1\\n2,1,\\n")
    >>> read_held_out(path, ["u"], ["maths", "physics"], signs=True).per_task(read_held_out(path, ["u"], ["maths", "physics"], signs=True).targets)
    [array([-1.,  1.]), array([1.])]
    """
    path = Path(path)
    if task is not None and labels is None:
        raise DataError(f"task {task!r} tells tasks apart by rows", term=path, write_instead="name the column of their labels, too")  # fmt: skip
    beside = [one for one in (labels, task) if one is not None] if labels is not None else list(tasks)
    X, kept = read_inputs(
        path, features, list(dict.fromkeys(beside)), delimiter=delimiter, decimal=decimal, fill=fill
    )
    if labels is None:
        Y = np.column_stack([_numbers(path, name, kept[name], signs) for name in tasks])
        return Tasks.shared(X, Y, task_names=list(tasks), feature_names=list(features))
    assert labels is not None
    if task is None:
        return _of_classes(path, X, labels, kept[labels], features, tasks, signs)
    y, ids = _numbers(path, labels, kept[labels], signs), np.array(kept[task])
    strange = sorted(set(ids.tolist()) - set(tasks))
    if strange:
        raise DataError(f"column {task!r} names a task {strange[0]!r} that the model does not know", term=path)  # fmt: skip
    rows = [np.flatnonzero((ids == name) & ~np.isnan(y)) for name in tasks]
    lacking = [name for name, own in zip(tasks, rows, strict=True) if not own.size]
    if lacking:
        raise DataError(f"task {lacking[0]!r} has no labelled row ({len(lacking)} such tasks)", term=path, write_instead="give rows of every task")  # fmt: skip
    return Tasks.separate(
        [X[own] for own in rows],
        [y[own] for own in rows],
        task_names=list(tasks),
        feature_names=list(features),
    )


def _of_classes(path: Path, X, labels: str, cells: Sequence[str], features, tasks, signs: bool) -> Tasks:
    """A task for each class of one column against the rest."""
    if len(tasks) == 1:
        y = _numbers(path, labels, cells, signs)
        return Tasks.shared(X, y[:, None], task_names=list(tasks), feature_names=list(features))
    known = {cell for cell in cells if cell not in ("", "?", "NA", "N/A", "NaN", "nan")}
    strange = sorted(known - set(tasks))
    if strange:
        raise DataError(f"column {labels!r} has a class {strange[0]!r} that the model does not know", term=path)  # fmt: skip
    Y = np.array([[np.nan if c not in known else 1.0 if c == name else -1.0 for name in tasks] for c in cells])  # fmt: skip
    return Tasks.shared(X, Y, task_names=list(tasks), feature_names=list(features))


def _numbers(path: Path, name: str, cells: Sequence[str], signs: bool) -> np.ndarray:
    cells = as_numbers(cells) if signs else cells
    try:
        y = np.array([number(cell) for cell in cells])
    except ValueError:
        text = next(cell for cell in cells if not is_number(cell))
        raise DataError(f"the labels {name!r} hold {text!r}, which is not a number", term=path) from None
    known = y[~np.isnan(y)]
    if signs and np.isin(known, (0.0, 1.0)).all() and (known == 0).any():
        return 2.0 * y - 1.0
    return y
