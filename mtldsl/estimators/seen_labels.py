"""Labels that were not learned from: beside predictions, as a scorer asks for them, and as folds are dealt by them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtldsl.errors import DataError
from mtldsl.estimators.columns import columns_of, missing_in
from mtldsl.estimators.sample_weights import of_rows
from mtldsl.estimators.targets import labels_of, numbers_of_targets

__all__ = ["Seen", "agreement", "scores_of_labels", "share_right", "signs_of", "to_spread"]


@dataclass(frozen=True, eq=False)
class Seen:
    """Labels (n, m) read once, for scores of many predictions; where there are any, and the rows that have one."""

    table: np.ndarray
    there: np.ndarray
    rows: np.ndarray

    @classmethod
    def of(cls, y) -> Seen:
        """y itself where it has been read."""
        if isinstance(y, Seen):
            return y
        table, _, _ = columns_of(y)
        there = ~missing_in(table)
        return cls(table, there, np.flatnonzero(there.any(axis=1)))


def agreement(y, predicted) -> tuple[np.ndarray, np.ndarray]:
    """(where predictions (n, m) are the labels y, where y has labels), both (n, m)."""
    seen = Seen.of(y)
    if predicted.shape not in (seen.table.shape, seen.table.shape[:1]):
        raise DataError(
            f"y has the shape {seen.table.shape}, and predictions have {predicted.shape}", argument="y"
        )
    predicted = np.reshape(predicted, seen.table.shape)
    return np.asarray(seen.table == predicted, dtype=bool) & seen.there, seen.there


def share_right(y, predicted, sample_weight=None) -> float:
    """The share of rows whose labels are all right; missing labels are not counted, nor rows that have none."""
    seen = Seen.of(y)
    right, there = agreement(seen, predicted)
    weights = of_rows(sample_weight, len(seen.table))
    weights = None if weights is None else weights[seen.rows]
    whole: np.ndarray = np.all(right | ~there, axis=1)
    return float(np.average(whole[seen.rows], weights=weights))


def scores_of_labels(estimator, points: list, X, y: Seen, options: dict) -> list[float]:
    """`MultiTaskEstimator._scores_of` of a classifier of labels: of several points in one product, where every task has weights."""
    if options or estimator.one_class_.size:
        return [float(estimator._with(point).score(X, y, **options)) for point in points]
    labels, X = estimator._with(points[0])._labels, estimator._checked(X)
    Z, found = X @ np.hstack([point.coef for point in points]), []
    for z, point in zip(np.split(Z, len(points), axis=1), points, strict=True):
        z = z if point.intercept is None else z + point.intercept
        found.append(share_right(y, labels.decoded(z >= 0.0, z)))
    return found


def signs_of(y, classes, needs: str = "values") -> tuple[np.ndarray, tuple[str, ...] | None]:
    """(y as (n, m) columns, NaN where a label is missing; their names or None), as an estimator that learned these classes sees it.

    classes : its classes_: of a vector (k,), of a table the two classes of all columns, or one array a column. Columns are +1 for the
              second class and -1 for the first; of a vector of several classes one a class, against the rest. None: numbers as they are
    """
    if needs == "values":
        targets = numbers_of_targets(y, learning=False)
        return targets.Y, targets.names
    table, names, _ = columns_of(y)
    missing = missing_in(table)
    if classes is None:
        labels = labels_of(y)
        return labels.signs, labels.names
    if table.shape[1] == 1 and not isinstance(classes, list):
        known = np.asarray(classes)
        positive = known[-1:] if len(known) <= 2 else known
        names = tuple(map(str, known)) if len(known) > 2 else names
        table, missing = np.repeat(table, len(positive), axis=1), np.repeat(missing, len(positive), axis=1)
    else:
        each = classes if isinstance(classes, list) else [classes] * table.shape[1]
        # a column without a label here and in training has no class at all
        positive = [(np.asarray(one)[-1] if len(one) else None) if len(one) < 3 else 1 for one in each]
    found = np.stack(
        [np.where(column == one, 1.0, -1.0) for column, one in zip(table.T, positive, strict=True)], axis=1
    )
    found[missing] = np.nan
    return found, names


def to_spread(y, rows: int) -> np.ndarray:
    """y as columns to spread over folds: -1 and +1 for each of its classes (one column for two), 0 for numbers; NaN where a label is missing.

    rows : classes have so many rows each on average, or the column is one of numbers
    """
    table, _, _ = columns_of(y)
    missing, columns = missing_in(table), []
    for column, gone in zip(table.T, missing.T, strict=True):
        values, own = np.unique(
            column[~gone].astype(str if table.dtype == object else table.dtype), return_inverse=True
        )
        if len(values) * rows > max(own.size, 2 * rows):  # two classes are classes however few rows there are
            values, own = values[:1], np.zeros_like(own)
        for k in range(1 if len(values) == 2 else 0, len(values)):
            signs = np.full(len(column), np.nan)
            signs[~gone] = np.where(own == k, 1.0, -1.0) if len(values) > 1 else 0.0
            columns.append(signs)
    return np.stack(columns, axis=1) if columns else np.empty((len(table), 0))
