"""The plain scan of all tables (b, c) of a task: what a metric of which only `delta` is known does. It holds some rows of them at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

__all__ = ["highest_of_all", "limits_from_steps"]

#: Entries of the table Delta + gains that are held at a time.
_CHUNK = 4_000_000

#: delta(b, c, positives, negatives) of arrays b and c that broadcast.
Table = Callable[..., np.ndarray]


def highest_of_all(
    delta: Table, of_negatives, of_positives, positives: int, negatives: int
) -> tuple[int, int]:
    """(b, c) that maximises delta(b, c) + of_negatives[b] + of_positives[c]."""
    best, at = -np.inf, (0, 0)
    b = np.arange(len(of_negatives))[None, :]
    rows = max(1, _CHUNK // len(of_negatives))
    for first in range(0, len(of_positives), rows):
        c = np.arange(first, min(first + rows, len(of_positives)))[:, None]
        table = delta(b, c, positives, negatives) + of_negatives[None, :] + of_positives[c[:, 0], None]
        k = int(np.argmax(table))
        if table.flat[k] > best:
            best, at = table.flat[k], (k % len(of_negatives), first + k // len(of_negatives))
    return int(at[0]), int(at[1])


@lru_cache(maxsize=512)
def limits_from_steps(delta: Table, positives: int, negatives: int) -> tuple[float, float]:
    """Half the largest steps of delta in c and, less, in b: see `Metric.limits`; (inf, -inf) where a table is forbidden."""
    in_c = in_b = -np.inf
    b = np.arange(negatives + 1)[None, :]
    rows = max(2, _CHUNK // (negatives + 1))
    for first in range(0, positives + 1, rows - 1):  # chunks share a row, so that no step in c is missed
        c = np.arange(first, min(first + rows, positives + 1))[:, None]
        table = delta(b, c, positives, negatives)
        if not np.isfinite(table).all():
            return np.inf, -np.inf
        in_c = max(in_c, np.diff(table, axis=0).max(initial=-np.inf))
        in_b = max(in_b, np.diff(table, axis=1).max(initial=-np.inf))
    return 0.5 * in_c, -0.5 * in_b
