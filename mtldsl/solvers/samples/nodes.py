"""The dual state of a kernel regularizer: one vector a column of the factors B_m, u_k = sum_i B[t_i, k] u_i x_i."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from mtldsl.solvers.kernels.arguments import NodePlaces

if TYPE_CHECKING:
    from mtldsl.atoms.structures import MKLNorm

__all__ = ["Nodes"]


class Nodes:
    """Node vectors over the cells of an `MKLNorm`, and where the kernels find them.

    The weights of task t are w_t = -sum over its entries of factor * theta * node, theta those of the kernels over the term's coefficient.
    """

    def __init__(self, norm: MKLNorm, n_features: int):
        self.norm, self.n_features = norm, n_features
        self.cells = norm.cells(n_features)
        self.cell_of = np.zeros(n_features, dtype=np.int64)
        self.place = np.arange(n_features, dtype=np.int64)
        self.begin, entries, end = [], [], 0
        for c, cell in enumerate(self.cells):
            rows = np.arange(n_features)[cell.rows]
            self.cell_of[rows], self.place[rows] = c, np.arange(rows.size)
            self.begin.append(end)
            factor: Any = cell.factor
            task = np.repeat(np.arange(factor.shape[0]), np.diff(factor.indptr))
            at = end + factor.indices.astype(np.int64) * rows.size
            entries.append(
                (task, at, np.full(task.size, c), factor.data, cell.members[cell.owner[factor.indices]])
            )
            end += factor.shape[1] * rows.size
        task, *columns = (np.concatenate(parts) for parts in zip(*entries, strict=True))
        order = np.argsort(task, kind="stable")
        self.entry_at, self.entry_cell, self.entry_factor, self.entry_kernel = (
            column[order] for column in columns
        )
        n_tasks = self.cells[0].factor.shape[0]
        self.entry_of = np.concatenate([[0], np.cumsum(np.bincount(task, minlength=n_tasks))])
        self.entry_factor = np.ascontiguousarray(self.entry_factor, dtype=float)
        self.entry_kernel = self.entry_kernel.astype(np.int64)
        self.store = np.zeros(end)
        self.places = NodePlaces(
            self.cell_of, self.place, self.entry_of,
            self.entry_at, self.entry_cell, self.entry_factor, self.entry_kernel,
        )  # fmt: skip

    def of_cell(self, c: int) -> np.ndarray:
        """(nodes, features) of a cell, a view."""
        k, size = self.cells[c].factor.shape[1], int(np.sum(self.cell_of == c))
        return self.store[self.begin[c] : self.begin[c] + k * size].reshape(k, size)

    def fill(self, Z) -> None:
        """Nodes of the multipliers' images Z = X^T u (d, T)."""
        for c, cell in enumerate(self.cells):
            self.of_cell(c)[:] = np.asarray(cell.transposed @ Z[cell.rows].T)

    def sizes(self) -> np.ndarray:
        """b_m = tr(Z R_m Z^T)."""
        b = np.zeros(len(self.norm.kernels))
        for c, cell in enumerate(self.cells):
            vectors = self.of_cell(c)
            b[cell.members] += cell.add_up(np.einsum("ij,ij->i", vectors, vectors))
        return b

    def weights(self, theta) -> np.ndarray:
        """(d, T): W = -Z K_theta."""
        W = np.zeros((self.n_features, self.cells[0].factor.shape[0]))
        for c, cell in enumerate(self.cells):
            factor, scale = cell.factor, theta[cell.members][cell.owner]
            if self._is_identity(factor):
                W[cell.rows] = (-scale[:, None] * self.of_cell(c)).T
                continue
            scaled = sparse.csr_array(
                (-scale[factor.indices] * factor.data, factor.indices, factor.indptr), factor.shape
            )
            W[cell.rows] = np.asarray(scaled @ self.of_cell(c)).T
        return W

    @staticmethod
    def _is_identity(factor) -> bool:
        n = factor.shape[0]
        return (
            factor.shape == (n, n)
            and factor.nnz == n
            and np.array_equal(factor.indices, np.arange(n))
            and bool(np.all(factor.data == 1.0))
        )

    @cached_property
    def tasks_are_apart(self) -> bool:
        """Whether no node belongs to two tasks: then tasks may be visited at the same time."""
        return all(np.all(np.diff(cell.transposed.indptr) <= 1) for cell in self.cells)
