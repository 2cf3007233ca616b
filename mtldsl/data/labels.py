"""Check that labels suit the loss; an error names the task, the row, the value, and what to write."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.data.input_checks import refuse_missing_texts, warn_of_spellings
from mtldsl.data.task_data import T, TaskData, require_in_memory
from mtldsl.errors import DataError, Spelled
from mtldsl.utils.validation import is_missing, listed

# --------------------------------------------------------------------------------------------------------------
# Classes as tasks: one column of -1 and +1 for each class, with one +1 in every row.

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
    missing = np.array([is_missing(one) for one in labels.tolist()])
    if missing.any():
        raise DataError(
            f"row {int(np.flatnonzero(missing)[0])} has no class",
            term=typed,
            write_instead="leave the row out",
        )
    try:
        known, place, counts = np.unique(labels, return_inverse=True, return_counts=True)
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
    refuse_missing_texts(
        known.tolist(), counts.tolist(), typed, "leave these rows out, or give the class another name"
    )
    warn_of_spellings(known.tolist(), typed)
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
    row_weights(tasks, typed)


def row_weights(tasks: TaskData, typed: str) -> np.ndarray:
    """(n,) the weights of the rows of a complete table, ones where there are none; DataError where the labels of a row have different ones."""
    if tasks.sample_weights is None:
        return np.ones(tasks.X.shape[0])
    weights = tasks.sample_weights.reshape(tasks.n_tasks, -1)
    other = (weights != weights[0]).any(axis=0)
    if other.any():
        raise DataError(
            f"the labels of row {int(np.argmax(other))} have different sample weights",
            term=typed,
            write_instead="give one weight a row, sample_weights (n,)",
        )
    return weights[0]


@dataclass(frozen=True)
class LabelKind:
    """Labels that a loss asks for: which do not suit it, what they must be, and two that do."""

    unfit: Callable[[np.ndarray], np.ndarray]
    must_be: str
    suiting: tuple[float, float]


@dataclass(frozen=True)
class LabelSettings:
    """Limit of classes: whole numbers of at most `max_classes` values are taken for classes."""

    max_classes: int = 50


SETTINGS = LabelSettings()


#: what `Loss.labels` may say of the targets of tasks
LABEL_KINDS = {
    "real": LabelKind(lambda y: np.zeros(y.shape, bool), "labels must be numbers", (0.5, -1.5)),
    "sign": LabelKind(lambda y: (y != 1.0) & (y != -1.0), "labels must be -1 or +1", (-1.0, 1.0)),
    "count": LabelKind(
        lambda y: (y < 0) | (y != np.floor(y)), "labels must be counts 0, 1, 2, ...", (0.0, 1.0)
    ),
    "positive": LabelKind(lambda y: y <= 0, "labels must be > 0", (0.5, 2.0)),
    "time": LabelKind(
        lambda y: y == 0,
        "labels must be signed times: +t where the event came at time t > 0, -t where the row was last seen at t without it",
        (1.0, -2.0),
    ),
}


def require_labels(tasks: TaskData, kind: str, typed: str) -> None:
    """DataError unless the labels suit a loss: "real" any, "sign" {-1, +1} with both in every task, "count" 0, 1, 2, ...,
    "positive" > 0, "time" any but 0.

    `typed` is the loss as the user wrote it, for the message.
    """
    require_kind(tasks, kind, typed)
    if kind == "sign" and (one := of_one_class(tasks)).any():
        i = int(np.argmax(one))
        raise of_one_label(tasks.task_names[i], tasks.counts[i], tasks.targets[tasks.offsets[i]], typed)


def require_kind(tasks: TaskData, kind: str, typed: str) -> None:
    """DataError unless every label is of the kind; tasks of one class pass, which may be tested, though not learned."""
    if kind not in LABEL_KINDS:
        raise ValueError(f"kind={kind!r}: one of {', '.join(map(repr, LABEL_KINDS))}")
    bad, hint = LABEL_KINDS[kind].unfit(tasks.targets), LABEL_KINDS[kind].must_be
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
        if 2 < len(classes) <= SETTINGS.max_classes and np.array_equal(classes, np.round(classes)):
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


def of_one_label(name: str, count: int, label: float, typed: str) -> DataError:
    """The error for a task all of whose labels are one."""
    return DataError(
        f"task {name!r} has one class only (all {count} labels are {label:+g})",
        term=typed,
        write_instead="leave the task out"
        + Spelled(" (tasks.without_one_class() leaves out all such)", "")
        + ", or give it labels of both classes",
    )


def as_signs(Y: np.ndarray, where) -> np.ndarray:
    """Labels 0/1 as -1/+1 (those that are -1/+1 already stay); NaN stays. DataError for any other label."""
    known = Y[~np.isnan(Y)]
    if np.isin(known, (-1.0, 1.0)).all():
        return Y
    if not np.isin(known, (0.0, 1.0)).all():
        other = known[~np.isin(known, (0.0, 1.0))][0]
        raise DataError(
            f"{where}: "
            + Spelled.option("binary", "True")
            + f" is for labels 0/1, but there is a label {other:g}",
            write_instead="leave it out to keep numbers",
            argument="binary",
        )
    return 2.0 * Y - 1.0


# --------------------------------------------------------------------------------------------------------------
# Tasks whose labels are all of one class: nothing can be learned of them, and real tables of labels have some.


class OneClassWarning(UserWarning):
    """A task has labels of one class alone, and so no weights, or no score."""


def of_one_class(tasks: TaskData) -> np.ndarray:
    """(m,) whether all labels of a task are the same."""
    first = tasks.targets[tasks.offsets[:-1]]
    return np.logical_and.reduceat(tasks.targets == np.repeat(first, tasks.counts), tasks.offsets[:-1])


def without_one_class(tasks: T) -> T:
    """The tasks that have two different labels at least; a OneClassWarning names the others, of which nothing can be learned.

    Tables of real labels have such tasks (labels that no row has), and losses of labels refuse them. DataError where none is left.
    """
    one = of_one_class(tasks)
    return leave_out(tasks, one) if one.any() else tasks


def leave_out(tasks: Any, one: np.ndarray) -> Any:
    """The tasks without those of one class, which are marked; the warning names them."""
    names = [name for name, left_out in zip(tasks.task_names, one, strict=True) if left_out]
    if one.all():
        raise DataError("no task has labels of two classes", term="without_one_class()")
    warnings.warn(
        f"{len(names)} of {tasks.n_tasks} tasks have labels of one class alone and are left out: {listed_tasks(names)}",
        OneClassWarning,
        stacklevel=3,
    )
    return tasks.select(np.flatnonzero(~one))


def listed_tasks(names: Sequence) -> str:
    """The first names, and that there are more."""
    return listed(names, 4)
