"""Thresholds and calibrated probabilities, tuned on scores of rows held out by folds."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.utils import _safe_indexing, get_tags, indexable

from mtldsl.atoms.metrics.contingency import FScore
from mtldsl.atoms.metrics.metric import Metric
from mtldsl.data.labels import OneClassWarning
from mtldsl.data.splits import deal
from mtldsl.errors import DataError, ModelError
from mtldsl.estimators.label_tables import number_distinct_rows
from mtldsl.estimators.sample_weights import of_labels
from mtldsl.utils.validation import as_whole, quoted

# --------------------------------------------------------------------------------------------------------------
# Scores of rows that a classifier was not fitted on, and the thresholds that are best for a metric on them.


def metric_of(tune_thresholds) -> Metric | None:
    """The metric that thresholds are tuned for: True is the F-score. ModelError for other things than metrics."""
    if tune_thresholds is None or tune_thresholds is False:
        return None
    metric = FScore() if tune_thresholds is True else tune_thresholds
    if not isinstance(metric, Metric):
        raise ModelError(
            f"tune_thresholds={quoted(tune_thresholds)}",
            write_instead="write True for the F-score, or a metric such as mtl.metrics.FScore(beta=2)",
        )
    return metric


class HeldOutRows(NamedTuple):
    """The distinct rows that have a label, each by an estimator that was fitted on other ones.

    z       : (n, m) scores; NaN where the fold had nothing to learn of a task
    signs   : (n, m) labels -1 and +1, NaN where one is missing
    weights : (n, m) how often the row stands there, or the sum of its sample weights; 0 where a label is missing
    rows    : (n,) where each of them first stands
    """

    z: np.ndarray
    signs: np.ndarray
    weights: np.ndarray
    rows: np.ndarray

    def tasks(self, factors=None) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield (scores, labels, weights) of every task, of the rows that have all three; factors are of the rows of y."""
        weights = self.weights if factors is None else self.weights * factors[self.rows]
        for z, y, w in zip(self.z.T, self.signs.T, weights.T, strict=True):
            kept = ~np.isnan(z) & ~np.isnan(y) & (w > 0)
            yield z[kept], y[kept], w[kept]


def out_of_fold(
    plain, X, signs: np.ndarray, sample_weight, folds, *, checked=None, factors=None
) -> HeldOutRows:
    """The scores of every distinct row by an estimator fitted on the other folds.

    Rows that are the same go to one fold, as one row with the sum of their weights, and in an order that is their own: what is learned does not
    depend on how the rows stand, nor on whether a row stands there twice or weighs twice as much.

    plain   : the estimator, unfitted
    signs   : (n, m) -1 and +1, NaN where a label is missing: what folds are stratified by and weights are fitted to
    checked : X as numbers, where it is something else
    factors : (n, m) what weights are multiplied by for the fits, by class
    """
    k = as_whole(folds)
    if k is None or isinstance(folds, bool) or k < 2:
        raise ModelError(f"inner_folds={quoted(folds)}", write_instead="write a whole number of at least 2")
    (X,) = indexable(X)
    given = of_labels(sample_weight, signs.shape)
    rows, _, totals = number_distinct_rows(
        X if checked is None else checked, signs, np.ones(signs.shape) if given is None else given
    )
    n = len(rows)
    if n < 2:
        raise DataError(f"n_samples = {n}: inner folds need two different rows and more", argument="X")
    k = min(k, n)
    signs = np.where(totals > 0, signs[rows], np.nan)
    traits = np.stack([totals * (signs > 0), totals * (signs < 0)], axis=2).reshape(n, -1)
    shares = np.full(k, 1.0 / k)
    numbers = deal(traits, np.arange(n), shares, np.random.default_rng(0))
    weights = None if given is None and (totals <= 1.0).all() else totals
    if factors is not None:
        weights = totals * factors[rows]
    pairwise = get_tags(plain).input_tags.pairwise
    z = np.full(signs.shape, np.nan)
    sides = [(np.flatnonzero(numbers != fold), np.flatnonzero(numbers == fold)) for fold in range(k)]
    run = delayed(_scored)  # one after another, or in what `joblib.parallel_config` says
    found = Parallel()(run(clone(plain), X, signs, weights, rows, *side, pairwise) for side in sides)
    for (_, test), scores in zip(sides, found, strict=True):
        z[test] = scores
    return HeldOutRows(z, signs, totals, rows)


