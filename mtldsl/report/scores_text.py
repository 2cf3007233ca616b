"""How well the weights predict, task by task, as a section of the report."""

from __future__ import annotations

import math

from rich.console import Group
from rich.table import Table
from rich.text import Text

from mtldsl.report.layout import DIM, section

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


def _table(found: dict, shown: list, names: list[str], base: bool) -> Table:
    """base : with the number of rows, the score and what the simplest guess has"""
    accuracy, metrics = found["measure"] == "accuracy", found["metrics"]
    table = Table(box=None, pad_edge=False, padding=(0, 2 if names else 3, 0, 0), header_style=DIM)
    table.add_column("task")
    if base:
        table.add_column("rows", justify="right")
        table.add_column(_HEADS.get(found["measure"], "score"), justify="right")
        table.add_column("majority" if accuracy else "constant", justify="right", style=DIM)
    for name in names:
        table.add_column(name, justify="right", overflow="fold")
        table.add_column("constant", justify="right", style=DIM)
    for row in shown:
        if row is None:
            table.add_row("...")
            continue
        cells = [f"{row['rows']:,}", _score(row["score"], accuracy), _score(row["guess"], accuracy)] * base
        for name in names:
            pair = row["metrics"].get(name, {"score": math.nan, "guess": math.nan})
            cells += [_score(pair["score"], False), _score(pair["guess"], False)]
        table.add_row(row["task"], *cells)
    cells = ["", _score(found["mean"], accuracy), _score(found["mean_guess"], accuracy)] * base
    for name in names:
        cells += [_score(metrics[name]["mean"], False), _score(metrics[name]["mean_guess"], False)]
    table.add_row("average", *cells, style="bold")
    return table


def _score(value: float, accuracy: bool) -> str:
    if math.isnan(value):
        return "-"
    return f"{100 * value:.1f} %" if accuracy else f"{value:.3f}"
