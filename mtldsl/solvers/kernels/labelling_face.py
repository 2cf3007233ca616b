"""The compiled loops of steps on a face: sums over the entries of labellings, and projections onto simplices."""

from __future__ import annotations

import numpy as np

from mtldsl.system.compiled import compiled

__all__ = ["gather", "project_groups", "scatter"]


@compiled(nogil=True, error_model="numpy")
def gather(scores, rows, entries, sums):
    """sums[v] = the sum of scores[rows[v], e] over the entries of v."""
    for v in range(rows.size):
        total = 0.0
        for k in range(entries.shape[1]):
            total += scores[rows[v], entries[v, k]]
        sums[v] = total


@compiled(nogil=True, error_model="numpy")
def scatter(weights, rows, entries, table):
    """table[rows[v], e] += weights[v] for every entry of v."""
    for v in range(rows.size):
        for k in range(entries.shape[1]):
            table[rows[v], entries[v, k]] += weights[v]


@compiled(nogil=True, error_model="numpy")
def project_groups(values, starts, falling):
    """Every group values[starts[g] : starts[g + 1]] becomes the nearest point of the simplex; `falling` has room for the longest."""
    for g in range(starts.size - 1):
        group = values[starts[g] : starts[g + 1]]
        largest = -np.inf
        for j in range(group.size):
            largest = max(largest, group[j])
        for j in range(
            group.size
        ):  # only differences matter, and large numbers would lose the 1 that weights sum to
            group[j] -= largest
        for j in range(group.size):  # by insertion: groups are small, and numpy's sort takes long to compile
            k = j - 1
            while k >= 0 and falling[k] < group[j]:
                falling[k + 1] = falling[k]
                k -= 1
            falling[k + 1] = group[j]
        total, level = 0.0, 0.0
        for j in range(group.size):
            total += falling[j]
            candidate = (total - 1.0) / (j + 1)
            if falling[j] > candidate:
                level = candidate
        total = 0.0
        for j in range(group.size):
            group[j] = max(group[j] - level, 0.0)
            total += group[j]
        for j in range(group.size):
            group[j] /= total
