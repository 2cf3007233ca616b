"""What weights over a graph of labels say of inputs: the best labelling, how firm every label is, probabilities, what edges change."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from mtldsl.inference import Cliques, Decoded, Decoder, LogPartition

__all__ = ["LabelPredictions"]

#: What message passing leaves unproven is enumerated up to so many labels (2^20 labellings take a millisecond) and so many
#: labellings over all rows.
_MOST_LABELS, _ENUMERATED = 20, 5_000_000_000


class LabelPredictions:
    """Labellings of inputs (n, d) under weights (d, S), and intercepts (S,) where there are some: the columns of the labels, then those of
    the cliques (`Cliques`).

    Cliques whose columns are all zero take no part, so that inference is on the graph that there is: sparse graphs are decoded
    exactly however many candidates there were.

    >>> weights = np.array([[0.0, 1.0, 0.0, 0.2, 0.0, 0.0, 0.0, -3.0]])  # each label likes to be 1, but not both
    >>> of = LabelPredictions(Cliques(2, ((0, 1),)), weights)
    >>> of.decode(np.ones((1, 1))).labels
    array([[1, 0]], dtype=uint8)
    >>> of.margins(np.ones((1, 1)))
    array([[ 1. , -2.8]])
    """

    def __init__(self, cliques: Cliques, weights: np.ndarray, intercept: np.ndarray | None = None):
        #: the positions of the cliques that take part
        self.kept, columns = cliques.used_by(weights)
        self.cliques, self.weights = cliques.subset(self.kept), weights[:, columns]
        self.intercept = None if intercept is None else intercept[columns]

    @cached_property
    def decoder(self) -> Decoder:
        return Decoder(self.cliques)

    def scores(self, inputs) -> np.ndarray:
        """(n, S') of the cliques that take part; inputs dense or sparse."""
        scores = np.ascontiguousarray(np.asarray(inputs @ self.weights))
        return scores if self.intercept is None else scores + self.intercept

    def decode(self, inputs) -> Decoded:
        """The best labelling of every row, and whether it is proven to be the best."""
        return self._best(self.scores(inputs))

    def _best(self, scores) -> Decoded:
        """What message passing cannot prove is enumerated, where that takes no more than seconds."""
        found = self.decoder(scores)
        left = np.flatnonzero(~found.certified)
        K = self.cliques.n_labels
        if not left.size or K > _MOST_LABELS or left.size * 2**K > _ENUMERATED:
            return found
        again = Decoder(self.cliques, "enumeration")(scores[left])
        for whole, part in zip(
            (found.labels, found.values, found.upper), (again.labels, again.values, again.upper), strict=True
        ):
            whole[left] = part
        return found

    def margins(self, inputs) -> np.ndarray:
        """(n, K): by how much the score falls where one label of the best labelling is turned, + where that label is 1, - where it is 0."""
        scores = self.scores(inputs)
        labels = self._best(scores).labels
        return np.where(labels == 1, 1.0, -1.0) * self.falls(scores, labels)

    def falls(self, scores, labels) -> np.ndarray:
        """(n, K): score(y) - score(y with label k turned) of labellings (n, K)."""
        labels = labels.astype(np.int64)
        entries, found = self.cliques.chosen(labels), np.empty(labels.shape)
        turn = 1 - 2 * labels  # what is added to a label where it is turned
        rows = np.arange(len(labels))
        for k in range(self.cliques.n_labels):
            found[:, k] = scores[rows, 2 * k + labels[:, k]] - scores[rows, 2 * k + 1 - labels[:, k]]
        for c, clique in enumerate(self.cliques.members):
            here = entries[:, self.cliques.n_labels + c]
            for place, k in enumerate(clique):
                there = here + (turn[:, k] << (len(clique) - 1 - place))
                found[:, k] += scores[rows, here] - scores[rows, there]
        return found

    def probabilities(self, inputs) -> np.ndarray:
        """(n, K): P(label k is 1) where a labelling has a probability in proportion to exp(its score)."""
        _, marginals = LogPartition(self.cliques)(self.scores(inputs))
        return marginals[:, 1 : 2 * self.cliques.n_labels : 2]

    def usage(self, inputs) -> np.ndarray:
        """(number of cliques that take part,): the share of rows whose best labelling is another one without that clique."""
        scores = self.scores(inputs)
        whole, n_cliques = self._best(scores).labels, self.cliques.n_cliques
        shares = np.empty(n_cliques)
        for c in range(n_cliques):
            others = self.cliques.subset(np.delete(np.arange(n_cliques), c))
            left = np.ones(scores.shape[1], dtype=bool)
            left[self.cliques.starts[c] : self.cliques.starts[c + 1]] = False
            without = Decoder(others)(scores[:, left]).labels
            shares[c] = np.mean(np.any(without != whole, axis=1))
        return shares

    def pulls(self, inputs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(pairs (P, 2), coupling (P,), attraction (P,)) of all pairs of labels within a clique that takes part.

        What a clique says of two labels in a row is the mean score of its entries where they agree, minus that where they differ;
        of a pair, summed over the cliques that hold it. Coupling is the mean over the rows, attraction the share of rows where it is
        positive.
        """
        differences: dict[tuple[int, int], np.ndarray] = {}
        scores = self.scores(inputs)
        for c, clique in enumerate(self.cliques.members):
            values = np.arange(2 ** len(clique))
            bits = (values[:, None] >> np.arange(len(clique))[::-1]) & 1
            own = scores[:, self.cliques.starts[c] : self.cliques.starts[c + 1]]
            for a in range(len(clique)):
                for b in range(a + 1, len(clique)):
                    sign = np.where(bits[:, a] == bits[:, b], 2.0, -2.0) / len(values)
                    pair = clique[a], clique[b]
                    differences[pair] = differences.get(pair, 0.0) + own @ sign
        pairs = np.array(sorted(differences), dtype=np.int64).reshape(-1, 2)
        ordered = [differences[i, j] for i, j in pairs.tolist()]
        coupling = np.array([np.mean(one) for one in ordered])
        return pairs, coupling, np.array([np.mean(one > 0.0) for one in ordered])
