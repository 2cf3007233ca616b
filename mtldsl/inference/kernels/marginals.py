"""The compiled loop of `mtldsl.inference.marginals`."""

from __future__ import annotations

from mtldsl.system.compiled import compiled

__all__ = ["choose", "entry_of", "fill_changes"]


@compiled(inside=True, nogil=True, error_model="numpy")
def entry_of(table, sizes, starts, c, label):
    """The entry of clique c that a labelling chooses."""
    number = 0
    for place in range(sizes[c]):
        number = 2 * number + label[table[c, place]]
    return starts[c] + number


@compiled(inside=True, nogil=True, error_model="numpy")
def choose(table, sizes, starts, label, entries):
    """The entries that a labelling chooses: the nodes', then the cliques'."""
    K = label.size
    for k in range(K):
        entries[k] = 2 * k + label[k]
    for c in range(sizes.size):
        entries[K + c] = entry_of(table, sizes, starts, c, label)


@compiled(nogil=True, error_model="numpy")
def fill_changes(table, sizes, starts, begins, holders, truth, labels, weights, first, changes):
    """changes (n, S), zero before: what the labellings of each sample change, in nodes and in the cliques that hold a changed label."""
    n, K = truth.shape
    for i in range(n):
        for j in range(first[i], first[i + 1]):
            w = weights[j]
            if w == 0.0:
                continue
            for k in range(K):
                if labels[j, k] == truth[i, k]:
                    continue
                changes[i, 2 * k + labels[j, k]] += w
                changes[i, 2 * k + truth[i, k]] -= w
                for h in range(begins[k], begins[k + 1]):
                    c = holders[h]
                    earlier = False  # a clique is changed once, by its first changed label
                    for place in range(sizes[c]):
                        other = table[c, place]
                        if other == k:
                            break
                        if labels[j, other] != truth[i, other]:
                            earlier = True
                            break
                    if not earlier:
                        changes[i, entry_of(table, sizes, starts, c, labels[j])] += w
                        changes[i, entry_of(table, sizes, starts, c, truth[i])] -= w
