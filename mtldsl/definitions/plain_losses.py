"""Losses. z: predictions, y: labels; of "samples" any arrays of one shape, and what comes back is weighted and added up."""

from __future__ import annotations

import numpy as np

from mtldsl.definitions.formula import defined

__all__: list[str] = []


@defined("squared_loss", "samples")
def squared_loss(z, y, atom):
    """(z - y)^2 / 2"""
    return 0.5 * np.square(z - y)


@defined("sum_of_squares", "samples")
def sum_of_squares(z, y, atom):
    """(z - y)^2"""
    return np.square(z - y)


@defined("square_root_loss", "samples", of_sum=lambda total, atom: np.sqrt(total + atom.eps**2))
def square_root_loss(z, y, atom):
    """(z - y)^2, of every task's sum the root"""
    return np.square(z - y)


@defined("absolute_loss", "samples")
def absolute_loss(z, y, atom):
    """|z - y|"""
    return np.abs(z - y)


@defined("quantile_loss", "samples")
def quantile_loss(z, y, atom):
    """q (y - z) where the label is above, (1 - q) (z - y) below"""
    return np.where(y > z, atom.q, atom.q - 1.0) * (y - z)


@defined("huber_loss", "samples")
def huber_loss(z, y, atom):
    """r^2 / 2 up to delta, then delta (r - delta / 2), r = |z - y|"""
    r, delta = np.abs(z - y), atom.delta
    return np.where(r <= delta, 0.5 * np.square(np.minimum(r, delta)), delta * (r - 0.5 * delta))


@defined("hinge_loss", "samples")
def hinge_loss(z, y, atom):
    """(1 - y z)_+"""
    return np.maximum(1.0 - y * z, 0.0)


@defined("squared_hinge_loss", "samples")
def squared_hinge_loss(z, y, atom):
    """(1 - y z)_+^2"""
    return np.square(np.maximum(1.0 - y * z, 0.0))


@defined("logistic_loss", "samples")
def logistic_loss(z, y, atom):
    """log(1 + exp(-y z))"""
    return np.logaddexp(0.0, -y * z)


@defined("exponential_loss", "samples")
def exponential_loss(z, y, atom):
    """exp(-y z)"""
    return np.exp(-y * z)


@defined("poisson_loss", "samples", size=lambda z, y, atom: np.exp(z) + np.abs(y * z))
def poisson_loss(z, y, atom):
    """exp(z) - y z"""
    return np.exp(z) - y * z


@defined(
    "gamma_loss", "samples", size=lambda z, y, atom: y * np.exp(-z) + np.abs(z) + np.abs(np.log(y)) + 1.0
)
def gamma_loss(z, y, atom):
    """y exp(-z) + z - log y - 1, which is e^t - t - 1 with t = log y - z"""
    t = np.log(y) - z
    return np.expm1(t) - t


def _largest(scores, true, atom):
    return 1.0 + np.abs(scores).max(axis=1)


@defined("softmax_loss", "classes", size=_largest)
def softmax_loss(scores, true, atom):
    """log sum_k exp z_k - z_c"""
    others = scores - np.take_along_axis(scores, true[:, None], 1)
    return np.logaddexp.reduce(others, axis=1)


@defined("crammer_singer_loss", "classes", size=_largest)
def crammer_singer_loss(scores, true, atom):
    """max_k [k != c] + z_k - z_c"""
    others = 1.0 + scores - np.take_along_axis(scores, true[:, None], 1)
    np.put_along_axis(others, true[:, None], 0.0, 1)
    return others.max(axis=1)
