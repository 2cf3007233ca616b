"""Sets: how far W (p, q) is outside, in the units typed."""

from __future__ import annotations

import numpy as np

from mtldsl.definitions.formula import defined
from mtldsl.definitions.plain_spectra import singular_values

__all__ = ["above", "apart"]


def above(W, bound):
    """Return the largest W - bound, or 0."""
    with np.errstate(invalid="ignore"):
        return np.max(W - bound, initial=0.0)


def apart(W, value):
    """Return the largest |W - value|."""
    return np.max(np.abs(W - value), initial=0.0)


@defined("at_least", "set")
def at_least(W, atom):
    """bound - W"""
    return above(-W, -np.asarray(atom.bound))


@defined("at_most", "set")
def at_most(W, atom):
    """W - bound"""
    return above(W, atom.bound)


@defined("equal_to", "set")
def equal_to(W, atom):
    """|W - bound|"""
    return apart(W, atom.bound)


@defined("columns_on_simplex", "set")
def columns_on_simplex(W, atom):
    """-W, and |sum of a column - total|"""
    return max(above(-W, 0.0), apart(W.sum(axis=0), atom.total))


@defined("rank_at_most", "set")
def rank_at_most(W, atom):
    """the norm of the singular values beyond the rank"""
    return np.sqrt(np.sum(np.square(singular_values(W)[int(atom.radius) :])))
