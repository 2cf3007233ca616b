"""The sets, from their definitions, as lists of cvxpy constraints on W, an expression (p, q)."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from .registry import formula


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


@formula("l1_ball")
def l1_ball(W, atom):
    """sum over entries of |W| <= radius"""
    return [cp.sum(cp.abs(W)) <= atom.radius]


@formula("l21_ball")
def l21_ball(W, atom):
    """sum over rows of ||row||_2 <= radius"""
    return [cp.sum(cp.norm(W, 2, axis=1)) <= atom.radius]


@formula("trace_norm_ball", semidefinite=True)
def trace_norm_ball(W, atom):
    """sum of the singular values <= radius"""
    return [cp.normNuc(W) <= atom.radius]


@formula("frobenius_ball")
def frobenius_ball(W, atom):
    """sqrt(sum over entries of W^2) <= radius"""
    return [cp.norm(W, "fro") <= atom.radius]


@formula("columns_on_simplex")
def columns_on_simplex(W, atom):
    """every column >= 0 and with sum total"""
    return [W >= 0, cp.sum(W, axis=0) == atom.total]
