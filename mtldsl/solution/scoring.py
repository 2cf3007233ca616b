"""How good predictions are under a metric: one number a task, 1 for a perfect answer."""

from __future__ import annotations

import numpy as np

from mtldsl.atoms.losses.structured_hinge import as_metrics, metrics_of_tasks
from mtldsl.atoms.metrics import Metric
from mtldsl.errors import DataError, ModelError
from mtldsl.tasks import Tasks

__all__ = ["checked_metrics", "r_squared", "score_of"]


def checked_metrics(metric, tasks: Tasks, typed: str) -> list[Metric]:
    """One metric a task. ModelError for anything else than a metric, a list with one a task or a dict {task name: metric};
    DataError for labels that are not -1 and +1, a task of one class, or sample weights.
    """
    metric = as_metrics(metric, typed)
    tasks.require_labels("sign", typed)
    if tasks.sample_weights is not None:
        raise DataError(
            "these tasks have sample weights, and a metric counts samples",
            term=typed,
            write_instead="repeat rows instead",
        )
    positives = [int(np.sum(y > 0)) for y in tasks.per_task(tasks.targets)]
    sizes = list(zip(positives, tasks.counts - positives, strict=True))
    fitted = metrics_of_tasks(metric, tasks.task_names, sizes, typed)
    return list(fitted) if isinstance(fitted, tuple) else [fitted] * tasks.n_tasks


def score_of(metric: Metric, z, y, threshold: float = 0.0, typed: str = "score_of") -> float:
    """1 - Delta of the labels +1 where z >= threshold, else -1, in one task; the higher the better.

    `ErrorRate()`: the share of right labels, because its Delta is 2 (b + c): 1 - Delta / (2 n).
    `ROCArea()`: the share of pairs (positive, negative) that z puts in the right order, equal scores one half.
    `PartialAUC`, `AveragePrecision`, `NDCG`: of the order; what equal scores are worth, each says.
    `PrecisionAt(k)`, `RecallAt(k)`: of the k samples with the highest z; where equal scores meet at the k-th place, the mean
    over all choices among them. None of these but `ErrorRate` looks at the threshold.

    >>> from mtldsl.atoms.metrics import ErrorRate, PrecisionAt, ROCArea
    >>> z, y = np.array([0.5, 0.1, -0.3, -0.6]), np.array([1.0, -1.0, 1.0, -1.0])
    >>> score_of(ErrorRate(), z, y), score_of(ROCArea(), z, y), score_of(PrecisionAt(k=1), z, y)
    (0.5, 0.75, 1.0)
    """
    if not (metric.labellings or metric.scored_by_order):
        raise ModelError(
            f"{metric!r} measures rankings, and has no score of predictions",
            term=typed,
            write_instead="write metric=ROCArea()",
        )
    return metric.score(np.asarray(z, float), np.asarray(y) > 0, threshold)


def r_squared(prediction, y) -> float:
    """The coefficient of determination of predictions, or of one constant; NaN where all labels are equal.

    >>> import numpy as np
    >>> r_squared(np.array([1.0, 2.0]), np.array([1.0, 3.0]))
    0.5
    """
    spread = np.sum((y - y.mean()) ** 2)
    return float(1.0 - np.sum((y - prediction) ** 2) / spread) if spread > 0 else float("nan")
