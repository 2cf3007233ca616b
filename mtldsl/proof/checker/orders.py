"""The checker's own formulas of metrics of orders: r_1 <= ... <= r_P negatives above the positives, from the highest positive on.

The proof brings random orders: of each how many negatives stand above every positive, and the place of every negative. What they prove
is proven of the multipliers that are their mean, which take the place of those in the proof.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from mtldsl.proof.checker.interval import Interval, joined, maximum
from mtldsl.proof.checker.kinds import array, wholes
from mtldsl.proof.checker.metrics import CHUNK, Metric, ROCArea
from mtldsl.proof.checker.not_checked import NotChecked
from mtldsl.proof.checker.products import product

__all__ = ["ORDERS"]


class Orders(Metric):
    """`reached[r]` of the first r negatives count; a pair in the wrong order has the slope `unit`."""

    def __init__(self, plain, positives, negatives, exact):
        super().__init__(plain, positives, negatives, exact)
        self.reached = np.arange(negatives + 1.0)

    @property
    def unit(self) -> Interval:
        return self.number(2.0) / float(self.P * self.N)

    def costs(self, k: int, ranks) -> Interval:
        """What the k-th positive from above adds to Delta with so many negatives above it, 1 <= k <= P."""
        raise NotImplementedError

    def value(self, positive, negative):
        """Dynamic programming over the positives: the most of those so far where r negatives stand above the last."""
        up, down = (_falling(x) for x in (positive, negative))
        r = np.arange(self.N + 1)
        pairs = joined([down[:1] * 0.0, down.cumsum(axis=0)])
        best = pairs * 0.0
        for k in range(1, self.P + 1):
            own = self.costs(k, r) - self.unit * (up[k - 1] * r.astype(float) - pairs)
            best = Interval(np.maximum.accumulate(best.low), np.maximum.accumulate(best.high)) + own
        return best.max()

    def checked(self, law):
        """The witness [ranks, places, weights], orders of these samples; ValueError for others."""
        if law is None:
            return None
        if not isinstance(law, list) or len(law) != 3:
            raise ValueError("random orders that are not made of three arrays")
        ranks = wholes((None, self.P), 0, len(self.reached) - 1)(law[0], "the ranks of random orders")
        places = wholes((len(ranks), self.N), 0, self.N - 1)(law[1], "the places of random orders")
        if not len(ranks) or not np.all(np.sort(places, axis=1) == np.arange(self.N)):
            raise ValueError("what the proof brings are not orders of these samples")
        return [ranks, places, array((len(ranks),), 0.0)(law[2], "the weights of random orders")]

    def law_of(self, p, y, law):
        if law is None:
            raise NotChecked(
                f"structured_hinge with {self.plain['metric']}: the proof brings no random orders"
            )
        ranks, places, weights = law
        most = len(self.reached) - 1
        weights = self.number(weights)
        weights = weights / maximum(weights.sum(), 1.0)
        half = self.unit * 0.5
        counts = np.append(np.diff(self.reached), np.zeros(self.N - most))
        below = np.array(
            [np.sum(r[:, None] > place[None, :], axis=0) for r, place in zip(ranks, places, strict=True)]
        )
        p = p.with_entries(y > 0, product(self.reached[ranks].T, weights) * half)
        p = p.with_entries(y < 0, product((counts[places] * below).T, weights) * half)
        rising = np.sort(ranks, axis=1)
        promised = weights.sum() * 0.0
        for k in range(1, self.P + 1):
            promised = promised + (self.costs(k, rising[:, k - 1]) * weights).sum()
        return p, promised


class AveragePrecision(Orders):
    def costs(self, k, ranks):
        r = np.asarray(ranks, float)
        return self.number(r) / (r + float(k)) / float(self.P)


class NDCG(Orders):
    def __init__(self, plain, positives, negatives, exact):
        super().__init__(plain, positives, negatives, exact)
        places = self.number(np.arange(1.0, positives + negatives + 1.0))
        self.discounts = self.number(2.0).log() / places.log1p()
        self.best = self.discounts[: self.P].sum()

    def costs(self, k, ranks):
        return (self.discounts[k - 1] - self.discounts[k - 1 + np.asarray(ranks, int)]) / self.best


class PartialAUC(Orders):
    def __init__(self, plain, positives, negatives, exact):
        super().__init__(plain, positives, negatives, exact)
        self.a, self.b = (
            _near_whole(plain.get(name, rate) * negatives)
            for name, rate in (("min_fpr", 0.0), ("max_fpr", 0.1))
        )
        if not 0 <= self.a < self.b <= negatives:
            raise NotChecked(f"PartialAUC between {self.a:g} and {self.b:g} of {negatives} negatives")
        self.reached = np.minimum(np.arange(ceil(self.b) + 1), self.b)

    @property
    def scale(self) -> Interval:
        return (self.number(self.b) - self.a) * float(self.P)

    @property
    def unit(self):
        return 2.0 / self.scale

    def costs(self, k, ranks):
        return maximum(self.number(self.reached[ranks]) - self.a, 0.0) / self.scale

    def value(self, positive, negative):
        """The best rank of every positive by itself."""
        first = _falling(negative)[: len(self.reached) - 1] * np.diff(self.reached)
        sums = joined([first[:1] * 0.0, first.cumsum(axis=0)])
        heights = maximum(self.number(self.reached) - self.a, 0.0) + sums * 2.0
        total, rows = positive.like(0.0), max(1, CHUNK // len(self.reached))
        for first_row in range(0, self.P, rows):
            z = positive[first_row : first_row + rows].reshape(-1, 1)
            total = total + (heights.reshape(1, -1) - z * (2.0 * self.reached[None, :])).max(axis=1).sum()
        return total / self.scale

    def law_of(self, p, y, law):
        if self.a > 0:
            return super().law_of(p, y, law)
        # Delta is linear in the slopes then, and their domain that of pairs with rows of at most b
        pairs = ROCArea(self.plain, self.P, self.N, self.exact)
        return pairs.law_of_margins(p, y, 2.0 / self.unit, self.b)


def _falling(x: Interval) -> Interval:
    """The k-th largest lies between the k-th largest ends."""
    return Interval(np.sort(x.low)[::-1], np.sort(x.high)[::-1])


def _near_whole(x: float) -> float:
    return float(round(x)) if abs(x - round(x)) <= 1e-9 * max(1.0, x) else x


ORDERS = {"AveragePrecision": AveragePrecision, "NDCG": NDCG, "PartialAUC": PartialAUC}
