"""One task's system of an interior-point step, by the smaller of its two sides."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import lapack

from mtldsl.solvers.multipliers.designs import Designs

__all__ = ["CentralSystem", "Factor"]

_BUMP = 1e-14  # on a diagonal of ones, where rounding made a matrix indefinite
_COPIED = 500_000  # inputs that are scaled at a time


class CentralSystem:
    """X dw + db - E du = g,  X^T du + K dw = h,  sum du = c,  E and K diagonal and positive.

    Few rows: (X K^-1 X^T + E) du - db = X K^-1 h - g. Few columns: (X^T E^-1 X + K) dw + X^T E^-1 1 db = h + X^T E^-1 g, from which
    db is taken first. Columns are centred where `designs` does so.
    """

    def __init__(self, designs: Designs, k: int):
        self.X: Any = designs.inputs_of(k)
        self.mean = None if designs.means is None else designs.means[:, k]
        self.has_intercept = designs.has_intercepts
        self.is_sparse = sparse.issparse(self.X)
        n, d = self.X.shape
        self.is_wide = n <= d
        self.Xt: Any = self.X.T.tocsr() if self.is_sparse and not self.is_wide else self.X.T

    def factor(self, E: np.ndarray, K: np.ndarray) -> None:
        self.E, self.K = E, K
        if self.is_wide:
            A = self._gram_of_rows()
            A.flat[:: len(A) + 1] += E
            self.cholesky = Factor(A)
            if self.has_intercept:
                self.across = self.cholesky.solve(np.ones(len(E)))
                self.pivot = self.across.sum()
        else:
            if self.has_intercept:
                # columns centred by the weights of this step: the intercept's own equation then stands by itself, to all digits
                self.total = (1.0 / E).sum()
                self.place = self._adjoint(1.0 / E) / self.total
            A = self._gram_of_columns()
            A.flat[:: len(A) + 1] += K
            self.cholesky = Factor(A)

    def _gram_of_rows(self) -> np.ndarray:
        """X K^-1 X^T."""
        scale = 1.0 / np.sqrt(self.K)
        if self.is_sparse:
            half = self.X.multiply(scale[None, :]).tocsr()
            return (half @ half.T).toarray()
        n, d = self.X.shape
        A = np.zeros((n, n))
        for some in _blocks(d, n):
            half = (self.X[:, some] if self.mean is None else self.X[:, some] - self.mean[some]) * scale[some]
            A += half @ half.T
        return A

    def _gram_of_columns(self) -> np.ndarray:
        """X^T E^-1 X, about `place` where there is an intercept."""
        scale = 1.0 / np.sqrt(self.E)
        if self.is_sparse:
            half = self.Xt.multiply(scale[None, :]).tocsr()
            A = (half @ half.T).toarray()
            return A - self.total * np.outer(self.place, self.place) if self.has_intercept else A
        n, d = self.X.shape
        place = self.place + (0.0 if self.mean is None else self.mean) if self.has_intercept else None
        A = np.zeros((d, d))
        for some in _blocks(n, d):
            half = (self.X[some] if place is None else self.X[some] - place) * scale[some, None]
            A += half.T @ half
        return A

    def solve(self, g: np.ndarray, h: np.ndarray, c: float):
        """(du, dw, db)."""
        if self.is_wide:
            du, db = self.cholesky.solve(self._forward(h / self.K) - g), 0.0
            if self.has_intercept:
                db = float((c - du.sum()) / self.pivot)
                du += db * self.across
            return du, (h - self._adjoint(du)) / self.K, db
        scaled = g / self.E
        if not self.has_intercept:
            dw = self.cholesky.solve(h + self._adjoint(scaled))
            return (self._forward(dw) - g) / self.E, dw, 0.0
        total = scaled.sum()
        dw = self.cholesky.solve(h + self._adjoint(scaled) - (total + c) * self.place)
        away = float((c + total) / self.total)
        moved = float(self.place @ dw)
        return (self._forward(dw) - moved + away - g) / self.E, dw, away - moved

    def inverse(self, B: np.ndarray) -> np.ndarray:
        """dw for every column of B (d, q) as h, with g = 0 and c = 0."""
        if not self.is_wide:
            return self.cholesky.solve(B)
        du = self.cholesky.solve(self._forward(B / self.K[:, None]))
        if self.has_intercept:
            du -= np.outer(self.across, du.sum(axis=0) / self.pivot)
        return (B - self._adjoint(du)) / self.K[:, None]

    def _forward(self, w):
        z = self.X @ w
        return z if self.mean is None else z - self.mean @ w

    def _adjoint(self, u):
        g = self.Xt @ u
        return g if self.mean is None else g - np.multiply.outer(self.mean, u.sum(axis=0))


def _blocks(count: int, size: int):
    """Slices of so many rows or columns as are copied at a time."""
    step = max(_COPIED // size, 1)
    return (slice(start, start + step) for start in range(0, count, step))


class Factor:
    """Cholesky's, of a matrix brought to a diagonal of ones: entries of an interior point's matrix are many digits apart."""

    def __init__(self, A: np.ndarray):
        self.scale = 1.0 / np.sqrt(A.flat[:: len(A) + 1])
        A *= self.scale
        A *= self.scale[:, None]
        bump = _BUMP
        c, info = lapack.dpotrf(A, lower=1, clean=0, overwrite_a=0)
        while info != 0:
            if not bump < 1.0:
                raise np.linalg.LinAlgError("a system of interior points has lost its digits")
            A.flat[:: len(A) + 1] += bump
            c, info = lapack.dpotrf(A, lower=1, clean=0, overwrite_a=0)
            bump *= 100.0
        self.c = c

    def solve(self, r):
        """A^-1 r, a vector or columns."""
        if r.ndim == 2:
            return self.scale[:, None] * lapack.dpotrs(self.c, self.scale[:, None] * r, lower=1)[0]
        return self.scale * lapack.dpotrs(self.c, self.scale * r, lower=1)[0]
