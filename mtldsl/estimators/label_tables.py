"""Tables of labels for classifiers: distinct rows, accuracy, and classes placed in columns."""

from __future__ import annotations

import warnings

import numpy as np
from scipy import sparse
from sklearn.exceptions import UndefinedMetricWarning

from mtldsl.data.input_checks import refuse_missing_texts
from mtldsl.data.row_storage import row_keys
from mtldsl.errors import DataError
from mtldsl.estimators.estimator_inputs import refuse_unpaired
from mtldsl.estimators.sample_weights import of_rows
from mtldsl.estimators.targets import (
    columns_of,
    is_vector,
    labels_of,
    missing_mask,
    numbers_of_targets,
    sorted_classes,
)
from mtldsl.utils.arrays import as_frame
from mtldsl.utils.validation import listed

# --------------------------------------------------------------------------------------------------------------
# Rows that are the same, with the same labels, as one row with the sum of their weights; in an order that is their own.
#
# A kernel matrix is then as small as it can be, and what is learned does not depend on the order of rows, nor on whether a row stands
# there twice or has twice the weight.


def unique_rows(X, signs: np.ndarray, weights: np.ndarray | None) -> tuple:
    """(X, signs, weights) of the distinct rows that have a label; weights (n, m).

    >>> X, signs, weights = unique_rows(np.array([[2.0], [1.0], [2.0]]), np.array([[1.0], [-1.0], [1.0]]), None)
    >>> X.ravel(), signs.ravel(), weights.ravel()
    (array([1., 2.]), array([-1.,  1.]), array([1., 2.]))
    """
    weights = np.ones(signs.shape) if weights is None else weights
    first, which, totals = number_distinct_rows(X, signs, weights)
    return X[first], np.where(totals > 0, signs[first], np.nan), totals


