"""Free directions of a block of weights: no regularizer or constraint acts along them, so multipliers of losses stand alone.

A function g_k(c P W R), P picking rows, has multipliers in a subspace of the rows' space: all of it, some entries, or what is orthogonal to
`lineality`. What several of them span together, R_1 dom g_1* + R_2 dom g_2* + ..., takes up its part of a residual. On the rest, the
directions N of a row,  N^T (A^T u)  has to vanish by the losses' multipliers alone. A cone of multipliers counts where they are not zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.linalg import lapack
from scipy.sparse.csgraph import connected_components

from mtldsl.normal_form.form import Blocks, FunctionTerm, LossTerm, NormalForm
from mtldsl.normal_form.term import picks
from mtldsl.normal_form.terms.structured_term import ProvenDual
from mtldsl.utils.interrupts import lstsq

#: singular values up to this share of the largest are zero: the functions' matrices are small and well scaled
_ZERO_SHARE = 1e-10


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
    parts = [_ResidualPart(-1, np.arange(p), None, 1.0, charged, None)]
    for k, f in enumerate(form.functions):
        if is_between_tasks(f, block) and (f.atom.convex or not f.atom.is_bounded):
            rows, right = rows_and_right(f)
            lineality = f.atom.lineality(f.map.shape[1])
            mask = np.ones(f.map.shape, bool) if lineality is None else None
            parts.append(_ResidualPart(k, rows, right, 1.0, mask, lineality))
    return _kinds(parts, p, m)


def is_between_tasks(f: FunctionTerm, block: str) -> bool:
    """Tell whether a function of rows of one block has a `lineality`, or sees combinations of tasks alone."""
    entries = f.map.entries
    if len(entries) != 1 or entries[0].block != block or not picks(entries[0].left):
        return False
    return entries[0].right is not None or f.atom.lineality(f.map.shape[1]) is not None


def _kinds(parts: list[_ResidualPart], p: int, m: int) -> list[RowKind]:
    codes = np.zeros((p, len(parts) + 1), int)  # what may take part in a row, in one number a function
    for column, part in enumerate(parts):
        masks = None if part.mask is None else np.unique(part.mask, axis=0, return_inverse=True)[1].ravel()
        codes[part.rows, column] = 1 if masks is None else 2 + masks
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
class _ResidualPart:
    """Part of a residual that a function takes: of `rows` of the block, times `right`, the entries in `mask` or (None) what is orthogonal to `lineality`."""

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


def _part(f: FunctionTerm, index: int, block: str, v: np.ndarray) -> _ResidualPart | None:
    """None where the function is of other blocks, or of more than one, or mixes rows."""
    entries = f.map.entries
    if len(entries) != 1 or entries[0].block != block or not picks(entries[0].left):
        return None
    rows, right = rows_and_right(f)
    lineality = f.atom.lineality(f.map.shape[1])
    mask = _spanned_entries(f, v) if lineality is None else None
    if mask is not None and not mask.any():
        return None
    return _ResidualPart(index, rows, right, entries[0].coefficient, mask, lineality)


def rows_and_right(f: FunctionTerm) -> tuple[np.ndarray, np.ndarray | None]:
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


def _row_kind(rows: np.ndarray, example: int, parts: list[_ResidualPart], m: int) -> RowKind:
    own = [part for part in parts if example in part.rows]
    if len(own) == 1 and own[0].right is None and own[0].lineality is not None:
        N = own[0].lineality  # its own `dual_project` takes the rest
        return RowKind(rows, _sparsest(N), (), (np.abs(N), np.abs(N).T))
    if all(part.right is None and part.mask is not None for part in own):
        spanned = np.any([np.zeros(m, bool), *(part.span(example).any(axis=0) for part in own)], axis=0)
        return RowKind(rows, sparse.eye_array(m, format="csr")[:, np.flatnonzero(~spanned)])
    columns = []
    for part in own:
        span = part.span(example)
        columns.append(part.coefficient * (span if part.right is None else part.right @ span))
    together = np.hstack(columns)
    U, s, Vt = np.linalg.svd(together, full_matrices=True)
    alive = int(np.count_nonzero(s > _ZERO_SHARE * s.max(initial=0.0)))
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
        N = np.where(np.abs(N) > _ZERO_SHARE, N, 0.0)
    return sparse.csr_array(N)


# --------------------------------------------------------------------------------------------------------------
# The smallest change of losses' multipliers after which a block's equation holds where no function takes part in it.
#
# Unknowns are the multipliers c of all samples; there is an equation for every row and direction N of `RowKind`,  <N, (A^T c)_row> = wanted,
# and one for every intercept. With room_j the way from a multiplier to the end of its interval, sum (c_j / room_j)^2 is least. Tasks that
# no direction and no intercept has in common are systems of their own. All are consistent, however few ranks the inputs have: where
# multipliers are feasible, c = -u solves them.


#: Numbers of a system up to which least squares take an orthogonal factorization.
ORTHOGONAL_ENTRIES = 200_000

#: Reciprocal condition below which a Gram matrix goes by a decomposition that bears singular ones.
CONDITION_RATIO = 1e-9


@dataclass(frozen=True, eq=False)
class BlockLoss:
    """A loss of the block W, whose tasks predict by inputs @ W @ right."""

    index: int
    loss: LossTerm
    left: Any
    right: sparse.csr_array  # (m, tasks of the loss), with the map's coefficient

    def inputs(self, i: int) -> Any:
        """Those of a task, dense or sparse as they are."""
        X = self.loss.tasks.inputs[i]
        X = X if self.left is None else X @ self.left
        return sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X, float)


def member_of(loss: LossTerm, index: int, block: str, n_tasks: int, u) -> BlockLoss | None:
    """The loss as a member; None where it is of another block, or its multipliers are not plain numbers of rows in memory."""
    entries = [entry for entry in loss.map.entries if entry.block == block]
    if len(entries) != 1 or not loss.tasks.in_memory or not isinstance(u, (np.ndarray, ProvenDual)):
        return None
    right = sparse.eye_array(n_tasks) if entries[0].right is None else entries[0].right
    return BlockLoss(index, loss, entries[0].left, sparse.csr_array(entries[0].coefficient * right))


@dataclass(frozen=True, eq=False)
class _TaskMultipliers:
    """One task of one loss: its multipliers' place and room, and its part in every direction."""

    member: BlockLoss
    task: int
    room: np.ndarray
    part: np.ndarray  # (directions of all kinds,)


