"""Plain formulas of metrics, and of the structured hinge of one: its maximum over all labellings, or orders, of a task.

Delta of a table: b negatives labelled +1, c positives labelled -1, arrays that broadcast; -inf where a labelling is not allowed.
"""

from __future__ import annotations

import numpy as np

from mtldsl.certificates.plain.plain_formula import DEFINITIONS, SETTINGS, Definition, defined
from mtldsl.language.vocabulary import METRICS


@defined("FScore", "tables", concave=True)
def f_score(b, c, positives, negatives, atom):
    """1 - (1 + beta^2) a / ((1 + beta^2) a + b + beta^2 c), a = Pos - c"""
    a, square = positives - c, atom.beta**2
    return 1.0 - (1.0 + square) * a / (square * positives + a + b)


@defined("AUC", "tables", concave=True)
def auc(b, c, positives, negatives, atom):
    """b c / (Pos Neg)"""
    return b * c / (positives * negatives)


def _twice_hinge(up, down, atom):
    return 2.0 * (np.sum(np.maximum(1.0 - up, 0.0)) + np.sum(np.maximum(1.0 + down, 0.0)))


@defined("ErrorRate", "tables", hinge=_twice_hinge)
def error_rate(b, c, positives, negatives, atom):
    """2 (b + c)"""
    return 2.0 * (b + c)


@defined("BalancedError", "tables", concave=True)
def balanced_error(b, c, positives, negatives, atom):
    """(b / Neg + c / Pos) / 2"""
    return 0.5 * (b / negatives + c / positives)


@defined("Jaccard", "tables", concave=True)
def jaccard(b, c, positives, negatives, atom):
    """1 - a / (Pos + b)"""
    return 1.0 - (positives - c) / (positives + b)


@defined("GMean", "tables", most=1.0)
def g_mean(b, c, positives, negatives, atom):
    """1 - sqrt((1 - c / Pos) (1 - b / Neg))"""
    return 1.0 - np.sqrt((1.0 - c / positives) * (1.0 - b / negatives))


def _hinge_of_top(delta):
    def hinge(up, down, atom):
        """The true labelling, and c positives labelled -1 beside k - Pos + c negatives labelled +1."""
        k = _how_many(atom.k, up.size + down.size)
        c = np.arange(max(0, up.size - k), min(up.size, down.size + up.size - k) + 1)
        b = k - up.size + c
        of_down, of_up = _flipped(up, down)
        return max(0.0, np.max(delta(b, c, up.size, k) + of_down[b] + of_up[c]))

    return hinge


def _how_many(k, n: int) -> int:
    return int(k) if k >= 1 else max(1, round(k * n))


def _of_precision(b, c, positives, k):
    return b / k


def _of_recall(b, c, positives, k):
    return c / positives


def _among_top(delta, b, c, positives, negatives, atom):
    k = _how_many(atom.k, positives + negatives)
    allowed = np.where(positives - c + b == k, delta(b, c, positives, k), -np.inf)
    return np.where(b + c == 0, 0.0, allowed)


@defined("PrecisionAt", "tables", hinge=_hinge_of_top(_of_precision))
def precision_at(b, c, positives, negatives, atom):
    """b / k where k samples are labelled +1"""
    return _among_top(_of_precision, b, c, positives, negatives, atom)


@defined("RecallAt", "tables", hinge=_hinge_of_top(_of_recall))
def recall_at(b, c, positives, negatives, atom):
    """c / Pos where k samples are labelled +1"""
    return _among_top(_of_recall, b, c, positives, negatives, atom)


@defined("ROCArea", "order")
def roc_area(up, down, atom):
    """the mean over pairs of (1 - 2 (z_i - z_j))_+: of each positive the negatives above z_i - 1/2"""
    down = np.sort(down)
    first = np.searchsorted(down, up - 0.5, side="right")
    tails = np.append(np.cumsum((down + 0.5)[::-1])[::-1], 0.0)
    return 2.0 * np.sum(tails[first] - (down.size - first) * up) / (up.size * down.size)


