"""The checker's own formulas of structured hinges of the metrics of the language.

Where a conjugate has no closed form the proof brings a witness, a random labelling, and what is checked is that this labelling has the
marginals that the multipliers stand for.
"""

from __future__ import annotations

import numpy as np

from mtldsl.proof.checker.interval import Interval, joined
from mtldsl.proof.checker.metrics import METRICS
from mtldsl.proof.checker.not_checked import NotChecked
from mtldsl.proof.checker.orders import ORDERS

__all__ = ["StructuredPart"]

KNOWN = METRICS | ORDERS


class StructuredPart:
    """sum over tasks i of c_i max over labellings y' of Delta(y, y') - <y - y', z>."""

    def __init__(self, metrics, coefficients: Interval, data, exact: bool, witness):
        self.c, self.exact, self.offsets = coefficients, exact, data.offsets
        self.rows = [slice(int(a), int(b)) for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True)]
        self.y = [data.targets[rows] for rows in self.rows]
        if len(metrics) not in (1, len(self.rows)):
            raise ValueError(f"structured_hinge of {len(self.rows)} tasks with {len(metrics)} metrics")
        self.metrics = []
        for i, y in enumerate(self.y):
            plain = metrics[i] if len(metrics) > 1 else metrics[0]
            if plain["metric"] not in KNOWN:
                raise NotChecked(f"structured_hinge with the metric {plain['metric']}")
            self.metrics.append(KNOWN[plain["metric"]](plain, int(np.sum(y > 0)), int(np.sum(y < 0)), exact))
        laws = [None] * len(self.rows) if witness is None else witness
        if not isinstance(laws, list) or len(laws) != len(self.rows):
            raise ValueError("structured_hinge with a witness that is not one a task")
        self.laws = [metric.checked(law) for metric, law in zip(self.metrics, laws, strict=True)]

    def _tasks(self):
        return zip(self.rows, self.y, self.metrics, self.laws, range(len(self.rows)), strict=True)

    def value(self, z: Interval) -> Interval:
        total = z.like(0.0)
        for rows, y, metric, _, i in self._tasks():
            total = total + metric.value(z[rows][y > 0], z[rows][y < 0]) * self.c[i]
        return total

    def inside(self, u: Interval) -> Interval:
        """Flip probabilities p, u = -2 c y p, for which the metric has a law; what that promises is kept."""
        parts, self.promised = [], []
        for rows, y, metric, law, i in self._tasks():
            p = u[rows] * (-0.5 * y) / self.c[i]
            p, promised = metric.law_of(p, y, law)
            parts.append(p * (-2.0 * y) * self.c[i])
            self.promised.append(promised * self.c[i])
        return joined(parts)

    def shifted(self, u: Interval, i: int, total: Interval, alone: bool) -> Interval | None:
        """u with exactly `total` off the sum of task i; None where that is not known to be possible.

        A little of the labelling that is wrong on all positives is mixed in, more than enough; then as much of the one that is
        wrong on all negatives as makes the sum right. No Delta is below 0, so that both only shrink what is promised.
        """
        metric, y, rows = self.metrics[i], self.y[i], self.rows[i]
        if not metric.every_labelling:
            return None
        own, of_positives, of_negatives = u[rows], self.c[i] * (-2.0 * metric.P), self.c[i] * (2.0 * metric.N)
        for kind, end, direction in ((y > 0, of_positives, -1.0), (y < 0, of_negatives, 1.0)):
            now, wrong = own.sum(), Interval.of(np.where(kind, -2.0 * y, 0.0), self.exact) * self.c[i]
            if direction < 0:
                share = abs(total).high * 2 / (now - end).low
                share = Interval(share, share)
            else:
                share = -total / (end - now)
            if not (share.low >= 0 and share.high < 1):
                return None
            own = own * (1.0 - share) + wrong * share
            total = total + (end - now) * share
            self.promised[i] = self.promised[i] * (1.0 - share)
        low, high = u.low.copy(), u.high.copy()
        low[rows], high[rows] = own.low, own.high
        return Interval(low, high)

    def conjugate(self, u: Interval, t: Interval) -> Interval:
        total = u.like(0.0)
        for promised in self.promised:
            total = total + promised
        return -total * t  # f* is convex and f*(0) <= 0
