"""Data made to order, in the units that raw data come in: columns of unequal scale and place.

Each maker takes (n, d, m, seed, labels) and returns (X, Y): few rows of the true weights count, the noise is a third of the signal.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

__all__ = ["autoregressive", "duplicates", "ill_conditioned", "imbalanced", "missing", "separate", "sparse"]


def autoregressive(n, d, m, seed, labels=False):
    """Neighbouring columns correlate by .9."""
    rng = np.random.default_rng(seed)
    X = _ar(rng, n, d)
    return _units(X, rng), _answers(X, m, rng, labels)


def duplicates(n, d, m, seed, labels=False):
    """A third of the columns are exact copies of others."""
    rng = np.random.default_rng(seed)
    X = _ar(rng, n, d, 0.3)
    copies = rng.permutation(d)
    third = d // 3
    Z = _answers(X, m, rng, labels)
    X = _units(X, rng)
    X[:, copies[:third]] = X[:, copies[third : 2 * third]]
    return X, Z


def ill_conditioned(n, d, m, seed, labels=False):
    """Singular values fall from 1 to 1e-4."""
    rng = np.random.default_rng(seed)
    X = _ar(rng, n, d, 0.5)
    U, _, Vt = np.linalg.svd(X, full_matrices=False)
    X = np.sqrt(n) * (U * np.logspace(0, -4, min(n, d))) @ Vt
    return _units(X, rng), _answers(X, m, rng, labels)


def imbalanced(n, d, m, seed, labels=True):
    """Labels of which 4 to 30 % are positive, over correlated columns with heavy tails."""
    rng = np.random.default_rng(seed)
    X = _ar(rng, n, d, 0.6)
    Z = _answers(X, m, rng, False, noise=0.8)
    shares = np.linspace(0.04, 0.3, m)
    Y = np.column_stack(
        [np.where(z > np.quantile(z, 1 - s), 1.0, -1.0) for z, s in zip(Z.T, shares, strict=True)]
    )
    return _units(np.sign(X) * np.abs(X) ** 1.5, rng), Y


def missing(n, d, m, seed, labels=False, share=0.3):
    """A share of the labels is missing; each task keeps some of either sign."""
    rng = np.random.default_rng(seed)
    X = _ar(rng, n, d, 0.5)
    Y = _answers(X, m, rng, labels)
    hole = rng.random(Y.shape) < share
    hole[:20] = False
    return _units(X, rng), np.where(hole, np.nan, Y)


def separate(n, d, m, seed, labels=False):
    """Every task has rows of its own, from a fourth to seven fourths of n / m; the n rows in all are nearly met."""
    rng = np.random.default_rng(seed)
    lengths = (np.linspace(0.25, 1.75, m) * n / m).astype(int).clip(8)
    W = _weights(d, m, rng)
    X = [_ar(rng, rows, d, 0.5) for rows in lengths]
    Y = [_noisy((each @ w)[:, None], rng, labels)[:, 0] for each, w in zip(X, W.T, strict=True)]
    scale, place = 10.0 ** rng.uniform(-1.5, 1.5, d), rng.normal(size=d)
    return [(each + place) * scale for each in X], Y


def sparse(n, d, m, seed, labels=False, density=0.01):
    """CSR with counts, some columns far more frequent than others, as words are."""
    rng = np.random.default_rng(seed)
    frequency = 1.0 / (np.arange(1, d + 1) + 5.0) ** 0.7
    frequency *= density * d / frequency.sum()
    per_column = rng.binomial(n, frequency.clip(max=0.5)).clip(1)
    rows = np.concatenate([rng.choice(n, k, replace=False) for k in per_column])
    columns = np.repeat(np.arange(d), per_column)
    values = 1.0 + rng.poisson(0.7, len(rows))
    X = sp.csr_matrix((values, (rows, columns)), shape=(n, d))
    W = np.zeros((d, m))
    used = rng.choice(d, min(d, max(10, d // 20)), replace=False)
    W[used] = rng.normal(size=(len(used), m))
    return X, _noisy(X @ W, rng, labels)


# ---------------------------------------------------------------------------------------------- the pieces


def _ar(rng, n, d, correlation=0.9):
    X = rng.normal(size=(n, d))
    for j in range(1, d):
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1 - correlation**2) * X[:, j]
    return X


def _units(X, rng):
    """Columns as a questionnaire or a sensor has them: scales from .03 to 30, means of some standard deviations."""
    d = X.shape[1]
    return (X + rng.normal(size=d)) * 10.0 ** rng.uniform(-1.5, 1.5, d)


def _weights(d, m, rng):
    W = np.zeros((d, m))
    used = rng.choice(d, max(3, min(d // 8, 40)), replace=False)
    W[used] = rng.normal(size=(len(used), 1)) + rng.normal(size=(len(used), m))
    return W


def _answers(X, m, rng, labels, noise=1 / 3):
    return _noisy(X @ _weights(X.shape[1], m, rng), rng, labels, noise)


def _noisy(Z, rng, labels, noise=1 / 3):
    Z = Z + noise * rng.normal(size=Z.shape) * (Z.std() or 1.0)
    return np.where(np.median(Z, axis=0) < Z, 1.0, -1.0) if labels else Z
