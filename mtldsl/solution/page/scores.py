"""How well a solution predicts: task by task, beside the simplest guess, with intervals."""

from __future__ import annotations

import numpy as np

from mtldsl.errors import MTLError
from mtldsl.pictures.scores import plot_scores
from mtldsl.scoring.rare import measure_of_rare
from mtldsl.shown.page import Section
from mtldsl.shown.panel import Panel, Table
from mtldsl.solution.named_scores import outputs_beside
from mtldsl.solution.page.facts import Facts
from mtldsl.solution.page.measured import LEVEL, Scored
from mtldsl.solution.page.words import meaning_of
from mtldsl.tasks import Tasks

__all__ = ["scores"]

#: Tasks with a line each; of more, the worst and the best.
_MOST, _ENDS = 40, 10


def scores(facts: Facts) -> Section | None:
    """The measure that was learned for or chosen by, F1, ROC area and accuracy of labels, or R^2 and the mean absolute error of numbers."""
    tasks = facts.scored
    if tasks is None:
        return None
    found, missing = facts.measures
    if not found:
        return Section("How well it predicts", missing)
    shown = np.arange(tasks.n_tasks)
    notes = [_brackets(facts), f"A guess is {_guess(facts)}."]
    if any(one.separate is not None for one in found):
        tuned = getattr(facts.separate, "thresholds", None) is not None
        cut = ", and thresholds tuned on folds" if tuned else ""
        notes.append(
            f"Alone: one model per task, learned on the same rows, with a ridge chosen on folds{cut}."
        )
    cuts = facts.judged.thresholds
    if cuts is not None:
        ends = f"{np.min(cuts):.3g}" if len(cuts) == 1 else f"{np.min(cuts):.3g} to {np.max(cuts):.3g}"
        notes.append(
            f"A row is called positive where its score reaches the tuned threshold of its task: {ends}, where 0 is untuned."
        )
    notes += [". ".join(_sentence(clause) for one in found if (clause := meaning_of(one.by))) + "."]
    fewest = min(len(y) for y in tasks.per_task(tasks.targets))
    notes += [
        f"The mean {one.name} has no interval: that of the samples does not hold it, for {fewest:,} labels in one task are too few."
        for one in found
        if not one.sound
    ]
    if len(shown) > _MOST:
        order = np.argsort(
            np.nan_to_num(found[0].by.direction * found[0].by_task, nan=-np.inf), kind="stable"
        )
        shown = np.concatenate([order[:_ENDS], order[-_ENDS:]])
        notes.append(f"The {_ENDS} worst and the {_ENDS} best of {tasks.n_tasks} tasks by {found[0].name}.")
    rows = [_row(tasks, i, found, facts) for i in shown.tolist()]
    rows.append(("mean", "", *([""] if facts.classes else []), *(c for one in found for c in _overall(one))))
    signs = ["positive"] if facts.classes else []
    head = ("task", "labels", *signs, *(h for one in found for h in (one.name, *_alone(one), "guess")))
    able = [one for one in (facts.first, *found) if one is not None and not np.isnan(one.by_task).all()]
    first = able[0] if able else None
    picture = [] if first is None else facts.pictures((
        lambda: plot_scores(
            {"learned": first.by_task.tolist(), "guess": first.guess.tolist()}, tasks.task_names, measure=first.name,
            intervals=None if np.isnan(first.low).all() else np.column_stack([first.low, first.high]),
        ),
        f"{first.name} of every task, learned and guessed; the same numbers stand in the table", "",
    ))  # fmt: skip
    return Section(
        "How well it predicts",
        [
            f"Measured on {facts.rows}. A certificate says that the weights are those of the model, not that the model is good: "
            "that stands here.",
            *_beside_guess(facts.first or found[0], tasks.task_names),
        ],
        [Panel("", tables=[Table(head, rows)], notes=[*notes, *missing]), *_alarms(facts, shown)],
        picture,
    )  # fmt: skip


