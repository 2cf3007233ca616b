"""Tasks as rows of inputs that a network sees once, however many tasks have a label there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtldsl.nn.scales import Scales
from mtldsl.tasks import Tasks
from mtldsl.tasks.derived import label_table

__all__ = ["OwnRows", "SharedRows", "as_samples"]


@dataclass(frozen=True, eq=False)
class SharedRows:
    """A label of every task at each row: X (R, d), labels and weights (R, m); weight 0 where a label is missing."""

    X: object
    labels: object
    weights: object

    def map(self, function) -> SharedRows:
        """The same samples with every array replaced."""
        return SharedRows(function(self.X), function(self.labels), function(self.weights))

    def rows(self, index) -> SharedRows:
        return self.map(lambda array: array[index])

    def squares(self, H, W, intercept):
        """Weighted squared residuals, one a label, of features H (R, p)."""
        return self.weights * (self.labels - (H @ W + intercept)) ** 2


@dataclass(frozen=True, eq=False)
class OwnRows:
    """Each row belongs to one task: X (R, d), labels, weights and the task's position (R,)."""

    X: object
    labels: object
    weights: object
    task: object

    def map(self, function) -> OwnRows:
        """The same samples with every array replaced."""
        return OwnRows(function(self.X), function(self.labels), function(self.weights), function(self.task))

    def rows(self, index) -> OwnRows:
        return self.map(lambda array: array[index])

    def squares(self, H, W, intercept):
        """Weighted squared residuals, one a label, of features H (R, p)."""
        outputs = (H * W.T[self.task]).sum(1) + intercept[self.task]
        return self.weights * (self.labels - outputs) ** 2


def as_samples(tasks: Tasks, scales: Scales, weights=None) -> SharedRows | OwnRows:
    """The tasks on those scales; `weights` (N,) in place of the tasks' sample weights. Rows without any label are left out."""
    labels = scales.scaled_labels(tasks)
    if weights is None:
        weights = np.ones(tasks.n_samples) if tasks.sample_weights is None else tasks.sample_weights
    if not tasks.is_shared:
        X = scales.inputs.apply(np.vstack(tasks.inputs))
        return OwnRows(X, labels, np.array(weights), np.array(tasks.task_of))
    Y, S = (np.nan_to_num(label_table(tasks, flat)) for flat in (labels, np.asarray(weights)))
    labelled = S.any(axis=1)
    return SharedRows(scales.inputs.apply(tasks.X)[labelled], Y[labelled], S[labelled])
