"""The best directed acyclic graph over a few discrete variables, by a score that is a sum over the variables."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np

__all__ = ["FamilyScores", "best_graph", "climbed_graph", "in_order"]


class FamilyScores:
    """BIC of one variable given its parents: max log-likelihood - 1/2 ln(n) (r - 1) q, r its states and q those of the parents together.

    table : (n, K) of whole numbers, the states of K variables
    """

    def __init__(self, table):
        self.states = [np.unique(column, return_inverse=True)[1] for column in np.asarray(table).T]
        self.sizes = [int(state.max()) + 1 for state in self.states]
        self.n = len(table)
        self.of = cache(self._of)

    def _of(self, variable: int, parents: tuple[int, ...]) -> float:
        q, where = 1, np.zeros(self.n, dtype=int)
        for parent in parents:
            q, where = q * self.sizes[parent], where * self.sizes[parent] + self.states[parent]
        r = self.sizes[variable]
        _, where = np.unique(where, return_inverse=True)
        counts = np.bincount(where * r + self.states[variable], minlength=(int(where.max()) + 1) * r)
        counts = counts.reshape(-1, r)
        share = counts / counts.sum(axis=1, keepdims=True)
        seen = counts > 0
        likelihood = float(np.sum(counts[seen] * np.log(share[seen])))
        return likelihood - 0.5 * np.log(self.n) * (r - 1) * q


def best_graph(K: int, score, max_parents: int) -> list[tuple[int, ...]]:
    """The parents of each variable in a graph of the highest sum of score(variable, parents): exact, by dynamic programming over sets.

    The best graph over a set has a last variable, a sink, with the best parents among the others; its time grows as K 2^K.

    Source: Silander and Myllymaki, A simple approach for finding the globally optimal Bayesian network structure (2006).
    """
    best: list[
        dict[int, tuple[float, tuple[int, ...]]]
    ] = []  # of each variable: the best parents within a set
    for v in range(K):
        others = [u for u in range(K) if u != v]
        own = {
            sum(1 << u for u in parents): (score(v, parents), parents)
            for size in range(min(max_parents, K - 1) + 1)
            for parents in combinations(others, size)
        }
        within: dict[int, tuple[float, tuple[int, ...]]] = {}
        for members in range(1 << K):
            if members >> v & 1:
                continue
            smaller = [within[members & ~(1 << u)] for u in others if members >> u & 1]
            here = [own[members]] if members in own else []
            # of equally good ones that with fewer parents
            within[members] = max(here + smaller, key=lambda each: (each[0], -len(each[1])))
        best.append(within)
    whole: list[tuple[float, int]] = [(0.0, -1)]
    for members in range(1, 1 << K):
        sinks = [v for v in range(K) if members >> v & 1]
        totals = [whole[members & ~(1 << v)][0] + best[v][members & ~(1 << v)][0] for v in sinks]
        at = int(np.argmax(totals))
        whole.append((totals[at], sinks[at]))
    parents: list[tuple[int, ...]] = [()] * K
    members = (1 << K) - 1
    while members:
        v = whole[members][1]
        members &= ~(1 << v)
        parents[v] = best[v][members][1]
    return parents


def climbed_graph(K: int, score, max_parents: int) -> list[tuple[int, ...]]:
    """As `best_graph` for more variables, greedily: from no edge, the edge whose adding, removal or reversal raises the sum most."""
    parents: list[set[int]] = [set() for _ in range(K)]

    def value(v, of):
        return score(v, tuple(sorted(of)))

    while True:
        best, change = 1e-9, None
        for u in range(K):
            for v in range(K):
                if u == v:
                    continue
                if u in parents[v]:
                    lost = value(v, parents[v] - {u}) - value(v, parents[v])
                    moves = [(lost, {v: parents[v] - {u}})]
                    if len(parents[u]) < max_parents and not _reaches(parents, u, v, without=(u, v)):
                        gained = value(u, parents[u] | {v}) - value(u, parents[u])
                        moves.append((lost + gained, {v: parents[v] - {u}, u: parents[u] | {v}}))
                elif len(parents[v]) < max_parents and v not in parents[u] and not _reaches(parents, v, u):
                    moves = [(value(v, parents[v] | {u}) - value(v, parents[v]), {v: parents[v] | {u}})]
                else:
                    continue
                for gain, new in moves:
                    if gain > best:
                        best, change = gain, new
        if change is None:
            return [tuple(sorted(each)) for each in parents]
        for v, new in change.items():
            parents[v] = new


def _reaches(parents, start: int, end: int, without: tuple[int, int] | None = None) -> bool:
    """Whether a path of edges leads from start to end, not along the edge `without`."""
    waiting, seen = [end], {end}
    while waiting:
        v = waiting.pop()
        for u in parents[v]:
            if (u, v) != without and u not in seen:
                if u == start:
                    return True
                seen.add(u)
                waiting.append(u)
    return False


def in_order(parents) -> list[int]:
    """The variables, each after its parents; among those that may come next the first."""
    order: list[int] = []
    while len(order) < len(parents):
        order.append(next(v for v in range(len(parents)) if v not in order and set(parents[v]) <= set(order)))
    return order
