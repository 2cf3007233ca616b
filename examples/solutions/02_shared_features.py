"""Solutions of lesson 2, and mistakes that its checks have to notice."""

import numpy as np


def prox_of_row(row, step):
    """x = t row with ||row|| - step = ||x||; where that is negative, the kink at 0 wins."""
    length = np.linalg.norm(row)
    return np.zeros_like(row) if length <= step else (1 - step / length) * row


prox_of_row.mistakes = [
    lambda row, step: np.sign(row) * np.maximum(np.abs(row) - step, 0),
    lambda row, step: (1 - step / max(np.linalg.norm(row), 1e-300)) * row,
    lambda row, step: row / (1 + step),
]


def critical_l1(pull):
    """Entry by entry: no pull may be stronger than the kink of its own entry."""
    return np.abs(pull).max()


critical_l1.mistakes = [
    lambda pull: pull.max(),
    lambda pull: np.linalg.norm(pull, axis=1).max(),
    lambda pull: np.abs(pull).sum(),
]


def feasible(residuals, inputs, lam):
    """Scaled until the longest row of [X_i'u_i] is lam long."""
    rows = np.column_stack([X.T @ r for X, r in zip(inputs, residuals, strict=True)])
    scale = min(1.0, lam / np.linalg.norm(rows, axis=1).max())
    return [scale * r for r in residuals]


def _by_entries(residuals, inputs, lam):
    largest = max(np.abs(X.T @ r).max() for X, r in zip(inputs, residuals, strict=True))
    return [min(1.0, lam / largest) * r for r in residuals]


feasible.mistakes = [
    lambda residuals, inputs, lam: residuals,
    lambda residuals, inputs, lam: [0.0 * r for r in residuals],
    _by_entries,
]
