"""What tasks are whose rows are elsewhere: in a line, and as plain values."""

from __future__ import annotations

from typing import Any

from mtldsl.tasks.about import counted, several

__all__ = ["describe", "one_line"]


def one_line(tasks: Any) -> str:
    """Their sizes, and where the rows are, as `repr` shows them."""
    parts = several(tasks.parts.n_parts, "part")
    sparse = "sparse " if tasks.is_sparse else ""
    missing = f" ({tasks.n_missing} missing)" if tasks.n_missing else ""
    sizes = f"{several(tasks.n_tasks, 'task')}, {several(tasks.n_features, 'feature')}"
    return f"<Tasks: {sizes}, {sparse}rows in {parts} ({tasks.parts.where}), {counted(tasks)} labelled rows{missing}>"


def describe(tasks: Any) -> dict:
    """See `DistributedTasks.describe`."""
    return {
        "tasks": tasks.n_tasks,
        "features": tasks.n_features,
        "samples": tasks.n_samples,
        "rows_per_task": [int(tasks.counts.min()), int(tasks.counts.max())],
        "missing": tasks.n_missing,
        "inputs": "distributed",
        "parts": tasks.parts.n_parts,
        "where": tasks.parts.where,
        "sparse": tasks.is_sparse,
        "weighted": tasks.is_weighted,
        "standardized": tasks.scaling is not None,
        "kernels": [],
    }
