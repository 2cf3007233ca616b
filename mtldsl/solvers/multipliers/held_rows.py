"""The rows at kinks of one task, F of its Newton system: an array where they are few, else read from the inputs some at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.solvers.multipliers.designs import Designs
from mtldsl.tasks.by_features import row_parts
from mtldsl.tasks.gram import gram

__all__ = ["HeldRows", "HeldTangent", "gram_of", "held_rows", "squares_of"]

#: entries up to which rows are copied, and about so many that are read at once of those that are not
_FEW, _AT_ONCE = 1 << 20, 1 << 18
#: of all rows, from which on a product with all of them costs less than a copy of those that are held
_MOST = 0.25


def held_rows(designs: Designs, k: int, part) -> Any:
    """F (r, D) with X^T (I - D) X = F^T F, the intercept's column last: single rows, or what the part's own `half` makes of them."""
    if not hasattr(part, "half"):
        F = HeldRows(designs, k, part.rows)
        return F if F.entries > _FEW else F.array()
    if designs.is_sparse and part.rank * float(designs.loss.tasks.n_features) > _FEW:
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
        self.is_most = len(rows) > _MOST * n and not (designs.is_shared and designs.rows_of is not None)

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
        total = np.zeros((self.shape[1], self.shape[1]))
        for piece in self.pieces():
            total += gram_of(piece)
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
        return np.bincount(F.indices, np.square(F.data), minlength=F.shape[1])
    return np.einsum("ij,ij->j", F, F)


def _bordered(F, ones):
    return sparse.hstack([F, ones], format="csr") if sparse.issparse(F) else np.hstack([F, ones])


class HeldTangent:
    """F^T F = X^T (I - J) X of large sparse X, I - J a projection with sums over pools and groups: `Tangent.half` would be dense."""

    is_most = True

    def __init__(self, designs: Designs, k: int, tangent):
        self.designs, self.k, self.tangent = designs, k, tangent
        self.X = designs.inputs_of(k)
        self.shape = (tangent.rank, self.X.shape[1] + designs.has_intercepts)
        self.entries = float(self.X.nnz)

    def array(self) -> np.ndarray:
        F = self.tangent.half(self.X)
        return (
            np.hstack([F, self.tangent.half(np.ones((self.X.shape[0], 1)))])
            if self.designs.has_intercepts
            else F
        )

    def _bordered_by(self, pulled: np.ndarray, t: np.ndarray) -> np.ndarray:
        return np.append(pulled, t.sum()) if self.designs.has_intercepts else pulled

    def curved(self, x: np.ndarray) -> np.ndarray:
        """F^T (F x)."""
        d = self.X.shape[1]
        z = self.X @ x[:d]
        t = self.tangent.product(z + x[d] if self.designs.has_intercepts else z)
        return self._bordered_by(np.asarray(self.X.T @ t), t)

    def squares(self) -> np.ndarray:
        """(D,) squared lengths of the columns, about: of what groups move in pools, nothing."""
        alone, pools, grouped = self.tangent.parts_of(self.X, exact=False)
        squares = np.zeros(self.X.shape[1])
        for X, rows in row_parts(self.X, _AT_ONCE):
            of = np.repeat(alone[rows], np.diff(X.indptr))
            squares += np.bincount(X.indices, of * np.square(X.data), minlength=squares.size)
        squares += squares_of(grouped) - squares_of(pools)
        return self._bordered_by(squares, self.tangent.product(np.ones(len(alone))))

    def gram(self) -> np.ndarray:
        alone, pools, grouped = self.tangent.parts_of(self.X)
        G = gram(self.X, alone.astype(float))
        G -= (pools.T @ pools).toarray()
        G += grouped.T @ grouped
        if not self.designs.has_intercepts:
            return G
        t = self.tangent.product(np.ones(len(alone)))
        border = np.asarray(self.X.T @ t)
        return np.block([[G, border[:, None]], [border[None, :], t.sum()]])
