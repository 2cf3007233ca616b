"""The classes that an estimator learned, and those that y has besides: a fold for training may lack a rare class."""

from __future__ import annotations

import numpy as np

from mtldsl.errors import DataError
from mtldsl.estimators.columns import columns_of, missing_in
from mtldsl.estimators.targets import classes_in

__all__ = ["completed", "placed"]


def completed(classes, y):
    """`classes` with those of y that training did not have; of columns only where training had one class.

    classes : of a vector (k,); of a table one array for all columns, or one a column
    DataError where a column with both its classes has a third, and for text beside numbers.

    >>> completed(np.array(["no"]), ["yes", "no"])
    array(['no', 'yes'], dtype='<U3')
    """
    table, _, flat = columns_of(y)
    missing = missing_in(table)
    if flat and not isinstance(classes, list):
        return _with(np.asarray(classes), classes_in(table[:, 0], missing[:, 0]), "y")
    columns = classes if isinstance(classes, list) else [classes] * table.shape[1]
    found = []
    for i, (known, column, gone) in enumerate(zip(columns, table.T, missing.T, strict=True)):
        known = np.asarray(known)
        all_known = _with(known, classes_in(column, gone), f"column {i} of y")
        if len(known) < 3 and len(all_known) > 2:
            new = next(each for each in all_known.tolist() if each not in known.tolist())
            raise DataError(
                f"column {i} of y holds {new!r}, and training had {' and '.join(map(repr, known.tolist()))}",
                argument="y",
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
        )
    return np.union1d(plain, seen)


def placed(table: np.ndarray, known, all_known, opposite) -> np.ndarray:
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
