"""How well the weights predict, task by task, as a section of the report."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Group
from rich.text import Text

from mtldsl.report.layout import DIM, FittingTable, section

__all__ = ["scores"]

#: More tasks than this are shown as a summary with the worst and the best.
MAX_TASKS, ENDS = 24, 5


def scores(found: dict) -> Group:
    """Tables of a line a task: the score and what was learned for, then the measures that were asked for, two a table."""
    accuracy = found["measure"] == "accuracy"
    guess, metrics = "majority" if accuracy else "constant", found["metrics"]
    learned = [name for name, means in metrics.items() if "higher_is_better" not in means]
    names = [name for name in metrics if name not in learned]
    rows = sorted(found["tasks"], key=lambda row: (math.isnan(row["score"]), row["score"]))
    shown = found["tasks"] if len(rows) <= MAX_TASKS else [*rows[:ENDS], None, *rows[-ENDS:]]
    first = 0 if learned else 1
    tables = [_table(found, shown, learned or names[:first], base=True)]
    tables += [_table(found, shown, names[k : k + 2], base=False) for k in range(first, len(names), 2)]
    order = "" if len(rows) <= MAX_TASKS else f"; the {ENDS} worst and the {ENDS} best of {len(rows)} tasks"
    notes = [Text(f"{guess}: {found['guess']} of the training rows{order}", DIM)]
    if found["measure"] not in _HEADS:
        notes.append(Text(f"score: {found['measure']}", DIM))
    lower = [name for name, means in metrics.items() if not means.get("higher_is_better", True)]
    if learned:
        one = "one label for all samples, the better one on the training rows"
        notes.append(Text(f"constant: {one}; a metric's score is 1 where nothing is wrong", DIM))
    if lower:
        notes.append(Text(f"lower is better: {', '.join(lower)}", DIM))
    cut = found["thresholds"]
    if cut is not None:
        ends = sorted(cut["by_task"].values())
        where = f"{ends[0]:.2f}" if len(ends) == 1 else f"{ends[0]:.2f} to {ends[-1]:.2f}"
        notes.append(Text(f"thresholds: {where} of the decision function, where {cut['metric']} is best on {cut['folds']} folds of the training rows", DIM))  # fmt: skip
    notes += [Text(f"not measured: {reason}", "yellow") for reason in found["metrics_not_measured"]]
    title = f"Scores on {'held-out' if found['rows'] == 'held out' else 'the training'} rows"
    return section(title, *tables, *notes)


#: what stands over the scores; of tasks of several kinds "score", which a note explains
_HEADS = {"accuracy": "accuracy", "R2": "R²"}


def _table(found: dict, shown: list, names: list[str], base: bool) -> FittingTable:
    """base : with the number of rows, the score and what the simplest guess has"""
    accuracy, metrics = found["measure"] == "accuracy", found["metrics"]
    columns = [("task", "")]
    if base:
        score, guess = _HEADS.get(found["measure"], "score"), "majority" if accuracy else "constant"
        columns += [("rows", ""), (score, ""), (guess, DIM)]
    first = len(columns)
    for name in names:
        columns += [(name, ""), ("constant", DIM)]
    rows: list[tuple[Sequence[str], str]] = []
    for row in shown:
        if row is None:
            rows.append((["..."], ""))
            continue
        cells = [f"{row['rows']:,}", _score(row["score"], accuracy), _score(row["guess"], accuracy)] * base
        for name in names:
            pair = row["metrics"].get(name, {"score": math.nan, "guess": math.nan})
            cells += [_score(pair["score"], False), _score(pair["guess"], False)]
        rows.append(([row["task"], *cells], ""))
    cells = ["", _score(found["mean"], accuracy), _score(found["mean_guess"], accuracy)] * base
    for name in names:
        cells += [_score(metrics[name]["mean"], False), _score(metrics[name]["mean_guess"], False)]
    rows.append((["average", *cells], "bold"))
    guesses = list(range(first + 1, len(columns), 2))
    return FittingTable(columns, rows, [1] * base + guesses[::-1] + [3] * base)


def _score(value: float, accuracy: bool) -> str:
    if math.isnan(value):
        return "-"
    return f"{100 * value:.1f} %" if accuracy else f"{value:.3f}"
