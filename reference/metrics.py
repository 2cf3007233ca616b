"""The metrics of structured hinges, from their definitions in cvxpy.

Delta of a contingency table: b negatives labelled +1 and c positives labelled -1, arrays that broadcast; -inf where a
metric forbids the table. A metric of rankings has no table and is stated on the predictions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, comb

import cvxpy as cp
import numpy as np

from mtldsl.atoms.atom import REGISTRY
from mtldsl.errors import ModelError
from mtldsl.normal_form.form import LossTerm
from mtldsl.reference.registry import FORMULAS, formula, formula_of_loss


@formula("FScore")
def f_score(b, c, positives, negatives, atom):
    """1 - (1 + beta^2) tp / ((1 + beta^2) tp + beta^2 fn + fp)"""
    tp, fn, fp, square = positives - c, c, b, atom.beta**2
    return 1.0 - (1.0 + square) * tp / ((1.0 + square) * tp + square * fn + fp)


@formula("AUC")
def auc(b, c, positives, negatives, atom):
    """(fn / Pos) (fp / Neg)"""
    return (c / positives) * (b / negatives)


@formula("ErrorRate")
def error_rate(b, c, positives, negatives, atom):
    """2 (fp + fn)"""
    return 2.0 * (b + c)


@formula("BalancedError")
def balanced_error(b, c, positives, negatives, atom):
    """1 - (tp / Pos + tn / Neg) / 2"""
    return 1.0 - 0.5 * ((positives - c) / positives + (negatives - b) / negatives)


@formula("Jaccard")
def jaccard(b, c, positives, negatives, atom):
    """1 - tp / (tp + fp + fn)"""
    tp, fp, fn = positives - c, b, c
    return 1.0 - tp / (tp + fp + fn)


@formula("GMean")
def g_mean(b, c, positives, negatives, atom):
    """1 - sqrt(tp / (tp + fn) tn / (tn + fp))"""
    tp, tn = positives - c, negatives - b
    return 1.0 - np.sqrt(tp * tn / (positives * negatives))


@formula("PrecisionAt")
def precision_at(b, c, positives, negatives, atom):
    """1 - tp / k where k samples are labelled +1; the true labelling has 0"""
    k = _how_many(atom.k, positives + negatives)
    return _among_top(k, b, positives - c, 1.0 - (positives - c) / k, (b == 0) & (c == 0))


@formula("RecallAt")
def recall_at(b, c, positives, negatives, atom):
    """1 - tp / Pos where k samples are labelled +1; the true labelling has 0"""
    k = _how_many(atom.k, positives + negatives)
    return _among_top(k, b, positives - c, c / positives, (b == 0) & (c == 0))


@formula("ROCArea", of_rankings=True)
def roc_area(z, y, atom):
    """(1 / (Pos Neg)) sum over positives i, negatives j of max(0, 1 - 2 (z_i - z_j))"""
    i, j = (side.ravel() for side in np.meshgrid(np.flatnonzero(y > 0), np.flatnonzero(y < 0)))
    return cp.sum(cp.pos(1.0 - 2.0 * (z[i] - z[j]))) / i.size


def _how_many(k, n: int) -> int:
    """k samples, or that share of n, at least one."""
    return int(k) if float(k) >= 1.0 else max(1, round(k * n))


def _among_top(k, fp, tp, value, is_truth):
    return np.where(is_truth, 0.0, np.where(tp + fp == k, value, -np.inf))


# ------------------------------------------------------------------------------------- of whatever metric


def is_of_rankings(metric) -> bool:
    return not _is_own(metric) and FORMULAS[metric.name].of_rankings


def missing_formula(metric) -> str | None:
    """None where the reference can state the metric; else why it cannot."""
    if _is_own(metric) and not metric.labellings:
        return f"the reference has no formula for the metric {metric!r}, which is not one of labellings"
    return None


def delta_of(metric, b, c, positives: int, negatives: int) -> np.ndarray:
    """Delta at arrays b, c. A user's own metric is defined by its `delta`; there is no second definition of it."""
    reason = missing_formula(metric)
    if reason is not None:
        raise ModelError(reason)
    if _is_own(metric):
        value = metric.delta(b, c, positives, negatives)
    else:
        value = FORMULAS[metric.name](b, c, positives, negatives, metric)
    return np.broadcast_to(np.asarray(value, float), np.broadcast_shapes(np.shape(b), np.shape(c)))


