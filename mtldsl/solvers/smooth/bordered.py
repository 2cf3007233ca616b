"""The inputs with a column of ones for an intercept: products, and factors of Hessians or what stands for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from mtldsl.solvers.smooth.designs import DenseColumns, Design, SharedDesign

__all__ = ["Bordered", "Made"]

_WORTH_DIAGONAL = 8  # products: what a diagonal costs, and what it saves as soon as slopes curve otherwise
_LARGEST_SIDE, _LARGEST = 1500, 20_000_000  # of a Hessian, and entries of all


@dataclass
class Made:
    """Gram matrices, sums of columns and of curvatures, and what they have cost since by being old: products beyond those of the first system."""

    parts: tuple = ()
    first: int | None = None
    excess: int = 0

    def serve(self, products: int) -> None:
        """A system took so many."""
        self.first = products if self.first is None else self.first
        self.excess += max(products - self.first, 0)


class Bordered:
    """Products of V (m, d + 1) with [X_i, 1]; the ones are left out where there is no intercept.

    made : of what the last factors were made; that of an earlier run on the same inputs may be handed in
    """

    def __init__(self, design: Design, centred: bool, made: Made | None = None):
        self.design, self.centred = design, centred
        self.made = Made() if made is None else made
        self.columns: Any = design.columns(np.arange(design.n_features))
        self.offsets, self.m = np.asarray(design.offsets), design.n_tasks
        self.counts = np.diff(self.offsets)
        p = design.n_features + 1
        self.has_factors = (
            isinstance(self.columns, DenseColumns) and p <= _LARGEST_SIDE and self.m * p * p <= _LARGEST
        )
        # a product with a vector runs at a quarter of the speed of a product of matrices
        self.products_worth_factors = (
            max(p / 15.0 if self.m == 1 else p / 6.0, 1.0) if self.has_factors else _WORTH_DIAGONAL
        )

    def forward(self, V) -> np.ndarray:
        z = self.columns.forward(np.ascontiguousarray(V[:, :-1]))
        if self.centred:
            z += V[0, -1] if self.m == 1 else np.repeat(V[:, -1], self.counts)
        return z

    def pull(self, u) -> np.ndarray:
        out = np.zeros((self.m, self.design.n_features + 1))
        out[:, :-1] = self.columns.pull(u)
        if self.centred:
            out[:, -1] = self._sums(u)
        return out

    def _sums(self, flat) -> np.ndarray:
        return flat.sum()[None] if self.m == 1 else np.add.reduceat(flat, self.offsets[:-1])

    def factors(self, D, ridge, jitter: float, anew: bool = True) -> Callable[[np.ndarray], np.ndarray]:
        """r (m, d + 1) -> about H_i^-1 r_i, H_i = [X_i, 1]^T diag(D_i) [X_i, 1] + diag(ridge_i).

        anew : False: of the curvatures D that they were last made for, where there are such and they still serve
        """
        # what is rented is bought when the rents come up to the price
        if self.made.parts and not anew and self.made.excess <= self.products_worth_factors:
            return self._of_made(ridge, jitter)
        first = D[self.offsets[:-1]]
        is_one = isinstance(self.design, SharedDesign)
        are_constant = is_one and np.all(np.repeat(first, self.counts) == D)
        if not self.has_factors:
            squared = (
                self._squares(first)
                if are_constant and self.design.is_sparse
                else self.columns.squared_pull(D)
            )
            diagonal = np.column_stack([squared, self._sums(D)]) + ridge
            diagonal[diagonal <= 0] = 1.0
            return lambda r: r / diagonal
        if are_constant:
            return self._of_constants(first, ridge, jitter)
        self.made.parts = self.columns.gram(D), self.columns.pull(D), self._sums(D)
        self.made.first, self.made.excess = None, 0
        return self._of_made(ridge, jitter)

    def _of_made(self, ridge, jitter: float) -> Callable[[np.ndarray], np.ndarray]:
        gram, border, totals = self.made.parts
        made = [self._factor(gram[i], border[i], totals[i], ridge[i], jitter) for i in range(self.m)]
        return lambda r: np.stack([_solve(f, r_i) for f, r_i in zip(made, r, strict=True)])

    def _squares(self, constants) -> np.ndarray:
        """The diagonals where every task has one curvature: of squared lengths, which others ask for too."""
        return np.outer(constants, self.design.transposed.squares)

    def _of_constants(self, constants, ridge, jitter: float):
        C = self.columns.columns[0]
        gram, border, n = C @ C.T, C.sum(axis=1), float(C.shape[1])
        made: dict = {}
        for i, c in enumerate(constants):
            key = (float(c), ridge[i].tobytes())
            if key not in made:
                made[key] = (self._factor(c * gram, c * border, c * n, ridge[i], jitter), [])
            made[key][1].append(i)

        def solve(r) -> np.ndarray:
            out = np.empty_like(r)
            for factor, tasks in made.values():
                out[tasks] = _solve(factor, r[tasks].T).T
            return out

        return solve

    def _factor(self, gram, border, total, ridge, jitter: float):
        p = len(ridge)
        H = np.zeros((p, p))
        H[:-1, :-1] = gram
        if self.centred:
            H[:-1, -1] = H[-1, :-1] = border
            H[-1, -1] = total
        else:
            H[-1, -1] = 1.0
        entries = H.reshape(-1)[:: p + 1]  # on the diagonal
        entries += ridge
        diagonal = np.where(entries > 0.0, entries, 1.0)
        while True:
            entries += jitter * diagonal
            factor, failed = dpotrf(H, lower=True, clean=False)
            if not failed:
                return factor
            jitter *= 100.0


def _solve(factor, r) -> np.ndarray:
    """As scipy's cho_solve, whose questions about its arguments take longer than a small system."""
    return dpotrs(factor, r, lower=True)[0]
