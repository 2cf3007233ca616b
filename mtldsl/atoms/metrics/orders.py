"""What metrics of orders share: planes that say which order they are of, and random orders as a proof.

The plane of an order of a task's samples has, at a positive with r negatives above it, the slope -unit W_r, and at the negative in
place k among the negatives, with q positives below it, unit w_k q: w_k is 1 but where only the first negatives count, W_r = w_1 + ... + w_r.
So a plane's slope tells its order, and with that its Delta: a mixture of planes is all that a proof of E Delta takes.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mtldsl.atoms.metrics.margins_of_pairs import inside, nearest_margins
from mtldsl.atoms.metrics.metric import Metric
from mtldsl.atoms.metrics.mixtures_of_planes import largest_mixture
from mtldsl.atoms.metrics.violation import AtConstant, Violation, classes_of

__all__ = ["Orders"]

#: samples up to which a conjugate is exact: a linear program over the planes that it needs, found one by one
_FEW = 20
#: what rounding may leave of a slope, in pairs
_ROUNDING = 1e-7


class Orders(Metric):
    """A metric Delta(r_1 <= ... <= r_P) of how many negatives stand above each positive of an order."""

    labellings: ClassVar[bool] = False
    tells_orders: ClassVar[bool] = True
    scored_by_order: ClassVar[bool] = True

    # ------------------------------------------------------------------------------------ what a metric says

    def unit(self, positives: int, negatives: int) -> float:
        """The slope of one pair in the wrong order."""
        return 2.0 / (positives * negatives)

    def width(self, positives: int, negatives: int) -> float:
        """How many negatives count, the highest first; the last may count in part."""
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
        value = delta + float(slope @ z)
        return (
            Violation(value, delta, None, slope)
            if value > 0.0
            else Violation(0.0, 0.0, None, np.zeros(len(y)))
        )

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
        return AtConstant(0.0, (-unit * width, -unit * width), (low * positives, unit * positives), 0.0)

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
            if not np.all(np.abs(again - slope) <= _ROUNDING * unit):
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
        if len(y) > _FEW:
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
        """u itself inside; else signs, sizes and totals are put right and u is mixed with the plane that has all pairs alike."""
        u = np.asarray(u, float)
        positive, negative = classes_of(y)
        P, N = len(positive), len(negative)
        unit, width = self.unit(P, N), self.width(P, N)
        rows, columns = -u[positive] / unit, u[negative] / unit
        if inside(rows, columns, width):
            return u
        rows, columns = nearest_margins(rows, columns, width)
        moved = np.zeros(len(u))
        moved[positive], moved[negative] = -unit * rows, unit * columns
        return moved
