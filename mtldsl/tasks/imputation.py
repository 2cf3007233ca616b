"""Missing inputs are filled in, every part of the rows from its own training rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.errors import DataError
from mtldsl.tasks.data import T, TaskData
from mtldsl.tasks.derived import changed
from mtldsl.tasks.gaps import Imputation
from mtldsl.tasks.rescaling import scaled_anew, scaled_like

__all__ = ["filled_anew", "filled_by", "filled_pair", "imputed", "rows_filled"]


def imputed(tasks: T, gaps: np.ndarray, strategy: str) -> T:
    """The tasks with their gaps filled, and known as such.

    gaps : (n, d) booleans, of the rows that the tasks were made of: those of the shared X, or of the long table
    """
    if not tasks.is_shared:
        gaps = gaps[np.concatenate(tasks.source_rows)]
    empty = np.flatnonzero(gaps.all(axis=0))
    if empty.size:
        raise _no_value(tasks.feature_names[empty[0]])
    known = Imputation(strategy, np.zeros(tasks.n_features), sparse.csr_array(gaps))
    return filled_anew(changed(tasks, imputation=known))


def filled_anew(tasks: T, strict: bool = False) -> T:
    """The gaps filled from the rows that are here; a column without any value here keeps what it had, or is refused where `strict`."""
    found = tasks.imputation
    if found is None:
        return tasks
    from sklearn.impute import SimpleImputer

    X, gaps = _matrix(tasks), found.gaps.toarray()
    holed = np.where(gaps, np.nan, X)
    values = SimpleImputer(strategy=found.strategy, keep_empty_features=True).fit(holed).statistics_
    empty = np.flatnonzero(gaps.all(axis=0))
    if strict and empty.size:
        raise _no_value(tasks.feature_names[empty[0]], " in the training rows")
    raw = _raw(tasks, values)
    raw[empty] = found.values[empty]
    return _filled(tasks, replace(found, values=raw))


def filled_by(tasks: T, values: np.ndarray) -> T:
    """The gaps filled with what was learned on other rows, in the units of the data as they were given."""
    found = tasks.imputation
    return tasks if found is None else _filled(tasks, replace(found, values=np.asarray(values)))


def filled_pair(train: T, test: T) -> tuple[T, T]:
    """Rows to learn on, filled and scaled from themselves, and rows to score, filled and scaled from those."""
    train = filled_anew(train, strict=True)
    test = test if train.imputation is None else filled_by(test, train.imputation.values)
    train = scaled_anew(train)
    return train, scaled_like(test, train.scaling)


def rows_filled(tasks: TaskData, rows, values: np.ndarray | None):
    """The inputs of these rows (of each task, where inputs are separate), their gaps filled with these values."""
    inputs = [tasks.X] if tasks.is_shared else tasks.inputs
    rows = [rows] if tasks.is_shared else rows
    found = [X[own] for X, own in zip(inputs, rows, strict=True)]
    if tasks.imputation is not None and values is not None:
        offsets = [0] if tasks.is_shared else tasks.offsets[:-1].tolist()
        here = _scaled(tasks, values)
        found = [
            np.where(tasks.imputation.gaps[first + own].toarray(), here, X)
            for first, own, X in zip(offsets, rows, found, strict=True)
        ]
    return found[0] if tasks.is_shared else found


def _filled(tasks: T, imputation: Imputation) -> T:
    X = np.where(imputation.gaps.toarray(), _scaled(tasks, imputation.values), _matrix(tasks))
    return changed(tasks, **{"shared" if tasks.is_shared else "stacked": X}, imputation=imputation)


def _matrix(tasks: TaskData) -> Any:
    return tasks.X if tasks.is_shared else tasks.stacked


def _scaled(tasks: TaskData, values: np.ndarray) -> np.ndarray:
    return values if tasks.scaling is None else (values - tasks.scaling.mean) / tasks.scaling.scale


def _raw(tasks: TaskData, values: np.ndarray) -> np.ndarray:
    return np.array(values if tasks.scaling is None else values * tasks.scaling.scale + tasks.scaling.mean)


def _no_value(name: str, where: str = "") -> DataError:
    return DataError(
        f"impute: column {name!r} has no value{where}, so that there is nothing to fill it with",
        write_instead="leave the column out",
        argument="impute",
    )
