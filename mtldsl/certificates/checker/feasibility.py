"""Repair of a point that misses constraints by rounding or tolerance: a real point within them, of which an enclosure is known.

Balls are drawn towards their centres, by more and more. Linear constraints B x = t, B x >= t that are missed are met by the least move,
x + B^T y with  B B^T y = t - B x,  which has a solution where B B^T is regular, shown by an enclosure. What this move touches otherwise is
looked at, and met as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from mtldsl.certificates.checker.balancing import enclose_solution, pivots
from mtldsl.certificates.checker.function_formulas import (
    BallFormula,
    ComparisonFormula,
    EqualToFormula,
    SimplexFormula,
)
from mtldsl.certificates.checker.interval import (
    TINY,
    UNIT,
    Interval,
    gamma,
    join_intervals,
    product,
    round_to_float,
)
from mtldsl.certificates.checker.limits import SETTINGS
from mtldsl.certificates.checker.terms import picks


@dataclass(frozen=True, eq=False)
class _LinearConstraints:
    """Linear constraints  side (B x + offset - target) >= 0, or = 0 where side is 0; of all blocks, one after the other."""

    B: Any
    offset: Interval | None
    target: Interval
    side: float
    there: np.ndarray


def made_feasible(x, sets) -> tuple[dict, float]:
    """(the point, an upper bound of its largest violation). `sets` have a `part` with formulas and a `map`."""
    if not sets:
        return x, 0.0
    best, least = x, _worst(sets, x)
    if least == 0.0:
        return best, least
    blocks = _BlockVector(x)
    linear, others, balls = [], [], []
    for s in sets:
        if isinstance(s.part, BallFormula):
            balls.append(s)
        elif (rows := _rows_of(s, blocks, x)) is not None:
            linear += rows
        else:
            others.append(s)
    exactly = _drawn_exactly(balls, linear, blocks)
    for share in SETTINGS.ball_shares if balls else SETTINGS.ball_shares[:1]:
        drawn = dict(x)
        for s in balls:
            _draw(s, drawn, share)
        moved, missed = _met(linear, blocks, drawn)
        own = others if exactly and not share else [*others, *balls]
        found = max(missed, _worst(own, moved))
        if found < least:
            best, least = moved, found
        if least == 0.0:
            break
    return best, least


def _drawn_exactly(balls, linear, blocks) -> bool:
    """Tell whether drawing points into balls is all that is done to their blocks, and one draw undoes no other."""
    names = [s.map.entries[0]["block"] for s in balls]
    alone = all(
        _is_whole(s.map) and (s.map.offset is None or names.count(name) == 1)
        for s, name in zip(balls, names, strict=True)
    )
    return alone and not any(blocks.touches(one.B, names) for one in linear)


def _worst(sets, x) -> float:
    """An upper bound of the largest violation; infinite where float64 holds no argument, of which comparisons say nothing."""
    worst = 0.0
    for s in sets:
        argument = s.map.forward(x)
        high = float(round_to_float(s.part.violation(argument).high, 1)) if argument.is_finite else np.inf
        worst = max(worst, np.inf if np.isnan(high) else high)
    return worst


class _BlockVector:
    """All blocks as one vector."""

    def __init__(self, x):
        self.shapes, self.starts, at = {}, {}, 0
        for name, one in x.items():
            self.shapes[name], self.starts[name] = one.shape, at
            at += int(np.prod(one.shape))
        self.size = at

    def whole(self, map):
        """The matrix of a map, or None where float64 does not hold its entries."""
        total, entries, whole = sparse.csr_array((int(np.prod(map.shape)), self.size)), 0, True
        for e in map.entries:
            plain = (picks(e["left"]) is not None) + (picks(e["right"], by_columns=True) is not None)
            if plain + (e["coefficient"] in (1.0, -1.0)) < 2:
                return None
            p, m = self.shapes[e["block"]]
            left = sparse.eye_array(p) if e["left"] is None else sparse.csr_array(e["left"])
            right = sparse.eye_array(m) if e["right"] is None else sparse.csr_array(e["right"])
            own = sparse.coo_array(sparse.kron(left, right.T) * e["coefficient"])
            own = sparse.coo_array(
                (own.data, (own.coords[0], own.coords[1] + self.starts[e["block"]])), shape=total.shape
            )
            entries, whole = (
                entries + own.nnz,
                whole and bool(np.all(own.data == np.clip(np.round(own.data), -1e9, 1e9))),
            )
            total = total + own.tocsr()
        return total if whole or total.nnz == entries else None  # sums of whole numbers are exact

    def touches(self, B, names) -> bool:
        used = np.unique(B.indices)
        return any(
            np.any((used >= self.starts[name]) & (used < self.starts[name] + int(np.prod(self.shapes[name]))))
            for name in names
        )

    def added(self, x, step: Interval, touched: np.ndarray) -> dict:
        """The point with these entries moved by a step."""
        whole = self.flat(x)
        whole = whole.with_entries(touched, whole[touched] + step[touched])
        return {
            name: whole[self.starts[name] : self.starts[name] + int(np.prod(one.shape))].reshape(*one.shape)
            for name, one in x.items()
        }

    def flat(self, x) -> Interval:
        return join_intervals(one.reshape(-1) for one in x.values())


def _rows_of(s, blocks: _BlockVector, x) -> list[_LinearConstraints] | None:
    """The linear constraints of a set; None of one that has a form which is not looked into."""
    B = blocks.whole(s.map)
    if B is None:
        return None
    some = next(iter(x.values()))
    offset = None if s.map.offset is None else s.map.offset.reshape(-1)
    if isinstance(s.part, SimplexFormula):
        if not _is_whole(s.map) or s.map.offset is not None:
            return None
        p, m = s.map.shape
        zero, all_there = some.like(np.zeros(p * m)), np.ones(p * m, dtype=bool)
        sums = sparse.csr_array(sparse.kron(np.ones((1, p)), sparse.eye_array(m)) @ B)
        total = s.part.total.broadcast((m,))
        return [
            _LinearConstraints(B, None, zero, 1.0, all_there),
            _LinearConstraints(sums, None, total, 0.0, all_there[:m]),
        ]
    if not isinstance(s.part, ComparisonFormula):
        return None
    side = 0.0 if isinstance(s.part, EqualToFormula) else s.part.side
    return [
        _LinearConstraints(B, offset, s.part.bound.reshape(-1), side, np.asarray(s.part.there).reshape(-1))
    ]


def _is_whole(map) -> bool:
    """Tell whether it is a block as it stands, but for an offset."""
    (e, *more) = map.entries
    return not more and e["left"] is None and e["right"] is None and e["coefficient"] == 1.0


def _draw(s, x, share: float) -> None:
    """The entries that a ball sees, towards the point where its argument is zero."""
    argument = s.map.forward(x)
    size, radius = s.part.of.value(argument), s.part.radius
    if (size * (1.0 + 2.0 * share) if share else size).high <= radius.low:
        return
    factor = radius / Interval(size.high, size.high) * (1.0 - share)
    picked = s.map.picked()
    if picked is not None:
        name, c, rows, columns = picked
        where = np.ix_(
            *(np.arange(n)[picked] for n, picked in zip(x[name].shape, (rows, columns), strict=True))
        )
        new = argument * factor
        new = new if s.map.offset is None else new - s.map.offset
        x[name] = x[name].with_entries(where, new if c == 1.0 else new / c)
    elif s.map.offset is None:
        for e in s.map.entries:
            x[e["block"]] = x[e["block"]] * factor


def _met(linear: list[_LinearConstraints], blocks: _BlockVector, x) -> tuple[dict, float]:
    """(the point moved to where linear constraints hold, an upper bound of what is still missed)."""
    if not linear:
        return x, 0.0
    B = sparse.csr_array(sparse.vstack([one.B for one in linear]))
    target, there = (
        join_intervals([one.target if one.offset is None else one.target - one.offset for one in linear]),
        np.concatenate([one.there for one in linear]),
    )
    side = np.concatenate([np.full(one.B.shape[0], one.side) for one in linear])
    active = there & (side == 0.0)
    start, moved = blocks.flat(x), x
    value = _image(B, start)
    missing = target - value
    missed = _missed(value, target, side, there)
    active |= np.asarray(missed > 0, bool)
    for _ in range(SETTINGS.added_rounds):
        chosen = np.flatnonzero(active)
        if not len(chosen):
            return moved, 0.0
        y = _multipliers(B[chosen], missing[chosen], target[chosen])
        if y is None:
            break
        step = product(B[chosen].T, y.reshape(-1, 1))[:, 0]
        moved = blocks.added(x, step, np.unique(B[chosen].indices))
        new = np.asarray(_missed(_image(B, blocks.flat(moved)), target, side, there & ~active) > 0, bool)
        if not new.any():
            return moved, 0.0
        active |= new
    return x, float(np.max(round_to_float(missed, 1), initial=0.0))


def _image(B, x: Interval) -> Interval:
    """B x; of rows that pick one entry this entry, without rounding."""
    found = product(B, x.reshape(-1, 1))[:, 0]
    single = np.flatnonzero(np.diff(B.indptr) == 1)
    single = single[B.data[B.indptr[single]] == 1.0]
    return found.with_entries(single, x[B.indices[B.indptr[single]]])


def _missed(value: Interval, target: Interval, side, there) -> np.ndarray:
    """Upper bounds of what is missed: 0 where a constraint holds, infinite where that is not known."""
    missing = target - value
    held = np.where(side > 0, value.low >= target.high, (side < 0) & (value.high <= target.low))
    size = np.where(side == 0.0, abs(missing).high, np.where(side > 0, missing.high, -missing.low))
    size = np.where(size == size, np.maximum(size, 0), np.inf)  # NaN is not itself
    return np.where(there & ~np.asarray(held, bool), size, 0)


def _multipliers(B, right: Interval, target: Interval) -> Interval | None:
    """Enclose a y with B B^T y = right = target - B x; None where it is not shown that there is one."""
    gram, sizes = sparse.csr_array(B @ B.T), sparse.csr_array(abs(B) @ abs(B).T)
    longest = int(np.diff(B.indptr).max(initial=0))
    slack, lost = (
        gamma(longest) + 2.0 * UNIT,
        (longest + 1) * TINY,
    )  # products that underflow lose more than a share
    entries = sparse.csr_array(
        (np.ones(B.nnz), B.indices, B.indptr), shape=B.shape
    )  # of which no sum is zero
    parts, label = connected_components(entries @ entries.T, directed=False)
    low, high = right.low.copy(), right.high.copy()
    by_part = np.argsort(label, kind="stable")
    groups = np.split(by_part, np.flatnonzero(np.diff(label[by_part])) + 1)
    single = np.array([g[0] for g in groups if len(g) == 1], dtype=int)
    if len(single):
        diagonal = gram.diagonal()[single]
        off = slack * diagonal + lost
        if not (diagonal > off).all():
            return None
        y = right[single] / _around(right, diagonal, off)
        low[single], high[single] = y.low, y.high
    for g in groups:
        if len(g) == 1:
            continue
        if len(g) > SETTINGS.equation_rows:
            return None
        order, rank = pivots(gram[g][:, g].toarray())
        own, g = g, g[np.sort(order[:rank])]
        beside = np.setdiff1d(own, g)
        if len(beside) and not _follow(B, target, g, beside, gram):
            return None
        low[beside] = high[beside] = right.like(0.0).low
        block = gram[g][:, g].toarray()
        found = enclose_solution(
            _around(right, block, slack * sizes[g][:, g].toarray() + lost), right[g].reshape(-1, 1)
        )
        if found is None:
            return None
        low[g], high[g] = found.low[:, 0], found.high[:, 0]
    return Interval(low, high)


def _follow(B, target: Interval, rows, beside, gram) -> bool:
    """Tell whether equations are sums of others, in fractions: of ratios of small whole numbers."""
    shares = np.linalg.lstsq(gram[rows][:, rows].toarray(), gram[rows][:, beside].toarray(), rcond=None)[0]
    for k, j in enumerate(beside):
        ratios = [Fraction(float(share)).limit_denominator(64) for share in shares[:, k]]
        used = [(e, ratio) for e, ratio in zip(rows, ratios, strict=True) if ratio]
        total: dict = {}
        for e, ratio in [*used, (j, Fraction(-1))]:
            if target.low[e] != target.high[e]:
                return False
            own = slice(B.indptr[e], B.indptr[e + 1])
            entries = zip(B.indices[own].tolist(), B.data[own].tolist(), strict=True)
            for column, value in [*entries, (-1, target.low[e])]:
                total[column] = total.get(column, 0) + ratio * Fraction(value)
        if any(total.values()):
            return False
    return True


def _around(like: Interval, middle, slack) -> Interval:
    if not like.exact:
        return Interval(middle - slack, middle + slack)
    a, b = like.like(middle), like.like(slack)
    return Interval((a - b).low, (a + b).high)
