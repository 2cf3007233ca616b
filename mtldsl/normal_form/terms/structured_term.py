"""Terms of structured hinges, and the random labellings that prove their multipliers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from mtldsl.atoms.loss import Loss
from mtldsl.atoms.metrics.metric import (
    ConstantScore,
    HighestPlanes,
    MetricBatch,
    MostViolatedPlane,
    check_oracle,
    classes_of,
    is_own,
)
from mtldsl.normal_form.term import LossTerm, register_term

if TYPE_CHECKING:
    from mtldsl.atoms.losses.structured_hinge import StructuredHinge
    from mtldsl.data.tasks import Tasks

# --------------------------------------------------------------------------------------------------------------
# Multipliers of a structured hinge as a proof shows them: random labellings, and what they promise.


class Mixture(NamedTuple):
    """A random labelling of one task: labelling k with probability weights[k], the true one with the rest. A plain pair means the same.

    flips (K, n): True where labelling k differs from y; weights (K,) >= 0 with a sum of at most 1.
    The multiplier that it stands for is the expected slope, -2 y E[flip]; what it proves about the conjugate is E[Delta].
    For a metric of orders `flips` are the slopes themselves, which tell the orders and with them Delta.
    """

    flips: np.ndarray
    weights: np.ndarray

    def flip_probabilities(self) -> np.ndarray:
        """E[flip] of every sample, (n,)."""
        return self.weights @ self.flips.astype(float)


@dataclass(frozen=True, eq=False)
class ProvenDual:
    """Multipliers u (N,) of a loss with proven lower bounds (m,) of -c_i f_i*(u_i / c_i), one a task.

    Multiplied by t in [0, 1] the bounds shrink with u: f* is convex and f*(0) <= 0.
    laws: of every task the tables (b, c, weights) of the random labelling that proves its bound, or (ranks, places, weights) of a
        random order, where one is known, else None.
    """

    u: np.ndarray
    proven: np.ndarray
    laws: tuple | None = None

    __array_ufunc__ = None  # numpy numbers on the left defer to __rmul__

    def __array__(self, dtype=None, copy=None):
        return self.u if dtype is None else self.u.astype(dtype)

    def __rmul__(self, t: float) -> ProvenDual:
        if not 0.0 <= t <= 1.0:
            raise ValueError(f"proven multipliers can be scaled by a number in [0, 1], not by {t}")
        # nothing is proven of a labelling that the metric forbids, but for t = 0: that is the true labelling
        laws = None if self.laws is None else tuple(law and (*law[:2], t * law[2]) for law in self.laws)
        return ProvenDual(t * self.u, t * self.proven if t > 0.0 else np.zeros_like(self.proven), laws)


# --------------------------------------------------------------------------------------------------------------
# A structured hinge in a model: one maximum a task, multipliers with their proof.


@register_term
class StructuredTerm(LossTerm):
    """sum over tasks i of coefficients[i] * f_i(predictions of task i), f_i the structured hinge of task i's metric.

    Its multipliers are a flat array, or a list with a `Mixture` (or an array) a task; `dual_project` makes a `ProvenDual` of either.
    """

    atom: StructuredHinge

    @staticmethod
    def handles(loss: Loss, tasks: Tasks) -> bool:
        return loss.max_affine and not loss.separable and loss.labels != "indicators"

    @cached_property
    def tasks_apart(self) -> list[tuple[slice, float, Any, np.ndarray, Any]]:
        """(slice, coefficient, metric, targets, classes) of every task."""
        offsets, targets = self.tasks.offsets, self.tasks.targets
        apart = []
        for i, c in enumerate(self.coefficients):
            rows = slice(int(offsets[i]), int(offsets[i + 1]))
            y = targets[rows]
            apart.append((rows, float(c), self.atom.of_task(i).metric, y, classes_of(y)))
        return apart

    @cached_property
    def at_constants(self) -> list[ConstantScore] | None:
        """Return what the metrics know of the best constant scores, or of zero where constants do not matter; None where one knows nothing."""
        if self.map.offset is not None:
            return None
        is_zero = not (self.intercepts and self.atom.takes_intercept)
        known = [
            metric.at_constants(len(classes.positive), len(classes.negative), is_zero)
            for _, _, metric, _, classes in self.tasks_apart
        ]
        if any(one is None for one in known):
            return None
        found = cast(list[ConstantScore], known)
        return found if len({one.total is None for one in found}) == 1 else None

    @property
    def has_one_slope_at_zero(self) -> bool | None:
        return False if self.intercepts and self.atom.takes_intercept else None

    @property
    def has_score_steps(self) -> bool:
        return all(metric.exact_prox for _, _, metric, _, _ in self.tasks_apart)

    @cached_property
    def _batches(self) -> list[tuple[Any, list[int], MetricBatch, list]]:
        """(metric, its tasks, the same as compiled loops read them, and apart)."""
        found: dict[int, tuple[Any, list[int]]] = {}
        for i, (_, _, metric, _, _) in enumerate(self.tasks_apart):
            found.setdefault(id(metric), (metric, []))[1].append(i)
        batches = []
        for metric, ids in found.values():
            own = [self.tasks_apart[i] for i in ids]
            batch = MetricBatch([task[4] for task in own], [task[0].start for task in own])
            batches.append((metric, ids, batch, [(rows, y, classes) for rows, _, _, y, classes in own]))
        return batches

    def highest(self, z) -> HighestPlanes:
        """The highest plane of every task at its predictions, without coefficients."""
        m, z = self.tasks.n_tasks, np.ascontiguousarray(z, dtype=float)
        found = HighestPlanes(np.empty(m), np.empty(m), np.zeros(z.size))
        for metric, ids, batch, apart in self._batches:
            found.values[ids], found.deltas[ids] = metric.highest_planes(z, batch, apart, found.slopes)
        return found

    def most_violated(self, z) -> list[MostViolatedPlane]:
        """The same task by task."""
        return [metric.most_violated(z[rows], y, classes) for rows, _, metric, y, classes in self.tasks_apart]

    def value(self, z) -> float:
        """Every certificate comes by here: what a user's own oracle says is not taken for granted."""
        if not any(is_own(metric) for metric, *_ in self._batches):
            return float(self.coefficients @ self.highest(z).values)
        planes = self.most_violated(z)
        for (rows, _, metric, _, classes), plane in zip(self.tasks_apart, planes, strict=True):
            if is_own(metric):
                check_oracle(metric, z[rows], classes, plane)
        return float(np.dot(self.coefficients, [plane.value for plane in planes]))

    def gradient(self, z) -> np.ndarray:
        return np.repeat(self.coefficients, self.tasks.counts) * self.highest(z).slopes

    # ----------------------------------------------------------------------------------------- multipliers

    def dual_project(self, u) -> ProvenDual:
        if isinstance(u, ProvenDual):
            return u
        apart = isinstance(u, (list, tuple))
        flat, proven = np.empty(self.tasks.n_samples), np.empty(self.tasks.n_tasks)
        laws = []
        for i, (rows, c, metric, y, _) in enumerate(self.tasks_apart):
            own = u[i] if apart else np.asarray(u, float)[rows]
            if isinstance(own, tuple):
                slope, promised, law = _of_mixture(Mixture(*own), metric, y)
                laws.append(law)
            else:
                laws.append(None)
                slope = metric.dual_project(np.asarray(own, float) / c, y)
                promised = -metric.conjugate(slope, y)
            flat[rows], proven[i] = c * slope, c * promised
        return ProvenDual(flat, proven, tuple(laws))

    def clip(self, u: np.ndarray) -> np.ndarray:
        longest = -2.0 * np.repeat(self.coefficients, self.tasks.counts) * self.tasks.targets
        return np.clip(u, np.minimum(longest, 0.0), np.maximum(longest, 0.0))

    @property
    def middle(self) -> np.ndarray | None:
        """(N,) every label flipped with probability 1/2; None where planes are orders, or labellings are forbidden."""
        if not all(
            metric.labellings and not metric.fixes_positives for _, _, metric, _, _ in self.tasks_apart
        ):
            return None
        return -np.repeat(self.coefficients, self.tasks.counts) * self.tasks.targets

    def room(self, u) -> np.ndarray:
        """(N,) of the slopes of labellings; those of orders sum to zero besides."""
        size = np.abs(np.asarray(u))
        return np.maximum(np.minimum(size, 2.0 * np.repeat(self.coefficients, self.tasks.counts) - size), 0.0)

    def conjugate(self, u) -> float:
        return -float(self.dual_project(u).proven.sum())

    def balanced(self, u, totals=None) -> ProvenDual:
        """u with `totals` (m,) taken off the tasks' sums (None: all of them), by mixing in a labelling whose sum has the other sign."""
        dual = self.dual_project(u)
        flat, proven = dual.u.copy(), dual.proven.copy()
        laws: list[Any] = list(dual.laws or [None] * len(proven))
        for i, (rows, c, metric, y, classes) in enumerate(self.tasks_apart):
            own = flat[rows].sum()
            total = own if totals is None else totals[i]
            if not metric.labellings or abs(total) <= 1e-15 * np.abs(flat[rows]).sum():
                continue  # slopes of rankings sum to zero
            b, flipped = (0, classes.positive) if total > 0 else (len(classes.negative), classes.negative)
            promised = metric.table([b], [len(flipped) - b], *map(len, classes))[0]
            slope = np.zeros(len(y))
            slope[flipped] = -2.0 * c * y[flipped]
            share = total / (own - slope.sum())
            if not (np.isfinite(promised) and 0.0 <= share <= 1.0):
                flat[rows], proven[i], laws[i] = 0.0, 0.0, _TRUE_LAW
                continue
            flat[rows] = (1.0 - share) * flat[rows] + share * slope
            proven[i] = (1.0 - share) * proven[i] + share * c * float(promised)
            if laws[i] is not None:
                tables = [[b], [len(flipped) - b], [share]]
                laws[i] = tuple(
                    np.append(part, one)
                    for part, one in zip((*laws[i][:2], (1.0 - share) * laws[i][2]), tables, strict=True)
                )
        return ProvenDual(flat, proven, tuple(laws))