def change_least(
    members: list[BlockLoss], kinds: list[RowKind], residual: Blocks, block: str, rooms: dict[int, np.ndarray]
) -> dict[int, np.ndarray]:
    """{index of a loss: what to add to its multipliers}, so that  N^T (residual + A^T change) = 0  on every row, and 0 on intercepts."""
    directions = sparse.hstack([kind.basis for kind in kinds], format="csr")
    owner = np.repeat(np.arange(len(kinds)), [kind.basis.shape[1] for kind in kinds])
    changes = {t: np.zeros(room.size) for t, room in rooms.items()}
    units = []
    for one in members:
        offsets, room = one.loss.tasks.offsets, rooms[one.index]
        parts = (one.right.T @ directions).toarray()
        for i in range(one.loss.tasks.n_tasks):
            units.append(_TaskMultipliers(one, i, room[offsets[i] : offsets[i + 1]], parts[i]))
    for together in _components(units):
        for unit, change in zip(
            together, _solved(together, directions, owner, kinds, residual, block), strict=True
        ):
            first = unit.member.loss.tasks.offsets[unit.task]
            changes[unit.member.index][first : first + change.size] = change
    return changes


def _components(units: list[_TaskMultipliers]) -> list[list[_TaskMultipliers]]:
    """Units that have a direction or an intercept in common."""
    names = {
        name: k for k, name in enumerate(sorted({n for unit in units for n in unit.member.loss.intercepts}))
    }
    n_tasks = 1 + max(unit.task for unit in units)
    shared = sparse.csr_array(np.array([unit.part != 0.0 for unit in units]))
    own = sparse.lil_array((len(units), len(names) * n_tasks), dtype=bool)
    for row, unit in enumerate(units):
        for name in unit.member.loss.intercepts:
            own[row, names[name] * n_tasks + unit.task] = True
    links = sparse.hstack([shared, own], format="csr").astype(float)
    count, label = connected_components(links @ links.T, directed=False)
    found: list[list[_TaskMultipliers]] = [[] for _ in range(count)]
    for unit, one in zip(units, label.tolist(), strict=True):
        found[one].append(unit)
    return found


