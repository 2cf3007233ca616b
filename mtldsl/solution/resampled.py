"""Predictions that stay as they are, scored on rows that are drawn again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mtldsl.scoring.counted import Counted, counted
from mtldsl.scoring.intervals import ScoreIntervals
from mtldsl.scoring.measure import Measure
from mtldsl.scoring.score import Score, evaluate, mean_score
from mtldsl.solution.named_scores import truth_of
from mtldsl.tasks import Tasks
from mtldsl.tasks.resampling import drawn

__all__ = ["resampled"]

#: Numbers that counts of rows may take at a time.
_AT_ONCE = 4_000_000


def resampled(
    by: Measure,
    tasks: Tasks,
    predicted: Sequence[np.ndarray],
    n: int,
    level: float,
    units: np.ndarray | None,
    rng: np.random.Generator,
    typed: str,
) -> ScoreIntervals:
    """The intervals of a measure on n samples of the rows. Equal generators draw equal rows, whatever is predicted.

    predicted : one vector a task, what the measure needs;  units : see `units_of_rows`
    """
    truth, weights = truth_of(tasks)

    def score(rows: list[np.ndarray] | None) -> Score:
        parts = [truth, predicted] if weights is None else [truth, predicted, weights]
        y, p, *w = (
            parts if rows is None else [[one[r] for one, r in zip(part, rows, strict=True)] for part in parts]
        )
        return evaluate(
            by, y, p, tasks.task_names, table=tasks.is_shared, weights=w[0] if w else None, typed=typed
        )

    labels = hash(b"".join(np.ascontiguousarray(one).tobytes() for one in truth))
    rows = labels, str(rng.bit_generator.state), None if units is None else hash(np.asarray(units).tobytes())
    draws = (drawn(tasks, units, rng) for _ in range(n))
    quick = counted(by) if weights is None else None
    if quick is None:
        found = [score(_rows(tasks, times)) for times in draws]
    else:
        found = _of_counts(quick, tasks, truth, predicted, draws)
    return ScoreIntervals(by.name, tasks.task_names, score(None), found, level, rows)


def _rows(tasks: Tasks, times: np.ndarray) -> list[np.ndarray]:
    each = [times] * tasks.n_tasks if tasks.is_shared else tasks.per_task(times)
    return [np.repeat(np.arange(len(one)), one) for one in each]


def _of_counts(quick: Counted, tasks: Tasks, truth, predicted, draws) -> list[Score]:
    there = [~(np.isnan(y) | np.isnan(p)) for y, p in zip(truth, predicted, strict=True)]
    found: list[Score] = []
    waiting: list[np.ndarray] = []

    def settle() -> None:
        times = np.stack(waiting).astype(float)
        ends = np.cumsum([0, *map(len, truth)])
        table = np.full((len(times), len(truth)), np.nan)
        for i, (y, p, has) in enumerate(zip(truth, predicted, there, strict=True)):
            own = times if tasks.is_shared else times[:, ends[i] : ends[i + 1]]
            if has.any():
                table[:, i] = quick(y[has], p[has], own[:, has])
        found.extend(mean_score(row, tasks.task_names) for row in table)
        waiting.clear()

    for times in draws:
        waiting.append(times)
        if len(waiting) * len(times) >= _AT_ONCE:
            settle()
    if waiting:
        settle()
    return found
