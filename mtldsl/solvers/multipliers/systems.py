"""One task's Newton system: penalty X_K^T X_K + a diagonal, X_K the rows at kinks, with the intercept's own row and column."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.linalg import lapack

from mtldsl.solvers.multipliers.designs import Designs

__all__ = ["TaskSystem", "held_rows"]

#: from so many unknowns on, rows at kinks are counted before a system is chosen
_MANY = 64


def held_rows(designs: Designs, k: int, part) -> np.ndarray | sparse.csr_array:
    """F (r, D) with X^T (I - D) X = F^T F, the intercept's column last: single rows, or what the part's own `half` makes of them."""
    if hasattr(part, "half"):
        ones = part.half(np.ones((designs.counts[k], 1)))
        F = part.half(designs.inputs_of(k))
        F = F if designs.means is None else F - ones @ designs.means[:, k : k + 1].T
    else:
        F, ones = designs.rows(k, part.rows), np.ones((len(part.rows), 1))
    if not designs.has_intercepts:
        return F
    return sparse.hstack([F, ones], format="csr") if sparse.issparse(F) else np.hstack([F, ones])


class TaskSystem:
    """H = penalty F^T F + diag(diagonal), positive definite; `solve` takes (D,) or (D, k).

    Few rows, many unknowns: unknowns of a large diagonal are eliminated in the space of rows (G below), which leaves a system of those of
    a small one:  S = diag_A + F_A^T G^-1 F_A,  G = 1 / penalty + F_Z diag_Z^-1 F_Z^T.
    """

    def __init__(self, F, penalty: float, diagonal: np.ndarray):
        self.F, self.penalty, self.diagonal = F, penalty, diagonal
        r, D = F.shape
        small = diagonal < 0.5 * diagonal.max(initial=0.0)
        self.by_rows = D > _MANY and r**2 * D + small.sum() ** 3 / 3 < 0.5 * (r * D**2 + D**3 / 3)
        if not self.by_rows:
            H = F.T @ F
            H = H.toarray() if sparse.issparse(H) else H
            H *= penalty
            H.flat[:: D + 1] += diagonal
            self.factor = _factor(H)
            return
        self.A, self.Z = np.flatnonzero(small), np.flatnonzero(~small)
        self.F_A, self.F_Z = F[:, self.A], F[:, self.Z]
        self.inverse_Z = 1.0 / diagonal[self.Z]
        if sparse.issparse(F):
            self.F_A = self.F_A.toarray()
            G = (self.F_Z.multiply(self.inverse_Z[None, :]).tocsr() @ self.F_Z.T).toarray()
        else:
            G = (self.F_Z * self.inverse_Z) @ self.F_Z.T
        G.flat[:: r + 1] += 1.0 / penalty
        self.G = _factor(G)
        self.T = _solve(self.G, self.F_A)  # G^-1 F_A
        S = self.F_A.T @ self.T
        S.flat[:: len(self.A) + 1] += diagonal[self.A]
        self.S = _factor(S)

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        if not self.by_rows:
            return _solve(self.factor, rhs)
        columns = rhs if rhs.ndim == 2 else rhs[:, None]
        r_A, r_Z = columns[self.A], columns[self.Z]
        scaled = self.inverse_Z[:, None] * r_Z
        t = _solve(self.G, self.F_Z @ scaled)
        x = np.empty_like(columns)
        x_A = _solve(self.S, r_A - self.F_A.T @ t) if len(self.A) else r_A
        back = t + self.T @ x_A
        x[self.A] = x_A
        x[self.Z] = scaled - self.inverse_Z[:, None] * (self.F_Z.T @ back)
        return x if rhs.ndim == 2 else x[:, 0]

    def product(self, x: np.ndarray) -> np.ndarray:
        """H x."""
        return self.penalty * (self.F.T @ (self.F @ x)) + self.diagonal * x


def _factor(H: np.ndarray) -> np.ndarray:
    if not H.size:
        return H
    c, info = lapack.dpotrf(H, lower=1, clean=0, overwrite_a=0)
    bump = 1e-15 * float(np.trace(H))
    while info != 0:  # rounding made it indefinite
        H = H + bump * np.eye(len(H))
        c, info = lapack.dpotrf(H, lower=1, clean=0, overwrite_a=0)
        bump *= 10.0
    return c


def _solve(factor: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    if not factor.size:
        return rhs
    return lapack.dpotrs(factor, rhs, lower=1)[0]
