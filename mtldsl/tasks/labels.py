"""Do the labels suit the loss? If not: the task, the row, the value, and what to write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mtldsl.errors import DataError, Spelled
from mtldsl.tasks.data import TaskData

__all__ = ["LABEL_KINDS", "LabelKind", "require_kind", "require_labels"]


@dataclass(frozen=True)
class LabelKind:
    """Labels that a loss asks for: which do not suit it, what they must be, and two that do."""

    unfit: Callable[[np.ndarray], np.ndarray]
    must_be: str
    suiting: tuple[float, float]


#: whole numbers that are as few as this are taken for classes
_CLASSES = 50

#: what `Loss.labels` may say of the targets of tasks
LABEL_KINDS = {
    "real": LabelKind(lambda y: np.zeros(y.shape, bool), "labels must be numbers", (0.5, -1.5)),
    "sign": LabelKind(lambda y: (y != 1.0) & (y != -1.0), "labels must be -1 or +1", (-1.0, 1.0)),
    "count": LabelKind(
        lambda y: (y < 0) | (y != np.floor(y)), "labels must be counts 0, 1, 2, ...", (0.0, 1.0)
    ),
    "positive": LabelKind(lambda y: y <= 0, "labels must be > 0", (0.5, 2.0)),
}


def require_labels(tasks: TaskData, kind: str, typed: str) -> None:
    """See `Tasks.require_labels`."""
    require_kind(tasks, kind, typed)
    if kind == "sign":
        _require_both_classes(tasks, typed)


def require_kind(tasks: TaskData, kind: str, typed: str) -> None:
    """DataError unless every label is of the kind; tasks of one class pass, which may be tested, though not learned."""
    if kind not in LABEL_KINDS:
        raise ValueError(f"kind={kind!r}: one of {', '.join(map(repr, LABEL_KINDS))}")
    known = LABEL_KINDS[kind]
    _refuse(tasks, known.unfit(tasks.targets), typed, known.must_be)


def _refuse(tasks: TaskData, bad, typed, hint) -> None:
    if not bad.any():
        return
    flat = int(np.flatnonzero(bad)[0])
    task, row = tasks.place(flat)
    if "-1" in hint and np.isin(tasks.per_task(tasks.targets)[task], (0.0, 1.0)).all():
        hint += "; for labels 0/1 write " + Spelled(
            "2 * Y - 1 (reading a file: binary=True)", "binary = true in [data]"
        )
    elif "-1" in hint:
        classes = np.unique(tasks.per_task(tasks.targets)[task])
        if 2 < len(classes) <= _CLASSES and np.array_equal(classes, np.round(classes)):
            hint += Spelled(
                f"; for {len(classes)} classes write one column of -1 and +1 for each, "
                "np.where(y[:, None] == np.unique(y), 1, -1), or take estimators.MultiTaskClassifier",
                f"; for {len(classes)} classes give one column of -1 and +1 for each",
            )
    raise DataError(
        f"label {tasks.targets[flat]:g} in task {tasks.task_names[task]!r}, row {row}",
        term=typed,
        write_instead=hint,
    )


def _require_both_classes(tasks: TaskData, typed) -> None:
    sums = np.add.reduceat(tasks.targets, tasks.offsets[:-1])
    one_class = np.flatnonzero(np.abs(sums) == tasks.counts)
    if one_class.size:
        i = int(one_class[0])
        raise DataError(
            f"task {tasks.task_names[i]!r} has one class only (all {tasks.counts[i]} labels are "
            f"{tasks.targets[tasks.offsets[i]]:+g})",
            term=typed,
            write_instead="leave the task out"
            + Spelled(" (tasks.without_one_class() leaves out all such)", "")
            + ", or give it labels of both classes",
        )
