"""The relative duality gap, and the size below which an optimum counts as zero when a gap is made relative."""

from __future__ import annotations

import math

import numpy as np

from mtldsl.compile.normal_form import LossTerm, NormalForm

__all__ = ["TINY", "objective_scale", "relative_gap"]

#: the smallest number by which anything can be divided
TINY = float(np.finfo(float).tiny)


def relative_gap(objective: float, bound: float, scale: float = 0.0) -> float:
    """(objective - bound) / max(|objective|, |bound|, scale): inf where no finite bound is known."""
    if not (math.isfinite(objective) and math.isfinite(bound)):
        return math.inf
    return (objective - bound) / max(abs(objective), abs(bound), scale, TINY)


def objective_scale(form: NormalForm) -> float:
    """1e-8 of the objective at weights of zero: below this, an optimum counts as zero when a gap is made relative.

    Where there are intercepts, they are zero or the medians of the labels, whichever is lower: labels of 1e12 + signal are not a
    reason to call an objective of the signal's size zero.
    """
    zeros, values = form.zeros(), [abs(form.value_at_zero)]
    for loss in form.losses:
        if loss.intercepts and loss.atom.labels == "real":
            for name in loss.intercepts:
                zeros[name][0] = _medians(loss)
            values.append(abs(form.value(zeros)))
    finite = [value for value in values if np.isfinite(value)]
    return 1e-8 * min(finite) if finite else 0.0


def _medians(loss: LossTerm) -> np.ndarray:
    """(m,) of every task's labels."""
    tasks = loss.tasks
    if np.all(tasks.counts == tasks.counts[0]):
        return np.median(tasks.targets.reshape(tasks.n_tasks, -1), axis=1)
    return np.array([np.median(y) for y in tasks.per_task(tasks.targets)])
