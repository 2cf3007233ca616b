"""The smallest change of losses' multipliers after which a block's equation holds where no function takes part in it.

Unknowns are the multipliers c of all samples; there is an equation for every row and direction N of `RowKind`,  <N, (A^T c)_row> = wanted,
and one for every intercept. With room_j the way from a multiplier to the end of its interval, sum (c_j / room_j)^2 is least. Tasks that
no direction and no intercept has in common are systems of their own. All are consistent, however few ranks the inputs have: where
multipliers are feasible, c = -u solves them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import lapack
from scipy.sparse.csgraph import connected_components

from mtldsl.compile.normal_form import Blocks, LossTerm
from mtldsl.proof.free_directions import RowKind
from mtldsl.system.long_calls import lstsq

__all__ = ["Member", "change_least", "member_of"]

#: numbers of a system up to which least squares take an orthogonal factorization
_LARGE = 200_000

#: a Gram matrix whose reciprocal condition number is smaller goes by a decomposition that bears singular ones
_SINGULAR = 1e-9


@dataclass(frozen=True, eq=False)
class Member:
    """A loss of the block W, whose tasks predict by inputs @ W @ right."""

    index: int
    loss: LossTerm
    left: Any
    right: sparse.csr_array  # (m, tasks of the loss), with the map's coefficient

    def inputs(self, i: int) -> np.ndarray:
        X = self.loss.tasks.inputs[i]
        X = X if self.left is None else X @ self.left
        return X.toarray() if sparse.issparse(X) else np.asarray(X, float)


def member_of(loss: LossTerm, index: int, block: str, n_tasks: int, u) -> Member | None:
    """The loss as a member; None where it is of another block, or its multipliers are not plain numbers of rows in memory."""
    entries = [entry for entry in loss.map.entries if entry.block == block]
    if len(entries) != 1 or not loss.tasks.in_memory or type(u) is not np.ndarray:
        return None
    right = sparse.eye_array(n_tasks) if entries[0].right is None else entries[0].right
    return Member(index, loss, entries[0].left, sparse.csr_array(entries[0].coefficient * right))


@dataclass(frozen=True, eq=False)
class _Unit:
    """One task of one loss: its multipliers' place and room, and its part in every direction."""

    member: Member
    task: int
    room: np.ndarray
    part: np.ndarray  # (directions of all kinds,)


def change_least(
    members: list[Member], kinds: list[RowKind], residual: Blocks, block: str, u: list[np.ndarray]
) -> dict[int, np.ndarray]:
    """{index of a loss: what to add to its multipliers}, so that  N^T (residual + A^T change) = 0  on every row, and 0 on intercepts."""
    directions = sparse.hstack([kind.basis for kind in kinds], format="csr")
    owner = np.repeat(np.arange(len(kinds)), [kind.basis.shape[1] for kind in kinds])
    changes = {one.index: np.zeros(u[one.index].size) for one in members}
    units = []
    for one in members:
        offsets, room = one.loss.tasks.offsets, one.loss.room(u[one.index])
        parts = (one.right.T @ directions).toarray()
        for i in range(one.loss.tasks.n_tasks):
            units.append(_Unit(one, i, room[offsets[i] : offsets[i + 1]], parts[i]))
    for together in _components(units):
        for unit, change in zip(
            together, _solved(together, directions, owner, kinds, residual, block), strict=True
        ):
            first = unit.member.loss.tasks.offsets[unit.task]
            changes[unit.member.index][first : first + change.size] = change
    return changes


def _components(units: list[_Unit]) -> list[list[_Unit]]:
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
    found: list[list[_Unit]] = [[] for _ in range(count)]
    for unit, one in zip(units, label.tolist(), strict=True):
        found[one].append(unit)
    return found


def _solved(together, directions, owner, kinds, residual, block) -> list[np.ndarray]:
    """The change of every unit: of the least t with  Z^T t = wanted  and sums of intercepts in  E^T t, change = room t."""
    used = np.flatnonzero(np.any([unit.part != 0.0 for unit in together], axis=0))
    wanted = [-(residual[block][kinds[owner[c]].rows] @ directions[:, [c]].toarray().ravel()) for c in used]
    wanted = np.concatenate([*wanted, np.zeros(0)])
    squares, designs, firsts = np.zeros(wanted.size), [], []
    for unit in together:
        X = unit.member.inputs(unit.task)
        Z = np.hstack([X[:, kinds[owner[c]].rows] * unit.part[c] for c in used] + [np.zeros((len(X), 0))])
        squares += np.einsum("ij,ij->j", Z, Z)
        designs.append(Z * unit.room[:, None])
    length = np.sqrt(squares)
    length[length == 0.0] = 1.0
    wanted = wanted / length
    for Z in designs:
        Z /= length
    by_task: dict[int, list[int]] = {}
    for k, unit in enumerate(together):
        by_task.setdefault(unit.task, []).append(k)
    # intercepts first: what their sums ask for, and designs without what they see
    firsts = [np.zeros(unit.room.size) for unit in together]
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
        alive = s > _SINGULAR * s.max(initial=0.0)
        Q, s, Vt = Q[:, alive], s[alive], Vt[alive]
        first = Q @ ((Vt @ -np.array([residual[name][0, task] for name in names])) / s)
        parts = np.split(Q, ends)
        for k, part in zip(some, np.split(first, ends), strict=True):
            firsts[k] = part
            wanted = wanted - designs[k].T @ part
        seen = sum(part.T @ designs[k] for k, part in zip(some, parts, strict=True))
        for k, part in zip(some, parts, strict=True):
            designs[k] -= part @ seen
    return [
        unit.room * (first + t)
        for unit, first, t in zip(together, firsts, _least_squares(designs, wanted), strict=True)
    ]


def _least_squares(designs: list[np.ndarray], wanted: np.ndarray) -> list[np.ndarray]:
    """t of least norm with  sum_k designs[k]^T t_k = wanted.

    Large designs go by their Gram matrix, less exact, and the rounds refine it.
    """
    rows = [len(Z) for Z in designs]
    if wanted.size == 0:
        return [np.zeros(n) for n in rows]
    if sum(rows) * wanted.size <= _LARGE or sum(rows) < wanted.size:
        Z = np.vstack(designs)
        if Z.size <= _LARGE:
            t = np.linalg.lstsq(Z.T, wanted, rcond=None)[0]
        else:  # the same change, of a Gram matrix of the rows
            t = _solution(Z @ Z.T, Z @ wanted)
        return np.split(t, np.cumsum(rows)[:-1])
    by = _solution(sum(Z.T @ Z for Z in designs), wanted)
    return [Z @ by for Z in designs]


def _solution(gram, wanted) -> np.ndarray:
    """gram^-1 wanted by Cholesky, in an eighth of the time of the decomposition that a matrix near a singular one needs."""
    factor, failed = lapack.dpotrf(gram, lower=True)
    if not failed and lapack.dpocon(factor, np.linalg.norm(gram, 1), uplo="L")[0] > _SINGULAR:
        return lapack.dpotrs(factor, wanted, lower=True)[0]
    return lstsq(gram, wanted, len(gram) * np.finfo(float).eps)
