"""The metric of rankings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.function import register
from mtldsl.atoms.metrics.margins_of_pairs import inside, nearest_margins
from mtldsl.atoms.metrics.metric import Metric
from mtldsl.atoms.metrics.violation import AtConstant, Violation, classes_of

__all__ = ["ROCArea"]


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
        from mtldsl.atoms.metrics.oracle_kernels import overlapping, pairs_in_wrong_order

        up, up_scores, down, down_scores = overlapping(z, positive, negative)
        slope = np.zeros(len(z))
        orders = np.argsort(up_scores), np.argsort(down_scores)
        pairs = float(len(positive)) * len(negative)
        value, delta = pairs_in_wrong_order(
            up, up_scores, orders[0], down, down_scores, orders[1], pairs, slope
        )
        return Violation(value, delta, None, slope)

    def at_constants(self, positives, negatives, is_zero):
        # every pair is in the wrong order, by less than its margin
        up, down = -2.0 / positives, 2.0 / negatives
        return AtConstant(0.0, (up, up), (down, down), 0.0)

    def score(self, z, positive, threshold):
        """The share of pairs in the right order, equal predictions one half."""
        above, ordered = z[positive], np.sort(z[~positive])
        below = np.searchsorted(ordered, above, "left")
        up_to = np.searchsorted(ordered, above, "right")
        return float(np.sum(below + up_to) / (2 * len(above) * len(ordered)))

    # ------------------------------------------------------------------------------------------ the conjugate

    def conjugate(self, u, y):
        rows, columns, positive, negative = _sums(np.asarray(u, float), y)
        if not inside(rows, columns, len(negative)):
            return np.inf
        return 0.0 - float(np.sum(np.clip(columns, 0.0, None))) / (len(positive) * len(negative))

    def dual_project(self, u, y):
        """u itself inside; else signs and totals are put right and u is mixed with the plane that has all pairs alike."""
        u = np.asarray(u, float)
        rows, columns, positive, negative = _sums(u, y)
        if inside(rows, columns, len(negative)):
            return u
        rows, columns = nearest_margins(rows, columns, len(negative))
        unit, moved = 2.0 / (len(positive) * len(negative)), np.zeros(len(u))
        moved[positive], moved[negative] = -unit * rows, unit * columns
        return moved


def _sums(u, y):
    """The row and the column sums that u stands for, and the classes."""
    positive, negative = classes_of(y)
    half = 0.5 * len(positive) * len(negative)
    return -half * u[positive], half * u[negative], positive, negative
