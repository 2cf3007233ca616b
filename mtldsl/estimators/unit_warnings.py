"""Warnings of columns in very unlike units under one lam: a penalty, or the grid of lam, loses some of them without a word."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from mtldsl.atoms.loss import Loss
from mtldsl.data.derived import label_table
from mtldsl.data.tasks import Tasks
from mtldsl.problems.problem import Problem

#: One column may vary by so much more than another before it is told.
RANGE_RATIO = 1e3

#: Range of a column over its numbers, below which it is constant but for rounding.
CONSTANT_SHARE = 1e-9


class UnlikeUnitsWarning(UserWarning):
    """Columns of y or of X have so unlike units that one lam does not suit them all."""


def warn_of_units(problem: Problem, tasks: Tasks, typed: str) -> None:
    """An UnlikeUnitsWarning for columns of y or X one of which varies a thousand times as much as another, whatever the estimator.

    Not for sparse inputs and features of kernels. y is looked at where its columns are numbers and the penalty is not a ridge alone, of which
    every task has its own solution.
    """
    terms = problem.objective.terms
    real = all(term.atom.labels == "real" for term in terms if isinstance(term.atom, Loss))
    penalties = {term.atom.name for term in terms if not term.is_loss}
    X = tasks.matrix
    if not penalties or not isinstance(X, np.ndarray):
        return
    of_y = (
        real
        and tasks.is_shared
        and penalties != {"ridge"}
        and _extremes(label_table(tasks, tasks.targets), tasks.task_names)
    )
    of_x = tasks.kernel_map is None and _extremes(X, tasks.feature_names)
    found = [f"of {where}, {said}" for where, said in (("y", of_y), ("X", of_x)) if said]
    if not found:
        return
    of_targets = f"TransformedTargetRegressor({typed}(...), transformer=StandardScaler()), or, with gaps in y, fit on y / np.nanstd(y, axis=0)"
    # a pipeline would scale the column of tasks too
    of_inputs = (
        f"make_pipeline(StandardScaler(), {typed}(...))"
        if tasks.is_shared
        else "X[features] = StandardScaler().fit_transform(X[features])"
    )
    advice = [text for text, said in ((of_targets, of_y), (of_inputs, of_x)) if said]
    warnings.warn(
        f"{typed}: columns have very unlike units: {'; '.join(found)}. One lam counts for all, and may lose columns and tasks; "
        f"write {' and '.join(advice)}",
        UnlikeUnitsWarning,
        stacklevel=4,
    )


def _extremes(table: np.ndarray, names: Sequence[str]) -> str:
    """The columns that vary least and most with their ranges, "" where these are alike. A rare flag deviates little, and ranges as others do."""
    low, high = np.nanmin(table, axis=0), np.nanmax(table, axis=0)
    ranges = high - low
    varies = np.flatnonzero(ranges > CONSTANT_SHARE * np.maximum(np.abs(low), np.abs(high)))
    if varies.size < 2 or ranges[varies].max() < RANGE_RATIO * ranges[varies].min():
        return ""
    with np.errstate(over="ignore"):
        spread = np.nanstd(table[:, varies], axis=0)
    least, most = varies[np.argmin(spread)], varies[np.argmax(spread)]
    if spread.max() < RANGE_RATIO * spread.min() or ranges[most] < RANGE_RATIO * ranges[least]:
        return ""
    return " and ".join(f"{names[k]!r} from {low[k]:.3g} to {high[k]:.3g}" for k in (least, most))
