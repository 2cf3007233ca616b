"""Clique hinges of more labellings than are stated: planes found one by one, each of the best labelling where a solve came to rest.

The maximum of a sample is a variable t_i >= 0 with planes t_i >= Delta(y, y_i) + <scores_i, Upsilon(y) - Upsilon(y_i)>, found by looking at
every one of the 2^K labellings: constraint generation with inference of its own.
Source: Tsochantaridis, Joachims, Hofmann and Altun, JMLR 6 (2005).
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from mtldsl.compile.normal_form import LossTerm

from .label_graph import GAP, choices, costs_inside, labellings, sample_weights, task_losses, true_labels
from .planes import Plane, Planes

__all__ = ["LabellingPlanes"]


class LabellingPlanes(Planes):
    """The maxima of a clique hinge: `height` (n,) stands for them, `tasks` are the samples of the planes."""

    def __init__(self, term: LossTerm, variables: dict[str, cp.Variable], name: str):
        atom = term.atom
        K, members = atom.cliques.n_labels, atom.cliques.members
        self.term, self.coefficients = term, sample_weights(term)
        self.targets = np.asarray(term.tasks.targets, float)
        n = len(self.coefficients)
        S = len(self.targets) // n
        self.rows = [np.arange(S) * n + i for i in range(n)]
        self.truth = true_labels(self.targets, K, members)
        self.every = labellings(K)
        self.upsilon, self.own = choices(members, self.every), choices(members, self.truth).toarray()
        self.seen = _seen(members, self.truth)
        self.delta = _costs(atom.loss, self.every, self.truth)  # (2^K, n)
        self._begin(term, variables, name)

    def start(self) -> None:
        """The dearest labellings."""
        self.add(self._best(np.zeros((len(self.coefficients), self.own.shape[1]))))

    def highest(self) -> list[tuple[int, Plane]]:
        scores = np.asarray(self.predictions(), float).reshape(-1, len(self.coefficients)).T
        found = self._best(scores)
        self.height.value = np.array([max(plane.value, 0.0) for _, plane in found])
        return found

    def _best(self, scores) -> list[tuple[int, Plane]]:
        scores = np.where(self.seen, scores, 0.0)
        values = self.delta + self.upsilon @ scores.T - np.sum(self.own * scores, axis=1)
        found = []
        for i, best in enumerate(values.argmax(axis=0)):
            slope = np.where(self.seen[i], self.upsilon[[best]].toarray()[0] - self.own[i], 0.0)
            flipped = (self.every[best] != self.truth[i]) & (self.truth[i] != GAP)
            found.append((i, Plane(float(values[best, i]), float(self.delta[best, i]), slope, flipped)))
        return found

    def duals(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """After a solve, the random labelling of every sample that its planes' multipliers are: labels (L, K), weights (L,), and where
        those of every sample begin (n + 1,).
        """
        multipliers = self.multipliers()
        if multipliers is None:
            return None
        of_sample = np.array(self.tasks)
        labels, weights, counts = [], [], []
        for i, coefficient in enumerate(self.coefficients):
            own = np.flatnonzero((multipliers > 0.0) & (of_sample == i))
            shares = multipliers[own] / coefficient
            labels += [np.where(self.planes[k].flipped, 1 - self.truth[i], self.truth[i]) for k in own]
            weights.append(shares / max(1.0, shares.sum()))
            counts.append(len(own))
        table = np.array(labels, dtype=np.uint8).reshape(-1, self.truth.shape[1])
        return table, np.concatenate(weights), np.append(0, np.cumsum(counts))


def _seen(members, truth) -> np.ndarray:
    """(n, S) whether a row sees an entry: all labels of its clique, or the label, are not missing."""
    cliques = [(k,) for k in range(truth.shape[1])] + list(members)
    observed = [np.all(truth[:, list(clique)] != GAP, axis=1) for clique in cliques]
    return np.repeat(np.array(observed).T, [2 ** len(clique) for clique in cliques], axis=1)


def _costs(loss, every, truth) -> np.ndarray:
    """(2^K, n): what labellings cost beside the true ones, by the labels that are not missing."""
    missing, of = np.unique(truth == GAP, axis=0, return_inverse=True)
    found = np.zeros((len(every), len(truth)))
    for number, gaps in enumerate(missing):
        seen, rows = np.flatnonzero(~gaps), np.flatnonzero(of.ravel() == number)
        if seen.size:
            found[:, rows] = task_losses(costs_inside(loss, seen), every[:, seen], truth[np.ix_(rows, seen)])
    return found
