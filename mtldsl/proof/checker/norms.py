"""The checker's own formulas of norms."""

from __future__ import annotations

import numpy as np

from mtldsl.proof.checker.function import Function, differences, positive
from mtldsl.proof.checker.interval import Interval, joined
from mtldsl.proof.checker.latent_groups import LatentGroups
from mtldsl.proof.checker.not_checked import NotChecked
from mtldsl.proof.checker.spectral_norms import spectral_norm, trace_norm
from mtldsl.proof.checker.trees import Tree

__all__ = ["NORMS", "CellNorm", "HalfSquaredGroups", "HalfSquaredKSupport", "SquaredTrace"]


class CellNorm(Function):
    """sum over cells of a_c N(W_c); a subclass has `norms`, `dual_norms` and `cells_of`, the weights laid out over the entries."""

    def read(self, parameters):
        weights = parameters.get("weights")
        self.weights = None if weights is None else np.asarray(weights, float)
        if self.weights is not None and not (self.weights >= 0).all():
            raise NotChecked("a norm or ridge with a weight that is not >= 0: not convex")

    def norms(self, W) -> Interval:
        raise NotImplementedError

    def dual_norms(self, Z) -> Interval:
        return self.norms(Z)

    def over_entries(self, per_cell) -> np.ndarray:
        raise NotImplementedError

    @property
    def takes(self):
        if self.weights is None:
            return super().takes
        return np.broadcast_to(self.over_entries(self.weights), self.shape) > 0

    def value(self, W):
        norms = self.norms(W)
        return (
            norms if self.weights is None else norms * self.number(np.broadcast_to(self.weights, norms.shape))
        ).sum()

    def inside(self, Z):
        return Z if self.takes.all() else Z * self.takes.astype(float)

    def gauge(self, Z):
        norms = self.dual_norms(Z)
        if self.weights is None:
            return norms.max()
        weights = np.broadcast_to(self.weights, norms.shape)
        return (norms[weights > 0] / self.number(weights[weights > 0])).max()


class L1(CellNorm):
    def norms(self, W):
        return abs(W)

    def over_entries(self, per_cell):
        return per_cell


class SortedL1(Function):
    """sum over k of a_k |W|_(k), the k-th largest of all entries."""

    def read(self, parameters):
        self.a = np.array(np.broadcast_to(np.asarray(parameters["weights"], float), int(np.prod(self.shape))))
        if not (np.diff(self.a) <= 0).all() or not self.a[-1] >= 0 or not self.a[0] > 0:
            raise NotChecked("sorted_l1_norm with weights that are not descending and >= 0: not convex")

    def _ranked(self, W) -> Interval:
        """Enclosures of the order statistics: the lower ends in order, and the upper ones."""
        size = abs(W).reshape(-1)
        low, high = (np.sort(end)[::-1].copy() for end in (size.low, size.high))
        return Interval(low, high)

    def value(self, W):
        return (self._ranked(W) * self.number(self.a)).sum()

    def gauge(self, Z):
        return (self._ranked(Z).cumsum(0) / self.number(self.a).cumsum(0)).max()


class L21(CellNorm):
    def norms(self, W):
        return W.square().sum(axis=1).sqrt()

    def over_entries(self, per_cell):
        return np.broadcast_to(per_cell, self.shape[0])[:, None]


class L1Inf(L21):
    def norms(self, W):
        return abs(W).max(axis=1)

    def dual_norms(self, Z):
        return abs(Z).sum(axis=1)


class L12(CellNorm):
    def norms(self, W):
        return W.square().sum(axis=0).sqrt()

    def over_entries(self, per_cell):
        return per_cell


class Groups(CellNorm):
    """Groups of rows or columns; those in no group are free."""

    key, axis = "groups", 0

    def read(self, parameters):
        super().read(parameters)
        groups = parameters.get(self.key)
        self.groups = [[j] for j in range(self.shape[self.axis])] if groups is None else groups
        members = [int(j) for group in self.groups for j in group]
        if len(set(members)) < len(members) or not all(0 <= j < self.shape[self.axis] for j in members):
            raise NotChecked("a norm of groups that overlap")

    def norms(self, W):
        sums = W.square().sum(axis=1 - self.axis)
        parts = [sums[np.asarray(group)].sum().reshape(1) for group in self.groups]
        return joined(parts).sqrt()

    def over_entries(self, per_cell):
        line = np.zeros(self.shape[self.axis])
        for group, weight in zip(self.groups, np.broadcast_to(per_cell, len(self.groups)), strict=True):
            line[np.asarray(group)] = weight
        return line[:, None] if self.axis == 0 else line[None, :]

    @property
    def takes(self):
        return (
            np.broadcast_to(self.over_entries(1.0 if self.weights is None else self.weights), self.shape) > 0
        )


class ColumnGroups(Groups):
    key, axis = "columns", 1


class HalfSquaredGroups(ColumnGroups):
    finite_dual = True
    degree = 2

    def value(self, W):
        return self.norms(W).sum().square() * 0.5

    def gauge(self, Z):
        return self.number(0.0)

    def conjugate(self, Z):
        return self.norms(Z).max().square() * 0.5


class HalfSquaredKSupport(HalfSquaredGroups):
    def read(self, parameters):
        super().read(parameters)
        self.r = int(positive(parameters["r"], "a k-support norm with an r"))

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
        a = self.norms(Z)
        squares = Interval(*(np.sort(x)[::-1][: self.r] for x in (a.low, a.high))).square()
        return squares.sum() * 0.5


class Frobenius(Function):
    def value(self, W):
        return W.square().sum().sqrt()

    def gauge(self, Z):
        return self.value(Z)


class Trace(Function):
    def value(self, W):
        return trace_norm(W)

    def gauge(self, Z):
        return spectral_norm(Z)


class SquaredTrace(Function):
    finite_dual = True
    degree = 2

    def read(self, parameters):
        self.trace = self.number(positive(parameters.get("trace", 1.0), "a covariance with a trace"))

    def value(self, W):
        return trace_norm(W).square() / self.trace

    def conjugate(self, Z):
        return spectral_norm(Z).square() * 0.25 * self.trace


class TotalVariation(Function):
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
    "l1_norm": L1, "sorted_l1_norm": SortedL1, "l21_norm": L21, "l12_norm": L12, "l1_inf_norm": L1Inf, "group_norm": Groups,
    "column_group_norm": ColumnGroups, "frobenius_norm": Frobenius, "trace_norm": Trace, "total_variation": TotalVariation,
    "tree_norm": Tree, "latent_group_norm": LatentGroups,
}  # fmt: skip