@defined("PartialAUC", "order")
def partial_auc(up, down, atom):
    """sum over positives of max over r of (r - a)_+ - 2 (r z_i - the r largest negatives), over Pos (b - a)"""
    a, b = (np.round(rate * down.size, 9) for rate in (atom.min_fpr, atom.max_fpr))
    ranks = np.minimum(np.arange(np.ceil(b) + 1.0), b)
    sums = np.append(0.0, np.cumsum(np.diff(ranks) * np.sort(down)[::-1][: len(ranks) - 1]))
    worth = np.maximum(ranks - a, 0.0) + 2.0 * sums
    highest = [np.max(worth - 2.0 * ranks * z) for z in up]
    return np.sum(highest) / (up.size * (b - a))


@defined("AveragePrecision", "order")
def average_precision(up, down, atom):
    """one minus the mean of k / (place of the k-th positive)"""
    P = up.size
    return 1.0 + _best_list(up, down, lambda k, r: -k / ((k + r) * P))


@defined("NDCG", "order")
def ndcg(up, down, atom):
    """one minus the sum of 1 / log2(1 + place), over the largest such sum"""
    most = np.sum(1.0 / np.log2(1.0 + np.arange(1, up.size + 1)))
    return 1.0 + _best_list(up, down, lambda k, r: -1.0 / (np.log2(1.0 + k + r) * most))


def _best_list(up, down, gain):
    """Return max over r_1 <= r_2 <= ... of sum_k gain(k, r_k) - 2 (r_k z_k - the r_k largest negatives) / (Pos Neg): r_k negatives stand above
    the k-th positive."""
    r = np.arange(down.size + 1)
    sums, pairs = np.append(0.0, np.cumsum(np.sort(down)[::-1])), up.size * down.size
    best = np.zeros(r.size)
    for k, z in enumerate(np.sort(up)[::-1], 1):
        best = np.maximum.accumulate(best) + gain(k, r) + 2.0 * (sums - r * z) / pairs
    return np.max(best)


def _flipped(up, down) -> tuple[np.ndarray, np.ndarray]:
    """Return what the b highest negatives and the c lowest positives gain when they are flipped, for every b and c."""
    of_down, of_up = np.sort(down)[::-1], np.sort(up)
    return 2.0 * np.append(0.0, np.cumsum(of_down)), -2.0 * np.append(0.0, np.cumsum(of_up))


def definition_of(metric) -> Definition | None:
    """Return the plain formula of a metric of the language; None of a class of one's own."""
    return DEFINITIONS.get(metric.name) if METRICS.get(metric.name) is type(metric) else None


@defined("structured_hinge", "task")
def structured_hinge(z, y, s, atom):
    """max over labellings y' of Delta(y, y') - <y - y', z>: the b highest negatives and the c lowest positives are flipped"""
    metric, up, down = atom.metric, z[y > 0], z[y < 0]
    known = definition_of(metric)
    few = (up.size + 1) * (down.size + 1) <= SETTINGS.own_tables
    if known is None and not (metric.labellings and few):
        return atom.value(z, y)
    if known is not None and (known.kind == "order" or known.hinge is not None):
        return (known.hinge or known.function)(up, down, metric)

    def delta(b, c):
        if known is None:  # there is no other definition of it
            return metric.delta(b, c, up.size, down.size)
        return known.function(b, c, up.size, down.size, metric)

    of_down, of_up = _flipped(up, down)
    if known is not None and known.concave:
        return np.max(_highest(delta, of_down, np.arange(of_up.size)) + of_up)
    # flips that lose more than any Delta brings are not the best
    most = np.inf if known is None else known.most
    b, c = (np.flatnonzero(of >= of.max() - most) for of in (of_down, of_up))
    best, step = -np.inf, max(1, SETTINGS.table_entries // b.size)
    for first in range(0, c.size, step):
        some = c[first : first + step, None]
        with np.errstate(all="ignore"):
            best = max(best, np.max(delta(b[None, :], some) + of_down[b] + of_up[some]))
    return best


def _highest(delta, of_down, c):
    """Return max over b of delta(b, c) + of_down[b], concave in b, for every c: by bisection of where it ends to rise."""
    low, high = np.zeros(c.size, int), np.full(c.size, of_down.size - 1)
    with np.errstate(all="ignore"):
        while np.any(low < high):
            b = (low + high) // 2
            after = np.minimum(b + 1, of_down.size - 1)
            rises = delta(after, c) - delta(b, c) + (of_down[after] - of_down[b]) > 0.0
            low, high = np.where(rises, np.maximum(low, after), low), np.where(rises, high, b)
        return delta(low, c) + of_down[low]
