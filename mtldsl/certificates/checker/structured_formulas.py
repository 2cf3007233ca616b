"""The checker's formulas of structured losses: hinges of metrics, and losses over label graphs."""

from __future__ import annotations

import numpy as np

from mtldsl.certificates.checker.function import UnsupportedFormula
from mtldsl.certificates.checker.interval import Interval, clip_to_unit, join_intervals, maximum, product
from mtldsl.certificates.checker.limits import SETTINGS
from mtldsl.certificates.checker.loss_formulas import LossFormula
from mtldsl.certificates.checker.metric_formulas import METRICS, ORDERS, LabelCostFormula
from mtldsl.certificates.checker.proof_schema import witness_of_labellings

# --------------------------------------------------------------------------------------------------------------
# The checker's own formulas of losses over graphs of labels; the proof brings random labellings as witnesses.

#: what stands for a label that is not observed
GAP = 2


class LabelGraphFormula(LossFormula):
    """sum over samples i of w_i f(scores of sample i): `clique_hinge`, a maximum over labellings, or `pairwise_log_loss`, the
    logarithm of a sum over them. Predictions are flat, entry after entry of the graph, each for all samples. Where labels are missing it
    is over labellings of the others, and of scores of the graph that these induce.
    """

    def __init__(self, word, parameters, coefficients: Interval, data, exact: bool, witness):
        self.exact, self.is_hinge, self.witness = exact, word == "clique_hinge", witness
        self.members = [tuple(clique) for clique in parameters["members"]]
        self.K = parameters["n_labels"]
        if not data.shared:  # one label a task would stand for those of all samples
            raise UnsupportedFormula(f"{word} of labels whose inputs are not shared")
        if len(data.counts) != self.K:
            raise UnsupportedFormula(f"{word} over {self.K} labels, and data of {len(data.counts)}")
        if SETTINGS.enumeration_labels < self.K:
            raise UnsupportedFormula(f"{word} over {self.K} labels, more than {SETTINGS.enumeration_labels}")
        if any(k >= self.K for clique in self.members for k in clique):
            raise ValueError(f"{word} over a label that is not there")
        self.truth = _by_sample(data, (data.targets > 0).astype(np.int64), GAP)
        n = len(self.truth)
        own = None if data.sample_weights is None else _of_samples(data, word)
        self.w = coefficients[0].broadcast((n,)) if own is None else Interval.of(own, exact) * coefficients[0]
        self.costs = LabelCostFormula(parameters.get("loss", "hamming"), self.K, exact)
        self.all = (np.arange(2**self.K)[:, None] >> np.arange(self.K)[::-1]) & 1

    def indicators(self, labels) -> np.ndarray:
        """(L, S): two columns a label, then 2^|c| a clique, 1 where a labelling chooses that entry."""
        blocks = [np.stack([labels[:, k] == 0, labels[:, k] == 1], axis=1) for k in range(self.K)]
        for clique in self.members:
            number = np.zeros(len(labels), dtype=int)
            for k in clique:
                number = 2 * number + labels[:, k]
            observed = (labels[:, list(clique)] != GAP).all(axis=1)
            blocks.append(observed[:, None] & (number[:, None] == np.arange(2 ** len(clique))))
        return np.concatenate(blocks, axis=1).astype(float)

    def _table(self, flat: Interval) -> Interval:
        return flat.reshape(-1, len(self.truth)).T

    def value(self, z: Interval) -> Interval:
        scores = self._table(z)
        own = (scores * self.indicators(self.truth)).sum(axis=1)
        total = z.like(0.0)
        for part, beside in self._parts():
            all_scores = product(scores[part], self.indicators(beside).T) - own[part].reshape(-1, 1)
            if self.is_hinge:
                found = (all_scores + self.costs.beside(beside, self.truth[part])).max(axis=1)
            else:
                top = all_scores.like(all_scores.middle.max(axis=1))
                found = (all_scores - top.reshape(-1, 1)).exp().sum(axis=1).log() + top
            total = total + (found * self.w[part]).sum()
        return total

    def _parts(self):
        """(samples with the same labels missing, all their labellings), some at a time."""
        missing, of = np.unique(self.truth == GAP, axis=0, return_inverse=True)
        for number, gaps in enumerate(missing):
            beside = np.where(gaps, GAP, self.all[~self.all[:, gaps].any(axis=1)])
            rows, step = np.flatnonzero(of.ravel() == number), max(1, SETTINGS.slab_entries // len(beside))
            whole = len(missing) == 1 and len(rows) <= step
            for first in range(0, len(rows), step):
                yield slice(None) if whole else rows[first : first + step], beside

    def inside(self, u: Interval) -> Interval:
        """The multipliers that the proof's random labellings stand for; u itself is not looked at."""
        if self.witness is None:
            raise UnsupportedFormula("a loss over a graph of labels: the proof brings no random labellings")
        read = witness_of_labellings(len(self.truth), self.K)(self.witness, "the witness of a label graph")
        labels, weights, starts = read["labels"], read["weights"], read["starts"]
        own, n = self.indicators(self.truth), len(self.truth)
        self.promised = u.like(0.0)
        means = []
        for i in range(n):
            rows = slice(int(starts[i]), int(starts[i + 1]))
            chosen = labels[rows]
            if not np.isin(chosen[:, self.truth[i] != GAP], (0, 1)).all():
                raise UnsupportedFormula("a random labelling with a label that is neither 0 nor 1")
            if not len(chosen):
                means.append(u.like(np.zeros((1, own.shape[1]))))
                continue
            chosen, p = np.where(self.truth[i] == GAP, GAP, chosen), u.like(weights[rows])
            p = p / maximum(p.sum(), 1.0)
            mean = product((self.indicators(chosen) - own[i]).T, p)
            means.append((mean * self.w[i]).reshape(1, -1))
            self.promised = self.promised + self._promise(i, chosen, p) * self.w[i]
        return join_intervals(means).T.reshape(-1)

    def _promise(self, i: int, chosen, p: Interval) -> Interval:
        """The expected cost of a random labelling; of a likelihood, its entropy."""
        if self.is_hinge:
            return (p * self.costs.of(chosen, self.truth[i])).sum()
        each, where = np.unique(chosen, axis=0, return_inverse=True)
        if len(each) < len(chosen):  # the same labelling twice is one
            p = product(np.eye(len(each))[:, where.ravel()], p)
        rest = maximum(1.0 - p.sum(), 0.0)
        true = np.flatnonzero((each == self.truth[i]).all(axis=1))
        if len(true):
            p, rest = p.with_entries(true, p[true] + rest), rest * 0.0
        return -(clip_to_unit(p).times_log().sum() + clip_to_unit(rest).times_log())

    def conjugate(self, u: Interval, t: Interval) -> Interval:
        return -self.promised * t


def _by_sample(data, flat, missing) -> np.ndarray:
    """(n, K) of what labels have, label after label; `missing` where there is none."""
    found = np.full((data.inputs.shape[0], len(data.counts)), missing, dtype=flat.dtype)
    for k, rows in enumerate(data.rows):
        found[slice(None) if data.mask is None else data.mask[:, k], k] = flat[rows]
    return found


def _of_samples(data, word) -> np.ndarray:
    """(n,) the weight that all labels of a sample have; 1 of one without labels, which counts for nothing."""
    table = _by_sample(data, data.sample_weights, 0.0)
    largest = table.max(axis=1)
    if np.any((table != largest[:, None]) & (table != 0.0)):
        raise UnsupportedFormula(f"{word} with other weights for other labels of a sample")
    return np.where(largest > 0.0, largest, 1.0)


# --------------------------------------------------------------------------------------------------------------
# The checker's own formulas of structured hinges of the metrics of the language.
#
# Where a conjugate has no closed form the proof brings a witness, a random labelling, and what is checked is that this labelling has the
# marginals that the multipliers stand for.

KNOWN = METRICS | ORDERS


class StructuredHingeFormula(LossFormula):
    """sum over tasks i of c_i max over labellings y' of Delta(y, y') - <y - y', z>."""

    def __init__(self, metrics, coefficients: Interval, data, exact: bool, witness):
        self.c, self.exact, self.rows = coefficients, exact, data.rows
        self.y = [data.targets[rows] for rows in self.rows]
        if len(metrics) not in (1, len(self.rows)):
            raise ValueError(f"structured_hinge of {len(self.rows)} tasks with {len(metrics)} metrics")
        self.metrics = []
        for i, y in enumerate(self.y):
            plain = metrics[i] if len(metrics) > 1 else metrics[0]
            if plain["metric"] not in KNOWN:
                raise UnsupportedFormula(f"structured_hinge with the metric {plain['metric']}")
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
        return join_intervals(parts)

    def shifted(self, u: Interval, i: int, total: Interval, alone: bool) -> Interval | None:
        """A little of the labelling that is wrong on all positives is mixed in, more than enough; then as much of the one that is
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
        return u.with_entries(rows, own)

    def conjugate(self, u: Interval, t: Interval) -> Interval:
        return -sum(self.promised, u.like(0.0)) * t  # f* is convex and f*(0) <= 0
