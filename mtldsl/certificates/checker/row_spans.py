"""Row spans of a block: what functions take of a residual, and the directions of weights that none of them sees.

A function of `W[rows] @ R` may change its multipliers by C E^T, any C, without leaving the cone of its conjugate's domain: E is `part.span(row)`.
So it takes what lies in the span of R E. On the directions N with (R E)^T N = 0 for all functions, multipliers of losses stand alone. N is
whole numbers here, and that equation is looked at in fractions.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import linalg

from mtldsl.certificates.checker.balancing import enclose_solution
from mtldsl.certificates.checker.interval import Interval, product
from mtldsl.certificates.checker.limits import SETTINGS
from mtldsl.certificates.checker.terms import as_dense, picks


@dataclass(frozen=True, eq=False)
class SpanRowKind:
    """Rows of a block in which the same functions take part.

    rows   : their numbers
    basis  : (m, q) whole numbers N: what no function sees
    span   : (m, s) what the functions take, m = q + s columns in all
    takers : (function, where the rows stand in its argument, E, the columns of E in use, the columns of `span` that are R times these)
    """

    rows: np.ndarray
    basis: np.ndarray
    span: np.ndarray
    takers: tuple[tuple[int, np.ndarray, np.ndarray, np.ndarray, slice], ...]

    def within(self, rows) -> SpanRowKind:
        """The same, of some of the rows."""
        kept = np.isin(self.rows, rows)
        takers = tuple((k, places[kept], E, used, own) for k, places, E, used, own in self.takers)
        return SpanRowKind(self.rows[kept], self.basis, self.span, takers)


def row_kinds(name: str, functions, untaken: np.ndarray) -> list[SpanRowKind]:
    """The rows of a block that have entries which no function takes alone; rows whose directions cannot be told are in none."""
    p, m = untaken.shape
    if m > SETTINGS.block_tasks:
        return []
    parts = [(k, *found) for k, f in enumerate(functions) if (found := _of_rows(f.map, name)) is not None]
    kinds: dict[tuple, list] = {}
    for row in np.flatnonzero(untaken.any(axis=1)):
        spans, key = [], []
        for k, rows, coefficient, right in parts:
            place = rows.get(int(row))
            E = None if place is None else functions[k].part.span(place)
            if E is not None and E.shape[1]:
                spans.append((k, place, E, coefficient, right))
                key.append((k, E.shape, E.tobytes()))
        kinds.setdefault(tuple(key), []).append((row, spans))
    found = [_kind(members, m) for members in kinds.values()]
    return [one for one in found if one is not None]


def seen_by_others(functions, v, name: str, row: int, by_task: np.ndarray) -> bool:
    """Tell whether multipliers of functions that mix rows or blocks, or are not in `span`, may see a direction of weights."""
    for f, dual in zip(functions, v, strict=True):
        entries = [e for e in f.map.entries if e["block"] == name]
        if not entries or (f.part.is_spanned and _of_rows(f.map, name) is not None):
            continue
        images = [_image_of(e, row, by_task, f.map.shape) for e in entries]
        values = [value for value, _ in images if value is not None]
        whole = len(values) == len(images)  # then they cancel exactly
        reached = sum(values) != 0 if whole else np.any([support for _, support in images], axis=0)
        if np.any(reached & np.asarray((dual.low != 0) | (dual.high != 0), bool)):
            return True
    return False


def _image_of(e, row: int, by_task: np.ndarray, shape):
    """(what a map's entry makes of weights in one row, None where it is not of whole numbers; where that may not be zero)."""
    p = shape[0]
    left = (np.arange(p) == row).astype(float) if e["left"] is None else as_dense(e["left"])[:, row]
    right = np.eye(len(by_task)) if e["right"] is None else as_dense(e["right"])
    support = np.outer(left != 0, ((by_task != 0).astype(float) @ (right != 0).astype(float)) > 0)
    numbers = (left, right, by_task, np.array(e["coefficient"]))
    if not all(np.all((one == np.round(one)) & (np.abs(one) < 1e3)) for one in numbers):
        return None, support
    return np.outer(left, by_task @ right) * e["coefficient"], support


def _of_rows(map, name: str):
    """({row of the block: row of the argument}, coefficient, right factor) of a function of rows of this one block."""
    if len(map.entries) != 1 or map.entries[0]["block"] != name or map.entries[0]["coefficient"] == 0:
        return None
    (e,) = map.entries
    rows = picks(e["left"])
    if rows is None:
        return None
    rows = range(map.shape[0]) if isinstance(rows, slice) else rows.tolist()
    right = None if e["right"] is None else as_dense(e["right"])
    return {row: place for place, row in enumerate(rows)}, e["coefficient"], right


def _kind(members, m: int) -> SpanRowKind | None:
    rows = np.array([row for row, _ in members])
    takers, columns, at = [], [np.zeros((m, 0))], 0
    for which, (k, _, E, _, right) in enumerate(members[0][1]):
        T = E if right is None else _exact_product(right, E)
        if T is None:
            return None
        takers.append((k, np.array([spans[which][1] for _, spans in members]), E, slice(at, at + T.shape[1])))
        columns.append(T)
        at += T.shape[1]
    span = np.hstack(columns)
    if not at:
        return SpanRowKind(rows, np.eye(m), span, ())
    s, order = linalg.qr(span, mode="r", pivoting=True)[0:2]
    size = np.abs(np.diag(s))
    rank = int(np.count_nonzero(size > SETTINGS.zero_value_share * size.max(initial=0.0)))
    basis = _unseen(span, rank)
    if basis is None:
        return None
    chosen = np.sort(order[:rank])
    kept, at = [], 0
    for k, places, E, own in takers:
        mine = chosen[(chosen >= own.start) & (chosen < own.stop)]
        kept.append((k, places, E, mine - own.start, slice(at, at + len(mine))))
        at += len(mine)
    return SpanRowKind(rows, basis, span[:, chosen], tuple(kept))


def _exact_product(A, B) -> np.ndarray | None:
    """A @ B where float64 has it exactly, else None."""
    exact = product(np.asarray(A, float), Interval.of(B, True))
    found = exact.low.astype(float)
    return (
        found
        if all(
            x == y == Fraction(z) for x, y, z in zip(exact.low.flat, exact.high.flat, found.flat, strict=True)
        )
        else None
    )


def _unseen(span: np.ndarray, rank: int) -> np.ndarray | None:
    """Whole numbers N (m, m - rank) with span^T N = 0, which fractions show; None where the guess is not right."""
    m = len(span)
    if rank == m:
        return np.zeros((m, 0))
    N = np.linalg.svd(span, full_matrices=True)[0][:, rank:]
    lead = linalg.qr(N.T, pivoting=True)[2][: m - rank]
    N = np.linalg.solve(N[lead].T, N.T).T
    for scale in (1.0, 2.0, 3.0, 4.0, 6.0, 12.0):
        whole = np.round(N * scale)
        if np.abs(N * scale - whole).max() < 1e-6:
            break
    else:
        return None
    for column in whole.T:
        seen = np.flatnonzero(column)
        for own in span[seen].T:
            if sum(Fraction(a) * int(b) for a, b in zip(own.tolist(), column[seen], strict=True) if a):
                return None
    return whole


def give_spans(kind: SpanRowKind, residual: Interval, v, functions) -> bool:
    """Let functions take a residual (rows, m) that is orthogonal to `basis` as real numbers: v is changed; False where it could not be."""
    T = kind.span
    if not T.shape[1]:
        return False
    t = residual.like(T)
    found = enclose_solution(product(t.T, t), product(t.T, residual.T))
    if found is None:
        return False
    for k, places, E, used, own in kind.takers:
        f = functions[k]
        C = -found[own].T / f.map.entries[0]["coefficient"]
        v[k] = v[k].with_entries(places, v[k][places] + product(C, E[:, used].T))
        f.part.taken(places, used, C / f.c)
    return True
