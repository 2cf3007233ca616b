"""The metrics, from their definitions.

Delta of a contingency table: b negatives labelled +1 and c positives labelled -1, arrays that broadcast; -inf where a
metric forbids the table. A metric of rankings has no table and is stated on the predictions.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from mtldsl.atoms.function import REGISTRY
from mtldsl.errors import ModelError

from .registry import FORMULAS, formula

__all__ = ["delta_of", "is_of_rankings", "missing_formula", "pairs_in_order"]


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
    differences = pairs_in_order(y)
    return cp.sum(cp.pos(1.0 - 2.0 * (differences @ z))) / differences.shape[0]


def pairs_in_order(y) -> sp.csr_array:
    """(Pos Neg, n): takes z to z_i - z_j, for every positive i and negative j."""
    i, j = (side.ravel() for side in np.meshgrid(np.flatnonzero(y > 0), np.flatnonzero(y < 0)))
    row, one = np.arange(i.size), np.ones(i.size)
    entries = (np.concatenate([one, -one]), (np.concatenate([row, row]), np.concatenate([i, j])))
    return sp.coo_array(entries, shape=(i.size, y.size)).tocsr()


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
