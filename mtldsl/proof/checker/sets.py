"""The checker's own formulas of constraints."""

from __future__ import annotations

import numpy as np

from mtldsl.proof.checker.function import Function, positive
from mtldsl.proof.checker.interval import Interval, maximum
from mtldsl.proof.checker.norms import NORMS
from mtldsl.proof.checker.not_checked import NotChecked

__all__ = ["AtLeast", "AtMost", "Ball", "EqualTo", "Simplex"]


class Ball(Function):
    is_set, shrinks = True, True

    def read(self, parameters):
        self.radius = self.number(positive(parameters["radius"], "a ball with a radius", 0.0))
        of = parameters["of"]
        if of["word"] not in NORMS:
            raise NotChecked(f"a ball of {of['word']}")
        self.of = NORMS[of["word"]](of["parameters"], self.shape, self.exact)

    @property
    def takes(self):
        return self.of.takes

    @property
    def finite_dual(self):
        return bool(np.all(self.takes))

    @property
    def is_spanned(self):
        return self.of.is_spanned

    def span(self, row):
        return self.of.span(row)

    def inside(self, Z):
        return self.of.inside(Z)

    def violation(self, W):
        return maximum(self.of.value(W) - self.radius, 0.0)

    def repaired(self, W):
        size = self.of.value(W)
        if size.high <= self.radius.low:
            return W
        most = W.like(0.0) + Interval(size.high, size.high)  # a number that the norm is not above
        return W * (self.radius / most)

    def conjugate(self, Z):
        return self.of.gauge(Z) * self.radius


class Comparison(Function):
    is_set, is_cone_free = True, False
    side = 0.0

    def read(self, parameters):
        bound = np.broadcast_to(np.asarray(parameters["bound"], float), self.shape)
        self.there = np.isfinite(bound)
        self.bound = self.number(np.where(self.there, bound, 0.0))
        self.cone = not bound[self.there].any()

    @property
    def shrinks(self):
        return self.cone or bool(np.all(np.asarray(self.bound.low * self.side <= 0)))

    @property
    def takes(self):
        """Where multipliers are not 0, they may be changed a little."""
        return self.not_zero

    def inside(self, Z):
        """Multipliers of W >= bound are <= 0, of W <= bound >= 0, and 0 where there is no bound."""
        Z = -maximum(-Z, 0.0) if self.side > 0 else maximum(Z, 0.0)
        self.not_zero = (
            self.there & ~np.asarray(self.left_out, bool) & np.asarray((Z.low > 0) | (Z.high < 0), bool)
        )
        return Z.like(np.zeros(self.shape)).with_entries(self.not_zero, Z[self.not_zero])

    def out_of_cone(self, Z):
        return self.not_zero & ~np.asarray(Z.high <= 0 if self.side > 0 else Z.low >= 0, bool)

    def conjugate(self, Z):
        return (Z * self.bound).sum()

    def violation(self, W):
        missing = (self.bound - W) * self.side
        inside = (W.high <= self.bound.low) if self.side < 0 else (W.low >= self.bound.high)
        outside = self.there & ~np.asarray(inside, bool)
        return maximum(missing[outside], 0.0).max()

    def repaired(self, W):
        over = maximum((self.bound - W) * self.side, 0.0) * self.there.astype(float)
        return W + over * self.side if over.high.any() else W


class AtLeast(Comparison):
    side = 1.0


class AtMost(Comparison):
    side = -1.0


class EqualTo(Comparison):
    finite_dual = is_cone_free = True
    shrinks = property(lambda self: self.cone)
    takes = Function.takes

    def inside(self, Z):
        return Z

    def out_of_cone(self, Z):
        return Function.out_of_cone(self, Z)

    def violation(self, W):
        return abs(W - self.bound).max()

    def repaired(self, W):
        return self.bound


class Simplex(Function):
    is_set, finite_dual = True, True

    def read(self, parameters):
        self.total = self.number(positive(parameters["total"], "a simplex with a total"))

    def violation(self, W):
        return maximum(maximum(-W, 0.0).max(), abs(W.sum(axis=0) - self.total).max())

    def repaired(self, W):
        W = maximum(W, 0.0)
        sums = W.sum(axis=0)
        return W * (self.total / sums).reshape(1, -1) if (sums.low > 0).all() else W

    def conjugate(self, Z):
        return Z.max(axis=0).sum() * self.total
