"""What is sent to rows that are elsewhere so that they are scored there: weights, thresholds, and which predictions are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.solution.predictors import Fitted

__all__ = ["Asked", "asked_of"]


@dataclass(frozen=True, eq=False)
class Asked:
    """What is sent to the parts.

    needs    : "labels", "scores", "values" or "probabilities"
    cuts     : (m,) thresholds, or None for what the loss decides
    centre   : (m, 2) the mean of every task's labels, and that with sample weights
    constant : (m,) what is predicted in place of scores, NaN where weights predict
    """

    needs: str
    W: np.ndarray
    b: np.ndarray
    cuts: np.ndarray | None
    loss: dict
    centre: np.ndarray
    constant: np.ndarray

    def scores(self, part) -> np.ndarray:
        """(n,) X w + b of a part's labelled rows, task after task."""
        return part.tasks.forward(part.columns(self.W)) + self.b[part.which][part.tasks.task_of]

    def labels(self, part, z: np.ndarray) -> np.ndarray:
        """(n,) whether +1 is predicted where the scores are z."""
        of = part.tasks.task_of
        cut = np.zeros(1) if self.cuts is None else self.cuts[part.which][of]
        constant = self.constant[part.which][of]
        return np.where(np.isnan(constant), z >= cut, constant > 0)


def asked_of(fitted: Fitted, tasks: Any, needs: str, learned=None, constant=None) -> Asked:
    """What a solution of the tasks in `learned` (None: all) asks of these."""
    m, d = tasks.n_tasks, tasks.n_features
    index = np.arange(m) if learned is None else np.flatnonzero(learned)
    W, b, cuts = np.zeros((d, m)), np.zeros(m), None
    W[:, index] = fitted.coef
    if fitted.intercept is not None:
        b[index] = fitted.intercept
    if fitted.thresholds is not None:
        cuts = np.zeros(m)
        cuts[index] = fitted.thresholds
    facts = tasks.label_facts
    centre = np.column_stack([facts.total / facts.counts, facts.weighted_total / facts.weights])
    fixed = np.full(m, np.nan) if constant is None else constant
    return Asked(needs, W, b, cuts, fitted.loss, centre, fixed)
