"""One number of many: a score over tasks, which says what it is the mean of, and which tasks had none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mtldsl.errors import DataError
from mtldsl.scoring.measure import Measure

__all__ = ["Score", "evaluate", "mean_score", "require_rows"]


class Score(float):
    """A number with `by_task` (m,), NaN where a task has none; `left_out`, the names of these tasks. by_task is None for measures of
    whole rows.

    >>> mean_score(np.array([0.5, np.nan, 0.7]), ["a", "b", "c"])
    0.6 (1 of 3 tasks left out: 'b')
    """

    by_task: np.ndarray | None
    left_out: tuple[str, ...]
    n_tasks: int

    def __new__(
        cls, value: float, by_task: np.ndarray | None = None, left_out: Sequence[str] = (), n_tasks: int = 0
    ):
        self = super().__new__(cls, value)
        self.by_task, self.left_out, self.n_tasks = by_task, tuple(left_out), n_tasks
        return self

    def __getnewargs__(self):
        return float(self), self.by_task, self.left_out, self.n_tasks

    @property
    def note(self) -> str:
        """Which tasks are not in the number, "" where all are."""
        if not self.left_out:
            return ""
        names = ", ".join(map(repr, self.left_out[:4])) + ", ..." * (len(self.left_out) > 4)
        return f"{len(self.left_out)} of {self.n_tasks} tasks left out: {names}"

    def __repr__(self) -> str:
        return float.__repr__(self) + (f" ({self.note})" if self.note else "")

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else str(self)


def mean_score(by_task: np.ndarray, names: Sequence[str], weights: np.ndarray | None = None) -> Score:
    """The mean of the tasks that have a number; NaN where none has."""
    has = ~np.isnan(by_task)
    left_out = [name for name, one in zip(names, has, strict=True) if not one]
    value = (
        float(np.average(by_task[has], weights=None if weights is None else weights[has]))
        if has.any()
        else float("nan")
    )
    return Score(value, by_task, left_out, len(by_task))


def evaluate(
    measure: Measure,
    truth: Sequence[np.ndarray],
    predicted: Sequence[np.ndarray],
    names: Sequence[str],
    *,
    table: bool,
    weights: Sequence[np.ndarray] | None = None,
    typed: str = "evaluate",
) -> Score:
    """The measure of predictions, one vector a task.

    truth     : labels, -1 and +1 unless the measure is of values; NaN where one is missing
    predicted : what the measure needs; NaN for a task that was not learned, which is left out
    table     : whether the vectors are columns of one table, as measures of whole rows ask for
    weights   : how much every label counts, in measures by task
    DataError for a measure of whole rows without a table, with weights, or of rankings of one label.

    >>> from mtldsl.scoring.measures import measure
    >>> y = [np.array([1.0, -1.0, np.nan]), np.array([1.0, 1.0, 1.0])]
    >>> evaluate(measure("roc_auc"), y, [np.array([2.0, 1.0, 0.0])] * 2, ["a", "b"], table=True)
    1.0 (1 of 2 tasks left out: 'b')
    """
    if measure.rows is not None:
        return _of_rows(measure, truth, predicted, names, table, weights, typed)
    found, positives, all_y, all_p, all_w = np.full(len(truth), np.nan), np.zeros(len(truth)), [], [], []
    for i, (y, p) in enumerate(zip(truth, predicted, strict=True)):
        there = ~(np.isnan(y) | np.isnan(p))
        w = np.ones(int(there.sum())) if weights is None else weights[i][there]
        found[i] = measure.of_task(y[there], p[there], None if weights is None else w)
        positives[i] = float(np.sum(w[y[there] > 0]))
        all_y.append(y[there])
        all_p.append(p[there])
        all_w.append(w)
    if measure.average == "pooled":
        w = None if weights is None else np.concatenate(all_w)
        value = measure.of_task(np.concatenate(all_y), np.concatenate(all_p), w)
        empty = [name for name, y in zip(names, all_y, strict=True) if not y.size]
        return Score(value, found, empty, len(found))
    return mean_score(found, names, positives if measure.average == "support" else None)


def _of_rows(measure: Measure, truth, predicted, names, table: bool, weights, typed: str) -> Score:
    assert measure.rows is not None
    require_rows(measure, len(truth), table, weights is not None, typed)
    Y, P = np.stack(list(truth), axis=1), np.stack(list(predicted), axis=1)
    there = ~(np.isnan(Y) | np.isnan(P))
    left_out = [name for name, column in zip(names, there.T, strict=True) if not column.any()]
    rows: np.ndarray = np.any(there, axis=1)
    value = measure.rows(Y[rows], P[rows]) if rows.any() else float("nan")
    return Score(value, None, left_out, len(truth))


def require_rows(measure: Measure, n_tasks: int, table: bool, weighted: bool, typed: str) -> None:
    """DataError where a measure of whole rows is asked for without a table, with weights, or of rankings of one label."""
    if not table:
        raise DataError(
            f"{measure.name} is of all labels of a row, and these tasks have rows of their own",
            term=typed,
            write_instead="write a measure by task, such as metric='accuracy'",
        )
    if weighted:
        raise DataError(
            f"these tasks have sample weights, and {measure.name} counts rows",
            term=typed,
            write_instead="write a measure by task, such as metric='accuracy'",
        )
    if measure.needs == "scores" and n_tasks < 2:
        raise DataError(f"{measure.name} ranks the labels of a row, and there is one task", term=typed)
