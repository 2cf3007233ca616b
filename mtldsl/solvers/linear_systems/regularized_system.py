"""Linear systems of the weights in ADMM, solved by primal or dual factors, conjugate gradients or Woodbury's identity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mtldsl.data.products import gram
from mtldsl.normal_form.form import Blocks, NormalForm, single_block
from mtldsl.solvers.design.sufficient_statistics import quadratic_weights
from mtldsl.solvers.linear_systems.factorizations import inverses, is_regular
from mtldsl.solvers.linear_systems.task_matrices import (
    BlockLayout,
    SplitForm,
    SplitVariable,
    couples_tasks,
    diagonal_of,
    mixes_tasks,
    penalty_matrices,
    quadratic_matrices,
)
from mtldsl.solvers.numerics.conjugate_gradients import conjugate_gradients
from mtldsl.utils.memory import require_memory


@dataclass(frozen=True)
class SystemSettings:
    """Sizes of systems, and what their solutions leave of a residual.

    refinement_ratio : of X^T T X to P, from which on a step of refinement follows (measured without: gaps that stay at .1)
    rounding_share   : of the right-hand side, what conjugate gradients leave at least
    task_features    : unknowns in one task's system
    kernel_features  : unknowns up to which rows are not counted
    kernel_rows      : rows of one task's system in the space of rows
    correction_rank  : of what couples the tasks' systems
    factor_entries   : of that coupling's factor
    dense_features   : unknowns in one system over all tasks
    """

    refinement_ratio: float = 1e5
    rounding_share: float = 1e-15
    task_features: int = 2500
    kernel_features: int = 400
    kernel_rows: int = 4000
    correction_rank: int = 2000
    factor_entries: int = 30_000_000
    dense_features: int = 1200


SETTINGS = SystemSettings()


# --------------------------------------------------------------------------------------------------------------
# ADMM's x-update by one dense system over all unknowns: for losses that mix tasks, while the unknowns are few.


class DenseUpdate:
    """The matrices of q and K are found by applying the operators to the unit vectors."""

    def __init__(self, split: SplitForm):
        self.split, self.layout = split, BlockLayout(split.form)
        size = self.layout.size
        Q = np.empty((size, size))
        self.K = np.empty((size, split.size))  # transposed: row j is the image of unit vector j
        for j, unit in enumerate(np.eye(size)):
            x = self.layout.blocks(unit)
            Q[j] = self.layout.flat(split.quadratic_product(x))
            self.K[j] = split.linear_image(x)
        self.Q = 0.5 * (Q + Q.T)
        self.mean_quadratic = float(np.trace(Q)) / size
        self.diagonals = [float(np.square(self.K[:, copy.rows]).sum()) / size for copy in split.copies]

    def solver(self, penalties: np.ndarray):
        """The x-update under one penalty a copy."""
        H = self.Q + (self.K * self.split.metric(penalties)) @ self.K.T
        inverse = inverses(H[None])[0]
        return lambda rhs: self.layout.blocks(inverse @ self.layout.flat(rhs))


# --------------------------------------------------------------------------------------------------------------
# ADMM's x-update in the space of rows: for one loss on more features than rows, where every penalty is diagonal.
#
# Task i's system is X^T T X + P with T = diag(theta), P = diag(p), and
#
#     (X^T T X + P)^-1 = P^-1 - P^-1 X^T (T^-1 + X P^-1 X^T)^-1 X P^-1,
#
# a matrix of the rows' size. An intercept is eliminated from the bordered system.


class KernelUpdate:
    """Made where `fits` says so."""

    @staticmethod
    def fits(split: SplitForm) -> bool:
        """One loss of one block whose every other term weighs entries apart and reaches all of them."""
        form = split.form
        if isinstance(single_block(form, "anything"), str):
            return False
        if any(diagonal_of(f.map) is None for f in form.functions):
            return False
        if any(curvature.weights is None for curvature in split.exact_functions.values()):
            return False
        update = KernelUpdate(split)
        return bool(np.all(update.fixed + sum(update.diagonal_parts.values(), 0.0) > 0))

    def __init__(self, split: SplitForm):
        self.split, form = split, split.form
        facts = single_block(form, "anything")
        assert not isinstance(facts, str)  # `fits` said so
        self.loss, self.block, self.intercept = facts.loss, facts.name, facts.intercept
        self.tasks = self.loss.tasks
        self.fixed = np.zeros(facts.shape)  # q's part of P
        for k, curvature in split.exact_functions.items():
            assert curvature.weights is not None  # `fits` said so
            f = form.functions[k]
            self.fixed += diagonal_of(f.map) * self._back(f, np.broadcast_to(curvature.weights, f.map.shape))
        self.diagonal_parts = {
            j: diagonal_of(copy.term.map) * self._back(copy.term, np.ones(copy.shape))
            for j, copy in enumerate(split.copies)
            if not copy.is_loss
        }
        self.quadratic = (
            np.broadcast_to(quadratic_weights(self.loss), self.tasks.n_samples)
            if split.exact_losses
            else None
        )
        each = [
            float((X.multiply(X) if self.tasks.is_sparse else np.square(X)).sum()) for X in self.tasks.inputs
        ]
        squares = sum(each) / self.fixed.size
        self.largest = max(each)  # no eigenvalue of a task's X^T X is above
        quadratic = 0.0 if self.quadratic is None else squares * float(np.mean(self.quadratic))
        self.mean_quadratic = quadratic + float(self.fixed.mean())
        self.diagonals = [
            squares if copy.is_loss else float(self.diagonal_parts[j].mean())
            for j, copy in enumerate(split.copies)
        ]
        self.gram = None

    def _back(self, f, weights: np.ndarray) -> np.ndarray:
        """Weights of the image's entries on the entries of the block that they are made of; 0 elsewhere."""
        into = self.split.form.zeros()
        entry = f.map.entries[0]
        f.map.add_adjoint(weights / entry.coefficient, into)
        return into[self.block]

    def solver(self, penalties: np.ndarray):
        """The x-update under one penalty a copy."""
        theta, P = self.quadratic, self.fixed
        for j, copy in enumerate(self.split.copies):
            if copy.is_loss:
                profile = np.ones(self.tasks.n_samples) if copy.profile is None else copy.profile
                theta = penalties[j] * profile
            else:
                P = P + penalties[j] * self.diagonal_parts[j]
        assert theta is not None  # the one loss is exact, or has a copy
        return self._solver(theta, P)

    def _solver(self, theta: np.ndarray, P: np.ndarray):
        over = 1.0 / P
        apply_inner = self._inner(theta, over)

        def at_once(r: np.ndarray) -> np.ndarray:  # (X^T T X + P)^-1 r
            scaled = over * r
            return scaled - over * self.tasks.adjoint(apply_inner(self.tasks.forward(scaled)))

        def refined(r: np.ndarray) -> np.ndarray:
            x = at_once(r)
            return x + at_once(r - P * x - self.tasks.adjoint(theta * self.tasks.forward(x)))

        apart = (
            refined if np.max(theta) * np.max(over) * self.largest > SETTINGS.refinement_ratio else at_once
        )

        block, intercept = self.block, self.intercept
        if intercept is None:
            return lambda rhs: {self.block: apart(rhs[self.block])}
        border = self.tasks.adjoint(theta)
        moved = apart(border)
        pivot = np.add.reduceat(theta, self.tasks.offsets[:-1]) - np.einsum("im,im->m", border, moved)

        def solve(rhs: Blocks) -> Blocks:
            w = apart(rhs[block])
            b = (rhs[intercept][0] - np.einsum("im,im->m", border, w)) / pivot
            return {block: w - moved * b, intercept: b[None, :]}

        return solve

    def _inner(self, theta: np.ndarray, over: np.ndarray):
        """z -> (T^-1 + X P^-1 X^T)^-1 z, flat over tasks."""
        tasks = self.tasks
        if self.loss.is_shared_complete and np.all(theta == theta[0]) and np.all(over == over[0, 0]):
            if self.gram is None:
                self.gram = _rows_gram(tasks.X, None)
            inner = self.gram * over[0, 0]
            inner[np.diag_indices_from(inner)] += 1.0 / theta[0]
            inverse = inverses(inner[None])[0]
            return lambda z: (z.reshape(tasks.n_tasks, -1) @ inverse).ravel()
        inner = [_rows_gram(X, over[:, i]) for i, X in enumerate(tasks.inputs)]
        pieces = list(pairwise(tasks.offsets))
        for matrix, (first, last) in zip(inner, pieces, strict=True):
            matrix[np.diag_indices_from(matrix)] += 1.0 / theta[first:last]
        inverse = [inverses(matrix[None])[0] for matrix in inner]

        def apply(z: np.ndarray) -> np.ndarray:
            return np.concatenate(
                [A @ z[first:last] for A, (first, last) in zip(inverse, pieces, strict=True)]
            )

        return apply


