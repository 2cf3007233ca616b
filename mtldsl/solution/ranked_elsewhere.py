"""Scores of rows that are elsewhere which sums do not tell: those of rankings, and those of whole rows.

An area under a curve, a precision at k, a user's own measure look at all scores of a task: these move to one worker, nine bytes a row (17
with sample weights), as in `mtldsl.tasks.distributed.exchange`; so that worker needs memory for the largest task. The number is the one
in memory, from the same function. A row lies in one part, so a measure of whole rows is a mean over parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mtldsl.atoms.metrics import Metric
from mtldsl.scoring.measure import Measure
from mtldsl.scoring.score import Score, require_rows
from mtldsl.solution.asked import Asked
from mtldsl.solution.scoring import score_of
from mtldsl.solution.thresholds import best_threshold
from mtldsl.tasks.derived import label_table
from mtldsl.tasks.distributed.exchange import Columns
from mtldsl.tasks.distributed.sums import TaskSum

__all__ = ["best_by_task", "measure_by_task", "measure_of_rows", "metrics_by_task"]


def measure_by_task(tasks: Any, by: Measure, asked: Asked) -> np.ndarray:
    """(m,) the measure of every task's predictions."""
    return _exchanged(tasks, asked, _measured, by)


def metrics_by_task(tasks: Any, metrics: Sequence[Metric], asked: Asked) -> np.ndarray:
    """(m,) 1 - Delta of every task's scores and threshold."""
    cuts = np.zeros(tasks.n_tasks) if asked.cuts is None else asked.cuts
    return _exchanged(tasks, asked, _by_metrics, tuple(metrics), cuts)


def best_by_task(tasks: Any, metrics: Sequence[Metric], asked: Asked, typed: str) -> np.ndarray:
    """(m,) the threshold of every task that is best under its metric."""
    return _exchanged(tasks, asked, _best, tuple(metrics), tuple(tasks.task_names), typed)


def _exchanged(tasks: Any, asked: Asked, function, *broadcast) -> np.ndarray:
    columns, _ = tasks.parts.run(_columns, asked, stateful=True)
    return tasks.parts.exchanged(columns, tasks.n_tasks, function, *broadcast)[2].of_all(tasks.n_tasks)


def _columns(part, _, asked: Asked) -> tuple[Columns, None]:
    """What is predicted for the labelled rows of a part, which of them are +1, and their sample weights."""
    tasks = part.tasks
    weights = () if tasks.sample_weights is None else (tasks.sample_weights,)
    return Columns(part.which, tasks.offsets, (_predicted(part, asked), tasks.targets > 0.0, *weights)), None


def _predicted(part, asked: Asked) -> np.ndarray:
    """Scores, or labels -1 and +1."""
    z = asked.scores(part)
    if asked.needs == "labels":
        return np.where(asked.labels(part, z), 1.0, -1.0)
    constant = asked.constant[part.which][part.tasks.task_of]
    return np.where(np.isnan(constant), z, constant)


def _apart(columns: Columns):
    """(position of the task, predictions, labels, sample weights or None) of every task."""
    ends = columns.offsets.tolist()
    for i, first, last in zip(columns.which.tolist(), ends[:-1], ends[1:], strict=True):
        z, positive, *weights = (array[first:last] for array in columns.arrays)
        yield i, z, np.where(positive, 1.0, -1.0), weights[0] if weights else None


def _measured(columns: Columns, state, by: Measure) -> tuple[None, tuple, TaskSum]:
    return None, (), TaskSum(columns.which, np.array([by.of_task(y, z, w) for _, z, y, w in _apart(columns)]))


def _by_metrics(columns: Columns, state, metrics: tuple, cuts: np.ndarray) -> tuple[None, tuple, TaskSum]:
    found = [score_of(metrics[i], z, y, float(cuts[i])) for i, z, y, _ in _apart(columns)]
    return None, (), TaskSum(columns.which, np.array(found))


def _best(columns: Columns, state, metrics: tuple, names: tuple, typed: str) -> tuple[None, tuple, TaskSum]:
    found = [best_threshold(z, y, metrics[i], typed, names[i]) for i, z, y, _ in _apart(columns)]
    return None, (), TaskSum(columns.which, np.array(found))


def measure_of_rows(tasks: Any, by: Measure, asked: Asked, known: np.ndarray, typed: str) -> Score:
    """The mean over rows, or over the labels that are there, in one pass; tasks that are not known are left out."""
    names = [name for name, one in zip(tasks.task_names, known, strict=True) if not one]
    require_rows(by, tasks.n_tasks, tasks.is_table, tasks.is_weighted, typed)
    total, size = tasks.parts.run(_of_rows, asked, by, known)
    return Score(total / size if size else float("nan"), None, names, tasks.n_tasks)


def _of_rows(part, asked: Asked, by: Measure, known: np.ndarray) -> np.ndarray:
    """(the measure of a part's rows times what it is a mean over, how many these are)."""
    tasks, there = part.tasks, known[part.which]
    Y, P = (label_table(tasks, one)[:, there] for one in (tasks.targets, _predicted(part, asked)))
    rows = ~np.isnan(Y).all(axis=1) if Y.size else np.zeros(len(Y), bool)
    if not rows.any():
        return np.zeros(2)
    assert by.rows is not None
    size = len(Y[rows]) if by.over == "rows" else np.count_nonzero(~np.isnan(Y))
    return np.array([by.rows(Y[rows], P[rows]) * size, size])
