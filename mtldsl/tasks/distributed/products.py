"""Sums over the rows of a part that are as small as weights are: what `DistributedTasks` answers in one pass."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from mtldsl.tasks.distributed.parts import Part
from mtldsl.tasks.distributed.sums import TaskSum
from mtldsl.tasks.gram import gram

__all__ = ["column_squares", "fingerprint_of", "fingerprints", "gram_of", "products_with"]


def gram_of(part: Part, same: bool) -> TaskSum:
    """(k, d, d) X_i^T X_i of its tasks; (1, d, d) where they are all the `same`."""
    if same:
        return TaskSum(np.zeros(1, dtype=int), gram(part.tasks.inputs[0])[None])
    return TaskSum(part.which, np.stack([gram(X) for X in part.tasks.inputs]))


def products_with(part: Part) -> TaskSum:
    """(k, d) X_i^T y_i."""
    return TaskSum(part.which, part.tasks.cross().T)


def column_squares(part: Part) -> TaskSum:
    """(k, d) squares of the lengths of columns, of rows with a label of the task."""
    tasks = part.tasks
    if tasks.mask is None:
        return TaskSum(part.which, tasks.column_lengths.T**2)
    squares = tasks.X.power(2) if tasks.is_sparse else tasks.X**2
    return TaskSum(part.which, np.asarray(tasks.mask.T.astype(float) @ squares))


def fingerprint_of(part: Part) -> dict[int, str]:
    """{partition: its fingerprint}."""
    own = hashlib.sha256(part.tasks.fingerprint().encode() + part.which.astype(np.int64).tobytes())
    return {part.index: own.hexdigest()}


def fingerprints(tasks: Any) -> str:
    """See `DistributedTasks.fingerprint`."""
    found = tasks.parts.run(fingerprint_of)
    return hashlib.sha256("\n".join(f"{k} {one}" for k, one in sorted(found.items())).encode()).hexdigest()
