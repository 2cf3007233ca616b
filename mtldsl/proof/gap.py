"""The relative duality gap, and the size below which an optimum counts as zero when a gap is made relative."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mtldsl.compile.normal_form import LossTerm, NormalForm
from mtldsl.system.kept import cached_property

__all__ = ["TINY", "Scale", "objective_scale", "over", "relative_gap"]

#: below this share of the objective at weights of zero an optimum counts as zero
_SHARE = 1e-8

#: the smallest number by which anything can be divided
TINY = float(np.finfo(float).tiny)


class Scale:
    """`objective_scale(form)`, computed where a size lies below the most that it can be: hardly ever."""

    def __init__(self, form: NormalForm):
        self.form = form
        at_zero = _SHARE * abs(form.value_at_zero)
        self.most = at_zero if math.isfinite(at_zero) else math.inf

    @cached_property
    def exact(self) -> float:
        return objective_scale(self.form)

    def __float__(self) -> float:
        return self.exact

    def __reduce__(self):
        return float, (self.exact,)  # without the data

    def floor(self, size: float) -> float:
        """The larger of the two."""
        return size if size >= self.most else max(size, self.exact)


def relative_gap(objective: float, bound: float, scale: float | Scale = 0.0) -> float:
    """(objective - bound) / max(|objective|, |bound|, scale): inf where no finite bound is known."""
    if not (math.isfinite(objective) and math.isfinite(bound)):
        return math.inf
    return (objective - bound) / over(max(abs(objective), abs(bound)), scale)


def over(size: float, scale: float | Scale) -> float:
    """What a gap of terms of this size is divided by."""
    return max(scale.floor(size) if isinstance(scale, Scale) else max(size, scale), TINY)


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
    return _SHARE * min(finite) if finite else 0.0


def _medians(loss: LossTerm) -> np.ndarray:
    """(m,) of every task's labels; of an even number of them the mean of the middle two. Their means, where rows are elsewhere: these are known."""
    tasks: Any = loss.tasks
    if not tasks.in_memory:
        return tasks.label_sums()[0] / tasks.counts
    if tasks.is_shared and tasks.mask is None:
        return _median_of_rows(tasks.targets.reshape(tasks.n_tasks, -1))
    return np.array([_median_of_rows(y[None, :])[0] for y in tasks.per_task(tasks.targets)])


def _median_of_rows(table: np.ndarray) -> np.ndarray:
    """As np.median(table, axis=1), which asks so much about its argument that it takes longer than all else on small data."""
    half, odd = divmod(table.shape[1], 2)
    if odd:
        return np.partition(table, half, axis=1)[:, half]
    ordered = np.partition(table, (half - 1, half), axis=1)
    return 0.5 * ordered[:, half - 1] + 0.5 * ordered[:, half]
