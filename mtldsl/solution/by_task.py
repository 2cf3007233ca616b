"""How weights answer new inputs task by task: every task has a score of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mtldsl.atoms.function import REGISTRY, Loss
from mtldsl.atoms.metrics import FScore
from mtldsl.errors import DataError, ModelError
from mtldsl.scoring.measure import Needs
from mtldsl.solution.labellings import not_over_labels
from mtldsl.solution.scoring import checked_metrics, r_squared, score_of
from mtldsl.solution.thresholds import best_threshold
from mtldsl.system.memory import require_memory
from mtldsl.tasks import Tasks
from mtldsl.tasks.labels import require_kind
from mtldsl.tasks.schema import Schema, is_list_of_matrices

__all__ = ["Fitted", "TaskByTask", "decided", "loss_kind", "loss_of", "probabilities"]


class Fitted(Protocol):
    """What a predictor asks of a Solution."""

    coef: np.ndarray
    intercept: np.ndarray | None
    thresholds: np.ndarray | None
    loss: dict

    @property
    def schema(self) -> Schema: ...


@dataclass(frozen=True)
class TaskByTask:
    """Every task has a score of its own, X w + b, of which the loss makes a label, a count or a number."""

    of: Fitted

    def decision_function(self, X):
        schema, W, b = self.of.schema, self.of.coef, self.of.intercept
        if is_list_of_matrices(X):
            schema.require_one_each(X)
            shift = np.zeros(len(X)) if b is None else b
            return [schema.inputs(Xi) @ W[:, i] + shift[i] for i, Xi in enumerate(X)]
        inputs = schema.inputs(X)
        n, m = inputs.shape[0], W.shape[1]
        require_memory(
            16.0 * n * m,
            f"predict: {n:,} rows for {m:,} tasks",
            "predict part by part, such as predict(X[:100_000])",
            DataError,
        )
        z = inputs @ W
        return z if b is None else z + b

    def predict(self, X, return_certified: bool):
        if return_certified:
            raise not_over_labels("predict(X, return_certified=True)", self.of.loss)
        z, cuts = self.decision_function(X), self.of.thresholds
        if isinstance(z, list):
            return [self._decide(zi, None if cuts is None else cuts[i]) for i, zi in enumerate(z)]
        return self._decide(z, cuts)

    def predict_proba(self, X):
        probabilities(self.of.loss, np.zeros(1))  # before the inputs are looked at
        z = self.decision_function(X)
        return (
            [probabilities(self.of.loss, zi) for zi in z]
            if isinstance(z, list)
            else probabilities(self.of.loss, z)
        )

    def scores(self, tasks: Tasks, metric, method: str) -> np.ndarray:
        typed, cuts = f"{method}(tasks)", self.of.thresholds
        parts = self._scores_and_labels(tasks, method)
        if metric is not None:
            self.require_labels_predicted(typed)
            metrics = checked_metrics(metric, tasks, typed)
            cuts = np.zeros(tasks.n_tasks) if cuts is None else cuts
            return np.array(
                [score_of(*of_task, typed=typed) for of_task in zip(metrics, *parts, cuts, strict=True)]
            )
        each = [None] * tasks.n_tasks if cuts is None else cuts
        pairs = [(self._decide(z, cut), y) for z, y, cut in zip(*parts, each, strict=True)]
        if self.of.loss["labels"] == "sign" or cuts is not None:
            require_kind(tasks, "sign", typed)
            return np.array([np.mean(p == y) for p, y in pairs])
        return np.array([r_squared(p, y) for p, y in pairs])

    def tuned_thresholds(self, tasks: Tasks, metric, typed: str) -> np.ndarray:
        self.require_labels_predicted(typed)
        parts = self._scores_and_labels(tasks, "tune_threshold")
        if metric is None:
            metric = self.of.loss["parameters"].get("metric", FScore())
        metrics = checked_metrics(metric, tasks, typed)
        return np.array(
            [
                best_threshold(z, y, of_task, typed, name)
                for z, y, of_task, name in zip(*parts, metrics, tasks.task_names, strict=True)
            ]
        )

    def outputs(self, inputs, needs: Needs, typed: str) -> list[np.ndarray]:
        W, b = self.of.coef, self.of.intercept
        b = np.zeros(W.shape[1]) if b is None else b
        if needs == "values" and self.of.loss["labels"] == "sign":
            raise ModelError(
                f"{self.of.loss['word']} predicts labels, and this measure is of numbers",
                term=typed,
                write_instead="write a measure of labels, such as metric='accuracy'",
            )
        if needs not in ("values", "answers"):
            self.require_labels_predicted(typed)
        scores = (
            [Xi @ w + shift for Xi, w, shift in zip(inputs, W.T, b, strict=True)]
            if isinstance(inputs, list)
            else list((inputs @ W + b).T)
        )
        cuts = np.zeros(len(scores)) if self.of.thresholds is None else self.of.thresholds
        if needs == "answers":
            cuts = [None] * len(scores) if self.of.thresholds is None else self.of.thresholds
            return [self._decide(z, cut) for z, cut in zip(scores, cuts, strict=True)]
        if needs == "labels":
            return [np.where(z >= cut, 1.0, -1.0) for z, cut in zip(scores, cuts, strict=True)]
        if needs == "probabilities":
            return [probabilities(self.of.loss, z) for z in scores]
        return scores if needs == "scores" else [self._atom().decide(z) for z in scores]

    def _scores_and_labels(self, tasks: Tasks, method: str) -> tuple[list, list]:
        """(the decision function, the labels), one vector a task; DataError where the tasks are not those of training."""
        like = self.of.schema.alike(tasks, method)
        z = like.forward(self.of.coef)
        z = z if self.of.intercept is None else z + np.repeat(self.of.intercept, tasks.counts)
        return tasks.per_task(z), tasks.per_task(tasks.targets)

    def _decide(self, z, threshold):
        return self._atom().decide(z) if threshold is None else np.where(z >= threshold, 1.0, -1.0)

    def _atom(self) -> Loss:
        return loss_of(self.of.loss)

    @staticmethod
    def check(fields: dict) -> None:
        loss_of(fields["loss"])
        d, m = fields["coef"].shape
        features, tasks = fields["feature_names"], fields["task_names"]
        if features or tasks:
            if len(tasks) != m:
                raise ValueError(f"task_names is {tasks!r:.60}, which no solution has")
            if len(features) != d and fields.get("kernel_map") is None:
                raise ValueError(f"feature_names is {features!r:.60}, which no solution has")

    def require_labels_predicted(self, typed: str) -> None:
        predicted = {"count": "counts", "positive": "amounts"}.get(self.of.loss["labels"])
        if predicted:
            raise ModelError(
                f"{self.of.loss['word']} predicts {predicted}, and a metric is of labels -1 and +1",
                term=typed,
            )


def loss_of(facts: dict) -> Loss:
    # a metric says how weights were found, not how they predict; its class need not be known here
    parameters = {name: value for name, value in facts["parameters"].items() if name != "metric"}
    return loss_kind(facts)(**parameters)


def loss_kind(facts: dict) -> type[Loss]:
    kind = REGISTRY[facts["word"]]
    if not issubclass(kind, Loss):
        raise ValueError(f"its loss is {facts['word']!r}, which is not a loss")
    return kind


def decided(loss: dict, z):
    """What a loss makes of scores z: labels, counts, or the scores themselves."""
    return loss_of(loss).decide(z)


def probabilities(loss: dict, z):
    """P(label = +1) at scores z; ModelError for a loss that models none."""
    atom = loss_of(loss)
    probability = getattr(atom, "probability", None)
    if probability is None:
        raise ModelError(
            f"predict_proba: {atom.name} models no probabilities",
            write_instead="use logistic_loss, or decision_function",
        )
    return probability(z)
