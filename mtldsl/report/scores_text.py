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
    accuracy = found["measure"] == "accuracy"
    guess, metrics = "majority" if accuracy else "constant", found["metrics"]
    table = Table(box=None, pad_edge=False, padding=(0, 2 if metrics else 3, 0, 0), header_style=DIM)
    table.add_column("task")
    table.add_column("rows", justify="right")
    table.add_column("accuracy" if accuracy else "R²", justify="right")
    table.add_column(guess, justify="right", style=DIM)
    for name in metrics:
        table.add_column(name, justify="right", overflow="fold")
        table.add_column("constant", justify="right", style=DIM)
    rows = sorted(found["tasks"], key=lambda row: (math.isnan(row["score"]), row["score"]))
    shown = found["tasks"] if len(rows) <= MAX_TASKS else [*rows[:ENDS], None, *rows[-ENDS:]]
    for row in shown:
        if row is None:
            table.add_row("...")
            continue
        cells = [_score(row["score"], accuracy), _score(row["guess"], accuracy)]
        for name in metrics:
            pair = row["metrics"].get(name, {"score": math.nan, "guess": math.nan})
            cells += [_score(pair["score"], False), _score(pair["guess"], False)]
        table.add_row(row["task"], f"{row['rows']:,}", *cells)
    cells = [_score(found["mean"], accuracy), _score(found["mean_guess"], accuracy)]
    for means in metrics.values():
        cells += [_score(means["mean"], False), _score(means["mean_guess"], False)]
    table.add_row("average", "", *cells, style="bold")
    order = "" if len(rows) <= MAX_TASKS else f"; the {ENDS} worst and the {ENDS} best of {len(rows)} tasks"
    notes = [Text(f"{guess}: {found['guess']} of the training rows{order}", DIM)]
    if metrics:
        one = "one label for all samples, the better one on the training rows"
        notes.append(Text(f"constant: {one}; a metric's score is 1 where nothing is wrong", DIM))
    notes += [Text(f"not measured: {reason}", "yellow") for reason in found["metrics_not_measured"]]
    title = f"Scores on {'held-out' if found['rows'] == 'held out' else 'the training'} rows"
    return section(title, table, *notes)


def _score(value: float, accuracy: bool) -> str:
    if math.isnan(value):
        return "-"
    return f"{100 * value:.1f} %" if accuracy else f"{value:.3f}"
