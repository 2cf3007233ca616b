"""The checker's own formulas of metrics: how wrong labellings of one task are, and which flips a random labelling has.

Multipliers are moved, as real numbers, to where a random labelling has the marginals that they stand for; never the other way round.
"""

from __future__ import annotations

import numpy as np

from mtldsl.proof.checker.interval import Interval, joined, maximum, minimum
from mtldsl.proof.checker.kinds import array, wholes
from mtldsl.proof.checker.not_checked import NotChecked
from mtldsl.proof.checker.products import product

__all__ = ["CHUNK", "METRICS"]

#: pairs of samples, or tables, that are held at once
CHUNK = 2_000_000


class Metric:
    """A metric of a task with P positives and N negatives."""

    every_labelling = False  # no labelling is forbidden, and none is a ranking

    def __init__(self, plain, positives: int, negatives: int, exact: bool):
        self.P, self.N, self.exact, self.plain = positives, negatives, exact, plain

    def number(self, x):
        return Interval.of(x, self.exact)

    def checked(self, law):
        """The witness [b, c, weights], counts that a labelling of the task can have; ValueError for others."""
        if law is None:
            return None
        if not isinstance(law, list) or len(law) != 3:
            raise ValueError("a random labelling that is not made of three arrays")
        b = wholes((None,), 0, self.N)(law[0], "the wrong negatives of a random labelling")
        c = wholes(b.shape, 0, self.P)(law[1], "its wrong positives")
        return [b, c, array(b.shape, 0.0)(law[2], "its weights")]

    def delta(self, b, c) -> Interval:
        """How wrong labellings with b wrong negatives and c wrong positives are; arrays of whole numbers that broadcast."""
        raise NotImplementedError

    def value(self, positive: Interval, negative: Interval) -> Interval:
        """The largest Delta(b, c) - 2 (the c smallest positive scores) + 2 (the b largest negative ones)."""
        of_c, of_b = _running(positive, 1) * -2.0, _running(negative, -1) * 2.0
        best, rows = None, max(1, CHUNK // (self.N + 1))
        b = np.arange(self.N + 1)[None, :]
        for first in range(0, self.P + 1, rows):
            c = np.arange(first, min(first + rows, self.P + 1))[:, None]
            table = self.delta(b, c) + of_c[c[:, 0]].reshape(-1, 1) + of_b.reshape(1, -1)
            here = table.reshape(-1).max()
            best = here if best is None else maximum(best, here)
        assert best is not None  # c = 0 is always there
        return best

    def law_of(self, p: Interval, y, law):
        """(probabilities that have a random labelling, a lower bound of its expected Delta); law: its tables (b, c, weights)."""
        p = tighter_ends(p)
        if law is None:
            raise NotChecked(
                f"structured_hinge with {self.plain['metric']}: the proof brings no random labelling"
            )
        b, c, weights = law
        weights = self.number(weights)
        weights = weights / maximum(weights.sum(), 1.0)
        moved = p
        for kind, counts in ((y > 0, c), (y < 0, b)):
            if kind.any():
                moved = moved.with_entries(kind, self._with_law(p[kind], weights, counts))
        return moved, (weights * self.delta(b, c)).sum()

    def _with_law(self, p: Interval, weights: Interval, counts) -> Interval:
        """Probabilities near p of which a law of this many flips is the law: E min(flips, k) is at least the k largest, for all k."""
        n = p.shape[0]
        mean = (weights * counts.astype(float)).sum()
        even = (mean / float(n)).broadcast((n,))
        total = p.sum()
        if not total.low > 0:
            return even
        p = p * (mean / total)
        k = np.arange(1, n)
        capped = product(np.minimum(counts[None, :], k[:, None]).astype(float), weights)
        largest = -_running(-p, 1)[1:n]
        short = (largest - capped).high
        above = (capped - self.number(k.astype(float)) * (mean / float(n))).low
        return _mixed(p, even, short, above)


def _mixed(p: Interval, even: Interval, short, above) -> Interval:
    """(1 - share) p + share even, with the least share that makes up for what p falls short of where `even` is above."""
    lacking = short > 0
    if not lacking.any():
        return p
    if not (above[lacking] > 0).all():
        return even
    short, above = Interval(short[lacking], short[lacking]), Interval(above[lacking], above[lacking])
    share = (short / (short + above)).max()
    share = Interval(share.high, share.high)
    return p * (1.0 - share) + even * share if share.high < 1 else even


def tighter_ends(p: Interval) -> Interval:
    """Clipped to [0, 1], as a real operation."""
    return minimum(maximum(p, 0.0), 1.0)


def _running(x: Interval, side: int) -> Interval:
    """(n + 1,) sums of the k smallest (side 1) or largest (-1) numbers, from 0."""
    ends = [np.sort(end)[::side] for end in (x.low, x.high)]
    sums = Interval(*ends).cumsum(axis=0)
    zero = np.asarray([x.like(0.0).low.item()], dtype=sums.low.dtype)
    return Interval(np.concatenate([zero, sums.low]), np.concatenate([zero, sums.high]))


class FScore(Metric):
    every_labelling = True

    def delta(self, b, c):
        square = self.number(self.plain.get("beta", 1.0)).square()
        b, c = self.number(np.asarray(b, float)), self.number(np.asarray(c, float))
        return (b + c * square) / (float(self.P) - c + b + square * float(self.P))


class AUC(Metric):
    every_labelling = True

    def delta(self, b, c):
        return self.number(np.asarray(b, float)) * self.number(np.asarray(c, float)) / float(self.P * self.N)

    def law_of(self, p, y, law):
        p = tighter_ends(p)
        i, j = p[y > 0], p[y < 0]
        total, rows = self.number(0.0), max(1, CHUNK // max(self.N, 1))
        for first in range(0, self.P, rows):
            total = (
                total + minimum(i[first : first + rows].reshape(-1, 1), j.reshape(1, -1)).reshape(-1).sum()
            )
        return p, total / float(self.P * self.N)


class ErrorRate(Metric):
    every_labelling = True

    def delta(self, b, c):
        return self.number(2.0 * (np.asarray(b, float) + np.asarray(c, float)))

    def value(self, positive, negative):
        return (maximum(1.0 - positive, 0.0).sum() + maximum(1.0 + negative, 0.0).sum()) * 2.0

    def law_of(self, p, y, law):
        p = tighter_ends(p)
        return p, p.sum() * 2.0


class BalancedError(Metric):
    every_labelling = True

    def delta(self, b, c):
        of_b = self.number(np.asarray(b, float)) / float(self.N)
        return (of_b + self.number(np.asarray(c, float)) / float(self.P)) * 0.5

    def value(self, positive, negative):
        half = self.number(0.5)
        up, down = half / float(self.P) - positive * 2.0, half / float(self.N) + negative * 2.0
        return maximum(up, 0.0).sum() + maximum(down, 0.0).sum()

    def law_of(self, p, y, law):
        p = tighter_ends(p)
        return p, (p[y > 0].sum() / float(self.P) + p[y < 0].sum() / float(self.N)) * 0.5


class Jaccard(Metric):
    every_labelling = True

    def delta(self, b, c):
        b, c = np.asarray(b, float), np.asarray(c, float)
        return self.number(b + c) / self.number(float(self.P) + b)


class GMean(Metric):
    every_labelling = True

    def delta(self, b, c):
        b, c = self.number(np.asarray(b, float)), self.number(np.asarray(c, float))
        right = (float(self.N) - b) * (float(self.P) - c) / float(self.P * self.N)
        return 1.0 - maximum(right, 0.0).sqrt()


class ROCArea(Metric):
    def value(self, positive, negative):
        total, rows = self.number(0.0), max(1, CHUNK // max(self.N, 1))
        for first in range(0, self.P, rows):
            i = positive[first : first + rows].reshape(-1, 1)
            total = total + maximum(1.0 - (i - negative.reshape(1, -1)) * 2.0, 0.0).reshape(-1).sum()
        return total / float(self.P * self.N)

    def law_of(self, p, y, law):
        """p P N are row and column sums of a matrix with entries in [0, 1] (Gale and Ryser)."""
        return self.law_of_margins(p, y, self.number(float(self.P * self.N)), float(self.N))

    def law_of_margins(self, p, y, size: Interval, width: float):
        """The same of p times `size`, where no row sum is above `width`; what is promised is their total over `size`."""
        rows = minimum(maximum(p[y > 0] * size, 0.0), width)
        columns = minimum(maximum(p[y < 0] * size, 0.0), float(self.P))
        totals = rows.sum(), columns.sum()
        total = minimum(*totals)
        if not total.low > 0:
            return p * 0.0, self.number(0.0)
        rows, columns = rows * (total / totals[0]), columns * (total / totals[1])
        even = (total / float(self.P)).broadcast(rows.shape), (total / float(self.N)).broadcast(columns.shape)
        if self.P > 1:
            short, above = -self._slack(rows, columns).low, self._slack(*even).low
            rows, columns = (_mixed(x, e, short, above) for x, e in zip((rows, columns), even, strict=True))
        p = p.with_entries(y > 0, rows / size)
        return p.with_entries(y < 0, columns / size), total / size

    def _slack(self, rows, columns) -> Interval:
        capped = []
        for k in range(1, self.P):
            capped.append(minimum(columns, float(k)).sum().reshape(1))
        return joined(capped) + _running(-rows, 1)[1 : self.P]


class Top(Metric):
    """Labellings with k samples labelled +1, and the true one."""

    def expected(self, b, c) -> Interval:
        """Delta, which is linear, at expected numbers of wrong samples."""
        raise NotImplementedError

    def __init__(self, plain, positives: int, negatives: int, exact: bool):
        super().__init__(plain, positives, negatives, exact)
        if self.count() > positives + negatives:
            raise NotChecked(
                f"{plain['metric']} of the best {self.count()} of {positives + negatives} samples"
            )

    def count(self) -> int:
        k = self.plain["k"]
        return k if isinstance(k, int) else max(1, round(k * (self.P + self.N)))

    def value(self, positive, negative):
        c = np.arange(max(0, self.P - self.count()), min(self.P, self.N + self.P - self.count()) + 1)
        b = self.count() - self.P + c
        tables = self.delta(b, c) - _running(positive, 1)[c] * 2.0 + _running(negative, -1)[b] * 2.0
        return maximum(tables.max(), 0.0)

    def law_of(self, p, y, law):
        """0 <= p <= tau <= 1 with sum over negatives - sum over positives = tau (k - P)."""
        p, k, n = tighter_ends(p), self.count(), self.P + self.N
        gained, lost = p[y < 0].sum(), p[y > 0].sum()
        if k == self.P:
            least = minimum(gained, lost)
            if not least.low > 0:
                return p * 0.0, self.number(0.0)
            p = p.with_entries(y < 0, p[y < 0] * (least / gained))
            p = p.with_entries(y > 0, p[y > 0] * (least / lost))
            return p, self.expected(least, least)
        tau = (gained - lost) / float(k - self.P)
        even = Interval.of(np.where(y < 0, float(k), float(n - k)), self.exact) / float(n)
        above = (1.0 - even.max()).low.reshape(1)
        share = _share((p.max() - tau).high.reshape(1), above)
        p = p * (1.0 - share) + even * share
        tau = tau * (1.0 - share) + share
        p = p / maximum(tau, 1.0)
        return p, self.expected(p[y < 0].sum(), p[y > 0].sum())


def _share(short, above) -> Interval:
    if not short[0] > 0:
        return Interval(short * 0, short * 0)[0]
    if not above[0] > 0:
        return Interval(short * 0 + 1, short * 0 + 1)[0]
    short, above = Interval(short, short), Interval(above, above)
    share = (short / (short + above))[0]
    return minimum(Interval(share.high, share.high), 1.0)


class PrecisionAt(Top):
    def delta(self, b, c):
        return self.number(np.asarray(b, float)) / float(self.count())

    def expected(self, b, c):
        return b / float(self.count())


class RecallAt(Top):
    def delta(self, b, c):
        return self.number(np.asarray(c, float)) / float(self.P)

    def expected(self, b, c):
        return c / float(self.P)


METRICS = {
    "FScore": FScore, "AUC": AUC, "ErrorRate": ErrorRate, "BalancedError": BalancedError, "Jaccard": Jaccard, "GMean": GMean, "ROCArea": ROCArea, "PrecisionAt": PrecisionAt, "RecallAt": RecallAt,
}  # fmt: skip
