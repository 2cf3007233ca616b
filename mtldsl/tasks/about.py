"""What tasks are: in a line, as plain values, and as a fingerprint of their numbers."""

from __future__ import annotations

import hashlib

import numpy as np
from scipy import sparse

from mtldsl.tasks.data import TaskData

__all__ = ["counted", "describe", "fingerprint", "one_line", "several"]


def one_line(tasks: TaskData) -> str:
    """Their sizes and kinds, as `repr` shows them."""
    missing = f" ({tasks.n_missing} missing)" if tasks.n_missing else ""
    kind = ("sparse " if tasks.is_sparse else "") + ("shared" if tasks.is_shared else "separate")
    kernels = f" of {several(len(tasks.views), 'kernel')}" if tasks.views else ""
    sizes = f"{several(tasks.n_tasks, 'task')}, {several(tasks.n_features, 'feature')}{kernels}"
    return f"<Tasks: {sizes}, {kind} inputs, {counted(tasks)} labelled rows{missing}>"


def describe(tasks: TaskData) -> dict:
    """See `Tasks.describe`."""
    return {
        "tasks": tasks.n_tasks,
        "features": tasks.n_features,
        "samples": tasks.n_samples,
        "rows_per_task": [int(tasks.counts.min()), int(tasks.counts.max())],
        "missing": tasks.n_missing,
        "inputs": "shared" if tasks.is_shared else "separate",
        "sparse": tasks.is_sparse,
        "weighted": tasks.sample_weights is not None,
        "standardized": tasks.scaling is not None,
        "kernels": list(tasks.views),
    }


def fingerprint(tasks: TaskData) -> str:
    """See `Tasks.fingerprint`."""
    digest = hashlib.sha256()
    for X in [tasks.X] if tasks.is_shared else tasks.inputs:
        digest.update(f"{X.shape} {sparse.issparse(X)}".encode())
        for part in (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,):
            # index arrays are 32 or 64 bits wide as scipy likes: the same numbers must not differ by that
            part = part.astype(np.int64) if part.dtype.kind == "i" else part
            digest.update(np.ascontiguousarray(part).tobytes())
    for part in (tasks.targets, tasks.offsets, tasks.mask, tasks.sample_weights):
        digest.update(b"-" if part is None else np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def counted(tasks: TaskData) -> str:
    """How many labelled rows the tasks have: of each, or from the least to the most."""
    counts = tasks.counts.tolist()
    return " + ".join(map(str, counts)) if tasks.n_tasks <= 4 else _range(counts)


def several(n: int, what: str) -> str:
    """ "1 task", "2 tasks"."""
    return f"{n} {what}" + "s" * (n != 1)


def _range(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low} to {high}" if low < high else f"{len(counts)} x {low}"
