"""Metrics of orders, from their definitions: how many negatives stand above each positive, with a plane for every order.

With positives and negatives in falling order of their scores, an order is r_1 <= ... <= r_P, the negatives above each positive, and
its plane Delta(r) - unit (sum over k of r_k z_k - sum over negatives j of (positives below j) z_j). Small tasks are stated with all of
them; for larger ones the highest is found by dynamic programming.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from math import ceil, comb

import cvxpy as cp
import numpy as np

from .registry import formula

__all__ = ["HIGHEST", "MOST_ORDERS", "orders_stated"]

#: Orders up to which a task is stated in full.
MOST_ORDERS = 1000

#: The highest plane of a metric: f(z, positives, negatives, atom) -> (delta, slope).
HIGHEST: dict[str, Callable] = {}


def orders_stated(metric, positives: int, negatives: int) -> int:
    """How many functions the statement of a task takes the maximum of."""
    if metric.name == "PartialAUC":
        return positives * (negatives + 1)
    return comb(positives + negatives, positives)


# --------------------------------------------------------------------------------- part of the area under the ROC curve


@formula("PartialAUC", of_rankings=True)
def partial_auc(z, y, atom):
    """sum over positives of max over r of max(0, r - a) - 2 (r z_i - the sum of the r largest negatives), over Pos (b - a)"""
    up, down = z[np.flatnonzero(y > 0)], z[np.flatnonzero(y < 0)]
    a, b, ranks = _ranks_of_area(atom, down.size)
    sums = [_sum_of_largest(down, r) for r in ranks]
    terms = [max(0.0, r - a) - 2.0 * (r * up - total) for r, total in zip(ranks, sums, strict=True)]
    highest = cp.maximum(*terms) if len(terms) > 1 else terms[0]
    return cp.sum(highest) / (up.size * (b - a))


def _ranks_of_area(atom, negatives: int):
    """(a, b, all ranks: 0, 1, ... and b, where the last negative may count in part)."""
    a, b = (np.round(rate * negatives, 9) for rate in (atom.min_fpr, atom.max_fpr))
    return a, b, np.minimum(np.arange(ceil(b) + 1), b)


def _sum_of_largest(x, r: float):
    """The sum of the r largest, the last of them in part."""
    whole = int(r)
    if r == whole:
        return _largest(x, whole)
    return (whole + 1 - r) * _largest(x, whole) + (r - whole) * _largest(x, whole + 1)


def _largest(x, k: int):
    if k == 0:
        return cp.Constant(0.0)
    return cp.sum(x) if k == x.size else cp.sum_largest(x, k)


def _highest_area(z, positives, negatives, atom):
    a, b, ranks = _ranks_of_area(atom, len(negatives))
    down = negatives[np.argsort(-z[negatives])]
    counts = np.diff(ranks)  # of the first negatives
    sums = np.append(0.0, np.cumsum(counts * z[down[: len(counts)]]))
    worth = np.maximum(0.0, ranks - a) - 2.0 * (z[positives][:, None] * ranks - sums)
    best = np.argmax(worth, axis=1)
    scale, slope = len(positives) * (b - a), np.zeros(len(z))
    slope[positives] = -2.0 * ranks[best]
    slope[down[: len(counts)]] = [2.0 * n * np.sum(best > k) for k, n in enumerate(counts)]
    return np.sum(np.maximum(0.0, ranks[best] - a)) / scale, slope / scale


HIGHEST["PartialAUC"] = _highest_area


# ------------------------------------------------------------------------------------------ lists, by the places of positives


def _average_precision(places, positives: int):
    """1 - mean of the precisions k / (place of the k-th positive)"""
    return 1.0 - np.mean(np.arange(1, positives + 1) / places, axis=-1)


def _ndcg(places, positives: int):
    """1 - sum of 1 / log2(1 + place) over the largest such sum"""
    gain, best = (np.sum(1.0 / np.log2(1.0 + p), axis=-1) for p in (places, np.arange(1, positives + 1)))
    return 1.0 - gain / best


def _by_places(word: str, loss: Callable) -> None:
    @formula(word, of_rankings=True)
    def stated(z, y, atom):
        up, down = z[np.flatnonzero(y > 0)], z[np.flatnonzero(y < 0)]
        P, N = up.size, down.size
        places = np.array(list(itertools.combinations(range(1, P + N + 1), P)))
        ranks = places - np.arange(1, P + 1)  # negatives above each positive, rising
        below = np.array([[np.sum(r >= j) for j in range(1, N + 1)] for r in ranks])  # falling
        # the positives with the lowest scores have the most negatives above them: sums of the k largest -z, weighted by differences
        of_up = np.diff(ranks, axis=1, prepend=0)[:, ::-1] @ _all_sums(-up)
        of_down = -np.diff(below, axis=1, append=0) @ _all_sums(down)
        return cp.max(loss(places, P) + (2.0 / (P * N)) * (of_up + of_down))

    HIGHEST[word] = lambda z, positives, negatives, atom: _highest_list(z, positives, negatives, loss)


def _all_sums(x):
    """The sums of the k largest entries, k = 1, ..., all."""
    return cp.hstack([_largest(x, k) for k in range(1, x.size + 1)])


def _highest_list(z, positives, negatives, loss):
    """best[k, r]: the most that the first k positives give where r negatives stand above the last of them."""
    P, N = len(positives), len(negatives)
    up, down = positives[np.argsort(-z[positives])], negatives[np.argsort(-z[negatives])]
    pairs = np.append(0.0, np.cumsum(z[down]))
    best, chosen = np.zeros(N + 1), []
    for k in range(P):
        # what positive k + 1 adds: its part of the loss, and its pairs; the loss of a list is a sum over positives
        places = np.tile(np.arange(1, P + 1), (N + 1, 1))
        places[:, k] += np.arange(N + 1)
        own = loss(places, P) - (2.0 / (P * N)) * (np.arange(N + 1) * z[up[k]] - pairs)
        lead = np.maximum.accumulate(best)
        rises = best > np.append(-np.inf, lead[:-1])  # where the best so far is met first
        chosen.append(np.maximum.accumulate(np.where(rises, np.arange(N + 1), 0)))
        best = lead + own
    r = int(np.argmax(best))
    ranks = np.empty(P, int)
    for k in range(P - 1, -1, -1):
        ranks[k] = r
        r = chosen[k][r]
    slope = np.zeros(len(z))
    slope[up] = -2.0 * ranks / (P * N)
    slope[down] = 2.0 / (P * N) * np.array([np.sum(ranks >= j) for j in range(1, N + 1)])
    return loss(np.arange(1, P + 1) + ranks, P), slope


_by_places("AveragePrecision", _average_precision)
_by_places("NDCG", _ndcg)
