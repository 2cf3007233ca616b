"""Metrics of the language, such as FScore(beta=2), where a measure is asked for by name."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mtldsl.atoms.losses.structured_hinge import metrics_of_tasks
from mtldsl.atoms.metrics import FScore, Metric
from mtldsl.errors import DataError, ModelError
from mtldsl.scoring.measure import Measure
from mtldsl.scoring.measures import measure
from mtldsl.solution.scoring import score_of

__all__ = ["as_measure"]


def as_measure(metric, typed: str) -> Measure:
    """The measure of this name, or one of a metric: 1 - Delta of every task, as in `solution.scores(tasks, metric)`.

    typed : what stands before the value in messages, such as "cross_validate(lam, metric"

    >>> one = as_measure(FScore(beta=2.0), "metric")
    >>> one.name, one.needs, one.of_task(np.array([1.0, 1.0, -1.0]), np.array([1.0, -1.0, -1.0]))
    ('FScore(beta=2.0)', 'labels', 0.555...)
    """
    if not isinstance(metric, Metric):
        return measure(metric, typed)
    if not (metric.labellings or metric.scored_by_order):
        raise ModelError(
            f"{metric!r} measures rankings, and has no score of predictions",
            term=f"{typed}={metric!r}" + ")" * typed.count("("),
            write_instead="write metric='roc_auc'",
        )
    return _OfMetric(
        repr(metric), "", "scores" if metric.scored_by_order else "labels", True, "two", metric=metric
    )


@dataclass(frozen=True)
class _OfMetric(Measure):
    metric: Metric = field(default_factory=FScore)

    def of_task(self, y: np.ndarray, predicted: np.ndarray, weights: np.ndarray | None = None) -> float:
        if weights is not None:
            raise DataError(
                "these tasks have sample weights, and a metric counts samples", term=self.name, write_instead="write a name, such as metric='f1'"
            )  # fmt: skip
        if not self.is_defined(y):
            return float("nan")
        positives = int(np.sum(y > 0))
        metrics_of_tasks(self.metric, ["of these rows"], [(positives, len(y) - positives)], "score")
        return score_of(self.metric, predicted, y)
