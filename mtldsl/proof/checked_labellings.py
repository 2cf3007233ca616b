"""The checker's own formulas of losses of whole labellings: structured hinges of the metrics of the language, and graphs of labels.

Where a conjugate has no closed form the proof brings a witness, a random labelling, and what is checked is that this labelling has the
marginals that the multipliers stand for. Multipliers are moved to where that is so, as real numbers, and never the other way round.
"""

from __future__ import annotations

import numpy as np

from mtldsl.proof.checked_functions import NotChecked
from mtldsl.proof.enclosures import Interval, maximum, minimum, product, tighter

__all__ = ["LabelGraphPart", "StructuredPart"]

#: labels up to which all labellings are looked at
_MOST_LABELS = 14
#: pairs of samples, or tables, that are held at once
_CHUNK = 2_000_000


class StructuredPart:
    """sum over tasks i of c_i max over labellings y' of Delta(y, y') - <y - y', z>."""

    def __init__(self, metrics, coefficients: Interval, data, exact: bool, witness):
        self.c, self.exact, self.offsets = coefficients, exact, data.offsets
        self.rows = [slice(int(a), int(b)) for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True)]
        self.y = [data.targets[rows] for rows in self.rows]
        self.laws = witness or [None] * len(self.rows)
        self.metrics = []
        for i, y in enumerate(self.y):
            plain = metrics[i] if len(metrics) > 1 else metrics[0]
            if plain["metric"] not in METRICS:
                raise NotChecked(f"structured_hinge with the metric {plain['metric']}")
            self.metrics.append(
                METRICS[plain["metric"]](plain, int(np.sum(y > 0)), int(np.sum(y < 0)), exact)
            )

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
        return Interval(np.concatenate([p.low for p in parts]), np.concatenate([p.high for p in parts]))

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


