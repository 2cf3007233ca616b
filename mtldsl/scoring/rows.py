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
    return float(theirs((truth > 0) & there, np.where(there, _ranks(scores, there), -1)))


def ranking_loss(truth: np.ndarray, scores: np.ndarray) -> float:
    """The share of pairs (positive, negative) of a row in the wrong order, on average; 0 for a row without such a pair.

    A missing label is handed to scikit-learn as a positive above all others: no pair with it is in the wrong order, and the row counts
    for as many times more as it has more pairs.
    """
    from sklearn.metrics import label_ranking_loss

    there = _there(truth, scores)
    positives = np.sum(there & (truth > 0), axis=1)
    negatives = np.sum(there & ~(truth > 0), axis=1)
    rows = np.flatnonzero((positives > 0) & (negatives > 0))
    if not rows.size:
        return 0.0
    missing = ~there[rows]
    ranks = _ranks(scores, there)[rows]
    ranks[missing] = scores.size
    weights = (positives[rows] + missing.sum(axis=1)) / positives[rows]
    wrong = label_ranking_loss((truth[rows] > 0) | missing, ranks, sample_weight=weights)
    return float(wrong) * float(weights.sum()) / len(truth)


def _ranks(scores: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Whole numbers from 0 in the order of the scores that are there, the same for the same ones: there is room above and below them, as
    there is not beside 1e300."""
    ranks = np.zeros(scores.shape, dtype=int)
    ranks[there] = np.unique(scores[there], return_inverse=True)[1]
    return ranks


def _there(truth: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    return ~(np.isnan(truth) | np.isnan(predicted))
