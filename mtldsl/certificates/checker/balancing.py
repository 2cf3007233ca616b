"""Multipliers of losses that obey the stationarity equation exactly where no other term takes what is left of it.

Directions n of weights that no function sees (`row_spans`) and that intercepts move ask for  <n, r(u)> = 0.  Let P be what these directions do to
predictions, and D >= 0 any weights: where G = P^T D P is regular, u - D P G^-1 rho  obeys it, rho = P^T u + ... being what was missing. Both
are shown here for an enclosure of G: the new multipliers are real numbers, known to an enclosure, and no nearer to an end of their domain
than they had room for. A direction whose predictions are those of others, in fractions, asks for nothing of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.csgraph import connected_components

from mtldsl.certificates.checker.interval import Interval, down, fractions, join_intervals, product, up
from mtldsl.certificates.checker.limits import SETTINGS
from mtldsl.certificates.checker.loss_formulas import RowLossFormula

# --------------------------------------------------------------------------------------------------------------
# Linear systems whose matrix and right side are known to enclosures: an enclosure of the solution, which exists.


def approximate_inverse(matrix: Interval) -> tuple[np.ndarray, Interval] | None:
    """Return an approximate inverse R, and a bound q: |y - R matrix y| <= q max |R matrix y| for all y; None unless `matrix` is shown to be regular.

    With E = I - R matrix and ||E|| < 1 in the norm of row sums, y = R matrix y + E y, and  ||E y|| <= ||E|| / (1 - ||E||) ||R matrix y||.
    """
    try:
        R = np.linalg.inv(matrix.middle)
    except np.linalg.LinAlgError:
        return None
    if not np.isfinite(R).all():
        return None
    off = abs(product(matrix.like(R), matrix) - np.eye(len(R))).sum(axis=1).max()
    return (R, off / (1.0 - off)) if off.high < 0.5 else None


def enclose_solution(matrix: Interval, right: Interval) -> Interval | None:
    """Enclose the y with  matrix @ y = right, (k, k) and (k, c); None where it is not shown that there is one."""
    found = approximate_inverse(matrix)
    if found is None:
        return None
    R, q = found
    guess = product(matrix.like(R), right)
    slack = (abs(guess).max(axis=0) * q).high[None, :]
    return guess + Interval(-slack, slack)


def pivots(G: np.ndarray) -> tuple[np.ndarray, int]:
    """The order of a pivoted Cholesky decomposition, and its rank."""
    if not G.any() or not np.isfinite(G).all():
        return np.arange(len(G)), 0
    _, order, rank, _ = linalg.lapack.dpstrf(G, tol=SETTINGS.pivot_share * float(np.diag(G).max()), lower=1)
    return order - 1, int(rank)


@dataclass(frozen=True, eq=False)
class _RowDirection:
    """Weights of one row of a block, by task; of an intercept, whose row is -1 - task."""

    block: str
    row: int
    by_task: np.ndarray


def balance_multipliers(losses, kinds, seen, intercepts, u, residual, exact: bool):
    """(new multipliers, {(block, row)} where the equation holds on all directions; of an intercept (block, -1 - task)).

    kinds      : {block: its `SpanRowKind`s}
    seen       : of (block, row, weights by task), whether other multipliers may see it: then directions that move predictions alike may
                 differ in what they ask for
    intercepts : {block: whether its equation holds, by task}
    """
    directions = [
        _RowDirection(name, int(row), n)
        for name, own in kinds.items() for kind in own for row in kind.rows for n in kind.basis.T
    ]  # fmt: skip
    missing = [(residual[one.block][one.row] * one.by_task).sum() for one in directions]
    for name, held in intercepts.items():
        for i in range(len(held)):
            directions.append(_RowDirection(name, -1 - i, np.eye(len(held))[i]))
            missing.append(residual[name].like(0.0) if held[i] else residual[name][0, i])
    done = {
        (name, int(row)) for name, own in kinds.items() for kind in own if not kind.basis.shape[1] for row in kind.rows
    }  # fmt: skip
    u = list(u)
    failed: set = set()
    for group in _groups(directions, losses):
        own = [directions[e] for e in group]
        if all(one.row < 0 and intercepts[one.block][-1 - one.row] for one in own):
            continue
        rho = join_intervals([missing[e].reshape(1) for e in group])
        moved = _moved(losses, own, rho, seen, u, exact)
        rows = {(one.block, one.row) for one in own}
        if moved is None:
            failed |= rows
        else:
            done |= rows
            for t, where, new in moved:
                u[t] = u[t].with_entries(where, new)
    return u, done - failed


def _factor(loss, one: _RowDirection) -> np.ndarray | None:
    """Return what the direction does to predictions of every task, times a column of the inputs, exactly; None where it does not."""
    if one.row < 0:
        return one.by_task if one.block in loss.intercepts else None
    alike = isinstance(loss.part, RowLossFormula) and bool(np.all(one.by_task == one.by_task[0]))
    own = [
        Fraction(e["coefficient"])
        for e in loss.map.entries  # multipliers of all classes sum to zero in every row
        if e["block"] == one.block and not (alike and e["right"] is None)
    ]
    return _exact_multiples(one.by_task, sum(own, Fraction(0))) if own else None


def _exact_multiples(numbers: np.ndarray, coefficient: Fraction) -> np.ndarray:
    """Return their products; as Fractions, unless it is a power of two that multiplies them."""
    near = float(coefficient)
    if near == coefficient and abs(math.frexp(near)[0]) == 0.5:
        return numbers * near
    return fractions(numbers) * coefficient


def _enclose(numbers: np.ndarray, like: Interval) -> Interval:
    """Return the numbers, of which some may be Fractions, in the arithmetic of an interval."""
    if like.exact or numbers.dtype != object:
        return like.like(numbers)
    near = numbers.astype(float)
    is_exact = np.array([Fraction(a) == b for a, b in zip(near.tolist(), numbers.tolist(), strict=True)])
    return Interval(np.where(is_exact, near, down(near)), np.where(is_exact, near, up(near)))


def _groups(directions, losses):
    """Directions that tasks have in common, by their numbers."""
    places, who, at = [], [], 0
    for loss in losses:
        for number, one in enumerate(directions):
            factor = _factor(loss, one)
            if factor is not None:
                tasks = np.flatnonzero(factor)
                places.append(tasks + at)
                who.append(np.full(len(tasks), number))
        at += loss.map.shape[1]
    K, none = len(directions), np.zeros(0, dtype=int)
    who, places = np.concatenate([none, *who]), np.concatenate([none, *places]) + K
    graph = sparse.coo_array((np.ones(len(who)), (who, places)), shape=(K + at, K + at))
    label = connected_components(graph, directed=False)[1][:K]
    order = np.argsort(label, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(label[order])) + 1)


@dataclass(frozen=True, eq=False)
class _BalancedTask:
    """One task of a loss: its inputs Z in the columns that directions use (the last one of ones), and F, so that predictions are Z F y."""

    loss: int
    where: slice
    inputs: np.ndarray
    of: np.ndarray  # numbers of the directions
    column: np.ndarray  # of Z, for each of them
    factor: np.ndarray
    D: np.ndarray
    room: np.ndarray


def _parts(losses, own, u, exact) -> list[_BalancedTask] | None:
    """None where a loss has a map of a form that is not looked into, or all is too large."""
    parts, work = [], 0
    if len(own) > SETTINGS.directions:
        return None
    for t, loss in enumerate(losses):
        factors = [
            (number, found) for number, one in enumerate(own) if (found := _factor(loss, one)) is not None
        ]
        if not factors:
            continue
        blocks = {own[number].block for number, _ in factors}
        if any(
            e["block"] in blocks and (e["left"] is not None or e["right"] is not None)
            for e in loss.map.entries
        ):
            return None
        room = loss.part.room(u[t])
        cap = float(np.abs(u[t].middle).max(initial=0.0)) or 1.0
        D = np.minimum(np.where(room > SETTINGS.room_share * cap, room, 0.0) / cap, 1.0)
        for i in range(loss.map.shape[1]):
            mine = [(number, max(own[number].row, -1), found[i]) for number, found in factors if found[i]]
            if not mine:
                continue
            X, where = loss.data.inputs_of(i), loss.data.rows[i]
            columns = sorted({row for _, row, _ in mine if row >= 0})
            work += X.shape[0] * (len(columns) + 1) ** 2
            if work > (SETTINGS.fraction_flops if exact else SETTINGS.float_flops):
                return None
            Z = X[:, columns]
            Z = np.column_stack([Z.toarray() if sparse.issparse(Z) else Z, np.ones(X.shape[0])])
            at = {row: j for j, row in enumerate(columns)} | {-1: len(columns)}
            parts.append(
                _BalancedTask(
                    t, where, Z, np.array([n for n, _, _ in mine]), np.array([at[row] for _, row, _ in mine]),
                    np.array([f for _, _, f in mine]), D[where], room[where],
                )
            )  # fmt: skip
    return parts


def _moved(losses, own, rho: Interval, seen, u, exact: bool):
    """[(loss, where, new multipliers)]; None where it is not shown that there are any."""
    parts = _parts(losses, own, u, exact)
    if parts is None:
        return None
    K = len(own)
    low = rho.like(np.zeros((K, K)))
    G = low
    for part in parts:
        Z = rho.like(part.inputs)
        H = product(Z.T, Z * part.D[:, None])
        f = _enclose(part.factor, rho)
        block = H[np.ix_(part.column, part.column)] * f.reshape(-1, 1) * f.reshape(1, -1)
        where = np.ix_(part.of, part.of)
        G = G.with_entries(where, G[where] + block)
    diagonal = np.diag(G.middle)
    scale = np.exp2(-np.round(np.log2(np.where(diagonal > 0, diagonal, 1.0)) / 2))
    G, rho = G * scale[:, None] * scale[None, :], rho * scale
    order, rank = pivots(G.middle)
    free, bound = np.sort(order[:rank]), order[rank:]
    found = approximate_inverse(G[np.ix_(free, free)]) if len(free) else (np.zeros((0, 0)), rho.like(0.0))
    if found is None:
        return None
    if len(bound):
        shares = np.linalg.lstsq(G.middle[np.ix_(free, free)], G.middle[np.ix_(free, bound)], rcond=None)[0]
        shares = shares * scale[free][:, None] / scale[bound]
        if not all(
            _is_sum(
                parts,
                free,
                j,
                shares[:, c],
                lambda e: own[e].row >= 0 and seen(own[e].block, own[e].row, own[e].by_task),
            )
            for c, j in enumerate(bound)
        ):
            return None
    return _steps(parts, free, scale, found, -rho, u) if len(free) else []


def _steps(parts, free, scale, inverse, right: Interval, u):
    """D P y for the y of the free directions; the inverse comes first, since what it makes large cancels in D P R."""
    R, q = inverse
    place = np.full(len(scale), -1)
    place[free] = np.arange(len(free))
    right = right[free].reshape(-1, 1)
    slack = (abs(product(right.like(R), right)).max() * q).high
    moved = []
    for part in parts:
        able, used = np.flatnonzero(part.D), np.flatnonzero(place[part.of] >= 0)
        at = part.column[used], place[part.of[used]]
        F = right.like(np.zeros((part.inputs.shape[1], len(free))))
        scaled = right.like(scale[part.of[used]])  # powers of two
        F = F.with_entries(at, scaled * _enclose(part.factor[used], right))
        P = product(right.like(part.inputs[able]) * part.D[able][:, None], F)
        step = product(product(P, right.like(R)), right)[:, 0]
        beside = abs(P).sum(axis=1) * Interval(slack, slack)
        step = step + Interval(-beside.high, beside.high)
        if not np.all(np.asarray(abs(step).high <= part.room[able], bool)):
            return None
        where = able + part.where.start
        moved.append((part.loss, where, u[part.loss][where] + step))
    return moved


def _is_sum(parts, free, j: int, shares: np.ndarray, seen) -> bool:
    """Tell whether the predictions of direction j are a sum of those of free ones, in fractions, and no multiplier of a function tells them apart.

    The shares are ratios of small whole numbers, each direction in the unit of its largest entry.
    """
    units = {}
    for part in parts:
        for number, column, factor in zip(part.of, part.column, part.factor, strict=True):
            largest = float(part.inputs[np.argmax(np.abs(part.inputs[:, column])), column])
            value = Fraction(largest) * Fraction(factor)  # float64 may hold no such product
            if abs(value) > abs(units.get(number, 0)):
                units[number] = value
    if seen(j):
        return False
    if j not in units:
        return True  # it moves no prediction
    found = {}
    for e, share in zip(free, shares, strict=True):
        if e not in units:
            continue
        if not np.isfinite(share):
            return False
        share = Fraction(float(share)) * units[e] / units[j]
        ratio = share.limit_denominator(64)
        if abs(ratio - share) * 10_000 > max(1, abs(share)):
            return False
        if ratio and seen(e):
            return False
        if ratio:
            found[e] = ratio
    for part in parts:
        chosen = [p for p, number in enumerate(part.of) if number == j or number in found]
        if not chosen:
            continue
        rows = np.unique(part.inputs[:, part.column[chosen]], axis=0)
        if rows.size > SETTINGS.compared_entries:
            return False
        weights = []
        for p in chosen:
            number = part.of[p]
            own = Fraction(-1) if number == j else found[number]
            weights.append(own * Fraction(part.factor[p]) / units[number])
        for row in rows.tolist():
            if sum(w * Fraction(x) for w, x in zip(weights, row, strict=True) if x):
                return False
    return True
