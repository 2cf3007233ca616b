"""Exact proximal steps of structured hinges in the scores: flip probabilities, and where they move with the scores.

prox of G with step s at z:  z + 2 s y p, with p in [0, 1]^n the flip probabilities that maximise D(p) - 2 <y p, z> - 2 s |p|^2, where
D(p) = -G*(-2 y p) is the largest expected Delta of a random labelling with these flip probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from mtldsl.atoms.planes.tangent import Tangent
from mtldsl.atoms.planes.tied_sums import reach_of

__all__ = [
    "ScoreStep",
    "ScoreSteps",
    "auc_promise",
    "auc_steps",
    "fscore_law",
    "fscore_promise",
    "fscore_steps",
]

#: evaluations of one step of the F-score, and the gap, relative to its terms, up to which it counts as exact
_MOST_EVALUATIONS = 400
_LONGEST = 1e12  # steps times samples: flips of a longer one, about its inverse, are near the 1e-13 that counts as equal
_EXACT = 1e-10


@dataclass(frozen=True, eq=False)
class ScoreStep:
    """What one exact proximal step of one task found.

    flips    : p (n,), the flip probabilities; the step leads to z + 2 step y p
    promised : D(p) = -G*(-2 y p)
    """

    flips: np.ndarray
    _promised: Callable[[], float]
    _tangent: Callable[[], Tangent]

    @cached_property
    def promised(self) -> float:
        return self._promised()

    @cached_property
    def tangent(self) -> Tangent:
        """The derivative of z -> 2 step (-y p), which is the identity less that of the step."""
        return self._tangent()


class ScoreSteps(Sequence):
    """The steps of several tasks, made when they are asked for: most are not, where flip probabilities are all that is wanted."""

    def __init__(self, of: Callable[[int], ScoreStep], count: int):
        self._of, self._made = of, dict.fromkeys(range(count))

    def __len__(self) -> int:
        return len(self._made)

    def __getitem__(self, i):
        found = self._made[i]  # IndexError would end an iteration
        if found is None:
            found = self._made[i] = self._of(i)
        return found


def auc_steps(
    metric: Any, z: np.ndarray, batch: Any, steps: np.ndarray, flips: np.ndarray
) -> Sequence[ScoreStep]:
    """The exact steps of the hinges of `AUC`, of all tasks of a batch; their flip probabilities go into `flips`."""
    from mtldsl.atoms.planes import level_set_kernel

    chosen, margins, ends = batch.sorted(metric, z)
    groups, n_groups = np.empty(len(z), np.int64), np.empty(len(steps), np.int64)
    level_set_kernel.auc_steps(
        chosen, margins, batch.samples, batch.starts, ends, 2.0 * steps, flips, groups, n_groups
    )

    def of(i: int) -> ScoreStep:
        rows, classes = batch.rows[i], batch.classes[i]
        return ScoreStep(
            flips[rows],
            partial(_auc_promise_of, flips[rows], classes),
            partial(_tangent_of_groups, groups[rows], classes, int(n_groups[i])),
        )

    return ScoreSteps(of, len(steps))


def _auc_promise_of(p: np.ndarray, classes) -> float:
    positive, negative = classes
    return auc_promise(p[positive], p[negative])


def _tangent_of_groups(groups: np.ndarray, classes, n_groups: int) -> Tangent:
    signs = np.ones(len(groups))
    signs[classes[1]] = -1.0
    return Tangent(groups, signs, np.bincount(groups[groups >= 0], minlength=n_groups).astype(float))


def auc_promise(of_positives, of_negatives) -> float:
    """D(p) of `AUC`: P(i and j flipped) is at most min(p_i, p_j), and one uniform number for all samples attains it for every pair."""
    q = np.sort(of_negatives)
    below = np.searchsorted(q, of_positives)
    sums = np.append(0.0, np.cumsum(q))[below] + of_positives * (len(q) - below)
    return float(np.sum(sums) / (len(q) * len(of_positives)))


def fscore_steps(
    metric: Any,
    z: np.ndarray,
    batch: Any,
    steps: np.ndarray,
    flips: np.ndarray,
    warm: np.ndarray,
    rough: float = 0.0,
) -> Sequence[ScoreStep | None]:
    """The exact steps of the hinges of `FScore`, beta >= 1, of all tasks of a batch; None where rounding keeps a gap from closing.

    flips : the flip probabilities go there; where a task is warm, they are those of a step nearby, to start from
    rough : relative gap up to which that one is followed to first order: flip probabilities are all that is known then
    """
    from mtldsl.atoms.planes import survival_kernel
    from mtldsl.atoms.planes.threshold_kernel import promised_value

    u, square, k = 2.0 * steps, metric.beta**2, len(steps)
    if np.any(u * (batch.positives + batch.negatives) > _LONGEST):
        return [None] * k
    chosen, margins, ends = batch.sorted(metric, z)
    size = len(chosen) + 2 * k
    tables, pools = np.empty(size, np.int64), np.empty((size, 6), np.int64)
    a, b, levels, mass = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    found, gaps = np.empty((k, 5), np.int64), np.empty(k)
    survival_kernel.fscore_steps(
        chosen, margins, batch.samples, batch.starts, ends, square, u, warm, _MOST_EVALUATIONS, flips,
        tables, a, mass, b, levels, pools, found, gaps, rough,
    )  # fmt: skip
    if not np.all(gaps <= _EXACT):
        return [None] * k

    def of(i: int) -> ScoreStep:
        (up, down, _), (up_end, down_end) = batch.starts[i].tolist(), ends[i].tolist()
        K, n_pools, up_sure, down_sure, _ = found[i].tolist()
        rows, at = batch.rows[i], up + 2 * i
        own = slice(at, at + K)
        opened = chosen[up + up_sure : up_end], chosen[down + down_sure : down_end]
        m = square * float(batch.positives[i]) + down_sure
        return ScoreStep(
            flips[rows],
            partial(promised_value, a[own], b[own], mass[at : at + K + 1], m, 1.0 + square),
            partial(_tangent_of_tables, rows, opened, tables[own], b[own], pools[at : at + n_pools]),
        )

    return ScoreSteps(of, k)


def fscore_promise(of_positives, of_negatives, square: float) -> float:
    """D(p) of `FScore`, square = beta^2 >= 1: the count of wrong positives has the survival function of their sorted p, and the
    negatives' count given it follows from thresholds.
    """
    from mtldsl.atoms.planes.threshold_kernel import promised_value

    a, b, mass = _tables(of_positives, of_negatives, square)
    return promised_value(a, b, mass, square * len(of_positives), 1.0 + square)


def fscore_law(of_positives, of_negatives, square: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(b, c, weights) of the random labelling behind `fscore_promise`."""
    a, b, mass = _tables(of_positives, of_negatives, square)
    c, whole, weights = len(of_positives) - np.rint(a).astype(int), np.floor(b), np.diff(mass)
    share = b - whole
    up = np.flatnonzero(share > 0.0)
    whole = whole.astype(int)
    return (
        np.append(whole, whole[up] + 1), np.append(c, c[up]), np.append(weights * (1.0 - share), (weights * share)[up])
    )  # fmt: skip