def _rows_gram(X, weights: np.ndarray | None) -> np.ndarray:
    """X diag(weights) X^T."""
    n = X.shape[0]
    require_memory(
        8.0 * n * n,
        f"the products of {n:,} rows with one another",
        "name another solver, or subsample(rows) first",
    )
    return gram(X.T, weights)


# --------------------------------------------------------------------------------------------------------------
# ADMM's x-update by preconditioned conjugate gradients: for maps that mix tasks, where a dense system is too large.


class ConjugateGradientUpdate:
    """No matrix over all tasks; the systems of the tasks apart, where there are such, are the preconditioner.

    reduction : what one x-update leaves of its first residual: far less than an iteration of ADMM gains
    """

    def __init__(self, split: SplitForm, tasks_apart, reduction: float = 1e-6, max_iter: int = 300):
        self.split, self.tasks_apart, self.layout = split, tasks_apart, BlockLayout(split.form)
        self.reduction, self.max_iter = reduction, max_iter
        # mean diagonals by random signs e: the mean of <e, H e> is the trace of H
        random = np.random.default_rng(0)
        e = random.choice([-1.0, 1.0], self.layout.size)
        blocks, size = self.layout.blocks(e), self.layout.size
        image = split.linear_image(blocks)
        self.mean_quadratic = float(e @ self.layout.flat(split.quadratic_product(blocks))) / size
        self.diagonals = [float(image[copy.rows] @ image[copy.rows]) / size for copy in split.copies]
        self.x = np.zeros(size)

    def solver(self, penalties: np.ndarray):
        """The x-update under one penalty a copy; each solve starts from the last one's x."""
        metric, layout = self.split.metric(penalties), self.layout
        apart = None if self.tasks_apart is None else self.tasks_apart.solver(penalties)

        def apply(x: np.ndarray) -> np.ndarray:
            product = self.split.quadratic_product(layout.blocks(x))
            self.split.add_adjoint(metric * self.split.linear_image(layout.blocks(x)), product)
            return layout.flat(product)

        def precondition(r: np.ndarray) -> np.ndarray:
            return r.copy() if apart is None else layout.flat(apart(layout.blocks(r)))

        def solve(rhs: Blocks) -> Blocks:
            self.x = conjugate_gradients(
                apply, layout.flat(rhs), tol=self.reduction, most=self.max_iter, precondition=precondition,
                start=self.x, rounding=SETTINGS.rounding_share,
            )  # fmt: skip
            return layout.blocks(self.x.copy())

        return solve


