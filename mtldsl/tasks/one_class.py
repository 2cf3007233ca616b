"""Tasks whose labels are all of one class: nothing can be learned of them, and real tables of labels have some."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from mtldsl.errors import DataError
from mtldsl.tasks.data import T, TaskData

__all__ = ["OneClassWarning", "leave_out", "listed_tasks", "of_one_class", "without_one_class"]


class OneClassWarning(UserWarning):
    """A task has labels of one class alone, and so no weights, or no score."""


def of_one_class(tasks: TaskData) -> np.ndarray:
    """(m,) whether all labels of a task are the same."""
    first = tasks.targets[tasks.offsets[:-1]]
    return np.logical_and.reduceat(tasks.targets == np.repeat(first, tasks.counts), tasks.offsets[:-1])


def without_one_class(tasks: T) -> T:
    """See `Tasks.without_one_class`."""
    one = of_one_class(tasks)
    return leave_out(tasks, one) if one.any() else tasks


def leave_out(tasks: Any, one: np.ndarray) -> Any:
    """The tasks without those of one class, which are marked; the warning names them."""
    names = [name for name, left_out in zip(tasks.task_names, one, strict=True) if left_out]
    if one.all():
        raise DataError(
            f"all {tasks.n_tasks} tasks have labels of one class alone", term="without_one_class()"
        )
    warnings.warn(
        f"{len(names)} of {tasks.n_tasks} tasks have labels of one class alone and are left out: {listed_tasks(names)}",
        OneClassWarning,
        stacklevel=4,
    )
    return tasks.select(np.flatnonzero(~one))


def listed_tasks(names: Sequence) -> str:
    """The first names, and that there are more."""
    return ", ".join(map(repr, names[:4])) + ", ..." * (len(names) > 4)
