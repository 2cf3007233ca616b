"""ADMM's x-update: minimise q(x) + 1/2 ||K x + k - t||^2 in the penalties' metric, the same matrix again and again.

Four ways, by structure:
- `TaskwiseUpdate`: one small symmetric system a task, or one for all tasks where they share it; functions whose maps mix tasks, as
  W.sum(axis=1) does, enter by the Woodbury formula.
- `KernelUpdate`: one loss on more features than rows, diagonal penalties: systems of the rows' size.
- `DenseUpdate`: losses that mix tasks, while the unknowns are few: one system over all of them.
- `ConjugateGradientUpdate`: everything else, without a matrix.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.solvers.linear_algebra.curvature import Part
from mtldsl.solvers.linear_algebra.dense import DenseUpdate
from mtldsl.solvers.linear_algebra.gram import gram_outgrows_inputs
from mtldsl.solvers.linear_algebra.inverses import inverses, is_regular
from mtldsl.solvers.linear_algebra.kernel import KernelUpdate
from mtldsl.solvers.linear_algebra.layout import Layout
from mtldsl.solvers.linear_algebra.matrix_free import ConjugateGradientUpdate
from mtldsl.solvers.linear_algebra.split import Copy, Split
from mtldsl.solvers.linear_algebra.systems import (
    couples_tasks,
    middle_matrices,
    mixes_tasks,
    penalty_matrices,
    quadratic_matrices,
)

__all__ = ["TaskwiseUpdate", "choose_x_update", "has_large_systems", "outgrows_inputs"]

Solve = Callable[[Blocks], Blocks]  # right-hand side -> x

_LARGEST_TASK = 2500  # unknowns in one task's system
_SMALL_TASK = 400  # unknowns up to which rows are not counted
_LARGEST_ROWS = 4000  # rows of one task's system in the space of rows
_FEW_ROWS = 1500  # rows up to which such a system costs less than other solvers' steps
_LARGEST_CORRECTION = 2000  # rank of what couples the tasks' systems
_LARGEST_FACTOR = 30_000_000  # entries of its factor
_LARGEST_DENSE = 1200  # unknowns in one system over all tasks
_COPIES = 5  # of a system, that are made at once


def choose_x_update(split: Split):
    """The x-update that fits the structure."""
    layout = Layout(split.form)
    fits = layout.has_columns and layout.depth <= _LARGEST_TASK
    if _are_fewer_rows(split.form) and KernelUpdate.fits(split):
        return KernelUpdate(split)
    mixed = [mixes_tasks(copy, split.form) for copy in split.copies]
    rank = sum(
        copy.rows.stop - copy.rows.start for copy, mixes in zip(split.copies, mixed, strict=True) if mixes
    )
    if fits and not couples_tasks(split):
        size = layout.depth * layout.n_tasks
        if rank == 0 or (rank <= _LARGEST_CORRECTION and rank * size <= _LARGEST_FACTOR):
            update = TaskwiseUpdate(split, layout, mixed)
            if rank == 0 or update.stands_alone():
                return update
    size = sum(rows * columns for rows, columns in split.form.shapes.values())
    if size <= _LARGEST_DENSE and size * split.size <= _LARGEST_FACTOR:
        return DenseUpdate(split)
    return ConjugateGradientUpdate(split, TaskwiseUpdate(split, layout) if fits else None)


def has_large_systems(form: NormalForm) -> bool:
    """Whether a task's systems are of so many unknowns that products with the data cost less: not of the size of few rows, where a loss that
    is not smooth leaves no gradient steps."""
    unknowns = sum(block.shape[0] for block in form.blocks)
    if all(loss.atom.smooth for loss in form.losses) or not _are_fewer_rows(form, _FEW_ROWS):
        return unknowns > _LARGEST_TASK
    return False


def outgrows_inputs(form: NormalForm) -> bool:
    """Whether a task's system takes more memory than a large sparse X leaves beside itself."""
    size = sum(rows for rows, _ in form.shapes.values())
    return any(gram_outgrows_inputs(loss, size, _COPIES) for loss in form.losses)


def _are_fewer_rows(form: NormalForm, most: int = _LARGEST_ROWS) -> bool:
    features = max(rows for rows, _ in form.shapes.values())
    rows = max((int(loss.tasks.counts.max()) for loss in form.losses), default=features)
    return features > _SMALL_TASK and 2 * rows < features and rows <= most


