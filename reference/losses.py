"""The losses, from their definitions in cvxpy.

z: predictions (n,), y: targets, s: weights or None, r = z - y.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from mtldsl.reference.registry import formula


def weighted_sum(s, values):
    """The sum of values, each times its weight; None: of weights that are all 1."""
    return cp.sum(values) if s is None else cp.sum(cp.multiply(s, values))


def _times_root(s, values):
    """Turns a sum of squares of `values` into one with weights s."""
    return values if s is None else cp.multiply(np.sqrt(s), values)


@formula("squared_loss", sum_over_samples=True)
def squared_loss(z, y, s, atom):
    """1/2 sum s r^2"""
    return 0.5 * cp.sum_squares(_times_root(s, z - y))


@formula("sum_of_squares", sum_over_samples=True)
def sum_of_squares(z, y, s, atom):
    """sum s r^2"""
    return cp.sum_squares(_times_root(s, z - y))


@formula("square_root_loss")
def square_root_loss(z, y, s, atom):
    """sqrt(sum s r^2 + eps^2)"""
    scaled = _times_root(s, z - y)
    return cp.norm2(cp.hstack([scaled, atom.eps]) if atom.eps else scaled)


@formula("absolute_loss", sum_over_samples=True)
def absolute_loss(z, y, s, atom):
    """sum s |r|"""
    return weighted_sum(s, cp.abs(z - y))


@formula("quantile_loss", sum_over_samples=True)
def quantile_loss(z, y, s, atom):
    """sum s max(q (y - z), (q - 1) (y - z))"""
    return weighted_sum(s, cp.maximum(atom.q * (y - z), (atom.q - 1.0) * (y - z)))


@formula("epsilon_insensitive_loss", sum_over_samples=True)
def epsilon_insensitive_loss(z, y, s, atom):
    """sum s max(0, |r| - epsilon)"""
    return weighted_sum(s, cp.pos(cp.abs(z - y) - atom.epsilon))


@formula("huber_loss", sum_over_samples=True)
def huber_loss(z, y, s, atom):
    """sum s (r^2 / 2 where |r| <= delta, else delta |r| - delta^2 / 2); cvxpy's huber is twice that"""
    return weighted_sum(s, 0.5 * cp.huber(z - y, atom.delta))


@formula("hinge_loss", sum_over_samples=True)
def hinge_loss(z, y, s, atom):
    """sum s max(0, 1 - y z)"""
    return weighted_sum(s, cp.pos(1.0 - cp.multiply(y, z)))


@formula("squared_hinge_loss", sum_over_samples=True)
def squared_hinge_loss(z, y, s, atom):
    """sum s max(0, 1 - y z)^2"""
    return cp.sum_squares(_times_root(s, cp.pos(1.0 - cp.multiply(y, z))))


@formula("logistic_loss", sum_over_samples=True, exponential=True)
def logistic_loss(z, y, s, atom):
    """sum s log(1 + exp(-y z))"""
    return weighted_sum(s, cp.logistic(-cp.multiply(y, z)))


@formula("poisson_loss", sum_over_samples=True, exponential=True)
def poisson_loss(z, y, s, atom):
    """sum s (exp(z) - y z)"""
    return weighted_sum(s, cp.exp(z) - cp.multiply(y, z))


@formula("exponential_loss", sum_over_samples=True, exponential=True)
def exponential_loss(z, y, s, atom):
    """sum s exp(-y z)"""
    return weighted_sum(s, cp.exp(-cp.multiply(y, z)))


@formula("gamma_loss", sum_over_samples=True, exponential=True)
def gamma_loss(z, y, s, atom):
    """sum s (y exp(-z) + z - log y - 1)"""
    return weighted_sum(s, cp.multiply(y, cp.exp(-z)) + z - (np.log(y) + 1.0))


@formula("cox_loss", exponential=True)
def cox_loss(z, y, s, atom):
    """sum over events j of s_j (log sum_{k: |y_k| >= y_j} s_k exp(z_k) - z_j), one logarithm for all events of a time"""
    weights = np.ones(len(y)) if s is None else np.asarray(s, float)
    events = np.where(y > 0, weights, 0.0)
    total = -cp.sum(cp.multiply(events, z))
    for t in np.unique(y[y > 0]):
        at_risk = np.flatnonzero(np.abs(y) >= t)
        total += events[y == t].sum() * cp.log_sum_exp(z[at_risk] + np.log(weights[at_risk]))
    return total


# --------------------------------------------------------------------------------------------------------------
# Losses of the scores of all classes of a row, from their definitions. z: scores, all of a class after all of another; y: +1 for the class
# of a row, else -1; s: weights of rows, or None.


def _tables(z, y, atom):
    """(scores (K, n), indicators of the classes (K, n))."""
    true = np.asarray(y, float).reshape(atom.n_classes, -1) > 0
    return cp.reshape(z, true.shape, order="C"), true.astype(float)


@formula("softmax_loss", of_rows=True, exponential=True)
def softmax_loss(z, y, s, atom):
    """sum over rows of s (log sum_k exp z_k - z_c)"""
    scores, true = _tables(z, y, atom)
    return weighted_sum(s, cp.log_sum_exp(scores, axis=0) - cp.sum(cp.multiply(true, scores), axis=0))


@formula("crammer_singer_loss", of_rows=True)
def crammer_singer_loss(z, y, s, atom):
    """sum over rows of s max_k ([k != c] + z_k - z_c)"""
    scores, true = _tables(z, y, atom)
    return weighted_sum(s, cp.max(scores + (1.0 - true), axis=0) - cp.sum(cp.multiply(true, scores), axis=0))
