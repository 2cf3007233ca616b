"""How good labellings over a graph of labels are: one number a label, as of separate tasks."""

from __future__ import annotations

import numpy as np

from mtldsl.atoms.metrics import PrecisionAt, RecallAt, ROCArea
from mtldsl.errors import DataError
from mtldsl.solution.label_predictions import LabelPredictions
from mtldsl.solution.scoring import checked_metrics, score_of
from mtldsl.tasks import Tasks

__all__ = ["scores_of_labels"]


def scores_of_labels(of: LabelPredictions, tasks: Tasks, metric, typed: str) -> np.ndarray:
    """(K,) the share of right labels in the best labellings, or 1 - Delta of a metric; missing labels of the tasks are left out.

    Metrics of labels see the best labelling; `ROCArea`, `PrecisionAt` and `RecallAt`, which rank, see the margins of the labels.
    DataError for inputs that are not shared: a labelling is of all labels of a sample.
    """
    if not tasks.is_shared:
        raise DataError(
            f"{typed}: these tasks have separate inputs, and a labelling is of all labels of one sample; give Tasks.shared(X, Y)"
        )
    tasks.require_labels("sign", typed)
    metrics = None if metric is None else checked_metrics(metric, tasks, typed)
    margins = of.margins(tasks.X) if metrics and any(map(_ranks, metrics)) else None
    labels = 2.0 * of.decode(tasks.X).labels - 1.0
    found = np.empty(tasks.n_tasks)
    for k, y in enumerate(tasks.per_task(tasks.targets)):
        rows = slice(None) if tasks.mask is None else tasks.mask[:, k]
        if metrics is None:
            found[k] = np.mean(labels[rows, k] == y)
        else:
            z = margins if _ranks(metrics[k]) else labels
            found[k] = score_of(metrics[k], z[rows, k], y, typed=typed)
    return found


def _ranks(metric) -> bool:
    return isinstance(metric, ROCArea | PrecisionAt | RecallAt)
