"""How parameters were chosen before the solve, as plain values and as a section of a report."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from mtldsl.analysis.cross_validated import CrossValidation
from mtldsl.analysis.cross_validated_text import without_a_number
from mtldsl.report.layout import DIM, GOOD, section

__all__ = ["describe_validation", "validation"]


def describe_validation(found: CrossValidation | None, chosen: Sequence[float] | None) -> dict | None:
    """None where no parameter was chosen. One parameter is its name and its values are numbers; several are lists."""
    if found is None:
        return None
    one = len(found.names) == 1

    def plain(point):
        return None if point is None else float(point[0]) if one else [float(value) for value in point]

    return {
        "parameter": found.names[0] if one else list(found.names),
        "chosen": plain(chosen),
        "best": plain(found.best),
        "one_standard_error": plain(found.one_se),
        "metric": found.metric,
        "higher_is_better": found.higher_is_better,
        "folds": len(found.scores),
        "values": [plain(point) for point in found.points],
        "mean": [float(each) for each in found.mean],
        "standard_error": [float(each) for each in found.se],
        "notes": [*found.notes, *without_a_number(found)],
    }


def validation(record: dict):
    """Every value that was tried; those that are best, within one standard error of it, and chosen are marked."""
    names, values = record["parameter"], record["values"]
    if isinstance(names, str):
        names, values = [names], [[value] for value in values]
    rows = Table.grid(padding=(0, 2))
    rows.add_row(
        *(Text(name, DIM) for name in names), Text("mean", DIM), Text("standard error", DIM), Text("")
    )
    marks = {"best": "best", "one_standard_error": "one standard error", "chosen": "chosen"}
    few = max((abs(value) for value in record["mean"] if value is not None), default=0.0) >= 0.01
    for given, point, mean, error in zip(
        record["values"], values, record["mean"], record["standard_error"], strict=True
    ):
        said = ", ".join(word for key, word in marks.items() if given == record[key])
        style = GOOD if given == record["chosen"] else ""
        cells = [*(f"{value:.4g}" for value in point), _number(mean, few), _number(error, few), said]
        rows.add_row(*(Text(cell, style) for cell in cells))
    better = "higher" if record["higher_is_better"] else "lower"
    title = (
        f"{' and '.join(names)} chosen on {record['folds']} folds: {record['metric']} ({better} is better)"
    )
    return section(title, rows, *(Text(note, DIM) for note in record["notes"]))


def _number(value: float, few: bool) -> str:
    """`few` digits after the point, below which smaller scores would not be told apart."""
    return f"{value:.4f}" if few else f"{value:.4g}"
