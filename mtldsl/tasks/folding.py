"""Folds that keep every task's labels, and both classes of each, on all sides as evenly as they can be."""

from __future__ import annotations

import numpy as np

from mtldsl.errors import DataError
from mtldsl.system.memory import require_memory
from mtldsl.tasks.data import T, TaskData
from mtldsl.tasks.dealing import deal_table, units_of
from mtldsl.tasks.derived import label_table
from mtldsl.tasks.imputation import filled_pair
from mtldsl.tasks.selection import take_rows
from mtldsl.values.number import as_whole, quoted
from mtldsl.values.option import as_flag
from mtldsl.values.seed import generator

__all__ = ["checked_folds", "fold_numbers", "folds", "labels_by_row", "rows_of_parts"]


def folds(tasks: T, k: int, stratify: bool, groups, random_state) -> list[tuple[T, T]]:
    """See `Tasks.folds`."""
    numbers = fold_numbers(tasks, k, stratify, groups, random_state)
    _require_all_tasks(tasks, numbers, k)
    return [
        filled_pair(*(take_rows(tasks, rows_of_parts(tasks, side)) for side in (numbers != fold, numbers == fold)))
        for fold in range(k)
    ]  # fmt: skip


def fold_numbers(tasks: TaskData, k: int, stratify: bool = True, groups=None, random_state=0) -> np.ndarray:
    """The fold, 0 to k - 1, of every row of the shared X, or of every labelled row, task after task, of separate inputs.

    A task of separate inputs may have fewer rows than there are folds: then it is not in all of them.
    """
    k = checked_folds(k, "folds(k")
    stratify = as_flag(stratify, "folds(k, stratify")
    rng = generator(random_state, "folds")
    n = tasks.X.shape[0] if tasks.is_shared else tasks.n_samples
    units = units_of(groups, n, "folds(k, groups)")
    n_units = n if units is None else int(units.max()) + 1
    if n_units < k:
        raise DataError(
            f"there are {n_units} {'rows' if units is None else 'groups'}",
            term=f"folds(k={k})",
            write_instead=f"write k = 2 to {n_units}" if n_units >= 2 else "give more data",
        )
    if tasks.is_shared or units is not None:
        return deal_table(labels_by_row(tasks), k, stratify, units, rng)
    parts = [deal_table(y[:, None], k, stratify, None, rng) for y in tasks.per_task(tasks.targets)]
    return np.concatenate(parts)


def labels_by_row(tasks: TaskData) -> np.ndarray:
    """(n, m) of the rows of the shared X, or of the labelled rows, task after task, each with the label of its own task alone."""
    if tasks.is_shared:
        return label_table(tasks, tasks.targets)
    n, m = tasks.n_samples, tasks.n_tasks
    require_memory(24.0 * n * m, f"a table of {n:,} rows and {m:,} tasks", "fold without groups", DataError)
    table = np.full((n, m), np.nan)
    table[np.arange(n), tasks.task_of] = tasks.targets
    return table


def rows_of_parts(tasks: TaskData, chosen: np.ndarray):
    """What `take_rows` takes, from a mask of the rows that are numbered as in `fold_numbers`."""
    if tasks.is_shared:
        return np.flatnonzero(chosen)
    return [np.flatnonzero(part) for part in tasks.per_task(chosen)]


def checked_folds(k, typed: str) -> int:
    """The number of folds; `typed` is such as "folds(k"."""
    number = as_whole(k)
    if number is None or number < 2:
        raise DataError(term=f"{typed}={quoted(k)})", write_instead="write a whole number of at least 2")
    return number


def _require_all_tasks(tasks: TaskData, numbers: np.ndarray, k: int) -> None:
    """DataError where a task has labels in one fold alone, which leaves none to train on, or has none in a fold."""
    labelled = tasks.mask if tasks.is_shared else None
    parts = [numbers] * tasks.n_tasks if tasks.is_shared else tasks.per_task(numbers)
    for i, part in enumerate(parts):
        here = part if labelled is None else part[labelled[:, i]]
        missing = k - len(np.unique(here))
        if missing:
            raise DataError(
                f"task {tasks.task_names[i]!r} has {len(here)} labelled rows, and none in {missing} of the {k} folds",
                term=f"folds(k={k})",
                write_instead="write fewer folds, or leave the task out; problem.cross_validate leaves it out of these folds alone",
            )
