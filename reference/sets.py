"""The sets, from their definitions, as lists of cvxpy constraints on W, an expression (p, q)."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from .registry import formula, formula_of


def _bounded(W, bound):
    """The entries of W and of the bound where there is one: an infinite bound is not a bound."""
    bound = np.broadcast_to(np.asarray(bound, float), W.shape)
    if np.all(np.isfinite(bound)):
        return W, bound
    where = np.flatnonzero(np.isfinite(bound).ravel(order="F"))
    return cp.vec(W, order="F")[where], bound.ravel(order="F")[where]


@formula("at_least")
def at_least(W, atom):
    """W >= bound, entry by entry"""
    W, bound = _bounded(W, atom.bound)
    return [bound <= W] if bound.size else []


@formula("at_most")
def at_most(W, atom):
    """W <= bound, entry by entry"""
    W, bound = _bounded(W, atom.bound)
    return [bound >= W] if bound.size else []


@formula("equal_to")
def equal_to(W, atom):
    """W = value, entry by entry"""
    return [np.broadcast_to(np.asarray(atom.bound, float), W.shape) == W]


@formula("norm_ball")
def norm_ball(W, atom):
    """the norm, by its own definition, <= radius"""
    return [formula_of(atom.of.name, atom.of.name)(W, atom.of) <= atom.radius]


@formula("columns_on_simplex")
def columns_on_simplex(W, atom):
    """every column >= 0 and with sum total"""
    return [W >= 0, cp.sum(W, axis=0) == atom.total]
