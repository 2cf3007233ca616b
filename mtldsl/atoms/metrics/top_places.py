"""Metrics of the first places of a ranking: average precision, NDCG, precision and recall at k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.atom import register
from mtldsl.atoms.metrics.expected_loss import SUM_ROUNDING_SHARE, flip_probabilities
from mtldsl.atoms.metrics.metric import ConstantScore, Metric, MostViolatedPlane, classes_of
from mtldsl.atoms.metrics.ranking import RankingMetric
from mtldsl.errors import ModelError
from mtldsl.utils.validation import as_float, as_whole, quoted

# --------------------------------------------------------------------------------------------------------------
# Metrics of a list of samples in the order of their scores in which the first places count most: average precision, and NDCG.


class _PlacesMetric(RankingMetric):
    """Delta = sum over positives k = 1, 2, ..., P, from the highest on, of cost(k, r_k): cost is concave in the negatives r_k above, 0 at 0.

    A negative in place j gains, where it stands above the positives i, i + 1, ..., P and below the others, the sum over them of
    cost(k, j) - cost(k, j - 1) - unit (z_k - z_j). Every term falls with j, so that the best i rises with j: dividing the negatives
    in the middle, again and again, finds them all in O((P + N) log N) after the sorts, since the sum over k has a closed form.
    """

    def cost(self, k, r, positives: int):
        """Arrays k >= 1 and r >= 0 that broadcast."""
        raise NotImplementedError

    def gains(self, positives: int, negatives: int) -> tuple[np.ndarray, np.ndarray]:
        """p and q (P + N + 1,): the sum over k >= i of cost(k, j) - cost(k, j - 1) is c_j - p[i + j - 1] - j q[i + j - 1]."""
        raise NotImplementedError

    def delta_of_ranks(self, ranks, positives, negatives):
        return np.sum(self.cost(np.arange(1, positives + 1), np.asarray(ranks), positives), axis=1)

    def best_ranks(self, up, down):
        from mtldsl.atoms.metrics.metric_kernels import best_places

        P, N = len(up), len(down)
        below = np.append(np.cumsum(up[::-1])[::-1], 0.0)  # sums of the scores from positive i on
        first = np.empty(N, np.int64)
        best_places(below, np.ascontiguousarray(down), *self.gains(P, N), self.unit(P, N), first)
        return np.searchsorted(first, np.arange(P), side="right")

    def least_delta(self, means, positives, negatives):
        # a concave function lies above its chord, and the chord to all negatives is lowest for the last positive
        whole = float(self.cost(np.array(positives), np.array(negatives), positives))
        return float(np.sum(means)) * whole / negatives


@register
@dataclass(frozen=True, eq=False, repr=False)
class AveragePrecision(_PlacesMetric):
    r"""One minus the average precision of an order: Delta = 1 - (1 / Pos) sum over positives k = 1, ..., Pos, from the highest on, of
    k / (k + r_k), with r_k negatives above positive k: the mean, over positives, of the precision of the list that ends there.

    The structured hinge is the maximum over orders of Delta - 2 / (Pos Neg) times the sum of z_i - z_j over the pairs (positive i,
    negative j) in the wrong order. Range: [0, 1).

    Raises
    ------
    DataError
        By `structured_hinge`, where a task has labels of one class only.

    Notes
    -----
    The most violated order takes a sort and O(n log n): every negative has a best place among the positives by itself (Yue et al.), and
    these places rise with the negatives' own, so that halving finds them.
    Equal scores: the hinge is the same whatever their order; in `score` they are one step of the list, as in scikit-learn and the
    measure "average_precision".
    Conjugate: the domain is that of `ROCArea`; exact for a plane and up to 20 samples (a linear program over orders), above that an
    upper bound. Solvers prove theirs by the planes that they hold.
    Source: Yue, Finley, Radlinski and Joachims, "A support vector method for optimizing average precision", SIGIR 2007.

    Examples
    --------
    >>> from mtldsl.metrics import AveragePrecision
    >>> import numpy as np
    >>> z, y = np.array([0.9, 0.1, 0.2, -0.6]), np.array([1.0, 1.0, -1.0, -1.0])
    >>> round(AveragePrecision().score(z, y > 0, 0.0), 4)
    0.8333
    >>> plane = AveragePrecision().most_violated(z, y)
    >>> round(plane.delta, 4), plane.slope[1:3]  # and 0 for the first and the last, which stand where they should
    (0.1667, array([-0.5,  0.5]))
    """

    name: ClassVar[str] = "AveragePrecision"
    meaning: ClassVar[str] = "one minus the average precision of the order"
    formula: ClassVar[str] = r"1-\mathrm{AP}({})"

    def cost(self, k, r, positives):
        return r / (k + r) / positives

    def gains(self, positives, negatives):
        s = np.arange(1.0, positives + negatives + 1)
        harmonic = np.append(0.0, np.cumsum(1.0 / s))  # harmonic[s] = 1 + 1/2 + ... + 1/s
        return np.append(0.0, harmonic[:-1]) / positives, np.append(0.0, 1.0 / s) / positives

    def score(self, z, positive, threshold):
        """The average precision; equal scores are one step of the list."""
        values = np.unique(z)[::-1]
        found = np.sum(positive) - np.searchsorted(np.sort(z[positive]), values)
        listed = len(z) - np.searchsorted(np.sort(z), values)
        return float(np.sum(np.diff(found, prepend=0) * (found / listed)) / np.sum(positive))


@register
@dataclass(frozen=True, eq=False, repr=False)
class NDCG(_PlacesMetric):
    r"""One minus the normalised discounted cumulative gain of an order: Delta = 1 - DCG / (the largest DCG), DCG = the sum over positives
    of 1 / log2(1 + place), with places 1, 2, ..., n from the highest score on.

    The structured hinge is the maximum over orders of Delta - 2 / (Pos Neg) times the sum of z_i - z_j over the pairs (positive i,
    negative j) in the wrong order. Range: [0, 1).

    Raises
    ------
    DataError
        By `structured_hinge`, where a task has labels of one class only.

    Notes
    -----
    The most violated order takes a sort and O(n log n), as for `AveragePrecision`: 1 / log2(1 + place) is convex in the place.
    Equal scores: the hinge is the same whatever their order; `score` is the mean over their orders, as in scikit-learn's `ndcg_score`.
    Conjugate: the domain is that of `ROCArea`; exact for a plane and up to 20 samples (a linear program over orders), above that an
    upper bound. Solvers prove theirs by the planes that they hold.
    Source: Jarvelin and Kekalainen, "Cumulated gain-based evaluation of IR techniques", ACM Transactions on Information Systems 20
    (2002); as a structured loss, Chakrabarti, Khanna, Sawant and Bhattacharyya, "Structured learning for non-smooth ranking losses",
    KDD 2008.

    Examples
    --------
    >>> from mtldsl.metrics import NDCG
    >>> import numpy as np
    >>> z, y = np.array([0.9, 0.1, 0.2, -0.6]), np.array([1.0, 1.0, -1.0, -1.0])
    >>> round(NDCG().score(z, y > 0, 0.0), 4)
    0.9197
    >>> round(NDCG().most_violated(z, y).delta, 4)
    0.0803
    """

    name: ClassVar[str] = "NDCG"
    meaning: ClassVar[str] = "one minus the normalised discounted cumulative gain of the order"
    formula: ClassVar[str] = r"1-\mathrm{NDCG}({})"

    def cost(self, k, r, positives):
        return (_discount(k) - _discount(k + r)) / _best(positives)

    def gains(self, positives, negatives):
        # the sum telescopes to discount(i + j - 1) - discount(P + j)
        s = np.arange(positives + negatives + 1.0)
        return np.append(0.0, -_discount(s[1:])) / _best(positives), np.zeros(len(s))

    def score(self, z, positive, threshold):
        """The NDCG, mean over the orders of equal scores."""
        values, counts = np.unique(-z, return_counts=True)
        last = np.cumsum(counts)
        discounts = np.append(0.0, np.cumsum(_discount(np.arange(1.0, len(z) + 1))))
        means = (discounts[last] - discounts[last - counts]) / counts
        found = np.diff(np.searchsorted(np.sort(-z[positive]), values, side="right"), prepend=0)
        return float(found @ means / _best(int(np.sum(positive))))


def _discount(place):
    return 1.0 / np.log2(1.0 + place)


def _best(positives: int) -> float:
    return float(np.sum(_discount(np.arange(1.0, positives + 1))))


# --------------------------------------------------------------------------------------------------------------
# Metrics of the k samples that are labelled positive.


@dataclass(frozen=True, eq=False, repr=False)
class _TopPlacesMetric(Metric):
    """Labellings with exactly k samples labelled +1, and the true one; k a count or a fraction of the task's samples.

    Delta is linear in the flips of such labellings: 1 - a / k = b / k and 1 - a / Pos = c / Pos.
    """

    k: float
    fixes_positives: ClassVar[bool] = True
    scored_by_order: ClassVar[bool] = True
    exact_conjugate: ClassVar[bool] = True

    def __post_init__(self):
        object.__setattr__(self, "k", _checked(self.name, self.k))

    @classmethod
    def examples(cls):
        return [cls(k=3), cls(k=0.5)]

    def count(self, positives: int, negatives: int) -> int:
        """k in a task of this size."""
        return self.k if isinstance(self.k, int) else max(1, round(self.k * (positives + negatives)))

    def check(self, positives, negatives):
        n = positives + negatives
        if self.count(positives, negatives) <= n:
            return None
        return f"k={self.k} samples are to be labelled +1, but the task has {n}; write at most k={n}, or a fraction such as k=0.1"

    def denominator(self, positives: int, negatives: int) -> int:
        raise NotImplementedError

    def loss(self, b, c, positives: int, negatives: int):
        """Delta where it is finite, and linear in b and c; expectations of b and c give an expectation."""
        raise NotImplementedError

    def delta(self, b, c, positives, negatives):
        b, c = np.broadcast_arrays(b, c)
        allowed = (positives - c + b == self.count(positives, negatives)) | ((b == 0) & (c == 0))
        return np.where(allowed, self.loss(b, c, positives, negatives), -np.inf)

    def score(self, z, positive, threshold):
        """1 - Delta of the k highest; where equal predictions meet at the k-th place, the mean over all choices among them."""
        positives, negatives = int(positive.sum()), int((~positive).sum())
        k = self.count(positives, negatives)
        least = np.partition(z, len(z) - k)[len(z) - k]
        above, level = z > least, z == least
        a = positive[above].sum() + (k - above.sum()) * positive[level].mean()
        return float(1.0 - self.loss(k - a, positives - a, positives, negatives))

    def limits(self, positives, negatives):
        return np.inf, -np.inf

    def at_constants(self, positives, negatives, is_zero):
        # as many negatives among the k as there are, and whichever
        k = self.count(positives, negatives)
        b = min(k, negatives)
        c = positives - k + b
        if c == 0:  # the true labelling may be as high
            return None
        if b == k:
            return ConstantScore(0.0, (-2.0, -2.0), (0.0, 2.0), 2.0 * (b - c))
        return ConstantScore(0.0, (-2.0, 0.0), (2.0, 2.0), 2.0 * (b - c))

    def _plane(self, z, y, positive, negative):
        """With k labelled +1 the value is 1 - 2 sum of all z_i of positives + the sum of 2 z_j, less 1 / denominator for
        positives, over those k: the k largest of these are best, and a selection finds them without a sort.
        """
        sizes = len(positive), len(negative)
        k = self.count(*sizes)
        worth = -z
        worth[positive] += 0.5 / self.denominator(*sizes)
        labelled = np.zeros(len(z), bool)
        labelled[np.argpartition(worth, k - 1)[:k]] = True
        flipped = np.flatnonzero(labelled != (y > 0))
        b = int(np.count_nonzero(labelled[negative]))
        delta = self.loss(b, len(flipped) - b, *sizes)
        return MostViolatedPlane(delta - 2.0 * float(y[flipped] @ z[flipped]), delta, flipped)

    # ------------------------------------------------------------------------------------------ the conjugate
    #
    # A random labelling is the true one with probability 1 - tau. Given that it is not, it labels k samples +1, and any
    # probabilities of +1 in [0, 1] that sum to k are possible: p_j = tau r_j on negatives, tau (1 - r_i) on positives. Hence
    # 0 <= p <= tau <= 1 and sum p over negatives - sum p over positives = tau (k - Pos).

    def conjugate(self, u, y):
        p = flip_probabilities(u, y)
        positive, negative = classes_of(y)
        if p is None or not self._is_inside(p, positive, negative):
            return np.inf
        b, c = float(np.sum(p[negative])), float(np.sum(p[positive]))
        return 0.0 - self.loss(b, c, len(positive), len(negative))

    def _share(self, p, positive, negative) -> tuple[float, float, int]:
        """(tau, its rounding, k - Pos); where k = Pos any tau between max p and 1 will do."""
        gained, lost = float(np.sum(p[negative])), float(np.sum(p[positive]))
        more = self.count(len(positive), len(negative)) - len(positive)
        rounding = SUM_ROUNDING_SHARE * (1.0 + (gained + lost) / max(abs(more), 1))
        if more:
            return (gained - lost) / more, rounding, more
        return (1.0 if abs(gained - lost) <= rounding else -1.0), rounding, more

    def _is_inside(self, p, positive, negative) -> bool:
        tau, rounding, _ = self._share(p, positive, negative)
        return bool(np.max(p) <= tau + rounding and tau <= 1.0 + rounding)

    def dual_project(self, u, y):
        """u itself inside; else the nearest point with the tau that the sums of u ask for."""
        u = np.clip(np.asarray(u, float), np.minimum(-2.0 * y, 0.0), np.maximum(-2.0 * y, 0.0))
        positive, negative = classes_of(y)
        p = flip_probabilities(u, y)
        if self._is_inside(p, positive, negative):
            return u
        tau, _, more = self._share(p, positive, negative)
        tau = min(max(tau, 0.0), 1.0) if more else 1.0
        return -2.0 * y * _onto_slice(p, -y, tau, tau * more)


def _onto_slice(p, sign, tau, total) -> np.ndarray:
    """The nearest x in [0, tau]^n with <sign, x> = total, sign +-1: clip(p - nu sign), nu the root of a falling function."""
    from scipy.optimize import brentq  # slow to import: where it is first used

    def beyond(nu: float) -> float:
        return float(sign @ np.clip(p - nu * sign, 0.0, tau)) - total

    bound = float(np.max(np.abs(p))) + tau + 1.0
    # where all n samples are labelled +1 the first end is the root, but for rounding
    nu = brentq(beyond, -bound, bound, xtol=1e-16, rtol=8.9e-16) if beyond(-bound) > 0.0 else -bound
    x = np.clip(p - nu * sign, 0.0, tau)
    free = (x > 0.0) & (x < tau)
    if np.any(free):  # what is left, to the last place
        x[free] -= sign[free] * ((sign @ x - total) / np.count_nonzero(free))
    return np.clip(x, 0.0, tau)


def _checked(word, k):
    """k as an int or a float; ModelError for anything that is neither a count nor a fraction."""
    count, share = as_whole(k), as_float(k)
    if count is not None and count >= 1:
        return count
    if count is None and share is not None:
        if 0.0 < share < 1.0:
            return share
        if share >= 1.0 and share.is_integer():
            raise ModelError(
                f"{word}(k={k!r}): {k!r} is not a fraction between 0 and 1; for a count write it without a point, k={int(share)}"
            )
    typed = quoted(k)
    raise ModelError(
        f"{word}(k={typed}): k must be a count of samples, a whole number >= 1 such as k=10, or a fraction of them, a number "
        "between 0 and 1 such as k=0.1"
    )


@register
@dataclass(frozen=True, eq=False, repr=False)
class PrecisionAt(_TopPlacesMetric):
    r"""One minus the precision at k: Delta = 1 - a / k = b / k on labellings with exactly k samples labelled +1, a of them
    positives and b negatives; no other labelling than these and the true one is looked at.

    Range: [0, 1].

    Parameters
    ----------
    k : int or float
        A count, at least 1, or a fraction of the task's n samples, strictly between 0 and 1: then round(k n), halves to the
        even number, and at least 1.

    Raises
    ------
    ModelError
        Where k is neither, or a task has fewer than k samples.

    Notes
    -----
    The most violated labelling takes O(n): the k largest z_j - [y_j = 1] / (2 k) are labelled +1, unless the true labelling
    (value 0) is better.
    Conjugate: -(1 / k) sum of p over negatives, at u = -2 y p with 0 <= p <= tau <= 1 for the tau with
    sum p over negatives - sum p over positives = tau (k - Pos); else +inf.
    Source: Joachims, "A support vector method for multivariate performance measures", ICML 2005, section 3.1.

    Examples
    --------
    >>> from mtldsl.metrics import PrecisionAt
    >>> import numpy as np
    >>> z, y = np.array([0.9, 0.1, 0.2, -0.6]), np.array([1.0, 1.0, -1.0, -1.0])
    >>> plane = PrecisionAt(k=1).most_violated(z, y)
    >>> plane.delta, plane.flipped
    (0.0, array([], dtype=int64))
    >>> plane = PrecisionAt(k=0.5).most_violated(z, y)
    >>> plane.delta, plane.flipped
    (0.5, array([1, 2]))
    """

    k: float

    name: ClassVar[str] = "PrecisionAt"
    meaning: ClassVar[str] = "one minus the precision at $k = <k>$"
    formula: ClassVar[str] = r"1-\mathrm{Prec}_k({})"

    def denominator(self, positives, negatives):
        return self.count(positives, negatives)

    def loss(self, b, c, positives, negatives):
        return b / self.count(positives, negatives)


@register
@dataclass(frozen=True, eq=False, repr=False)
class RecallAt(_TopPlacesMetric):
    r"""One minus the recall at k: Delta = 1 - a / Pos = c / Pos on labellings with exactly k samples labelled +1, a of the Pos
    positives among them and c not; no other labelling than these and the true one is looked at.

    Range: [0, 1].

    Parameters
    ----------
    k : int or float
        A count, at least 1, or a fraction of the task's n samples, strictly between 0 and 1: then round(k n), halves to the
        even number, and at least 1.

    Raises
    ------
    ModelError
        Where k is neither, or a task has fewer than k samples.

    Notes
    -----
    The most violated labelling takes O(n): the k largest z_j - [y_j = 1] / (2 Pos) are labelled +1, unless the true labelling
    (value 0) is better.
    Conjugate: -(1 / Pos) sum of p over positives, on the domain of `PrecisionAt`.
    Source: Joachims, "A support vector method for multivariate performance measures", ICML 2005, section 3.1.

    Examples
    --------
    >>> from mtldsl.metrics import RecallAt
    >>> import numpy as np
    >>> z, y = np.array([0.9, 0.1, 0.2, -0.6]), np.array([1.0, 1.0, -1.0, -1.0])
    >>> plane = RecallAt(k=2).most_violated(z, y)
    >>> plane.delta, plane.flipped
    (0.5, array([1, 2]))
    """

    k: float

    name: ClassVar[str] = "RecallAt"
    meaning: ClassVar[str] = "one minus the recall at $k = <k>$"
    formula: ClassVar[str] = r"1-\mathrm{Rec}_k({})"

    def denominator(self, positives, negatives):
        return positives

    def loss(self, b, c, positives, negatives):
        return c / positives
