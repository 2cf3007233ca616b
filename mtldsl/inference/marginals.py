"""The expected change of what is chosen: E[Upsilon(y)] - Upsilon(y_i) of random labellings, as a sparse table or times inputs."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mtldsl.inference.cliques import GAP, Cliques

__all__ = ["changes_times", "expected_changes"]

#: Numbers of the dense table that is filled at once.
_SLAB = 1 << 22
#: From so many pairs on, matrix products of labels are faster than visits of single entries.
_MANY_PAIRS = 500


def expected_changes(cliques: Cliques, truth, labels, weights, starts) -> sparse.csr_array:
    """(n, S): for sample i the sum over j in starts[i] ... starts[i + 1] - 1 of weights[j] (Upsilon(labels[j]) - Upsilon(truth[i])).

    truth (n, K) and labels (L, K) of 0 and 1, and of `GAP` where the truth is; weights (L,); starts (n + 1,). Only entries that some labelling changes are stored.

    >>> expected_changes(Cliques(1), [[1]], [[0]], [0.5], [0, 1]).toarray()
    array([[ 0.5, -0.5]])
    """
    truth, labels, weights, starts = _arrays(truth, labels, weights, starts)
    rows = max(1, _SLAB // max(cliques.n_entries, 1))
    parts = [
        sparse.csr_array(
            _filled(cliques, truth, labels, weights, starts, slice(a, min(a + rows, len(truth))))
        )
        for a in range(0, len(truth), rows)
    ]
    return sparse.vstack(parts, format="csr") if parts else sparse.csr_array((0, cliques.n_entries))


def changes_times(cliques: Cliques, truth, labels, weights, starts, X) -> np.ndarray:
    """(S, d): the transpose of `expected_changes` times X (n, d), without the table.

    >>> changes_times(Cliques(1), [[1]], [[0]], [0.5], [0, 1], np.array([[4.0, 2.0]]))
    array([[ 2.,  1.],
           [-2., -1.]])
    """
    truth, labels, weights, starts = _arrays(truth, labels, weights, starts)
    if cliques.n_cliques >= _MANY_PAIRS and np.all(cliques.sizes == 2):
        return _by_moments(cliques, truth, labels, weights, starts, X)
    total = np.zeros((cliques.n_entries, X.shape[1]))
    rows = max(1, _SLAB // max(cliques.n_entries, 1))
    for a in range(0, len(truth), rows):
        part = slice(a, min(a + rows, len(truth)))
        table = _filled(cliques, truth, labels, weights, starts, part)
        total += (X[part].T @ table).T if sparse.issparse(X) else table.T @ X[part]
    return total


def _by_moments(cliques: Cliques, truth, labels, weights, starts, X) -> np.ndarray:
    """`changes_times` of many pairs: E[y_a y_b] is a matrix product for every sample, and with E[y_a] says all four entries."""
    n, K = truth.shape
    first, second = cliques.table.T
    gaps = truth == GAP
    ones, own_ones = (labels == 1).astype(float), (truth == 1).astype(int)
    nodes, pairs = np.zeros((K, X.shape[1])), np.zeros((cliques.n_cliques, X.shape[1]))
    # of the rows that observe both labels of a pair
    firsts, seconds, has_gaps = np.zeros_like(pairs), np.zeros_like(pairs), gaps.any()
    rows = max(1, _SLAB // K**2)
    for a in range(0, n, rows):
        part = range(a, min(a + rows, n))
        mean, moment = np.empty((len(part), K)), np.empty((len(part), K, K))
        for place, i in enumerate(part):
            own, w = ones[starts[i] : starts[i + 1]], weights[starts[i] : starts[i + 1]]
            mean[place] = w @ own - w.sum() * own_ones[i]
            moment[place] = (own.T * w) @ own - w.sum() * np.multiply.outer(own_ones[i], own_ones[i])
        inputs = X[a : a + len(part)]
        nodes += np.asarray((inputs.T @ mean).T)
        if not has_gaps:
            pairs += np.asarray((inputs.T @ moment[:, first, second]).T)
            continue
        both = ~(gaps[part][:, first] | gaps[part][:, second])
        pairs += np.asarray((inputs.T @ (both * moment[:, first, second])).T)
        firsts += np.asarray((inputs.T @ (both * mean[:, first])).T)
        seconds += np.asarray((inputs.T @ (both * mean[:, second])).T)
    if not has_gaps:
        firsts, seconds = nodes[first], nodes[second]
    total = np.empty((cliques.n_entries, X.shape[1]))
    total[0 : 2 * K : 2], total[1 : 2 * K : 2] = -nodes, nodes
    edges = total[2 * K :].reshape(-1, 4, X.shape[1])
    edges[:, 3], edges[:, 2], edges[:, 1] = pairs, firsts - pairs, seconds - pairs
    edges[:, 0] = pairs - firsts - seconds
    return total


def _arrays(truth, labels, weights, starts):
    return (
        np.ascontiguousarray(truth, dtype=np.uint8), np.ascontiguousarray(labels, dtype=np.uint8),
        np.ascontiguousarray(weights, dtype=float), np.ascontiguousarray(starts, dtype=np.int64),
    )  # fmt: skip


def _filled(cliques: Cliques, truth, labels, weights, starts, part: slice) -> np.ndarray:
    """Some rows of the table, dense."""
    from mtldsl.inference.kernels.marginals import fill_changes

    table = np.zeros((part.stop - part.start, cliques.n_entries))
    begins, holders = cliques.incidence
    fill_changes(
        cliques.table, cliques.sizes, cliques.starts, begins, holders, truth[part], labels, weights,
        starts[part.start : part.stop + 1], table,
    )  # fmt: skip
    return table
