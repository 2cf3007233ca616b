"""The rows at kinks of one task, F of its Newton system: an array where they are few, else read from the inputs some at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import blas

from mtldsl.solvers.multipliers.designs import Designs
from mtldsl.tasks.gram import gram

__all__ = ["HeldRows", "HeldTangent", "gram_of", "held_rows", "squares_of"]

#: entries up to which rows are copied, and about so many that are read at once of those that are not
_FEW, _AT_ONCE = 1 << 20, 1 << 18
#: of all rows, from which on a product with all of them costs less than a copy of those that are held
_MOST = 0.25
#: the same of sparse inputs of more entries than so many, of which a copy of a fourth would be what a solve needs most memory for
_LARGE, _MOST_OF_LARGE = 1 << 22, 0.05


def held_rows(designs: Designs, k: int, part) -> Any:
    """F (r, D) with X^T (I - D) X = F^T F, the intercept's column last: single rows, or what the part's own `half` makes of them."""
    if not hasattr(part, "half"):
        F = HeldRows(designs, k, part.rows)
        return F if F.entries > _FEW else F.array()
    if part.rank * float(designs.loss.tasks.n_features) > _FEW:
        return HeldTangent(designs, k, part)
    ones = part.half(np.ones((designs.counts[k], 1)))
    F = part.half(designs.inputs_of(k))
    F = F if designs.means is None else F - ones @ designs.means[:, k : k + 1].T
    return _bordered(F, ones) if designs.has_intercepts else F


def gram_of(F) -> np.ndarray:
    """F^T F."""
    if isinstance(F, HeldRows | HeldTangent):
        return F.gram()
    G: Any = F.T @ F
    return G.toarray() if sparse.issparse(G) else G


class HeldRows:
    """F without being an array: some rows of it at a time."""

    def __init__(self, designs: Designs, k: int, rows: np.ndarray):
        self.designs, self.k, self.held = designs, k, rows
        n, d = (
            designs.counts[k],
            designs.loss.tasks.n_features if designs.is_shared else designs.inputs[k].shape[1],
        )
        self.shape = (len(rows), d + designs.has_intercepts)
        every = designs.X if designs.is_shared else designs.inputs[k]
        an_entry = every.nnz / max(every.shape[0] * d, 1) if designs.is_sparse else 1.0
        self.entries = len(rows) * d * an_entry
        is_large = designs.is_sparse and every.nnz > _LARGE
        self.is_most = len(rows) > (_MOST_OF_LARGE if is_large else _MOST) * n and not (
            designs.is_shared and designs.rows_of is not None
        )

    def array(self, some: slice = slice(None)):
        held = self.held[some]
        F = self.designs.rows(self.k, held)
        return _bordered(F, np.ones((len(held), 1))) if self.designs.has_intercepts else F

    def pieces(self) -> Iterator[Any]:
        r, D = self.shape
        step = max(int(_AT_ONCE * r / max(self.entries, 1.0)), D if self.designs.is_sparse else 64)
        for first in range(0, r, step):
            yield self.array(slice(first, first + step))

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
        shift = float(x[d]) if designs.has_intercepts else 0.0
        mean = None if designs.means is None else designs.means[:, k]
        if mean is not None:
            shift -= float(mean @ x[:d])
        t = np.zeros(X.shape[0])
        t[self.held] = (X @ x[:d])[self.held] + shift
        pulled = np.asarray(X.T @ t)
        if mean is not None:
            pulled -= t.sum() * mean
        return np.append(pulled, t.sum()) if designs.has_intercepts else pulled


def squares_of(F) -> np.ndarray:
    """(D,) squared lengths of the columns."""
    if isinstance(F, HeldRows | HeldTangent):
        return F.squares()
    if sparse.issparse(F):
        total = np.zeros(F.shape[1])
        for first in range(0, F.nnz, _AT_ONCE):  # `bincount` makes another array of the places
            some = slice(first, first + _AT_ONCE)
            total += np.bincount(F.indices[some], np.square(F.data[some]), minlength=total.size)
        return total
    return np.einsum("ij,ij->j", F, F)


def _bordered(F, ones):
    return sparse.hstack([F, ones], format="csr") if sparse.issparse(F) else np.hstack([F, ones])


class HeldTangent:
    """F^T F = X^T (I - J) X of large X, I - J a projection with sums over pools and groups: `Tangent.half` may be as large as X."""

    def __init__(self, designs: Designs, k: int, tangent):
        self.designs, self.k, self.tangent = designs, k, tangent
        self.X = designs.inputs_of(k)
        self.mean = None if designs.means is None else designs.means[:, k]
        n, d = self.X.shape
        self.shape = (tangent.rank, d + designs.has_intercepts)
        self.entries = float(self.X.nnz if designs.is_sparse else self.X.size)
        self.is_most = designs.is_sparse or tangent.rank > _MOST * n

    def array(self) -> np.ndarray:
        F, border = self.tangent.half(self.X), self.designs.has_intercepts
        ones = self.tangent.half(np.ones((self.X.shape[0], 1))) if border else None
        if self.mean is not None:
            F -= ones * self.mean
        return F if ones is None else np.hstack([F, ones])

    def _rows(self, S) -> np.ndarray:
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
        return self.tangent.signed_rows(self._rows, max(_AT_ONCE // self.shape[1], 64))

    def curved(self, x: np.ndarray) -> np.ndarray:
        """F^T (F x)."""
        d, border = self.X.shape[1], self.designs.has_intercepts
        z = self.X @ x[:d]
        if border:
            z += x[d] if self.mean is None else x[d] - self.mean @ x[:d]
        t = self.tangent.product(z)
        pulled = np.asarray(self.X.T @ t)
        if self.mean is not None:
            pulled -= t.sum() * self.mean
        return np.append(pulled, t.sum()) if border else pulled

    def squares(self) -> np.ndarray:
        """(D,) squared lengths of the columns."""
        squares = HeldRows(self.designs, self.k, self.tangent.alone).squares()
        for sign, R in self._signed_rows():
            squares += sign * squares_of(R)
        return np.maximum(squares, 0.0)

    def gram(self) -> np.ndarray:
        alone = self.tangent.alone
        if self.designs.is_sparse:
            held = np.zeros(self.X.shape[0])
            held[alone] = 1.0
            G = gram(self.X, held)
            if self.designs.has_intercepts:
                border = np.asarray(self.X.T @ held)
                G = np.block([[G, border[:, None]], [border[None, :], held.sum()]])
        else:
            G = HeldRows(self.designs, self.k, alone).gram()
        for sign, R in self._signed_rows():
            # G is symmetric: added to its transpose, which BLAS takes as it lies, and without an array of products beside it
            blas.dgemm(sign, R.T, R.T, beta=1.0, c=G.T, trans_b=True, overwrite_c=True)
        return G
