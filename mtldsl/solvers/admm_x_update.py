"""ADMM's x-update: minimise q(x) + 1/2 ||K x + k - t||^2 in the penalties' metric, the same matrix again and again.

Three ways, by structure:
- `TaskwiseUpdate`: no map mixes tasks. One small symmetric system a task, or one for all tasks where they share it.
- `DenseUpdate`: maps that mix tasks while the unknowns are few: one system over all of them.
- `ConjugateGradientUpdate`: maps that mix tasks otherwise, without a matrix.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from mtldsl.compile.normal_form import Blocks
from mtldsl.solvers.admm_matrix_free import ConjugateGradientUpdate
from mtldsl.solvers.admm_split import Split
from mtldsl.solvers.admm_systems import Layout, couples_tasks, penalty_matrices, quadratic_matrices

__all__ = ["LARGEST_TASK", "DenseUpdate", "TaskwiseUpdate", "choose_x_update"]

Solve = Callable[[Blocks], Blocks]  # right-hand side -> x

_LARGEST_DENSE = 1200  # unknowns in one dense system over all tasks
_LARGEST_IMAGE = 30_000_000  # entries of its matrix K
LARGEST_TASK = 2500  # unknowns in one task's dense system


def choose_x_update(split: Split):
    """The x-update that fits the structure."""
    layout = Layout.of(split.form)
    fits = layout is not None and layout.size <= LARGEST_TASK
    if fits and not couples_tasks(split):
        return TaskwiseUpdate(split, layout)
    size = sum(rows * columns for rows, columns in split.form.shapes.values())
    if size <= _LARGEST_DENSE and size * split.size <= _LARGEST_IMAGE:
        return DenseUpdate(split)
    return ConjugateGradientUpdate(split, TaskwiseUpdate(split, layout) if fits else None)


def inverses(H: np.ndarray) -> np.ndarray:
    """The inverses of symmetric positive semidefinite H (g, D, D); pseudo-inverses where rank is lacking.

    In threads where the matrices are large enough for it: LAPACK lets go of Python's lock.
    """
    workers = min(os.cpu_count() or 1, len(H)) if len(H) * H.shape[1] ** 3 > 1e7 else 1
    if workers == 1:
        return _inverses(H)
    chunks = [H[a:b] for a, b in pairwise(np.linspace(0, len(H), workers + 1).astype(int))]
    with ThreadPoolExecutor(workers) as pool:
        return np.concatenate(list(pool.map(_inverses, chunks)))


def _inverses(H: np.ndarray) -> np.ndarray:
    # Unit diagonals first: features in different units are no lack of rank.
    scale = np.sqrt(np.maximum(np.einsum("gii->gi", H), np.finfo(float).tiny))
    outer = scale[:, :, None] * scale[:, None, :]
    H = H / outer
    try:
        pivots = np.einsum("gii->gi", np.linalg.cholesky(H))
        if pivots.min() > 1e-6:
            inverse = np.linalg.inv(H)
            return 0.5 * (inverse + inverse.transpose(0, 2, 1)) / outer
    except np.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(H)
    kept = values > 1e-13 * values[:, -1:]
    vectors = vectors * np.where(kept, 1.0 / np.sqrt(np.where(kept, values, 1.0)), 0.0)[:, None, :]
    return vectors @ vectors.transpose(0, 2, 1) / outer


class TaskwiseUpdate:
    """One system a task, or one for all."""

    def __init__(self, split: Split, layout: Layout):
        self.split, self.layout = split, layout
        self.Q = quadratic_matrices(split, layout)
        self.parts = [penalty_matrices(copy, split, layout, copy.profile) for copy in split.copies]
        self.mean_quadratic = float(np.einsum("gii->gi", self.Q).mean())
        self.diagonals = [float(np.einsum("gii->gi", part).mean()) for part in self.parts]

    def solver(self, penalties: np.ndarray) -> Solve:
        """The x-update under one penalty a copy."""
        return self._solver(sum((p * part for p, part in zip(penalties, self.parts, strict=True)), self.Q))

    def solver_in(self, metric: np.ndarray, by_entry: list[bool]) -> Solve:
        """The x-update under one penalty an entry, for the copies marked `by_entry`; the others' penalty is uniform."""
        H = self.Q
        for copy, part, own in zip(self.split.copies, self.parts, by_entry, strict=True):
            weights = metric[copy.rows]
            H = H + (penalty_matrices(copy, self.split, self.layout, weights) if own else weights[0] * part)
        return self._solver(H)

    def _solver(self, H: np.ndarray) -> Solve:
        inverse, layout = inverses(H), self.layout
        if len(inverse) == 1:
            return lambda rhs: layout.unstack(inverse[0] @ layout.stack(rhs))
        return lambda rhs: layout.unstack(np.matmul(inverse, layout.stack(rhs).T[:, :, None])[:, :, 0].T)


class DenseUpdate:
    """One system over all unknowns; its matrices are found by applying the operators to the unit vectors."""

    def __init__(self, split: Split):
        self.split, self.shapes = split, split.form.shapes
        self.size = sum(rows * columns for rows, columns in self.shapes.values())
        Q = np.empty((self.size, self.size))
        self.K = np.empty((self.size, split.size))  # transposed: row j is the image of unit vector j
        for j, unit in enumerate(np.eye(self.size)):
            x = self._blocks(unit)
            Q[j] = self._vector(split.quadratic_product(x))
            self.K[j] = split.linear_image(x)
        self.Q = 0.5 * (Q + Q.T)
        self.mean_quadratic = float(np.trace(Q)) / self.size
        self.diagonals = [float(np.square(self.K[:, copy.rows]).sum()) / self.size for copy in split.copies]

    def solver(self, penalties: np.ndarray) -> Solve:
        return self.solver_in(self.split.metric(penalties))

    def solver_in(self, metric: np.ndarray, by_entry: list[bool] | None = None) -> Solve:
        inverse = inverses((self.Q + (self.K * metric) @ self.K.T)[None])[0]
        return lambda rhs: self._blocks(inverse @ self._vector(rhs))

    def _blocks(self, vector: np.ndarray) -> Blocks:
        blocks, at = {}, 0
        for name, shape in self.shapes.items():
            end = at + shape[0] * shape[1]
            blocks[name], at = vector[at:end].reshape(shape), end
        return blocks

    def _vector(self, x: Blocks) -> np.ndarray:
        return np.concatenate([x[name].ravel() for name in self.shapes])
