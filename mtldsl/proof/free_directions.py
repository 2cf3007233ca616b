"""Directions of a block of weights along which no regularizer or constraint has a say, row by row: there multipliers of losses stand alone.

A function g_k(c P W R), P picking rows, has multipliers in a subspace of the rows' space: all of it, some entries, or what is orthogonal to
`lineality`. What several of them span together, R_1 dom g_1* + R_2 dom g_2* + ..., takes up its part of a residual. On the rest, the
directions N of a row,  N^T (A^T u)  has to vanish by the losses' multipliers alone. A cone of multipliers counts where they are not zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse

from mtldsl.compile.normal_form import FunctionTerm, NormalForm, picks

__all__ = ["RowKind", "is_between_tasks", "mixed_magnitudes", "row_kinds", "uncharged_kinds"]

#: singular values up to this share of the largest are zero: the functions' matrices are small and well scaled
_ZERO = 1e-10


@dataclass(frozen=True, eq=False)
class RowKind:
    """Rows of a block in whose multipliers the same functions take part.

    rows  : their indices
    basis : (m, c) columns N, as sparse as they can be
    takers: (function, where the rows stand in its argument, the matrix (q, m) that its multipliers take of a residual)
    mixes : (A, B), absolute values: an error e of a row's products becomes A B e in its multipliers; None where nothing mixes tasks
    """

    rows: np.ndarray
    basis: sparse.csr_array
    takers: tuple[tuple[int, np.ndarray, np.ndarray], ...] = ()
    mixes: tuple[np.ndarray, np.ndarray] | None = None


def row_kinds(form: NormalForm, block: str, v) -> list[RowKind]:
    """The rows of a block, by what functions may take of them."""
    p, m = form.shapes[block]
    parts = [part for k, f in enumerate(form.functions) if (part := _part(f, k, block, v[k])) is not None]
    return _kinds(parts, p, m)


def uncharged_kinds(form: NormalForm, block: str, charged: np.ndarray) -> list[RowKind]:
    """The rows of a block, with the directions along which no function changes: none of `charged` entries (p, m), and of functions between
    tasks those of their `lineality`, or those that their argument does not see. Bounded functions that are not convex are left out."""
    p, m = form.shapes[block]
    parts = [_Part(-1, np.arange(p), None, 1.0, charged, None)]
    for k, f in enumerate(form.functions):
        if is_between_tasks(f, block) and (f.atom.convex or not f.atom.is_bounded):
            rows, right = _rows_and_right(f)
            lineality = f.atom.lineality(f.map.shape[1])
            mask = np.ones(f.map.shape, bool) if lineality is None else None
            parts.append(_Part(k, rows, right, 1.0, mask, lineality))
    return _kinds(parts, p, m)


def is_between_tasks(f: FunctionTerm, block: str) -> bool:
    """Whether a function of rows of one block has a `lineality`, or sees combinations of tasks alone."""
    entries = f.map.entries
    if len(entries) != 1 or entries[0].block != block or not picks(entries[0].left):
        return False
    return entries[0].right is not None or f.atom.lineality(f.map.shape[1]) is not None


def _kinds(parts: list[_Part], p: int, m: int) -> list[RowKind]:
    codes = np.zeros((p, len(parts) + 1), int)  # what may take part in a row, in one number a function
    for column, part in enumerate(parts):
        codes[part.rows, column] = 1 if part.mask is None else 2 + _kinds_of(part.mask)
    _, first, kind = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    kinds = []
    for j, example in enumerate(first):
        rows = np.flatnonzero(kind.ravel() == j)
        kinds.append(_row_kind(rows, example, parts, m))
    return kinds


def mixed_magnitudes(kinds: list[RowKind], size: np.ndarray) -> np.ndarray:
    """(p, m) of `magnitudes` of the same shape: a multiplier that balances several tasks has the rounding of each in it, also where a
    task's own sum is empty."""
    mixed = size.copy()
    for kind in kinds:
        if kind.mixes is not None:
            A, B = kind.mixes
            mixed[kind.rows] += (size[kind.rows] @ B.T) @ A.T
    return mixed


