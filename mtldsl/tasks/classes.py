"""Classes as tasks: one column of -1 and +1 for each class, with one +1 in every row."""

from __future__ import annotations

import numpy as np

from mtldsl.errors import DataError
from mtldsl.tasks.data import TaskData, require_in_memory

__all__ = ["require_classes", "signs_of_classes"]

_WRITE = "write Tasks.from_classes(X, classes), and give an estimator a vector y of classes"


def signs_of_classes(classes, typed: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """((n, K) of -1 and +1, the names of the K classes in their order). DataError for fewer than two classes, and for a table."""
    labels = np.asarray(classes)
    if labels.ndim != 1 or labels.size == 0:
        raise DataError(
            f"the classes have shape {labels.shape}",
            term=typed,
            write_instead="give one class a row, a vector (n,)",
        )
    missing = (
        labels != labels
        if labels.dtype.kind == "f"
        else np.array([one is None or one != one for one in labels.tolist()])
    )
    if missing.any():
        raise DataError(
            f"row {int(np.flatnonzero(missing)[0])} has no class",
            term=typed,
            write_instead="leave the row out",
        )
    try:
        known, place = np.unique(labels, return_inverse=True)
    except TypeError:
        raise DataError(
            "the classes are of several types",
            term=typed,
            write_instead="give all as text, or all as numbers",
        ) from None
    if len(known) < 2:
        raise DataError(
            f"there is one class, {known[0]!r}", term=typed, write_instead="give rows of two classes or more"
        )
    return np.where(np.arange(len(known)) == place[:, None], 1.0, -1.0), tuple(map(str, known.tolist()))


def require_classes(tasks: TaskData, typed: str) -> None:
    """DataError unless every row belongs to one task: one shared X, no label missing, one +1 a row, and one weight a row."""
    require_in_memory(
        tasks, "a row's classes are wanted together", typed, DataError, rows="the rows of these tasks"
    )
    if not tasks.is_shared or tasks.mask is not None:
        what = "have inputs of their own" if not tasks.is_shared else "lack labels in some rows"
        raise DataError(
            f"these tasks {what}, and a row's classes are wanted together", term=typed, write_instead=_WRITE
        )
    m = tasks.n_tasks
    positive = (tasks.targets.reshape(m, -1) > 0).sum(axis=0)
    wrong = np.flatnonzero(positive != 1)
    if wrong.size:
        row = int(wrong[0])
        one = " of this one task" if m == 1 else ""
        raise DataError(
            f"row {row} is +1 in {int(positive[row])} tasks{one}, and belongs to one class",
            term=typed,
            write_instead=_WRITE,
        )
    if tasks.sample_weights is not None:
        weights = tasks.sample_weights.reshape(m, -1)
        if np.any(weights != weights[0]):
            raise DataError(
                "a row has other weights for other classes",
                term=typed,
                write_instead="give one weight a row, sample_weights (n,)",
            )
