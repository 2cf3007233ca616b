"""Products with the kernel matrix of a few samples, through the nodes; imported when first used."""

from __future__ import annotations

from mtldsl.solvers.kernels.arguments import NodePlaces, Rows, Supports
from mtldsl.system.compiled import compiled

__all__ = ["dots", "gather"]


@compiled(inside=True, nogil=True, error_model="numpy")
def _one_or_more(cell_of):
    """1 where there is one cell, else 2: an array's own maximum takes a quarter of a second to compile."""
    for j in range(cell_of.size):
        if cell_of[j] > 0:
            return 2
    return 1


@compiled(nogil=True, error_model="numpy")
def gather(v, offsets, rows, supports, nodes, w, store):
    """store += the node vectors of the samples (rows, task by task) with multipliers v.

    rows, supports, nodes: `Rows`, `Supports`, `NodePlaces` as plain tuples.
    """
    rows, supports, nodes = Rows(*rows), Supports(*supports), NodePlaces(*nodes)
    row_of, dense, data, indices, indptr = rows.of, rows.dense, rows.data, rows.indices, rows.indptr
    support, cell_of, place = supports.features, nodes.cell_of, nodes.place
    n_cells = _one_or_more(cell_of)
    for t in range(offsets.size - 1):
        begin, end = supports.ends[t], supports.ends[t + 1]
        if offsets[t] == offsets[t + 1]:
            continue
        for p in range(begin, end):
            w[support[p]] = 0.0
        for i in range(offsets[t], offsets[t + 1]):
            row, f = row_of[i], v[i]
            if dense.shape[0] > 0:
                for j in range(w.size):
                    w[j] += f * dense[row, j]
            else:
                for p in range(indptr[row], indptr[row + 1]):
                    w[indices[p]] += f * data[p]
        for e in range(nodes.entry_of[t], nodes.entry_of[t + 1]):
            f, at, c = nodes.factor[e], nodes.at[e], nodes.cell[e]
            for p in range(begin, end):
                j = support[p]
                if n_cells == 1 or cell_of[j] == c:
                    store[at + place[j]] += f * w[j]


@compiled(nogil=True, error_model="numpy")
def dots(store, theta, offsets, rows, supports, nodes, w, z):
    """z_i = sum over the nodes of the sample's task of factor * theta * <x_i, node>. Arguments as of `gather`."""
    rows, supports, nodes = Rows(*rows), Supports(*supports), NodePlaces(*nodes)
    row_of, dense, data, indices, indptr = rows.of, rows.dense, rows.data, rows.indices, rows.indptr
    support, cell_of, place = supports.features, nodes.cell_of, nodes.place
    n_cells = _one_or_more(cell_of)
    for t in range(offsets.size - 1):
        begin, end = supports.ends[t], supports.ends[t + 1]
        if offsets[t] == offsets[t + 1]:
            continue
        for p in range(begin, end):
            w[support[p]] = 0.0
        for e in range(nodes.entry_of[t], nodes.entry_of[t + 1]):
            f = theta[nodes.kernel[e]] * nodes.factor[e]
            if f != 0.0:
                at, c = nodes.at[e], nodes.cell[e]
                for p in range(begin, end):
                    j = support[p]
                    if n_cells == 1 or cell_of[j] == c:
                        w[j] += f * store[at + place[j]]
        for i in range(offsets[t], offsets[t + 1]):
            row, total = row_of[i], 0.0
            if dense.shape[0] > 0:
                for j in range(w.size):
                    total += w[j] * dense[row, j]
            else:
                for p in range(indptr[row], indptr[row + 1]):
                    total += w[indices[p]] * data[p]
            z[i] = total
