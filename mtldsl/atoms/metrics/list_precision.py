"""Metrics of a list of samples in the order of their scores in which the first places count most: average precision, and NDCG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.function import register
from mtldsl.atoms.metrics.orders import Orders

__all__ = ["NDCG", "AveragePrecision"]


class _ByPlaces(Orders):
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
        from mtldsl.atoms.metrics.order_kernels import best_places

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
class AveragePrecision(_ByPlaces):
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
class NDCG(_ByPlaces):
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
