"""The intercepts of labels in dual ascent: the last feature, without a penalty, whose multipliers a proof has to balance."""

from __future__ import annotations

import numpy as np

from mtldsl.compile.terms.label_intercepts import Flips, flipping, flips_for, mixed_with_flips
from mtldsl.compile.terms.random_labellings import RandomLabellings
from mtldsl.inference.marginals import changes_times

__all__ = ["Constants"]


class Constants:
    """X (n, d + 1) with ones as its last column, which become `unit`, of the size of a sample: a ridge of that feature, around `centre` (2K,),
    which follows the intercepts, is the proximal term that makes the dual one of free multipliers.

    What multipliers leave of "their sums are zero" is balanced by flips of single labels of the truth (`flips_for`), for a proof.
    """

    def __init__(self, X: np.ndarray, truth: np.ndarray, weights: np.ndarray, known: np.ndarray | None):
        self.truth, self.weights, self.n_nodes = truth, weights, 2 * truth.shape[1]
        self.lengths_seen = np.einsum("ij,ij->i", X[:, :-1], X[:, :-1])
        self.unit = float(np.sqrt(self.lengths_seen.mean())) or 1.0
        self.X = np.ascontiguousarray(np.hstack([X[:, :-1], self.unit * X[:, -1:]]))
        fits = known is not None and known.shape == (self.n_nodes,)
        self.centre = np.asarray(known) / self.unit if fits else np.zeros(self.n_nodes)

    def seen_by_edges(self, rows: np.ndarray) -> np.ndarray:
        """(S, d + 1) with zeros where edges would have intercepts."""
        rows[self.n_nodes :, -1] = 0.0
        return rows

    def flips(self, multipliers: np.ndarray) -> Flips | None:
        """What balances them; None where nothing has to be."""
        sums = -multipliers[1 : self.n_nodes : 2, -1] / self.unit
        return flips_for(sums, [self.truth], [self.weights])

    def mixed(self, random: RandomLabellings, multipliers: np.ndarray) -> RandomLabellings:
        flips = self.flips(multipliers)
        return random if flips is None else mixed_with_flips(random, flips, self.truth)

    def balanced(self, multipliers: np.ndarray, of, cliques) -> np.ndarray:
        """Multipliers `of` all entries of some cliques, balanced by what balances `multipliers`."""
        flips = self.flips(multipliers)
        if flips is None:
            return of
        chances = flipping(flips, self.truth)
        rows, places = np.nonzero(chances)
        labels = self.truth[rows]
        labels[np.arange(len(rows)), places] ^= 1
        starts = np.concatenate([[0], np.cumsum((chances > 0.0).sum(axis=1))])
        shares = -(chances * self.weights[:, None])[rows, places]
        of_flips = changes_times(cliques, self.truth, labels, shares, starts, self.X)
        return (1.0 - flips[0]) * of + flips[0] * self.seen_by_edges(of_flips)

    def promised(self, multipliers: np.ndarray, promised: float, of_flips) -> float:
        """sum of w_i E[Delta], balanced; of_flips (n, K): what a single wrong label of a sample costs."""
        flips = self.flips(multipliers)
        if flips is None:
            return promised
        chances = flipping(flips, self.truth)
        return (1.0 - flips[0]) * promised + flips[0] * float(self.weights @ (chances * of_flips).sum(axis=1))
