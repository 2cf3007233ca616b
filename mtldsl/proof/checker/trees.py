"""The checker's own formula of the norm of a tree of groups."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from mtldsl.proof.checker.function import Function
from mtldsl.proof.checker.interval import Interval, joined, maximum
from mtldsl.proof.checker.not_checked import NotChecked

__all__ = ["Tree"]

#: Halvings of an interval of floats: to their spacing.
_HALVINGS = 60


class Tree(Function):
    """sum over groups g of a_g ||W[g, :]||_F, or over all rows j too of a_g ||W[j, g]||_2; of two groups one holds the other, or they are apart.

    Z is in t times the dual ball iff nothing is left of it when every group, leaves first, is shortened by t a_g.
    """

    def read(self, parameters):
        rows, columns, weights = (parameters.get(key) for key in ("rows", "columns", "weights"))
        self.axis, groups = (1, columns) if rows is None else (0, rows)
        self.groups = [[int(line) for line in group] for group in groups]
        self.a = np.broadcast_to(np.asarray(1.0 if weights is None else weights, float), len(self.groups))
        if not (self.a >= 0).all():
            raise NotChecked("tree_norm with a weight that is not >= 0: not convex")
        if any(not 0 <= line < self.shape[self.axis] for group in self.groups for line in group):
            raise NotChecked("tree_norm of lines that there are not")
        self.order  # noqa: B018 (raises where groups cross)

    @cached_property
    def order(self) -> list[tuple[int, list[int], list[int]]]:
        """(a group, the largest groups inside it, its lines that are in none of these), leaves first; groups of weight 0 shorten nothing."""
        found, top = [], {}
        weighted = np.flatnonzero(self.a > 0).tolist()
        for g in sorted(weighted, key=lambda g: len(self.groups[g])):
            inside = sorted({top[line] for line in self.groups[g] if line in top})
            if any(not set(self.groups[h]) <= set(self.groups[g]) for h in inside):
                raise NotChecked("tree_norm of groups that overlap, neither of them inside the other")
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
        return (joined(norms) * self.number(self.a)).sum()

    def inside(self, Z):
        return Z if self.takes.all() else Z * self.takes.astype(float)

    def gauge(self, Z):
        middle = Z.middle
        floats = np.square(middle).sum(axis=1)[:, None] if self.axis == 0 else np.square(middle).T
        high = float(np.abs(middle).sum()) / float(self.a[self.a > 0].min(initial=np.inf))
        low, exact = 0.0, self._squares(Z)
        for _ in range(_HALVINGS):
            between = 0.5 * (low + high)
            low, high = (low, between) if self._is_short(floats, between) else (between, high)
        step = np.spacing(high)
        while not self._is_held(exact, high):
            high, step = high + step, 2.0 * step
            if not np.isfinite(high):
                raise NotChecked("tree_norm of multipliers too large for its dual norm")
        return self.number(high)

    def _is_short(self, squares: np.ndarray, t: float) -> bool:
        """Whether nothing is left at t, in floats."""
        left: dict[int, np.ndarray] = {}
        for g, inside, own in self.order:
            rest = squares[own].sum(axis=0) + sum(left.pop(h) for h in inside)
            left[g] = np.square(np.maximum(np.sqrt(rest) - t * self.a[g], 0.0))
        return not any(np.any(rest) for rest in left.values())

    def _is_held(self, squares: Interval, t: float) -> bool:
        left: dict[int, Interval] = {}
        for g, inside, own in self.order:
            rest = squares[np.asarray(own, dtype=int)].sum(axis=0)
            for h in inside:
                rest = rest + left.pop(h).square()
            # not its square: that of an interval at zero has an end above zero
            left[g] = maximum(rest.sqrt() - self.number(t) * self.number(self.a[g]), 0.0)
        return all(not np.any(norm.high > 0) for norm in left.values())
