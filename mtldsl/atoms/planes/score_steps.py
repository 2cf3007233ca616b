"""Exact proximal steps of structured hinges in the scores: flip probabilities, and where they move with the scores.

prox of G with step s at z:  z + 2 s y p, with p in [0, 1]^n the flip probabilities that maximise D(p) - 2 <y p, z> - 2 s |p|^2, where
D(p) = -G*(-2 y p) is the largest expected Delta of a random labelling with these flip probabilities.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mtldsl.atoms.planes.tangent import Tangent

__all__ = ["ScoreStep", "auc_promise", "auc_step", "fscore_law", "fscore_promise", "fscore_step"]

#: evaluations of one step of the F-score, and the gap, relative to its terms, up to which it counts as exact
_MOST_EVALUATIONS = 400
_LONGEST = 1e12  # steps times samples: flips of a longer one, about its inverse, are near the 1e-13 that counts as equal
_EXACT = 1e-10


@dataclass(frozen=True, eq=False)
class ScoreStep:
    """What one exact proximal step of one task found.

    flips    : p (n,), the flip probabilities; the step leads to z + 2 step y p
    promised : D(p) = -G*(-2 y p)
    """

    flips: np.ndarray
    _promised: Callable[[], float]
    _tangent: Callable[[], Tangent]

    @cached_property
    def promised(self) -> float:
        return self._promised()

    @cached_property
    def tangent(self) -> Tangent:
        """The derivative of z -> 2 step (-y p), which is the identity less that of the step."""
        return self._tangent()


class _Sides:
    """The samples of one class in the order in which they are flipped: those that surely are, those that may be."""

    def __init__(self, samples: np.ndarray, margins: np.ndarray, limit: float, u: float):
        """margins: y z, small ones first; above `limit` they are never flipped, below -u always."""
        order = margins.argsort(kind="stable")
        margins, samples = margins[order], samples[order]
        first, last = margins.searchsorted(-u), margins.searchsorted(limit, side="right")
        self.sure, self.open, self.margins = samples[:first], samples[first:last], margins[first:last]


def auc_step(z, positive, negative, step: float) -> ScoreStep:
    """The exact step of the hinge of `AUC`."""
    from mtldsl.atoms.planes.level_set_kernel import level_sets

    u, P, N = 2.0 * step, len(positive), len(negative)
    k = 1.0 / (P * N)
    up, down = _Sides(positive, z[positive], 0.5 / P, u), _Sides(negative, -z[negative], 0.5 / N, u)
    A = k * len(up.sure) - 2.0 * down.margins
    B = k * len(down.sure) - 2.0 * up.margins
    q, r = np.empty(len(A)), np.empty(len(B))
    of_q, of_r = np.empty(len(A), np.int64), np.empty(len(B), np.int64)
    n_groups = level_sets(A, B, k, 2.0 * u, q, r, of_q, of_r)
    p = _spread(len(z), up, down, r, q)

    def tangent() -> Tangent:
        groups = np.full(len(z), -1)
        groups[down.open], groups[up.open] = of_q, of_r
        signs = np.ones(len(z))
        signs[negative] = -1.0
        return Tangent(groups, signs, np.bincount(groups[groups >= 0], minlength=n_groups).astype(float))

    return ScoreStep(p, lambda: auc_promise(p[positive], p[negative]), tangent)


def auc_promise(of_positives, of_negatives) -> float:
    """D(p) of `AUC`: P(i and j flipped) is at most min(p_i, p_j), and one uniform number for all samples attains it for every pair."""
    q = np.sort(of_negatives)
    below = np.searchsorted(q, of_positives)
    sums = np.append(0.0, np.cumsum(q))[below] + of_positives * (len(q) - below)
    return float(np.sum(sums) / (len(q) * len(of_positives)))


def fscore_step(z, positive, negative, square: float, limits, step: float, near=None) -> ScoreStep | None:
    """The exact step of the hinge of `FScore`, square = beta^2 >= 1; None where rounding keeps its gap from closing.

    near : flip probabilities (n,) of a step nearby, to start from
    """
    from mtldsl.atoms.planes.survival_kernel import isotonic, survival_step
    from mtldsl.atoms.planes.threshold_kernel import largest_tables, promised_value

    u, kappa = 2.0 * step, 1.0 + square
    if u * len(z) > _LONGEST:
        return None
    up, down = _Sides(positive, z[positive], limits[0], u), _Sides(negative, -z[negative], -limits[1], u)
    P, N = len(up.open), len(down.open)
    spare, m = float(len(positive) - len(up.sure) - P), square * len(positive) + len(down.sure)
    scores, falling = np.ascontiguousarray(up.margins), -down.margins
    r = np.empty(P)
    if near is None:
        heights, counts = np.empty(P + 1), np.empty(P + 1, np.int64)
        largest_tables(falling - 0.5 * u, P, spare, m, kappa, heights, counts)
        isotonic((np.diff(heights) - 2.0 * scores) / (2.0 * u), np.ones(P), r)
    else:
        isotonic(np.ascontiguousarray(near[up.open]), np.ones(P), r)
    q, tables, pools = np.empty(N), np.empty(P + 1, np.int64), np.empty((P + 1, 5), np.int64)
    a, b, levels, mass = np.empty(P + 1), np.empty(P + 1), np.empty(P + 1), np.empty(P + 2)
    K, n_pools, gap, size, _ = survival_step(
        falling, scores, spare, m, kappa, u, r, q, tables, a, mass, b, levels, pools, _MOST_EVALUATIONS
    )
    if not gap <= _EXACT * size:
        return None
    p = _spread(len(z), up, down, r, q)

    def tangent() -> Tangent:
        return _tangent_of_tables(len(z), up, down, tables[:K], b[:K], pools[:n_pools])

    return ScoreStep(p, lambda: promised_value(a[:K], b[:K], mass[: K + 1], m, kappa), tangent)


def fscore_promise(of_positives, of_negatives, square: float) -> float:
    """D(p) of `FScore`, square = beta^2 >= 1: the count of wrong positives has the survival function of their sorted p, and the
    negatives' count given it follows from thresholds.
    """
    from mtldsl.atoms.planes.threshold_kernel import promised_value

    a, b, mass = _tables(of_positives, of_negatives, square)
    return promised_value(a, b, mass, square * len(of_positives), 1.0 + square)


def fscore_law(of_positives, of_negatives, square: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(b, c, weights) of the random labelling behind `fscore_promise`."""
    a, b, mass = _tables(of_positives, of_negatives, square)
    c, whole, weights = len(of_positives) - np.rint(a).astype(int), np.floor(b), np.diff(mass)
    share = b - whole
    up = np.flatnonzero(share > 0.0)
    whole = whole.astype(int)
    return (
        np.append(whole, whole[up] + 1), np.append(c, c[up]), np.append(weights * (1.0 - share), (weights * share)[up])
    )  # fmt: skip