def _scored(plain, X, signs, weights, rows, train, test, pairwise: bool) -> np.ndarray:
    """(n, m) scores of the rows `test` by an estimator that is fitted on the rows `train`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OneClassWarning)  # said once, of all rows
        plain.fit(
            _part(X, rows[train], rows[train], pairwise),
            signs[train],
            None if weights is None else weights[train],
        )
    z = np.array(plain._task_scores(_part(X, rows[test], rows[train], pairwise)))
    z[:, plain.one_class_] = np.nan  # tasks that had one class
    return z


def _part(X, rows, columns, pairwise: bool):
    """Rows of X; of a Gram matrix those columns too."""
    return X[np.ix_(rows, columns)] if pairwise else _safe_indexing(X, rows)


# --------------------------------------------------------------------------------------------------------------
# Probabilities from scores, learned on scores of rows that the weights were not fitted on; of any loss.

CALIBRATIONS = ("sigmoid", "isotonic")


def calibrators(held: HeldOutRows, kind: str, factors=None) -> list:
    """One array a task, from score z to P(+1): "sigmoid", (a, b) of a logistic regression, log-odds a z + b; "isotonic", (2, k) the corners of
    the isotonic one, scores above and probabilities below, with straight lines between. None where there are not both classes.

    Both are fitted to Platt's targets, (n_+ + 1) / (n_+ + 2) for a label +1 and 1 / (n_- + 2) for a label -1, instead of 1 and 0: so many
    labels cannot tell that a probability is 0 or 1, and the logarithm of an isotonic one is finite.

    factors : (rows of y, m) what a label counts for, beside its weight

    Source: Platt, "Probabilistic outputs for support vector machines and comparisons to regularized likelihood methods", 1999, section 2.2.
    """
    if kind not in CALIBRATIONS:
        raise ModelError(
            f"calibration={quoted(kind)}", write_instead=f"write None, {' or '.join(map(repr, CALIBRATIONS))}"
        )
    learn = _sigmoid if kind == "sigmoid" else _isotonic
    found = []
    for z, y, w in held.tasks(factors):
        positive = y > 0
        if positive.all() or not positive.any():
            found.append(None)
            continue
        n = w[positive].sum()
        found.append(learn(z, positive, w, 1.0 / (w.sum() - n + 2.0), (n + 1.0) / (n + 2.0)))
    return found


def _sigmoid(z, positive, w, low: float, high: float) -> np.ndarray:
    """A row stands once with either label, by its target."""
    targets = np.where(positive, high, low)
    labels = np.repeat([True, False], len(z))
    fitted = LogisticRegression(C=1e6, solver="newton-cholesky", tol=1e-8).fit(
        np.append(z, z)[:, None], labels, np.append(w * targets, w * (1.0 - targets))
    )
    return np.array([fitted.coef_[0, 0], fitted.intercept_[0]])


def _isotonic(z, positive, w, low: float, high: float) -> np.ndarray:
    """Fitted to labels 0 and 1, then put between the targets: the same, but means of whole numbers are equal to the last bit where they should be."""
    fitted = IsotonicRegression(y_min=0.0, y_max=1.0).fit(z, positive, w)
    return np.stack([fitted.X_thresholds_, low + (high - low) * fitted.y_thresholds_])


def log_odds(calibrators: list, z: np.ndarray) -> np.ndarray:
    """(n, m) log(p / (1 - p)) of the calibrated probabilities of scores z; where a task has no calibrator its score stands for them."""
    found = np.array(z)
    for i, own in enumerate(calibrators):
        if own is None:
            continue
        if own.ndim == 1:
            found[:, i] = own[0] * z[:, i] + own[1]
        else:
            P = np.interp(z[:, i], *own)
            found[:, i] = np.log(P) - np.log1p(-P)
    return found


def cuts_of_scores(calibrators: list, thresholds: np.ndarray | None) -> np.ndarray | None:
    """(m,) the scores z from which on a label is predicted: where the log-odds reach their thresholds, or are above 0 where there are none.

    -inf where it always is, and inf where it never is. None where a task's probability falls as its score rises, which no cut says.

    >>> cuts_of_scores([np.array([2.0, -1.0])], np.array([3.0]))
    array([2.])
    """
    m = len(calibrators)
    low, high = np.full(m, -np.finfo(float).max / 4), np.full(m, np.finfo(float).max / 4)

    def is_predicted(z) -> np.ndarray:
        with np.errstate(over="ignore"):
            found = log_odds(calibrators, z[None, :])[0]
        return found > 0.0 if thresholds is None else found >= thresholds

    at_low, at_high = is_predicted(low), is_predicted(high)
    if (at_low & ~at_high).any():
        return None
    while True:  # halve between them, until no number is left there
        middle = low + (high - low) / 2
        if ((middle == low) | (middle == high)).all():
            break
        above = is_predicted(middle)
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.where(at_low, -np.inf, np.where(at_high, high, np.inf))
