"""A loss meets its data: do labels, sample weights and parameters suit each other?"""

from __future__ import annotations

from mtldsl.atoms.function import Loss
from mtldsl.errors import DataError
from mtldsl.tasks import Tasks
from mtldsl.tasks.classes import require_classes

__all__ = ["fitted"]


def fitted(atom: Loss, tasks: Tasks, typed: str) -> Loss:
    """The loss for these tasks; DataError or ModelError where they do not suit each other."""
    tasks.require_labels("sign" if atom.labels == "classes" else atom.labels, typed)
    if atom.labels == "classes":
        require_classes(tasks, typed)
        return atom.for_tasks(tasks.task_names, None)
    if tasks.is_weighted and not atom.weighs_samples:
        raise DataError(
            f"these tasks have sample weights, and {atom.name} counts samples",
            term=typed,
            write_instead="repeat rows instead, or use a loss that is a sum over samples, such as hinge_loss",
        )
    if atom.labels != "sign":
        return atom.for_tasks(tasks.task_names, None)
    positives = tasks.positives
    return atom.for_tasks(
        tasks.task_names, list(zip(positives.tolist(), (tasks.counts - positives).tolist(), strict=True))
    )
