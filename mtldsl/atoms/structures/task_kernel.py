"""Kernels between tasks, R = B B^T, by their factors: never a T x T matrix where a vector will do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from mtldsl.atoms.structures.shared_nodes import SharedNodes

__all__ = ["Cell", "TaskKernel", "cells_of"]

#: From this part of nonzeros on a factor is multiplied as a dense matrix.
_DENSE = 0.1


@dataclass(frozen=True, eq=False)
class TaskKernel:
    """R = B B^T (T, T), positive semidefinite, on some rows of W (d, T).

    name    : of its weight
    factor  : B (T, r), a CSR array; rank one, r = 1, for the indicator of a group of tasks
    columns : positions of the features that it acts on, sorted; None: all
    view    : what these features are called
    """

    name: str
    factor: sparse.csr_array
    columns: np.ndarray | None = None
    view: str = ""  # what a user calls these features; "" for all

    @property
    def n_tasks(self) -> int:
        return self.factor.shape[0]

    @property
    def matrix(self) -> np.ndarray:
        """R, dense."""
        return (self.factor @ self.factor.T).toarray()


@dataclass(frozen=True, eq=False)
class Cell:
    """Rows of W on which the same kernels act: there W costs 1/2 tr(W K^+ W^T), K the weighted sum of the kernels."""

    rows: slice | np.ndarray
    members: np.ndarray  # which kernels
    factor: sparse.csr_array  # their factors side by side, (T, k)
    owner: np.ndarray  # (k,) the position in `members` of every column of `factor`

    @cached_property
    def transposed(self) -> sparse.csr_array:
        return self.factor.T.tocsr()

    @cached_property
    def nodes(self) -> SharedNodes:
        """Its columns, those of single tasks apart."""
        return SharedNodes(self.transposed)

    def of_columns(self, weights) -> np.ndarray:
        """(k,) the weight of every column of the factor; `weights` are those of all kernels."""
        return weights[self.members][self.owner]

    def kernel(self, weights) -> np.ndarray:
        """K = sum of weights[m] R_m over the members, (T, T) dense; `weights` are those of all kernels."""
        scale = self.of_columns(weights)
        if self.factor.nnz > _DENSE * np.prod(self.factor.shape):
            dense = self.factor.toarray()
            return (dense * scale) @ dense.T
        return (self.factor.multiply(scale[None, :]).tocsr() @ self.transposed).toarray()

    def sizes(self, Z) -> np.ndarray:
        """tr(Z R_m Z^T) of every member, for Z (rows of the cell, T)."""
        parts = np.asarray(Z @ self.factor)
        return self.add_up(np.einsum("ij,ij->j", parts, parts))

    def add_up(self, per_column) -> np.ndarray:
        """Sums over the columns of each member."""
        return np.bincount(self.owner, weights=per_column, minlength=len(self.members))


def cells_of(kernels: tuple[TaskKernel, ...], n_rows: int) -> tuple[Cell, ...]:
    """The rows of W, parted by the kernels that act on them. Rows on which none acts are in no cell."""
    if all(kernel.columns is None for kernel in kernels):
        return (_cell(kernels, np.arange(len(kernels)), slice(None)),)
    # many kernels are about the same few sets of features
    keys = [None if kernel.columns is None else kernel.columns.tobytes() for kernel in kernels]
    sets = list(dict.fromkeys(keys))
    own = np.array([sets.index(key) for key in keys])
    acts = np.ones((n_rows, len(sets)), dtype=bool)
    for kernel, k in zip(kernels, own, strict=True):
        if kernel.columns is not None:
            acts[:, k] = False
            acts[kernel.columns, k] = True
    patterns, which = np.unique(acts, axis=0, return_inverse=True)
    which = which.ravel()
    return tuple(
        _cell(kernels, np.flatnonzero(pattern[own]), np.flatnonzero(which == c))
        for c, pattern in enumerate(patterns)
        if pattern.any()
    )


def _cell(kernels, members: np.ndarray, rows) -> Cell:
    factors = [kernels[m].factor for m in members]
    owner = np.repeat(np.arange(len(members)), [factor.shape[1] for factor in factors])
    return Cell(rows, members, sparse.csr_array(sparse.hstack(factors, format="csr")), owner)