def _is_own(metric) -> bool:
    """A class that a user wrote, even where it took the name of one of the language."""
    return REGISTRY.get(metric.name) is not type(metric)


# --------------------------------------------------------------------------------------------------------------
# Metrics of orders, from their definitions: how many negatives stand above each positive, with a plane for every order.
#
# With positives and negatives in falling order of their scores, an order is r_1 <= ... <= r_P, the negatives above each positive, and
# its plane Delta(r) - unit (sum over k of r_k z_k - sum over negatives j of (positives below j) z_j). Small tasks are stated with all of
# them; for larger ones the highest is found by dynamic programming.


@dataclass(frozen=True)
class MetricReferenceSettings:
    """Sizes of tasks that are stated in full; larger ones go by planes."""

    stated_orders: int = 1000  # most orders
    stated_rows: int = 40  # most samples
    # most samples where the metric is of orders: planes say which orders prove the bound, a statement does not
    order_rows: int = 12
    stated_pairs: int = 10_000  # most pairs where the metric is one of rankings


SETTINGS = MetricReferenceSettings()


#: The highest plane of a metric: f(z, positives, negatives, atom) -> (delta, slope).
HIGHEST: dict[str, Callable] = {}


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


# --------------------------------------------------------------------------------------------------------------
# The structured hinge, from its definition: a maximum over labellings, task by task.
#
# max over y' of Delta(y, y') - <y - y', z> is, with b negatives labelled +1 and c positives labelled -1, the maximum over
# b and c of Delta(b, c) + 2 (sum of the c largest -z of positives) + 2 (sum of the b largest z of negatives). Stated so, it
# has (Pos + 1)(Neg + 1) terms, which serves small tasks; for larger ones `planes.py` finds those that matter.


def is_stated(metric, y) -> bool:
    """Tell whether the structured hinge of a task is small enough to be stated in full."""
    positives, negatives = int(np.sum(y > 0)), int(np.sum(y < 0))
    if is_of_rankings(metric) and metric.name in HIGHEST:
        if len(y) > SETTINGS.order_rows:
            return False
        # the functions that the statement takes the maximum of
        area = metric.name == "PartialAUC"
        orders = positives * (negatives + 1) if area else comb(positives + negatives, positives)
        return orders <= SETTINGS.stated_orders
    if is_of_rankings(metric):
        return positives * negatives <= SETTINGS.stated_pairs
    return len(y) <= SETTINGS.stated_rows


def metrics_of(term: LossTerm) -> list:
    """The metric of every task; none where the loss has no metrics."""
    if not formula_of_loss(term).by_planes:
        return []
    return [term.atom.of_task(i).metric for i in range(term.tasks.n_tasks)]


@formula("structured_hinge", by_planes=True)
def structured_hinge(z, y, s, atom):
    """max over y' of Delta(y, y') - <y - y', z>"""
    metric = atom.metric
    if is_of_rankings(metric):
        return FORMULAS[metric.name](z, y, metric)
    positives, negatives = z[np.flatnonzero(y > 0)], z[np.flatnonzero(y < 0)]
    c, b = np.arange(positives.size + 1)[:, None], np.arange(negatives.size + 1)[None, :]
    delta = delta_of(metric, b, c, positives.size, negatives.size)
    row, column = np.nonzero(np.isfinite(delta))
    # every sum of the largest is written once and picked by the tables that contain it
    of_positives, of_negatives = (
        cp.hstack([cp.Constant(0.0), _all_sums(x)]) for x in (-positives, negatives)
    )
    return cp.max(delta[row, column] + 2.0 * of_positives[row] + 2.0 * of_negatives[column])
