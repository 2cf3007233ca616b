"""Predictors: answers of weights on new inputs, task by task, in whole labellings, or kind by kind.

The loss says which.

A loss that predicts in a way of its own adds a subclass of `PerTaskPredictor`, and a line to `PREDICTORS`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from mtldsl.atoms.losses.multiclass import one_highest
from mtldsl.atoms.metrics.metric import Metric
from mtldsl.data.schema import is_list_of_matrices
from mtldsl.data.tasks import Tasks
from mtldsl.errors import DataError, ModelError
from mtldsl.solution.measures import OF_KINDS, Measure, Needs
from mtldsl.solution.task_predictors import (
    FittedColumns,
    FittedSolution,
    LabelGraphPredictor,
    PerTaskPredictor,
    loss_kind,
    probabilities,
)

# --------------------------------------------------------------------------------------------------------------
# How weights answer where tasks are of several kinds, each with a loss of its own: kind by kind, in the order of the tasks.


class MixedPredictor(PerTaskPredictor):
    """Every loss answers for its own tasks. What one kind has no answer to is NaN there: a probability of a number, say."""

    def _kinds(self) -> Iterator[tuple[np.ndarray, FittedColumns]]:
        whole = self.of.schema
        for kind in self.of.loss["kinds"]:
            columns = np.asarray(kind["columns"], dtype=int)
            names = tuple(whole.task_names[i] for i in columns) if whole.task_names else ()
            schema = replace(whole, shape=(whole.shape[0], len(columns)), task_names=names)
            own = replace(FittedColumns.of(self.of, columns), loss=kind, schema=schema)
            # a threshold is of labels; beside numbers it stands as 0 and cuts nothing
            yield columns, own if _has_signs(own) else replace(own, thresholds=None)

    def predict_proba(self, X):
        if not any(hasattr(loss_kind(kind.loss), "probability") for _, kind in self._kinds()):
            words = " and ".join(dict.fromkeys(kind.loss["word"] for _, kind in self._kinds()))
            raise ModelError(
                f"predict_proba: {words} model no probabilities",
                write_instead="use logistic_loss for the tasks with labels, or decision_function",
            )
        return self._shaped_like(self.decision_function(X), "probabilities", "predict_proba")

    def scores(self, tasks: Tasks, metric, method: str) -> np.ndarray:
        """The accuracy of labels, R^2 of numbers; NaN for numbers where a metric of labels is asked for."""
        like, found = self.of.schema.alike(tasks, method), np.full(self.of.coef.shape[1], np.nan)
        self._require_signs(metric is not None, f"{method}(tasks)")
        for columns, kind in self._kinds():
            if metric is None or _has_signs(kind):
                own = _chosen(metric, columns, tasks)
                found[columns] = PerTaskPredictor(kind).scores(like.select(columns), own, method)
        return found

    def tuned_thresholds(self, tasks: Tasks, metric, typed: str) -> np.ndarray:
        """Those of tasks with labels; 0 beside numbers, where nothing is cut."""
        like, found = self.of.schema.alike(tasks, "tune_threshold"), np.zeros(self.of.coef.shape[1])
        self._require_signs(True, typed)
        for columns, kind in self._kinds():
            if _has_signs(kind):
                own = _chosen(metric, columns, tasks)
                found[columns] = PerTaskPredictor(kind).tuned_thresholds(like.select(columns), own, typed)
        return found

    def answers(self, z: list[np.ndarray], needs: Needs, typed: str) -> list[np.ndarray]:
        """NaN for tasks of another kind than the measure is of, which are left out."""
        found = [np.full(len(one), np.nan) for one in z]
        suit = [
            (columns, kind)
            for columns, kind in self._kinds()
            if (needs == "answers" or _has_signs(kind) != (needs == "values"))
            and (needs != "probabilities" or hasattr(loss_kind(kind.loss), "probability"))
        ]
        if not suit:
            raise ModelError(
                f"none of the losses predicts {'numbers' if needs == 'values' else needs}",
                term=typed,
                write_instead="write a measure of what they predict, or none for that of every kind",
            )
        for columns, kind in suit:
            own = PerTaskPredictor(kind).answers([z[i] for i in columns], needs, typed)
            for i, one in zip(columns, own, strict=True):
                found[i] = one
        return found

    def _require_signs(self, wanted: bool, typed: str) -> None:
        if wanted and not any(_has_signs(kind) for _, kind in self._kinds()):
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
        PerTaskPredictor.check(fields)


def _has_signs(kind: FittedColumns) -> bool:
    return kind.loss["labels"] == "sign"


def _chosen(metric, columns: np.ndarray, tasks: Tasks):
    """The metrics of these tasks, of a list with one a task, or a dict by name that may leave out tasks of numbers."""
    if isinstance(metric, list | tuple) and len(metric) == tasks.n_tasks:
        return [metric[i] for i in columns]
    if isinstance(metric, dict):
        names = {tasks.task_names[i] for i in columns}
        return {name: one for name, one in metric.items() if name in names or name not in tasks.task_names}
    return metric


# --------------------------------------------------------------------------------------------------------------
# Predictions of losses of classes: every row belongs to the class with the highest score.


class MulticlassPredictor(PerTaskPredictor):
    """+1 for the class with the highest score, -1 for all others; scores and probabilities have a column a class."""

    with_probabilities = "softmax_loss"

    def decision_function(self, X):
        if is_list_of_matrices(X):
            raise DataError(
                f"{self.of.loss['word']} is of all classes of a row together",
                term="predict(X)",
                write_instead="give one matrix (n, d)",
            )
        return super().decision_function(X)

    def seen_by(self, metrics: list[Metric], scores: list[np.ndarray]) -> list[np.ndarray]:
        """Scores for a metric of a ranking, and for one of labels those that are predicted."""
        labels = one_highest(np.column_stack(scores)).T
        return [z if one.scored_by_order else p for one, z, p in zip(metrics, scores, labels, strict=True)]

    def tuned_thresholds(self, tasks: Tasks, metric, typed: str) -> np.ndarray:
        raise ModelError(
            f"{self.of.loss['word']} predicts the class with the highest score, so that no class has a threshold of its own",
            term=typed,
        )

    def outputs(self, inputs, needs: Needs, typed: str) -> list[np.ndarray]:
        if isinstance(inputs, list):
            raise DataError(f"{self.of.loss['word']} is of all classes of a row together", term=typed)
        return super().outputs(inputs, needs, typed)

    def answers(self, z: list[np.ndarray], needs: Needs, typed: str) -> list[np.ndarray]:
        if needs == "probabilities":
            return list(probabilities(self.of.loss, np.column_stack(z), typed, self.with_probabilities).T)
        if needs in ("labels", "answers"):
            return list(one_highest(np.column_stack(z)).T)
        return super().answers(z, needs, typed)


#: By the package of a type of inputs, which is not imported for the question.
LAZY_INPUTS = dict.fromkeys(("dask", "dask_expr"), "mtldsl.distributed.distributed_scoring")

#: By the kind of labels that a loss takes; every other loss predicts task by task.
PREDICTORS: dict[str, type[PerTaskPredictor]] = {
    "indicators": LabelGraphPredictor,
    "classes": MulticlassPredictor,
}


def predictor_class(loss: dict) -> type[PerTaskPredictor]:
    """Who answers for weights that were learned with this loss, {"word": ..., ...}."""
    if "kinds" in loss:
        return MixedPredictor
    return PREDICTORS.get(loss_kind(loss).labels, PerTaskPredictor)


def predictor_of(fitted: FittedSolution) -> PerTaskPredictor:
    return predictor_class(fitted.loss)(fitted)


def predictor_for(fitted: FittedSolution, X) -> Any:
    """Who predicts for these inputs: the package of their type may have predictors that leave them where they are."""
    module = LAZY_INPUTS.get(type(X).__module__.partition(".")[0])
    return predictor_of(fitted) if module is None else import_module(module).predictor_for(fitted, X)


def default_measure(loss: dict) -> str:
    """Return what scores the answers where nothing else is asked for: accuracy of labels, concordance of times, R^2 of numbers."""
    if loss["labels"] == "mixed":
        return OF_KINDS.name
    return {"sign": "accuracy", "indicators": "accuracy", "time": "concordance"}.get(loss["labels"], "r2")


def sign_tasks(loss: dict, n_tasks: int) -> np.ndarray:
    """(m,) which tasks have labels -1 and +1."""
    if "kinds" not in loss:
        return np.full(n_tasks, loss.get("labels") in ("sign", "indicators"))
    found = np.zeros(n_tasks, dtype=bool)
    for kind in loss["kinds"]:
        found[kind["columns"]] = kind["labels"] == "sign"
    return found


def require_suited(fitted: FittedSolution, tasks: Tasks, typed: str, by: Measure) -> None:
    """DataError or ModelError unless the labels are of the measure's kind: signed times, of the losses that learn them, for concordance alone."""
    loss, of_times = fitted.loss, by.name == "concordance"
    kinds = {kind["labels"] for kind in loss["kinds"]} if "kinds" in loss else {loss["labels"]}
    if "time" in kinds and not (of_times and len(kinds) == 1):
        raise ModelError(
            "the labels of a loss here are signed times, and this measure is not of these"
            if not of_times
            else "concordance is of signed times, and some losses here have other labels",
            term=typed,
            write_instead="write metric='concordance', for tasks of times alone",
        )
    if of_times and "time" not in kinds:
        raise ModelError(
            f"concordance is of signed times, which {loss.get('word', 'no loss here')} does not learn",
            term=typed,
            write_instead="write another measure, or learn with cox_loss",
        )
    if of_times:
        tasks.require_kind("time", typed)
    require_signs(fitted, tasks, typed, by.needs)


def require_signs(fitted: FittedSolution, tasks: Tasks, typed: str, needs: Needs) -> None:
    """DataError unless all labels are -1 or +1, of the tasks that a measure with these needs takes for labels and not for numbers."""
    if needs == "values":
        return
    known = needs == "answers" or "kinds" in fitted.loss
    of_labels = sign_tasks(fitted.loss, tasks.n_tasks) if known else np.ones(tasks.n_tasks, bool)
    if of_labels.any():
        (tasks if of_labels.all() else tasks.select(of_labels)).require_kind("sign", typed)
