"""Row and column sums of matrices with entries in [0, 1]: what multipliers of losses of orders are made of (Gale and Ryser).

An entry is a pair (positive i, negative j), and how often it is in the wrong order. Where only the first negatives of an order count,
`width` of them, no row has a larger sum than that: the condition of Gale and Ryser holds for matrices with entries at most t_j in column
j, t_j in [0, 1] with the sum `width`, where it holds for those with entries at most 1 and the rows are no larger than `width` (t_j =
min(1, max(column_j / P, column_j / c)), with the c for which they have this sum, is best for all conditions at once).
"""

from __future__ import annotations

import numpy as np

__all__ = ["inside", "nearest_margins", "slack"]

#: What rounding may leave of an inequality between sums, relative to the sums.
_ROUNDING = 64 * np.finfo(float).eps


def inside(rows, columns, width: float) -> bool:
    """Whether there is such a matrix."""
    P, N = len(rows), len(columns)
    size = _ROUNDING * P * N
    clipped = np.clip(rows, 0.0, width), np.clip(columns, 0.0, P)
    near = all(np.all(np.abs(now - then) <= size) for now, then in zip(clipped, (rows, columns), strict=True))
    return bool(near and np.min(slack(*clipped)) >= -size and abs(np.sum(rows) - np.sum(columns)) <= size)


def nearest_margins(rows, columns, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Margins of such a matrix near these: clipped, scaled to one total, and mixed with those of all pairs alike as far as it takes."""
    P, N = len(rows), len(columns)
    rows, columns = np.clip(rows, 0.0, width), np.clip(columns, 0.0, P)
    total = min(np.sum(rows), np.sum(columns))
    if total <= 0.0:
        return np.zeros(P), np.zeros(N)
    rows, columns = rows * (total / np.sum(rows)), columns * (total / np.sum(columns))
    alike = np.full(P, total / P), np.full(N, total / N)
    # the slack is concave on the way to the matrix of equal entries, where it is not negative: the chord's root is inside
    here, there = slack(rows, columns), slack(*alike)
    short, share = here < 0.0, 0.0
    if np.any(short):
        share = min(1.0, float(np.max(-here[short] / (np.maximum(there[short], 0.0) - here[short]))))
    return (1.0 - share) * rows + share * alike[0], (1.0 - share) * columns + share * alike[1]


def slack(rows, columns) -> np.ndarray:
    """sum_j min(columns_j, k) - the sum of the k largest rows, for k = 1 ... P - 1 (k = P says that totals agree)."""
    if len(rows) < 2:
        return np.zeros(1)
    k = np.arange(1, len(rows))
    ordered = np.sort(columns)
    below = np.searchsorted(ordered, k)
    capped = np.append(0.0, np.cumsum(ordered))[below] + k * (len(columns) - below)
    return capped - np.cumsum(np.sort(rows)[::-1])[:-1]
