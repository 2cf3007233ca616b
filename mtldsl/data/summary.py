"""Summary of tasks: sizes and kinds in one line, as a table, and as a fingerprint."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.data.task_data import TaskData
from mtldsl.display.sections import Panel, Table, some_rows

# --------------------------------------------------------------------------------------------------------------
# What tasks are: in a line, as plain values, and as a fingerprint of their numbers.


def one_line(tasks: TaskData) -> str:
    """Their sizes and kinds, as `repr` shows them."""
    missing = f" ({tasks.n_missing} missing)" if tasks.n_missing else ""
    kind = ("sparse " if tasks.is_sparse else "") + ("shared" if tasks.is_shared else "separate")
    kernels = f" of {several(len(tasks.views), 'kernel')}" if tasks.views else ""
    sizes = f"{several(tasks.n_tasks, 'task')}, {several(tasks.n_features, 'feature')}{kernels}"
    return f"<Tasks: {sizes}, {kind} inputs, {count_labels(tasks)} labelled rows{missing}>"


def describe(tasks: TaskData) -> dict:
    """Sizes and kinds as plain values, for reports and saved files."""
    return {
        "tasks": tasks.n_tasks,
        "features": tasks.n_features,
        "samples": tasks.n_samples,
        "rows_per_task": [int(tasks.counts.min()), int(tasks.counts.max())],
        "missing": tasks.n_missing,
        "inputs": "shared" if tasks.is_shared else "separate",
        "sparse": tasks.is_sparse,
        "weighted": tasks.is_weighted,
        "standardized": tasks.scaling is not None,
        "kernels": list(tasks.views),
    }


def fingerprint(tasks: TaskData) -> str:
    """SHA-256 of shapes and numbers: equal data, equal fingerprint. One task's inputs are copied at a time."""
    digest = hashlib.sha256()
    for X in tasks.matrices:
        digest.update(f"{X.shape} {sparse.issparse(X)}".encode())
        for part in (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,):
            # index arrays are 32 or 64 bits wide as scipy likes: the same numbers must not differ by that
            part = part.astype(np.int64) if part.dtype.kind == "i" else part
            digest.update(np.ascontiguousarray(part).tobytes())
    for part in (tasks.targets, tasks.offsets, tasks.mask, tasks.sample_weights):
        digest.update(b"-" if part is None else np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def count_labels(tasks: TaskData) -> str:
    """Return how many labelled rows the tasks have: of each, or from the least to the most."""
    counts = tasks.counts.tolist()
    return " + ".join(map(str, counts)) if tasks.n_tasks <= 4 else _range(counts)


def several(n: int, what: str) -> str:
    """ "1 task", "2 tasks"."""
    return f"{n} {what}" + "s" * (n != 1)


def _range(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low} to {high}" if low < high else f"{len(counts)} x {low}"


# --------------------------------------------------------------------------------------------------------------
# Tasks as a panel: their sizes, and the labels of each.


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
        n, strategy = tasks.imputation.gaps.nnz, tasks.imputation.strategy
        told = f"{n:,} cells, in whose place the {strategy} of the training rows' column stands; likewise in new inputs"
        facts.append(("missing inputs", told))
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
