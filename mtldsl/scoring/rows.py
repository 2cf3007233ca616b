"""Measures of whole rows where labels may be missing: scikit-learn's functions on the labels that are there."""

from __future__ import annotations

import numpy as np

__all__ = ["coverage_error", "hamming_loss", "ranking_loss", "subset_accuracy"]


def subset_accuracy(truth: np.ndarray, labels: np.ndarray) -> float:
    """The share of rows whose labels that are there are all right.

    >>> subset_accuracy(np.array([[1.0, np.nan], [1.0, -1.0]]), np.array([[1.0, 1.0], [1.0, 1.0]]))
    0.5
    """
    from sklearn.metrics import accuracy_score

    there = _there(truth, labels)
    right: np.ndarray = np.all(~there | ((truth > 0) == (labels > 0)), axis=1)
    return float(accuracy_score(np.ones(len(right)), right))


def hamming_loss(truth: np.ndarray, labels: np.ndarray) -> float:
    """The share of wrong labels among those that are there."""
    from sklearn.metrics import hamming_loss as theirs

    there = _there(truth, labels)
    return float(theirs(truth[there] > 0, labels[there] > 0))


def coverage_error(truth: np.ndarray, scores: np.ndarray) -> float:
    """How far down the ranking of a row's labels one has to go for all its positives, on average; 0 for a row without one.

    A missing label stands last in the ranking, where it changes no other one's place.
    """
    from sklearn.metrics import coverage_error as theirs

    there = _there(truth, scores)
    low = float(np.min(scores[there])) - 1.0
    return float(theirs((truth > 0) & there, np.where(there, scores, low)))


def ranking_loss(truth: np.ndarray, scores: np.ndarray) -> float:
    """The share of pairs (positive, negative) of a row in the wrong order, on average; 0 for a row without such a pair.

    Rows with the same labels missing are handed to scikit-learn together.
    """
    from sklearn.metrics import label_ranking_loss

    there = _there(truth, scores)
    patterns, which = np.unique(there, axis=0, return_inverse=True)
    total = 0.0
    for k, kept in enumerate(patterns):
        if kept.sum() > 1:  # one label alone makes no pair
            rows = np.flatnonzero(which.ravel() == k)
            part = np.ix_(rows, np.flatnonzero(kept))
            total += len(rows) * float(label_ranking_loss(truth[part] > 0, scores[part]))
    return total / len(truth)


def _there(truth: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    return ~(np.isnan(truth) | np.isnan(predicted))