# --------------------------------------------------------------------------------------------------------------
# ADMM's x-update: minimise q(x) + 1/2 ||K x + k - t||^2 in the penalties' metric, the same matrix again and again.
#
# Four ways, by structure:
# - `TaskwiseUpdate`: one small symmetric system a task, or one for all tasks where they share it; functions whose maps mix tasks, as
#   W.sum(axis=1) does, enter by the Woodbury formula.
# - `KernelUpdate`: one loss on more features than rows, diagonal penalties: systems of the rows' size.
# - `DenseUpdate`: losses that mix tasks, while the unknowns are few: one system over all of them.
# - `ConjugateGradientUpdate`: everything else, without a matrix.

Solve = Callable[[Blocks], Blocks]  # right-hand side -> x


def choose_x_update(split: SplitForm):
    """The x-update that fits the structure."""
    layout = BlockLayout(split.form)
    fits = layout.has_columns and layout.depth <= SETTINGS.task_features
    if _are_fewer_rows(split.form) and KernelUpdate.fits(split):
        return KernelUpdate(split)
    mixed = [mixes_tasks(copy, split.form) for copy in split.copies]
    rank = sum(
        copy.rows.stop - copy.rows.start for copy, mixes in zip(split.copies, mixed, strict=True) if mixes
    )
    if fits and not couples_tasks(split):
        size = layout.depth * layout.n_tasks
        if rank == 0 or (rank <= SETTINGS.correction_rank and rank * size <= SETTINGS.factor_entries):
            update = TaskwiseUpdate(split, layout, mixed)
            if rank == 0 or update.stands_alone():
                return update
    size = sum(rows * columns for rows, columns in split.form.shapes.values())
    if size <= SETTINGS.dense_features and size * split.size <= SETTINGS.factor_entries:
        return DenseUpdate(split)
    return ConjugateGradientUpdate(split, TaskwiseUpdate(split, layout) if fits else None)


def _are_fewer_rows(form: NormalForm) -> bool:
    features = max(rows for rows, _ in form.shapes.values())
    rows = max((int(loss.tasks.counts.max()) for loss in form.losses), default=features)
    return features > SETTINGS.kernel_features and 2 * rows < features and rows <= SETTINGS.kernel_rows


class TaskwiseUpdate:
    """One system a task, or one for all, corrected by what couples the tasks.

    mixed : for each copy, whether its map mixes tasks; None leaves what lies between tasks out (a preconditioner).
    """

    def __init__(self, split: SplitForm, layout: BlockLayout, mixed: list[bool] | None = None):
        self.split, self.layout = split, layout
        self.mixed = mixed or [False] * len(split.copies)
        self.Q = quadratic_matrices(split, layout)
        self.parts = [penalty_matrices(copy, split, layout) for copy in split.copies]
        self.mean_quadratic = float(np.einsum("gii->gi", self.Q).mean())
        self.diagonals = [float(np.einsum("gii->gi", part).mean()) for part in self.parts]
        self.factors = {
            j: self._factor(copy)
            for j, (copy, mixes) in enumerate(zip(split.copies, self.mixed, strict=True))
            if mixes
        }

    def stands_alone(self) -> bool:
        """Tell whether the tasks' systems have full rank without the terms that mix tasks."""
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

    def _factor(self, copy: SplitVariable) -> np.ndarray:
        """Return K_j^T of every unit vector of the copy, task by task, (m, D, r)."""
        size = copy.rows.stop - copy.rows.start
        factor = np.empty((self.layout.n_tasks, self.layout.depth, size))
        for r, vector in enumerate(np.eye(size)):
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
