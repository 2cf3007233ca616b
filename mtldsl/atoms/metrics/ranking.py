"""Metrics of rankings: area above the ROC curve, whole or between two false positive rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.atom import register
from mtldsl.atoms.metrics.expected_loss import SUM_ROUNDING_SHARE, largest_mixture
from mtldsl.atoms.metrics.metric import ConstantScore, Metric, MostViolatedPlane, classes_of
from mtldsl.atoms.structured_prox.score_steps import capped_sums
from mtldsl.errors import ModelError
from mtldsl.utils.validation import as_float, quoted

# --------------------------------------------------------------------------------------------------------------
# Row and column sums of matrices with entries in [0, 1]: what multipliers of losses of orders are made of (Gale and Ryser).
#
# An entry is a pair (positive i, negative j), and how often it is in the wrong order. Where only the first negatives of an order count,
# `width` of them, no row has a larger sum than that: the condition of Gale and Ryser holds for matrices with entries at most t_j in column
# j, t_j in [0, 1] with the sum `width`, where it holds for those with entries at most 1 and the rows are no larger than `width` (t_j =
# min(1, max(column_j / P, column_j / c)), with the c for which they have this sum, is best for all conditions at once).


def inside(rows, columns, width: float) -> bool:
    """Tell whether there is such a matrix."""
    P, N = len(rows), len(columns)
    size = SUM_ROUNDING_SHARE * P * N
    clipped = np.clip(rows, 0.0, width), np.clip(columns, 0.0, P)
    near = all(np.all(np.abs(now - then) <= size) for now, then in zip(clipped, (rows, columns), strict=True))
    return bool(near and np.min(slack(*clipped)) >= -size and abs(np.sum(rows) - np.sum(columns)) <= size)


def nearest_margins(rows, columns, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Margins of such a matrix near these: clipped, scaled to one total, and mixed with those of all pairs alike as far as it takes."""
    P, N = len(rows), len(columns)
    rows, columns = np.clip(rows, 0.0, width), np.clip(columns, 0.0, P)
    total = min(np.sum(rows), np.sum(columns))
    if total <= 0.0:
        return np.zeros(P), np.zeros(N)
    rows, columns = rows * (total / np.sum(rows)), columns * (total / np.sum(columns))
    alike = np.full(P, total / P), np.full(N, total / N)
    # the slack is concave on the way to the matrix of equal entries, where it is not negative: the chord's root is inside
    here, there = slack(rows, columns), slack(*alike)
    short, share = here < 0.0, 0.0
    if np.any(short):
        share = min(1.0, float(np.max(-here[short] / (np.maximum(there[short], 0.0) - here[short]))))
    return (1.0 - share) * rows + share * alike[0], (1.0 - share) * columns + share * alike[1]


def slack(rows, columns) -> np.ndarray:
    """sum_j min(columns_j, k) - the sum of the k largest rows, for k = 1 ... P - 1 (k = P says that totals agree)."""
    if len(rows) < 2:
        return np.zeros(1)
    k = np.arange(1, len(rows))
    return capped_sums(columns, k) - np.cumsum(np.sort(rows)[::-1])[:-1]


# --------------------------------------------------------------------------------------------------------------
# What metrics of orders share: planes that say which order they are of, and random orders as a proof.
#
# The plane of an order of a task's samples has, at a positive with r negatives above it, the slope -unit W_r, and at the negative in
# place k among the negatives, with q positives below it, unit w_k q: w_k is 1 but where only the first negatives count, W_r = w_1 + ... + w_r.
# So a plane's slope tells its order, and with that its Delta: a mixture of planes is all that a proof of E Delta takes.


@dataclass(frozen=True)
class RankingSettings:
    """Limits of conjugates of orders.

    exact_rows : samples up to which a conjugate is exact: a linear program over planes found one by one
    slope_tol  : rounding of a slope, in pairs
    """

    exact_rows: int = 20
    slope_tol: float = 1e-7


SETTINGS = RankingSettings()


