"""How well a solution predicts: task by task, beside the simplest guess, with intervals."""

from __future__ import annotations

import numpy as np

from mtldsl.atoms.metrics import Metric
from mtldsl.errors import MTLError
from mtldsl.pictures.scores import plot_scores
from mtldsl.scoring.measure import Measure
from mtldsl.scoring.score import evaluate
from mtldsl.shown.page import Section
from mtldsl.shown.panel import Panel, Table
from mtldsl.solution.metric_measure import as_measure
from mtldsl.solution.named_scores import truth_of
from mtldsl.solution.page.facts import Facts
from mtldsl.tasks import Tasks

__all__ = ["constant_score", "scores"]

#: Samples of the rows behind an interval, and its level.
_TIMES, _LEVEL = 200, 0.95

#: Metrics that have a name as measures too.
_SAME = {"FScore()": "f1", "ROCArea()": "roc_auc"}

#: Tasks with a line each; of more, the worst and the best.
_MOST, _ENDS = 40, 10


def scores(facts: Facts) -> Section | None:
    """The measure that was learned for, accuracy, F1 and ROC area of labels, or R^2 and the mean absolute error of numbers."""
    tasks = facts.scored
    if tasks is None:
        return None
    found, missing = [], []
    for metric in _measures(facts):
        try:
            found.append(_scored(facts, tasks, metric))
        except MTLError as error:  # such as one class only among these rows
            missing.append(f"{_name(metric)} was not measured: {error}")
    if not found:
        return Section("How well it predicts", missing)
    shared = np.arange(tasks.n_tasks)
    notes = [
        f"Brackets hold {100 * _LEVEL:g} % of {_TIMES} samples of the rows, drawn with replacement; {_guess(facts)}."
    ]
    if len(shared) > _MOST:
        order = np.argsort(np.nan_to_num(found[0].by_task, nan=-np.inf), kind="stable")
        shared = np.concatenate([order[:_ENDS], order[-_ENDS:]])
        notes.append(f"The {_ENDS} worst and the {_ENDS} best of {tasks.n_tasks} tasks by {found[0].name}.")
    rows = [_row(tasks, i, found, facts.classes) for i in shared.tolist()]
    rows.append(
        (
            "mean of tasks",
            f"{tasks.n_samples:,}",
            *([""] if facts.classes else []),
            *(c for one in found for c in one.overall),
        )
    )
    head = (
        "task",
        "rows",
        *(["labels +1"] if facts.classes else []),
        *(h for one in found for h in (one.name, "guess")),
    )
    first = next((one for one in found if not np.isnan(one.by_task).all()), None)
    picture = [] if first is None else facts.pictures((
        lambda: plot_scores(
            {"learned": first.by_task, "guess": first.guess}, tasks.task_names, measure=first.name,
            intervals=np.column_stack([first.low, first.high]),
        ),
        f"{first.name} of every task, learned and guessed; the same numbers stand in the table", "",
    ))  # fmt: skip
    where = (
        "rows that were not learned on"
        if facts.tasks is not None
        else "the rows that it was learned on, which flatters it"
    )
    return Section(
        "How well it predicts",
        [
            f"Measured on {where}. A certificate says that the weights are those of the model, not that the model is good: "
            "that stands here.",
            *_beside_guess(found[0], tasks.task_names),
        ],
        [Panel("", tables=[Table(head, rows)], notes=[*notes, *missing])],
        picture,
    )


class _Scored:
    """One measure of all tasks, with intervals and what a guess has."""

    def __init__(self, name: str, interval, guess: np.ndarray, sign: float):
        self.name, self.guess, self.sign = name, guess, sign
        none = np.full(len(guess), np.nan)  # of a measure of whole rows, which no task has by itself
        self.by_task, self.low, self.high = (
            (none, none, none)
            if interval.estimate.by_task is None
            else (interval.estimate.by_task, interval.low_by_task, interval.high_by_task)
        )
        self.overall = (
            _with_ends(float(interval.estimate), interval.low, interval.high),
            "-" if np.isnan(guess).all() else f"{np.nanmean(guess):.3f}",
        )

    def cells(self, i: int) -> tuple[str, str]:
        guess = self.guess[i]
        return _with_ends(self.by_task[i], self.low[i], self.high[i]), "-" if np.isnan(
            guess
        ) else f"{guess:.3f}"