#: the law of the true labelling
_TRUE_LAW = (np.zeros(0, int), np.zeros(0, int), np.zeros(0))


def _of_mixture(mixture: Mixture, metric, y) -> tuple[np.ndarray, float, tuple | None]:
    """(slope, proven lower bound of -f* there, law of (b, c)): the expected Delta, or the closed form of the conjugate where there is
    one.
    """
    weights = np.maximum(mixture.weights, 0.0)
    total = weights.sum()
    weights = weights / total if total > 1.0 else weights
    if metric.tells_orders:
        try:
            ranks, places, slopes = metric.orders_of(mixture.flips, y)
        except ValueError:  # these are slopes of nothing: what their mean proves is left
            slope = metric.dual_project(weights @ mixture.flips, y)
            return slope, -metric.conjugate(slope, y), None
        expected = float(weights @ metric.deltas(ranks, places.shape[1]))
        return weights @ slopes, expected, (ranks, places, weights)
    slope = -2.0 * y * Mixture(mixture.flips, weights).flip_probabilities()
    positive = y > 0
    c = mixture.flips[:, positive].sum(axis=1)
    b = mixture.flips.sum(axis=1) - c
    used = weights > 0  # a forbidden labelling without weight says nothing
    deltas = metric.table(b, c, int(positive.sum()), int((~positive).sum()))
    expected = float(weights[used] @ deltas[used])
    if metric.exact_conjugate and np.array_equal(metric.dual_project(slope, y), slope):
        expected = max(
            expected, -metric.conjugate(slope, y)
        )  # no random labelling with these marginals promises more
    return slope, expected, (b[used], c[used], weights[used])
