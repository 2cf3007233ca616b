"""Cross-validation as text, and as a panel."""

from __future__ import annotations

from typing import Any

from mtldsl.shown.panel import GOOD, NEUTRAL, Panel, Table

__all__ = ["panel_of", "text", "without_a_number"]


def text(found: Any) -> str:
    """A line for every value of a `CrossValidation`, with what is best marked, and what was left out below."""
    lines = [_measured(found)]
    width = max(10, *(len(name) + 2 for name in found.names))
    lines.append("".join(f"{name:>{width}}" for name in found.names) + f"{'mean':>11}{'se':>10}")
    for point, mean, se, marks in _rows(found):
        values = "".join(f"{value:>{width}.4g}" for value in point)
        lines.append(f"{values}{mean:>11.4f}{se:>10.4f}  {marks}".rstrip())
    return "\n".join([*lines, *_notes(found)])


def panel_of(found: Any) -> Panel:
    """The same as a table; the verdict is the value that is best."""
    rows = [
        (*(f"{value:.4g}" for value in point), f"{mean:.4f}", f"{se:.4f}", marks)
        for point, mean, se, marks in _rows(found)
    ]
    best = None if found._best is None else found.points[found._best]
    verdict = (
        "" if best is None else ", ".join(f"{n} = {v:.4g}" for n, v in zip(found.names, best, strict=True))
    )
    return Panel(
        "Cross-validation", verdict, NEUTRAL if best is None else GOOD, _measured(found),
        tables=[Table((*found.names, "mean", "standard error", ""), rows)], notes=_notes(found),
    )  # fmt: skip


def _measured(found: Any) -> str:
    better = "higher" if found.higher_is_better else "lower"
    return f"{found.metric} ({better} is better), mean of {found.n_folds} folds and its standard error, {found.n_tasks} tasks"


def _rows(found: Any):
    """(point, mean, standard error, what is said of it) of every point."""
    for k, (point, mean, se) in enumerate(zip(found.points, found.mean, found.se, strict=True)):
        marks = ["best"] * (k == found._best) + ["one standard error"] * (
            found._best is not None and point == found.one_se
        )
        yield point, mean, se, ", ".join(marks)


def _notes(found: Any) -> list[str]:
    notes = []
    open_ = sum(row["status"] not in ("optimal", "stationary") for row in found.table)
    if open_:
        notes.append(
            f"not solved to the tolerance: {open_} of {len(found.table)} rows of the table, see status"
        )
    if found.notes:
        notes.append("not learned: " + "; ".join(found.notes))
    return notes + without_a_number(found)


def without_a_number(found: Any) -> list[str]:
    """A sentence on the tasks that the measure says nothing of in some folds, as there is no +1 in them, or nothing else."""
    if not found.unscored:
        return []
    folds = ", ".join(
        f"{name!r} in {count} of {found.n_folds} folds" for name, count in found.unscored.items()
    )
    return [f"without a number: {folds}"]
