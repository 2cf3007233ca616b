"""Structured hinges of larger tasks: planes found one by one, each the most violated where a solve came to rest.

The hinge of task i is a variable t_i >= 0 with planes t_i >= delta_k + <a_k, z_i>. As long as planes are missing, the
problem is a relaxation: its optimum is a lower bound. The true labelling is the plane 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from mtldsl.normal_form.form import LossTerm
from mtldsl.reference.label_graph import (
    GAP,
    choices,
    costs_inside,
    labellings,
    sample_weights,
    task_losses,
    true_labels,
)
from mtldsl.reference.maps import prediction_parts
from mtldsl.reference.metrics import HIGHEST, delta_of, is_of_rankings, metrics_of


@dataclass(frozen=True)
class PlaneTableSettings:
    """Limits of searches for planes, and of the planes that are kept."""

    # entries of the table of Delta, or pairs of samples, that are looked at together
    slab_entries: int = 2_000_000
    idle_weight_share: float = 1e-5  # weight, of its task's, below which a plane is idle
    # solves in which a plane is idle before it is left out until it is found again (measured: a third of the planes and of the time)
    idle_rounds: int = 5


SETTINGS = PlaneTableSettings()


class Plane(NamedTuple):
    """delta + <slope, z>, and what it is at the z where it was found. A labelling's has the samples it flips."""

    value: float
    delta: float
    slope: np.ndarray  # (n,)
    flipped: np.ndarray | None  # (n,) booleans


def most_violated(z, y, metric) -> Plane:
    """The highest plane at z, by looking at every table (b, c), for a metric of rankings at every pair."""
    positives, negatives = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    if is_of_rankings(metric) and metric.name in HIGHEST:
        delta, slope = HIGHEST[metric.name](z, positives, negatives, metric)
        return Plane(float(delta + slope @ z), float(delta), slope, None)
    if is_of_rankings(metric):
        return _most_violated_ranking(z, positives, negatives)
    lowest, highest = positives[np.argsort(z[positives])], negatives[np.argsort(-z[negatives])]
    of_positives = np.append(0.0, -2.0 * np.cumsum(z[lowest]))
    of_negatives = np.append(0.0, 2.0 * np.cumsum(z[highest]))
    best = None
    for c in _chunks(len(of_positives), len(of_negatives)):
        b = np.arange(len(of_negatives))
        delta = delta_of(metric, b[None, :], c[:, None], len(positives), len(negatives))
        value = delta + of_positives[c][:, None] + of_negatives[None, :]
        i, j = np.unravel_index(np.argmax(value), value.shape)
        if best is None or value[i, j] > best[0]:
            best = value[i, j], delta[i, j], c[i], b[j]
    value, delta, c, b = best
    flipped = np.zeros(len(y), bool)
    flipped[lowest[:c]] = flipped[highest[:b]] = True
    return Plane(float(value), float(delta), np.where(flipped, -2.0 * y, 0.0), flipped)


def _most_violated_ranking(z, positives, negatives) -> Plane:
    slope, wrong = np.zeros(len(z)), 0
    for rows in _chunks(len(positives), len(negatives)):
        swapped = 1.0 - 2.0 * (z[positives[rows]][:, None] - z[negatives][None, :]) > 0.0
        slope[positives[rows]] -= 2.0 * swapped.sum(axis=1)
        slope[negatives] += 2.0 * swapped.sum(axis=0)
        wrong += swapped.sum()
    pairs = len(positives) * len(negatives)
    slope /= pairs
    return Plane(float(wrong / pairs + slope @ z), float(wrong / pairs), slope, None)


