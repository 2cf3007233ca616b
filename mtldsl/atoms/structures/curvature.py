"""The Hessian of a kernel penalty in the kernels' weights, and Newton's equations: dense, or a diagonal and a few columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from mtldsl.system.threads import on_one_blas_thread

if TYPE_CHECKING:
    from mtldsl.atoms.structures.shared_nodes import DiagonalPlus
    from mtldsl.atoms.structures.task_kernel import Cell

__all__ = ["Curvature"]

#: More columns than this part of the kernels are not worth taking apart.
_FEW = 0.25


class Curvature:
    """C = sum over cells of (B Z Z^T B^T) * (B^T P B), added up over the columns of each kernel; P = K^{-1}, Z = P H^T.

    Where every kernel is one column, and few columns are shared by tasks, those of single tasks, s, have C_ss = diag - G G^T with G the
    products of a few columns of P by those of Z: then C is kept as the diagonal, G and the columns of the others, f.
    """

    def __init__(self, n: int, n_cells: int):
        self.n, self.n_cells = n, n_cells
        self.dense: np.ndarray | None = None
        self.parts: tuple | None = None

    def add(self, cell: Cell, product: np.ndarray) -> None:
        """product (k, k), of the columns of a cell."""
        if self.dense is None:
            self.dense = np.zeros((self.n, self.n))
        if len(cell.members) < len(cell.owner):
            k = len(cell.owner)
            owners = sparse.csr_array((np.ones(k), (cell.owner, np.arange(k))), (len(cell.members), k))
            product = np.asarray(owners @ np.asarray(owners @ product).T).T
        self.dense[np.ix_(cell.members, cell.members)] += product

    @on_one_blas_thread
    def add_few(self, cell: Cell, few: DiagonalPlus, BZ: np.ndarray) -> None:
        nodes, k = cell.nodes, len(cell.owner)
        s, f = nodes.own, nodes.shared
        Q = few.halves()
        BQ = np.asarray(cell.transposed @ Q)  # (k, r)
        single = self.n_cells == 1 and len(cell.members) == k == self.n and nodes.n_tasks == s.size
        if not single or f.size * BZ.shape[1] > _FEW * self.n:
            inverse = cell.transposed.multiply(1.0 / few.D[None, :]).tocsr()
            self.add(cell, (BZ @ BZ.T) * (np.asarray((inverse @ cell.factor).toarray()) - BQ @ BQ.T))
            return
        own = np.einsum("ij,ij->i", BZ[s], BZ[s]) * nodes.factor**2 / few.D[nodes.task]
        G = (BQ[s][:, :, None] * BZ[s][:, None, :]).reshape(s.size, -1)
        across = np.asarray(cell.transposed @ (nodes.U / few.D[:, None])) - BQ @ BQ[f].T
        across *= BZ @ BZ[f].T  # (k, f)
        of = cell.members
        self.parts = of[s], of[f], own, G, across[s], across[f]

    def in_q(self, first: np.ndarray, diagonal: np.ndarray) -> None:
        """In coordinates q with d theta / d q = first, and with `diagonal` added."""
        if self.parts is None:
            assert self.dense is not None
            self.dense = first[:, None] * self.dense * first[None, :]
            self.dense[np.diag_indices(self.n)] += diagonal
            return
        s, f, own, G, across, rest = self.parts
        rest = first[f][:, None] * rest * first[f][None, :]
        rest[np.diag_indices(f.size)] += diagonal[f]
        across = first[s][:, None] * across * first[f][None, :]
        self.parts = s, f, first[s] ** 2 * own + diagonal[s], first[s][:, None] * G, across, rest

    @on_one_blas_thread
    def solve(self, q: np.ndarray, mu: float, right: np.ndarray) -> np.ndarray:
        """(diag(q) C diag(q) + mu I)^{-1} right."""
        if self.parts is None:
            assert self.dense is not None
            A = q[:, None] * self.dense * q[None, :]
            A[np.diag_indices(self.n)] += mu
            return np.linalg.solve(A, right)
        s, f, own, G, across, rest = self.parts
        D = q[s] ** 2 * own + mu
        G, across = q[s][:, None] * G, q[s][:, None] * across * q[f][None, :]
        rest = q[f][:, None] * rest * q[f][None, :] + mu * np.eye(f.size)
        # (D - G G^T)^{-1} of the single tasks' columns, then Schur's complement of the others
        both = np.column_stack([right[s], across])
        scaled = G / D[:, None]
        small = np.eye(G.shape[1]) - G.T @ scaled
        solved = both / D[:, None] + scaled @ np.linalg.solve(small, scaled.T @ both)
        x, Y = solved[:, : right.shape[1]], solved[:, right.shape[1] :]
        found = np.empty_like(right)
        found[f] = np.linalg.solve(rest - across.T @ Y, right[f] - across.T @ x)
        found[s] = x - Y @ found[f]
        return found
