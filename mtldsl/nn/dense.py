"""What networks take: tasks and inputs that are dense, and no features of kernels."""

from __future__ import annotations

import numpy as np

from mtldsl.errors import DataError
from mtldsl.tasks import Tasks
from mtldsl.tasks.schema import Schema

__all__ = ["dense_alike", "dense_inputs", "dense_tasks"]


def dense_tasks(tasks, typed: str) -> Tasks:
    """The tasks; DataError where they are not Tasks, sparse, or kernel features."""
    if not isinstance(tasks, Tasks):
        raise DataError(f"{typed}({type(tasks).__name__}): give a Tasks object, Tasks.shared(X, Y)")
    if tasks.is_sparse:
        raise DataError(
            "networks take dense inputs", term=typed, write_instead="write Tasks.shared(X.toarray(), Y)"
        )
    if tasks.kernel_map is not None:
        raise DataError(
            "networks learn features of their own",
            term=typed,
            write_instead="give the tasks without kernels=... or with_kernels(...)",
        )
    return tasks


def dense_inputs(schema: Schema, X) -> np.ndarray:
    """New inputs (n, d) on the scale of training; DataError where they are sparse, or other columns than those learned on."""
    X = schema.columns(X)
    if not isinstance(X, np.ndarray):
        raise DataError("predict: networks take dense inputs", write_instead="write X.toarray()")
    return np.asarray(schema.scaled(X))


def dense_alike(schema: Schema, tasks, typed: str) -> Tasks:
    """The tasks on the scale of those of training; DataError where networks do not take them, or they are others."""
    return schema.alike(dense_tasks(tasks, typed), typed)