def _chunks(rows: int, columns: int):
    height = max(1, SETTINGS.slab_entries // columns)
    return (np.arange(first, min(first + height, rows)) for first in range(0, rows, height))


def _key(task: int, plane: Plane) -> tuple[int, bytes]:
    return task, (plane.slope if plane.flipped is None else np.packbits(plane.flipped)).tobytes()


class HingePlaneTable:
    """The structured hinges of one loss term: `height` (m,) stands for them in the objective."""

    def __init__(self, term: LossTerm, variables: dict[str, cp.Variable], name: str):
        self.term, self.metrics = term, metrics_of(term)
        self.targets = np.asarray(term.tasks.targets, float)
        self.coefficients = np.asarray(term.coefficients, float)
        ends = np.cumsum(term.tasks.counts)
        self.rows = [slice(int(end - n), int(end)) for n, end in zip(term.tasks.counts, ends, strict=True)]
        self._begin(term, variables, name)

    def _begin(self, term: LossTerm, variables: dict[str, cp.Variable], name: str) -> None:
        self.parts = prediction_parts(term, variables)
        self.height = cp.Variable(len(self.rows), nonneg=True, name=name)
        self.tasks: list[int] = []  # of every plane, its task ...
        self.planes: list[Plane] = []
        self.idle: list[int] = []  # ... and for how many solves it has carried no weight
        self.matrices = [sp.csr_array((0, matrix.shape[1])) for matrix, _ in self.parts]  # slopes @ matrix
        self.constraint: cp.Constraint | None = (
            None  # the planes as cvxpy has them, and after a solve their weights
        )
        self.start()

    def start(self) -> None:
        """The planes at predictions of zero, and every label flipped."""
        self.add(self.highest_at(0.0 * self.targets) + self.highest_at(-1e6 * self.targets))

    # ------------------------------------------------------------------------------------ as cvxpy sees it

    @property
    def objective(self) -> cp.Expression:
        return self.coefficients @ self.height

    def constrain(self) -> cp.Constraint:
        """The planes found so far."""
        delta = np.array([plane.delta for plane in self.planes])
        image = sum(
            cp.Constant(matrix) @ vector
            for matrix, (_, vector) in zip(self.matrices, self.parts, strict=True)
        )
        self.constraint = image + delta <= self.height[np.array(self.tasks)]
        return self.constraint

    # -------------------------------------------------------------------------------------- finding planes

    def highest(self) -> list[tuple[int, Plane]]:
        """(task, its highest plane) at the present predictions; the heights are set to what the hinges are there."""
        found = self.highest_at(sum(matrix @ vector.value for matrix, vector in self.parts))
        self.height.value = np.array([max(plane.value, 0.0) for _, plane in found])
        return found

    def highest_at(self, z) -> list[tuple[int, Plane]]:
        """The same at other predictions (N,), without the heights."""
        return [
            (i, most_violated(z[rows], self.targets[rows], self.metrics[i]))
            for i, rows in enumerate(self.rows)
        ]

    def add(self, found: list[tuple[int, Plane]]) -> bool:
        """Tell whether one of the planes is new."""
        known, fresh = {_key(i, plane) for i, plane in zip(self.tasks, self.planes, strict=True)}, []
        for i, plane in found:
            if _key(i, plane) not in known and np.any(plane.slope):
                known.add(_key(i, plane))
                fresh.append((i, plane))
        if not fresh:
            return False
        if self.constraint is not None and self.constraint.dual_value is not None:
            self._drop_idle()
        slopes = sp.lil_array((len(fresh), len(self.targets)))
        for k, (i, plane) in enumerate(fresh):
            slopes[[k], self.rows[i]] = plane.slope
        slopes = slopes.tocsr()
        self.matrices = [
            sp.vstack([old, slopes @ matrix], format="csr")
            for old, (matrix, _) in zip(self.matrices, self.parts, strict=True)
        ]
        self.tasks += [i for i, _ in fresh]
        self.planes += [plane for _, plane in fresh]
        self.idle += [0] * len(fresh)
        return True

    def _drop_idle(self) -> None:
        """Leave out planes without weight in the last solves: the relaxation's optimum does not change by that."""
        weights = self.multipliers() / self.coefficients[self.tasks]
        idle = np.where(weights > SETTINGS.idle_weight_share, 0, np.array(self.idle) + 1)
        kept = np.flatnonzero(idle < SETTINGS.idle_rounds)
        self.tasks, self.planes = [self.tasks[k] for k in kept], [self.planes[k] for k in kept]
        self.idle = list(idle[kept])
        self.matrices = [matrix[kept] for matrix in self.matrices]

    # --------------------------------------------------------------------------------------- multipliers

    def multipliers(self) -> np.ndarray | None:
        """The multipliers of the planes, after a solve."""
        if self.constraint.dual_value is None:
            return None
        return np.maximum(np.asarray(self.constraint.dual_value, float).reshape(-1), 0.0)

    def duals(self) -> list | None:
        """After a solve, one subgradient a task: (flips, weights) of a mixture of labellings, the true one with the weight that is
        left, or (slopes, weights) of one of orders; or for pairs, each on its own, an array (n,), which contains the coefficient.
        """
        multipliers, duals = self.multipliers(), []
        if multipliers is None:
            return None
        for i, coefficient in enumerate(self.term.coefficients):
            own = [k for k in np.flatnonzero(multipliers > 0.0) if self.tasks[k] == i]
            weights = multipliers[own] / coefficient
            weights /= max(1.0, weights.sum())
            if is_of_rankings(self.metrics[i]):
                n = self.rows[i].stop - self.rows[i].start
                slopes = np.array([self.planes[k].slope for k in own]).reshape(len(own), n)
                in_orders = self.metrics[i].name in HIGHEST
                duals.append((slopes, weights) if in_orders else coefficient * (weights @ slopes))
            else:
                flips = np.array([self.planes[k].flipped for k in own], dtype=bool)
                duals.append((flips.reshape(len(own), -1), weights))
        return duals


# --------------------------------------------------------------------------------------------------------------
# Clique hinges of more labellings than are stated: planes found one by one, each of the best labelling where a solve came to rest.
#
# The maximum of a sample is a variable t_i >= 0 with planes t_i >= Delta(y, y_i) + <scores_i, Upsilon(y) - Upsilon(y_i)>, found by looking at
# every one of the 2^K labellings: constraint generation with inference of its own.
# Source: Tsochantaridis, Joachims, Hofmann and Altun, JMLR 6 (2005).


class LabelingPlanes(HingePlaneTable):
    """The maxima of a clique hinge: `height` (n,) stands for them, `tasks` are the samples of the planes."""

    def __init__(self, term: LossTerm, variables: dict[str, cp.Variable], name: str):
        atom = term.atom
        K, members = atom.cliques.n_labels, atom.cliques.members
        self.term, self.coefficients = term, sample_weights(term)
        self.targets = np.asarray(term.tasks.targets, float)
        n = len(self.coefficients)
        S = len(self.targets) // n
        self.rows = [np.arange(S) * n + i for i in range(n)]
        self.truth = true_labels(self.targets, K, members)
        self.every = labellings(K)
        self.upsilon, self.own = choices(members, self.every), choices(members, self.truth).toarray()
        self.seen = _visible_entries(members, self.truth)
        self.delta = _costs(atom.loss, self.every, self.truth)  # (2^K, n)
        self._begin(term, variables, name)

    def start(self) -> None:
        """The dearest labellings."""
        self.add(self.highest_at(np.zeros(len(self.targets))))

    def highest_at(self, z) -> list[tuple[int, Plane]]:
        scores = np.where(self.seen, np.asarray(z, float).reshape(-1, len(self.coefficients)).T, 0.0)
        values = self.delta + self.upsilon @ scores.T - np.sum(self.own * scores, axis=1)
        found = []
        for i, best in enumerate(values.argmax(axis=0)):
            slope = np.where(self.seen[i], self.upsilon[[best]].toarray()[0] - self.own[i], 0.0)
            flipped = (self.every[best] != self.truth[i]) & (self.truth[i] != GAP)
            found.append((i, Plane(float(values[best, i]), float(self.delta[best, i]), slope, flipped)))
        return found

    def duals(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """After a solve, the random labelling of every sample that its planes' multipliers are: labels (L, K), weights (L,), and where
        those of every sample begin (n + 1,).
        """
        multipliers = self.multipliers()
        if multipliers is None:
            return None
        of_sample = np.array(self.tasks)
        labels, weights, counts = [], [], []
        for i, coefficient in enumerate(self.coefficients):
            own = np.flatnonzero((multipliers > 0.0) & (of_sample == i))
            shares = multipliers[own] / coefficient
            labels += [np.where(self.planes[k].flipped, 1 - self.truth[i], self.truth[i]) for k in own]
            weights.append(shares / max(1.0, shares.sum()))
            counts.append(len(own))
        table = np.array(labels, dtype=np.uint8).reshape(-1, self.truth.shape[1])
        return table, np.concatenate(weights), np.append(0, np.cumsum(counts))


def _visible_entries(members, truth) -> np.ndarray:
    """(n, S) whether a row sees an entry: all labels of its clique, or the label, are not missing."""
    cliques = [(k,) for k in range(truth.shape[1])] + list(members)
    observed = [np.all(truth[:, list(clique)] != GAP, axis=1) for clique in cliques]
    return np.repeat(np.array(observed).T, [2 ** len(clique) for clique in cliques], axis=1)


def _costs(loss, every, truth) -> np.ndarray:
    """(2^K, n): what labellings cost beside the true ones, by the labels that are not missing."""
    missing, of = np.unique(truth == GAP, axis=0, return_inverse=True)
    found = np.zeros((len(every), len(truth)))
    for number, gaps in enumerate(missing):
        seen, rows = np.flatnonzero(~gaps), np.flatnonzero(of.ravel() == number)
        if seen.size:
            found[:, rows] = task_losses(costs_inside(loss, seen), every[:, seen], truth[np.ix_(rows, seen)])
    return found
