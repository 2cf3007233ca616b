"""What a classifier learns on scores of rows that it was not fitted on: thresholds for a metric, and probabilities."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import _num_samples

from mtldsl.atoms.metrics import FScore, Metric
from mtldsl.errors import DataError, ModelError
from mtldsl.solution.thresholds import best_threshold
from mtldsl.tasks.dealing import deal_table
from mtldsl.tasks.one_class import OneClassWarning
from mtldsl.values.number import as_whole, quoted
from mtldsl.values.seed import generator

__all__ = ["CALIBRATIONS", "calibrators", "metric_of", "out_of_fold", "thresholds"]

CALIBRATIONS = ("sigmoid", "isotonic")


def metric_of(tune_thresholds) -> Metric | None:
    """The metric that thresholds are tuned for: True is the F-score. ModelError for other things than metrics."""
    if tune_thresholds is None or tune_thresholds is False:
        return None
    metric = FScore() if tune_thresholds is True else tune_thresholds
    if not isinstance(metric, Metric):
        raise ModelError(
            f"tune_thresholds={quoted(tune_thresholds)}",
            write_instead="write True for the F-score, or a metric such as mtl.FScore(beta=2)",
        )
    return metric


def out_of_fold(plain, X, y, sample_weight, signs: np.ndarray, folds, random_state) -> np.ndarray:
    """(n, m) scores of every row by an estimator fitted on the other folds; NaN where the fold had nothing to learn of a task.

    plain : the estimator, unfitted; signs (n, m) the labels that folds are stratified by
    """
    k = as_whole(folds)
    if k is None or isinstance(folds, bool) or k < 2:
        raise ModelError(f"inner_folds={quoted(folds)}", write_instead="write a whole number of at least 2")
    X, y, sample_weight = indexable(X, y, None if sample_weight is None else np.asarray(sample_weight))
    if _num_samples(X) < 2:
        raise DataError(f"n_samples = {_num_samples(X)}: inner folds need two rows and more", argument="X")
    k = min(k, _num_samples(X))
    numbers = deal_table(signs, k, True, None, generator(random_state, "inner_folds"))
    z = np.full(signs.shape, np.nan)
    for fold in range(k):
        train, test = np.flatnonzero(numbers != fold), np.flatnonzero(numbers == fold)
        fitted = clone(plain)
        weights = None if sample_weight is None else _safe_indexing(sample_weight, train)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OneClassWarning)  # said once, of all rows
            fitted.fit(_safe_indexing(X, train), _safe_indexing(y, train), weights)
        z[test] = _scores_of(fitted, _safe_indexing(X, test))
    return z


def _scores_of(fitted, X) -> np.ndarray:
    """(n, m), with NaN for tasks that had one class."""
    z = np.array(fitted._task_scores(X))
    z[:, fitted.one_class_] = np.nan
    return z


def thresholds(z: np.ndarray, signs: np.ndarray, metric: Metric) -> np.ndarray:
    """(m,) the best threshold of every task on these scores; 0 where there are none of both classes."""
    found = np.zeros(z.shape[1])
    for i in range(z.shape[1]):
        kept = ~np.isnan(z[:, i]) & ~np.isnan(signs[:, i])
        if len(np.unique(signs[kept, i])) == 2:
            found[i] = best_threshold(z[kept, i], signs[kept, i], metric, "tune_thresholds", i)
    return found


def calibrators(z: np.ndarray, signs: np.ndarray, kind: str, weights: np.ndarray | None) -> list:
    """One a task, from score to P(+1): a logistic regression of one score ("sigmoid", Platt 1999) or an isotonic one; None where there
    are not both classes."""
    if kind not in CALIBRATIONS:
        raise ModelError(
            f"calibration={quoted(kind)}", write_instead=f"write None, {' or '.join(map(repr, CALIBRATIONS))}"
        )
    found = []
    for i in range(z.shape[1]):
        kept = ~np.isnan(z[:, i]) & ~np.isnan(signs[:, i])
        kept &= True if weights is None else weights[:, i] > 0
        of = signs[kept, i] > 0
        if of.all() or not of.any():
            found.append(None)
            continue
        own = None if weights is None else weights[kept, i]
        model = (
            LogisticRegression(C=1e6)
            if kind == "sigmoid"
            else IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
        )
        found.append(model.fit(z[kept, i : i + 1], of, own))
    return found


def calibrated(models: list, z: np.ndarray) -> np.ndarray:
    """(n, m) probabilities; where a task has no calibrator, its side alone."""
    P = np.where(np.isnan(z), np.nan, z >= 0).astype(float)
    for i, model in enumerate(models):
        if isinstance(model, LogisticRegression):
            P[:, i] = model.predict_proba(z[:, i : i + 1])[:, 1]
        elif model is not None:
            P[:, i] = model.predict(z[:, i])
    return P
