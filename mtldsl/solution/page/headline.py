"""What stands on top of a page: how well it predicts, how far it is proven, in words and in a few numbers."""

from __future__ import annotations

import numpy as np

from mtldsl.shown.page import Number
from mtldsl.shown.panel import GOOD, NEUTRAL, WRONG
from mtldsl.solution.page.facts import Facts
from mtldsl.solution.page.measured import LEVEL, Scored
from mtldsl.tasks import Tasks

__all__ = ["lead", "numbers", "verdict"]


def verdict(facts: Facts) -> tuple[str, str]:
    """(what is proven, its tone)."""
    solution, check = facts.solution, facts.cross_check
    said, tone = "Certified: the optimum, proven", GOOD
    if not solution.is_certified:
        said, tone = f"NOT certified: {solution.status.replace('_', ' ')}", WRONG
    elif solution.status == "stationary":
        said = "Certified: a stationary point; no proof of a global optimum exists for this model"
    if not solution.verified:
        said, tone = f"As its file says, not verified here: {solution.status}", NEUTRAL
    if check is None:
        unknown = "not cross-checked" if solution.verified else "cross-check not stored in the file"
        return f"{said}; {unknown}", tone
    if not hasattr(check, "agrees"):
        return f"{said}; NOT cross-checked", tone
    where = "" if check.scope == "the whole problem" else " on a subsample"
    if not check.agrees:
        return f"{said}; the cross-check DISAGREES{where}", WRONG
    return f"{said}; the cross-check agrees{where}", tone


def lead(facts: Facts) -> list[str]:
    """Sentences below the verdict, the score first."""
    said = [*_judged(facts), *_unfinished(facts)]
    solution = facts.solution
    what = f"{_several(len(solution.task_names), 'task')}, {_several(len(solution.W), 'feature')}"
    trained = facts.training
    rows = "" if trained is None else f", learned from {_several(_rows(trained), 'row')}"
    return [*said, f"{what}{rows}; solved in {solution._time_said}."]


def numbers(facts: Facts) -> list[Number]:
    """The tiles: the score first, then the proof."""
    solution, check = facts.solution, facts.cross_check
    tiles = _of_scores(facts)
    used = int(np.count_nonzero(np.any(solution.W != 0, axis=1)))
    tiles.append(Number("features used", f"{used:,} of {len(solution.W):,}", "those whose weights are not all zero"))  # fmt: skip
    if not solution.verified:
        tiles.append(Number("gap, as its file says", f"{solution.relative_gap:.1e}", "not verified here: the file does not hold the proof's data"))  # fmt: skip
    elif solution.status == "stationary" and solution.stationarity is not None:
        tiles.append(Number("residual", f"{solution.stationarity.residual:.1e}", "proven: how far from a stationary point, which has zero"))  # fmt: skip
    elif np.isfinite(solution.relative_gap):
        tiles.append(Number("from the optimum, at most", _percent(solution.relative_gap), "proven: no other weights have an objective that is lower by more"))  # fmt: skip
    if solution.violation:
        tiles.append(Number("constraints", f"{solution.violation:.1e}", "how far the worst one is missed"))
    if hasattr(check, "agrees"):
        differ = f"; the objectives differ by {check.difference:+.1e}" if hasattr(check, "difference") else ""
        tiles.append(Number("second opinion", "agrees" if check.agrees else "DISAGREES", f"another program solved the same model{differ}", NEUTRAL if check.agrees else WRONG))  # fmt: skip
    return tiles


