"""What tasks are: their sizes as plain values, and a fingerprint of their numbers."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from mtldsl.tasks.tasks import Tasks

__all__ = ["describe", "fingerprint"]


def describe(tasks: Tasks) -> dict:
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


def fingerprint(tasks: Tasks) -> str:
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
