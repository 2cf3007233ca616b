"""ADMM's x-update: minimise q(x) + rho/2 ||K x + k - t||^2 in the penalties' metric, the same matrix again and again.

Three ways, by structure:
- `TaskwiseUpdate`: no map mixes tasks. One small symmetric pencil a task (one for all where they share it), diagonalised once:
  after that any rho is a rescaling of eigenvalues.
- `DenseUpdate`: the same for maps that mix tasks, on all unknowns at once, while these are few.
- `ConjugateGradientUpdate`: the same without a matrix, preconditioned by the task-wise systems, started from the last x.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from mtldsl.compile.normal_form import Blocks
from mtldsl.solvers.admm_matrix_free import ConjugateGradientUpdate
from mtldsl.solvers.admm_split import Split
from mtldsl.solvers.admm_systems import Layout, couples_tasks, penalty_matrices, quadratic_matrices

__all__ = ["DenseUpdate", "TaskwiseUpdate", "choose_x_update"]

_LARGEST_DENSE = 1200  # unknowns in one dense system over all tasks
_LARGEST_IMAGE = 30_000_000  # entries of its matrix K
_LARGEST_TASK = 2500  # unknowns in one task's dense system


def choose_x_update(split: Split):
    """The x-update that fits the structure."""
    layout = Layout.of(split.form)
    fits = layout is not None and layout.size <= _LARGEST_TASK
    if fits and not couples_tasks(split):
        return TaskwiseUpdate(split, layout)
    size = sum(rows * columns for rows, columns in split.form.shapes.values())
    if size <= _LARGEST_DENSE and size * split.size <= _LARGEST_IMAGE:
        return DenseUpdate(split)
    return ConjugateGradientUpdate(split, TaskwiseUpdate(split, layout) if fits else None)


class Pencil:
    """Stacks of symmetric positive semidefinite Q, P (g, D, D), solved as (Q + rho P)^-1 for one rho after another.

    T with T^T (Q + rho_0 P) T = I and T^T P T = diag(mu) gives (Q + rho P)^-1 = T diag(1 / (1 + (rho - rho_0) mu)) T^T.
    Directions in which Q and P both vanish are dropped: the solution then has the smallest norm.
    """

    def __init__(self, Q: np.ndarray, P: np.ndarray, rho: float):
        size = max(len(Q), len(P))
        Q, P = (np.broadcast_to(A, (size, *A.shape[1:])) for A in (Q, P))
        self.base = rho
        parts = _in_threads(lambda chunk: _diagonalise(Q[chunk], P[chunk], rho), size, Q.shape[1])
        self.T = np.concatenate([T for T, _ in parts])
        self.mu = np.concatenate([mu for _, mu in parts])

    def inverse(self, rho: float) -> np.ndarray:
        scaled = self.T / (1.0 + (rho - self.base) * self.mu)[:, None, :]
        return np.concatenate(
            _in_threads(
                lambda chunk: scaled[chunk] @ self.T[chunk].transpose(0, 2, 1), len(self.T), self.T.shape[1]
            )
        )


def _diagonalise(Q: np.ndarray, P: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
    total = Q + rho * P
    scale = np.sqrt(np.maximum(np.einsum("gii->gi", total), np.finfo(float).tiny))
    total = total / (scale[:, :, None] * scale[:, None, :])
    whitener = _whitener(total) / scale[:, :, None]
    mu, rotation = np.linalg.eigh(whitener.transpose(0, 2, 1) @ P @ whitener)
    return whitener @ rotation, np.clip(mu, 0.0, 1.0 / rho)


def _whitener(total: np.ndarray) -> np.ndarray:
    """V with V^T total V = I, as an inverse Cholesky factor; by eigenvectors, null directions zero, where rank is lacking."""
    try:
        factor = np.linalg.cholesky(total)
        pivots = np.einsum("gii->gi", factor)
        if pivots.min() > 1e-6:
            return np.linalg.inv(factor).transpose(0, 2, 1)
    except np.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(total)
    kept = values > 1e-13 * values.max(axis=1, keepdims=True)
    return vectors * np.where(kept, 1.0 / np.sqrt(np.where(kept, values, 1.0)), 0.0)[:, None, :]


def _in_threads(function, n_items: int, size: int) -> list:
    """[function(chunk)] over slices of the items; in threads where every item is worth it (LAPACK releases the lock)."""
    workers = min(os.cpu_count() or 1, n_items) if n_items * size**3 > 1e7 else 1
    if workers == 1:
        return [function(slice(0, n_items))]
    cuts = np.linspace(0, n_items, workers + 1).astype(int)
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, [slice(a, b) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]))


class TaskwiseUpdate:
    """One pencil a task, or one for all."""

    def __init__(self, split: Split, layout: Layout):
        self.layout = layout
        self.Q = quadratic_matrices(split, layout)
        self.parts = [penalty_matrices(copy, split, layout) for copy in split.copies]
        self.mean_quadratic = float(np.einsum("gii->gi", self.Q).mean())
        self.diagonals = [float(np.einsum("gii->gi", part).mean()) for part in self.parts]
        self.pencil = None

    def set_penalties(self, ratios: np.ndarray, rho: float) -> None:
        """Penalties rho * ratios from now on; new ratios cost a factorization, a new rho alone does not."""
        if self.pencil is None or not np.array_equal(ratios, self.ratios):
            P = sum(ratio * part for ratio, part in zip(ratios, self.parts, strict=True))
            if not self.parts:
                P = np.zeros_like(self.Q)
            self.pencil, self.ratios = Pencil(self.Q, P, rho), ratios.copy()
        self.inverse = self.pencil.inverse(rho)

    def solve(self, rhs: Blocks) -> Blocks:
        stacked = self.layout.stack(rhs)
        if len(self.inverse) == 1:
            return self.layout.unstack(self.inverse[0] @ stacked)
        return self.layout.unstack(np.matmul(self.inverse, stacked.T[:, :, None])[:, :, 0].T)


class DenseUpdate:
    """One pencil over all unknowns, its matrices found by applying the operators to the unit vectors."""

    def __init__(self, split: Split):
        self.split = split
        self.shapes = split.form.shapes
        self.size = sum(rows * columns for rows, columns in self.shapes.values())
        Q = np.empty((self.size, self.size))
        K = np.empty((self.size, split.size))
        for j, unit in enumerate(np.eye(self.size)):
            x = self._blocks(unit)
            Q[j] = self._vector(split.quadratic_product(x))
            K[j] = split.linear_image(x)
        self.Q = 0.5 * (Q + Q.T)[None]
        metrics = [split.metric(np.eye(len(split.copies))[j]) for j in range(len(split.copies))]
        self.parts = [((K * metric) @ K.T)[None] for metric in metrics]
        self.mean_quadratic = float(np.trace(Q)) / self.size
        self.diagonals = [float(np.trace(part[0])) / self.size for part in self.parts]
        self.pencil = None

    set_penalties = TaskwiseUpdate.set_penalties

    def solve(self, rhs: Blocks) -> Blocks:
        return self._blocks(self.inverse[0] @ self._vector(rhs))

    def _blocks(self, vector: np.ndarray) -> Blocks:
        blocks, at = {}, 0
        for name, shape in self.shapes.items():
            end = at + shape[0] * shape[1]
            blocks[name], at = vector[at:end].reshape(shape), end
        return blocks

    def _vector(self, x: Blocks) -> np.ndarray:
        return np.concatenate([x[name].ravel() for name in self.shapes])