def _of_scores(facts: Facts) -> list[Number]:
    first = facts.first
    if first is None or facts.tasks is None:
        return [Number("score on new rows", "not known", _why_not(facts, first))]
    score, low, high, guess, better = first.overall
    whole = np.isnan(first.by_task).all()
    of = "" if whole or first.n_tasks == 1 else f", mean of {first.n_tasks:,} tasks"
    means = [] if np.isnan(low) else [f"{100 * LEVEL:g} % interval: {_short(low)} to {_short(high)}"]
    means = means if first.sound else ["too few labels in some tasks for an interval"]
    if first.separate is not None:
        means.append(first.beside_separate)
    if not np.isnan(guess):
        means += [f"a guess has {_short(guess)}", _beside(first)]
    tone = NEUTRAL if np.isnan(better) or better == 0 else GOOD if better > 0 else WRONG
    tone = NEUTRAL if tone == GOOD and (first.beaten or facts.flatters) else tone
    rows = (
        "rows learned on" if facts.flatters else "held out" if facts.n_seen == 0 else "on rows that you gave"
    )
    tiles = [Number(f"{first.name}{of}, {rows}", _short(score), "; ".join(means), tone)]
    known = ~np.isnan(first.better)
    if known.sum() > 1:
        count = int((first.better > 0).sum())
        rest = "" if count == known.sum() else "; of the others chance may be the reason"
        tiles.append(Number("shown task by task to beat a guess", f"{count:,} of {known.sum():,} tasks", f"by {first.name}, on the rows of one task alone{rest}"))  # fmt: skip
    return tiles


def _why_not(facts: Facts, first: Scored | None) -> str:
    if facts.tasks is not None:
        return "the rows that were held out could not be scored: see below"
    if first is None:
        return "no rows with labels were given to score it on"
    return "no rows were held out; how well it fits the rows it was learned on stands below"


def _judged(facts: Facts) -> list[str]:
    first = facts.first
    if facts.scored is None:
        return ["Nothing is said here of how well it predicts: no rows with labels were given."]
    if first is None or facts.tasks is None:
        return (
            ["Nothing is known of how well it predicts new rows: none were held out."]
            if facts.tasks is None
            else []
        )
    score, low, high, guess, _ = first.overall
    mean = (
        ""
        if first.n_tasks == 1 or np.isnan(first.by_task).all()
        else f", in the mean of {first.n_tasks:,} tasks,"
    )
    ends = "" if np.isnan(low) or not first.sound else f" ({_short(low)} to {_short(high)})"
    said = f"{'WARNING: on' if facts.flatters else 'On'} {facts.rows}, its {first.name}{mean} is {_short(score)}{ends}"
    said += "" if np.isnan(guess) else f", a guess has {_short(guess)}: {_beside(first)}"
    beside = first.beside_separate
    absent = f"{_several(facts.n_absent, 'task')} of {len(facts.solution.task_names):,} {'has' if facts.n_absent == 1 else 'have'} no rows here, and {'is' if facts.n_absent == 1 else 'are'} not scored."
    return [
        f"{said}." + (f" {beside[0].upper()}{beside[1:]}." if beside else ""),
        *([absent] if facts.n_absent else []),
    ]


def _unfinished(facts: Facts) -> list[str]:
    solution = facts.solution
    if solution.is_certified or not solution.verified:
        return []
    if np.isfinite(solution.relative_gap):
        return [f"The solve ended before the proof did: another solution may be better, by {100 * solution.relative_gap:.2g} % of the objective at most."]  # fmt: skip
    return ["The solve ended before the proof did: how much better another solution may be is not known."]


def _beside(first: Scored) -> str:
    """Whether it is better than a guess, in words."""
    score, _, _, guess, better = first.overall
    if np.isnan(better):
        gain = first.by.direction * (score - guess)
        return "without an interval, nobody knows whether that is chance" if gain > 0 else "no better than a guess"  # fmt: skip
    known = ~np.isnan(first.better)
    count = int((first.better > 0).sum())
    if better > 0 and known.sum() > 1 and count < known.sum():
        return f"better than a guess in the mean, and by itself in {count:,} of {known.sum():,} tasks"
    return {1.0: "better than a guess", 0.0: "not shown to be better than a guess"}.get(better, "WORSE than a guess")  # fmt: skip


def _percent(share: float) -> str:
    """
    >>> _percent(1.3e-5), _percent(0.0), _percent(1e-14)
    ('0.0013 %', '0 %', 'below 0.000001 %')
    """
    if 0 < share < 1e-8:
        return "below 0.000001 %"
    return f"{np.format_float_positional(float(f'{100 * share:.2g}'), trim='-')} %"


def _rows(tasks: Tasks) -> int:
    return tasks.X.shape[0] if tasks.is_shared else tasks.n_samples


def _several(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _short(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 1e3 else f"{value:,.0f}"
