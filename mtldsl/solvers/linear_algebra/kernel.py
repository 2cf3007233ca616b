"""ADMM's x-update in the space of rows: for one loss on more features than rows, where every penalty is diagonal.

Task i's system is X^T T X + P with T = diag(theta), P = diag(p), and

    (X^T T X + P)^-1 = P^-1 - P^-1 X^T (T^-1 + X P^-1 X^T)^-1 X P^-1,

a matrix of the rows' size. An intercept is eliminated from the bordered system.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mtldsl.compile.normal_form import Blocks
from mtldsl.compile.single_block import single_block
from mtldsl.solvers.linear_algebra.inverses import inverses
from mtldsl.solvers.linear_algebra.split import Split
from mtldsl.solvers.linear_algebra.systems import diagonal_of
from mtldsl.system.memory import require_memory
from mtldsl.tasks.gram import gram

__all__ = ["KernelUpdate"]

#: of X^T T X over P, from which on a step of refinement follows: what rounding leaves of the two terms, large ones that all but cancel, is
#: multiplied by as much again in the loss's gradient, whose image has to lie in the dual balls (measured: gaps that stay at .1)
_ILL_CONDITIONED = 1e5


class KernelUpdate:
    """Made where `fits` says so."""

    @staticmethod
    def fits(split: Split) -> bool:
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

    def __init__(self, split: Split):
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
            np.broadcast_to(split.curvature_weights(0), self.tasks.n_samples) if split.exact_losses else None
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

    def newton_solver(self, parts, damping: np.ndarray):
        """Solves with Q + K^T (parts + one damping a copy) K; None where a part is more than weights."""
        theta, P = self.quadratic, self.fixed
        for j, (copy, part) in enumerate(zip(self.split.copies, parts, strict=True)):
            if part.vectors is not None or part.blocks is not None:
                return None
            weights = 0.0 if part.weights is None else part.weights
            if copy.is_loss:
                theta = weights + damping[j] * (
                    np.ones(self.tasks.n_samples) if copy.profile is None else copy.profile
                )
            else:
                whole = np.broadcast_to(weights, copy.rows.stop - copy.rows.start).reshape(copy.shape)
                P = P + diagonal_of(copy.term.map) * self._back(copy.term, whole)
                P = P + damping[j] * self.diagonal_parts[j]
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

        apart = refined if np.max(theta) * np.max(over) * self.largest > _ILL_CONDITIONED else at_once

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
