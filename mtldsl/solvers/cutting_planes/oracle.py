"""Oracle of a structured loss: the highest plane of every task, and the bundle of planes that are kept of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mtldsl.normal_form.form import Blocks, LossTerm
from mtldsl.normal_form.reductions.block_reductions import has_one_maximum_a_task
from mtldsl.normal_form.terms.structured_term import Mixture
from mtldsl.solvers.solver import FLOPS_PER_CALL


def has_oracle(loss: LossTerm) -> bool:
    """Tell whether the loss is, for every task by itself, a maximum of affine functions whose highest one is known exactly."""
    return loss.atom.max_affine and loss.atom.labels != "indicators"


def _intercept_unit(tasks: Any) -> float:
    """The root mean square of a typical feature: typical is what most of the data's energy lies in."""
    # lengths of shared columns count rows without a label too
    every_row = tasks.in_memory and tasks.is_shared
    rows = tasks.X.shape[0] * tasks.n_tasks if every_row else np.sum(tasks.counts)
    squares = np.square(tasks.column_lengths).sum(axis=1) / float(rows)
    return float(np.sqrt((squares @ squares) / squares.sum())) if squares.sum() > 0 else 1.0


@dataclass
class WeightPlanes:
    """The highest plane of every task: values (m,), offsets deltas (m,), slopes in the weights (m, D), and its compact form."""

    values: np.ndarray
    deltas: np.ndarray
    slopes: np.ndarray
    stored: list


class Oracle:
    """The oracle of one loss of one weight matrix (and its intercepts). Values and slopes are without the tasks' coefficients.

    V (m, D) holds the weights of every task and, where there is an intercept, this divided by `unit`, the size of a feature: so
    that one penalty suits them all.
    """

    def __init__(self, loss: LossTerm):
        self.loss: Any = loss  # where `_by_task`, a term that knows its tasks apart
        self.tasks = loss.tasks
        self.block: Any = loss.map.identity_of  # None where it is of an expression of weights
        self.has_intercept = bool(loss.intercepts)
        self.calls = 0.0
        self.coefficients = np.asarray(loss.coefficients, float)
        self.size = self.tasks.n_features + self.has_intercept
        self.unit = _intercept_unit(self.tasks) if self.has_intercept else 1.0
        self._by_task = has_one_maximum_a_task(loss)
        self._find = self._of_tasks if self._by_task else self._of_samples

    @cached_property
    def work(self) -> float:
        """Return what a look costs, in multiplications: two products with the data, and what calls from Python cost whatever the size."""
        return FLOPS_PER_CALL + 2.0 * sum(
            float(X.nnz if self.tasks.is_sparse else X.size) for X in self.tasks.inputs
        )

    def is_of_the_same(self, other: Oracle) -> bool:
        """Tell whether planes of the one are planes of the other."""
        mine, theirs = self.loss, other.loss
        return (
            mine.tasks is theirs.tasks and mine.atom is theirs.atom and mine.intercepts == theirs.intercepts
        )

    def stacked(self, blocks: Blocks) -> np.ndarray:
        """V (m, D) of weights and intercepts as the form has them."""
        rows = [blocks[self.block], *(blocks[name] / self.unit for name in self.loss.intercepts)]
        return np.vstack(rows).T.copy()

    def blocks(self, V: np.ndarray) -> Blocks:
        """The point V (m, D) as the form has it."""
        d = self.tasks.n_features
        weights = {self.block: V[:, :d].T.copy()}
        return weights | {name: self.unit * V[:, d:].T for name in self.loss.intercepts}

    def predictions(self, V: np.ndarray) -> np.ndarray:
        """Flat predictions (N,) of V (m, D)."""
        d = self.tasks.n_features
        z = self.tasks.forward(V[:, :d].T)
        return z + self.unit * np.repeat(V[:, d], self.tasks.counts) if self.has_intercept else z

    def pull(self, u: np.ndarray) -> np.ndarray:
        """The adjoint, (m, D)."""
        slopes = np.empty((self.tasks.n_tasks, self.size))
        slopes[:, : self.tasks.n_features] = self.tasks.adjoint(u).T
        if self.has_intercept:
            starts = self.tasks.offsets[:-1]
            sums = np.add.reduceat(u, starts)
            # slopes of rankings sum to zero, but for rounding, along which no plane has a slope
            slopes[:, -1] = self.unit * np.where(
                np.abs(sums) > 1e-14 * np.add.reduceat(np.abs(u), starts), sums, 0.0
            )
        return slopes

    def __call__(self, V: np.ndarray) -> WeightPlanes:
        self.calls += 1
        values, deltas, u, stored = self._find(self.predictions(V))
        return WeightPlanes(values, deltas, self.pull(u), stored)

    def values(self, V: np.ndarray) -> np.ndarray:
        self.calls += 1
        z = self.predictions(V)
        return self.loss.highest(z).values if self._by_task else self._find(z)[0]

    # ------------------------------------------------------------------------------------ one maximum a task

    def _of_tasks(self, z):
        found = self.loss.highest(z)
        return found.values, found.deltas, found.slopes, self._stored(found.slopes)

    def _stored(self, u: np.ndarray) -> list[np.ndarray]:
        """The compact forms of the planes with slopes u in the predictions: which labels they flip, where that says all."""
        return [
            own != 0.0 if metric.labellings else own.copy()
            for own, (_, _, metric, _, _) in zip(
                np.split(u, self.tasks.offsets[1:-1]), self.loss.tasks_apart, strict=True
            )
        ]

    # ---------------------------------------------------------------------------------- one maximum a sample

    def _of_samples(self, z):
        y, starts = self.tasks.targets, self.tasks.offsets[:-1]
        weights = self.tasks.sample_weights
        slopes, heights = _highest(self.loss.atom, z, y)
        u, lost = (part if weights is None else weights * part for part in (slopes, heights))
        deltas = np.add.reduceat(lost, starts)
        values = deltas + np.add.reduceat(u * z, starts)
        return values, deltas, u, np.split(slopes != 0.0, starts[1:])

    # -------------------------------------------------------------------------------------------- certificate

    def zero(self, i: int):
        """The compact form of the plane that is zero everywhere."""
        n = int(self.tasks.counts[i])
        flips = not self._by_task or self.loss.tasks_apart[i][2].labellings
        return np.zeros(n, bool if flips else float)

    def duals(self, stored: list[list], weights: list[np.ndarray]):
        """Multipliers of the loss term, coefficients included, of the mixtures of planes."""
        apart = []
        for i, (planes, w) in enumerate(zip(stored, weights, strict=True)):
            used = np.flatnonzero(w > 0.0) if np.any(w > 0.0) else np.zeros(1, int)
            chosen, w = np.array([planes[k] for k in used]), w[used]
            is_mixture = self._by_task and (chosen.dtype == bool or self.loss.tasks_apart[i][2].tells_orders)
            apart.append(Mixture(chosen, w) if is_mixture else self.coefficients[i] * (w @ chosen))
        if self._by_task:
            return apart
        atom: Any = self.loss.atom  # of such a loss every dual entry has an interval
        low, high = atom.dual_interval(self.tasks.targets)
        weights = self.tasks.sample_weights
        u = (low + high) * np.concatenate(apart)  # one end is zero, the other the slope
        return u if weights is None else weights * u


