"""The face that trained networks share: predictions in the units of the labels, and scores."""

from __future__ import annotations

import numpy as np

from mtldsl.errors import ModelError
from mtldsl.nn.dense import dense_alike, dense_inputs
from mtldsl.solution.scoring import r_squared
from mtldsl.tasks import Tasks
from mtldsl.tasks.schema import Schema, is_list_of_matrices

__all__ = ["Predictor"]


class Predictor:
    """Predictions and scores; a subclass says what comes out of its layers."""

    _schema: Schema | None = None  # of the class: not trained yet

    def _outputs(self, X) -> np.ndarray:
        """(n, m) in units of the labels."""
        raise NotImplementedError

    def _output_of(self, X, task: int) -> np.ndarray:
        """(n,) in units of the task's labels."""
        raise NotImplementedError

    def _fitted(self, method: str) -> Schema:
        if self._schema is None:
            raise ModelError(
                f"{type(self).__name__}.{method}: not trained yet", write_instead="call fit(tasks) first"
            )
        return self._schema

    def predict(self, X):
        """(n, m) for one matrix X (n, d); a list of (n_i,) for a list of m matrices, one a task. In units of the labels.

        Where the tasks of `fit` were standardised, their statistics are applied to X first. ModelError before `fit`; DataError
        where the columns do not fit: another number, or a table whose column names are not those learned on.
        """
        schema = self._fitted("predict")
        if is_list_of_matrices(X):
            schema.require_one_each(X)
            return [self._output_of(dense_inputs(schema, Xi), i) for i, Xi in enumerate(X)]
        return self._outputs(dense_inputs(schema, X))

    def scores(self, tasks: Tasks) -> np.ndarray:
        """The coefficient of determination R^2 of every task, (m,): 1 minus its normalised mean squared error.

        NaN for a task whose labels are all the same. Raw tasks are scaled by the statistics learned in training; tasks that
        are standardised already are not scaled twice. ModelError before `fit`; DataError for tasks of another size, with other
        statistics, or with a task or feature at another position.
        """
        tasks = dense_alike(self._fitted("scores"), tasks, "scores")
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
