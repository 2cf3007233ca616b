"""Rows of tasks, and directions that separate them: found by a linear program or given, and proven in rational numbers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.proof.free_directions import RowKind

__all__ = ["Group", "Rows", "Way", "rows_of", "span_of", "ways_of"]

_EPS = float(np.finfo(float).eps)

#: Shares of tasks in a direction are whole numbers within this.
_WHOLE = 1e-9

#: Numbers of the rows that are looked at in rational arithmetic.
_MOST_EXACT = 100_000

#: Digits to which a direction is rounded, so that what should cancel does.
_DIGITS = (12, 6, 3)

#: A margin this small beside its terms is one that a linear program holds at zero.
_TIGHT = 1e-7

#: A prediction beyond which no loss that falls has anything left to lose in float64.
_FARTHEST = 1e8


@dataclass
class Rows:
    """Rows of one loss of a task: their inputs, the side to which a prediction may go (0: it must stay), and whether that lowers the loss."""

    X: Any
    side: np.ndarray
    strict: np.ndarray
    farthest: float


def span_of(loss, i: int) -> slice:
    return slice(int(loss.tasks.offsets[i]), int(loss.tasks.offsets[i + 1]))


def rows_of(loss, z: np.ndarray, i: int) -> Rows:
    span = span_of(loss, i)
    y = loss.tasks.targets[span]
    falls = loss.atom.falls(y)
    strict = np.zeros(len(y), bool) if falls is None else falls != 0
    side = falls if falls is not None else (y if loss.atom.labels == "sign" else np.zeros(len(y)))
    farthest = float(np.max((side * z[span])[strict], initial=0.0))
    return Rows(loss.tasks.inputs[i], np.asarray(side, float), strict, farthest)


@dataclass(frozen=True)
class Way:
    """A direction of the tasks that features may take: weights of every feature in `rows`, times `values` in each of `tasks`."""

    rows: np.ndarray
    tasks: np.ndarray
    values: np.ndarray

    def own(self, W: np.ndarray) -> np.ndarray:
        """(rows,) what weights have of it."""
        return W[np.ix_(self.rows, self.tasks)] @ self.values / (self.values @ self.values)

    def ends(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(low, high) of what it may be multiplied by where entries have these, which are 0 or infinite."""
        places, rises = np.ix_(self.rows, self.tasks), self.values > 0
        first = np.where(rises, low[places], -high[places]).max(axis=1)
        return first, np.where(rises, high[places], -low[places]).min(axis=1)


def ways_of(kinds: list[RowKind]) -> list[Way]:
    """Those in which tasks have whole shares, so that products with inputs are exact."""
    ways = []
    for kind in kinds:
        basis = sparse.csc_array(kind.basis)
        for c in range(basis.shape[1]):
            part = slice(basis.indptr[c], basis.indptr[c + 1])
            shares = basis.data[part] / basis.data[part][0]
            values = np.round(shares)
            if np.abs(shares - values).max() <= _WHOLE:
                ways.append(Way(kind.rows, basis.indices[part], values))
    return ways


