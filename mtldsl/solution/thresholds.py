"""Thresholds that cut a task's scores into labels: the best one under a metric, found by looking at all of them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mtldsl.atoms.metrics.metric import Metric
from mtldsl.atoms.metrics.top_places import PrecisionAt, RecallAt
from mtldsl.errors import DataError, ModelError

#: Scores nearer than this share of the largest are one score: a matrix product says no more about them.
_SAME_SCORE_SHARE = 64 * np.finfo(float).eps


def best_threshold(
    z, y, metric: Metric, typed: str = "best_threshold", task: object = None, weights=None
) -> float:
    """The threshold t with the smallest Delta of the labels +1 where z >= t, else -1.

    z, y    : (n,) scores and labels in {-1, +1}, both classes there
    weights : (n,) > 0, how often each row stands there; None: once. Not of `PrecisionAt` and `RecallAt`, which count rows
    Every labelling that a threshold can make is looked at: n + 1 of them, fewer where scores are equal, which always get
    the same label. t lies half way between two neighbouring scores; where all samples get one label it is 0 if that does,
    else half a mean gap beyond the last score. The one nearest 0 among equally good thresholds is taken.
    `PrecisionAt(k)` and `RecallAt(k)` take the threshold that labels exactly k samples +1. O(n log n).

    Raises ModelError for a metric that no threshold changes (rankings), and for one under which one label for all samples costs
    nothing; DataError where equal scores leave no threshold allowed. Messages begin with `typed`, the metric, and `task`.

    >>> from mtldsl.atoms.metrics import FScore
    >>> z, y = np.array([0.75, 0.5, -0.25, -0.5]), np.array([1.0, -1.0, 1.0, -1.0])
    >>> best_threshold(z, y, FScore()), best_threshold(z, y, PrecisionAt(k=2))
    (-0.375, 0.125)
    """
    # such as tune_threshold(tasks, metric=AUC()): task 'a'
    call = f"{typed[:-1]}, metric={metric!r})" if typed.endswith(")") else typed
    at_task = call if task is None else f"{call}: task {task!r}"
    _refuse(metric, y, at_task)
    z, y = np.asarray(z, float), np.asarray(y, float)
    order = np.argsort(z)
    counted = weights is not None and not isinstance(metric, PrecisionAt | RecallAt)
    w = np.asarray(weights, float)[order] if counted else np.ones(len(z), dtype=int)
    ordered, positive = z[order], np.append(0, np.cumsum(w * (y[order] > 0)))
    negative = np.append(0, np.cumsum(w * (y[order] <= 0)))
    gaps = np.diff(ordered)
    distinct = np.flatnonzero(gaps > _SAME_SCORE_SHARE * max(-ordered[0], ordered[-1])) + 1
    # the first `cut` samples are labelled -1: `positive[cut]` of them wrongly, and all later negatives
    cut = np.concatenate([[0], distinct, [len(z)]])
    c = positive[cut]
    positives, negatives = positive[-1].item(), negative[-1].item()
    b = negatives - negative[cut]
    if counted and (w != np.round(w)).any():  # `table` is of whole numbers
        delta = np.broadcast_to(np.asarray(metric.delta(b, c, positives, negatives), float), b.shape)
    else:
        delta = metric.table(b, c, positives, negatives)
    if np.isnan(delta).any():
        at = int(np.flatnonzero(np.isnan(delta))[0])
        raise ModelError(
            f"{metric!r} is NaN at b={b[at]}, c={c[at]} of {positives} positives and {negatives} negatives; let delta "
            "give a number for every table",
            term=at_task,
        )
    allowed = np.isfinite(delta)  # Delta is -inf where a metric forbids the table
    if isinstance(metric, PrecisionAt | RecallAt):
        allowed = len(z) - cut == metric.count(positives, negatives)
        delta = metric.loss(b, c, positives, negatives)
    if not allowed.any():
        raise DataError(
            f"no threshold gives labels that {metric!r} allows, because equal scores get equal labels",
            term=at_task,
            write_instead="write another metric, such as FScore()",
        )
    candidates = _thresholds(ordered, distinct)
    best = np.min(delta[allowed])
    slack = 4 * np.finfo(float).eps * np.max(np.abs(delta[allowed]))
    good = candidates[allowed & (delta <= best + slack)]
    return float(good[np.argmin(np.abs(good))])


def best_thresholds(tasks: Iterable[tuple], metric: Metric, typed: str, names: Iterable) -> np.ndarray:
    """(m,) the best threshold of every task's (scores, labels, weights); 0 where there are none of both classes."""
    found = []
    for name, (z, y, w) in zip(names, tasks, strict=False):
        weights = None if (w == 1.0).all() else w
        both = len(np.unique(y)) == 2
        found.append(best_threshold(z, y, metric, typed, name, weights) if both else 0.0)
    return np.array(found)


def _refuse(metric: Metric, y, at_task: str) -> None:
    if not metric.labellings:
        raise ModelError(
            f"{metric!r} measures the ranking of the scores, which no threshold changes",
            term=at_task,
            write_instead="write a metric of labels, such as metric=FScore()",
        )
    if isinstance(metric, PrecisionAt | RecallAt):
        return
    positives = int(np.sum(np.asarray(y) > 0))
    negatives = len(y) - positives
    for b, c, label in ((negatives, 0, "+1"), (0, positives, "-1")):
        if metric.table([b], [c], positives, negatives)[0] == 0.0:
            raise ModelError(
                f"under {metric!r} it costs nothing to label every sample {label}, so that it says nothing about "
                "thresholds",
                term=at_task,
                write_instead="write a metric that weighs both kinds of errors, such as metric=FScore()",
            )


def _thresholds(ordered, distinct) -> np.ndarray:
    """One threshold for each cut of the ascending scores: all +1, between neighbours that differ, all -1."""
    low, high = ordered[distinct - 1], ordered[distinct]
    between = low + 0.5 * (high - low)
    between = np.where(between > low, between, high)  # neighbouring floats have nothing between them
    first, last = ordered[0], ordered[-1]
    margin = 0.5 * (last - first) / len(distinct) if len(distinct) else abs(last) or 1.0
    below = 0.0 if first > 0.0 else first - margin
    above = 0.0 if last < 0.0 else last + margin
    return np.concatenate([[below], between, [above]])
