"""X, checked by scikit-learn; a column of a table that it cannot take is named."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import validate_data

from mtldsl.values.table import as_frame, numbers_of

__all__ = ["checked_inputs"]


def checked_inputs(estimator, X, *, reset: bool):
    """As scikit-learn's `validate_data` gives it: floats, dense or CSR; names and number of features are kept by `reset`."""
    try:
        return validate_data(estimator, X, accept_sparse="csr", dtype=np.float64, reset=reset)
    except (TypeError, ValueError):  # in numpy's words, without the column
        frame = as_frame(X)
        if frame is not None:
            numbers_of(frame, "X")
        raise
