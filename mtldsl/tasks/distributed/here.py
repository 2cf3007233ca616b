"""Drawn rows as ordinary tasks in this process."""

from __future__ import annotations

import numpy as np

from mtldsl.tasks.distributed.drawn import Drawn
from mtldsl.tasks.stacked import stack
from mtldsl.tasks.tasks import Tasks

__all__ = ["tasks_of"]


def tasks_of(drawn: Drawn, task_names, feature_names, scaling) -> Tasks:
    """In the order of partitions and rows; of a long table, task after task."""
    drawn = drawn.taken()
    names = {"task_names": task_names, "feature_names": feature_names, "scaling": scaling}
    partition, row = drawn.place.T
    if drawn.task is None:
        order = np.lexsort((row, partition))
        Y, S = drawn.Y[order], None if drawn.weights is None else drawn.weights[order]
        kept = ~np.isnan(Y)
        return Tasks(
            shared=stack([(drawn.X, order)]),
            targets=[y[own] for y, own in zip(Y.T, kept.T, strict=True)],
            mask=None if kept.all() else kept,
            sample_weights=None if S is None else [s[own] for s, own in zip(S.T, kept.T, strict=True)],
            **names,
        )
    order = np.lexsort((row, partition, drawn.task))
    return Tasks(
        stacked=stack([(drawn.X, order)]),
        counts=np.bincount(drawn.task, minlength=len(task_names)),
        targets=drawn.Y[order, 0],
        sample_weights=None if drawn.weights is None else drawn.weights[order, 0],
        **names,
    )
