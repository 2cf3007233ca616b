"""Blocks of unknowns, and linear maps of them: what the terms of a normal form are functions of. Other rooms take these names from `normal_form`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.system.kept import cached_property

__all__ = ["Block", "Blocks", "Entry", "LinearMap", "picks"]

Blocks = dict[str, np.ndarray]  # block name -> array


@dataclass(frozen=True)
class Block:
    """One unknown matrix. An intercept is a block of shape (1, m) of its own, with `intercept_of` naming its weights."""

    name: str
    shape: tuple[int, int]
    intercept_of: str | None = None


def picks(factor) -> bool:
    """Whether every row of a matrix factor is one 1 among zeros, and no column holds two; None is the identity."""
    if factor is None:
        return True
    rows: Any = sparse.csr_array(factor)
    ones = rows.nnz == rows.shape[0] and bool(np.all(rows.data == 1.0))
    return ones and bool(np.all(np.diff(rows.indptr) == 1)) and np.unique(rows.indices).size == rows.nnz


def _squares(matrix) -> float:
    """The sum of the squares of a matrix's entries, dense or sparse."""
    entries = matrix.data if sparse.issparse(matrix) else np.asarray(matrix)
    return float(np.vdot(entries, entries))


@dataclass(frozen=True, eq=False)
class Entry:
    """coefficient * left @ x[block] @ right; `left` and `right` are dense arrays, scipy CSR matrices, or None for the identity."""

    block: str
    coefficient: float = 1.0
    left: Any = None
    right: Any = None

    @property
    def is_identity(self) -> bool:
        return self.coefficient == 1.0 and self.left is None and self.right is None

    def forward(self, W: np.ndarray) -> np.ndarray:
        if self.left is not None:
            W = self.left @ W
        if self.right is not None:
            W = W @ self.right
        return W if self.coefficient == 1.0 else self.coefficient * W

    @cached_property
    def gain(self) -> float:
        """How much longer than W its image is, the root mean square over all directions of W."""
        sides = [(self.left, 1), (self.right, 0)]
        lengths = [np.sqrt(_squares(side) / side.shape[axis]) for side, axis in sides if side is not None]
        return abs(self.coefficient) * float(np.prod(lengths))

    def adjoint(self, Z: np.ndarray) -> np.ndarray:
        if self.left is not None:
            Z = self.left.T @ Z
        if self.right is not None:
            Z = Z @ self.right.T
        return Z if self.coefficient == 1.0 else self.coefficient * Z


@dataclass(frozen=True, eq=False)
class LinearMap:
    """x -> sum of entries + offset, a matrix of `shape`."""

    entries: tuple[Entry, ...]
    shape: tuple[int, int]
    offset: np.ndarray | None = None

    @cached_property
    def identity_of(self) -> str | None:
        """The block's name where the map is just that block, else None."""
        if self.offset is None and len(self.entries) == 1 and self.entries[0].is_identity:
            return self.entries[0].block
        return None

    def multiple_of(self, block: str) -> float:
        """c where the map is c * block + constant, else 0."""
        if len(self.entries) != 1:
            return 0.0
        (entry,) = self.entries
        plain = entry.block == block and entry.left is None and entry.right is None
        return entry.coefficient if plain else 0.0

    @property
    def blocks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(entry.block for entry in self.entries))

    def usual_length(self, x: Blocks) -> float:
        """The length that the image of weights of this size has where it is not zero by rule: the root mean square over all directions."""
        squares = sum((entry.gain * np.linalg.norm(x[entry.block])) ** 2 for entry in self.entries)
        return float(np.sqrt(squares))

    def linear(self, x: Blocks) -> np.ndarray:
        """The map without its offset."""
        if self.identity_of is not None:
            return x[self.identity_of]
        total = sum(entry.forward(x[entry.block]) for entry in self.entries)
        return np.broadcast_to(total, self.shape) if np.shape(total) != self.shape else total  # pyrefly: ignore[bad-return]  # a sum's 0 is broadcast

    def forward(self, x: Blocks) -> np.ndarray:
        image = self.linear(x)
        return image if self.offset is None else image + self.offset

    def add_adjoint(self, Z: np.ndarray, into: Blocks) -> None:
        """into[block] += adjoint of the map at Z, for every block of the map."""
        for entry in self.entries:
            into[entry.block] += entry.adjoint(Z)
