"""The compiled loop of `mtldsl.inference.marginals`."""

from __future__ import annotations

from mtldsl.inference.cliques import GAP
from mtldsl.system.compiled import compiled

__all__ = ["choose", "entry_of", "fill_changes", "keep_gaps", "leave_induced"]


@compiled(inside=True, nogil=True, error_model="numpy")
def entry_of(table, sizes, starts, c, label):
    """The entry of clique c that a labelling chooses; the first one where it has a gap there, as all labellings beside it have."""
    number = 0
    for place in range(sizes[c]):
        value = label[table[c, place]]
        if value == GAP:
            return starts[c]
        number = 2 * number + value
    return starts[c] + number


@compiled(inside=True, nogil=True, error_model="numpy")
def choose(table, sizes, starts, label, entries):
    """The entries that a labelling chooses: the nodes', then the cliques'."""
    K = label.size
    for k in range(K):
        entries[k] = 2 * k + (label[k] == 1)
    for c in range(sizes.size):
        entries[K + c] = entry_of(table, sizes, starts, c, label)


@compiled(inside=True, nogil=True, error_model="numpy")
def leave_induced(table, sizes, starts, label, scores):
    """scores are 0 where they are not of the graph that the observed labels of a labelling induce."""
    for k in range(label.size):
        if label[k] == GAP:
            scores[2 * k] = 0.0
            scores[2 * k + 1] = 0.0
    for c in range(sizes.size):
        for place in range(sizes[c]):
            if label[table[c, place]] == GAP:
                for s in range(starts[c], starts[c + 1]):
                    scores[s] = 0.0
                break


@compiled(inside=True, nogil=True, error_model="numpy")
def keep_gaps(truth, label):
    """A labelling that inference found has the gaps of the true one."""
    for k in range(label.size):
        if truth[k] == GAP:
            label[k] = GAP


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
                    if earlier:
                        continue
                    up = entry_of(table, sizes, starts, c, labels[j])
                    down = entry_of(table, sizes, starts, c, truth[i])
                    if up != down:  # equal where another label of the clique is a gap
                        changes[i, up] += w
                        changes[i, down] -= w
