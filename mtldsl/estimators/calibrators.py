"""Probabilities from scores, learned on scores of rows that the weights were not fitted on; of any loss."""

from __future__ import annotations

import numpy as np
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from mtldsl.errors import ModelError
from mtldsl.estimators.inner_folds import HeldOut
from mtldsl.values.number import quoted

__all__ = ["CALIBRATIONS", "calibrators", "log_odds"]

CALIBRATIONS = ("sigmoid", "isotonic")


def calibrators(held: HeldOut, kind: str, factors=None) -> list:
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
    weights = held.weights if factors is None else held.weights * factors[held.rows]
    found = []
    for z, y, w in zip(held.z.T, held.signs.T, weights.T, strict=True):
        kept = ~np.isnan(z) & ~np.isnan(y) & (w > 0)
        z, positive, w = z[kept], y[kept] > 0, w[kept]
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
