"""Sections of a solution's page on learned matrices, scores, features, convergence and the path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.data.tasks import Tasks
from mtldsl.display.html import PageSection
from mtldsl.display.pictures.curves import plot_path
from mtldsl.display.pictures.heatmap import plot_weights
from mtldsl.display.pictures.scores import plot_scores
from mtldsl.display.sections import Panel, Table, some_rows
from mtldsl.errors import MTLError
from mtldsl.solution.headline_sections import ReportContext, draw_figures
from mtldsl.solution.measures import SETTINGS as MEASURES
from mtldsl.solution.measures import meaning_of, measure_of_rare
from mtldsl.solution.score_intervals import ScoredMeasure, outputs_beside, shortened

# --------------------------------------------------------------------------------------------------------------
# Parts learned beside the weights: matrices, weights of similarities, graphs of labels.


@dataclass(frozen=True)
class ScoreSectionSettings:
    """Sizes of tables and maps.

    listed_pairs    : pairs of a matrix that are written down
    listed_tasks    : tasks with a line each
    end_tasks       : of more, the worst and the best
    mapped_features : features in the map of weights: more names are not legible below each other on one page
    weight_tasks    : tasks whose weights stand beside each other in a panel
    rank_entries    : numbers of a matrix whose rank is asked for
    """

    listed_pairs: int = 8
    listed_tasks: int = 40
    end_tasks: int = 10
    mapped_features: int = 30
    weight_tasks: int = 6
    rank_entries: int = 1_000_000


SETTINGS = ScoreSectionSettings()


def learned_sections(facts: ReportContext) -> PageSection | None:
    """Every one as a picture and as text."""
    solution = facts.solution
    found = dict(solution.learned)
    if solution.label_graph is not None:
        found["graph of labels"] = solution.label_graph
    if not found:
        return None
    drawn = draw_figures(
        *(
            (one.plot, f"a picture of {name}; its numbers stand in the text", _caption(name, one))
            for name, one in found.items()
        )
    )
    return PageSection("Learned beside the weights", panels=[_panel(name, one) for name, one in found.items()], figures=drawn)  # fmt: skip


def _panel(name: str, one) -> Panel:
    """Its text; of a matrix that is too large to be written down, the pairs that are furthest from independent."""
    text = str(one)
    if not text.startswith("<"):
        return Panel(_caption(name, one), text=text)
    correlation = np.asarray(one.correlation)
    first, second = np.triu_indices(len(correlation), k=1)
    sizes = np.nan_to_num(np.abs(correlation[first, second]))
    strongest = [
        k for k in np.argsort(-sizes, kind="stable")[: SETTINGS.listed_pairs].tolist() if sizes[k] >= 0.005
    ]
    if not strongest:
        return Panel(_caption(name, one), notes=["No two are correlated."])
    rows = [(one.names[first[k]], one.names[second[k]], f"{correlation[first[k], second[k]]:+.2f}") for k in strongest]  # fmt: skip
    table = Table(("one", "the other", "correlation"), rows)
    left = len(sizes) - len(rows)
    notes = [f"The strongest correlations; {left:,} more pairs are not shown."] if left else []
    return Panel(_caption(name, one), tables=[table], notes=notes)


def _caption(name: str, one) -> str:
    kind = getattr(one, "kind", "")
    return f"{name}: {kind} of {one.axis}" if kind and hasattr(one, "axis") else name


# --------------------------------------------------------------------------------------------------------------
# How well a solution predicts: task by task, beside the simplest guess, with intervals.


def scores(facts: ReportContext) -> PageSection | None:
    """The measure that was learned for or chosen by, F1, ROC area and accuracy of labels, or R^2 and the mean absolute error of numbers."""
    tasks = facts.scored
    if tasks is None:
        return None
    found, missing = facts.measures
    if not found:
        return PageSection("How well it predicts", missing)
    shown = np.arange(tasks.n_tasks)
    notes = _notes(facts, tasks, found)
    if len(shown) > SETTINGS.listed_tasks:
        order = np.argsort(
            np.nan_to_num(found[0].by.direction * found[0].by_task, nan=-np.inf), kind="stable"
        )
        shown = np.concatenate([order[: SETTINGS.end_tasks], order[-SETTINGS.end_tasks :]])
        notes.append(
            f"The {SETTINGS.end_tasks} worst and the {SETTINGS.end_tasks} best of {tasks.n_tasks} tasks by {found[0].name}."
        )
    rows = [_row(tasks, i, found, facts) for i in shown.tolist()]
    rows.append(("mean", "", *([""] if facts.classes else []), *(c for one in found for c in _overall(one))))
    of_all = _class_of_all(facts)
    signs = [f"positive ({of_all})" if of_all else "positive"] if facts.classes else []
    head = (
        "task",
        "labels",
        *signs,
        *(h for one in found for h in (one.name, *_separate_head(one), "guess")),
    )
    able = [one for one in (facts.first, *found) if one is not None and not np.isnan(one.by_task).all()]
    first = able[0] if able else None
    picture = [] if first is None else draw_figures((
        lambda: plot_scores(
            {"learned": first.by_task.tolist(), "guess": first.guess.tolist()}, tasks.task_names, measure=first.name,
            intervals=None if np.isnan(first.low).all() else np.column_stack([first.low, first.high]),
        ),
        f"{first.name} of every task, learned and guessed; the same numbers stand in the table", "",
    ))  # fmt: skip
    return PageSection(
        "How well it predicts",
        [
            f"Measured on {facts.rows}. A certificate says that the weights are those of the model, not that the model is good: "
            "that stands here.",
            *_beside_guess(facts.first or found[0], tasks.task_names),
        ],
        [Panel("", tables=[Table(head, rows)], notes=[*notes, *missing]), *_alarms(facts, shown)],
        picture,
    )  # fmt: skip


def _notes(facts: ReportContext, tasks: Tasks, found: list[ScoredMeasure]) -> list[str]:
    """Sentences below the table: of intervals, guesses, separate models, thresholds, and what every measure says."""
    share, drawn = f"{100 * MEASURES.level_share:g} %", f"{facts.bootstrap} samples of the rows"
    notes = [f"In brackets: {share} intervals, from {drawn}, drawn with replacement."]
    if facts.bootstrap == 0:
        notes = ["Without intervals (bootstrap=0) nothing says which differences are chance."]
    notes.append(f"A guess is {_guess(facts)}.")
    if any(one.separate is not None for one in found):
        tuned = getattr(facts.separate, "thresholds", None) is not None
        cut = ", and thresholds tuned on folds" if tuned else ""
        notes.append(
            f"Alone: one model per task, learned on the same rows, with a ridge chosen on folds{cut}."
        )
    cuts = facts.judged.thresholds
    if cuts is not None:
        ends = f"{np.min(cuts):.3g}" if len(cuts) == 1 else f"{np.min(cuts):.3g} to {np.max(cuts):.3g}"
        never = ", and inf is never reached" * bool(np.isinf(cuts).any())
        notes.append(
            f"A row is called positive where its score reaches the tuned threshold of its task: {ends}, where 0 is untuned{never}."
        )
    meanings = [clause for one in found if (clause := meaning_of(one.by))]
    named = ("log", "mse")  # names that begin with a small letter
    notes.append(". ".join(one if one[:3] in named else one[0].upper() + one[1:] for one in meanings) + ".")
    fewest = min(len(y) for y in tasks.per_task(tasks.targets))
    return notes + [
        f"The mean {one.name} has no interval: that of the samples is wide and biased, for {fewest:,} labels in one task are too few."
        for one in found
        if not one.sound
    ]


def _alarms(facts: ReportContext, shown: np.ndarray) -> list[Panel]:
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
        rows.append((tasks.task_names[i], *rates, *map(shortened, judged[i].tolist())))
    head = ("task", "positive", "alarms", "precision", "recall")
    where = "the tuned threshold" if solution.thresholds is not None else "the threshold 0"
    notes = [
        f"An alarm is a row that is called positive, at {where}.",
        "Precision is the share of alarms that are right. Recall is the share of positive rows that raise one.",
    ]
    caption = "Positive rows and alarms, per 1,000 rows"
    return [Panel("", tables=[Table(head, rows, caption)], notes=notes)]


def _beside_guess(scored: ScoredMeasure, names) -> list[str]:
    """In words, which tasks are not shown to be better than a guess; nothing where that is not known."""
    _, known = scored.beats
    if not known:
        return []
    weak = np.flatnonzero(scored.better <= 0).tolist()
    if not weak:
        where = "" if len(names) == 1 else " in every task that was measured"
        return [f"By {scored.name}, this is better than a guess{where}."]
    said = [
        f"By {scored.name}, it is not shown to be better than a guess in {len(weak):,} of {known:,} tasks: {_some(names, weak)}."
    ]
    worse = [i for i in weak if scored.better[i] < 0]
    return [*said, f"It is worse than a guess in {_some(names, worse)}."] if worse else said


def _some(names, chosen: list[int]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(chosen) - 5:,} more" if len(chosen) > 5 else ""
    return ", ".join(repr(names[i]) for i in chosen[:5]) + more


def _guess(facts: ReportContext) -> str:
    what = "the same label for every row, the one that scores better" if facts.classes else "the mean"
    if facts.classes and not facts.signs.all():
        what += ", and of numbers the mean"
    return f"{what} {'on' if facts.classes else 'of'} {'the training rows' if facts.training is not None else 'these rows'}"


def _class_of_all(facts: ReportContext) -> str:
    """The class that counts as positive in every task; "" where there are several, or none was named."""
    named = {facts.positive.get(name, "") for name in facts.judged.task_names}
    return named.pop() if len(named) == 1 else ""


def _row(tasks: Tasks, i: int, found: list[ScoredMeasure], facts: ReportContext) -> tuple[str, ...]:
    y = tasks.per_task(tasks.targets)[i]
    named = "" if _class_of_all(facts) else facts.positive.get(tasks.task_names[i], "")
    share = (
        [f"{100 * np.mean(y > 0):.1f} %" + f" are {named}" * bool(named) if facts.signs[i] else ""]
        if facts.classes
        else []
    )
    cells = []
    for one in found:
        cells.append(_with_ends(one.by_task[i], one.low[i], one.high[i]))
        if one.separate is not None:
            cells.append("-" if one.separate.by_task is None else shortened(one.separate.by_task[i]))
        cells.append(shortened(one.guess[i]))
    return (tasks.task_names[i], f"{len(y):,}", *share, *cells)


def _overall(one: ScoredMeasure) -> tuple[str, ...]:
    score, low, high, guess, _ = one.overall
    return (
        _with_ends(score, low, high) if one.sound else shortened(score),
        *(shortened(float(one.separate or 0.0)) for _ in _separate_head(one)),
        shortened(guess),
    )


def _separate_head(one: ScoredMeasure) -> tuple[str, ...]:
    """The head of the column of separate models, where there are any."""
    return () if one.separate is None else ("alone",)


def _with_ends(score: float, low: float, high: float) -> str:
    return shortened(score) + (
        "" if np.isnan(score) or np.isnan(low) else f" [{shortened(low)}, {shortened(high)}]"
    )


# --------------------------------------------------------------------------------------------------------------
# What was learned of every feature: how much it counts, the weights as a map, and how the solve went.

#: What the picture shows, and a line below it.
_GAP = (
    "objective above the proven bound, and the proven gap, at every look; both fall",
    "The gap that is proven at a look is never smaller than the true distance to the optimum.",
)
_NO_GAP = (
    "objective above the lowest that was found, at every look; it falls",
    "No gap is proven for a model that is not convex; what is proven stands on top.",
)


def features(facts: ReportContext) -> PageSection | None:
    """The importance of feature j is sqrt(sum over tasks of (w_ij s_j)^2), s_j the spread of its column in the training rows, as a share of all."""
    solution = facts.solution
    W = solution.W
    if W.ndim != 2 or len(solution.feature_names) != len(W) or W.shape[1] != len(solution.task_names):
        return None
    if not W.any():
        return PageSection("What was learned", ["All weights are zero: no feature counts."])
    sizes, told = feature_sizes(solution, facts.training)
    shares = sizes / (sizes.sum() or 1.0)
    order = np.argsort(-sizes, kind="stable")[: int(np.count_nonzero(sizes))]
    strongest = np.argmax(np.abs(W), axis=1)
    rows = [
        (
            solution.feature_names[j],
            f"{100 * shares[j]:.1f} %",
            f"{solution.task_names[strongest[j]]} ({W[j, strongest[j]]:+.3g})",
        )
        for j in order.tolist()
    ]
    rows, notes = some_rows(rows, "features with weights")
    zero = len(W) - len(order)
    text = [
        f"{len(order):,} of {len(W):,} features have weights"
        + (f"; {zero:,} {'was' if zero == 1 else 'were'} set to zero." if zero else ".")
    ]
    text.append(f"Importance is {told}.")
    table = Table(("feature", "importance", "largest weight"), rows)
    in_picture = order[: SETTINGS.mapped_features]
    drawn = draw_figures((
        lambda: plot_weights(W[in_picture], [solution.feature_names[j] for j in in_picture], solution.task_names, order=None),
        "the weights of features (down) and tasks (across); red is above zero, blue below",
        "Features stand in the order of the table." if len(order) <= SETTINGS.mapped_features else f"The {SETTINGS.mapped_features} most important features, in the order of the table.",
    ))  # fmt: skip
    return PageSection("What was learned", text, [Panel("", tables=[table], notes=notes)], drawn)


def feature_sizes(solution: Any, tasks: Tasks | None) -> tuple[np.ndarray, str]:
    """Return ((d,) sqrt(sum over tasks of (w_ij s_j)^2), what that is): s_j is the spread of a column in the training rows, 1 where these are
    not known, or were scaled by the tasks themselves.
    """
    W, whole = (
        np.reshape(solution.W, (len(solution.W), -1)),
        "the norm of its weights over the tasks, as a share of all",
    )
    if tasks is None or solution.scaling is not None:
        return np.linalg.norm(W, axis=1), whole
    squares = tasks.column_lengths**2  # (d, m)
    n = tasks.counts
    means = np.stack([np.asarray(X.sum(axis=0)).ravel() for X in tasks.inputs], axis=1) / n
    spread = np.sqrt(np.maximum(squares / n - means**2, 0.0)).mean(axis=1)
    sizes = np.linalg.norm(W * spread[:, None], axis=1)
    return sizes, f"{whole}, every feature measured in its own standard deviations"


def convergence(facts: ReportContext) -> PageSection | None:
    """Return how the objective fell, and how far it was proven to be from the optimum."""
    solution = facts.solution
    proven = solution.stationarity is None
    # without a bound the lowest look has no place on the picture, and one point is not a course
    if len(solution.history) < (2 if proven else 4):
        return None
    drawn = draw_figures((
        solution.plot_convergence,
        *(_GAP if proven else _NO_GAP),
    ))  # fmt: skip
    if not drawn:
        return None
    text = f"It took {solution.iterations:,} iterations and {solution._time_said}; the objective, what was minimised, ended at {solution.objective:.6g}."
    return PageSection("How the solve went", [text], figures=drawn)


def path(facts: ReportContext) -> PageSection | None:
    if len(facts.path) < 2:
        return None
    varies = [name for name in facts.path[0].parameters if len({s.parameters[name] for s in facts.path}) > 1]
    ends = sorted(facts.path, key=lambda solution: solution.parameters[varies[0]])
    falls = np.linalg.norm(ends[0].W) > np.linalg.norm(ends[-1].W)
    drawn = draw_figures((
        lambda: plot_path(facts.path),
        "the norm of every feature's weights at every value of the parameter",
        "The further right, the more the regularizer counts." if falls else "",
    ))  # fmt: skip
    return PageSection(f"The path of {len(facts.path)} solutions", figures=drawn) if drawn else None
