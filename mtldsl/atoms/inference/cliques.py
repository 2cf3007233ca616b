"""Cliques of labels: which labels stand together, where their entries are in a vector of scores, and the plans of inference."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np

from mtldsl.errors import ModelError


@dataclass(frozen=True)
class CliqueSettings:
    """Limits of tables over cliques.

    clique_labels       : most labels in one clique, which has 2^labels entries
    elimination_entries : most entries that one elimination reads: as numbers of a plan, 128 MB
    """

    clique_labels: int = 5
    elimination_entries: int = 2**24


SETTINGS = CliqueSettings()


#: The value of a label that is not observed, in a true labelling and in every labelling beside it.
GAP = 2


@dataclass(frozen=True)
class Cliques:
    """K labels and q cliques of 2 to 5 of them; the layout of the S scores that a labelling is valued by.

    Label k has the entries 2k (it is 0) and 2k + 1 (it is 1). The clique c = (i, j, ...), i < j < ..., has 2^|c| entries from
    `starts[c]` on, of which a labelling y chooses the one with the number 2^(|c|-1) y_i + 2^(|c|-2) y_j + ...: for an edge
    2 y_i + y_j. The score of a labelling is the sum of the K + q entries that it chooses.

    A sample whose labels are not all observed has the graph that its observed labels induce: those labels, and the cliques of which it
    observes every label. Its labellings hold `GAP` elsewhere, and choose no entry outside of that graph.

    Source: CGM, section 3 (its Upsilon).

    >>> pairs = Cliques(3, ((0, 1), (1, 2)))
    >>> pairs.n_entries, pairs.starts
    (14, array([ 6, 10, 14]))
    >>> pairs.chosen([[0, 1, 1]])
    array([[ 0,  3,  5,  7, 13]])
    """

    n_labels: int
    members: tuple[tuple[int, ...], ...] = ()

    @property
    def n_cliques(self) -> int:
        return len(self.members)

    @cached_property
    def sizes(self) -> np.ndarray:
        """(q,) labels in every clique."""
        return np.array([len(clique) for clique in self.members], dtype=np.int64)

    @cached_property
    def starts(self) -> np.ndarray:
        """(q + 1,) where the entries of every clique begin; the last is S."""
        return 2 * self.n_labels + np.concatenate([[0], np.cumsum(2**self.sizes)]).astype(np.int64)

    @property
    def n_entries(self) -> int:
        """S."""
        return int(self.starts[-1])

    @cached_property
    def table(self) -> np.ndarray:
        """(q, size of the largest clique) members, padded with -1: what compiled loops read."""
        width = int(self.sizes.max(initial=0))
        table = np.full((self.n_cliques, width), -1, dtype=np.int64)
        for c, clique in enumerate(self.members):
            table[c, : len(clique)] = clique
        return table

    @cached_property
    def incidence(self) -> tuple[np.ndarray, np.ndarray]:
        """(starts (K + 1,), cliques): those that hold label k stand from starts[k] on."""
        labels = np.array([k for clique in self.members for k in clique], dtype=np.int64)
        owners = np.repeat(np.arange(self.n_cliques), self.sizes)
        order = np.argsort(labels, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=self.n_labels))])
        return starts.astype(np.int64), owners[order].astype(np.int64)

    def chosen(self, labels) -> np.ndarray:
        """(n, K + q) the entries that labellings (n, K) of 0 and 1 choose: the nodes', then the cliques'. Outside of the graph that a labelling
        with gaps has, it is the first entry, the same for all labellings with these gaps."""
        labels = np.asarray(labels).astype(np.int64)
        gaps = labels == GAP
        entries = np.empty((len(labels), self.n_labels + self.n_cliques), dtype=np.int64)
        entries[:, : self.n_labels] = 2 * np.arange(self.n_labels) + np.where(gaps, 0, labels)
        number = np.zeros((len(labels), self.n_cliques), dtype=np.int64)
        for place in range(self.table.shape[1]):
            here = self.table[:, place] >= 0
            number[:, here] = 2 * number[:, here] + labels[:, self.table[here, place]]
        if gaps.any():
            number[~self.observed(labels)] = 0
        entries[:, self.n_labels :] = self.starts[:-1] + number
        return entries

    def observed(self, labels) -> np.ndarray:
        """(n, q) whether labellings (n, K) have no gap in a clique."""
        gaps = np.asarray(labels) == GAP
        found = np.ones((len(gaps), self.n_cliques), dtype=bool)
        for place in range(self.table.shape[1]):
            here = self.table[:, place] >= 0
            found[:, here] &= ~gaps[:, self.table[here, place]]
        return found

    def induced(self, labels) -> np.ndarray | None:
        """(n, S) which entries are of the graphs that labellings (n, K) have; None where no labelling has a gap.

        >>> Cliques(2, ((0, 1),)).induced([[0, GAP]]).astype(int)
        array([[1, 1, 0, 0, 0, 0, 0, 0]])
        """
        gaps = np.asarray(labels) == GAP
        if not gaps.any():
            return None
        return np.hstack(
            [np.repeat(~gaps, 2, axis=1), np.repeat(self.observed(labels), 2**self.sizes, axis=1)]
        )

    def within(self, scores, labels) -> np.ndarray:
        """Scores (n, S) with 0 for entries outside of the graphs that labellings (n, K) have; the same array where no labelling has a gap."""
        induced = self.induced(labels)
        return scores if induced is None else np.where(induced, scores, 0.0)

    def indicators(self, labels) -> np.ndarray:
        """(n, S) of 0 and 1: 1 at the entries that labellings (n, K) choose."""
        entries = self.chosen(labels)
        found = np.zeros((len(entries), self.n_entries))
        np.put_along_axis(found, entries, 1.0, axis=1)
        return self.within(found, labels)

    def used_by(self, weights) -> tuple[np.ndarray, np.ndarray]:
        """(cliques with a column of weights (d, S) that is not zero, the columns of the labels and of those cliques)."""
        filled = np.concatenate([[0], np.cumsum(np.any(weights != 0.0, axis=0))])[self.starts]
        kept = np.flatnonzero(np.diff(filled) > 0)
        nodes = np.arange(2 * self.n_labels)
        return kept, np.concatenate([nodes, *(np.arange(self.starts[c], self.starts[c + 1]) for c in kept)])

    def subset(self, cliques) -> Cliques:
        """The same labels with some of the cliques, by position."""
        return Cliques(self.n_labels, tuple(self.members[int(c)] for c in cliques))

    def columns(self, c: int) -> np.ndarray:
        """The entries of clique c, counted from those of the first clique: its columns of V."""
        return np.arange(self.starts[c], self.starts[c + 1]) - 2 * self.n_labels


# --------------------------------------------------------------------------------------------------------------
# What comes from outside, checked: the graph, and the scores on it; and when a labelling counts as proven.

#: An upper bound this close to a labelling's value, relative to 1 + |value|, is a proof that the labelling is the best.
CERTIFIED_TOL = 1e-9


def check_cliques(cliques: Cliques) -> None:
    """Raises ModelError unless there is a label, and every clique has 2 to 5 labels in ascending order."""
    K = cliques.n_labels
    if K < 1:
        raise ModelError(f"Cliques({K}) has no label to infer. Give at least one label.")
    for clique in cliques.members:
        ascending = all(i < j for i, j in pairwise(clique))
        if not (
            2 <= len(clique) <= SETTINGS.clique_labels and ascending and clique[0] >= 0 and clique[-1] < K
        ):
            raise ModelError(
                f"The clique {tuple(clique)} cannot be used: write 2 to {SETTINGS.clique_labels} different labels out of 0..{K - 1} in "
                "ascending order."
            )


def read_scores(cliques: Cliques, scores) -> np.ndarray:
    """(n, S) contiguous float64. Raises ModelError on another shape and on NaN or infinite entries."""
    scores = np.ascontiguousarray(scores, dtype=np.float64)
    S = cliques.n_entries
    if scores.ndim != 2 or scores.shape[1] != S:
        raise ModelError(
            f"scores of shape {scores.shape} do not fit: {cliques.n_labels} labels and {cliques.n_cliques} cliques have S = {S} "
            f"entries, so scores must be (n, {S}), one row an instance."
        )
    if not np.isfinite(scores).all():
        row, entry = np.argwhere(~np.isfinite(scores))[0]
        raise ModelError(
            f"scores[{row}, {entry}] is {scores[row, entry]}; scores must be finite. To forbid a setting, give it a large "
            "negative number."
        )
    return scores


# --------------------------------------------------------------------------------------------------------------
# In which order labels are eliminated, and which labels each elimination ties together.


def min_fill(cliques: Cliques) -> tuple[list[int], list[list[int]]]:
    """The min-fill order of the labels and, for each of them, the neighbours left when it is eliminated.

    Each step eliminates the label whose remaining neighbours lack the fewest edges among them (ties: fewer neighbours, then the
    smaller number), and joins these neighbours. The largest number of neighbours is the width of the order: an upper bound of
    the graph's treewidth, and equal to it on chordal graphs, where no edge is ever missing.

    Source: Koller and Friedman, Probabilistic Graphical Models, section 9.4.3.

    >>> order, scopes = min_fill(Cliques(4, ((0, 1), (1, 2), (2, 3), (0, 3))))
    >>> order, scopes
    ([0, 1, 2, 3], [[1, 3], [2, 3], [3], []])
    """
    near = _neighbours(cliques)  # sets as bits of integers: intersections at the speed of words
    left = set(range(cliques.n_labels))
    cost: dict[int, tuple[int, int, int]] = {}
    order, scopes = [], []
    changed, queue = left, []
    while left:
        for k in changed & left:
            cost[k] = (_missing(near, k), near[k].bit_count(), k)
            heappush(queue, cost[k])
        while cost.get((cheapest := heappop(queue))[2]) != cheapest:
            pass  # what a label cost before its neighbours changed
        label = cheapest[2]
        scope = _members(near[label])
        stale = set(scope)
        for i in scope:
            stale.update(_members(near[i]))
            near[i] = (near[i] | near[label]) & ~(1 << i) & ~(1 << label)
        left.discard(label)
        cost.pop(label)
        changed = stale
        order.append(label)
        scopes.append(scope)
    return order, scopes


def _neighbours(cliques: Cliques) -> list[int]:
    near = [0] * cliques.n_labels
    for clique in cliques.members:
        together = sum(1 << k for k in clique)
        for k in clique:
            near[k] |= together & ~(1 << k)
    return near


def _missing(near: list[int], k: int) -> int:
    """Twice the edges that the neighbours of k lack among themselves."""
    around = near[k]
    return sum((around & ~near[i]).bit_count() - 1 for i in _members(around))


def _members(bits: int) -> list[int]:
    found = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return found


# --------------------------------------------------------------------------------------------------------------
# What the compiled loops read: one array of integers for a graph and a method.
#
# Every plan begins with four numbers: K, q, where the cliques are written, where the method's own part begins. A clique is written
# as its size, its first entry, and its members.

#: Numbers of a plan before its tables.
HEADER_ENTRIES = 4


def enumeration_plan(cliques: Cliques) -> np.ndarray:
    """Own part: the size of the largest clique."""
    return _plan(cliques, [int(cliques.sizes.max(initial=1))])


def message_passing_plan(cliques: Cliques) -> np.ndarray:
    """Own part: for label k from where to where its places stand (K + 1 numbers), then the places: clique, place in the clique,
    where the clique is written in the plan, where its messages begin."""
    written, messages, places = _clique_positions(cliques), 0, [[] for _ in range(cliques.n_labels)]
    for c, clique in enumerate(cliques.members):
        for place, k in enumerate(clique):
            places[k].append((c, place, written[c], messages))
        messages += len(clique)
    counts = np.concatenate([[0], np.cumsum([len(found) for found in places])])
    flat = [number for found in places for row in found for number in row]
    return _plan(cliques, np.concatenate([counts, np.array(flat, dtype=np.int64)]))


def elimination_plan(cliques: Cliques, order, scopes) -> tuple[np.ndarray, int]:
    """The plan of bucket elimination, and the entries of all its messages.

    Own part, for each label in the order: the label, the number w of neighbours left, the number of factors that are read from
    the scores, that of messages, where its own message begins (-1: none, w = 0), the w neighbours (the first is the highest
    bit); then for each of the 2^w settings of the neighbours, for each factor, its entry where the label is 0 and where it is 1.
    The last K numbers are where the parts begin, in the order of elimination: the way back reads them from the end.
    """
    step = {label: t for t, label in enumerate(order)}
    factors: list[list[tuple]] = [[] for _ in order]  # per step: (members, first entry, whether a message)
    for label in order:
        factors[step[label]].append(((label,), 2 * label, False))
    for clique, start in zip(cliques.members, cliques.starts, strict=False):
        factors[min(step[k] for k in clique)].append((clique, int(start), False))
    parts, messages = [], 0
    for t, (label, scope) in enumerate(zip(order, scopes, strict=True)):
        held = sorted(factors[t], key=lambda factor: factor[2])
        n_messages = sum(factor[2] for factor in held)
        parts.append(
            [label, len(scope), len(held) - n_messages, n_messages, messages if scope else -1, *scope]
        )
        parts.append(_entries(label, scope, held))
        if scope:
            factors[min(step[k] for k in scope)].append((tuple(scope), messages, True))
            messages += 2 ** len(scope)
    own = np.concatenate([np.asarray(part, dtype=np.int64).ravel() for part in parts])
    begins = np.cumsum(
        [0, *(len(head) + entries.size for head, entries in zip(parts[::2], parts[1::2], strict=True))]
    )[:-1]
    first = _clique_positions(cliques)[-1]
    return _plan(cliques, np.concatenate([own, first + begins])), messages


def elimination_gathers(cliques: Cliques, order, scopes) -> int:
    """Entries that one elimination reads: what it costs."""
    step = {label: t for t, label in enumerate(order)}
    held = np.ones(len(order), dtype=np.int64)
    for group in (*cliques.members, *(scope for scope in scopes if scope)):
        held[min(step[k] for k in group)] += 1
    return sum(int(n) * 2 ** (len(scope) + 1) for n, scope in zip(held, scopes, strict=True))


def _entries(label: int, scope, held) -> np.ndarray:
    """(2^w, factors, 2) the entry of each factor at each setting of the neighbours and of the label."""
    setting = np.arange(2 ** len(scope))
    value = {k: (setting >> (len(scope) - 1 - place)) & 1 for place, k in enumerate(scope)}
    entries = np.empty((len(setting), len(held), 2), dtype=np.int64)
    for f, (members, start, _) in enumerate(held):
        for own in (0, 1):
            number = np.zeros(len(setting), dtype=np.int64)
            for k in members:
                number = 2 * number + (own if k == label else value[k])
            entries[:, f, own] = start + number
    return entries


def _clique_positions(cliques: Cliques) -> list[int]:
    return (HEADER_ENTRIES + np.concatenate([[0], np.cumsum(cliques.sizes + 2)])).astype(int).tolist()


def _plan(cliques: Cliques, own) -> np.ndarray:
    written = []
    for clique, start in zip(cliques.members, cliques.starts, strict=False):
        written += [len(clique), int(start), *clique]
    head = [cliques.n_labels, cliques.n_cliques, HEADER_ENTRIES, HEADER_ENTRIES + len(written)]
    return np.concatenate([np.array(head + written, dtype=np.int64), np.asarray(own, dtype=np.int64)])
