"""Penalties on groups of columns, from their definitions. W: an expression (p, q); the atom tells which columns are a group.

    1/2 sum over groups c of ||W_c||_F^2 / eta_c,   0 <= eta <= 1,   sum eta <= r          (least over eta)

eta are variables beside W. What is least at a given W is found from its condition alone: eta_c = min(1, ||W_c|| / t) for one t.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from .registry import formula

__all__ = ["Shares", "SquaredSum", "Statement", "at", "best_shares"]


def _groups(W, atom) -> list[list[int]]:
    if atom.columns is None:
        return [[column] for column in range(W.shape[1])]
    return [list(group) for group in atom.columns]


def _norms(W, atom) -> cp.Expression:
    return cp.hstack([cp.norm(W[:, group], "fro") for group in _groups(W, atom)])


@formula("column_group_norm")
def column_group_norm(W, atom):
    """sum over groups c of a_c ||W_c||_F"""
    norms = _norms(W, atom)
    return cp.sum(norms) if atom.weights is None else np.broadcast_to(atom.weights, norms.shape) @ norms


class Statement:
    """A penalty of an expression W in variables of its own: `value`, an expression in W and them, with the constraints `ties`."""

    parts = ()  # it splits no weights

    @property
    def expression(self) -> cp.Expression:
        """A convex function of W alone."""
        return self.value + cp.transforms.indicator(self.ties)

    def settle(self) -> None:
        """Give the variables their best values for the value of W."""
        raise NotImplementedError


class SquaredSum(Statement):
    """The squared group norm: 1/2 s^2, s no less than the sum of the norms. With s a variable the backends reach more digits (measured: a
    prox to 2e-9, without it to 9e-7).
    """

    def __init__(self, W: cp.Expression, atom):
        self.sum, self.of_norms = cp.Variable(name="sum of norms"), cp.sum(_norms(W, atom))
        self.value, self.ties = 0.5 * cp.square(self.sum), [self.of_norms <= self.sum]

    def settle(self) -> None:
        self.sum.value = self.of_norms.value


@formula("half_squared_group_norm", own_variables=SquaredSum)
def half_squared_group_norm(W, atom):
    """1/2 (sum over groups c of ||W_c||_F)^2"""
    return at(SquaredSum(W, atom), W)


class Shares(Statement):
    """The k-support penalty: 1/2 sum ||W_c||_F^2 / eta_c. What is left of r is of no use, so that the shares sum to r (measured: with "no
    more than r" Clarabel fails twice as often).
    """

    def __init__(self, W: cp.Expression, atom):
        self.W, self.groups, self.r = W, _groups(W, atom), atom.r
        self.eta = cp.Variable(len(self.groups), nonneg=True, name="shares of groups")
        self.value = 0.5 * sum(
            cp.quad_over_lin(W[:, group], self.eta[c]) for c, group in enumerate(self.groups)
        )
        self.ties = [self.eta <= 1.0, cp.sum(self.eta) == min(self.r, len(self.groups))]

    def settle(self) -> None:
        W = np.asarray(self.W.value, float)
        norms = np.array([np.linalg.norm(W[:, group]) for group in self.groups])
        # of a group that is zero any share is best, and 0 / 0 is none
        self.eta.value = np.maximum(best_shares(norms, self.r), np.finfo(float).tiny)


@formula("half_squared_k_support_norm", own_variables=Shares)
def half_squared_k_support_norm(W, atom):
    """min over eta in [0, 1]^q, sum eta <= r, of 1/2 sum over groups c of ||W_c||_F^2 / eta_c"""
    return at(Shares(W, atom), W)


def at(statement: Statement, W) -> cp.Expression:
    """The penalty of W alone: its value where W is constant."""
    if not (isinstance(W, cp.Expression) and W.is_constant()):
        return statement.expression
    statement.settle()
    return cp.Constant(statement.value.value)


def best_shares(norms, r: float) -> np.ndarray:
    """argmin over eta in [0, 1]^q, sum eta <= r, of 1/2 sum norms^2 / eta: min(1, norms / t), by bisection for the t where the sum is r.

    >>> best_shares(np.array([3.0, 1.0, 1.0, 0.0]), 2)
    array([1. , 0.5, 0.5, 0. ])
    """
    norms = np.asarray(norms, float)
    if np.count_nonzero(norms) <= r:
        return (norms > 0).astype(float)
    a = norms / norms.max()
    low, high = 0.0, a.sum() / r  # of the second the sum is at most r
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if np.minimum(1.0, a / middle).sum() > r else (low, middle)
    return np.minimum(1.0, a / high)