@dataclass(frozen=True, eq=False)
class _Part:
    """What a function takes: of `rows` of the block, times `right`, the entries in `mask` or (None) what is orthogonal to `lineality`."""

    index: int
    rows: np.ndarray
    right: np.ndarray | None
    coefficient: float
    mask: np.ndarray | None
    lineality: np.ndarray | None

    def span(self, row: int) -> np.ndarray:
        """(q, q) the projection on what its multipliers span in this row of the block."""
        if self.mask is not None:
            return np.diag(self.mask[np.flatnonzero(self.rows == row)[0]].astype(float))
        N = self.lineality
        assert N is not None  # one of the two is there
        return np.eye(len(N)) - N @ N.T


def _part(f: FunctionTerm, index: int, block: str, v: np.ndarray) -> _Part | None:
    """None where the function is of other blocks, or of more than one, or mixes rows."""
    entries = f.map.entries
    if len(entries) != 1 or entries[0].block != block or not picks(entries[0].left):
        return None
    rows, right = _rows_and_right(f)
    lineality = f.atom.lineality(f.map.shape[1])
    mask = _spanned_entries(f, v) if lineality is None else None
    if mask is not None and not mask.any():
        return None
    return _Part(index, rows, right, entries[0].coefficient, mask, lineality)


def _rows_and_right(f: FunctionTerm) -> tuple[np.ndarray, np.ndarray | None]:
    """(the rows that its map picks, what the map multiplies them by)."""
    left, right = f.map.entries[0].left, f.map.entries[0].right
    rows = np.arange(f.map.shape[0]) if left is None else sparse.csr_array(left).indices
    if right is None:
        return rows, None
    return rows, np.asarray(right.todense() if sparse.issparse(right) else right, float)


def _spanned_entries(f: FunctionTerm, v: np.ndarray) -> np.ndarray:
    """The entries that multipliers may have there, of a function whose multipliers are free or zero, or of one sign, entry by entry."""
    probe = np.where(np.arange(v.size) % 2, 1.0, -1.0).reshape(v.shape) * (
        1.0 + np.arange(v.size).reshape(v.shape)
    )
    one, other = f.atom.dual_project(probe), f.atom.dual_project(-probe)
    kept, kept_too = one == probe, other == -probe
    if np.any(one[~kept]) or np.any(other[~kept_too]):
        return np.zeros(v.shape, bool)  # no such function
    return (kept & kept_too) | ((kept | kept_too) & (v != 0.0))


def _kinds_of(mask: np.ndarray) -> np.ndarray:
    return np.unique(mask, axis=0, return_inverse=True)[1].ravel()


def _row_kind(rows: np.ndarray, example: int, parts: list[_Part], m: int) -> RowKind:
    own = [part for part in parts if example in part.rows]
    if not own:
        return RowKind(rows, sparse.eye_array(m, format="csr"))
    if len(own) == 1 and own[0].right is None and own[0].lineality is not None:
        N = own[0].lineality  # its own `dual_project` takes the rest
        return RowKind(rows, _sparsest(N), (), (np.abs(N), np.abs(N).T))
    if all(part.right is None and part.mask is not None for part in own):
        spanned = np.any([part.span(example).any(axis=0) for part in own], axis=0)
        return RowKind(rows, sparse.eye_array(m, format="csr")[:, np.flatnonzero(~spanned)])
    columns = []
    for part in own:
        span = part.span(example)
        columns.append(part.coefficient * (span if part.right is None else part.right @ span))
    together = np.hstack(columns)
    U, s, Vt = np.linalg.svd(together, full_matrices=True)
    alive = int(np.count_nonzero(s > _ZERO * s.max(initial=0.0)))
    inverse = (Vt[:alive].T / s[:alive]) @ U[:, :alive].T
    takers, first = [], 0
    for part, column in zip(own, columns, strict=True):
        order = np.argsort(part.rows)
        places = order[np.searchsorted(part.rows, rows, sorter=order)]
        takers.append((part.index, places, inverse[first : first + column.shape[1]]))
        first += column.shape[1]
    return RowKind(rows, _sparsest(U[:, alive:]), tuple(takers), (np.abs(together), np.abs(inverse)))


def _sparsest(N: np.ndarray) -> sparse.csr_array:
    """A basis of the same space with one 1 among zeros in as many rows as it has columns: tasks that nothing couples fall apart."""
    if N.shape[1] > 1:
        lead = linalg.qr(N.T, pivoting=True)[2][: N.shape[1]]
        N = np.linalg.solve(N[lead].T, N.T).T
        N = np.where(np.abs(N) > _ZERO, N, 0.0)
    return sparse.csr_array(N)
