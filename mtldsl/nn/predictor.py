"""The face that trained networks share: predictions in the units of the labels, and scores."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mtldsl.errors import DataError, ModelError
from mtldsl.nn.schema import Schema
from mtldsl.solution.scoring import r_squared
from mtldsl.tasks import Tasks

__all__ = ["Predictor"]


class Predictor:
    """Predictions and scores; a subclass says what comes out of its layers."""

    _schema: ClassVar[Schema | None] = None  # of the class: not trained yet

    def _outputs(self, X) -> np.ndarray:
        """(n, m) in units of the labels."""
        raise NotImplementedError

    def _output_of(self, X, task: int) -> np.ndarray:
        """(n,) in units of the task's labels."""
        raise NotImplementedError

    def _fitted(self, method: str) -> Schema:
        if self._schema is None:
            raise ModelError(f"{type(self).__name__}.{method}: not trained yet; call fit(tasks) first")
        return self._schema

    def predict(self, X):
        """(n, m) for one matrix X (n, d); a list of (n_i,) for a list of m matrices, one a task. In units of the labels.

        Where the tasks of `fit` were standardised, their statistics are applied to X first. ModelError before `fit`; DataError
        where the columns do not fit: another number, or a table whose column names are not those learned on.
        """
        schema = self._fitted("predict")
        if isinstance(X, (list, tuple)) and len(X) and not np.isscalar(X[0]) and np.ndim(X[0]) == 2:
            m = len(schema.task_names)
            if len(X) != m:
                raise DataError(f"predict: {len(X)} input matrices for {m} tasks; give one a task")
            return [self._output_of(schema.inputs(Xi), i) for i, Xi in enumerate(X)]
        return self._outputs(schema.inputs(X))

    def scores(self, tasks: Tasks) -> np.ndarray:
        """The coefficient of determination R^2 of every task, (m,): 1 minus its normalised mean squared error.

        NaN for a task whose labels are all the same. Raw tasks are scaled by the statistics learned in training; tasks that
        are standardised already are not scaled twice. ModelError before `fit`; DataError for tasks of another size, with other
        statistics, or with a task or feature at another position.
        """
        tasks = self._fitted("scores").alike(tasks, "scores")
        return np.array(
            [
                r_squared(z, y)
                for z, y in zip(self._predicted(tasks), tasks.per_task(tasks.targets), strict=True)
            ]
        )

    def score(self, tasks: Tasks) -> float:
        """The mean over tasks of `scores`."""
        return float(np.mean(self.scores(tasks)))

    def _predicted(self, tasks: Tasks) -> list[np.ndarray]:
        """Predictions for tasks on the scale of training: one vector a task."""
        if not tasks.is_shared:
            return [self._output_of(X, i) for i, X in enumerate(tasks.inputs)]
        Z = self._outputs(tasks.X)
        return (
            list(Z.T) if tasks.mask is None else [z[kept] for z, kept in zip(Z.T, tasks.mask.T, strict=True)]
        )
