"""Losses of the scores of all classes of a row, from their definitions. z: scores, all of a class after all of another; y: +1 for the class
of a row, else -1; s: weights of rows, or None."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from .registry import formula

__all__: list[str] = []


def _tables(z, y, atom):
    """(scores (K, n), indicators of the classes (K, n))."""
    true = np.asarray(y, float).reshape(atom.n_classes, -1) > 0
    return cp.reshape(z, true.shape, order="C"), true.astype(float)


def _sum(s, values):
    return cp.sum(values) if s is None else cp.sum(cp.multiply(s, values))


@formula("softmax_loss", of_rows=True, exponential=True)
def softmax_loss(z, y, s, atom):
    """sum over rows of s (log sum_k exp z_k - z_c)"""
    scores, true = _tables(z, y, atom)
    return _sum(s, cp.log_sum_exp(scores, axis=0) - cp.sum(cp.multiply(true, scores), axis=0))


@formula("crammer_singer_loss", of_rows=True)
def crammer_singer_loss(z, y, s, atom):
    """sum over rows of s max_k ([k != c] + z_k - z_c)"""
    scores, true = _tables(z, y, atom)
    return _sum(s, cp.max(scores + (1.0 - true), axis=0) - cp.sum(cp.multiply(true, scores), axis=0))
