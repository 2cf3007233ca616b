"""Metrics of the whole contingency table: F-score, and AUC on labels."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np

from mtldsl.atoms.function import register
from mtldsl.atoms.metrics.at_constants import smaller_class
from mtldsl.atoms.metrics.metric import Metric
from mtldsl.atoms.metrics.violation import AtConstant
from mtldsl.atoms.parameters import checked_number
from mtldsl.atoms.planes.score_steps import auc_promise, auc_steps, fscore_law, fscore_promise, fscore_steps

__all__ = ["AUC", "FScore"]

#: beta up to which thresholds of the F-score stand apart from one another in float64
_LARGEST_BETA = 1e3


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
    has_dear_steps: ClassVar[bool] = True

    def __post_init__(self):
        must_be = "a number between 1e-100 and 1e100, such as beta=1.0"
        beta = checked_number(self.name, "beta", self.beta, lambda b: 1e-100 <= b <= 1e100, must_be)
        object.__setattr__(self, "beta", beta)

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

    def forbids(self, positives, negatives):
        return False

    def at_constants(self, positives, negatives, is_zero):
        # Delta is 1 as soon as no positive is labelled +1, whatever the negatives are; they balance the positives where they are as many
        if not is_zero and negatives < positives:
            return None
        return AtConstant(0.0, (-2.0, -2.0), (0.0, 2.0), None if is_zero else 0.0)

    def _highest_tables(self, ordered, batch, ends):
        from mtldsl.atoms.metrics.oracle_kernels import best_of_fscore

        values, counts, paid = (
            np.empty(len(ends)),
            np.empty((len(ends), 2), np.int64),
            np.empty(len(ordered) + 1),
        )
        best_of_fscore(ordered, batch.starts, ends, self.beta**2, paid, values, counts)
        return values, counts

    # For beta >= 1 the thresholds of the tables rise with c (`mtldsl.atoms.planes.threshold_kernel`).

    @property
    def exact_prox(self) -> bool:
        return 1.0 <= self.beta <= _LARGEST_BETA

    def score_steps(self, z, batch, steps, flips, warm, rough=0.0):
        return fscore_steps(self, z, batch, steps, flips, warm, rough)

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

    def forbids(self, positives, negatives):
        return False

    def at_constants(self, positives, negatives, is_zero):
        # at -1 / (2 Neg) a negative that is flipped is worth (c - Pos) / (Pos Neg), nothing where all positives are
        return smaller_class(positives, negatives, is_zero, 0.5 / negatives, 0.5 / positives)

    def _highest_tables(self, ordered, batch, ends):
        from mtldsl.atoms.metrics.oracle_kernels import best_of_auc

        values, counts = np.empty(len(ends)), np.empty((len(ends), 2), np.int64)
        best_of_auc(ordered, batch.starts, ends, values, counts)
        return values, counts

    def score_steps(self, z, batch, steps, flips, warm, rough=0.0):
        return auc_steps(self, z, batch, steps, flips)

    def _promised(self, of_positives, of_negatives):
        return auc_promise(of_positives, of_negatives)
