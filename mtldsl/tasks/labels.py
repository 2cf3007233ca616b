"""Do the labels suit the loss? If not: the task, the row, the value, and what to write."""

from __future__ import annotations

import numpy as np

from mtldsl.errors import DataError
from mtldsl.tasks.data import TaskData

__all__ = ["require_labels"]


def require_labels(tasks: TaskData, kind: str, typed: str) -> None:
    """See `Tasks.require_labels`."""
    y = tasks.targets
    if kind == "real":
        return
    if kind == "sign":
        _refuse(tasks, (y != 1.0) & (y != -1.0), typed, "labels must be -1 or +1")
        _require_both_classes(tasks, typed)
    elif kind == "count":
        _refuse(tasks, (y < 0) | (y != np.floor(y)), typed, "labels must be counts 0, 1, 2, ...")
    else:
        raise ValueError(f'kind={kind!r}: "real", "sign" or "count"')


def _refuse(tasks: TaskData, bad, typed, hint) -> None:
    if not bad.any():
        return
    flat = int(np.flatnonzero(bad)[0])
    task, row = tasks.place(flat)
    if "-1" in hint and np.isin(tasks.per_task(tasks.targets)[task], (0.0, 1.0)).all():
        hint += "; for labels 0/1 write 2 * Y - 1 (reading a file: binary=True)"
    raise DataError(
        f"{typed}: label {tasks.targets[flat]:g} in task {tasks.task_names[task]!r}, row {row}; {hint}"
    )


def _require_both_classes(tasks: TaskData, typed) -> None:
    sums = np.add.reduceat(tasks.targets, tasks.offsets[:-1])
    one_class = np.flatnonzero(np.abs(sums) == tasks.counts)
    if one_class.size:
        i = int(one_class[0])
        raise DataError(
            f"{typed}: task {tasks.task_names[i]!r} has one class only (all {tasks.counts[i]} labels are "
            f"{tasks.targets[tasks.offsets[i]]:+g}); leave the task out, or give it labels of both classes"
        )