def _alarms(facts: Facts, shown: np.ndarray) -> list[Panel]:
    """Return a table of rare labels: rows that are called positive, the share that is right, and the share of positive rows that is found."""
    solution, tasks = facts.judged, facts.scored
    assert tasks is not None
    try:
        found = outputs_beside(solution, tasks, "labels", "report(tasks)")
    except MTLError:  # some tasks have numbers
        return []
    if measure_of_rare(float(np.mean(y > 0)) for y, _ in found) is None:
        return []
    judged = np.stack([solution.scores(tasks, name) for name in ("precision", "recall")], axis=1)
    rows = []
    for i in shown.tolist():
        rates = (f"{1000 * np.mean(one > 0):,.0f}" for one in found[i])
        rows.append((tasks.task_names[i], *rates, *map(_short, judged[i].tolist())))
    head = ("task", "positive", "alarms", "precision", "recall")
    where = "the tuned threshold" if solution.thresholds is not None else "the threshold 0"
    notes = [
        f"An alarm is a row that is called positive, at {where}.",
        "Precision is the share of alarms that are right. Recall is the share of positive rows that raise one.",
    ]
    caption = "Positive rows and alarms, per 1,000 rows"
    return [Panel("", tables=[Table(head, rows, caption)], notes=notes)]


def _brackets(facts: Facts) -> str:
    if facts.bootstrap == 0:
        return "Without intervals (bootstrap=0) nothing says which differences are chance."
    return f"In brackets: {100 * LEVEL:g} % intervals, from {facts.bootstrap} samples of the rows, drawn with replacement."


def _beside_guess(scored: Scored, names) -> list[str]:
    """In words, which tasks are not shown to be better than a guess; nothing where that is not known."""
    known = ~np.isnan(scored.better)
    if not known.any():
        return []
    weak = np.flatnonzero(known & (scored.better <= 0)).tolist()
    if not weak:
        said = (
            "better than a guess"
            if len(names) == 1
            else "better than a guess in every task that was measured"
        )
        return [f"By {scored.name}, this is {said}."]
    shown = ", ".join(names[i] for i in weak[:5]) + (f" and {len(weak) - 5:,} more" if len(weak) > 5 else "")
    said = [
        f"By {scored.name}, it is not shown to be better than a guess in {len(weak):,} of {known.sum():,} tasks: {shown}."
    ]
    worse = [names[i] for i in weak if scored.better[i] < 0]
    if worse:
        said.append(
            f"It is worse than a guess in {', '.join(worse[:5])}"
            + (f" and {len(worse) - 5:,} more." if len(worse) > 5 else ".")
        )
    return said  # fmt: skip


def _guess(facts: Facts) -> str:
    what = "the same label for every row, the one that scores better" if facts.classes else "the mean"
    if facts.classes and not facts.signs.all():
        what += ", and of numbers the mean"
    return f"{what} {'on' if facts.classes else 'of'} {'the training rows' if facts.training is not None else 'these rows'}"


def _row(tasks: Tasks, i: int, found: list[Scored], facts: Facts) -> tuple[str, ...]:
    y = tasks.per_task(tasks.targets)[i]
    share = [f"{100 * np.mean(y > 0):.1f} %" if facts.signs[i] else ""] if facts.classes else []
    cells = [
        (
            _with_ends(one.by_task[i], one.low[i], one.high[i]),
            *(_of_task(one.separate, i) for _ in _alone(one)),
            _short(one.guess[i]),
        )
        for one in found
    ]
    return (tasks.task_names[i], f"{len(y):,}", *share, *(cell for pair in cells for cell in pair))


def _overall(one: Scored) -> tuple[str, ...]:
    score, low, high, guess, _ = one.overall
    return (
        _with_ends(score, low, high) if one.sound else _short(score),
        *(_short(float(one.separate or 0.0)) for _ in _alone(one)),
        _short(guess),
    )


def _alone(one: Scored) -> tuple[str, ...]:
    """The head of the column of separate models, where there are any."""
    return () if one.separate is None else ("alone",)


def _of_task(score, i: int) -> str:
    return "-" if score.by_task is None else _short(score.by_task[i])


def _with_ends(score: float, low: float, high: float) -> str:
    return _short(score) + ("" if np.isnan(score) or np.isnan(low) else f" [{_short(low)}, {_short(high)}]")


def _short(value: float) -> str:
    """Three decimals, of large numbers four digits."""
    return "-" if np.isnan(value) else f"{value:.3f}" if abs(value) < 1e3 else f"{value:,.0f}"


def _sentence(clause: str) -> str:
    return clause if clause[:3] in ("log", "mse") else clause[0].upper() + clause[1:]
