"""Missing inputs of a file that is read: refused, or filled in by what the rows to learn on say."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from mtldsl.errors import DataError
from mtldsl.tasks import Tasks
from mtldsl.tasks.gaps import STRATEGIES
from mtldsl.tasks.imputation import imputed

__all__ = ["check_impute", "filled"]


def check_impute(impute: object, path) -> None:
    """DataError for other words than those that there are."""
    if impute not in (*STRATEGIES, "error"):
        raise DataError(
            f"impute={impute!r}", term=path, write_instead="write 'mean', 'median' or 'error'", argument="impute"
        )  # fmt: skip


def filled(X, impute: str, path, make: Callable[..., Tasks]) -> Tasks:
    """make(X), with the gaps of X (n, d) filled in where `impute` says how; else `make` refuses them."""
    if impute == "error":
        return make(X)
    if sparse.issparse(X):
        if np.isnan(X.data).any():
            raise DataError("impute is for dense tables", term=path, write_instead="leave the columns out", argument="impute")  # fmt: skip
        return make(X)
    gaps = np.isnan(X)
    return imputed(make(np.where(gaps, 0.0, X)), gaps, impute) if gaps.any() else make(X)