def _tables(of_positives, of_negatives, square: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(right positives, expected counts of wrong negatives, mass before each and 1) of the tables with a weight."""
    from mtldsl.atoms.planes.threshold_kernel import thresholds

    r, q = np.sort(of_positives)[::-1], np.sort(of_negatives)[::-1].copy()
    ends = np.concatenate([[0.0], 1.0 - r, [1.0]])
    kept = np.flatnonzero(np.diff(ends) > 0.0)
    mass = np.append(ends[kept], 1.0)
    a, b = (len(r) - kept).astype(float), np.empty(len(kept))
    levels, pools = np.empty(len(kept)), np.empty((len(kept), 5), np.int64)
    sums = np.append(0.0, np.cumsum(q))
    thresholds(q, sums, a, mass, 1.0, 0.0, square * len(r), 1.0 + square, b, levels, pools)
    return a, b, mass


def _spread(n: int, up: _Sides, down: _Sides, r, q) -> np.ndarray:
    p = np.zeros(n)
    p[up.sure], p[down.sure] = 1.0, 1.0
    p[up.open], p[down.open] = r, q
    return p


def _tangent_of_tables(n: int, up: _Sides, down: _Sides, tables, b, pools) -> Tangent:
    """Pools of negatives at one level move freely where it is pinned, and keep their sum where it is not; positives with one
    probability move together, and with them the negatives that are flipped between their tables, and the pools' sums.
    """
    from mtldsl.atoms.planes.survival_kernel import overlaps

    G = len(tables) - 1
    sizes, first, shares = np.empty(G), np.empty(G, np.int64), np.empty((G, 2))
    overlaps(G, tables, b, len(pools), pools, sizes, first, shares)
    groups, pool = np.full(n, -1), np.full(n, -1)
    for p, (_, _, _, low, high) in enumerate(pools):
        pool[down.open[high:low]] = p
    for i in range(G):
        groups[up.open[tables[i] : tables[i + 1]]] = i
        single = down.open[int(np.ceil(b[i + 1] - 1e-9)) : int(np.floor(b[i] + 1e-9))]
        single = single[pool[single] < 0]
        groups[single] = i
        sizes[i] = tables[i + 1] - tables[i] + len(single)
    reach = np.zeros((G, len(pools)))
    for i in np.flatnonzero(first >= 0):
        reach[i, first[i]] = shares[i, 0]
        if shares[i, 1] > 0.0:
            reach[i, first[i] + 1] = shares[i, 1]
    return Tangent(groups, np.ones(n), sizes, pool, pools[:, 2].astype(bool), reach)
