"""Cross-validation as text."""

from __future__ import annotations

from typing import Any

__all__ = ["text"]


def text(found: Any) -> str:
    """A line for every value of a `CrossValidation`, with what is best marked, and what was left out below."""
    better = "higher" if found.higher_is_better else "lower"
    lines = [
        f"{found.metric} ({better} is better), mean of {found.n_folds} folds and its standard error, {found.n_tasks} tasks"
    ]
    width = max(10, *(len(name) + 2 for name in found.names))
    lines.append("".join(f"{name:>{width}}" for name in found.names) + f"{'mean':>11}{'se':>10}")
    for k, (point, mean, se) in enumerate(zip(found.points, found.mean, found.se, strict=True)):
        marks = ["best"] * (k == found._best) + ["one standard error"] * (
            found._best is not None and point == found.one_se
        )
        values = "".join(f"{value:>{width}.4g}" for value in point)
        lines.append(f"{values}{mean:>11.4f}{se:>10.4f}  {', '.join(marks)}".rstrip())
    open_ = sum(row["status"] not in ("optimal", "stationary") for row in found.table)
    if open_:
        lines.append(
            f"not solved to the tolerance: {open_} of {len(found.table)} rows of the table, see status"
        )
    if found.notes:
        lines.append("not learned: " + "; ".join(found.notes))
    if found.unscored:
        folds = ", ".join(
            f"{name!r} in {count} of {found.n_folds} folds" for name, count in found.unscored.items()
        )
        lines.append(f"without a number: {folds}")
    return "\n".join(lines)