class TaskwiseUpdate:
    """One system a task, or one for all, corrected by what couples the tasks.

    mixed : for each copy, whether its map mixes tasks; None leaves what lies between tasks out (a preconditioner).
    """

    def __init__(self, split: Split, layout: Layout, mixed: list[bool] | None = None):
        self.split, self.layout = split, layout
        self.mixed = mixed or [False] * len(split.copies)
        self.Q = quadratic_matrices(split, layout)
        self.parts = [penalty_matrices(copy, split, layout) for copy in split.copies]
        self.mean_quadratic = float(np.einsum("gii->gi", self.Q).mean())
        self.diagonals = [float(np.einsum("gii->gi", part).mean()) for part in self.parts]
        self.factors = {
            j: self._factor(copy, np.eye(copy.rows.stop - copy.rows.start))
            for j, (copy, mixes) in enumerate(zip(split.copies, self.mixed, strict=True))
            if mixes
        }

    def stands_alone(self) -> bool:
        """Whether the tasks' systems have full rank without the terms that mix tasks."""
        apart = [part for part, mixes in zip(self.parts, self.mixed, strict=True) if not mixes]
        sizes = [max(float(np.abs(part).max()), 1e-300) for part in apart]
        scale = max(float(np.abs(self.Q).max()), 1e-300)
        total = sum((part / size for part, size in zip(apart, sizes, strict=True)), self.Q / scale)
        return is_regular(total)

    def solver(self, penalties: np.ndarray) -> Solve:
        """The x-update under one penalty a copy."""
        H = self.Q
        for j, (penalty, part) in enumerate(zip(penalties, self.parts, strict=True)):
            H = H if j in self.factors else H + penalty * part
        factors = list(self.factors.values())
        scales = [np.full(factor.shape[2], penalties[j]) for j, factor in self.factors.items()]
        return self._solver(H, factors, scales)

    def newton_solver(self, parts: list[Part], damping: np.ndarray) -> Solve | None:
        """Solves with Q + K^T (parts + one damping a copy) K; None where the parts couple the tasks too much.

        Where a map mixes tasks, damping keeps to what lies within them.
        """
        H, factors, scales = self.Q, [], []
        for j, (copy, part) in enumerate(zip(self.split.copies, parts, strict=True)):
            H = H + damping[j] * self.parts[j]
            if self.mixed[j]:
                factor, scale = self._mixed_factor(j, copy, part)
                factors.append(factor)
                scales.append(scale)
                continue
            if part.weights is not None:
                H = H + penalty_matrices(copy, self.split, self.layout, part.weights)
            if part.blocks is not None:
                H = H + middle_matrices(copy, self.split, self.layout, part.blocks)
            if part.vectors is not None:
                factors.append(self._factor(copy, part.vectors))
                scales.append(part.scales)
        rank = sum(scale.size for scale in scales)
        if rank > _LARGEST_CORRECTION or rank * self.layout.depth * self.layout.n_tasks > _LARGEST_FACTOR:
            return None
        return self._solver(H, factors, scales)

    def _mixed_factor(self, j: int, copy: Copy, part: Part) -> tuple[np.ndarray, np.ndarray]:
        factors, scales = [np.empty((self.layout.n_tasks, self.layout.depth, 0))], [np.empty(0)]
        if part.weights is not None:
            active = np.flatnonzero(part.weights)
            factors.append(self.factors[j][:, :, active])
            scales.append(part.weights[active])
        vectors, scale = part.vectors, part.scales
        if part.blocks is not None:
            vectors, scale = _spectral_vectors(part.blocks, copy.shape)
        if vectors is not None and scale is not None:
            factors.append(self._factor(copy, vectors))
            scales.append(scale)
        return np.concatenate(factors, axis=2), np.concatenate(scales)

    def _factor(self, copy: Copy, vectors: np.ndarray) -> np.ndarray:
        """(m, D, r): K_j^T of every row of `vectors`, task by task."""
        factor = np.empty((self.layout.n_tasks, self.layout.depth, len(vectors)))
        for r, vector in enumerate(vectors):
            into = self.split.form.zeros()
            copy.term.map.add_adjoint(vector.reshape(copy.shape), into)
            factor[:, :, r] = self.layout.stack(into).T
        return factor

    def _solver(self, H: np.ndarray, factors: list[np.ndarray], scales: list[np.ndarray]) -> Solve:
        inverse, layout = inverses(H), self.layout

        def apart(stacked):  # (m, D, r) -> (m, D, r)
            return np.matmul(inverse, stacked)

        if sum(scale.size for scale in scales) == 0:
            if len(inverse) == 1:
                return lambda rhs: layout.unstack(inverse[0] @ layout.stack(rhs))
            return lambda rhs: layout.unstack(apart(layout.stack(rhs).T[:, :, None])[:, :, 0].T)
        # Woodbury: (H + U C U^T)^-1 = H^-1 - H^-1 U (C^-1 + U^T H^-1 U)^-1 U^T H^-1
        U = np.concatenate(factors, axis=2)
        Z = apart(U).reshape(-1, U.shape[2])
        inner = U.reshape(Z.shape).T @ Z
        inner[np.diag_indices_from(inner)] += 1.0 / np.concatenate(scales)
        inner = np.linalg.inv(inner)

        def solve(rhs: Blocks) -> Blocks:
            r = layout.stack(rhs).T
            x = apart(r[:, :, None]).ravel() - Z @ (inner @ (Z.T @ r.ravel()))
            return layout.unstack(x.reshape(r.shape).T)

        return solve


def _spectral_vectors(blocks: np.ndarray, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The eigenvectors of every column's block as vectors over the whole image."""
    vectors, scales = [], []
    for column, block in enumerate(blocks):
        values, basis = np.linalg.eigh(block)
        for value, vector in zip(values, basis.T, strict=True):
            if abs(value) > 1e-6 * np.abs(values).max():
                whole = np.zeros(shape)
                whole[:, column] = vector
                vectors.append(whole.ravel())
                scales.append(value)
    return np.array(vectors).reshape(len(scales), -1), np.array(scales)