def _highest(atom, z, y) -> tuple[np.ndarray, np.ndarray]:
    """(slope, height at zero) of the affine function that is highest at z, for every sample."""
    slopes = atom.slope(z, y)
    return slopes, -atom.pointwise_conjugate(slopes, y)


# --------------------------------------------------------------------------------------------------------------
# The planes that are kept of every task's loss, and quadratic programs over them.

#: Arrays of a bundle, a row a task.
BUNDLE_ARRAYS = ("planes", "gram", "deltas", "beta", "idle", "counts")


class Bundle:
    """Planes of all tasks: slopes in the weights (with the intercept as a last entry), offsets, weights beta on a simplex.

    The true labelling's plane, zero, is always there at place 0. What certifies them later, the planes in the predictions, is
    kept beside them in the oracle's compact form.

    capacity : planes a task that there is room for at first; the room doubles
    """

    def __init__(self, oracle: Oracle, capacity: int = 16):
        n_tasks, self.size = oracle.tasks.n_tasks, oracle.size
        self.oracle = oracle
        self._allocate(n_tasks, capacity)
        self.counts = np.ones(n_tasks, np.int64)
        self.beta[:, 0] = 1.0
        self.stored = [[oracle.zero(i)] for i in range(n_tasks)]
        self.work = 0.0  # that went into programs, in multiplications

    @classmethod
    def of(cls, oracle: Oracle, before: Bundle | None) -> Bundle:
        """With the planes of a run before, where they are planes of the same data and metrics; coefficients may have changed."""
        bundle = cls(oracle)
        if before is not None and before.oracle.is_of_the_same(oracle):
            for name in BUNDLE_ARRAYS:
                setattr(bundle, name, getattr(before, name).copy())
            bundle.stored = [list(planes) for planes in before.stored]
        return bundle

    @property
    def is_new(self) -> bool:
        """Tell whether it holds nothing but the true labelling's planes."""
        return bool(np.all(self.counts == 1))

    def _allocate(self, m: int, capacity: int) -> None:
        self.planes = np.zeros((m, capacity, self.size))
        self.gram = np.zeros((m, capacity, capacity))
        self.deltas, self.beta = np.zeros((m, capacity)), np.zeros((m, capacity))
        self.idle = np.zeros((m, capacity), np.int64)

    def _grow(self) -> None:
        old = (self.planes, self.gram, self.deltas, self.beta, self.idle)
        m, n = self.beta.shape
        self._allocate(m, 2 * n)
        new = (self.planes, self.gram, self.deltas, self.beta, self.idle)
        for to, array in zip(new, old, strict=True):
            to[tuple(slice(0, k) for k in array.shape)] = array

    def add(self, found: WeightPlanes, chosen: np.ndarray) -> None:
        """The planes found for the tasks in `chosen` (positions)."""
        if chosen.size == 0:
            return
        if self.counts[chosen].max() >= self.beta.shape[1]:
            self._grow()
        at, new = self.counts[chosen], found.slopes[chosen]
        self.planes[chosen, at], self.deltas[chosen, at] = new, found.deltas[chosen]
        self.beta[chosen, at], self.idle[chosen, at] = 0.0, 0
        products = np.matmul(self.planes[chosen], new[:, :, None])[:, :, 0]  # of places not in use: zero
        self.gram[chosen, at], self.gram[chosen, :, at] = products, products
        self.counts[chosen] += 1
        for i in chosen:
            self.stored[i].append(found.stored[i])

    def proximal_steps(
        self, B: np.ndarray, steps: np.ndarray, tol: float = 1e-14
    ) -> tuple[np.ndarray, np.ndarray]:
        """(V, promised): argmin of steps[i] * model_i + 1/2 ||. - B[i]||^2 (m, D), and the models' values there."""
        from mtldsl.solvers.cutting_planes.plane_kernels import proximal_steps

        V, promised = np.empty_like(B), np.empty(len(B))
        self.work += proximal_steps(
            self.planes, self.gram, self.deltas, self.beta, self.counts, self.idle, steps, B, tol, V, promised
        )
        return V, promised

    def slopes(self) -> np.ndarray:
        """sum_k beta_k planes_k of every task, (m, D)."""
        return np.matmul(self.beta[:, None, :], self.planes)[:, 0, :]

    def expected(self) -> np.ndarray:
        """sum_k beta_k deltas_k of every task."""
        return np.einsum("ik,ik->i", self.beta, self.deltas)

    def values(self, V: np.ndarray) -> np.ndarray:
        """The model, max_k deltas_k + <planes_k, V[i]>, of every task."""
        heights = self.deltas + np.matmul(self.planes, V[:, :, None])[:, :, 0]
        heights[np.arange(heights.shape[1]) >= self.counts[:, None]] = -np.inf
        return heights.max(axis=1)

    def drop_idle(self, rounds: int) -> None:
        """Forget planes without weight for that many rounds; never the zero plane."""
        kept = self.idle < rounds
        kept[:, 0] = True
        for i, n in enumerate(self.counts):
            stays = np.flatnonzero(kept[i, :n])
            k = stays.size
            if k == n:
                continue
            self.stored[i] = [self.stored[i][j] for j in stays]
            self.gram[i, :k, :k] = self.gram[i][np.ix_(stays, stays)]
            for array in (self.planes, self.deltas, self.beta, self.idle):
                array[i, :k] = array[i, stays]
                array[i, k:n] = 0  # what lies beyond is not in use
            self.counts[i] = k

    def duals(self, beta: np.ndarray | None = None, shrink: np.ndarray | None = None) -> list | np.ndarray:
        """The multipliers of the loss that beta stands for, as the certificate takes them; shrink (m,): a factor a task."""
        beta = self.beta if beta is None else beta
        weights = [b[:n] if shrink is None else s * b[:n] for b, n, s in
                   zip(beta, self.counts, np.ones(len(beta)) if shrink is None else shrink, strict=True)]  # fmt: skip
        return self.oracle.duals(self.stored, weights)
