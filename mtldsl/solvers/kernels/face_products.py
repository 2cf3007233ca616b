"""Products with the kernel matrix of a few samples, through the nodes; imported when first used."""

from __future__ import annotations

from mtldsl.system.compiled import compiled

__all__ = ["dots", "gather"]


@compiled(nogil=True)
def gather(
    v, offsets, rows, dense, data, indices, indptr, support_of, support, cell_of, place, entry_of, entry_at, entry_cell, entry_factor,
    entry_kernel, w, store,
):  # fmt: skip
    """store += the node vectors of the samples (rows, task by task) with multipliers v."""
    n_cells = cell_of.max() + 1
    for t in range(offsets.size - 1):
        begin, end = support_of[t], support_of[t + 1]
        if offsets[t] == offsets[t + 1]:
            continue
        for p in range(begin, end):
            w[support[p]] = 0.0
        for i in range(offsets[t], offsets[t + 1]):
            row, f = rows[i], v[i]
            if dense.shape[0] > 0:
                for j in range(w.size):
                    w[j] += f * dense[row, j]
            else:
                for p in range(indptr[row], indptr[row + 1]):
                    w[indices[p]] += f * data[p]
        for e in range(entry_of[t], entry_of[t + 1]):
            f, at, c = entry_factor[e], entry_at[e], entry_cell[e]
            for p in range(begin, end):
                j = support[p]
                if n_cells == 1 or cell_of[j] == c:
                    store[at + place[j]] += f * w[j]


@compiled(nogil=True)
def dots(
    store, theta, offsets, rows, dense, data, indices, indptr, support_of, support, cell_of, place, entry_of, entry_at, entry_cell,
    entry_factor, entry_kernel, w, z,
):  # fmt: skip
    """z_i = sum over the nodes of the sample's task of factor * theta * <x_i, node>."""
    n_cells = cell_of.max() + 1
    for t in range(offsets.size - 1):
        begin, end = support_of[t], support_of[t + 1]
        if offsets[t] == offsets[t + 1]:
            continue
        for p in range(begin, end):
            w[support[p]] = 0.0
        for e in range(entry_of[t], entry_of[t + 1]):
            f = theta[entry_kernel[e]] * entry_factor[e]
            if f != 0.0:
                at, c = entry_at[e], entry_cell[e]
                for p in range(begin, end):
                    j = support[p]
                    if n_cells == 1 or cell_of[j] == c:
                        w[j] += f * store[at + place[j]]
        for i in range(offsets[t], offsets[t + 1]):
            row, total = rows[i], 0.0
            if dense.shape[0] > 0:
                for j in range(w.size):
                    total += w[j] * dense[row, j]
            else:
                for p in range(indptr[row], indptr[row + 1]):
                    total += w[indices[p]] * data[p]
            z[i] = total
