"""The checker's own formulas of quadratic regularizers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from mtldsl.proof.checker.function import Function, differences
from mtldsl.proof.checker.interval import Interval
from mtldsl.proof.checker.norms import CellNorm
from mtldsl.proof.checker.not_checked import NotChecked
from mtldsl.proof.checker.products import product
from mtldsl.proof.checker.spectral_norms import least_eigenvalue, spectral_norm

__all__ = ["Mean", "Quadratic", "Ridge"]


class Ridge(CellNorm):
    degree = 2

    def over_entries(self, per_cell):
        return per_cell

    @property
    def finite_dual(self):
        return bool(self.takes.all())

    def value(self, W):
        squares = W.square()
        return (
            squares if self.weights is None else squares * np.broadcast_to(self.weights, self.shape)
        ).sum() * 0.5

    def gauge(self, Z):
        return self.number(0.0)

    def conjugate(self, Z):
        if self.weights is None:
            return Z.square().sum() * 0.5
        held = self.takes
        weights = np.broadcast_to(self.weights, self.shape)[held]
        return (Z[held].square() / self.number(weights)).sum() * 0.5


class Mean(Function):
    degree = 2
    takes = property(lambda self: np.zeros(self.shape, dtype=bool))

    def _centred(self, W):
        return W - (W.sum(axis=1) / float(self.shape[1])).reshape(-1, 1)

    def value(self, W):
        return self._centred(W).square().sum() * 0.5

    def inside(self, Z):
        return self._centred(Z)

    def span(self, row):
        return differences(self.shape[1])

    def conjugate(self, Z):
        return Z.square().sum() * 0.5


class Quadratic(Function):
    """1/2 tr(A W B W^T). Its multipliers are A Y B: then the conjugate is 1/2 tr(A Y B Y^T), and no inverse is needed.

    Where A and B are positive definite any Z will do: with what A Y B misses of it, E = Z - A Y B, the conjugate is
    1/2 <Y, A Y B> + <Y, E> + 1/2 <E, (A . B)^-1 E>, the last at most ||E||^2 / (2 least eigenvalues).
    """

    degree = 2

    def read(self, parameters):
        self.A = parameters.get("rows")
        self.B = parameters.get("columns", parameters.get("L"))
        given = [np.asarray(M, float) for M in (self.A, self.B) if M is not None]
        if not all(np.array_equal(M, M.T) for M in given):
            raise NotChecked("a quadratic form of a matrix that is not symmetric")
        least = [least_eigenvalue(M, self.exact) for M in given]
        positive = all(one.low > 0 for one in least)
        self.least = (least[0] if len(least) == 1 else least[0] * least[1]) if positive else None
        self.short = (
            self.number(0.0) if positive or all(map(_is_dominant, given)) else self._missing(given, least)
        )

    def _missing(self, given, least) -> Interval:
        """An upper bound of minus the least eigenvalue of the form: a matrix that is semidefinite in theory is so but for rounding."""
        sizes = [spectral_norm(self.number(M)).high for M in given]
        short = [np.maximum(-one.low, 0) for one in least]
        if any(not one <= 1e-10 * float(size) for one, size in zip(short, sizes, strict=True)):
            raise NotChecked("a quadratic form of a matrix with a negative eigenvalue: not convex")
        worst = short[0] if len(given) == 1 else np.maximum(short[0] * sizes[1], short[1] * sizes[0])
        return self.number(float(worst) * 1.001)

    def lost(self, reach: np.ndarray) -> Interval:
        """By how much the form may lie below its tangent at Y for |W| <= reach: 1/2 <W - Y, A (W - Y) B> >= -1/2 short ||W - Y||^2."""
        return ((abs(self.Y) + self.number(reach)).square().sum() * self.short) * 0.5

    @property
    def finite_dual(self):
        return self.least is not None

    @property
    def takes(self):
        return np.full(self.shape, self.finite_dual)

    def _apply(self, W: Interval) -> Interval:
        W = W if self.A is None else product(np.asarray(self.A), W)
        return W if self.B is None else product(W, np.asarray(self.B))

    def _inverse(self, Z: np.ndarray) -> np.ndarray:
        Z = Z if self.A is None else np.linalg.pinv(self.A, hermitian=True) @ Z
        return Z if self.B is None else Z @ np.linalg.pinv(self.B, hermitian=True)

    def value(self, W):
        return (self._apply(W) * W).sum() * 0.5

    def inside(self, Z):
        if self.finite_dual:
            return Z
        self.Y = self.number(self._inverse(Z.middle))
        return self._apply(self.Y)

    @property
    def is_spanned(self):
        """Not where A mixes rows."""
        return self.finite_dual or self.A is None

    def span(self, row):
        return super().span(row) if self.finite_dual or self.A is not None else np.asarray(self.B, float)

    def taken(self, rows, columns, C):
        if not self.finite_dual:
            where = np.ix_(rows, columns)
            self.Y = self.Y.with_entries(where, self.Y[where] + C)

    def conjugate(self, Z):
        if not self.finite_dual:  # what `inside` made is there still: no entry of it takes anything
            return (self.Y * Z).sum() * 0.5
        Y = self.number(self._inverse(Z.middle))
        image = self._apply(Y)
        rest = Z - image
        return (Y * image).sum() * 0.5 + (Y * rest).sum() + rest.square().sum() / self.least * 0.5


def _is_dominant(M: np.ndarray) -> bool:
    """Whether no diagonal entry is below the sum of the absolute values beside it, exactly: then no eigenvalue is negative."""
    rows = [[Fraction(x) for x in row] for row in M.tolist()]
    return all(row[i] >= sum(abs(x) for j, x in enumerate(row) if j != i) for i, row in enumerate(rows))