class _Metric:
    """Of a task with P positives and N negatives."""

    every_labelling = False  # no labelling is forbidden, and none is a ranking

    def __init__(self, plain, positives: int, negatives: int, exact: bool):
        self.P, self.N, self.exact, self.plain = positives, negatives, exact, plain

    def number(self, x):
        return Interval.of(x, self.exact)

    def delta(self, b, c) -> Interval:
        """Of arrays of whole numbers that broadcast."""
        raise NotImplementedError

    def value(self, positive: Interval, negative: Interval) -> Interval:
        """The largest Delta(b, c) - 2 (the c smallest positive scores) + 2 (the b largest negative ones)."""
        of_c, of_b = _running(positive, 1) * -2.0, _running(negative, -1) * 2.0
        best, rows = None, max(1, _CHUNK // (self.N + 1))
        b = np.arange(self.N + 1)[None, :]
        for first in range(0, self.P + 1, rows):
            c = np.arange(first, min(first + rows, self.P + 1))[:, None]
            table = self.delta(b, c) + of_c[c[:, 0]].reshape(-1, 1) + of_b.reshape(1, -1)
            here = table.reshape(-1).max()
            best = here if best is None else maximum(best, here)
        return best

    def law_of(self, p: Interval, y, law):
        """(probabilities that have a random labelling, a lower bound of its expected Delta); law: its tables (b, c, weights)."""
        p = tighter_ends(p)
        if law is None:
            raise NotChecked(
                f"structured_hinge with {self.plain['metric']}: the proof brings no random labelling"
            )
        b, c, weights = (np.asarray(part) for part in law)
        weights = self.number(np.maximum(weights, 0.0))
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


class _FScore(_Metric):
    every_labelling = True

    def delta(self, b, c):
        beta = float(self.plain.get("beta", 1.0))
        if not 0 < beta < np.inf:
            raise NotChecked(f"FScore with beta={beta:g}")
        square = self.number(beta).square()
        b, c = self.number(np.asarray(b, float)), self.number(np.asarray(c, float))
        return (b + c * square) / (float(self.P) - c + b + square * float(self.P))


class _AUC(_Metric):
    every_labelling = True

    def delta(self, b, c):
        return self.number(np.asarray(b, float)) * self.number(np.asarray(c, float)) / float(self.P * self.N)

    def law_of(self, p, y, law):
        p = tighter_ends(p)
        i, j = p[y > 0], p[y < 0]
        total, rows = self.number(0.0), max(1, _CHUNK // max(self.N, 1))
        for first in range(0, self.P, rows):
            total = (
                total + minimum(i[first : first + rows].reshape(-1, 1), j.reshape(1, -1)).reshape(-1).sum()
            )
        return p, total / float(self.P * self.N)


class _ErrorRate(_Metric):
    every_labelling = True

    def delta(self, b, c):
        return self.number(2.0 * (np.asarray(b, float) + np.asarray(c, float)))

    def value(self, positive, negative):
        return (maximum(1.0 - positive, 0.0).sum() + maximum(1.0 + negative, 0.0).sum()) * 2.0

    def law_of(self, p, y, law):
        p = tighter_ends(p)
        return p, p.sum() * 2.0


class _ROCArea(_Metric):
    def value(self, positive, negative):
        total, rows = self.number(0.0), max(1, _CHUNK // max(self.N, 1))
        for first in range(0, self.P, rows):
            i = positive[first : first + rows].reshape(-1, 1)
            total = total + maximum(1.0 - (i - negative.reshape(1, -1)) * 2.0, 0.0).reshape(-1).sum()
        return total / float(self.P * self.N)

    def law_of(self, p, y, law):
        """p P N are row and column sums of a matrix with entries in [0, 1] (Gale and Ryser)."""
        size = float(self.P) * self.N
        rows = minimum(maximum(p[y > 0] * size, 0.0), float(self.N))
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
        capped = Interval(np.concatenate([x.low for x in capped]), np.concatenate([x.high for x in capped]))
        return capped + _running(-rows, 1)[1 : self.P]


class _Top(_Metric):
    """Labellings with k samples labelled +1, and the true one."""

    def count(self) -> int:
        k = self.plain["k"]
        return int(k) if isinstance(k, int) else max(1, round(k * (self.P + self.N)))

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


class _PrecisionAt(_Top):
    def delta(self, b, c):
        return self.number(np.asarray(b, float)) / float(self.count())

    def expected(self, b, c):
        return b / float(self.count())


class _RecallAt(_Top):
    def delta(self, b, c):
        return self.number(np.asarray(c, float)) / float(self.P)

    def expected(self, b, c):
        return c / float(self.P)


METRICS = {
    "FScore": _FScore, "AUC": _AUC, "ErrorRate": _ErrorRate, "ROCArea": _ROCArea, "PrecisionAt": _PrecisionAt, "RecallAt": _RecallAt,
}  # fmt: skip


# -------------------------------------------------------------------------------------------- graphs of labels


class LabelGraphPart:
    """sum over samples i of w_i f(scores of sample i): `clique_hinge`, a maximum over labellings, or `pairwise_log_loss`, the
    logarithm of a sum over them. Predictions are flat, entry after entry of the graph, each for all samples.
    """

    def __init__(self, word, parameters, coefficients: Interval, data, exact: bool, witness):
        self.exact, self.is_hinge, self.witness = exact, word == "clique_hinge", witness
        self.members = [tuple(clique) for clique in parameters["members"]]
        self.K = int(parameters["n_labels"])
        if self.K > _MOST_LABELS:
            raise NotChecked(f"{word} over {self.K} labels, more than {_MOST_LABELS}")
        self.truth = (data.targets.reshape(self.K, -1).T > 0).astype(np.int64)
        n = len(self.truth)
        own = None if data.sample_weights is None else data.sample_weights.reshape(self.K, -1)[0]
        self.w = coefficients[0].broadcast((n,)) if own is None else Interval.of(own, exact) * coefficients[0]
        costs = parameters.get("loss", "hamming")
        self.costs = np.ones(self.K) if isinstance(costs, str) else np.asarray(costs, float)
        if not (self.costs >= 0).all():
            raise NotChecked(f"{word} with a cost below 0")
        self.all = (np.arange(2**self.K)[:, None] >> np.arange(self.K)[::-1]) & 1

    def indicators(self, labels) -> np.ndarray:
        """(L, S): two columns a label, then 2^|c| a clique, 1 where a labelling chooses that entry."""
        blocks = [np.stack([1 - labels[:, k], labels[:, k]], axis=1) for k in range(self.K)]
        for clique in self.members:
            number = np.zeros(len(labels), dtype=int)
            for k in clique:
                number = 2 * number + labels[:, k]
            blocks.append((number[:, None] == np.arange(2 ** len(clique))).astype(int))
        return np.concatenate(blocks, axis=1).astype(float)

    def _table(self, flat: Interval) -> Interval:
        return flat.reshape(-1, len(self.truth)).T

    def value(self, z: Interval) -> Interval:
        scores = self._table(z)
        own = (scores * self.indicators(self.truth)).sum(axis=1)
        total, step = z.like(0.0), max(1, _CHUNK // len(self.all))
        for first in range(0, len(self.truth), step):
            part = slice(first, first + step)
            all_scores = product(scores[part], self.indicators(self.all).T) - own[part].reshape(-1, 1)
            if self.is_hinge:
                wrong = self.all[None, :, :] != self.truth[part][:, None, :]
                found = (
                    all_scores
                    + product(wrong.reshape(-1, self.K).astype(float), z.like(self.costs)).reshape(
                        all_scores.shape
                    )
                ).max(axis=1)
            else:
                top = all_scores.like(all_scores.middle.max(axis=1))
                found = (all_scores - top.reshape(-1, 1)).exp().sum(axis=1).log() + top
            total = total + (found * self.w[part]).sum()
        return total

    def inside(self, u: Interval) -> Interval:
        """The multipliers that the proof's random labellings stand for; u itself is not looked at."""
        if self.witness is None:
            raise NotChecked("a loss over a graph of labels: the proof brings no random labellings")
        labels = np.asarray(self.witness["labels"], dtype=np.int64)
        weights, starts = (
            np.maximum(self.witness["weights"], 0.0),
            np.asarray(self.witness["starts"], dtype=np.int64),
        )
        own, n = self.indicators(self.truth), len(self.truth)
        self.promised = u.like(0.0)
        lows, highs = [], []
        for i in range(n):
            rows = slice(int(starts[i]), int(starts[i + 1]))
            chosen = labels[rows]
            p = u.like(weights[rows])
            if len(chosen):
                p = p / maximum(p.sum(), 1.0)
            mean = (
                product((self.indicators(chosen) - own[i]).T, p)
                if len(chosen)
                else u.like(np.zeros(own.shape[1]))
            )
            mean = mean * self.w[i]
            lows.append(mean.low)
            highs.append(mean.high)
            if len(chosen):
                self.promised = self.promised + self._promise(i, chosen, p) * self.w[i]
        return Interval(np.stack(lows).T.ravel(), np.stack(highs).T.ravel())

    def shifted(self, u, i, total, alone):
        return None  # no intercepts

    def _promise(self, i: int, chosen, p: Interval) -> Interval:
        """The expected cost of a random labelling; of a likelihood, its entropy."""
        wrong = chosen != self.truth[i]
        if self.is_hinge:
            return (p * product(wrong.astype(float), p.like(self.costs))).sum()
        each, where = np.unique(chosen, axis=0, return_inverse=True)
        if len(each) < len(chosen):  # the same labelling twice is one
            p = product(np.eye(len(each))[:, where.ravel()], p)
        rest = maximum(1.0 - p.sum(), 0.0)
        true = np.flatnonzero((each == self.truth[i]).all(axis=1))
        if len(true):
            p, rest = p.with_entries(true, p[true] + rest), rest * 0.0
        return -(tighter(p, 0.0, 1.0).times_log().sum() + tighter(rest, 0.0, 1.0).times_log())

    def conjugate(self, u: Interval, t: Interval) -> Interval:
        return -self.promised * t
