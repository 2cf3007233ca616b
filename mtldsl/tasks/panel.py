"""Tasks as a panel: their sizes, and the labels of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtldsl.shown.panel import Panel, Table, some_rows
from mtldsl.tasks.about import several

__all__ = ["panel_of"]


def panel_of(tasks: Any) -> Panel:
    """Sizes and kinds, then a row a task: how many labels, and the share of +1 where they are -1 and +1, else their mean and spread."""
    known = tasks.describe()
    kinds = known["inputs"] + (", sparse" if known["sparse"] else "")
    facts = [("inputs", kinds), ("labels", f"{known['samples']:,}")]
    if known["missing"]:
        facts.append(("missing labels", f"{known['missing']:,}"))
    if known["weighted"]:
        facts.append(("sample weights", "yes"))
    if known["standardized"]:
        facts.append(("features", "standardised; new inputs are scaled alike"))
    if tasks.imputation is not None:
        facts.append(("missing inputs", _imputed(tasks.imputation)))
    if known["kernels"]:
        facts.append(("kernels", ", ".join(map(str, known["kernels"]))))
    if "parts" in known:
        facts.append(("rows", f"in {known['parts']:,} parts ({known['where']})"))
    if tasks.feature_names:
        facts.append(("feature names", _listed(tasks.feature_names)))
    head, rows = _labels(tasks)
    rows, notes = some_rows(rows, "tasks")
    lead = f"{several(tasks.n_tasks, 'task')}, {several(tasks.n_features, 'feature')}"
    return Panel("Tasks", lead=lead, facts=facts, tables=[Table(head, rows)], notes=notes)


def _imputed(found: Any) -> str:
    return f"{found.gaps.nnz:,} cells, in whose place the {found.strategy} of the training rows' column stands; likewise in new inputs"


def _labels(tasks: Any) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """(the head, a row a task)."""
    counts = [f"{n:,}" for n in tasks.counts.tolist()]
    total, deviations, lowest, highest = tasks.label_sums()
    mean = total / tasks.counts
    signs = np.isin(lowest, (-1.0, 1.0)) & np.isin(highest, (-1.0, 1.0))
    two_classes = signs & np.isclose(deviations / tasks.counts + mean**2, 1.0, rtol=1e-12, atol=0.0)
    if two_classes.all():
        shares = [f"{100.0 * share:.1f} %" for share in (1.0 + mean) / 2.0]
        return ("task", "rows", "positive"), list(zip(tasks.task_names, counts, shares, strict=True))
    spread = np.sqrt(deviations / tasks.counts)
    numbers = [[f"{value:.4g}" for value in one] for one in (mean, spread, lowest, highest)]
    head = ("task", "rows", "mean", "standard deviation", "lowest", "highest")
    return head, list(zip(tasks.task_names, counts, *numbers, strict=True))


def _listed(names, most: int = 8) -> str:
    """
    >>> _listed(["a", "b", "c"], most=2)
    'a, b, ... (3)'
    """
    shown = ", ".join(map(str, names[:most]))
    return shown if len(names) <= most else f"{shown}, ... ({len(names):,})"
