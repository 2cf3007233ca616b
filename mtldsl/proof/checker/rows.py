"""The checker's own formulas of losses of classes: a function of all scores of a row, whose multipliers are p - e, p on a simplex."""

from __future__ import annotations

import numpy as np

from mtldsl.proof.checker.interval import Interval, maximum, minimum
from mtldsl.proof.checker.not_checked import NotChecked

__all__ = ["ROW_LOSSES", "RowPart"]

ROW_LOSSES = ("softmax_loss", "crammer_singer_loss")


class RowPart:
    """sum over rows j of w_j f(z_j), z_j the scores of all K classes: log sum exp z_j less that of the class, or the largest of [k is another
    class] + z_jk less that of the class. Flat arrays go class after class."""

    def __init__(self, word: str, coefficients: Interval, data, exact: bool):
        K, n = len(data.counts), int(data.counts[0])
        true = (np.asarray(data.targets) > 0).reshape(K, -1) if (np.asarray(data.counts) == n).all() else None
        if true is None or not data.shared or not (true.sum(axis=0) == 1).all():
            raise NotChecked(f"{word} of rows that do not belong to one class each")
        if not (np.asarray(coefficients.low) == coefficients.low[0]).all():
            raise NotChecked(f"{word} with other coefficients for other classes")
        self.word, self.shape, self.true = word, (K, n), Interval.of(true.astype(float), exact)
        self.own = true.argmax(axis=0) * n + np.arange(n)  # places in a flat array
        self.w = Interval.of(np.ones(n), exact) * coefficients[0]
        if data.sample_weights is not None:
            weights = np.asarray(data.sample_weights).reshape(K, n)
            if not (weights == weights[0]).all():
                raise NotChecked(f"{word} with other weights for other classes")
            self.w = Interval.of(weights[0], exact) * coefficients[0]

    def value(self, z: Interval) -> Interval:
        table = z.reshape(*self.shape)
        if self.word == "softmax_loss":
            shift = np.asarray(table.middle, float).max(axis=0)
            lost = (table - shift).exp().sum(axis=0).log() + shift
        else:
            lost = (table + 1.0 - self.true).max(axis=0)
        return ((lost - z.reshape(-1)[self.own]) * self.w).sum()

    def inside(self, u: Interval) -> Interval:
        """A point of the domain near u: p cut at zero, and divided by what it sums to."""
        p = maximum(u.reshape(*self.shape) / self.w + self.true, 0.0)
        p = p / p.sum(axis=0)
        return ((p - self.true) * self.w).reshape(-1)

    def shifted(self, u: Interval, i: int, total: Interval, alone: bool) -> Interval | None:
        """None: what one class's multipliers sum to cannot be moved without another's."""
        return None

    def balanced(self, u: Interval, totals: Interval) -> Interval | None:
        """u with exactly `totals`, its own sums, off the sums of all classes, by the row that is farthest from the ends of its simplex.

        The totals sum to zero, and so does the row still. None where they are too large for it.
        """
        K, n = self.shape
        p = u.reshape(K, n) / self.w + self.true
        j = int(np.argmax(np.asarray(p.low.min(axis=0), float)))
        room = float(np.asarray(p.low, float)[:, j].min()) * float(self.w.low[j])
        if not float(abs(totals).max().high) < 0.5 * room:
            return None
        row = np.arange(K) * n + j
        return u.with_entries(row, u[row] - totals)

    def conjugate(self, u: Interval, t: Interval) -> Interval:
        u = u * t
        if self.word == "softmax_loss":
            p = minimum(maximum(u.reshape(*self.shape) / self.w + self.true, 0.0), 1.0)
            return (p.times_log().sum(axis=0) * self.w).sum()
        return u.reshape(-1)[self.own].sum()  # w (p_c - 1)
