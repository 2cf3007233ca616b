"""Newton systems of one task, made from the rows at kinks and their factors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import blas, lapack

from mtldsl.solvers.design.task_design import Designs
from mtldsl.solvers.solver import MATRIX_SPEEDUP

# --------------------------------------------------------------------------------------------------------------
# The rows at kinks of one task, F of its Newton system: an array where they are few, else read from the inputs some at a time.


@dataclass(frozen=True)
class KinkRowSettings:
    """Constants of the rows at kinks and of systems made of them.

    max_copied_entries       : entries of rows that are copied; more are read from the inputs, a piece at a time
    piece_entries            : entries of a piece, about
    max_copied_share         : rows, of all, that are copied for products: a product with all rows costs less than a copy of more
    large_entries            : entries of sparse inputs from which on `max_copied_large_share` holds
    max_copied_large_share   : the share there: a copy of a fourth would be what a solve needs most memory for
    cheap_factor_flops       : multiplications of a factorization that is not weighed against conjugate gradients
    conjugate_gradient_steps : steps that conjugate gradients are expected to take
    max_kept_entries         : entries of a matrix that is kept beside its factor
    """

    max_copied_entries: int = 1 << 20
    piece_entries: int = 1 << 18
    max_copied_share: float = 0.25
    large_entries: int = 1 << 22
    max_copied_large_share: float = 0.05
    cheap_factor_flops: float = 1e8
    conjugate_gradient_steps: int = 100
    max_kept_entries: int = 1 << 16


SETTINGS = KinkRowSettings()


def held_rows(designs: Designs, k: int, part) -> Any:
    """F (r, D) with X^T (I - D) X = F^T F, the intercept's column last: single rows, or what the part's own `half` makes of them."""
    if not hasattr(part, "half"):
        F = ActiveRows(designs, k, part.rows)
        return F if F.entries > SETTINGS.max_copied_entries else F.array()
    features = float(designs.loss.tasks.n_features)
    if hasattr(part, "signed_rows") and part.rank * features > SETTINGS.max_copied_entries:
        return ActiveRowsTangent(designs, k, part)
    return _half(designs, k, part)


def _half(designs: Designs, k: int, part) -> Any:
    """F as the part's own `half` makes it, with the columns' means taken off and the intercept's column."""
    F = part.half(designs.inputs_of(k))
    if not designs.has_intercepts:
        return F
    ones = part.half(np.ones((designs.counts[k], 1)))
    return _bordered(F if designs.means is None else F - ones @ designs.means[:, k : k + 1].T, ones)


def gram_of(F) -> np.ndarray:
    """F^T F."""
    if isinstance(F, ActiveRows):
        return F.gram()
    G: Any = F.T @ F
    return G.toarray() if sparse.issparse(G) else G


class ActiveRows:
    """F without being an array: some rows of it at a time."""

    def __init__(self, designs: Designs, k: int, rows: np.ndarray):
        self.designs, self.k, self.held = designs, k, rows
        every = designs.X if designs.is_shared else designs.inputs[k]
        n, d = designs.counts[k], every.shape[1]
        self.row_entries = every.nnz / max(every.shape[0], 1) if designs.is_sparse else float(d)
        self.shape, self.entries = (len(rows), d + designs.has_intercepts), len(rows) * self.row_entries
        is_large = designs.is_sparse and every.nnz > SETTINGS.large_entries
        share = SETTINGS.max_copied_large_share if is_large else SETTINGS.max_copied_share
        self.is_most = len(rows) > share * n and not (designs.is_shared and designs.rows_of is not None)

    def array(self, some: slice = slice(None)):
        held = self.held[some]
        F = self.designs.rows(self.k, held)
        return _bordered(F, np.ones((len(held), 1))) if self.designs.has_intercepts else F

    def pieces(self) -> Iterator[Any]:
        rows = int(SETTINGS.piece_entries / max(self.row_entries, 1.0))
        step = max(rows, self.shape[1] if self.designs.is_sparse else 64)
        for first in range(0, len(self.held), step):
            yield ActiveRows.array(self, slice(first, first + step))

    def gram(self) -> np.ndarray:
        total, room = np.zeros((self.shape[1], self.shape[1])), None
        for piece in self.pieces():
            if sparse.issparse(piece):
                total += gram_of(piece)
            else:  # in one place again and again
                room = np.matmul(piece.T, piece, out=room)
                total += room
        return total

    def squares(self) -> np.ndarray:
        """(D,) squared lengths of the columns."""
        return sum((squares_of(piece) for piece in self.pieces()), np.zeros(self.shape[1]))

    def curved(self, x: np.ndarray) -> np.ndarray:
        """F^T (F x), through all rows: asked where most are held."""
        designs, k = self.designs, self.k
        X, d = designs.inputs_of(k), self.shape[1] - designs.has_intercepts
        mean = None if designs.means is None else designs.means[:, k]
        shift = float(x[d]) if designs.has_intercepts else 0.0
        t = self._weighed(X @ x[:d] + (shift if mean is None else shift - float(mean @ x[:d])))
        pulled = np.asarray(X.T @ t)
        if mean is not None:
            pulled -= t.sum() * mean
        return np.append(pulled, t.sum()) if designs.has_intercepts else pulled

    def _weighed(self, z: np.ndarray) -> np.ndarray:
        """(I - D) z."""
        t = np.zeros_like(z)
        t[self.held] = z[self.held]
        return t


