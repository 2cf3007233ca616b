"""Metrics that are one minus a product, of what the wrong negatives leave and of what the wrong positives leave: the Jaccard index, the
geometric mean of both recalls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.function import register
from mtldsl.atoms.metrics.metric import Metric

__all__ = ["GMean", "Jaccard"]


class _Product(Metric):
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

    def forbids(self, positives, negatives):
        return False

    def _highest_tables(self, ordered, batch, ends):
        from mtldsl.atoms.metrics.oracle_kernels import best_of_product

        values, counts = np.empty(len(ends)), np.empty((len(ends), 2), np.int64)
        taken = ends - batch.starts[:, :2]  # positives, negatives that may be flipped
        parts = [
            self.factors(np.arange(b + 1), np.arange(c + 1), positives, negatives)
            for (c, b), positives, negatives in zip(
                taken.tolist(), batch.positives.tolist(), batch.negatives.tolist(), strict=True
            )
        ]
        of_negatives, of_positives = (np.concatenate(side) for side in zip(*parts, strict=True))
        best_of_product(ordered, batch.starts, ends, of_negatives, of_positives, values, counts)
        return values, counts


@register
@dataclass(frozen=True, eq=False, repr=False)
class Jaccard(_Product):
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
class GMean(_Product):
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
