"""What training data looked like, so that later inputs and tasks can be held against it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtldsl.errors import DataError
from mtldsl.tasks import Tasks
from mtldsl.tasks.inputs import as_design
from mtldsl.tasks.names import elsewhere, unlike
from mtldsl.tasks.scaling import Scaling

__all__ = ["Schema", "dense_tasks"]


def dense_tasks(tasks, typed: str) -> Tasks:
    """The tasks; DataError where they are none, sparse, or kernel features."""
    if not isinstance(tasks, Tasks):
        raise DataError(f"{typed}({type(tasks).__name__}): give a Tasks object, Tasks.shared(X, Y)")
    if tasks.is_sparse:
        raise DataError(f"{typed}: networks take dense inputs; write Tasks.shared(X.toarray(), Y)")
    if tasks.kernel_map is not None:
        raise DataError(
            f"{typed}: networks learn features of their own; give the tasks without kernels=... or with_kernels(...)"
        )
    return tasks


@dataclass(frozen=True, eq=False)
class Schema:
    """Names of tasks and features, and the statistics by which the tasks were standardised before training, if they were."""

    task_names: tuple[str, ...]
    feature_names: tuple[str, ...]
    scaling: Scaling | None

    @classmethod
    def of(cls, tasks: Tasks) -> Schema:
        return cls(tasks.task_names, tasks.feature_names, tasks.scaling)

    def inputs(self, X) -> np.ndarray:
        """New inputs (n, d) on the scale of the tasks; DataError where their columns are not those learned on."""
        if isinstance(X, Tasks):
            raise DataError(
                "predict(tasks): give the inputs, tasks.X or tasks.inputs; score(tasks) compares with labels"
            )
        X, columns = as_design(X, "predict: X")
        wrong = unlike(self.feature_names, columns)
        if wrong is not None:
            raise DataError(f"predict: X has other columns than were learned on: {wrong}")
        if X.shape[1] != len(self.feature_names):
            raise DataError(
                f"predict: X has shape {X.shape}, but the network was trained on {len(self.feature_names)} features"
            )
        if not isinstance(X, np.ndarray):
            raise DataError("predict: networks take dense inputs; write X.toarray()")
        return X if self.scaling is None else self.scaling.apply(X)

    def alike(self, tasks, typed: str) -> Tasks:
        """The tasks on the scale of those of training; DataError where they are others."""
        tasks = dense_tasks(tasks, typed)
        sizes = (tasks.n_features, tasks.n_tasks)
        if sizes != (len(self.feature_names), len(self.task_names)):
            raise DataError(
                f"{typed}: the tasks are {sizes[0]} features x {sizes[1]} tasks, those of training were "
                f"{len(self.feature_names)} x {len(self.task_names)}"
            )
        for what, learned, given in (
            ("feature", self.feature_names, tasks.feature_names),
            ("task", self.task_names, tasks.task_names),
        ):
            name = elsewhere(given, learned)
            if name is not None:
                raise DataError(
                    f"{typed}: {what} {name!r} is number {given.index(name)} here, but was {learned.index(name)} in training"
                )
        if tasks.scaling is None:
            return tasks if self.scaling is None else tasks.scaled_by(self.scaling)
        if self.scaling is None or tasks.scaling != self.scaling:
            raise DataError(
                f"{typed}: these tasks were standardised with statistics other than the training tasks'; give raw tasks, or "
                "test.scaled_by(train.scaling)"
            )
        return tasks
