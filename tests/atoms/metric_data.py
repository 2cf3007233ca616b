"""Labels, scores and every labelling of small tasks, for tests of metrics."""

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.optimize import linprog

from mtldsl.atoms.metrics import (
    AUC,
    BalancedError,
    ErrorRate,
    FScore,
    GMean,
    Jaccard,
    Metric,
    PrecisionAt,
    RecallAt,
)

#: of labellings, all of which they allow
WHOLE_BOX = [
    FScore(), FScore(beta=2.0), FScore(beta=0.3), AUC(), ErrorRate(), BalancedError(), Jaccard(), GMean(),
]  # fmt: skip
#: of those with so many predicted positives
TOP = [cls(k=k) for cls in (PrecisionAt, RecallAt) for k in (1, 2, 3, 0.2, 0.5, 0.99)]

#: of HiGHS
TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True, eq=False, repr=False)
class Arbitrary(Metric):
    """Tables without any structure, a share of them forbidden."""

    forbidden: float = 0.0

    def delta(self, b, c, positives, negatives):
        rng = np.random.default_rng([positives, negatives])
        table = rng.random((positives + 1, negatives + 1))
        table[rng.random(table.shape) < self.forbidden] = -np.inf
        table[0, 0] = 0.0
        return table[c, b]


@dataclass(frozen=True, eq=False, repr=False)
class Power(Metric):
    """A power of the share of wrong labels."""

    power: float = 2.0

    def delta(self, b, c, positives, negatives):
        return ((np.asarray(b) + c) / (positives + negatives)) ** self.power


class Cubed(FScore):
    """Another Delta than that of the class it is made of."""

    def delta(self, b, c, positives, negatives):
        return np.asarray(super().delta(b, c, positives, negatives)) ** 3


def labels(rng, n, positives=None):
    """At least one of each class."""
    positives = rng.integers(1, n) if positives is None else positives
    return rng.permutation(np.where(np.arange(n) < positives, 1.0, -1.0))


def scores(rng, n, size, kind):
    """Normal, or with ties and zeros, or all alike."""
    if kind == "alike":
        return np.full(n, size * rng.normal())
    z = size * rng.normal(size=n)
    return z if kind == "normal" else size * np.round(z / size)


def planes_of(metric, y):
    """(slopes, heights) of every plane by the metric's formula alone.

    There is one for every labelling that it allows; a metric of rankings has one for every choice of pairs.
    """
    if metric.labellings:
        flips = np.array(list(product((0.0, 1.0), repeat=len(y))))
        b, c = (flips[:, y == label].sum(axis=1).astype(int) for label in (-1, 1))
        heights = np.asarray(metric.table(b, c, int(np.sum(y > 0)), int(np.sum(y < 0))), float)
        allowed = np.isfinite(heights)
        return (-2.0 * y * flips)[allowed], heights[allowed]
    one = np.eye(len(y))
    pairs = np.array([one[j] - one[i] for i in np.flatnonzero(y > 0) for j in np.flatnonzero(y < 0)])
    chosen = np.array(list(product((0.0, 1.0), repeat=len(pairs))))
    return 2.0 * chosen @ pairs / len(pairs), chosen.mean(axis=1)


def value_of_planes(metric, z, y) -> float:
    """f(z), the highest of all planes."""
    slopes, heights = planes_of(metric, y)
    return np.max(heights + slopes @ z)


def minus_conjugate(metric, u, y) -> float:
    """-f*(u): the largest mean height of laws of planes with mean slope u (-inf: none), as a linear program."""
    slopes, heights = planes_of(metric, y)
    A = np.vstack([slopes.T, np.ones(len(heights))])
    found = linprog(-heights, A_eq=A, b_eq=np.append(u, 1.0), method="highs", options=TIGHT)
    assert found.status in (0, 2)
    return -found.fun if found.status == 0 else -np.inf
