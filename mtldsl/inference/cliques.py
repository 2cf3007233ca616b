"""Which labels stand together, and where their entries are in a vector of scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

__all__ = ["GAP", "LARGEST_CLIQUE", "Cliques"]

#: Labels in one clique at most: it has 2^size entries.
LARGEST_CLIQUE = 5

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