def number_distinct_rows(
    X, signs: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(where each distinct row that has a label first stands, in an order that is the rows' own; for every row of X the number of its distinct
    row, -1 for a row without a label; the sums of the weights (distinct rows, m), 0 where a label is missing).

    >>> first, which, totals = number_distinct_rows(np.array([[2.0], [1.0], [2.0]]), np.array([[1.0], [-1.0], [1.0]]), np.ones((3, 1)))
    >>> first, which
    (array([1, 0]), array([1, 0, 1]))
    """
    there = ~np.isnan(signs) & (weights > 0)
    kept = np.flatnonzero(there.any(axis=1))
    X, labels = X[kept], np.where(there, signs, 0.0)[kept]
    if sparse.issparse(X):
        _, rows = np.unique(np.fromiter(row_keys(X), dtype=object, count=len(labels)), return_inverse=True)
        table = np.hstack([rows.reshape(-1, 1).astype(float), labels])
    else:
        table = np.hstack([X + 0.0, labels])
    _, first, own = np.unique(table, axis=0, return_index=True, return_inverse=True)
    totals = np.zeros((len(first), signs.shape[1]))
    np.add.at(totals, own.ravel(), np.where(there, weights, 0.0)[kept])
    which = np.full(len(signs), -1)
    which[kept] = own.ravel()
    return kept[first], which, totals


# --------------------------------------------------------------------------------------------------------------
# The classes that an estimator learned, and those that y has besides: a fold for training may lack a rare class.


def complete_classes(classes, y):
    """`classes` with those of y that training did not have; of columns only where training had one class.

    classes : of a vector (k,); of a table one array for all columns, or one a column
    DataError where a column with both its classes has a third, and for text beside numbers.

    >>> complete_classes(np.array(["no"]), ["yes", "no"])
    array(['no', 'yes'], dtype='<U3')
    """
    table, names, flat = columns_of(y)
    missing = missing_mask(table)
    if flat and not isinstance(classes, list):
        return _with(np.asarray(classes), sorted_classes(table[:, 0], missing[:, 0]), "y")
    columns = classes if isinstance(classes, list) else [classes] * table.shape[1]
    if len(columns) != table.shape[1]:
        raise DataError(
            f"y has the shape {table.shape}, and predictions have {(len(table), len(columns))}", argument="y"
        )
    found = []
    for i, (known, column, gone) in enumerate(zip(columns, table.T, missing.T, strict=True)):
        known = np.asarray(known)
        where = f"column {names[i]!r} of y" if names else f"column {i} of y"
        all_known = _with(known, sorted_classes(column, gone, where), where)
        if len(known) < 3 and len(all_known) > 2:
            new = next(each for each in all_known.tolist() if each not in known.tolist())
            raise DataError(
                f"{where} holds {new!r}, and training had {' and '.join(map(repr, known.tolist()))}",
                argument="y",
                write_instead="give the classes of training",
            )
        found.append(all_known)
    return found


def _with(known: np.ndarray, seen: np.ndarray, where: str) -> np.ndarray:
    if not seen.size or not set(seen.tolist()) - set(known.tolist()):
        return known
    if not known.size:  # a column without a label in training
        return seen
    plain = np.array(known.tolist())
    if (plain.dtype.kind in "US") != (seen.dtype.kind in "US"):
        raise DataError(
            f"{where} holds {seen[0].item()!r}, and training had {plain[0].item()!r}: text and numbers are not the same classes",
            argument="y",
            write_instead="give the classes of training",
        )
    return np.union1d(plain, seen)


def place_scores(table: np.ndarray, known, all_known, opposite) -> np.ndarray:
    """Scores or probabilities as an estimator of the classes `known` gave them, in the columns of `all_known`.

    table    : (n, m), one column a task: of a vector of two classes or fewer one, for the last; of more one a class
    opposite : the score of not being of a class, from that of being of it
    A class that the estimator does not know has NaN, which scorers leave out and count; but of two classes the one's is the other's opposite.
    """
    if isinstance(all_known, list):
        each = known if isinstance(known, list) else [known] * len(all_known)
        turned = [len(a) == 1 and len(b) == 2 and a[0] == b[0] for a, b in zip(each, all_known, strict=True)]
        return np.where(turned, opposite(table), table)
    if len(all_known) == len(known):
        return table
    if len(all_known) == 2:
        return opposite(table) if all_known[0] == known[0] else table
    found = np.full((len(table), len(all_known)), np.nan)
    each = np.hstack([opposite(table), table]) if len(known) == 2 else table
    found[:, np.searchsorted(all_known, np.array(known.tolist()))] = each
    return found


# --------------------------------------------------------------------------------------------------------------
# Labels that were not learned from: beside predictions, as a scorer asks for them, and as folds are dealt by them.


def hold_classes(estimator, y) -> None:
    """DataError for labels that an estimator cannot have learned, each of which would count as wrong: see `complete_classes`."""
    known = learned_attribute(estimator, "label_classes_")
    known = learned_attribute(estimator, "classes_") if known is None else known
    if known is not None:
        complete_classes(known, y)


def undefined_score(why: str) -> float:
    """NaN, and the warning of scikit-learn's measures that says why."""
    warnings.warn(f"the score is NaN: {why}", UndefinedMetricWarning, stacklevel=4)
    return float("nan")


def share_right(estimator, X, y, sample_weight=None, **groups) -> float:
    """The share of rows whose labels are all right; missing labels are not counted, nor rows that have none."""
    refuse_unpaired(X, y=y, **groups, sample_weight=sample_weight)
    hold_targets(estimator, y)
    hold_classes(estimator, y)
    predicted, (table, _, _) = estimator.predict(X, **groups), columns_of(y)
    if predicted.shape not in (table.shape, table.shape[:1]):
        raise DataError(
            f"y has the shape {table.shape}, and predictions have {predicted.shape}", argument="y"
        )
    missing = missing_mask(table)
    weights, rows = of_rows(sample_weight, len(table)), ~missing.all(axis=1)
    if not rows.any():
        return undefined_score("y has no label")
    right = np.asarray(table == np.reshape(predicted, table.shape), dtype=bool)
    whole: np.ndarray = np.all(right | missing, axis=1)
    return float(np.average(whole[rows], weights=None if weights is None else weights[rows]))


def signs_of(y, classes, needs: str = "values") -> tuple[np.ndarray, tuple[str, ...] | None]:
    """(y as (n, m) columns, NaN where a label is missing; their names or None), as an estimator that learned these classes sees it.

    classes : its classes_: of a vector (k,), of a table the two classes of all columns, or one array a column. Columns are +1 for the
              second class and -1 for the first; of a vector of several classes one a class, against the rest. None: numbers as they are
    """
    if needs == "values":
        targets = numbers_of_targets(y, learning=False)
        return targets.Y, targets.names
    table, names, _ = columns_of(y)
    missing = missing_mask(table)
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
    missing, columns = missing_mask(table), []
    for column, gone in zip(table.T, missing.T, strict=True):
        values, own = np.unique(
            column[~gone].astype(str if table.dtype == object else table.dtype), return_inverse=True
        )
        refuse_missing_texts(values.tolist(), np.bincount(own, minlength=len(values)).tolist(), "y")
        if len(values) * rows > max(own.size, 2 * rows):  # two classes are classes however few rows there are
            values, own = values[:1], np.zeros_like(own)
        for k in range(1 if len(values) == 2 else 0, len(values)):
            signs = np.full(len(column), np.nan)
            signs[~gone] = np.where(own == k, 1.0, -1.0) if len(values) > 1 else 0.0
            columns.append(signs)
    return np.stack(columns, axis=1) if columns else np.empty((len(table), 0))


# --------------------------------------------------------------------------------------------------------------
# Names of the columns of y: kept by `fit`, and held to wherever labels stand beside a fitted estimator.


def keep_targets(estimator, names) -> None:
    """`target_names_` of this fit; None, of an array, forgets those of an earlier one."""
    estimator.__dict__.pop("target_names_", None)
    if names is not None:
        estimator.target_names_ = np.array(names, dtype=object)


def hold_targets(estimator, y) -> None:
    """DataError where the columns of y have other names than those that were learned, or another order. Arrays and vectors have none."""
    known = learned_attribute(estimator, "target_names_")
    frame = as_frame(y)
    if known is None or frame is None or is_vector(y):
        return
    known, given = list(known), list(map(str, frame.columns))
    if given == known:
        return
    said = "The target names should match those that were passed during fit"
    for what, names in (
        ("unseen at fit time", [one for one in given if one not in known]),
        ("seen at fit time, yet now missing", [one for one in known if one not in given]),
    ):
        if names:
            said += f"; target names {what}: {listed(names, 5)}"
    if sorted(given) == sorted(known):
        said += "; they must be in the same order as they were in fit"
    raise DataError(
        said, argument="y", write_instead=f"give the columns {listed(known, 5)}, in this order, or an array"
    )


def learned_attribute(estimator, name: str):
    """An attribute that a fit made, wherever the estimator that learned it stands in pipelines and searches; None where there is none."""
    while estimator is not None:
        if hasattr(estimator, name):
            return getattr(estimator, name)
        steps = getattr(estimator, "steps", None)
        inside = getattr(estimator, "best_estimator_", getattr(estimator, "estimator_", None))
        estimator = steps[-1][1] if steps else inside
    return None
