"""Sections about the noise of tasks, and about what came of several starts."""

from __future__ import annotations

import math

from rich.console import Group
from rich.table import Table
from rich.text import Text

from mtldsl.report.layout import BAD, DIM, section, small

__all__ = ["calibration", "several_starts"]

#: More tasks than this are shown by their ends alone; and so are starts.
MAX_ROWS, ENDS = 12, 4


def calibration(found: dict) -> Group:
    """The tasks with the most noise and those with the least, and what their residuals weigh."""
    rows = sorted(found["tasks"], key=lambda row: -row["noise_level"])
    typical = _median([row["weight"] for row in rows if not row["exact"]])
    table = _table("task", "noise level", "weight", "of the median")
    for row in _ends(rows):
        if row is None:
            table.add_row("...")
        elif row["exact"]:
            table.add_row(Text(row["task"]), small(row["noise_level"]), "fitted exactly")
        else:
            share = f"{row['weight'] / typical:.2f} ×" if typical > 0 else ""
            table.add_row(Text(row["task"]), f"{row['noise_level']:.4g}", f"{row['weight']:.4g}", share)
    lead = f"{found['loss']}: the more noise a task has, the less do its squared residuals weigh"
    notes = [
        Text("noise level: the root mean square of the task's residuals, in the units of its labels", DIM)
    ]
    if len(rows) > MAX_ROWS:
        notes.append(
            Text(f"the {ENDS} tasks with the most noise and the {ENDS} with the least, of {len(rows):,}", DIM)
        )
    if any(row["exact"] for row in rows):
        notes.append(Text("fitted exactly: the loss has a kink there, and no weight that says anything", DIM))
    return section("Calibration", Text(lead), table, *notes)


def several_starts(found: dict) -> Group:
    """What came of every start, the best first where there are many."""
    rows, many = found["rows"], len(found["rows"]) > MAX_ROWS
    if many:
        rows = sorted(
            rows, key=lambda row: (row["status"] not in ("stationary", "optimal"), row["objective"])
        )
    table = _table("start", "objective", "residual", "iterations", "seconds", "status")
    for row in _ends(rows):
        if row is None:
            table.add_row("...")
            continue
        name = "solver's own" if row["start"] == 0 else f"random {row['start']}"
        certified = row["status"] in ("stationary", "optimal")
        table.add_row(
            name,
            f"{row['objective']:.10g}",
            small(row["residual"]),
            f"{row['iterations']:,}",
            f"{row['seconds']:.3f}",
            row["status"].replace("_", " ") + (", kept" if row["best"] else ""),
            style="green" if row["best"] and certified else None if certified else BAD,
        )
    notes = [Text(f"the {ENDS} best and the {ENDS} worst of {len(rows):,} starts", DIM)] if many else []
    return section("Starts", table, *notes, _apart(found))


def _apart(found: dict) -> Text:
    if not found["certified"]:
        return Text("No start led to a point that is proven stationary.", BAD)
    count = f"{found['certified']} of {len(found['rows'])} starts ended at a stationary point"
    if found["different"] == 1:
        return Text(f"{count}, all with the same objective.")
    return Text(
        f"{count}, with {found['different']} different objectives; the highest lies {small(found['spread'])} of its size "
        "above the lowest."
    )


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style=DIM)
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="left" if name == "status" else "right", no_wrap=True)
    return table


def _ends(rows: list) -> list:
    return rows if len(rows) <= MAX_ROWS else [*rows[:ENDS], None, *rows[-ENDS:]]


def _median(values: list[float]) -> float:
    if not values:
        return math.nan
    middle = sorted(values)
    half = len(middle) // 2
    return middle[half] if len(middle) % 2 else 0.5 * (middle[half - 1] + middle[half])
