"""Every measure of a page: scores with intervals, those of a guess, and whether the difference may be chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mtldsl.errors import MTLError
from mtldsl.scoring.intervals import percentiles
from mtldsl.scoring.measure import Measure
from mtldsl.scoring.score import Score, evaluate
from mtldsl.solution.metric_measure import as_measure
from mtldsl.solution.named_scores import truth_of
from mtldsl.solution.page.guess import guesses
from mtldsl.solution.page.words import name_of
from mtldsl.solution.resampled import resampled
from mtldsl.tasks import Tasks
from mtldsl.tasks.resampling import checked_times
from mtldsl.values.number import as_whole
from mtldsl.values.seed import check_seed, generator

__all__ = ["LEVEL", "Scored", "better", "measured"]

#: The share of the samples between the ends of an interval.
LEVEL = 0.95

#: Labels of a task below which R^2 has no interval.
_FEWEST = 10

#: Differences that three decimals do not show are none.
_SMALLEST = 5e-4


@dataclass(frozen=True)
class Scored:
    """One measure of all tasks: (m,) scores, their ends, the guess's, and `better`: 1.0 where the difference to the guess is shown to be for
    the better, -1.0 for the worse, 0.0 where neither, NaN where nothing is known. The same over all tasks: `overall`, a tuple of these. `separate`: the score of one model
    per task, None where there is none to compare with."""

    by: Measure
    name: str
    by_task: np.ndarray
    low: np.ndarray
    high: np.ndarray
    guess: np.ndarray
    better: np.ndarray
    overall: tuple[float, float, float, float, float]
    separate: Score | None = None

    @property
    def sound(self) -> bool:
        """Whether the interval over all tasks holds the score itself. It may not: R^2 of samples of six labels divides by next to nothing."""
        score, low, high, *_ = self.overall
        return not (low > score or high < score)

    @property
    def beaten(self) -> bool:
        """Whether one model per task scores higher."""
        if self.separate is None:
            return False
        gain = self.by.direction * (float(self.separate) - self.overall[0])
        return gain > _SMALLEST * (1.0 if self.by.higher_is_better else abs(self.overall[0]))

    @property
    def beside_separate(self) -> str:
        """The score of one model per task in words, "" where there is none."""
        if self.separate is None:
            return ""
        better = "higher" if self.by.higher_is_better else "lower"
        value = float(self.separate)
        shown = f"{value:.3f}" if abs(value) < 1e3 else f"{value:,.0f}"
        return f"one model per task has {shown}" + (
            f", which is {better}: better than this model" if self.beaten else ""
        )

    @cached_property
    def n_tasks(self) -> int:
        """Tasks that have a number; of a measure of whole rows all."""
        return int((~np.isnan(self.by_task)).sum()) or len(self.by_task)


def measured(
    solution: Any,
    tasks: Tasks,
    learned: Tasks,
    metrics: Sequence,
    classes: np.ndarray,
    n: int,
    random_state,
    separate: Any = None,
) -> tuple[list[Scored], list[str]]:
    """(the measures, why others have none); classes (m,): which tasks have labels -1 and +1; n samples of the rows behind the intervals, 0: none."""
    found, missing = [], []
    n = n if as_whole(n) == 0 else checked_times(n, "report(bootstrap")
    given = check_seed(random_state, "report")
    # all measures, and the guess, on the same rows: a generator would go on from one to the next
    seed = as_whole(given) if isinstance(given, int) else int(generator(given, "report").integers(2**63))
    for metric in metrics:
        by = as_measure(metric, "report(tasks)")
        try:
            one = _scored(solution, tasks, learned, metric, by, classes, n, seed)
            found.append(
                one if separate is None else replace(one, separate=_separate(separate, tasks, metric))
            )
        except MTLError as error:  # such as one class only among these rows
            missing.append(f"{name_of(by)} was not measured: {error}")
    return found, missing


def _scored(solution, tasks, learned, metric, by, classes, n, seed) -> Scored:
    none = np.full(tasks.n_tasks, np.nan)
    if n == 0:
        own, beside = (
            solution.score(tasks, metric),
            _guess_alone(by, tasks, guesses(by, learned, tasks, classes)),
        )
        by_task, guess = (none if one.by_task is None else one.by_task for one in (own, beside))
        return Scored(by, name_of(by), by_task, none, none, guess, none, (float(own), np.nan, np.nan, float(beside), np.nan))  # fmt: skip
    own = solution.bootstrap(tasks, metric, n, level=LEVEL, random_state=seed)
    by_size = by.two_classes and by.needs == "values"
    scores, low, high = (own.estimate.by_task, own.low_by_task, own.high_by_task) if own.estimate.by_task is not None else (none, none, none)  # fmt: skip
    low, high = _held(scores, low, high)
    if by_size:  # the variance that R^2 divides by is next to nothing in samples of few labels
        few = np.array([len(y) < _FEWEST for y in tasks.per_task(tasks.targets)])
        low, high = np.where(few, np.nan, low), np.where(few, np.nan, high)
    guessed = guesses(by, learned, tasks, classes)
    if guessed is None:
        return Scored(by, name_of(by), scores, low, high, none, none, (float(own.estimate), own.low, own.high, np.nan, np.nan))  # fmt: skip
    beside = resampled(by, tasks, guessed, n, LEVEL, None, generator(seed, "report"), "report(tasks)")
    guess, shown = none, none
    if own.samples_by_task is not None and beside.samples_by_task is not None:
        guess = np.asarray(beside.estimate.by_task)
        shown = better(by, own.samples_by_task, beside.samples_by_task, guess)
    of_all = float(beside.estimate)
    whole = float(better(by, own.samples[:, None], beside.samples[:, None], np.array([of_all]))[0])
    return Scored(by, name_of(by), scores, low, high, guess, shown, (float(own.estimate), own.low, own.high, of_all, whole))  # fmt: skip


def _held(scores, low, high) -> tuple[np.ndarray, np.ndarray]:
    """The ends of the intervals that hold their own scores; NaN in place of the others, which are biased."""
    outside = (low > scores) | (high < scores)
    return np.where(outside, np.nan, low), np.where(outside, np.nan, high)


def _separate(separate, tasks: Tasks, metric) -> Score | None:
    """The score of one model per task; None where it has none, as of probabilities that its loss does not model."""
    try:
        return separate.score(tasks, metric)
    except MTLError:
        return None


def _guess_alone(by: Measure, tasks: Tasks, guessed) -> Score:
    if guessed is None:
        return Score(np.nan)
    truth, weights = truth_of(tasks)
    return evaluate(by, truth, guessed, tasks.task_names, table=tasks.is_shared, weights=weights, typed="report(tasks)")  # fmt: skip


def better(by: Measure, own: np.ndarray, beside: np.ndarray, guess: np.ndarray) -> np.ndarray:
    """(m,) of samples (n, m) on the same rows: 1.0 where at least 97.5 % of the differences are for the better, -1.0 for the worse, else 0.0.

    >>> from mtldsl.scoring.measures import measure
    >>> better(measure("mae"), np.array([[1.0], [2.0]]), np.array([[1.5], [2.5]]), np.array([2.0]))
    array([1.])
    """
    low, high = percentiles(by.direction * (own - beside), LEVEL)
    margin = _SMALLEST * (1.0 if by.higher_is_better else np.abs(guess))
    verdict = np.where(low > margin, 1.0, np.where(high < -margin, -1.0, 0.0))
    return np.where(np.isnan(low) | np.isnan(guess), np.nan, verdict)
