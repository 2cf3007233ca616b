"""How weights answer where tasks are of several kinds, each with a loss of its own: kind by kind, in the order of the tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mtldsl.errors import ModelError
from mtldsl.scoring.measure import Needs
from mtldsl.solution.by_task import Fitted, TaskByTask, loss_kind
from mtldsl.solution.labellings import not_over_labels
from mtldsl.tasks import Tasks
from mtldsl.tasks.schema import Schema

__all__ = ["ByKind"]


@dataclass
class _Kind:
    """The columns of one kind, as a `TaskByTask` asks for them."""

    coef: np.ndarray
    intercept: np.ndarray | None
    thresholds: np.ndarray | None
    loss: dict
    schema: Schema

    @property
    def signs(self) -> bool:
        return self.loss["labels"] == "sign"


@dataclass(frozen=True)
class ByKind:
    """Every loss answers for its own tasks. What one kind has no answer to is NaN there: a probability of a number, say."""

    of: Fitted

    def _kinds(self) -> Iterator[tuple[np.ndarray, _Kind]]:
        of = self.of
        some = lambda array, columns: None if array is None else array[columns]  # noqa: E731
        for kind in of.loss["kinds"]:
            columns = np.asarray(kind["columns"], dtype=int)
            names = tuple(of.schema.task_names[i] for i in columns) if of.schema.task_names else ()
            schema = replace(of.schema, shape=(of.schema.shape[0], len(columns)), task_names=names)
            # a threshold is of labels; beside numbers it stands as 0 and cuts nothing
            cuts = some(of.thresholds, columns) if kind["labels"] == "sign" else None
            yield columns, _Kind(of.coef[:, columns], some(of.intercept, columns), cuts, kind, schema)

    def decision_function(self, X):
        return TaskByTask(self.of).decision_function(X)

    def predict(self, X, return_certified: bool):
        if return_certified:
            raise not_over_labels("predict(X, return_certified=True)", self.of.loss)
        return self._of_scores(self.decision_function(X), lambda task, z: task.labels_of(z))

    def predict_proba(self, X):
        if not any(hasattr(loss_kind(kind.loss), "probability") for _, kind in self._kinds()):
            words = " and ".join(dict.fromkeys(kind.loss["word"] for _, kind in self._kinds()))
            raise ModelError(
                f"predict_proba: {words} model no probabilities",
                write_instead="use logistic_loss for the tasks with labels, or decision_function",
            )
        return self._of_scores(self.decision_function(X), lambda task, z: task.probabilities_of(z))

    def _of_scores(self, z, answer):
        """The answers of every kind, shaped like the scores: a matrix, or one vector a task."""
        found = [None] * self.of.coef.shape[1] if isinstance(z, list) else np.empty(z.shape)
        for columns, kind in self._kinds():
            task = _Answers(kind)
            if isinstance(z, list):
                for i, one in zip(columns, answer(task, [z[i] for i in columns]), strict=True):
                    found[i] = one
            else:
                found[:, columns] = answer(task, z[:, columns])
        return found

    def scores(self, tasks: Tasks, metric, method: str) -> np.ndarray:
        """The accuracy of labels, R^2 of numbers; NaN for numbers where a metric of labels is asked for."""
        like, found = self.of.schema.alike(tasks, method), np.full(self.of.coef.shape[1], np.nan)
        self._require_signs(metric is not None, f"{method}(tasks)")
        for columns, kind in self._kinds():
            if metric is None or kind.signs:
                own = _chosen(metric, columns, tasks)
                found[columns] = TaskByTask(kind).scores(like.select(columns), own, method)
        return found

    def tuned_thresholds(self, tasks: Tasks, metric, typed: str) -> np.ndarray:
        """Those of tasks with labels; 0 beside numbers, where nothing is cut."""
        like, found = self.of.schema.alike(tasks, "tune_threshold"), np.zeros(self.of.coef.shape[1])
        self._require_signs(True, typed)
        for columns, kind in self._kinds():
            if kind.signs:
                own = _chosen(metric, columns, tasks)
                found[columns] = TaskByTask(kind).tuned_thresholds(like.select(columns), own, typed)
        return found

    def outputs(self, inputs, needs: Needs, typed: str) -> list[np.ndarray]:
        """NaN for tasks of another kind than the measure is of, which are left out."""
        separate = isinstance(inputs, list)
        each = inputs if separate else [inputs] * self.of.coef.shape[1]
        found = [np.full(one.shape[0], np.nan) for one in each]
        suit = [
            (columns, kind)
            for columns, kind in self._kinds()
            if (needs == "answers" or kind.signs != (needs == "values"))
            and (needs != "probabilities" or hasattr(loss_kind(kind.loss), "probability"))
        ]
        if not suit:
            raise ModelError(
                f"none of the losses predicts {'numbers' if needs == 'values' else needs}",
                term=typed,
                write_instead="write a measure of what they predict, or none for that of every kind",
            )
        for columns, kind in suit:
            own = [inputs[i] for i in columns] if separate else inputs
            for i, one in zip(columns, TaskByTask(kind).outputs(own, needs, typed), strict=True):
                found[i] = one
        return found

    def _require_signs(self, wanted: bool, typed: str) -> None:
        if wanted and not any(kind.signs for _, kind in self._kinds()):
            raise ModelError("a metric is of labels -1 and +1, and no task has such labels", term=typed)

    @staticmethod
    def check(fields: dict) -> None:
        m = fields["coef"].shape[1]
        columns = [column for kind in fields["loss"]["kinds"] for column in kind["columns"]]
        if sorted(columns) != list(range(m)):
            raise ValueError(f"its losses are of the columns {columns!r:.60}, of {m}, which no solution has")
        for kind in fields["loss"]["kinds"]:
            loss_kind(kind)
            if not isinstance(kind["labels"], str):
                raise ValueError(f"the labels of a loss are {kind['labels']!r:.60}, which no solution has")
        TaskByTask.check(fields)


class _Answers(TaskByTask):
    """What one kind makes of its scores."""

    def labels_of(self, z):
        cuts = self.of.thresholds
        if isinstance(z, list):
            return [self._decide(zi, None if cuts is None else cuts[k]) for k, zi in enumerate(z)]
        return self._decide(z, cuts)

    def probabilities_of(self, z):
        known = getattr(self._atom(), "probability", None)
        if known is None:
            return [np.full(len(zi), np.nan) for zi in z] if isinstance(z, list) else np.full(z.shape, np.nan)
        return [known(zi) for zi in z] if isinstance(z, list) else known(z)


def _chosen(metric, columns: np.ndarray, tasks: Tasks):
    """The metrics of these tasks, of a list with one a task, or a dict by name that may leave out tasks of numbers."""
    if isinstance(metric, list | tuple) and len(metric) == tasks.n_tasks:
        return [metric[i] for i in columns]
    if isinstance(metric, dict):
        names = {tasks.task_names[i] for i in columns}
        return {name: one for name, one in metric.items() if name in names or name not in tasks.task_names}
    return metric
