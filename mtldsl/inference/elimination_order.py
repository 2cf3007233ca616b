"""In which order labels are eliminated, and which labels each elimination ties together."""

from __future__ import annotations

from heapq import heappop, heappush

from mtldsl.inference.cliques import Cliques

__all__ = ["min_fill"]


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
