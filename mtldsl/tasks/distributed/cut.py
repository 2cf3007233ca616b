"""In-memory tasks cut into parts, in this process."""

from __future__ import annotations

import numpy as np

from mtldsl.tasks.distributed.parts import LocalParts, Part
from mtldsl.tasks.tasks import Tasks

__all__ = ["cut_parts"]


def cut_parts(tasks: Tasks, n_parts: int) -> LocalParts:
    """Rows in their order, as many in every part as can be: of X where it is shared, else of all tasks one after another."""
    n = tasks.X.shape[0] if tasks.is_shared else tasks.n_samples
    ends = [n * k // n_parts for k in range(n_parts + 1)]
    return LocalParts([_part(tasks, k, *ends[k : k + 2]) for k in range(n_parts)])


def _part(tasks: Tasks, index: int, first: int, last: int) -> Part | None:
    if tasks.is_shared:
        here = np.ones(tasks.n_tasks, bool) if tasks.mask is None else tasks.mask[first:last].any(axis=0)
        rows = np.arange(first, last)
        keep = here if last > first else np.zeros(tasks.n_tasks, bool)
    else:
        ends = np.clip(tasks.offsets, first, last)
        keep = np.diff(ends) > 0
        rows = [
            np.arange(a, b) - start
            for a, b, start in zip(ends[:-1], ends[1:], tasks.offsets[:-1], strict=True)
        ]
        rows = [own for own, kept in zip(rows, keep, strict=True) if kept]
    which = np.flatnonzero(keep)
    return Part(tasks.select(which).take_rows(rows), which, index, first) if which.size else None
