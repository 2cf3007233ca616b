"""The checker's formulas of metrics: labellings, orders, and costs over label graphs."""

from __future__ import annotations

from math import ceil

import numpy as np

from mtldsl.certificates.checker.function import UnsupportedFormula
from mtldsl.certificates.checker.interval import (
    Interval,
    clip_to_unit,
    falling,
    join_intervals,
    maximum,
    minimum,
    product,
)
from mtldsl.certificates.checker.limits import SETTINGS
from mtldsl.certificates.checker.proof_kinds import array, wholes

# --------------------------------------------------------------------------------------------------------------
# The checker's own formulas of metrics: how wrong labellings of one task are, and which flips a random labelling has.
#
# Multipliers are moved, as real numbers, to where a random labelling has the marginals that they stand for; never the other way round.


class MetricFormula:
    """A metric of a task with P positives and N negatives."""

    every_labelling = False  # no labelling is forbidden, and none is a ranking
    brings = "random labelling"  # what the proof has to bring

    def __init__(self, plain, positives: int, negatives: int, exact: bool):
        self.P, self.N, self.exact, self.plain = positives, negatives, exact, plain
        self.read()

    def read(self) -> None:
        """Read what a metric says of itself; UnsupportedFormula where it does not suit the task."""

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
        """Return how wrong labellings with b wrong negatives and c wrong positives are; arrays of whole numbers that broadcast."""
        return self.of_counts(self.number(np.asarray(b, float)), self.number(np.asarray(c, float)))

    def of_counts(self, b: Interval, c: Interval) -> Interval:
        """The same of numbers, which need not be whole."""
        raise NotImplementedError

    def value(self, positive: Interval, negative: Interval) -> Interval:
        """The largest Delta(b, c) - 2 (the c smallest positive scores) + 2 (the b largest negative ones)."""
        of_c, of_b = _running(positive, 1) * -2.0, _running(negative, -1) * 2.0
        best, rows = None, max(1, SETTINGS.slab_entries // (self.N + 1))
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
        p = clip_to_unit(p)
        b, c, weights = self.brought(law)
        moved = p
        for kind, counts in ((y > 0, c), (y < 0, b)):
            if kind.any():
                moved = moved.with_entries(kind, self._with_law(p[kind], weights, counts))
        return moved, (weights * self.delta(b, c)).sum()

    def brought(self, law):
        """(two arrays, weights of sum at most 1) of the witness; UnsupportedFormula where there is none."""
        if law is None:
            raise UnsupportedFormula(
                f"structured_hinge with {self.plain['metric']}: the proof brings no {self.brings}"
            )
        first, second, weights = law
        weights = self.number(weights)
        return first, second, weights / maximum(weights.sum(), 1.0)

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
        return _mixed(p, even, _share(p, short, above))


def _sum_of_pairs(function, i: Interval, j: Interval) -> Interval:
    """Add up a function of all pairs, of a column i and a row j of them, some rows at a time."""
    total, rows = i.like(0.0), max(1, SETTINGS.slab_entries // max(j.shape[0], 1))
    for first in range(0, i.shape[0], rows):
        total = total + function(i[first : first + rows].reshape(-1, 1), j.reshape(1, -1)).reshape(-1).sum()
    return total


def _share(p: Interval, short, above) -> Interval:
    """The least share with which what is `above` makes up for what falls `short`; 0 where nothing does, 1 where no other is enough."""
    lacking = short > 0
    if not lacking.any():
        return p.like(0.0)
    if not (above[lacking] > 0).all():
        return p.like(1.0)
    short, above = Interval(short[lacking], short[lacking]), Interval(above[lacking], above[lacking])
    share = (short / (short + above)).max()
    return minimum(Interval(share.high, share.high), 1.0)


def _mixed(p: Interval, even: Interval, share: Interval) -> Interval:
    """(1 - share) p + share even."""
    return p if share.high == 0 else p * (1.0 - share) + even * share if share.high < 1 else even


def _running(x: Interval, side: int) -> Interval:
    """(n + 1,) sums of the k smallest (side 1) or largest (-1) numbers, from 0."""
    ordered = falling(x) if side < 0 else -falling(-x)
    return join_intervals([x.like(np.zeros(1)), ordered.cumsum(axis=0)])


class FScoreFormula(MetricFormula):
    every_labelling = True

    def of_counts(self, b, c):
        square = self.number(self.plain.get("beta", 1.0)).square()
        return (b + c * square) / (float(self.P) - c + b + square * float(self.P))


class AUCFormula(MetricFormula):
    every_labelling = True

    def of_counts(self, b, c):
        return b * c / float(self.P * self.N)

    def law_of(self, p, y, law):
        p = clip_to_unit(p)
        return p, _sum_of_pairs(minimum, p[y > 0], p[y < 0]) / float(self.P * self.N)


class ErrorRateFormula(MetricFormula):
    every_labelling = True

    def delta(self, b, c):
        return self.number(2.0 * (np.asarray(b, float) + np.asarray(c, float)))

    def value(self, positive, negative):
        return (maximum(1.0 - positive, 0.0).sum() + maximum(1.0 + negative, 0.0).sum()) * 2.0

    def law_of(self, p, y, law):
        p = clip_to_unit(p)
        return p, p.sum() * 2.0


class BalancedErrorFormula(MetricFormula):
    every_labelling = True

    def of_counts(self, b, c):
        return (b / float(self.N) + c / float(self.P)) * 0.5

    def value(self, positive, negative):
        half = self.number(0.5)
        up, down = half / float(self.P) - positive * 2.0, half / float(self.N) + negative * 2.0
        return maximum(up, 0.0).sum() + maximum(down, 0.0).sum()

    def law_of(self, p, y, law):
        p = clip_to_unit(p)
        return p, (p[y > 0].sum() / float(self.P) + p[y < 0].sum() / float(self.N)) * 0.5


class JaccardFormula(MetricFormula):
    every_labelling = True

    def delta(self, b, c):
        b, c = np.asarray(b, float), np.asarray(c, float)
        return self.number(b + c) / self.number(float(self.P) + b)


class GMeanFormula(MetricFormula):
    every_labelling = True

    def of_counts(self, b, c):
        right = (float(self.N) - b) * (float(self.P) - c) / float(self.P * self.N)
        return 1.0 - maximum(right, 0.0).sqrt()


class ROCAreaFormula(MetricFormula):
    def value(self, positive, negative):
        total = _sum_of_pairs(lambda i, j: maximum(1.0 - (i - j) * 2.0, 0.0), positive, negative)
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
            share = _share(p, -self._slack(rows, columns).low, self._slack(*even).low)
            rows, columns = (_mixed(x, e, share) for x, e in zip((rows, columns), even, strict=True))
        p = p.with_entries(y > 0, rows / size)
        return p.with_entries(y < 0, columns / size), total / size

    def _slack(self, rows, columns) -> Interval:
        capped = join_intervals(minimum(columns, float(k)).sum().reshape(1) for k in range(1, self.P))
        return capped + _running(-rows, 1)[1 : self.P]


class TopPlacesFormula(MetricFormula):
    """Labellings with k samples labelled +1, and the true one. Delta is linear, so that it is known at expected numbers of wrong samples."""

    def read(self):
        n = self.P + self.N
        if self.count() > n:
            raise UnsupportedFormula(f"{self.plain['metric']} of the best {self.count()} of {n} samples")

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
        p, k, n = clip_to_unit(p), self.count(), self.P + self.N
        gained, lost = p[y < 0].sum(), p[y > 0].sum()
        if k == self.P:
            least = minimum(gained, lost)
            if not least.low > 0:
                return p * 0.0, self.number(0.0)
            p = p.with_entries(y < 0, p[y < 0] * (least / gained))
            p = p.with_entries(y > 0, p[y > 0] * (least / lost))
            return p, self.of_counts(least, least)
        tau = (gained - lost) / float(k - self.P)
        even = Interval.of(np.where(y < 0, float(k), float(n - k)), self.exact) / float(n)
        above = (1.0 - even.max()).low.reshape(1)
        share = _share(p, (p.max() - tau).high.reshape(1), above)
        p, tau = _mixed(p, even, share), _mixed(tau, p.like(1.0), share)
        p = p / maximum(tau, 1.0)
        return p, self.of_counts(p[y < 0].sum(), p[y > 0].sum())


class PrecisionAtFormula(TopPlacesFormula):
    def of_counts(self, b, c):
        return b / float(self.count())


class RecallAtFormula(TopPlacesFormula):
    def of_counts(self, b, c):
        return c / float(self.P)


METRICS = {
    "FScore": FScoreFormula, "AUC": AUCFormula, "ErrorRate": ErrorRateFormula, "BalancedError": BalancedErrorFormula, "Jaccard": JaccardFormula, "GMean": GMeanFormula, "ROCArea": ROCAreaFormula, "PrecisionAt": PrecisionAtFormula, "RecallAt": RecallAtFormula,
}  # fmt: skip


# --------------------------------------------------------------------------------------------------------------
# The checker's own formulas of what labellings of a row cost beside the true one.


class LabelCostFormula:
    """Delta of K labels: "hamming", a cost a label, "zero_one", a metric (its plain form), or [[clique, table], ...] of costs[true, given]."""

    def __init__(self, loss, n_labels: int, exact: bool):
        self.loss, self.K, self.exact = loss, n_labels, exact
        if isinstance(loss, dict):
            if loss.get("metric") not in METRICS or not METRICS[loss["metric"]].every_labelling:
                raise UnsupportedFormula(f"clique_hinge with loss={loss.get('metric')}")
            self.of = self._of_metric
        elif isinstance(loss, str):
            if loss not in ("hamming", "zero_one"):
                raise UnsupportedFormula(f"clique_hinge with loss={loss!r}")
            self.of = self._hamming if loss == "hamming" else self._zero_one
        elif not isinstance(loss[0], (list, tuple)):
            self.costs = np.asarray(loss, float)
            if self.costs.shape != (self.K,):
                raise ValueError(f"clique_hinge of {self.K} labels with {len(self.costs)} costs")
            self.of = self._hamming
        else:
            self.tables = [(list(clique), np.asarray(table, float)) for clique, table in loss]
            for clique, table in self.tables:
                if np.any(np.diag(table) != 0) or max(clique) >= self.K:
                    raise UnsupportedFormula("clique_hinge with a table of costs that does not fit")
            self.of = self._of_tables
        self._known: dict[bytes, Interval] = {}

    def number(self, x) -> Interval:
        return Interval.of(x, self.exact)

    def beside(self, every, truth) -> Interval:
        """(n, L): of labellings (L, K), the same at every call, beside the true ones (n, K)."""
        parts = []
        for own in np.asarray(truth):
            key = own.tobytes()
            if key not in self._known:
                self._known[key] = self.of(every, own).reshape(1, -1)
            parts.append(self._known[key])
        return join_intervals(parts)

    # a label that is missing is neither 0 nor 1, the same in the true labelling and in those beside it

    def _hamming(self, labels, own) -> Interval:
        costs = np.ones(self.K) if isinstance(self.loss, str) else self.costs
        return product((labels != own).astype(float), self.number(costs))

    def _zero_one(self, labels, own) -> Interval:
        return self.number((labels != own).any(axis=1).astype(float))

    def _of_metric(self, labels, own) -> Interval:
        positives, negatives = int((own == 1).sum()), int((own == 0).sum())
        metric = METRICS[self.loss["metric"]](self.loss, positives, negatives, self.exact)
        b = ((labels == 1) & (own == 0)).sum(axis=1)
        c = ((labels == 0) & (own == 1)).sum(axis=1)
        wrong = np.flatnonzero(b + c > 0)
        costs = self.number(np.zeros(len(labels)))
        if not len(wrong):
            return costs
        found = metric.delta(b[wrong], c[wrong])
        if not (np.asarray(found.low) >= 0).all():
            raise UnsupportedFormula(
                f"clique_hinge with loss={self.loss['metric']}, which is below 0 or not defined for a row"
            )
        return costs.with_entries(wrong, found)

    def _of_tables(self, labels, own) -> Interval:
        total = self.number(np.zeros(len(labels)))
        for clique, table in self.tables:
            if not np.isin(own[clique], (0, 1)).all():
                continue
            bits = 2 ** np.arange(len(clique))[::-1]
            total = total + self.number(table[own[clique] @ bits, labels[:, clique] @ bits])
        return total


# --------------------------------------------------------------------------------------------------------------
# The checker's own formulas of metrics of orders: r_1 <= ... <= r_P negatives above the positives, from the highest positive on.
#
# The proof brings random orders: of each how many negatives stand above every positive, and the place of every negative. What they prove
# is proven of the multipliers that are their mean, which take the place of those in the proof.


class RankingFormula(MetricFormula):
    """`reached[r]` of the first r negatives count; a pair in the wrong order has the slope `unit`."""

    brings = "random orders"

    def read(self):
        self.reached = np.arange(self.N + 1.0)

    @property
    def unit(self) -> Interval:
        return self.number(2.0) / float(self.P * self.N)

    def costs(self, k: int, ranks) -> Interval:
        """Return what the k-th positive from above adds to Delta with so many negatives above it, 1 <= k <= P."""
        raise NotImplementedError

    def value(self, positive, negative):
        """Dynamic programming over the positives: the most of those so far where r negatives stand above the last."""
        up, down = (falling(x) for x in (positive, negative))
        r = np.arange(len(self.reached))
        counted = down[: len(r) - 1] * np.diff(self.reached)
        pairs = join_intervals([counted[:1] * 0.0, counted.cumsum(axis=0)])
        best = pairs * 0.0
        for k in range(1, self.P + 1):
            own = self.costs(k, r) - self.unit * (up[k - 1] * self.reached - pairs)
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
        ranks, places, weights = self.brought(law)
        most = len(self.reached) - 1
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


class AveragePrecisionFormula(RankingFormula):
    def costs(self, k, ranks):
        r = np.asarray(ranks, float)
        return self.number(r) / (r + float(k)) / float(self.P)


class NDCGFormula(RankingFormula):
    def read(self):
        super().read()
        places = self.number(np.arange(1.0, self.P + self.N + 1.0))
        self.discounts = self.number(2.0).log() / places.log1p()
        self.best = self.discounts[: self.P].sum()

    def costs(self, k, ranks):
        return (self.discounts[k - 1] - self.discounts[k - 1 + np.asarray(ranks, int)]) / self.best


class PartialAUCFormula(RankingFormula):
    def read(self):
        self.a, self.b = (
            _near_whole(self.plain.get(name, rate) * self.N)
            for name, rate in (("min_fpr", 0.0), ("max_fpr", 0.1))
        )
        if not 0 <= self.a < self.b <= self.N:
            raise UnsupportedFormula(f"PartialAUC between {self.a:g} and {self.b:g} of {self.N} negatives")
        self.reached = np.minimum(np.arange(ceil(self.b) + 1), self.b)

    @property
    def scale(self) -> Interval:
        return (self.number(self.b) - self.a) * float(self.P)

    @property
    def unit(self):
        return 2.0 / self.scale

    def costs(self, k, ranks):
        return maximum(self.number(self.reached[ranks]) - self.a, 0.0) / self.scale

    def law_of(self, p, y, law):
        if self.a > 0:
            return super().law_of(p, y, law)
        # Delta is linear in the slopes then, and their domain that of pairs with rows of at most b
        pairs = ROCAreaFormula(self.plain, self.P, self.N, self.exact)
        return pairs.law_of_margins(p, y, 2.0 / self.unit, self.b)


def _near_whole(x: float) -> float:
    return float(round(x)) if abs(x - round(x)) <= 1e-9 * max(1.0, x) else x


ORDERS = {"AveragePrecision": AveragePrecisionFormula, "NDCG": NDCGFormula, "PartialAUC": PartialAUCFormula}
