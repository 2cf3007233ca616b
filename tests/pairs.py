"""Products of many lists cut down to few cases, such that every two values of two lists still meet in one of them."""

from collections.abc import Iterable
from itertools import combinations, product
from typing import Any


def pairwise_cases(*lists: Iterable) -> list[tuple]:
    """Return cases of the product of the lists in which every pair of values of two of them occurs: the next is always the one with most new pairs.

    Source: Cohen, Dalal, Fredman and Patton, "The AETG system: an approach to testing based on combinatorial design", IEEE TSE 23 (1997).
    """
    values = [list(one) for one in lists]
    left = [_pairs(case) for case in product(*(range(len(one)) for one in values))]
    chosen, seen = [], set[Any]()
    while left:
        left = [pairs for pairs in left if not pairs <= seen]
        if left:
            best = max(left, key=lambda pairs: len(pairs - seen))
            seen |= best
            chosen.append(best)
    places = [dict(sorted({one for pair in pairs for one in pair})) for pairs in chosen]
    return [tuple(values[k][place[k]] for k in range(len(values))) for place in places]


def _pairs(case: tuple[int, ...]) -> set:
    """The pairs of (list, position) that a case has; of one list its values."""
    placed = list(enumerate(case))
    return set(combinations(placed, 2)) if len(placed) > 1 else {(placed[0], placed[0])}
