"""Percentile intervals: what a number was on data drawn again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mtldsl.errors import ModelError
from mtldsl.scoring.score import Score
from mtldsl.values.number import quoted

__all__ = ["ScoreIntervals", "percentiles"]


def percentiles(samples: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """(low, high) that hold `level` of the samples (n, ...), with as much beyond on either side; NaN samples are left out.

    >>> percentiles(np.arange(101.0), 0.5)
    (np.float64(25.0), np.float64(75.0))
    """
    ends = np.array([0.5 - 0.5 * level, 0.5 + 0.5 * level])
    has = ~np.isnan(samples)
    if has.all():
        low, high = np.quantile(samples, ends, axis=0)
        return low, high
    flat = samples.reshape(len(samples), -1)
    found = np.full((2, flat.shape[1]), np.nan)
    for k, column in enumerate(flat.T):
        kept = column[~np.isnan(column)]
        if kept.size:
            found[:, k] = np.quantile(kept, ends)
    return found[0].reshape(samples.shape[1:]), found[1].reshape(samples.shape[1:])


class ScoreIntervals:
    """A score on resampled rows.

    estimate   the Score on the rows as they are; `by_task` (m,) in it, or None for measures of whole rows
    low, high  of the score over all tasks; low_by_task, high_by_task (m,) of every task, NaN where it has no number in any sample
    samples    (n,) the scores; samples_by_task (n, m)
    undefined  (m,) in how many samples a task has no number (one class was drawn); these are left out
    table      a dict a task and one for all: task (None), score, low, high, undefined;  frame() the same as a pandas DataFrame
    rows       what tells which rows were drawn, from which labels: the same of two solutions on the same tasks, with one random_state
    """

    def __init__(
        self,
        metric: str,
        names: Sequence[str],
        estimate: Score,
        found: list[Score],
        level: float,
        rows: object = None,
    ):
        self.rows = rows
        self.metric, self.names, self.estimate, self.level = metric, tuple(names), estimate, level
        self.samples = np.array([float(score) for score in found])
        low, high = percentiles(self.samples, level)
        self.low, self.high = float(low), float(high)
        by_task = [score.by_task for score in found if score.by_task is not None]
        self.samples_by_task = np.array(by_task) if by_task else None
        self.low_by_task = self.high_by_task = self.undefined = None
        if self.samples_by_task is not None:
            self.low_by_task, self.high_by_task = percentiles(self.samples_by_task, level)
            self.undefined = np.isnan(self.samples_by_task).sum(axis=0)

    @property
    def table(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        if (
            self.estimate.by_task is not None
            and self.low_by_task is not None
            and self.high_by_task is not None
        ):
            assert self.undefined is not None
            numbers = zip(
                self.names,
                self.estimate.by_task,
                self.low_by_task,
                self.high_by_task,
                self.undefined,
                strict=True,
            )
            for name, score, low, high, undefined in numbers:
                rows.append(
                    {
                        "task": name,
                        "score": float(score),
                        "low": float(low),
                        "high": float(high),
                        "undefined": int(undefined),
                    }
                )
        whole = {
            "score": float(self.estimate),
            "low": self.low,
            "high": self.high,
            "undefined": int(np.isnan(self.samples).sum()),
        }
        return [*rows, {"task": None} | whole]

    def frame(self):
        """A pandas DataFrame with a row a task and one for all of them."""
        import pandas as pd

        return pd.DataFrame([row | {"task": row["task"] or "all"} for row in self.table])

    def minus(self, other: ScoreIntervals) -> ScoreIntervals:
        """Intervals of the difference to another model's scores, on the same rows drawn again: rows that are hard for both do not widen them.

        ModelError unless both are of one metric, the same tasks, and one random_state.
        """
        if not isinstance(other, ScoreIntervals):
            raise ModelError(
                f"{quoted(other)} is not what solution.bootstrap returns",
                term="minus(other)",
                write_instead="write one.bootstrap(tasks).minus(another.bootstrap(tasks))",
            )
        mine, theirs = (
            (self.metric, self.names, self.level, self.rows),
            (other.metric, other.names, other.level, other.rows),
        )
        if self.rows is None or mine != theirs or len(self.samples) != len(other.samples):
            raise ModelError(
                "these intervals are of another metric, of other tasks, or of other rows drawn",
                term="minus(other)",
                write_instead="call bootstrap of both with the same tasks, metric, n and random_state",
            )
        found = [
            Score(a - b, None if ours is None else ours[k] - other.samples_by_task[k])  # type: ignore[index]
            for k, (a, b) in enumerate(zip(self.samples, other.samples, strict=True))
            for ours in (self.samples_by_task,)
        ]
        both = None if self.estimate.by_task is None else self.estimate.by_task - other.estimate.by_task  # type: ignore[operator]
        estimate = Score(float(self.estimate) - float(other.estimate), both)
        return ScoreIntervals(f"difference in {self.metric}", self.names, estimate, found, self.level)

    def __repr__(self) -> str:
        n, width = len(self.samples), max(10, *(len(name) for name in self.names))
        lines = [f"{self.metric}, {100 * self.level:g} % percentile intervals of {n} samples of the rows"]
        lines.append(f"  {'task':<{width}}{'score':>10}{'low':>10}{'high':>10}")
        for row in self.table:
            name = "all" if row["task"] is None else row["task"]
            told = f"  no number in {row['undefined']} samples" if row["undefined"] else ""
            lines.append(
                f"  {name:<{width}}{row['score']:>10.4f}{row['low']:>10.4f}{row['high']:>10.4f}{told}"
            )
        return "\n".join(lines)
