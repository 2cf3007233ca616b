"""A table of labels as estimators need it that learn all labels of a row: two classes a column, none missing."""

from __future__ import annotations

import numpy as np

from mtldsl.errors import DataError
from mtldsl.estimators.targets import Labels, labels_of

__all__ = ["binary_columns"]


def binary_columns(y, term: str) -> Labels:
    """y (n, K), or (n,) as one label. DataError for a vector of more classes and for missing labels; see `labels_of`."""
    labels = labels_of(y)
    if labels.kind == "multiclass":
        raise DataError(
            "Only binary classification is supported. The type of the target is multiclass",
            term=term,
            write_instead="give a table with one column a label",
        )
    if np.isnan(labels.signs).any():
        row, column = np.argwhere(np.isnan(labels.signs))[0]
        raise DataError(
            f"{term}: Input y contains NaN in row {row}, column {column}", write_instead="leave the row out"
        )
    return labels
