"""The simplest guess: one answer for all rows, the better one of those learned on."""

from __future__ import annotations

import numpy as np

from mtldsl.scoring.measure import Measure
from mtldsl.scoring.score import evaluate
from mtldsl.solution.named_scores import truth_of
from mtldsl.tasks import Tasks

__all__ = ["constant_score", "guesses"]


def guesses(by: Measure, learned: Tasks, tasks: Tasks, classes: bool | np.ndarray) -> list[np.ndarray] | None:
    """One vector a task, a prediction for each of its rows: the mean of numbers; of labels the one that scores better on the rows learned on
    (the more frequent one where both score alike), or their share of +1 where a measure is of probabilities. None where the tasks are not
    those that were learned."""
    each = np.broadcast_to(classes, learned.n_tasks).tolist()
    suit = [by.needs == "answers" or one != (by.needs == "values") for one in each]
    if not any(suit):  # such as labels that were learned as numbers
        suit = [True] * len(each)
    constants = [
        _constant(by, y, one) if fits else np.nan
        for y, one, fits in zip(learned.per_task(learned.targets), each, suit, strict=True)
    ]
    truth, _ = truth_of(tasks)
    if len(constants) != len(truth):
        return None
    return [np.full(len(y), c) for y, c in zip(truth, constants, strict=True)]


def constant_score(by: Measure, learned: Tasks, tasks: Tasks, classes: bool | np.ndarray) -> np.ndarray:
    """(m,) what that guess has under a measure on these tasks; NaN where that says nothing."""
    guessed = guesses(by, learned, tasks, classes)
    if guessed is None:
        return np.full(tasks.n_tasks, np.nan)
    truth, weights = truth_of(tasks)
    found = evaluate(
        by, truth, guessed, tasks.task_names, table=tasks.is_shared, weights=weights, typed="report(tasks)"
    )
    return np.full(len(truth), np.nan) if found.by_task is None else np.asarray(found.by_task)


def _constant(by: Measure, y: np.ndarray, classes: bool) -> float:
    if not classes:
        return float(np.mean(y))
    if by.needs == "probabilities":
        return float(np.mean(y > 0))
    frequent = 1.0 if np.mean(y > 0) >= 0.5 else -1.0
    if by.of_rows or by.needs != "labels" or not by.is_defined(y):
        return frequent
    # a guess that never says +1 has an F1 of 0, which everything is better than; the one that always says it is the one to beat
    return max((frequent, -frequent), key=lambda label: by.direction * by.of_task(y, np.full(len(y), label)))
