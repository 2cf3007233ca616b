"""Inputs and labels on scales that a network learns well on, and predictions back on those of the labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtldsl.tasks import Tasks
from mtldsl.tasks.scaling import Scaling

__all__ = ["Scales"]


@dataclass(frozen=True, eq=False)
class Scales:
    """Statistics of training data: of the inputs over all rows of all tasks, of the labels task by task."""

    inputs: Scaling
    labels: Scaling

    @classmethod
    def of(cls, tasks: Tasks, standardize: bool) -> Scales:
        """Means and standard deviations, 1 where something is constant; zeros and ones where standardize is False."""
        d, m = tasks.n_features, tasks.n_tasks
        if not standardize:
            return cls(Scaling(np.zeros(d), np.ones(d)), Scaling(np.zeros(m), np.ones(m)))
        inputs = Scaling.of([tasks.X] if tasks.is_shared else tasks.inputs, center=True, scale=True)
        by_task = [Scaling.of([y[:, None]], center=True, scale=True) for y in tasks.per_task(tasks.targets)]
        labels = Scaling(
            np.concatenate([one.mean for one in by_task]), np.concatenate([one.scale for one in by_task])
        )
        return cls(inputs, labels)

    def scaled_labels(self, tasks: Tasks) -> np.ndarray:
        """(N,) flat."""
        counts = tasks.counts
        return (tasks.targets - np.repeat(self.labels.mean, counts)) / np.repeat(self.labels.scale, counts)
