"""The checker's own formula of the latent group norm, whose value is a minimum: an upper bound of it, by sizes of the groups that are guessed."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from mtldsl.proof.checker.function import Function
from mtldsl.proof.checker.interval import Interval, joined
from mtldsl.proof.checker.not_checked import NotChecked

__all__ = ["LatentGroups"]

#: of the guess: to rounding
_FINE = {"maxiter": 5_000, "maxfun": 10_000, "maxcor": 20, "ftol": 1e-16, "gtol": 1e-14}


class LatentGroups(Function):
    """min over parts V_g of sum over groups g of a_g ||V_g||_F, with W the sum of the V_g, each zero outside of its group.

    With sizes l_g >= 0 of the groups and L_j the sum of those that hold row j, V_g = W_j l_g / L_j are parts, and by the inequality of Cauchy and
    Schwarz sum_g a_g ||V_g|| <= sqrt(sum_g a_g^2 l_g) sqrt(sum_j ||W_j||^2 / L_j): so much is the value at most, for any sizes.
    """

    def read(self, parameters):
        self.groups = [[int(j) for j in group] for group in parameters["groups"]]
        held = {j for group in self.groups for j in group}
        if held != set(range(self.shape[0])) or not all(
            len(set(group)) == len(group) for group in self.groups
        ):
            raise NotChecked("a latent group norm whose groups do not hold every row, or one of them twice")
        weights = parameters.get("weights")
        costs = np.broadcast_to(np.asarray(1.0 if weights is None else weights, float), len(self.groups))
        if not (costs > 0).all():
            raise NotChecked("a latent group norm with a weight that is not positive")
        self.costs = costs
        self.members = np.zeros((self.shape[0], len(self.groups)))
        for g, group in enumerate(self.groups):
            self.members[group, g] = 1.0

    def value(self, W):
        squares = W.square().sum(axis=1)
        used = np.asarray(squares.high) > 0  # rows that are not known to be nothing
        if not used.any():
            return self.number(0.0)
        guess = np.maximum(np.asarray(squares.middle, float)[used], np.finfo(float).tiny)
        sizes = self._sizes(guess, self.members[used])
        held = (self.number(self.members[used]) * self.number(sizes)).sum(axis=1)
        spent = (self.number(self.costs).square() * self.number(sizes)).sum()
        return (spent * (squares[used] / held).sum()).sqrt()

    def _sizes(self, squares: np.ndarray, members: np.ndarray) -> np.ndarray:
        """(groups,) near those with the least sum_g a_g^2 l_g + sum_j squares_j / L_j, found in the roots of the sizes, which no bound holds.
        Every row keeps a group of a positive size."""
        squares, costs = squares / float(squares.max()), self.costs**2

        def value_and_slopes(roots):
            held = members @ np.square(roots)
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # far steps are refused
                value = float(costs @ np.square(roots) + np.sum(squares / held))
                return value, 2.0 * roots * (costs - (squares / held**2) @ members)

        start = np.sqrt(np.sqrt(squares @ members) / self.costs)
        found = minimize(value_and_slopes, start, jac=True, method="L-BFGS-B", options=_FINE).x
        best = found if np.isfinite(found).all() and (members @ np.square(found) > 0.0).all() else start
        return np.square(best)

    def gauge(self, Z) -> Interval:
        squares = Z.square().sum(axis=1)
        parts = [squares[np.asarray(group)].sum().reshape(1) for group in self.groups]
        return (joined(parts).sqrt() / self.number(self.costs)).max()