def _solved(together, directions, owner, kinds, residual, block) -> list[np.ndarray]:
    """The change of every unit: of the least t with  Z^T t = wanted  and sums of intercepts in  E^T t, change = room t."""
    used = np.flatnonzero(np.any([unit.part != 0.0 for unit in together], axis=0))
    wanted = [-(residual[block][kinds[owner[c]].rows] @ directions[:, [c]].toarray().ravel()) for c in used]
    wanted = np.concatenate([*wanted, np.zeros(0)])
    rows = [kinds[owner[c]].rows for c in used]
    designs = [_design(unit, unit.part[used], rows) for unit in together]
    squares = sum((_squares(Z) for Z in designs), np.zeros(wanted.size))
    length = np.sqrt(np.where(squares > 0.0, squares, 1.0))
    designs = [_scaled(Z, unit.room, 1.0 / length) for unit, Z in zip(together, designs, strict=True)]
    wanted = wanted / length
    by_task: dict[int, list[int]] = {}
    for k, unit in enumerate(together):
        by_task.setdefault(unit.task, []).append(k)
    # intercepts first: what their sums ask for, and what designs have of them
    firsts = [np.zeros(unit.room.size) for unit in together]
    seen: list[Any] = [(np.zeros((n.size, 0)), np.zeros((0, wanted.size))) for n in firsts]
    for task, some in by_task.items():
        names = sorted({name for k in some for name in together[k].member.loss.intercepts})
        if not names:
            continue
        E = np.vstack(
            [
                np.outer(together[k].room, [name in together[k].member.loss.intercepts for name in names])
                for k in some
            ]
        )
        ends = np.cumsum([together[k].room.size for k in some])[:-1]
        Q, s, Vt = np.linalg.svd(E, full_matrices=False)
        alive = s > CONDITION_RATIO * s.max(initial=0.0)
        Q, s, Vt = Q[:, alive], s[alive], Vt[alive]
        first = Q @ ((Vt @ -np.array([residual[name][0, task] for name in names])) / s)
        parts = np.split(Q, ends)
        image = sum((designs[k].T @ part).T for k, part in zip(some, parts, strict=True))
        for k, part, own in zip(some, parts, np.split(first, ends), strict=True):
            firsts[k], seen[k] = own, (part, image)
            wanted = wanted - designs[k].T @ own
    changes = _least_squares(designs, seen, wanted)
    return [unit.room * (first + t) for unit, first, t in zip(together, firsts, changes, strict=True)]


def _design(unit: _TaskMultipliers, shares: np.ndarray, rows: list[np.ndarray]):
    """(n, equations): the inputs of the rows of each direction, times the unit's part in it."""
    X = unit.member.inputs(unit.task)
    parts = [X[:, some] * share for some, share in zip(rows, shares.tolist(), strict=True)]
    if not parts:
        return np.zeros((X.shape[0], 0))
    return sparse.csr_array(sparse.hstack(parts)) if sparse.issparse(X) else np.hstack(parts)


def _squares(Z) -> np.ndarray:
    """Squared lengths of columns."""
    return np.asarray(Z.multiply(Z).sum(axis=0)) if sparse.issparse(Z) else np.einsum("ij,ij->j", Z, Z)


def _scaled(Z, rows: np.ndarray, columns: np.ndarray):
    if sparse.issparse(Z):
        return sparse.csr_array(sparse.diags_array(rows) @ Z @ sparse.diags_array(columns))
    return Z * rows[:, None] * columns


def _least_squares(
    designs: list, seen: list[tuple[np.ndarray, np.ndarray]], wanted: np.ndarray
) -> list[np.ndarray]:
    """t of least norm with  sum_k (designs[k] - part_k image_k)^T t_k = wanted, (part, image) = seen[k].

    Large designs go by their Gram matrix, less exact, and the rounds refine it.
    """
    rows = [Z.shape[0] for Z in designs]
    if wanted.size == 0:
        return [np.zeros(n) for n in rows]
    if sum(rows) * wanted.size <= ORTHOGONAL_ENTRIES or sum(rows) < wanted.size:
        dense = (Z.toarray() if sparse.issparse(Z) else Z for Z in designs)
        Z = np.vstack([Z - part @ image for Z, (part, image) in zip(dense, seen, strict=True)])
        if Z.size <= ORTHOGONAL_ENTRIES:
            t = np.linalg.lstsq(Z.T, wanted, rcond=None)[0]
        else:  # the same change, of a Gram matrix of the rows
            t = _solution(Z @ Z.T, Z @ wanted)
        return np.split(t, np.cumsum(rows)[:-1])
    gram: Any = sum(Z.T @ Z for Z in designs)
    gram = gram.toarray() if sparse.issparse(gram) else gram
    for image in {id(image): image for _, image in seen}.values():  # a task's units have it in common
        gram -= image.T @ image
    by = _solution(gram, wanted)
    return [Z @ by - part @ (image @ by) for Z, (part, image) in zip(designs, seen, strict=True)]


def _solution(gram, wanted) -> np.ndarray:
    """gram^-1 wanted by Cholesky, in an eighth of the time of the decomposition that a matrix near a singular one needs."""
    factor, failed = lapack.dpotrf(gram, lower=True)
    if not failed and lapack.dpocon(factor, np.linalg.norm(gram, 1), uplo="L")[0] > CONDITION_RATIO:
        return lapack.dpotrs(factor, wanted, lower=True)[0]
    return lstsq(gram, wanted, len(gram) * np.finfo(float).eps)
