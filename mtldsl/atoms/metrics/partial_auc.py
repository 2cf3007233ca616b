"""The area under a part of the ROC curve, as a metric of orders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.function import register
from mtldsl.atoms.metrics.orders import Orders
from mtldsl.errors import ModelError
from mtldsl.values.number import as_float, quoted

__all__ = ["PartialAUC"]


@register
@dataclass(frozen=True, eq=False, repr=False)
class PartialAUC(Orders):
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
        ys = np.concatenate([_at(ends[0], x, area, -1), area[inner[::-1]], _at(ends[1], x, area, 0)])
        return float(np.sum(np.diff(xs) * 0.5 * (ys[1:] + ys[:-1])) / (self.max_fpr - self.min_fpr))


def _at(rate, fpr, tpr, side) -> np.ndarray:
    """The height of the curve at a rate: of several there the last (side -1) or the first (0)."""
    same = np.flatnonzero(fpr == rate)
    return tpr[same[[side]]] if same.size else np.array([np.interp(rate, fpr, tpr)])


def _near_whole(x: float) -> float:
    whole = round(x)
    return float(whole) if abs(x - whole) <= 1e-9 * max(1.0, x) else x
