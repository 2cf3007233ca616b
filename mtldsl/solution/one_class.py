"""Predictions of losses of classes: every row belongs to the class with the highest score."""

from __future__ import annotations

import numpy as np

from mtldsl.atoms.losses.rows import one_highest
from mtldsl.errors import DataError, ModelError
from mtldsl.scoring.measure import Needs
from mtldsl.solution.by_task import TaskByTask, loss_kind
from mtldsl.solution.labellings import not_over_labels
from mtldsl.solution.scoring import checked_metrics, score_of
from mtldsl.tasks import Tasks
from mtldsl.tasks.labels import require_kind
from mtldsl.tasks.schema import is_list_of_matrices

__all__ = ["OneClass"]


class OneClass(TaskByTask):
    """+1 for the class with the highest score, -1 for all others; scores and probabilities have a column a class."""

    def decision_function(self, X):
        if is_list_of_matrices(X):
            raise DataError(
                f"{self.of.loss['word']} is of all classes of a row together",
                term="predict(X)",
                write_instead="give one matrix (n, d)",
            )
        return super().decision_function(X)

    def predict(self, X, return_certified: bool):
        if return_certified:
            raise not_over_labels("predict(X, return_certified=True)", self.of.loss)
        return one_highest(self.decision_function(X))

    def predict_proba(self, X):
        return self._probabilities(self.decision_function(X), "predict_proba")

    def scores(self, tasks: Tasks, metric, method: str) -> np.ndarray:
        scores, truth = self._scores_and_labels(tasks, method)
        labels = one_highest(np.column_stack(scores)).T
        if metric is None:
            require_kind(tasks, "sign", f"{method}(tasks)")
            return np.array([np.mean(p == y) for p, y in zip(labels, truth, strict=True)])
        typed = f"{method}(tasks)"
        metrics = checked_metrics(metric, tasks, typed)
        # a metric of a ranking asks for scores, one of labels for those that are predicted
        chosen = [z if one.scored_by_order else p for one, z, p in zip(metrics, scores, labels, strict=True)]
        return np.array(
            [score_of(one, z, y, typed=typed) for one, z, y in zip(metrics, chosen, truth, strict=True)]
        )

    def tuned_thresholds(self, tasks: Tasks, metric, typed: str) -> np.ndarray:
        raise ModelError(
            f"{self.of.loss['word']} predicts the class with the highest score, so that no class has a threshold of its own",
            term=typed,
        )

    def outputs(self, inputs, needs: Needs, typed: str) -> list[np.ndarray]:
        if isinstance(inputs, list):
            raise DataError(f"{self.of.loss['word']} is of all classes of a row together", term=typed)
        z = inputs @ self.of.coef
        z = z if self.of.intercept is None else z + self.of.intercept
        if needs == "scores":
            return list(z.T)
        if needs == "values":
            raise ModelError(
                f"{self.of.loss['word']} predicts labels, and this measure is of numbers",
                term=typed,
                write_instead="write a measure of labels, such as metric='accuracy'",
            )
        return list((self._probabilities(z, typed) if needs == "probabilities" else one_highest(z)).T)

    def _probabilities(self, z, typed: str):
        known = getattr(loss_kind(self.of.loss), "probability", None)
        if known is None:
            raise ModelError(
                f"{typed}: {self.of.loss['word']} models no probabilities",
                write_instead="use softmax_loss, or decision_function",
            )
        return known(z)
