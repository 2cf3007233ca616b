"""Metrics that count errors one by one, so that their planes need no sort: the error rate, and the balanced one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.function import register
from mtldsl.atoms.metrics.at_constants import smaller_class
from mtldsl.atoms.metrics.metric import Metric
from mtldsl.atoms.metrics.violation import Violation

__all__ = ["BalancedError", "ErrorRate"]


@register
@dataclass(frozen=True, eq=False, repr=False)
class ErrorRate(Metric):
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
    exact_conjugate: ClassVar[bool] = True

    def delta(self, b, c, positives, negatives):
        return 2.0 * (b + c)

    def score(self, z, positive, threshold):
        """The share of right labels: Delta is up to 2 n."""
        return 1.0 - float(np.sum((z >= threshold) != positive)) / len(z)

    def score_of_counts(self, b, c, positives, negatives):
        return 1.0 - float(b + c) / (positives + negatives)

    def limits(self, positives, negatives):
        return 1.0, -1.0

    def forbids(self, positives, negatives):
        return False

    def at_constants(self, positives, negatives, is_zero):
        return smaller_class(positives, negatives, is_zero, 1.0, 1.0)

    def best_counts(self, of_negatives, of_positives, positives, negatives):
        b, c = (int(np.argmax(gains + 2.0 * np.arange(len(gains)))) for gains in (of_negatives, of_positives))
        return b, c

    def _plane(self, z, y, positive, negative):
        margins = y * z
        flipped = np.flatnonzero(margins < 1.0)
        return Violation(2.0 * float(np.sum(1.0 - margins[flipped])), 2.0 * len(flipped), flipped)

    def _promised(self, of_positives, of_negatives):
        return 2.0 * float(np.sum(of_positives) + np.sum(of_negatives))


@register
@dataclass(frozen=True, eq=False, repr=False)
class BalancedError(Metric):
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
    exact_conjugate: ClassVar[bool] = True

    def delta(self, b, c, positives, negatives):
        return 0.5 * (b / negatives + c / positives)

    def limits(self, positives, negatives):
        return 0.25 / positives, -0.25 / negatives

    def forbids(self, positives, negatives):
        return False

    def at_constants(self, positives, negatives, is_zero):
        return smaller_class(positives, negatives, is_zero, 0.25 / negatives, 0.25 / positives)

    def best_counts(self, of_negatives, of_positives, positives, negatives):
        gains = (of_negatives, negatives), (of_positives, positives)
        b, c = (int(np.argmax(gain + np.arange(len(gain)) * (0.5 / n))) for gain, n in gains)
        return b, c

    def _plane(self, z, y, positive, negative):
        up, down = 0.5 / len(positive) - 2.0 * z[positive], 0.5 / len(negative) + 2.0 * z[negative]
        value = float(np.sum(np.maximum(up, 0.0)) + np.sum(np.maximum(down, 0.0)))
        c, b = positive[up > 0.0], negative[down > 0.0]
        delta = float(self.delta(len(b), len(c), len(positive), len(negative)))
        return Violation(value, delta, np.concatenate([b, c]))

    def _promised(self, of_positives, of_negatives):
        return 0.5 * float(np.mean(of_positives) + np.mean(of_negatives))
