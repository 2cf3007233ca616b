"""Scores with bootstrap intervals, beside those of the best constant prediction."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mtldsl.data.derived import label_table
from mtldsl.data.splits import checked_level, draw_counts, units_of_rows
from mtldsl.data.tasks import Tasks
from mtldsl.errors import ModelError, MTLError
from mtldsl.solution.measures import SETTINGS, Measure, Needs, measure, name_of
from mtldsl.solution.predictors import (
    FittedSolution,
    default_measure,
    predictor_of,
    require_signs,
    require_suited,
)
from mtldsl.solution.score import Counted, Score, as_measure, counted_measures, evaluate, mean_score
from mtldsl.utils.parallel import slabs
from mtldsl.utils.validation import as_count, as_whole, check_seed, generator, quoted

# --------------------------------------------------------------------------------------------------------------
# Percentile intervals: what a number was on data drawn again.


def percentiles(samples: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """(low, high) that hold `level` of the samples (n, ...), with as much beyond on either side; NaN samples are left out.

    >>> percentiles(np.arange(101.0), 0.5)
    (np.float64(25.0), np.float64(75.0))
    """
    ends = np.array([0.5 - 0.5 * level, 0.5 + 0.5 * level])
    quantile = np.nanquantile if np.isnan(samples).any() else np.quantile  # which is far faster
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of NaN alone
        low, high = quantile(samples, ends, axis=0)
    return low, high


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
        whole = (None, self.estimate, self.low, self.high, np.isnan(self.samples).sum())
        each: Any = (self.names, self.estimate.by_task, self.low_by_task, self.high_by_task, self.undefined)
        rows = [whole] if self.samples_by_task is None else [*zip(*each, strict=True), whole]
        return [
            {
                "task": name,
                "score": float(score),
                "low": float(low),
                "high": float(high),
                "undefined": int(undefined),
            }
            for name, score, low, high, undefined in rows
        ]

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
        both, by_task = None, [None] * len(self.samples)
        if self.samples_by_task is not None:  # and those of the same measure are there as well
            both = self.estimate.by_task - other.estimate.by_task  # type: ignore[operator]
            by_task = list(self.samples_by_task - other.samples_by_task)  # type: ignore[operator]
        found = [Score(a, each) for a, each in zip(self.samples - other.samples, by_task, strict=True)]
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


# --------------------------------------------------------------------------------------------------------------
# Scores of a solution under a measure by name.


def named_score(fitted: FittedSolution, tasks: Tasks, name: str | Measure, method: str) -> Score:
    """The score over all tasks; see `Solution.score`."""
    return tasks.apply_scoring(_named_score, fitted, name, method)


def _named_score(tasks: Tasks, fitted: FittedSolution, name: str | Measure, method: str) -> Score:
    found = as_measure(name, f"{method}(tasks, metric")
    typed = f"{method}(tasks, metric={found.name!r})"
    like = fitted.schema.alike(tasks, method)
    require_suited(fitted, like, typed, found)
    predicted = predictor_of(fitted).outputs(like.X if like.is_shared else like.inputs, found.needs, typed)
    truth, weights = truth_of(like)
    return evaluate(
        found, truth, predicted, tasks.task_names, table=like.is_shared, weights=weights, typed=typed
    )  # fmt: skip


def outputs_beside(
    fitted: FittedSolution, tasks: Tasks, needs: Needs, typed: str
) -> list[tuple[np.ndarray, np.ndarray]]:
    """(labels, predictions) of every task's labelled rows; ModelError where the loss has none of the kind.

    needs : "labels" (-1 and +1, from the tuned thresholds on), "probabilities" of +1, "scores", "values"
    """
    like = fitted.schema.alike(tasks, typed)
    require_signs(fitted, like, typed, needs)
    found = predictor_of(fitted).outputs(like.X if like.is_shared else like.inputs, needs, typed)
    there = [~np.isnan(y) for y in truth_of(like)[0]]
    return [(y[rows], p[rows]) for y, p, rows in zip(truth_of(like)[0], found, there, strict=True)]


def named_scores(fitted: FittedSolution, tasks: Tasks, name: str, method: str) -> np.ndarray:
    """(m,) the score of every task; ModelError for a measure of whole rows."""
    found: Measure = measure(name, f"{method}(tasks, metric")
    if found.of_rows:
        raise ModelError(
            f"{name} is of all labels of a row together, so that no task has a number of its own",
            term=f"{method}(tasks, metric={name!r})",
            write_instead=f"write score(tasks, metric={name!r})",
        )
    by_task = named_score(fitted, tasks, name, method).by_task
    assert by_task is not None
    return by_task


def truth_of(tasks: Tasks) -> tuple[list[np.ndarray], list[np.ndarray] | None]:
    """(labels, sample weights or None), one vector a task: columns of the table where inputs are shared, NaN for missing ones."""
    flat = [tasks.targets] if tasks.sample_weights is None else [tasks.targets, tasks.sample_weights]
    found = [list(label_table(tasks, one).T) if tasks.is_shared else tasks.per_task(one) for one in flat]
    return found[0], found[1] if len(found) > 1 else None


# --------------------------------------------------------------------------------------------------------------
# Predictions that stay as they are, scored on rows that are drawn again.


def resample_measure(
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

    labels = _digest(*truth)
    rows = labels, str(rng.bit_generator.state), None if units is None else _digest(np.asarray(units))
    quick = counted_measures(by) if weights is None else None
    found: list[Score] = []
    for part in slabs(n, max(1, SETTINGS.counted_entries // len(tasks.targets))):
        draws = [draw_counts(tasks, units, rng) for _ in range(n)[part]]
        if quick is not None:
            found += _of_counts(quick, tasks, truth, predicted, np.array(draws, float))
            continue
        each = ([times] * tasks.n_tasks if tasks.is_shared else tasks.per_task(times) for times in draws)
        found += [score([np.repeat(np.arange(len(one)), one) for one in times]) for times in each]
    return ScoreIntervals(by.name, tasks.task_names, score(None), found, level, rows)


def _digest(*arrays: np.ndarray) -> str:
    """Equal for equal arrays, in every process."""
    found = hashlib.sha256()
    for one in arrays:
        found.update(repr(one.shape).encode() + np.ascontiguousarray(one).tobytes())
    return found.hexdigest()


def _of_counts(quick: Counted, tasks: Tasks, truth, predicted, times: np.ndarray) -> list[Score]:
    """The scores of samples, of which every row of `times` says how often rows are there."""
    ends = np.cumsum([0, *map(len, truth)])
    table = np.full((len(times), len(truth)), np.nan)
    for i, (y, p) in enumerate(zip(truth, predicted, strict=True)):
        own, has = times if tasks.is_shared else times[:, ends[i] : ends[i + 1]], ~(np.isnan(y) | np.isnan(p))
        if has.any():
            table[:, i] = quick(y[has], p[has], own[:, has])
    return [mean_score(row, tasks.task_names) for row in table]


# --------------------------------------------------------------------------------------------------------------
# How sure a score is: the same predictions on rows drawn again.


def bootstrap_scores(
    fitted: FittedSolution, tasks: Tasks, metric, n, level, groups, random_state
) -> ScoreIntervals:
    """See `Solution.bootstrap`."""
    if metric is None:
        metric = default_measure(fitted.loss)
    by, typed = as_measure(metric, "bootstrap(tasks, metric"), f"bootstrap(tasks, metric={metric!r})"
    n, level = as_count(n, "bootstrap(tasks, n", 2), checked_level(level, "bootstrap(tasks, level")
    rng = generator(random_state, "bootstrap")
    like = fitted.schema.alike(tasks, "bootstrap")
    require_suited(fitted, like, typed, by)
    units = units_of_rows(like, groups, "bootstrap(tasks, groups)")
    predicted = predictor_of(fitted).outputs(like.X if like.is_shared else like.inputs, by.needs, typed)
    return resample_measure(by, like, predicted, n, level, units, rng, typed)


# --------------------------------------------------------------------------------------------------------------
# The simplest guess: one answer for all rows, the better one of those learned on.


def guesses(by: Measure, learned: Tasks, tasks: Tasks, classes: bool | np.ndarray) -> list[np.ndarray] | None:
    """One vector a task, a prediction for each of its rows: the mean of numbers; of labels the one that scores better on the rows learned on
    (the more frequent one where both score alike), or their share of +1 where a measure is of probabilities. None where the tasks are not
    those that were learned, and of recall, which is perfect where everything is called positive."""
    if by.name == "recall":
        return None
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


def guessed_score(by: Measure, learned: Tasks, tasks: Tasks, classes: bool | np.ndarray) -> Score:
    """The score of that guess under a measure on these tasks; NaN where it says nothing."""
    guessed, (truth, weights) = guesses(by, learned, tasks, classes), truth_of(tasks)
    if guessed is None:
        return Score(np.nan)
    return evaluate(
        by, truth, guessed, tasks.task_names, table=tasks.is_shared, weights=weights, typed="report(tasks)"
    )


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


# --------------------------------------------------------------------------------------------------------------
# Every measure of a page: scores with intervals, those of a guess, and whether the difference may be chance.


@dataclass(frozen=True)
class ScoredMeasure:
    """One measure of all tasks: (m,) scores, their ends, the guess's, and `better`: 1.0 where the difference to the guess is shown to be for
    the better, -1.0 for the worse, 0.0 where neither, NaN where nothing is known. The same over all tasks: `overall`, a tuple of these. `separate`: the score of one model
    per task, None where there is none to compare with. `few`: a task has too few labels for an interval of R^2."""

    by: Measure
    name: str
    by_task: np.ndarray
    low: np.ndarray
    high: np.ndarray
    guess: np.ndarray
    better: np.ndarray
    overall: tuple[float, float, float, float, float]
    separate: Score | None = None
    few: bool = False

    @property
    def sound(self) -> bool:
        """Tell whether the interval over all tasks can be believed: it holds the score itself, and R^2 of samples of six labels divides by next
        to nothing."""
        score, low, high, *_ = self.overall
        return not (self.few or _lacks(score, low, high))

    @property
    def beaten(self) -> bool:
        """Tell whether one model per task scores higher."""
        if self.separate is None:
            return False
        gain = self.by.direction * (float(self.separate) - self.overall[0])
        return gain > SETTINGS.gain_tol * (1.0 if self.by.higher_is_better else abs(self.overall[0]))

    @property
    def beside_separate(self) -> str:
        """The score of one model per task in words, "" where there is none."""
        if self.separate is None:
            return ""
        better = "higher" if self.by.higher_is_better else "lower"
        said = f", which is {better}: better than this model" if self.beaten else ""
        return f"one model per task has {shortened(float(self.separate))}{said}"

    @property
    def beats(self) -> tuple[int, int]:
        """(tasks in which it is shown to be better than a guess, tasks in which that is known)."""
        return int((self.better > 0).sum()), int((~np.isnan(self.better)).sum())

    @property
    def mean_of(self) -> int:
        """Tasks that the number over all is the mean of; 0 of one task, and of whole rows."""
        return 0 if self.n_tasks == 1 or np.isnan(self.by_task).all() else self.n_tasks

    @cached_property
    def n_tasks(self) -> int:
        """Tasks that have a number; of a measure of whole rows all."""
        return int((~np.isnan(self.by_task)).sum()) or len(self.by_task)


def shortened(value: float) -> str:
    """Three decimals, of large numbers four digits; zero without a sign.

    >>> shortened(-0.0004), shortened(0.25), shortened(-12345.6), shortened(float("nan"))
    ('0.000', '0.250', '-12,346', '-')
    """
    if np.isnan(value):
        return "-"
    shown = f"{value:.3f}" if abs(value) < 1e3 else f"{value:,.0f}"
    return shown.removeprefix("-") if not float(shown.replace(",", "")) else shown


def choose_measures(
    solution: Any,
    tasks: Tasks,
    learned: Tasks,
    metrics: Sequence,
    classes: np.ndarray,
    n: int,
    random_state,
    separate: Any = None,
) -> tuple[list[ScoredMeasure], list[str]]:
    """(the measures, why others have none); classes (m,): which tasks have labels -1 and +1; n samples of the rows behind the intervals, 0: none."""
    found, missing = [], []
    if as_whole(n) != 0:  # none is a number too
        n = as_count(n, "report(bootstrap", 2, "bootstrap", instead="0 for no intervals")
    given = check_seed(random_state, "report")
    # all measures, and the guess, on the same rows: a generator would go on from one to the next
    seed = as_whole(given) if isinstance(given, int) else int(generator(given, "report").integers(2**63))
    for metric in metrics:
        if isinstance(metric, ScoredMeasure):  # by a function, which knows no tasks
            found.append(metric)
            continue
        by = as_measure(metric, "report(tasks)")
        try:
            one = _scored(solution, tasks, learned, metric, by, classes, n, seed)
            found.append(
                one if separate is None else replace(one, separate=_separate(separate, tasks, metric))
            )
        except MTLError as error:  # such as one class only among these rows
            missing.append(f"{name_of(by)} was not measured: {error}")
    return found, missing


def _scored(solution, tasks, learned, metric, by, classes, n, seed) -> ScoredMeasure:
    none = np.full(tasks.n_tasks, np.nan)
    low = high = shown = none
    few: np.ndarray = np.zeros(tasks.n_tasks, dtype=bool)
    low_end, high_end, whole = np.nan, np.nan, np.nan
    if n == 0:
        own, beside = solution.score(tasks, metric), guessed_score(by, learned, tasks, classes)
    else:
        drawn = solution.bootstrap(tasks, metric, n, level=SETTINGS.level_share, random_state=seed)
        own, beside, low_end, high_end = drawn.estimate, Score(np.nan), drawn.low, drawn.high
        if by.two_classes and by.needs == "values":
            # the variance that R^2 divides by is next to nothing in samples of few labels
            few = np.array([len(y) < SETTINGS.r2_rows for y in tasks.per_task(tasks.targets)])
        if own.by_task is not None:
            ends = _holding_ends(own.by_task, drawn.low_by_task, drawn.high_by_task)
            low, high = (np.where(few, np.nan, end) for end in ends)
        guessed = guesses(by, learned, tasks, classes)
        if guessed is not None:
            rng = generator(seed, "report")
            again = resample_measure(by, tasks, guessed, n, SETTINGS.level_share, None, rng, "report(tasks)")
            beside = again.estimate
            whole = float(better(by, drawn.samples[:, None], again.samples[:, None], np.array([beside]))[0])
            if drawn.samples_by_task is not None and again.samples_by_task is not None:
                shown = better(by, drawn.samples_by_task, again.samples_by_task, np.asarray(beside.by_task))
    by_task, guess = (none if one.by_task is None else one.by_task for one in (own, beside))
    overall = float(own), low_end, high_end, float(beside), whole
    return ScoredMeasure(by, name_of(by), by_task, low, high, guess, shown, overall, few=bool(few.any()))


def _holding_ends(scores, low, high) -> tuple[np.ndarray, np.ndarray]:
    """The ends of the intervals that hold their own scores; NaN in place of the others, which are biased."""
    outside = _lacks(scores, low, high)
    return np.where(outside, np.nan, low), np.where(outside, np.nan, high)


def _lacks(score, low, high):
    """Tell whether an interval lacks its own score: a perfect one is 1 or a rounding error below, from sample to sample."""
    margin = 16 * np.spacing(np.abs(score))
    return (low > score + margin) | (high < score - margin)


def _separate(separate, tasks: Tasks, metric) -> Score | None:
    """The score of one model per task; None where it has none, as of probabilities that its loss does not model."""
    try:
        return separate.score(tasks, metric)
    except MTLError:
        return None


def better(by: Measure, own: np.ndarray, beside: np.ndarray, guess: np.ndarray) -> np.ndarray:
    """(m,) of samples (n, m) on the same rows: 1.0 where at least 97.5 % of the differences are for the better, -1.0 for the worse, else 0.0.

    >>> from mtldsl.solution.measures import measure
    >>> better(measure("mae"), np.array([[1.0], [2.0]]), np.array([[1.5], [2.5]]), np.array([2.0]))
    array([1.])
    """
    low, high = percentiles(by.direction * (own - beside), SETTINGS.level_share)
    margin = SETTINGS.gain_tol * (1.0 if by.higher_is_better else np.abs(guess))
    verdict = np.where(low > margin, 1.0, np.where(high < -margin, -1.0, 0.0))
    return np.where(np.isnan(low) | np.isnan(guess), np.nan, verdict)


# --------------------------------------------------------------------------------------------------------------
# A vector of classes: every row has one, that with the highest score, which no label alone has.


def score_classes(right: np.ndarray, guessed: np.ndarray, n_tasks: int, samples: int) -> ScoredMeasure:
    """The share of rows whose class is right.

    right, guessed : (n,) 1.0 where the predicted class is right, and where the guess is; NaN where there is no guess
    """
    by = Measure("share of rows whose class is right", "", "answers", True)
    score, guess, low, high, ahead = float(right.mean()), float(guessed.mean()), np.nan, np.nan, np.nan
    if samples > 1:
        drawn = np.random.default_rng(0).integers(len(right), size=(samples, len(right)))
        own, beside = right[drawn].mean(axis=1), guessed[drawn].mean(axis=1)
        low, high = (float(end) for end in percentiles(own, SETTINGS.level_share))
        ahead = float(better(by, own, beside, np.asarray(guess)))
    none = np.full(n_tasks, np.nan)
    return ScoredMeasure(by, by.name, none, none, none, none, none, (score, low, high, guess, ahead))


def class_vectors(
    solution: Any, tasks: Tasks, learned: Tasks | None, samples: int
) -> dict[str, tuple[int, ScoredMeasure]]:
    """{column of labels: (its rows, the share whose class is right)}, of columns with a task a class, all of them here.

    learned : the rows whose most frequent class is the guess; None where they are forgotten
    """
    names, found = list(solution.task_names), {}
    columns = [one for one in solution.description.labels if len(one.made) > 1 and {*one.made} <= {*names}]
    if not columns or not tasks.in_memory or tasks.task_names != solution.task_names:
        return found
    pairs = outputs_beside(solution, tasks, "scores", "scores of classes")
    cuts = np.zeros(len(names)) if solution.thresholds is None else solution.thresholds
    for column in columns:
        which = [names.index(part) for part in column.made]
        truth = np.argmax([pairs[i][0] for i in which], axis=0)
        best = np.argmax([pairs[i][1] - cuts[i] for i in which], axis=0)
        guessed = np.full(len(truth), np.nan)
        if learned is not None and learned.in_memory:
            targets = learned.per_task(learned.targets)
            guessed = 1.0 * (truth == np.argmax([np.sum(targets[i] > 0) for i in which]))
        found[column.name] = len(truth), score_classes(1.0 * (truth == best), guessed, len(names), samples)
    return found