def _measures(facts: Facts) -> list:
    if facts.metrics:
        return list(facts.metrics)
    own = facts.solution.loss.get("parameters", {}).get("metric")
    names = ["f1", "roc_auc", "accuracy"] if facts.classes else ["r2", "mae"]
    if not isinstance(own, Metric):
        return names
    return [own, *(name for name in names if name != _SAME.get(repr(own)))]


def _scored(facts: Facts, tasks: Tasks, metric) -> _Scored:
    interval = facts.solution.bootstrap(tasks, metric, _TIMES, level=_LEVEL, random_state=0)
    sign = as_measure(metric, "report(tasks)").direction
    return _Scored(_name(metric), interval, _guessed(facts, tasks, metric), sign)


def _beside_guess(scored: _Scored, names) -> list[str]:
    """In words, which tasks' intervals do not lie on the better side of the guess; nothing where no interval or guess is known."""
    nearest = scored.low if scored.sign > 0 else scored.high
    known = ~np.isnan(nearest) & ~np.isnan(scored.guess)
    if not known.any():
        return []
    weak = np.flatnonzero(known & (scored.sign * (nearest - scored.guess) <= 0)).tolist()
    if not weak:
        said = (
            "better than a guess"
            if len(names) == 1
            else "better than a guess in every task that was measured"
        )
        return [f"By {scored.name}, this is {said}."]
    shown = ", ".join(names[i] for i in weak[:5]) + (f" and {len(weak) - 5:,} more" if len(weak) > 5 else "")
    return [
        f"By {scored.name}, it is not shown to be better than a guess in {len(weak):,} of {known.sum():,} tasks: {shown}."
    ]


def _guessed(facts: Facts, tasks: Tasks, metric) -> np.ndarray:
    """(m,) of one answer for all rows: the more frequent label, or the mean; of the training rows, or of these where they are not known."""
    return constant_score(as_measure(metric, "report(tasks)"), facts.training or tasks, tasks, facts.classes)


def constant_score(by: Measure, learned: Tasks, tasks: Tasks, classes: bool) -> np.ndarray:
    """(m,) what the more frequent label, or the mean, of the labels learned on has under a measure on these tasks; NaN where that says
    nothing."""
    truth, weights = truth_of(tasks)
    constants = [_constant(y, classes) for y in learned.per_task(learned.targets)]
    if len(constants) != len(truth) or by.needs == "probabilities":
        return np.full(len(truth), np.nan)
    guesses = [np.full(len(y), c) for y, c in zip(truth, constants, strict=True)]
    found = evaluate(
        by, truth, guesses, tasks.task_names, table=tasks.is_shared, weights=weights, typed="report(tasks)"
    )
    return np.full(len(truth), np.nan) if found.by_task is None else np.asarray(found.by_task)


def _constant(y: np.ndarray, classes: bool) -> float:
    return (1.0 if np.mean(y > 0) >= 0.5 else -1.0) if classes else float(np.mean(y))


def _guess(facts: Facts) -> str:
    what = "the more frequent label" if facts.classes else "the mean"
    of = "the training rows" if facts.training is not None else "these rows"
    return f"a guess is {what} of {of}, always"


def _row(tasks: Tasks, i: int, found: list[_Scored], classes: bool) -> tuple[str, ...]:
    y = tasks.per_task(tasks.targets)[i]
    share = [f"{100 * np.mean(y > 0):.1f} %"] if classes else []
    return (tasks.task_names[i], f"{len(y):,}", *share, *(cell for one in found for cell in one.cells(i)))


def _with_ends(score: float, low: float, high: float) -> str:
    if np.isnan(score):
        return "-"
    return f"{score:.3f}" + ("" if np.isnan(low) else f" [{low:.3f}, {high:.3f}]")


def _name(metric) -> str:
    name = _SAME.get(repr(metric), str(metric))
    return {"f1": "F1", "roc_auc": "ROC area", "r2": "R²", "mae": "mean absolute error"}.get(name, name)
