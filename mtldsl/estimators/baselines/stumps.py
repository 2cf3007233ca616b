"""Decision stumps for several labels at once: one feature, one threshold, an answer a label on each side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Stump", "Stumps"]


@dataclass(frozen=True)
class Stump:
    """h(x) = below (K,) where x[feature] <= threshold, else above (K,)."""

    feature: int
    threshold: float
    below: np.ndarray
    above: np.ndarray

    def __call__(self, X) -> np.ndarray:
        """(n, K)."""
        return np.where((X[:, self.feature] <= self.threshold)[:, None], self.below, self.above)


class Stumps:
    """The best stump for weights of rows and labels, on rows that are sorted once.

    X (n, d) dense; signs (n, K) of -1 and +1. Thresholds lie midway between neighbouring values of a feature; equally good ones: the first
    feature, the lowest threshold.
    """

    def __init__(self, X, signs):
        self.X, self.positive = X, signs > 0
        self.order = np.argsort(X, axis=0, kind="stable").T
        self.ends = [np.flatnonzero(np.diff(X[order, j]) > 0) for j, order in enumerate(self.order)]

    def best(self, weights: np.ndarray, confident: bool) -> Stump:
        """The least Z = 2 sum over sides and labels of sqrt(W+ W-), answers 1/2 ln(W+ / W-); or, not confident, the least weighted error,
        answers of -1 and +1.

        W+ and W- are the weights (n, K) of the rows of a side where the label is there, and where it is not.
        """
        W_plus, W_minus = np.where(self.positive, weights, 0.0), np.where(self.positive, 0.0, weights)
        total = W_plus.sum(axis=0), W_minus.sum(axis=0)
        judge = _normaliser if confident else _error
        least, at = np.inf, None
        for j, (order, ends) in enumerate(zip(self.order, self.ends, strict=True)):
            if not ends.size:
                continue
            plus, minus = (np.cumsum(W[order], axis=0)[ends] for W in (W_plus, W_minus))
            found = judge(plus, minus) + judge(total[0] - plus, total[1] - minus)
            i = int(np.argmin(found))
            if found[i] < least:
                least, at = found[i], (j, ends[i])
        if at is None:  # no feature varies
            answers = self._answers(*total, weights.size, confident)
            return Stump(0, np.inf, answers, answers)
        j, end = at
        low, high = self.X[self.order[j][end], j], self.X[self.order[j][end + 1], j]
        middle = low + (high - low) / 2.0
        threshold = float(middle if middle < high else low)
        side = self.X[:, j] <= threshold
        below, above = (
            self._answers(W_plus[each].sum(axis=0), W_minus[each].sum(axis=0), weights.size, confident)
            for each in (side, ~side)
        )
        return Stump(j, threshold, below, above)

    @staticmethod
    def _answers(plus, minus, size: int, confident: bool) -> np.ndarray:
        if confident:  # smoothed by one weight's share, so that answers are finite
            return 0.5 * np.log((plus + 1.0 / size) / (minus + 1.0 / size))
        return np.where(plus > minus, 1.0, -1.0)


def _normaliser(plus, minus) -> np.ndarray:
    return 2.0 * np.sqrt(np.maximum(plus * minus, 0.0)).sum(axis=1)


def _error(plus, minus) -> np.ndarray:
    return np.minimum(plus, minus).sum(axis=1)
