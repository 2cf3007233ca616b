"""Measures of rows that are drawn again and again: one product for all samples, where calling scikit-learn for each would take minutes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mtldsl.scoring.measure import Measure

__all__ = ["Counted", "counted"]

#: (labels (n,), predictions (n,), how often each row was drawn (k, n)) -> (k,), NaN for samples without a number
Counted = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def counted(by: Measure) -> Counted | None:
    """What `by.of_task` says of rows that stand there as often as they are counted; None for a measure that is not known here.

    >>> from mtldsl.scoring.measures import measure
    >>> y, p = np.array([1.0, -1.0, 1.0]), np.array([1.0, 1.0, -1.0])
    >>> counted(measure("accuracy"))(y, p, np.array([[1, 1, 1], [3, 0, 0]]))
    array([0.333..., 1.        ])
    """
    return _BY_NAME.get(by.name) if by.average == "mean" and not by.of_rows else None


def _accuracy(y: np.ndarray, p: np.ndarray, times: np.ndarray) -> np.ndarray:
    return _share(times @ ((y > 0) == (p > 0)), times.sum(axis=1))


def _f1(y: np.ndarray, p: np.ndarray, times: np.ndarray) -> np.ndarray:
    positives = times @ (y > 0)
    score = _share(2.0 * (times @ ((y > 0) & (p > 0))), positives + times @ (p > 0))
    return np.where(positives > 0, score, np.nan)


def _roc_auc(y: np.ndarray, p: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The share of pairs (positive, negative) in the right order, equal scores one half."""
    order = np.argsort(p, kind="stable")
    times, y, p = times[:, order], y[order], p[order]
    starts = np.flatnonzero(np.r_[True, p[1:] != p[:-1]])  # rows of one score stand together
    above = np.add.reduceat(times * (y > 0), starts, axis=1).astype(float)
    below = np.add.reduceat(times * (y <= 0), starts, axis=1).astype(float)
    lower = np.cumsum(below, axis=1) - below
    return _share((above * (lower + 0.5 * below)).sum(axis=1), above.sum(axis=1) * below.sum(axis=1))


def _mse(y: np.ndarray, p: np.ndarray, times: np.ndarray) -> np.ndarray:
    return _share(times @ (y - p) ** 2, times.sum(axis=1))


def _mae(y: np.ndarray, p: np.ndarray, times: np.ndarray) -> np.ndarray:
    return _share(times @ np.abs(y - p), times.sum(axis=1))


def _r2(y: np.ndarray, p: np.ndarray, times: np.ndarray) -> np.ndarray:
    n, centred = times.sum(axis=1), y - y.mean()  # less is lost where squares are subtracted
    whole = times @ centred**2 - _share((times @ centred) ** 2, n)
    highest = np.where(times > 0, y, -np.inf).max(axis=1)
    lowest = np.where(times > 0, y, np.inf).min(axis=1)
    return np.where(highest > lowest, 1.0 - _share(times @ (y - p) ** 2, whole), np.nan)


def _share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part / whole, NaN where there is nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > 0, part / whole, np.nan)


_BY_NAME: dict[str, Counted] = {
    "accuracy": _accuracy,
    "f1": _f1,
    "roc_auc": _roc_auc,
    "mse": _mse,
    "mae": _mae,
    "r2": _r2,
}
