"""Scores of folds as a mean and its standard error."""

from __future__ import annotations

import numpy as np

__all__ = ["mean_and_error"]


def mean_and_error(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the mean, its standard error s / sqrt(k)) over the first axis, of the k folds that have a number; s has k - 1 below.

    NaN where no fold has one; the error is NaN where fewer than two have.

    >>> mean_and_error(np.array([[1.0, np.nan], [3.0, 5.0]]))
    (array([2., 5.]), array([ 1., nan]))
    """
    there = ~np.isnan(scores)
    k = there.sum(axis=0)
    mean = np.divide(np.nansum(scores, axis=0), k, out=np.full(k.shape, np.nan), where=k > 0)
    squares = np.where(there, scores - mean, 0.0) ** 2
    variance = np.divide(squares.sum(axis=0), (k - 1) * k, out=np.full(k.shape, np.nan), where=k > 1)
    return mean, np.sqrt(variance)