class ActiveRowsTangent(ActiveRows):
    """F^T F = X^T (I - J) X of large X, I - J a projection with sums over pools and groups: `Tangent.half` may be as large as X."""

    def __init__(self, designs: Designs, k: int, tangent):
        super().__init__(designs, k, tangent.alone)
        self.tangent, self.X = tangent, designs.inputs_of(k)
        self.mean = None if designs.means is None else designs.means[:, k]
        self.shape = (tangent.rank, self.shape[1])
        self.entries = float(self.X.nnz if designs.is_sparse else self.X.size)
        self.is_most = designs.is_sparse or tangent.rank > SETTINGS.max_copied_share * self.X.shape[0]

    def array(self, some: slice = slice(None)):
        return _half(self.designs, self.k, self.tangent)

    def _weighed(self, z: np.ndarray) -> np.ndarray:
        return self.tangent.product(z)

    def _sums(self, S) -> np.ndarray:
        """S F for sums S (k, n) of samples, X being F without a projection."""
        R = S @ self.X
        R = R.toarray() if sparse.issparse(R) else np.asarray(R, float)
        if not self.designs.has_intercepts:
            return R
        totals = np.asarray(S.sum(axis=1), float).reshape(-1, 1)
        if self.mean is not None:
            R -= totals * self.mean
        return np.hstack([R, totals])

    def _signed_rows(self) -> Iterator[tuple[float, np.ndarray]]:
        return self.tangent.signed_rows(self._sums, max(SETTINGS.piece_entries // self.shape[1], 64))

    def squares(self) -> np.ndarray:
        """(D,) squared lengths of the columns."""
        squares = super().squares()
        for sign, R in self._signed_rows():
            squares += sign * squares_of(R)
        return np.maximum(squares, 0.0)

    def gram(self) -> np.ndarray:
        G = super().gram()
        for sign, R in self._signed_rows():
            # G is symmetric: added to its transpose, which BLAS takes as it lies, and without an array of products beside it
            blas.dgemm(sign, R.T, R.T, beta=1.0, c=G.T, trans_b=True, overwrite_c=True)
        return G


def squares_of(F) -> np.ndarray:
    """(D,) squared lengths of the columns."""
    if isinstance(F, ActiveRows):
        return F.squares()
    if sparse.issparse(F):
        total = np.zeros(F.shape[1])
        size = SETTINGS.piece_entries
        for first in range(0, F.nnz, size):  # `bincount` makes another array of the places
            some = slice(first, first + size)
            total += np.bincount(F.indices[some], np.square(F.data[some]), minlength=total.size)
        return total
    return np.einsum("ij,ij->j", F, F)


def _bordered(F, ones):
    return sparse.hstack([F, ones], format="csr") if sparse.issparse(F) else np.hstack([F, ones])


# --------------------------------------------------------------------------------------------------------------
# One task's Newton system: penalty X_K^T X_K + a diagonal, X_K the rows at kinks, with the intercept's own row and column.


class TaskSystem:
    """H = penalty F^T F + diag(diagonal), positive definite. Where its factor takes too much, `is_direct` is False, and `solve` divides by the
    diagonal of H, for conjugate gradients.

    work, work_of_product : flops that it took to set up, and those of a product and a solution, about
    """

    def __init__(self, F, penalty: float, diagonal: np.ndarray):
        self.penalty, self.diagonal = penalty, diagonal
        r, D = F.shape
        whole = r * D**2 + D**3 / 3
        entries = _entries(F)
        steps, speed = SETTINGS.conjugate_gradient_steps, MATRIX_SPEEDUP
        products = steps * 4.0 * entries
        self.is_direct = whole <= max(SETTINGS.cheap_factor_flops, speed * products)
        self.most_products = int(np.clip(steps * whole / (speed * max(products, 1.0)), steps, 10 * steps))
        self.work = work_of_factor(F) if self.is_direct else 0.0
        self.work_of_product = 4.0 * entries + (2.0 * D**2 if self.is_direct else D)
        if self.is_direct:
            H = gram_of(F)
            H *= penalty
            H.flat[:: D + 1] += diagonal
            self.factor = factor_of(H)
        else:
            self.scale = 1.0 / (penalty * squares_of(F) + diagonal)
            F = F.array() if isinstance(F, ActiveRows) and not F.is_most else F
        self.F = F

    def solve(self, r: np.ndarray) -> np.ndarray:
        """H^-1 r, r (D,)."""
        return solve_factored(self.factor, r) if self.is_direct else self.scale * r

    def product(self, x: np.ndarray) -> np.ndarray:
        """H x."""
        F = self.F
        curved = F.curved(x) if isinstance(F, ActiveRows) else F.T @ (F @ x)
        return self.penalty * curved + self.diagonal * x


def work_of_factor(F) -> float:
    """Flops of F^T F, its factor and that one's inverse, as those of products with a vector."""
    r, D = F.shape
    return (_entries(F) ** 2 / max(r, 1) + D**3) / MATRIX_SPEEDUP


def _entries(F) -> float:
    return F.entries if isinstance(F, ActiveRows) else F.nnz if sparse.issparse(F) else F.size


def factor_of(H: np.ndarray) -> np.ndarray:
    """The Cholesky factor, in the place of a large H, which is symmetric: its transpose lies as LAPACK has it."""
    if not H.size:
        return H
    in_place = H.size > SETTINGS.max_kept_entries and H.flags.c_contiguous
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


def solve_factored(factor: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    if not factor.size:
        return rhs
    return lapack.dpotrs(factor, rhs, lower=1)[0]