class RankingMetric(Metric):
    """A metric Delta(r_1 <= ... <= r_P) of how many negatives stand above each positive of an order."""

    labellings: ClassVar[bool] = False
    tells_orders: ClassVar[bool] = True
    scored_by_order: ClassVar[bool] = True

    # ------------------------------------------------------------------------------------ what a metric says

    def unit(self, positives: int, negatives: int) -> float:
        """The slope of one pair in the wrong order."""
        return 2.0 / (positives * negatives)

    def width(self, positives: int, negatives: int) -> float:
        """Return how many negatives count, the highest first; the last may count in part."""
        return float(negatives)

    def delta_of_ranks(self, ranks, positives: int, negatives: int) -> np.ndarray:
        """(K,) Delta of orders; ranks (K, P), rising whole numbers from 0 to the negatives that count."""
        raise NotImplementedError

    def best_ranks(self, up, down) -> np.ndarray:
        """(P,) the ranks of a highest plane where positives are scored `up` and negatives `down`, both falling."""
        raise NotImplementedError

    def least_delta(self, means, positives: int, negatives: int) -> float:
        """A lower bound of E Delta of random orders with these means (P,) of W_r."""
        raise NotImplementedError

    # --------------------------------------------------------------------------------------------- the oracle

    def _plane(self, z, y, positive, negative):
        up, down = positive[np.argsort(-z[positive])], negative[np.argsort(-z[negative])]
        ranks = self.best_ranks(z[up], z[down])
        slope = self._slope(ranks, up, down, len(y))
        delta = float(self.delta_of_ranks(ranks[None, :], len(up), len(down))[0])
        return MostViolatedPlane(delta + float(slope @ z), delta, None, slope)

    def _weights(self, positives: int, negatives: int) -> np.ndarray:
        """(N,) how much the negatives of an order count, from the highest on."""
        return np.clip(self.width(positives, negatives) - np.arange(negatives), 0.0, 1.0)

    def _slope(self, ranks, up, down, n: int) -> np.ndarray:
        """The slope of the order in which the positives `up` have the rising `ranks`, and the negatives come as in `down`."""
        P, N = len(up), len(down)
        weights, unit, slope = self._weights(P, N), self.unit(P, N), np.zeros(n)
        slope[up] = -unit * np.append(0.0, np.cumsum(weights))[ranks]
        slope[down] = unit * weights * (P - np.searchsorted(ranks, np.arange(1, N + 1)))
        return slope

    def at_constants(self, positives, negatives, is_zero):
        # every negative that counts stands above all positives; which ones these are does not matter where all scores are equal
        unit, width = self.unit(positives, negatives), self.width(positives, negatives)
        low = unit if width == negatives else 0.0
        return ConstantScore(0.0, (-unit * width, -unit * width), (low * positives, unit * positives), 0.0)

    # ------------------------------------------------------------------------------------------ mixtures of planes

    def orders_of(self, slopes, y) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(ranks (K, P) of the positives, places (K, N) of the negatives from 0 on, exact slopes (K, n)) of planes known by their slopes.

        ValueError where one is not a plane of an order.
        """
        positive, negative = classes_of(y)
        P, N = len(positive), len(negative)
        unit, weights = self.unit(P, N), self._weights(P, N)
        steps = np.append(0.0, np.cumsum(weights))[: np.count_nonzero(weights) + 1]
        middles = 0.5 * (steps[1:] + steps[:-1])
        ranks, places, exact = [], [], []
        for slope in slopes:
            own = np.searchsorted(middles, -slope[positive] / unit)
            up, down = np.argsort(own, kind="stable"), np.argsort(-slope[negative], kind="stable")
            again = self._slope(own[up], positive[up], negative[down], len(y))
            if not np.all(np.abs(again - slope) <= SETTINGS.slope_tol * unit):
                raise ValueError(f"{self!r}: this is not the slope of an order")
            place = np.empty(N, np.int64)
            place[down] = np.arange(N)
            ranks.append(own)
            places.append(place)
            exact.append(again)
        return (
            np.array(ranks).reshape(-1, P),
            np.array(places).reshape(-1, N),
            np.array(exact).reshape(-1, len(y)),
        )

    def deltas(self, ranks, negatives: int) -> np.ndarray:
        """(K,) Delta of orders with ranks (K, P) in any order."""
        return self.delta_of_ranks(np.sort(ranks, axis=1), ranks.shape[1], negatives)

    # ------------------------------------------------------------------------------------------ the conjugate

    def conjugate(self, u, y) -> float:
        """f*(u): +inf where u is not a mixture of slopes; elsewhere exact for a plane and for few samples, else an upper bound."""
        u = np.asarray(u, float)
        positive, negative = classes_of(y)
        P, N = len(positive), len(negative)
        unit = self.unit(P, N)
        if not inside(-u[positive] / unit, u[negative] / unit, self.width(P, N)):
            return np.inf
        try:
            ranks, _, _ = self.orders_of(u[None, :], y)
            return 0.0 - float(self.deltas(ranks, N)[0])
        except ValueError:
            pass  # several planes
        found = self._mixture(u, y)
        if found is not None:
            return 0.0 - found[0]
        return 0.0 - self.least_delta(np.maximum(-u[positive] / unit, 0.0), P, N)

    def _mixture(self, u, y):
        """(the largest E Delta of random orders with the mean slope u, slopes, weights); None for many samples."""
        if len(y) > SETTINGS.exact_rows:
            return None
        P = int(np.sum(y > 0))

        def oracle(z):
            plane = self.most_violated(z, y)
            return plane.slope, plane.delta

        return largest_mixture(oracle, u, 1.0 / self.unit(P, len(y) - P))

    def law_of_slope(self, u, y):
        """(ranks, places, weights) of random orders with the mean slope u; None where none is known."""
        found = self._mixture(np.asarray(u, float), y)
        if found is None:
            return None
        _, slopes, weights = found
        ranks, places, _ = self.orders_of(slopes, y)
        return ranks, places, weights

    def dual_project(self, u, y) -> np.ndarray:
        P = int(np.sum(y > 0))
        return _project_on_orders(u, y, self.unit(P, len(y) - P), self.width(P, len(y) - P))


def _project_on_orders(u, y, unit: float, width: float) -> np.ndarray:
    """u itself inside; else signs, sizes and totals are put right and u is mixed with the plane that has all pairs alike."""
    u = np.asarray(u, float)
    positive, negative = classes_of(y)
    rows, columns = -u[positive] / unit, u[negative] / unit
    if inside(rows, columns, width):
        return u
    rows, columns = nearest_margins(rows, columns, width)
    moved = np.zeros(len(u))
    moved[positive], moved[negative] = -unit * rows, unit * columns
    return moved


# --------------------------------------------------------------------------------------------------------------
# The area under a part of the ROC curve, as a metric of orders.


@register
@dataclass(frozen=True, eq=False, repr=False)
class PartialAUC(RankingMetric):
    r"""The area above the ROC curve of an order between two false positive rates, as a share of the whole: the mean of one minus the true
    positive rate where the false positive rate is between `min_fpr` and `max_fpr`.

    With N negatives, a = min_fpr N, b = max_fpr N, and r_i negatives above positive i, Delta = 1 / (Pos (b - a)) times the sum over
    positives of max(0, min(r_i, b) - a): of the negatives in the order of their scores, those between places a and b count, one in part
    where a or b is not whole. The structured hinge is

        1 / (Pos (b - a)) sum over positives i of the maximum over r = 0, 1, ..., b of max(0, r - a) - 2 sum over the r highest
        negatives j of (z_i - z_j),

    where min_fpr = 0 the sum over the b highest negatives of max(0, 1 - 2 (z_i - z_j)). Range: [0, 1]; `PartialAUC(max_fpr=1)` is `ROCArea()`.

    Parameters
    ----------
    max_fpr, min_fpr : numbers with 0 <= min_fpr < max_fpr <= 1
        The false positive rates between which the curve is looked at.

    Raises
    ------
    ModelError
        Where the two are no such numbers.
    DataError
        By `structured_hinge`, where a task has labels of one class only.

    Notes
    -----
    The highest plane takes a sort and O(n log n): for each positive one of two ranks, the best up to a and the best beyond.
    Equal scores: the hinge is the same whatever their order; in `score` the curve goes straight across them, as in scikit-learn's
    `roc_auc_score(max_fpr=...)`, which for min_fpr = 0 is this area, p = max_fpr, as (1 + (p area - p^2 / 2) / (p - p^2 / 2)) / 2.
    Conjugate: the domain is that of `ROCArea` with rows of at most b; for min_fpr = 0 exact, else exact for a plane and up to 20 samples
    (a linear program), and above that the bound by the mean ranks. Solvers prove theirs by the planes that they hold.
    Source: Narasimhan and Agarwal, "A structural SVM based approach for optimizing partial AUC", ICML 2013, and, with the hinge over the
    highest negatives alone, "SVM pAUC tight: a new support vector method for optimizing partial AUC based on a tight convex upper
    bound", KDD 2013.

    Examples
    --------
    >>> from mtldsl.metrics import PartialAUC
    >>> import numpy as np
    >>> z, y = np.array([0.9, 0.1, 0.2, -0.6]), np.array([1.0, 1.0, -1.0, -1.0])
    >>> plane = PartialAUC(max_fpr=0.5).most_violated(z, y)
    >>> plane.delta, plane.slope[1:3]  # and 0 for the first and the last, which stand where they should
    (0.5, array([-1.,  1.]))
    >>> PartialAUC(max_fpr=0.5).score(z, y > 0, 0.0), PartialAUC(max_fpr=1.0).score(z, y > 0, 0.0)
    (0.5, 0.75)
    """

    max_fpr: float = 0.1
    min_fpr: float = 0.0

    name: ClassVar[str] = "PartialAUC"
    meaning: ClassVar[str] = (
        "the area above the ROC curve of the order between false positive rates of <min_fpr> and <max_fpr>"
    )
    formula: ClassVar[str] = r"1-\mathrm{pAUC}({})"

    def __post_init__(self):
        low, high = as_float(self.min_fpr), as_float(self.max_fpr)
        if low is None or high is None or not 0.0 <= low < high <= 1.0:
            typed = f"max_fpr={quoted(self.max_fpr)}, min_fpr={quoted(self.min_fpr)}"
            raise ModelError(
                f"{self.name}({typed}): these are false positive rates, numbers with 0 <= min_fpr < max_fpr <= 1, such as max_fpr=0.1"
            )
        object.__setattr__(self, "min_fpr", low)
        object.__setattr__(self, "max_fpr", high)
        object.__setattr__(self, "exact_conjugate", low == 0.0)  # Delta is linear in the slope then

    @classmethod
    def examples(cls):
        return [cls(max_fpr=0.6), cls(max_fpr=0.9, min_fpr=0.3), cls(max_fpr=0.5, min_fpr=0.25)]

    def ends(self, negatives: int) -> tuple[float, float]:
        """(a, b): between which places of the negatives the curve is looked at."""
        return _near_whole(self.min_fpr * negatives), _near_whole(self.max_fpr * negatives)

    def width(self, positives, negatives):
        return self.ends(negatives)[1]

    def unit(self, positives, negatives):
        a, b = self.ends(negatives)
        return 2.0 / (positives * (b - a))

    def delta_of_ranks(self, ranks, positives, negatives):
        a, b = self.ends(negatives)
        return np.sum(np.maximum(np.minimum(ranks, b) - a, 0.0), axis=1) / (positives * (b - a))

    def best_ranks(self, up, down):
        (a, b), N = self.ends(len(down)), len(down)
        last, before = int(np.ceil(b)), int(np.floor(a))
        first = down[:last]
        weights = np.clip(b - np.arange(last), 0.0, 1.0)
        reached = np.append(0.0, np.cumsum(weights))
        # of rank r: heights[r] - 2 reached[r] z
        heights = np.maximum(reached - a, 0.0) + np.append(0.0, np.cumsum(2.0 * weights * first))
        # both parts are concave in r: up to `before` negatives count nothing, from `before` + 1 on each adds what it counts
        low = np.searchsorted(-first[:before], -up)
        high = before + 1 + np.searchsorted(-first[before + 1 :] - 0.5, -up)
        worth = [heights[r] - 2.0 * reached[r] * up for r in (low, high)]
        ranks = np.where(worth[1] > worth[0], high, low)
        return np.minimum(np.maximum.accumulate(ranks), N)

    def least_delta(self, means, positives, negatives):
        a, b = self.ends(negatives)  # Delta is convex in every W_r
        return float(np.sum(np.maximum(means - a, 0.0))) / (positives * (b - a))

    def _mixture(self, u, y):
        return None if self.min_fpr == 0.0 else super()._mixture(u, y)

    def score(self, z, positive, threshold):
        """The area under the curve between both rates, over their difference; straight across equal scores."""
        values = np.unique(z)
        tpr, fpr = (
            1.0 - np.searchsorted(np.sort(z[kind]), np.append(values, np.inf)) / np.sum(kind)
            for kind in (positive, ~positive)
        )
        inner = (fpr > self.min_fpr) & (fpr < self.max_fpr)
        ends = np.array([self.min_fpr, self.max_fpr])
        x, area = fpr[::-1], tpr[::-1]
        xs = np.concatenate([ends[:1], x[inner[::-1]], ends[1:]])
        ys = np.concatenate(
            [_curve_height(ends[0], x, area, -1), area[inner[::-1]], _curve_height(ends[1], x, area, 0)]
        )
        return float(np.sum(np.diff(xs) * 0.5 * (ys[1:] + ys[:-1])) / (self.max_fpr - self.min_fpr))


def _curve_height(rate, fpr, tpr, side) -> np.ndarray:
    """The height of the curve at a rate: of several there the last (side -1) or the first (0)."""
    same = np.flatnonzero(fpr == rate)
    return tpr[same[[side]]] if same.size else np.array([np.interp(rate, fpr, tpr)])


def _near_whole(x: float) -> float:
    whole = round(x)
    return float(whole) if abs(x - whole) <= 1e-9 * max(1.0, x) else x


@register
@dataclass(frozen=True, eq=False, repr=False)
class ROCArea(Metric):
    r"""The area above the ROC curve of a ranking: the share of pairs (positive i, negative j) in the wrong order. With it the
    structured hinge is (1 / (Pos Neg)) sum over pairs of max(0, 1 - 2 (z_i - z_j)), Pos and Neg the sizes of the classes.

    Range: [0, 1]. Not `AUC`: this one is a loss of *rankings*, every pair on its own, and its value does not change when all
    predictions of a task move by a constant; `AUC` is a loss of *labels*, b c / (Pos Neg), where the sign of a prediction
    counts. The measure "AUC" of most software is the one meant here.

    Raises
    ------
    DataError
        By `structured_hinge`, where a task has labels of one class only.

    Notes
    -----
    The highest plane takes two sorts and a merge, O(n log n) and O(n) memory: all pairs with z_i - z_j < 1/2.
    Its planes are rankings: they come with their slope, -2 / (Pos Neg) times the number of such pairs for a positive, with
    + for a negative. There is no Delta(b, c).
    Conjugate: -(1/2) sum of u over negatives where -u_i Pos Neg / 2 and u_j Pos Neg / 2 are the row and the column sums of some
    matrix with entries in [0, 1] (Gale and Ryser: totals agree, and the k largest rows are no more than sum_j min(column j, k),
    for every k), else +inf.
    Source: Joachims, "A support vector method for multivariate performance measures", ICML 2005, Algorithm 3 (ROCArea); it is
    what Algorithm 4 of the SMTL paper computes.

    Examples
    --------
    >>> from mtldsl.metrics import ROCArea
    >>> import numpy as np
    >>> z, y = np.array([0.9, 0.1, 0.2, -0.6]), np.array([1.0, 1.0, -1.0, -1.0])
    >>> plane = ROCArea().most_violated(z, y)
    >>> plane.delta, plane.slope
    (0.25, array([ 0. , -0.5,  0.5,  0. ]))
    """

    name: ClassVar[str] = "ROCArea"
    meaning: ClassVar[str] = "the area above the ROC curve of the ranking"
    formula: ClassVar[str] = r"1-\mathrm{ROCArea}({})"
    labellings: ClassVar[bool] = False
    scored_by_order: ClassVar[bool] = True
    exact_conjugate: ClassVar[bool] = True

    def _plane(self, z, y, positive, negative):
        up, down = z[positive], z[negative]
        # those in a pair with z_i - z_j < 1/2, by rising scores
        up, down = (
            part[own][np.argsort(scores[own])]
            for part, scores, own in (
                (positive, up, up - down.max() < 0.5), (negative, down, up.min() - down < 0.5)
            )
        )  # fmt: skip
        passed = np.searchsorted(z[down], z[up] - 0.5, "right")  # negatives in the right order with each
        wrong, slope, pairs = len(down) - passed, np.zeros(len(z)), float(len(positive)) * len(negative)
        slope[up] = -2.0 * wrong / pairs
        slope[down] = 2.0 * np.searchsorted(passed, np.arange(len(down)), "right") / pairs
        delta = float(wrong.sum()) / pairs
        # the slope sums to zero, and <slope, z> loses less where scores are measured from one of them
        value = delta + float(slope @ (z - (z[up[0]] if len(up) else 0.0)))
        return MostViolatedPlane(value, delta, None, slope)

    def at_constants(self, positives, negatives, is_zero):
        # every pair is in the wrong order, by less than its margin
        up, down = -2.0 / positives, 2.0 / negatives
        return ConstantScore(0.0, (up, up), (down, down), 0.0)

    def score(self, z, positive, threshold):
        """The share of pairs in the right order, equal predictions one half."""
        above, ordered = z[positive], np.sort(z[~positive])
        below = np.searchsorted(ordered, above, "left")
        up_to = np.searchsorted(ordered, above, "right")
        return float(np.sum(below + up_to) / (2 * len(above) * len(ordered)))

    # ------------------------------------------------------------------------------------------ the conjugate

    def conjugate(self, u, y):
        u = np.asarray(u, float)
        positive, negative = classes_of(y)
        half = 0.5 * len(positive) * len(negative)
        rows, columns = -half * u[positive], half * u[negative]
        if not inside(rows, columns, len(negative)):
            return np.inf
        return 0.0 - float(np.sum(np.clip(columns, 0.0, None))) / (len(positive) * len(negative))

    def dual_project(self, u, y):
        P = int(np.sum(y > 0))
        return _project_on_orders(u, y, 2.0 / (P * (len(y) - P)), float(len(y) - P))
