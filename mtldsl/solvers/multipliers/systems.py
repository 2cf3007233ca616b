"""One task's Newton system: penalty X_K^T X_K + a diagonal, X_K the rows at kinks, with the intercept's own row and column."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import lapack

from mtldsl.solvers.multipliers.held_rows import HeldRows, HeldTangent, gram_of, squares_of

__all__ = ["TaskSystem", "work_of_factor"]

#: from so many unknowns on, rows at kinks are counted before a system is chosen
_MANY = 64
#: multiplications from which on a factorization is weighed against conjugate gradients, the steps that these take, and by how much
#: faster factorizations multiply
_DEAR, _STEPS, _BLOCKED = 1e8, 100, 8.0
#: the same beside products with all tasks' weights at once, which are in blocks as well
_FASTER = 2.0
#: entries from which on a matrix is not kept beside its factor
_LARGE = 1 << 16


class TaskSystem:
    """H = penalty F^T F + diag(diagonal), positive definite.

    Few rows, many unknowns: those of a large diagonal, but for `tied` ones, are eliminated in the space of rows (G below), which leaves a
    system of the others:  S = diag_A + F_A^T G^-1 F_A,  G = 1 / penalty + F_Z diag_Z^-1 F_Z^T. Where either way takes too much, H is not
    factorized: `is_direct` is False, and `solve` divides by the diagonal of H, for conjugate gradients.

    work, work_of_product : multiplications that it took to set up, and those of a product and a solution, about
    """

    def __init__(self, F, penalty: float, diagonal: np.ndarray, tied: np.ndarray | None = None):
        self.penalty, self.diagonal = penalty, diagonal
        r, D = F.shape
        own = diagonal < 0.5 * diagonal.max(initial=0.0)
        if tied is not None:
            own[tied] = True
        k = int(np.count_nonzero(own))
        self.refines = (
            tied is None and k > r
        )  # then all go, and what that costs in digits comes back in a second round
        if self.refines:
            own[:], k = False, 0
        whole = r * D**2 + D**3 / 3
        by_rows = r**2 * (D - k) + r**3 / 3 + r**2 * k + r * k**2 + k**3 / 3
        self.by_rows = D > _MANY and by_rows < 0.5 * whole
        entries = _entries(F)
        products = _STEPS * 4.0 * entries
        self.is_direct = min(by_rows, whole) <= max(_DEAR, _BLOCKED * products)
        self.most_products = int(
            np.clip(_STEPS * min(by_rows, whole) / (_BLOCKED * max(products, 1.0)), _STEPS, 10 * _STEPS)
        )
        self.work = (by_rows / _FASTER if self.by_rows else work_of_factor(F)) if self.is_direct else 0.0
        self.work_of_product = 4.0 * entries + (
            2.0 * (r if self.by_rows else D) ** 2 if self.is_direct else D
        )
        needs_array = (
            self.by_rows if self.is_direct else isinstance(F, HeldRows | HeldTangent) and not F.is_most
        )
        if not self.is_direct:
            self.scale = 1.0 / (penalty * squares_of(F) + diagonal)
        self.F = F = F.array() if needs_array and isinstance(F, HeldRows | HeldTangent) else F
        if not self.is_direct:
            return
        if self.by_rows:
            self._eliminate(np.flatnonzero(own), np.flatnonzero(~own))
        else:
            # tied unknowns last: their block of H^-1 is the inverse of the last block of the factor alone
            self.order = None
            if tied is not None:
                rest = np.ones(D, bool)
                rest[tied] = False
                self.order = np.concatenate([np.flatnonzero(rest), tied])
                diagonal = diagonal[self.order]
            H = gram_of(F)
            H = H if self.order is None else H[np.ix_(self.order, self.order)]
            H *= penalty
            H.flat[:: D + 1] += diagonal
            self.factor = _factor(H)

    def _eliminate(self, A: np.ndarray, Z: np.ndarray) -> None:
        self.A, self.Z = A, Z
        F: Any = self.F
        if not len(A) and not sparse.issparse(F):  # the system of the rows is all there is
            self.F_Z, self.inverse_Z = F, 1.0 / self.diagonal
            G = (F * self.inverse_Z) @ F.T
            G.flat[:: len(G) + 1] += 1.0 / self.penalty
            self.G = _factor(G)
            return
        self.F_A, self.F_Z = F[:, A], F[:, Z]
        self.inverse_Z = 1.0 / self.diagonal[Z]
        if sparse.issparse(F):
            self.F_A = self.F_A.toarray()
            G = (self.F_Z.multiply(self.inverse_Z[None, :]).tocsr() @ self.F_Z.T).toarray()
        else:
            G = (self.F_Z * self.inverse_Z) @ self.F_Z.T
        G.flat[:: len(G) + 1] += 1.0 / self.penalty
        self.G = _factor(G)
        self.T = _solve(self.G, self.F_A)  # G^-1 F_A
        S = self.F_A.T @ self.T
        S.flat[:: len(A) + 1] += self.diagonal[A]
        self.S = _factor(S)

    def solve(self, r: np.ndarray) -> np.ndarray:
        """H^-1 r, r (D,)."""
        if not self.is_direct:
            return self.scale * r
        if not self.by_rows:
            if self.order is None:
                return _solve(self.factor, r)
            x = np.empty_like(r)
            x[self.order] = _solve(self.factor, r[self.order])
            return x
        x = self._solve_by_rows(r)
        return x + self._solve_by_rows(r - self.product(x)) if self.refines else x

    def _solve_by_rows(self, r: np.ndarray) -> np.ndarray:
        if not len(self.A) and not sparse.issparse(self.F):
            scaled = self.inverse_Z * r
            return scaled - self.inverse_Z * (_solve(self.G, self.F_Z @ scaled) @ self.F_Z)
        scaled = self.inverse_Z * r[self.Z]
        t = _solve(self.G, self.F_Z @ scaled)
        x_A = _solve(self.S, r[self.A] - self.F_A.T @ t)
        x = np.empty_like(r)
        x[self.A] = x_A
        x[self.Z] = scaled - self.inverse_Z * (self.F_Z.T @ (t + self.T @ x_A))
        return x

    def inverse_on_tied(self, tied: np.ndarray) -> np.ndarray:
        """The rows and columns of H^-1 that are tied; below the diagonal, what lies above it means nothing."""
        if not self.by_rows:
            first = len(self.diagonal) - len(tied)
            return lapack.dpotri(self.factor[first:, first:], lower=1)[0]
        at = np.searchsorted(self.A, tied)
        return lapack.dpotri(self.S, lower=1)[0][np.ix_(at, at)]

    def product(self, x: np.ndarray) -> np.ndarray:
        """H x."""
        F = self.F
        curved = F.curved(x) if isinstance(F, HeldRows | HeldTangent) else F.T @ (F @ x)
        return self.penalty * curved + self.diagonal * x


def work_of_factor(F) -> float:
    """Multiplications of F^T F, its factor and that one's inverse, as passes over data count them, which multiply more slowly."""
    r, D = F.shape
    return (_entries(F) ** 2 / max(r, 1) + D**3) / _FASTER


def _entries(F) -> float:
    return F.entries if isinstance(F, HeldRows | HeldTangent) else F.nnz if sparse.issparse(F) else F.size


def _factor(H: np.ndarray) -> np.ndarray:
    """The Cholesky factor, in the place of a large H, which is symmetric: its transpose lies as LAPACK has it."""
    if not H.size:
        return H
    in_place = H.size > _LARGE and H.flags.c_contiguous
    diagonal = np.diagonal(H).copy() if in_place else None
    c, info = lapack.dpotrf(H.T if in_place else H, lower=1, clean=0, overwrite_a=int(in_place))
    if info == 0:
        return c
    if diagonal is not None:
        H = np.tril(H, -1)  # the other triangle and the diagonal were written on
        H += H.T
        H.flat[:: len(H) + 1] = diagonal
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
