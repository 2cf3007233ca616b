"""How a parameter was chosen before the solve, as plain values and as a section of a report."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from mtldsl.analysis.cross_validated import CrossValidation
from mtldsl.report.layout import DIM, GOOD, section

__all__ = ["describe_validation", "validation"]


def describe_validation(found: CrossValidation | None, chosen: float | None) -> dict | None:
    """None where no parameter was chosen."""
    if found is None:
        return None
    return {
        "parameter": found.names[0],
        "chosen": chosen,
        "metric": found.metric,
        "higher_is_better": found.higher_is_better,
        "folds": len(found.scores),
        "values": [point[0] for point in found.points],
        "mean": [float(each) for each in found.mean],
        "standard_error": [float(each) for each in found.se],
        "notes": list(found.notes),
    }


def validation(record: dict):
    """Every value that was tried, the one that was chosen marked."""
    rows = Table.grid(padding=(0, 2))
    rows.add_row(Text(record["parameter"], DIM), Text("mean", DIM), Text("standard error", DIM), Text(""))
    for value, mean, error in zip(record["values"], record["mean"], record["standard_error"], strict=True):
        chosen = value == record["chosen"]
        style = GOOD if chosen else ""
        rows.add_row(
            Text(f"{value:.4g}", style), Text(f"{mean:.4f}", style), Text(f"{error:.4f}", style), Text("chosen" * chosen, style)
        )  # fmt: skip
    better = "higher" if record["higher_is_better"] else "lower"
    title = (
        f"{record['parameter']} chosen on {record['folds']} folds: {record['metric']} ({better} is better)"
    )
    return section(title, rows, *(Text(note, DIM) for note in record["notes"]))
