"""The checker's formulas of norms: entries, rows, groups, trees, spectra and total variation."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.optimize import minimize

from mtldsl.certificates.checker.function import FunctionFormula, UnsupportedFormula, differences
from mtldsl.certificates.checker.interval import (
    Interval,
    falling,
    join_intervals,
    maximum,
    spectral_norm,
    trace_norm,
)
from mtldsl.certificates.checker.limits import SETTINGS

# --------------------------------------------------------------------------------------------------------------
# The checker's own formula of the latent group norm, whose value is a minimum: an upper bound of it, by sizes of the groups that are guessed.

#: of the guess: to rounding
_FINE = {"maxiter": 5_000, "maxfun": 10_000, "maxcor": 20, "ftol": 1e-16, "gtol": 1e-14}


class LatentGroupsFormula(FunctionFormula):
    """min over parts V_g of sum over groups g of a_g ||V_g||_F, with W the sum of the V_g, each zero outside of its group.

    With sizes l_g >= 0 of the groups and L_j the sum of those that hold row j, V_g = W_j l_g / L_j are parts, and by the inequality of Cauchy and
    Schwarz sum_g a_g ||V_g|| <= sqrt(sum_g a_g^2 l_g) sqrt(sum_j ||W_j||^2 / L_j): so much is the value at most, for any sizes.
    """

    def read(self, parameters):
        self.groups = [[int(j) for j in group] for group in parameters["groups"]]
        held = {j for group in self.groups for j in group}
        if held != set(range(self.shape[0])):
            raise UnsupportedFormula("a latent group norm whose groups do not hold every row")
        weights = parameters.get("weights")
        costs = np.broadcast_to(np.asarray(1.0 if weights is None else weights, float), len(self.groups))
        if not (costs > 0).all():
            raise UnsupportedFormula("a latent group norm with a weight that is not positive")
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
        return (join_intervals(parts).sqrt() / self.number(self.costs)).max()


# --------------------------------------------------------------------------------------------------------------
# The checker's own formula of the norm of a tree of groups.


class TreeFormula(FunctionFormula):
    """sum over groups g of a_g ||W[g, :]||_F, or over all rows j too of a_g ||W[j, g]||_2; of two groups one holds the other, or they are apart.

    Z is in t times the dual ball iff nothing is left of it when every group, leaves first, is shortened by t a_g.
    """

    def read(self, parameters):
        rows, columns, weights = (parameters.get(key) for key in ("rows", "columns", "weights"))
        self.axis, groups = (1, columns) if rows is None else (0, rows)
        self.groups = [[int(line) for line in group] for group in groups]
        self.a = np.broadcast_to(np.asarray(1.0 if weights is None else weights, float), len(self.groups))
        self.order  # noqa: B018 (raises where groups cross)

    @cached_property
    def order(self) -> list[tuple[int, list[int], list[int]]]:
        """(a group, the largest groups inside it, its lines that are in none of these), leaves first; groups of weight 0 shorten nothing."""
        found, top = [], {}
        weighted = np.flatnonzero(self.a > 0).tolist()
        for g in sorted(weighted, key=lambda g: len(self.groups[g])):
            inside = sorted({top[line] for line in self.groups[g] if line in top})
            if any(not set(self.groups[h]) <= set(self.groups[g]) for h in inside):
                raise UnsupportedFormula("tree_norm of groups that overlap, neither of them inside the other")
            found.append((g, inside, [line for line in self.groups[g] if line not in top]))
            top.update(dict.fromkeys(self.groups[g], g))
        return found

    @property
    def takes(self):
        lines = np.zeros(self.shape[self.axis], dtype=bool)
        for group, weight in zip(self.groups, self.a, strict=True):
            lines[group] |= weight > 0
        return np.broadcast_to(lines[:, None] if self.axis == 0 else lines, self.shape)

    def _squares(self, W) -> Interval:
        """(lines, rows that are apart): one of these where the lines are rows."""
        squares = W.square()
        return squares.sum(axis=1).reshape(-1, 1) if self.axis == 0 else squares.T

    def value(self, W):
        squares = self._squares(W)
        norms = [squares[np.asarray(group)].sum(axis=0).sqrt().sum().reshape(1) for group in self.groups]
        return (join_intervals(norms) * self.number(self.a)).sum()

    def gauge(self, Z):
        middle = Z.middle
        floats = np.square(middle).sum(axis=1)[:, None] if self.axis == 0 else np.square(middle).T
        high = float(np.abs(middle).sum()) / float(self.a[self.a > 0].min(initial=np.inf))
        low, exact = 0.0, self._squares(Z)
        for _ in range(SETTINGS.level_halvings):
            between = 0.5 * (low + high)
            low, high = (low, between) if self._is_short(floats, between) else (between, high)
        step = np.spacing(high)
        while not self._is_held(exact, high):
            high, step = high + step, 2.0 * step
            if not np.isfinite(high):
                raise UnsupportedFormula("tree_norm of multipliers too large for its dual norm")
        return self.number(high)

    def _is_short(self, squares: np.ndarray, t: float) -> bool:
        """Tell whether nothing is left at t, in floats: a guess, four times faster than in intervals."""
        left: dict[int, np.ndarray] = {}
        for g, inside, own in self.order:
            rest = squares[own].sum(axis=0) + sum(left.pop(h) for h in inside)
            left[g] = np.square(np.maximum(np.sqrt(rest) - t * self.a[g], 0.0))
        return not any(np.any(rest) for rest in left.values())

    def _is_held(self, squares: Interval, t: float) -> bool:
        """Tell whether nothing is left at t."""
        left: dict[int, Interval] = {}
        for g, inside, own in self.order:
            rest = squares[np.asarray(own, dtype=int)].sum(axis=0)
            for h in inside:
                rest = rest + left.pop(h).square()
            # not its square: that of an interval at zero has an end above zero
            left[g] = maximum(rest.sqrt() - rest.like(t) * rest.like(self.a[g]), 0.0)
        return all(np.all(norm.high <= 0) for norm in left.values())  # NaN is not


# --------------------------------------------------------------------------------------------------------------
# The checker's own formulas of norms.


class CellNormFormula(FunctionFormula):
    """sum over cells of a_c N(W_c); a subclass has `norms`, `dual_norms` and `cells_of`, the weights laid out over the entries."""

    def read(self, parameters):
        weights = parameters.get("weights")
        self.weights = None if weights is None else np.asarray(weights, float)

    def norms(self, W) -> Interval:
        raise NotImplementedError

    def dual_norms(self, Z) -> Interval:
        return self.norms(Z)

    def over_entries(self, per_cell):
        """Numbers of cells laid out over their entries, each of which is one unless a subclass says other."""
        return per_cell

    @property
    def takes(self):
        weights = 1.0 if self.weights is None else self.weights
        return np.broadcast_to(self.over_entries(weights), self.shape) > 0

    def value(self, W):
        norms = self.norms(W)
        return (
            norms if self.weights is None else norms * self.number(np.broadcast_to(self.weights, norms.shape))
        ).sum()

    def gauge(self, Z):
        if self.degree == 2:
            return self.number(0.0)
        norms = self.dual_norms(Z)
        if self.weights is None:
            return norms.max()
        weights = np.broadcast_to(self.weights, norms.shape)
        return (norms[weights > 0] / self.number(weights[weights > 0])).max()


class L1Formula(CellNormFormula):
    def norms(self, W):
        return abs(W)


class SortedL1Formula(FunctionFormula):
    """sum over k of a_k |W|_(k), the k-th largest of all entries."""

    def read(self, parameters):
        self.a = np.array(np.broadcast_to(np.asarray(parameters["weights"], float), int(np.prod(self.shape))))
        if not (np.diff(self.a) <= 0).all() or not self.a[0] > 0:
            raise UnsupportedFormula(
                "sorted_l1_norm with weights that are not descending and >= 0: not convex"
            )

    def value(self, W):
        return (falling(abs(W).reshape(-1)) * self.number(self.a)).sum()

    def gauge(self, Z):
        return (falling(abs(Z).reshape(-1)).cumsum(0) / self.number(self.a).cumsum(0)).max()


class GroupsFormula(CellNormFormula):
    """Groups of rows or columns, or each by itself; those in no group are free."""

    key, axis = "groups", 0

    def read(self, parameters):
        super().read(parameters)
        self.groups = parameters.get(self.key)
        members = [int(j) for group in self.groups or () for j in group]
        if len(set(members)) < len(members):
            raise UnsupportedFormula("a norm of groups that overlap")

    def norms(self, W):
        sums = W.square().sum(axis=1 - self.axis)
        if self.groups is not None:
            sums = join_intervals(sums[np.asarray(group)].sum().reshape(1) for group in self.groups)
        return sums.sqrt()

    def over_entries(self, per_cell):
        line = np.broadcast_to(per_cell, self.shape[self.axis] if self.groups is None else len(self.groups))
        if self.groups is not None:
            weights, line = line, np.zeros(self.shape[self.axis])
            for group, weight in zip(self.groups, weights, strict=True):
                line[np.asarray(group)] = weight
        return line[:, None] if self.axis == 0 else line[None, :]


class L1InfFormula(GroupsFormula):
    def norms(self, W):
        return abs(W).max(axis=1)

    def dual_norms(self, Z):
        return abs(Z).sum(axis=1)


class ColumnGroupsFormula(GroupsFormula):
    key, axis = "columns", 1


class ExclusiveLassoFormula(GroupsFormula):
    """sum over groups g of rows of (sum of |W_g|)^2"""

    finite_dual = True
    degree = 2

    def read(self, parameters):
        super().read(parameters)
        if not self.takes.all():
            raise UnsupportedFormula("exclusive_lasso of groups that do not hold every row")

    def _over_groups(self, rows: Interval, function) -> Interval:
        """One number for each group, of one a row."""
        groups = [[j] for j in range(self.shape[0])] if self.groups is None else self.groups
        return join_intervals(function(rows[np.asarray(group)]).reshape(1) for group in groups)

    def value(self, W):
        return self._over_groups(abs(W).sum(axis=1), lambda sums: sums.sum()).square().sum()

    def conjugate(self, Z):
        return self._over_groups(abs(Z).max(axis=1), lambda tops: tops.max()).square().sum() * 0.25


class HalfSquaredGroupsFormula(ColumnGroupsFormula):
    finite_dual = True
    degree = 2

    def value(self, W):
        return self.norms(W).sum().square() * 0.5

    def conjugate(self, Z):
        return self.norms(Z).max().square() * 0.5


class HalfSquaredKSupportFormula(HalfSquaredGroupsFormula):
    def read(self, parameters):
        super().read(parameters)
        self.r = parameters["r"]

    def value(self, W):
        """The least over p of (sum of the p largest squares + (sum of the others)^2 / (r - p)) / 2 is above it at every p."""
        a = self.norms(W)
        order = np.argsort(-a.middle)
        a = a[order]
        if a.shape[0] <= self.r:
            return a.square().sum() * 0.5
        tops = [a[:p].square().sum() + a[p:].sum().square() / float(self.r - p) for p in range(self.r)]
        # p leading norms with eta = 1 and the others sharing r - p in proportion: allowed where none of these shares is above 1
        allowed = [
            top
            for p, top in enumerate(tops)
            if (a[p:].max() * float(self.r - p) - a[p:].sum()).high <= 0
            or p == self.r - 1
            or not a[p:].high.any()
        ]
        best = min(allowed, key=lambda top: float(top.high))
        return best * 0.5

    def conjugate(self, Z):
        return falling(self.norms(Z))[: self.r].square().sum() * 0.5


class FrobeniusFormula(FunctionFormula):
    def value(self, W):
        return W.square().sum().sqrt()

    def gauge(self, Z):
        return self.value(Z)


class TraceFormula(FunctionFormula):
    def value(self, W):
        return trace_norm(W)

    def gauge(self, Z):
        return spectral_norm(Z)


class SpectralFormula(FunctionFormula):
    def value(self, W):
        return spectral_norm(W)

    def gauge(self, Z):
        return trace_norm(Z)


class SquaredTraceFormula(FunctionFormula):
    finite_dual = True
    degree = 2

    def read(self, parameters):
        self.trace = self.number(float(parameters.get("trace", 1.0)))

    def value(self, W):
        return trace_norm(W).square() / self.trace

    def conjugate(self, Z):
        return spectral_norm(Z).square() * 0.25 * self.trace


class TotalVariationFormula(FunctionFormula):
    takes = property(lambda self: np.zeros(self.shape, dtype=bool))

    def span(self, row):
        return differences(self.shape[1])

    def value(self, W):
        return abs(W[:, 1:] - W[:, :-1]).sum() if self.shape[1] > 1 else self.number(0.0)

    def inside(self, Z):
        """The last column makes every row sum to 0."""
        return Z.with_entries((slice(None), -1), -Z[:, :-1].sum(axis=1)) if self.shape[1] > 1 else Z * 0.0

    def gauge(self, Z):
        return abs(Z[:, :-1].cumsum(axis=1)).max() if self.shape[1] > 1 else self.number(0.0)


#: word -> its class, of the norms and seminorms; balls are of these
NORMS = {
    "l1_norm": L1Formula, "sorted_l1_norm": SortedL1Formula, "l21_norm": GroupsFormula, "l12_norm": ColumnGroupsFormula, "l1_inf_norm": L1InfFormula, "group_norm": GroupsFormula,
    "column_group_norm": ColumnGroupsFormula, "frobenius_norm": FrobeniusFormula, "trace_norm": TraceFormula, "spectral_norm": SpectralFormula, "total_variation": TotalVariationFormula,
    "tree_norm": TreeFormula, "latent_group_norm": LatentGroupsFormula,
}  # fmt: skip
