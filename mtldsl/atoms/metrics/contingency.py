"""Metrics of a contingency table: F-score, AUC on labels, error rates, Jaccard and G-mean."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np

from mtldsl.atoms.atom import register
from mtldsl.atoms.metrics.metric import ConstantScore, Metric, MostViolatedPlane, smaller_class
from mtldsl.atoms.structured_prox.score_steps import (
    auc_promise,
    auc_steps,
    fscore_law,
    fscore_promise,
    fscore_steps,
)

#: beta up to which thresholds of the F-score stand apart from one another in float64
LARGEST_BETA = 1e3


@register
@dataclass(frozen=True, eq=False, repr=False)
class FScore(Metric):
    r"""One minus the F-score of a labelling: Delta = 1 - (1 + beta^2) a / (a + b + beta^2 Pos), with b negatives labelled +1,
    c positives labelled -1, a = Pos - c and Pos positives in the task.

    Range: [0, 1]; 1 where no positive is labelled +1. beta > 1 weighs recall, beta < 1 precision; the harmonic mean of the two
    at beta = 1.

    Parameters
    ----------
    beta : float, default 1.0
        The standard beta, between 1e-100 and 1e100. (The beta of the SMTL paper's equation (8) is its square.)

    Raises
    ------
    ModelError
        Where beta is not such a number.

    Notes
    -----
    The most violated labelling takes a sort and O(n) for every beta: at fixed a, Delta is concave in b, and the best b rises,
    then falls as a grows. Only positives with z <= (1 + beta^2) / (2 (1 + beta^2 Pos)) and negatives with z >= -(the largest
    step in b) / 2, which is 1 / (2 ((1 + beta^2) Pos + 1)) for beta >= 1, are ever flipped.
    Source: Joachims, "A support vector method for multivariate performance measures", ICML 2005, Algorithm 2; SMTL, equations
    (8)-(9) and Algorithm 3.
    For beta from 1 to 1,000 the conjugate is exact for tasks of any size (thresholds, no linear program), and so is the prox.

    Examples
    --------
    >>> from mtldsl.metrics import FScore
    >>> FScore(beta=2.0).delta(b=1, c=1, positives=4, negatives=6)
    0.25
    >>> import numpy as np
    >>> FScore().most_violated(np.array([0.9, 0.1, 0.1, -0.6]), np.array([1.0, 1.0, -1.0, -1.0])).flipped
    array([2, 1])
    """

    beta: float = 1.0

    name: ClassVar[str] = "FScore"
    meaning: ClassVar[str] = r"one minus the F-score with $\beta = <beta>$ of the labels $y'$"
    formula: ClassVar[str] = r"1-F_\beta({})"

    def __post_init__(self):
        must_be = "a number between 1e-100 and 1e100, such as beta=1.0"
        self.keep_number("beta", lambda b: 1e-100 <= b <= 1e100, must_be)

    @classmethod
    def examples(cls):
        return [cls(), cls(beta=2.0), cls(beta=0.5)]

    def delta(self, b, c, positives, negatives):
        square = self.beta**2  # written without a difference: nothing cancels, and it is 0 at b = c = 0
        return (b + square * c) / (positives - c + b + square * positives)

    def limits(self, positives, negatives):
        square = self.beta**2
        m = square * positives
        # in c: (1 + square) D / ((a + D)(a - 1 + D)) with D = b + m is largest at a = 1, b = 0
        # in b: (1 + square) a / ((a + b + m)(a + b + 1 + m)) is largest at b = 0 and at the a <= Pos next to sqrt(m (m + 1))
        near = int(min(float(positives), sqrt(m) * sqrt(m + 1.0)))
        in_b = max(_step(a, m) for a in (max(near, 1), min(near + 1, positives)))
        return 0.5 * (1.0 + square) / (1.0 + m), -0.5 * (1.0 + square) * in_b

    def at_constants(self, positives, negatives, is_zero):
        # Delta is 1 as soon as no positive is labelled +1, whatever the negatives are; they balance the positives where they are as many
        if not is_zero and negatives < positives:
            return None
        return ConstantScore(0.0, (-2.0, -2.0), (0.0, 2.0), None if is_zero else 0.0)

    def _highest_tables(self, ordered, batch, ends, values, counts):
        from mtldsl.atoms.metrics.metric_kernels import best_of_fscore

        paid = np.empty(len(ordered) + 1)
        best_of_fscore(ordered, batch.starts, ends, self.beta**2, paid, values, counts)

    # For beta >= 1 the thresholds of the tables rise with c (`mtldsl.atoms.structured_prox.fscore_table_kernels`).

    @property
    def exact_prox(self) -> bool:
        return 1.0 <= self.beta <= LARGEST_BETA

    def score_steps(self, z, batch, steps, flips, warm):
        return fscore_steps(self, z, batch, steps, flips, warm)

    def _promised(self, of_positives, of_negatives):
        if not self.exact_prox:
            return super()._promised(of_positives, of_negatives)
        p, q = np.asarray(of_positives), np.asarray(of_negatives)
        if np.all((p == 0.0) | (p == 1.0)) and np.all((q == 0.0) | (q == 1.0)):  # one labelling
            return float(self.delta(q.sum(), p.sum(), len(p), len(q)))
        return fscore_promise(p, q, self.beta**2)

    def law(self, of_positives, of_negatives):
        if not self.exact_prox:
            return super().law(of_positives, of_negatives)
        return fscore_law(of_positives, of_negatives, self.beta**2)


def _step(a, m) -> float:
    return a / (a + m) / (a + 1.0 + m)


@register
@dataclass(frozen=True, eq=False, repr=False)
class AUC(Metric):
    r"""The area above the ROC curve of a labelling: Delta = b c / (Pos Neg), the share of pairs (positive, negative) in which
    the positive is labelled -1 and the negative +1. Here b negatives of Neg are labelled +1, c positives of Pos -1.

    Range: [0, 1]. Not `ROCArea`: this one counts the pairs that *labels* swap, one threshold for all samples, as the SMTL
    paper's equations (10)-(11) have it; `ROCArea` counts the pairs that a *ranking* swaps, which is the area under the usual
    ROC curve, and does not change when all predictions move by a constant.

    Raises
    ------
    DataError
        By `structured_hinge`, where a task has labels of one class only.

    Notes
    -----
    The most violated labelling takes a sort and O(n): one more negative is worth c / (Pos Neg), so that the best b does not
    decrease with c. Only positives with z <= 1 / (2 Pos) and negatives with z >= -1 / (2 Neg) are ever flipped.
    Conjugate: -(1 / (Pos Neg)) sum over pairs of min(p_i, p_j) at u = -2 y p with p in [0, 1]^n, else +inf.
    Source: SMTL, equations (10)-(11); the paper's Algorithm 4 computes the labelling of `ROCArea` instead.

    Examples
    --------
    >>> from mtldsl.metrics import AUC
    >>> AUC().delta(b=3, c=1, positives=4, negatives=6)
    0.125
    >>> import numpy as np
    >>> AUC().most_violated(np.array([0.9, 0.05, -0.05, -0.6]), np.array([1.0, 1.0, -1.0, -1.0])).flipped
    array([2, 1])
    """

    name: ClassVar[str] = "AUC"
    meaning: ClassVar[str] = "the area above the ROC curve of the labels $y'$"
    formula: ClassVar[str] = r"1-\mathrm{AUC}({})"
    exact_conjugate: ClassVar[bool] = True
    exact_prox: ClassVar[bool] = True

    def delta(self, b, c, positives, negatives):
        return b * (c / (positives * negatives))

    def limits(self, positives, negatives):
        return 0.5 / positives, -0.5 / negatives

    def at_constants(self, positives, negatives, is_zero):
        # at -1 / (2 Neg) a negative that is flipped is worth (c - Pos) / (Pos Neg), nothing where all positives are
        return smaller_class(positives, negatives, is_zero, 0.5 / negatives, 0.5 / positives)

    def _highest_tables(self, ordered, batch, ends, values, counts):
        from mtldsl.atoms.metrics.metric_kernels import best_of_auc

        best_of_auc(ordered, batch.starts, ends, values, counts)

    def score_steps(self, z, batch, steps, flips, warm):
        return auc_steps(self, z, batch, steps, flips)

    def _promised(self, of_positives, of_negatives):
        return auc_promise(of_positives, of_negatives)


# --------------------------------------------------------------------------------------------------------------
# Metrics that count errors one by one, so that their planes need no sort: the error rate, and the balanced one.


class _ErrorShares(Metric):
    """Delta = scale (b / n + c / p), p and n what `over` gives."""

    scale: ClassVar[float]
    exact_conjugate: ClassVar[bool] = True

    def over(self, positives, negatives) -> tuple:
        """(p, n)."""
        return positives, negatives

    def _costs(self, positives, negatives) -> tuple[float, float]:
        """Costs of one wrong positive, and of one wrong negative."""
        p, n = self.over(positives, negatives)
        return self.scale / p, self.scale / n

    def delta(self, b, c, positives, negatives):
        p, n = self.over(positives, negatives)
        return self.scale * (b / n + c / p)

    def limits(self, positives, negatives):
        of_positive, of_negative = self._costs(positives, negatives)
        return 0.5 * of_positive, -0.5 * of_negative

    def at_constants(self, positives, negatives, is_zero):
        up, down = self.limits(positives, negatives)
        return smaller_class(positives, negatives, is_zero, -down, up)

    def _plane(self, z, y, positive, negative):
        of_positive, of_negative = self._costs(len(positive), len(negative))
        up, down = of_positive - 2.0 * z[positive], of_negative + 2.0 * z[negative]
        value = float(np.sum(np.maximum(up, 0.0)) + np.sum(np.maximum(down, 0.0)))
        c, b = positive[up > 0.0], negative[down > 0.0]
        delta = float(self.delta(len(b), len(c), len(positive), len(negative)))
        return MostViolatedPlane(value, delta, np.concatenate([b, c]))

    def _promised(self, of_positives, of_negatives):
        return float(
            self.delta(np.sum(of_negatives), np.sum(of_positives), len(of_positives), len(of_negatives))
        )


@register
@dataclass(frozen=True, eq=False, repr=False)
class ErrorRate(_ErrorShares):
    r"""Twice the number of errors: Delta = 2 (b + c), with b negatives labelled +1 and c positives labelled -1.

    Range: 0 to 2 n, not [0, 1]: with it the structured hinge of a task is exactly twice its `hinge_loss`, the sum of
    2 max(0, 1 - y_j z_j), margin 1 included.

    Raises
    ------
    DataError
        By `structured_hinge`, where a task has labels of one class only.

    Notes
    -----
    The most violated labelling flips every sample with y z < 1, without a sort.
    Conjugate: -2 sum p at u = -2 y p with p in [0, 1]^n, else +inf.
    Source: the paper's baseline MTL-CLS; Joachims, "A support vector method for multivariate performance measures", ICML 2005,
    whose error rate is this over 2 n.

    Examples
    --------
    >>> from mtldsl.metrics import ErrorRate
    >>> import numpy as np
    >>> z, y = np.array([2.0, 0.5, -0.5]), np.array([1.0, 1.0, -1.0])
    >>> ErrorRate().most_violated(z, y).value
    2.0
    >>> from mtldsl.atoms.losses import HingeLoss
    >>> 2 * HingeLoss().value(z, y)
    2.0
    """

    name: ClassVar[str] = "ErrorRate"
    meaning: ClassVar[str] = "twice the number of errors of $y'$"
    formula: ClassVar[str] = r"\|{}-y_i\|_1"
    scale: ClassVar[float] = 2.0

    def over(self, positives, negatives):
        return 1, 1

    def score_of_counts(self, b, c, positives, negatives):
        """The share of right labels: Delta is up to 2 n."""
        return 1.0 - float(b + c) / (positives + negatives)


@register
@dataclass(frozen=True, eq=False, repr=False)
class BalancedError(_ErrorShares):
    r"""The mean of the error rates of both classes: Delta = (b / Neg + c / Pos) / 2, with b of Neg negatives labelled +1 and c of
    Pos positives labelled -1. One minus it is the balanced accuracy.

    Range: [0, 1]; 1/2 where all samples are labelled alike, however rare the positives are.

    Raises
    ------
    DataError
        By `structured_hinge`, where a task has labels of one class only.

    Notes
    -----
    The structured hinge is the sum of max(0, 1 / (2 Pos) - 2 z) over positives and of max(0, 1 / (2 Neg) + 2 z) over negatives:
    the most violated labelling flips positives with z < 1 / (4 Pos) and negatives with z > -1 / (4 Neg), without a sort.
    Conjugate: -(mean p over positives + mean p over negatives) / 2 at u = -2 y p with p in [0, 1]^n, else +inf.
    Source: Brodersen, Ong, Stephan and Buhmann, "The balanced accuracy and its posterior distribution", ICPR 2010.

    Examples
    --------
    >>> from mtldsl.metrics import BalancedError
    >>> BalancedError().delta(b=3, c=1, positives=4, negatives=6)
    0.375
    >>> import numpy as np
    >>> z, y = np.array([2.0, 0.1, -0.5]), np.array([1.0, 1.0, -1.0])
    >>> BalancedError().most_violated(z, y).flipped
    array([1])
    """

    name: ClassVar[str] = "BalancedError"
    meaning: ClassVar[str] = "the mean of both classes' error rates under the labels $y'$"
    formula: ClassVar[str] = r"1-\mathrm{BAcc}({})"
    scale: ClassVar[float] = 0.5


# --------------------------------------------------------------------------------------------------------------
# Metrics that are one minus a product, of what the wrong negatives leave and of what the wrong positives leave: the Jaccard index, the
# geometric mean of both recalls.


class _ProductMetric(Metric):
    """Delta(b, c) = 1 - g(b) h(c), with g and h equal to 1 at 0, at least 0, and never rising.

    One more wrong negative is worth (g(b - 1) - g(b)) h(c): the less, the more positives are wrong. So the best b does not rise with
    c, and dividing the positives in the middle, again and again, finds all in O(n log n) after the sort.
    """

    def factors(self, b, c, positives, negatives) -> tuple:
        """(g(b), h(c)); they broadcast."""
        raise NotImplementedError

    def delta(self, b, c, positives, negatives):
        g, h = self.factors(b, c, positives, negatives)
        return 1.0 - g * h

    def limits(self, positives, negatives):
        """Half the largest step of h where g is 1, and of g where h is."""
        g, h = self.factors(np.arange(negatives + 1), np.arange(positives + 1), positives, negatives)
        return -0.5 * float(np.diff(h).min()), 0.5 * float(np.diff(g).min())

    def _highest_tables(self, ordered, batch, ends, values, counts):
        from mtldsl.atoms.metrics.metric_kernels import best_of_product

        taken = ends - batch.starts[:, :2]  # positives, negatives that may be flipped
        parts = [
            self.factors(np.arange(b + 1), np.arange(c + 1), positives, negatives)
            for (c, b), positives, negatives in zip(
                taken.tolist(), batch.positives.tolist(), batch.negatives.tolist(), strict=True
            )
        ]
        of_negatives, of_positives = (np.concatenate(side) for side in zip(*parts, strict=True))
        best_of_product(ordered, batch.starts, ends, of_negatives, of_positives, values, counts)


@register
@dataclass(frozen=True, eq=False, repr=False)
class Jaccard(_ProductMetric):
    r"""One minus the Jaccard index of a labelling: Delta = (b + c) / (Pos + b), with b negatives labelled +1 and c of Pos positives
    labelled -1. The index is the share, among the samples that are positive or labelled +1, of those that are both.

    Range: [0, 1]; 1 where no positive is labelled +1. With F the F-score (beta = 1) it is 1 - F / (2 - F): both order labellings
    alike, and their hinges weigh them differently.

    Raises
    ------
    DataError
        By `structured_hinge`, where a task has labels of one class only.

    Notes
    -----
    The most violated labelling takes a sort and O(n log n). Only positives with z <= 1 / (2 Pos) and negatives with
    z >= -1 / (2 (Pos + 1)) are ever flipped.
    The conjugate is that of any metric: a linear program over tables, for large tasks an upper bound.
    Source: Jaccard, "Etude comparative de la distribution florale", Bulletin de la Societe Vaudoise des Sciences Naturelles 37, 1901.

    Examples
    --------
    >>> from mtldsl.metrics import Jaccard
    >>> float(Jaccard().delta(b=1, c=1, positives=3, negatives=5))
    0.5
    >>> import numpy as np
    >>> Jaccard().most_violated(np.array([0.9, 0.1, 0.1, -0.6]), np.array([1.0, 1.0, -1.0, -1.0])).flipped
    array([2, 1])
    """

    name: ClassVar[str] = "Jaccard"
    meaning: ClassVar[str] = "one minus the Jaccard index of the labels $y'$"
    formula: ClassVar[str] = r"1-\mathrm{Jaccard}({})"

    def factors(self, b, c, positives, negatives):
        return positives / (positives + b), (positives - c) / np.maximum(
            positives, 1
        )  # without positives too


@register
@dataclass(frozen=True, eq=False, repr=False)
class GMean(_ProductMetric):
    r"""One minus the geometric mean of the recalls of both classes: Delta = 1 - sqrt((1 - b / Neg) (1 - c / Pos)), with b of Neg
    negatives labelled +1 and c of Pos positives labelled -1.

    Range: [0, 1]; 1 as soon as one class is labelled wrong as a whole.

    Raises
    ------
    DataError
        By `structured_hinge`, where a task has labels of one class only.

    Notes
    -----
    The most violated labelling takes a sort and O(n log n). Only positives with z <= 1 / (2 sqrt(Pos)) and negatives with
    z >= -1 / (2 sqrt(Neg)) are ever flipped.
    The conjugate is that of any metric: a linear program over tables, for large tasks an upper bound.
    Source: Kubat and Matwin, "Addressing the curse of imbalanced training sets: one-sided selection", ICML 1997.

    Examples
    --------
    >>> from mtldsl.metrics import GMean
    >>> GMean().delta(b=0, c=3, positives=4, negatives=6)
    0.5
    >>> import numpy as np
    >>> GMean().most_violated(np.array([0.9, 0.1, 0.1, -0.6]), np.array([1.0, 1.0, -1.0, -1.0])).flipped
    array([2, 1])
    """

    name: ClassVar[str] = "GMean"
    meaning: ClassVar[str] = "one minus the geometric mean of both classes' recalls under the labels $y'$"
    formula: ClassVar[str] = r"1-\mathrm{GMean}({})"

    def factors(self, b, c, positives, negatives):
        return ((negatives - b) / negatives) ** 0.5, ((positives - c) / positives) ** 0.5