def _tables(of_positives, of_negatives, square: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(right positives, expected counts of wrong negatives, mass before each and 1) of the tables with a weight."""
    from mtldsl.atoms.planes.threshold_kernel import thresholds

    r, q = np.sort(of_positives)[::-1], np.sort(of_negatives)[::-1].copy()
    ends = np.concatenate([[0.0], 1.0 - r, [1.0]])
    kept = np.flatnonzero(np.diff(ends) > 0.0)
    mass = np.append(ends[kept], 1.0)
    a, b = (len(r) - kept).astype(float), np.empty(len(kept))
    levels, pools = np.empty(len(kept)), np.empty((len(kept), 6), np.int64)
    sums = np.append(0.0, np.cumsum(q))
    thresholds(q, sums, a, mass, 1.0, 0.0, square * len(r), 1.0 + square, q, b, levels, pools)
    return a, b, mass


def _tangent_of_tables(rows: slice, opened, tables, b, pools) -> Tangent:
    """Pools of negatives at one level move freely where it is pinned, and keep their sum where it is not; positives with one
    probability move together, and with them the negatives that are flipped between their tables, and the pools' sums.
    """
    from mtldsl.atoms.planes.survival_kernel import overlaps

    n, (up, down), G = rows.stop - rows.start, (part - rows.start for part in opened), len(tables) - 1
    sizes, first, shares = np.empty(G), np.empty(G, np.int64), np.empty((G, 2))
    overlaps(G, tables, b, len(pools), pools, sizes, first, shares)
    groups, pool = np.full(n, -1), np.full(n, -1)
    for p, (low, high) in enumerate(pools[:, 3:5]):
        pool[down[high:low]] = p
    for i in range(G):
        groups[up[tables[i] : tables[i + 1]]] = i
        single = down[int(np.ceil(b[i + 1] - 1e-9)) : int(np.floor(b[i] + 1e-9))]
        single = single[pool[single] < 0]
        groups[single] = i
        sizes[i] = tables[i + 1] - tables[i] + len(single)
    reach = reach_of(first, shares, len(pools))
    return Tangent(groups, np.ones(n), sizes, pool, pools[:, 2].astype(bool), reach)