class Group:
    """The rows of all losses of some tasks; a column for every feature of every way, and one for the intercept of every task."""

    def __init__(
        self,
        tasks: list[int],
        ways: list[Way],
        rows: list[Rows],
        owner: list[int],
        with_intercept: list[bool],
    ):
        parts = []
        for row, task, with_one in zip(rows, owner, with_intercept, strict=True):
            columns = [_times(row.X, way, task) for way in ways]
            ones = np.zeros((row.X.shape[0], len(tasks)))
            ones[:, tasks.index(task)] = with_one
            if len(tasks) > 1 or sparse.issparse(row.X):
                parts.append(sparse.hstack([*columns, sparse.csr_array(ones)], format="csr"))
            else:
                parts.append(np.hstack([*columns, ones]))
        stacked = sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.vstack(parts)
        self.X: Any = stacked
        self.side = np.concatenate([row.side for row in rows])
        self.strict = np.concatenate([row.strict for row in rows])
        self.owner = np.repeat(owner, [len(row.side) for row in rows])

    def direction(self, own: np.ndarray, low, high, others: bool, largest: int) -> np.ndarray | None:
        """The tasks' own weights where they will do (without `others`: on every sample), else what a linear program finds."""
        free = np.clip(own, low, high)
        if self.is_proven(free) and (others or (np.array_equal(free, own) and self.is_complete(free))):
            return free
        if not others or self.X.shape[0] * self.X.shape[1] > largest:
            return None
        found = self._program(low, high)
        if found is None:
            return None
        for digits in _DIGITS:
            rounded = np.clip(np.round(found, digits), low, high)
            if self.is_proven(rounded):
                return rounded
        return self._nearest_exact(found, low, high)

    def _nearest_exact(self, D: np.ndarray, low, high) -> np.ndarray | None:
        """D, moved to rational numbers with  <x_j, D> = 0  in all rows j where it nearly is, as a program's corners have it; proven there."""
        margins, used = np.abs(np.asarray(self.X @ D).ravel()), np.abs(D) > _TIGHT
        size = np.asarray(abs(self.X) @ np.abs(D)).ravel()
        tight = np.flatnonzero((margins <= _TIGHT * size) | (self.side == 0))
        if len(tight) * len(D) > _MOST_EXACT:
            return None
        rows = self.X[tight].toarray() if sparse.issparse(self.X) else self.X[tight]
        exact = _in_null_space(rows[:, used], D[used])
        if exact is None:
            return None
        moved = np.zeros(len(D))
        moved[used] = [float(x) for x in exact]
        margins, rounding = self._margins(moved)
        others = np.ones(len(margins), bool)
        others[tight] = False
        within = np.array_equal(np.clip(moved, low, high), moved)
        rises = others & (self.side != 0) & (margins <= rounding)
        falls = np.any(others & self.strict & (margins > rounding))
        return moved if within and falls and not rises.any() else None

    def _program(self, low, high) -> np.ndarray | None:
        """D with as many margins of one as there can be, columns scaled; max sum t with s_j <x_j, D> >= t_j, 0 <= t_j <= 1."""
        from scipy.optimize import linprog  # which takes long to import

        n, d = self.X.shape
        scale = np.sqrt(
            np.asarray(
                (self.X * self.X if not sparse.issparse(self.X) else self.X.multiply(self.X)).sum(axis=0)
            ).ravel()
            / n
        )
        scale[scale == 0.0] = 1.0
        moves = self.side != 0
        signed = sparse.csr_array(sparse.diags_array(self.side[moves]) @ self.X[moves] / scale)
        counted = sparse.csr_array(sparse.diags_array(self.strict[moves].astype(float)))
        upper = sparse.hstack([-signed, counted], format="csr")
        stays = None
        if not moves.all():
            kept = sparse.csr_array(self.X[~moves] / scale)
            stays = sparse.hstack([kept, sparse.csr_array((kept.shape[0], counted.shape[1]))], format="csr")
        bounds = np.concatenate([np.column_stack([low, high]), np.tile([0.0, 1.0], (counted.shape[0], 1))])
        cost = np.concatenate([np.zeros(d), -self.strict[moves].astype(float)])
        solved = linprog(
            cost, A_ub=upper, b_ub=np.zeros(upper.shape[0]), A_eq=stays,
            b_eq=None if stays is None else np.zeros(stays.shape[0]), bounds=bounds, method="highs",
        )  # fmt: skip
        if solved.x is None or not -solved.fun > 0.5:
            return None
        D = solved.x[:d] / scale
        size = float(np.max(np.abs(D), initial=0.0))
        return D / size if size > 0.0 else None

    def is_complete(self, D: np.ndarray) -> bool:
        """Whether every prediction surely moves, and each lowers its loss."""
        return all(complete for _, complete in self.separated(D))

    def separated(self, D: np.ndarray) -> list[tuple[int, bool]]:
        """The tasks of which some loss surely falls, and whether all of each do; all tasks where none does."""
        margins, rounding = self._margins(D)
        falls = self.strict & (margins > rounding)
        tasks = np.unique(self.owner[falls] if falls.any() else self.owner)
        return [(int(i), bool(falls[self.owner == i].all())) for i in tasks]

    def move(self, D: np.ndarray, predictions: list[np.ndarray], spans: list[slice]) -> None:
        """Write into every loss's predictions what surely moves along D: to where nothing is left of its loss."""
        margins, rounding = self._margins(D)
        moves, first = (self.side != 0) & (margins > rounding), 0
        for z, span in zip(predictions, spans, strict=True):
            own = slice(first, first + span.stop - span.start)
            z[span] = np.where(moves[own], self.side[own] * _FARTHEST, z[span])
            first = own.stop

    def is_proven(self, D: np.ndarray) -> bool:
        """Whether no loss rises along D, and one surely falls."""
        margins, rounding = self._margins(D)
        moves = self.side != 0
        unsure = np.flatnonzero((moves & (margins <= rounding)) | ~moves)
        if not np.any(self.strict & (margins > rounding)) or np.any(moves & (margins < -rounding)):
            return False
        if len(unsure) * np.count_nonzero(D) > _MOST_EXACT:
            return False
        for j in unsure.tolist():
            total = self._exactly(j, D)
            if total * Fraction(float(self.side[j])) < 0 or (not moves[j] and total != 0):
                return False
        return True

    def _margins(self, D: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(s_j <x_j, D>, what rounding may have done to it)."""
        margins = self.side * np.asarray(self.X @ D).ravel()
        return margins, 2.0 * (len(D) + 2) * _EPS * np.asarray(abs(self.X) @ np.abs(D)).ravel()

    def _exactly(self, j: int, D: np.ndarray) -> Fraction:
        row = self.X[[j]].toarray().ravel() if sparse.issparse(self.X) else self.X[j]
        used = np.flatnonzero((row != 0.0) & (D != 0.0))
        return sum((Fraction(float(row[k])) * Fraction(float(D[k])) for k in used.tolist()), Fraction(0))


def _times(X: Any, way: Way, task: int) -> Any:
    """(n, rows) the columns of one task's inputs that a way moves predictions by."""
    where = np.flatnonzero(way.tasks == task)
    if not where.size:
        return sparse.csr_array((X.shape[0], len(way.rows)))
    own = X if len(way.rows) == X.shape[1] else X[:, way.rows]
    own = own if sparse.issparse(own) else np.asarray(own, float)
    value = float(way.values[where[0]])
    return own if value == 1.0 else value * own


def _in_null_space(rows: np.ndarray, D: np.ndarray) -> list[Fraction] | None:
    """The rational numbers next to D, as it stands in coordinates that are free, which all rows multiply to zero; None where only zeros do."""
    table = [[Fraction(float(x)) for x in row] for row in rows if row.any()]
    found, pivots = [Fraction(float(x)) for x in D], []
    reduced: list[list[Fraction]] = []
    for row in table:
        for done, pivot in zip(reduced, pivots, strict=True):
            if row[pivot]:
                factor = row[pivot]
                row = [x - factor * y for x, y in zip(row, done, strict=True)]
        # the coordinate that can bear it best
        pivot = max((k for k in range(len(row)) if row[k]), key=lambda k: abs(row[k]), default=None)
        if pivot is None:
            continue
        row = [x / row[pivot] for x in row]
        for k, done in enumerate(reduced):
            if done[pivot]:
                factor = done[pivot]
                reduced[k] = [x - factor * y for x, y in zip(done, row, strict=True)]
        reduced.append(row)
        pivots.append(pivot)
        if len(pivots) == len(found):
            return None
    for row, pivot in zip(reduced, pivots, strict=True):
        found[pivot] = -sum((row[k] * found[k] for k in range(len(found)) if k not in pivots), Fraction(0))
    return found
