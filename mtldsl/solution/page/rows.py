"""Rows that are scored: of which tasks they are, and how many of them were learned from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.solution.by_task import TaskByTask
from mtldsl.solution.predictors import predictor_class
from mtldsl.tasks import Tasks
from mtldsl.tasks.derived import label_table
from mtldsl.tasks.names import is_numbered

__all__ = ["of_tasks", "seen_rows"]


def of_tasks(solution: Any, tasks: Tasks | None) -> Any:
    """Return the solution of the tasks that have rows here, in their order; as it is where they are all, or not told apart by name."""
    learned = solution.task_names
    if tasks is None or tasks.task_names == learned or not set(tasks.task_names) <= set(learned):
        return solution
    if is_numbered(tasks.task_names) or predictor_class(solution.loss) is not TaskByTask:
        return solution
    at = [learned.index(name) for name in tasks.task_names]
    parts = {name: getattr(solution, name) for name in ("intercept", "thresholds")}
    parts = {name: None if part is None else part[at] for name, part in parts.items()}
    return replace(solution, coef=solution.coef[:, at], task_names=tasks.task_names, **parts)


def seen_rows(solution: Any, tasks: Tasks, learned: Tasks | None) -> int | None:
    """Return how many of these rows have the inputs and labels of rows that were learned from; None where that cannot be known."""
    if learned is None or tasks.is_distributed or solution.kernel_map is not None:
        return None
    like = solution.schema.alike(tasks, "report(tasks)")
    known = set(_keys(learned, like.is_shared))
    return sum(key in known for key in _keys(like, like.is_shared))


def _keys(tasks: Tasks, table: bool) -> Iterator[tuple]:
    """Yield a number a row: of a table with all its labels, else with the name and the label of its task."""
    if table and tasks.is_shared:
        yield from _hashed("", tasks.X, label_table(tasks, tasks.targets))
        return
    for name, X, y in zip(tasks.task_names, tasks.inputs, tasks.per_task(tasks.targets), strict=True):
        yield from _hashed(name, X, y[:, None])


def _hashed(name: str, X, Y: np.ndarray) -> Iterator[tuple]:
    labels = np.where(np.isnan(Y), np.inf, Y + 0.0)
    rows: Any = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X, dtype=float) + 0.0
    for k, of_row in enumerate(labels):
        inputs = rows[[k]].toarray() if sparse.issparse(rows) else rows[k]
        yield name, hash(inputs.tobytes()), hash(of_row.tobytes())
