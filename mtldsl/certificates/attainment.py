r"""Proofs that a model has no minimizer: a direction in which the objective falls for ever, found by a linear program.

The logistic and the exponential loss of a sample fall towards zero as its margin y z grows, and reach it nowhere. Where weights D give

    s_j <x_j, D> >= 0  for every sample of a task,  > 0 for one whose loss falls for ever        (s_j: the side to which the loss falls)

and no penalty or constraint charges for D, F(W + t D) falls strictly in t at every W: no weights are best. Tasks that a penalty between them
leaves common directions alone (a mean, a graph, a chain) are asked together. Samples whose loss rises on
both sides (squares, a Poisson count above zero) ask for <x_j, D> = 0. Hinges have minimisers; beside such losses they take part like them.
The loss of an event falls as its prediction grows beyond those of all rows at risk: Cox's loss asks for differences of rows.
Signs are proven in float64 where a margin is larger than its rounding, else in rational numbers, which float64 numbers are.

Beside a bounded penalty that is not convex (a capped trace norm, a bound on the rank) D is W itself on the tasks that it separates:
singular values above the cap grow along that ray, and cost no more. Then nothing is said of other weights than those on the ray.

Source: Albert and Anderson, "On the existence of maximum likelihood estimates in logistic regression models", Biometrika 71 (1984);
Rockafellar, "Convex analysis" (1970), Theorem 8.6 (directions of recession).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import qr
from scipy.sparse.csgraph import connected_components

from mtldsl.certificates.free_directions import RowKind, is_between_tasks, rows_and_right, uncharged_kinds
from mtldsl.certificates.multipliers import add_absolute
from mtldsl.normal_form.form import Blocks, NormalForm

# --------------------------------------------------------------------------------------------------------------
# Rows of tasks, and directions that separate them: found by a linear program or given, and proven in rational numbers.

_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class AttainmentSettings:
    """Limits of the search for weights that run away."""

    whole_tol: float = 1e-9  # distance from whole numbers of shares of tasks in a direction
    exact_entries: int = 100_000  # numbers of the rows that are looked at in rational arithmetic
    # digits to which a direction is rounded, in turn, so that what should cancel does
    direction_digits: tuple[int, ...] = (12, 6, 3)
    zero_margin_share: float = 1e-7  # margin that a linear program holds at zero, beside its terms
    # prediction beyond which no loss that falls has anything left to lose in float64
    farthest_prediction: float = 1e8
    # margin of weights that may run away: the logistic loss there is below 2 %, and a certificate of some thousand samples may end a run at
    # twice this margin
    running_margin: float = 4.0
    # numbers of a task's inputs up to which a linear program is solved, where a run ended without a certificate
    program_entries: int = 4_000_000
    # the same where all may be well: it must cost next to nothing (a second at 5,000 x 50)
    passing_entries: int = 10_000
    # that a linear program takes: 1e4 on 945 x 56
    flops_per_entry: float = 1e4
    # multiple of the weights that stands for all of them: singular values only grow on the way there
    ray_factor: float = 1e6
    ray_tol: float = 1e-9  # relative difference of a function that counts as constant on the way


SETTINGS = AttainmentSettings()


@dataclass
class PredictionSides:
    """Rows of one loss of a task: their inputs, the side to which a prediction may go (0: it must stay), and whether that lowers the loss."""

    X: Any
    side: np.ndarray
    strict: np.ndarray
    farthest: float
    comparisons: Any = None  # (r, n) sparse: the sides are those of differences of predictions


def span_of(loss, i: int) -> slice:
    return slice(int(loss.tasks.offsets[i]), int(loss.tasks.offsets[i + 1]))


def rows_of(loss, z: np.ndarray, i: int) -> PredictionSides:
    span = span_of(loss, i)
    y = loss.tasks.targets[span]
    falls = loss.atom.falls(y)
    strict = np.zeros(len(y), bool) if falls is None else falls != 0
    side = falls if falls is not None else (y if loss.atom.labels == "sign" else np.zeros(len(y)))
    differences = loss.atom.comparisons(y)
    moved = z[span] if differences is None else differences @ z[span]
    farthest = float(np.max((side * moved)[strict], initial=0.0))
    return PredictionSides(loss.tasks.inputs[i], np.asarray(side, float), strict, farthest, differences)


@dataclass(frozen=True)
class RecessionDirection:
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


def ways_of(kinds: list[RowKind]) -> list[RecessionDirection]:
    """Those in which the shares of tasks are powers of two, so that products with inputs are exact."""
    ways = []
    for kind in kinds:
        basis = sparse.csc_array(kind.basis)
        for c in range(basis.shape[1]):
            part = slice(basis.indptr[c], basis.indptr[c + 1])
            shares = basis.data[part] / basis.data[part][0]
            values = np.round(shares)
            if np.abs(shares - values).max() <= SETTINGS.whole_tol and np.all(
                np.abs(np.frexp(values)[0]) == 0.5
            ):
                ways.append(RecessionDirection(kind.rows, basis.indices[part], values))
    return ways


class CoupledTasks:
    """The rows of all losses of some tasks; a column for every feature of every way, and one for the intercept of every task."""

    def __init__(
        self,
        tasks: list[int],
        ways: list[RecessionDirection],
        rows: list[PredictionSides],
        owner: list[int],
        with_intercept: list[bool],
    ):
        parts = []
        for row, task, with_one in zip(rows, owner, with_intercept, strict=True):
            ones = np.zeros((row.X.shape[0], len(tasks)))
            ones[:, tasks.index(task)] = with_one
            parts.append(sparse.hstack([*(_times(row.X, way, task) for way in ways), sparse.csr_array(ones)]))
        self.inputs, self.rows = sparse.csr_array(sparse.vstack(parts)), rows
        ordered = [row.X.shape[0] if row.comparisons is None else row.comparisons for row in rows]
        self.order = sparse.block_diag(
            [sparse.eye_array(one) if isinstance(one, int) else one for one in ordered], format="csr"
        )
        self.X = sparse.csr_array(self.order @ self.inputs)
        self.side = np.concatenate([row.side for row in rows])
        self.strict = np.concatenate([row.strict for row in rows])
        self.owner = np.repeat(owner, [len(row.side) for row in rows])

    def direction(self, own: np.ndarray, low, high, others: bool, largest: int) -> np.ndarray | None:
        """The tasks' own weights where they will do (without `others`: on every sample), else what a linear program finds."""
        free = np.clip(own, low, high)
        if self.is_proven(free):
            every = all(complete for _, complete in self.separated(free))
            if others or (np.array_equal(free, own) and every):
                return free
        if not others or self.X.shape[0] * self.X.shape[1] > largest:
            return None
        found = self._program(low, high)
        if found is None:
            return None
        for digits in SETTINGS.direction_digits:
            rounded = np.clip(np.round(found, digits), low, high)
            if self.is_proven(rounded):
                return rounded
        return self._nearest_exact(found, low, high)

    def _nearest_exact(self, D: np.ndarray, low, high) -> np.ndarray | None:
        """D, moved to rational numbers with  <x_j, D> = 0  in all rows j where it nearly is, as a program's corners have it; proven there."""
        if any(row.comparisons is not None for row in self.rows):
            return None  # differences of inputs are rounded
        margins, used = np.abs(np.asarray(self.X @ D).ravel()), np.abs(D) > SETTINGS.zero_margin_share
        size = np.asarray(abs(self.X) @ np.abs(D)).ravel()
        tight = np.flatnonzero((margins <= SETTINGS.zero_margin_share * size) | (self.side == 0))
        if len(tight) * len(D) > SETTINGS.exact_entries:
            return None
        exact = _in_null_space(self.X[tight].toarray()[:, used], D[used])
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
        scale = np.sqrt(np.asarray(self.X.power(2).sum(axis=0)).ravel() / n)
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

    def separated(self, D: np.ndarray) -> list[tuple[int, bool]]:
        """The tasks of which some loss surely falls, and whether all of each do; all tasks where none does."""
        margins, rounding = self._margins(D)
        falls = self.strict & (margins > rounding)
        tasks = np.unique(self.owner[falls] if falls.any() else self.owner)
        return [(int(i), bool(falls[self.owner == i].all())) for i in tasks]

    def move(self, D: np.ndarray, predictions: list[np.ndarray], spans: list[slice]) -> None:
        """Write into every loss's predictions what surely moves along D: to where nothing is left of its loss."""
        margins, rounding = self._margins(D)
        moves, first, row = (self.side != 0) & (margins > rounding), 0, 0
        step = np.asarray(self.inputs @ D).ravel()
        step *= SETTINGS.farthest_prediction / np.abs(step).max()
        for z, span, rows in zip(predictions, spans, self.rows, strict=True):
            own, n = slice(first, first + len(rows.side)), span.stop - span.start
            there = self.side[own] * SETTINGS.farthest_prediction
            far = z[span] + step[row : row + n]
            z[span] = np.where(moves[own], there, z[span]) if rows.comparisons is None else far
            first, row = own.stop, row + n

    def is_proven(self, D: np.ndarray) -> bool:
        """Tell whether no loss rises along D, and one surely falls."""
        margins, rounding = self._margins(D)
        moves = self.side != 0
        unsure = np.flatnonzero((moves & (margins <= rounding)) | ~moves)
        if not np.any(self.strict & (margins > rounding)) or np.any(moves & (margins < -rounding)):
            return False
        if len(unsure) * np.count_nonzero(D) > SETTINGS.exact_entries:
            return False
        for j in unsure.tolist():
            total = self._exactly(j, D)
            if total * Fraction(float(self.side[j])) < 0 or (not moves[j] and total != 0):
                return False
        return True

    def _margins(self, D: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(s_j <x_j, D>, what rounding may have done to it)."""
        margins = self.side * np.asarray(self.order @ (self.inputs @ D)).ravel()
        sizes = np.asarray(abs(self.order) @ (abs(self.inputs) @ np.abs(D))).ravel()
        return margins, 2.0 * (len(D) + 2) * _EPS * sizes

    def _exactly(self, j: int, D: np.ndarray) -> Fraction:
        total, of = Fraction(0), slice(self.order.indptr[j], self.order.indptr[j + 1])
        for i, sign in zip(self.order.indices[of].tolist(), self.order.data[of].tolist(), strict=True):
            row = self.inputs[[i]].toarray().ravel()
            used = np.flatnonzero((row != 0.0) & (D != 0.0)).tolist()
            total += Fraction(sign) * sum(Fraction(float(row[k])) * Fraction(float(D[k])) for k in used)
        return total


def _times(X: Any, way: RecessionDirection, task: int) -> sparse.csr_array:
    """(n, rows) the columns of one task's inputs that a way moves predictions by."""
    where = np.flatnonzero(way.tasks == task)
    if not where.size:
        return sparse.csr_array((X.shape[0], len(way.rows)))
    return sparse.csr_array(X[:, way.rows], dtype=float) * float(way.values[where[0]])


def _in_null_space(rows: np.ndarray, D: np.ndarray) -> list[Fraction] | None:
    """The rational numbers next to D, as it stands in coordinates that are free, which all rows multiply to zero; None where only zeros do.

    Rows that are sums of others, as far as float64 tells, are not eliminated: that they multiply D to zero is tested.
    """
    rows = rows[rows.any(axis=1)]
    if not rows.size:
        return _eliminated([], D)
    _, R, order = qr(rows.T, mode="economic", pivoting=True)
    sizes = np.abs(np.diag(R))
    rank = int(np.sum(sizes > SETTINGS.zero_margin_share * sizes.max(initial=0.0)))
    table = [[Fraction(float(x)) for x in row] for row in rows[order]]
    found = _eliminated(table[:rank], D)
    if found is None:
        return None
    missed = [row for row in table[rank:] if sum(map(operator.mul, row, found)) != 0]
    return _eliminated(table[:rank] + missed, D) if missed else found


def _eliminated(table: list[list[Fraction]], D: np.ndarray) -> list[Fraction] | None:
    """As `_in_null_space`, by Gauss and Jordan's elimination."""
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


@dataclass(frozen=True, eq=False)
class UnattainedInfimum:
    """No weights attain the infimum.

    tasks      names of the tasks that are separated
    completely of each, whether all samples are: then its loss falls to zero
    direction  D by block, zero on the other tasks: the objective falls for ever along W + t D
    everywhere whether that is so from every W (a convex model), or from these weights on
    limit      what the objective falls to along that ray from the weights found: the infimum is at most that
    """

    tasks: tuple[str, ...]
    completely: tuple[bool, ...]
    direction: Blocks
    everywhere: bool
    limit: float = np.inf

    def __str__(self) -> str:
        names = ", ".join(map(repr, self.tasks[:5])) + (", ..." if len(self.tasks) > 5 else "")
        one = len(self.tasks) == 1
        if all(self.completely):
            what = f"{'its' if one else 'their'} loss falls towards 0 for ever"
        else:
            what = f"{'its' if one else 'their'} loss falls for ever as weights grow"
        where = "" if self.everywhere else " along the ray through these weights"
        return (
            f"no weights attain the infimum: task{'' if one else 's'} {names} can be separated, and {what}{where}; "
            f"the infimum is at most {self.limit:.6g}; "
            "add a term that grows with the weights, such as + 1e-3 * ridge(W), or a bound such as frobenius_norm(W) <= 10"
        )


def has_recession_direction(form: NormalForm) -> bool:
    """Tell whether a loss does; all that it takes to ask `prove_unattained` at all."""
    return form.in_memory and any(_takes(loss) for loss in form.losses)


def prove_unattained(form: NormalForm, blocks: Blocks, work: float = math.inf) -> UnattainedInfimum | None:
    """A proof that the model has no minimiser, or None where there is none to be found from these weights.

    work : flops that a solver has spent: linear programs that are expected to take more are not solved, but for small ones, and then the
           weights themselves are the only direction that is tried
    """
    if not has_recession_direction(form):
        return None
    direction, tasks, completely = form.zeros(), [], []
    at_end = {id(loss): np.array(loss.predictions(blocks)) for loss in form.losses}
    expected = max(SETTINGS.passing_entries, work / SETTINGS.flops_per_entry)
    largest = int(min(expected, SETTINGS.program_entries))
    is_convex = form.is_convex
    for block in form.weight_blocks:
        losses = [loss for loss in form.losses if block.name in loss.map.blocks]
        intercepts = {name for loss in losses for name in loss.intercepts}
        plain = all(_is_plain(loss, block.name) for loss in losses)
        if not any(map(_takes, losses)) or not plain or len(intercepts) > 1:
            continue
        name = next(iter(intercepts), None)
        charged, low, high = _allowed(form, block.name)
        ways = form.remembered.get(("ways", block.name))
        if ways is None:
            kinds = uncharged_kinds(form, block.name, charged)
            ways = [way for way in ways_of(kinds) if _is_unseen(form, block.name, way)]
            form.remembered["ways", block.name] = ways
        taken, b_low, b_high = (True, 0.0, 0.0) if name is None else _allowed(form, name)
        b_low, b_high = np.where(taken, 0.0, b_low), np.where(taken, 0.0, b_high)
        if not ways and all(loss.atom.labels == "sign" for loss in losses):
            continue  # an intercept alone separates no task with labels of both classes
        predictions = [loss.predictions(blocks) for loss in losses]
        for own_tasks, own_ways in _together(ways, block.shape[1]):
            if len(own_tasks) > 1 and not is_convex:
                continue
            units = [(loss, z, i) for i in own_tasks for loss, z in zip(losses, predictions, strict=True)]
            rows = [rows_of(*unit) for unit in units]
            if max((row.farthest for row in rows), default=0.0) < SETTINGS.running_margin:
                continue
            group = CoupledTasks(
                own_tasks,
                own_ways,
                rows,
                [i for *_, i in units],
                [name in loss.intercepts for loss, *_ in units],
            )
            ends = [way.ends(low, high) for way in own_ways]
            own = [way.own(blocks[block.name]) for way in own_ways]
            beside = np.zeros((3, len(own_tasks)))
            if name is not None:
                beside = np.stack(
                    [
                        np.broadcast_to(one, blocks[name].shape)[0, own_tasks]
                        for one in (b_low, b_high, blocks[name])
                    ]
                )
            D = group.direction(
                np.concatenate([*own, beside[2]]),
                np.concatenate([*(one for one, _ in ends), beside[0]]),
                np.concatenate([*(one for _, one in ends), beside[1]]),
                others=is_convex,
                largest=largest,
            )
            if D is None:
                continue
            parts = np.split(D, np.cumsum([len(one) for one in own]))
            for way, part in zip(own_ways, parts, strict=False):
                direction[block.name][np.ix_(way.rows, way.tasks)] += np.outer(part, way.values)
            if name is not None:
                direction[name][0, own_tasks] = parts[-1]
            found = group.separated(D)
            tasks += [str(losses[0].tasks.task_names[i]) for i, _ in found]
            completely += [complete for _, complete in found]
            group.move(
                D, [at_end[id(loss)] for loss, *_ in units], [span_of(loss, i) for loss, _, i in units]
            )
    if not tasks or not (is_convex or _is_free_ray(form, blocks, direction)):
        return None
    left = sum(loss.value(z) for loss, z in zip(form.losses, at_end.values(), strict=True))
    charged = sum(f.value(blocks) for f in form.functions) + form.constant
    limit = float(left + charged)
    if not is_convex and limit > form.value_at_zero and form.violation(form.zeros()) == 0.0:
        return None  # the whole ray lies above weights that are known
    return UnattainedInfimum(tuple(tasks), tuple(completely), direction, is_convex, limit)


# ---------------------------------------------------------------------------------------------- what is allowed


def _takes(loss) -> bool:
    return loss.atom.labels != "indicators" and loss.atom.falls(loss.tasks.targets) is not None


def _is_plain(loss, block: str) -> bool:
    """Tell whether its predictions move with a block as they do with weights: itself, or a sum like L + S."""
    own = [entry for entry in loss.map.entries if entry.block == block]
    plain = len(own) == 1 and own[0].left is None and own[0].right is None and own[0].coefficient > 0.0
    return plain and loss.atom.labels != "indicators" and (own[0].coefficient == 1.0 or not loss.intercepts)


def _is_unseen(form: NormalForm, block: str, way: RecessionDirection) -> bool:
    """Tell whether functions of combinations of tasks see exactly nothing of a direction; singular values say that nearly."""
    for f in form.functions:
        if not is_between_tasks(f, block) or f.atom.lineality(f.map.shape[1]) is not None:
            continue
        rows, right = rows_and_right(f)
        if right is None or not np.isin(way.rows, rows).any():
            continue
        for column in right[way.tasks].T.tolist():
            if sum(
                Fraction(x) * Fraction(share) for x, share in zip(column, way.values.tolist(), strict=True)
            ):
                return False
    return True


def _together(
    ways: list[RecessionDirection], n_tasks: int
) -> Iterator[tuple[list[int], list[RecessionDirection]]]:
    """Tasks that have ways in common, each group with its ways."""
    links = sparse.lil_array((n_tasks, n_tasks), dtype=bool)
    for way in ways:
        if way.tasks.size > 1:
            links[way.tasks[0], way.tasks[1:]] = True
    count, label = connected_components(links.tocsr(), directed=False)
    tasks: list[list[int]] = [[] for _ in range(count)]
    own: list[list[RecessionDirection]] = [[] for _ in range(count)]
    for i, k in enumerate(label.tolist()):
        tasks[k].append(i)
    for way in ways:
        own[label[way.tasks[0]]].append(way)
    return zip(tasks, own, strict=True)


def _allowed(form: NormalForm, block: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(entries that a function charges for, beside those between tasks; low, high: bounds on the entries of D within which
    none does, 0 or infinite ones)."""
    shape = form.shapes[block]
    low, high, charged = np.full(shape, -np.inf), np.full(shape, np.inf), np.zeros(shape, bool)
    for f in form.functions:
        if not f.atom.convex and f.atom.is_bounded:
            continue  # for `_is_free_ray`
        interval: Any = f.atom.interval if f.is_constraint and f.map.identity_of == block else None
        if interval is not None:
            low = np.where(np.broadcast_to(np.isfinite(interval[0]), shape), np.maximum(low, 0.0), low)
            high = np.where(np.broadcast_to(np.isfinite(interval[1]), shape), np.minimum(high, 0.0), high)
        elif not is_between_tasks(f, block):
            touched = form.zeros()
            add_absolute(f.map, np.ones(f.map.shape), touched)
            charged |= touched[block] > 0.0
    return charged, low, high


def _is_free_ray(form: NormalForm, blocks: Blocks, direction: Blocks) -> bool:
    """Tell whether bounded functions are constant along W + t D, D being W on some tasks: no singular value falls on the way."""
    end = {name: blocks[name] + SETTINGS.ray_factor * direction[name] for name in blocks}
    for f in form.functions:
        if f.atom.convex or not f.atom.is_bounded:
            continue
        if (
            f.map.offset is not None
            or len(f.map.entries) != 1
            or not f.map.multiple_of(f.map.entries[0].block)
        ):
            return False
        here, there = f.map.forward(blocks), f.map.forward(end)
        if f.is_constraint:
            bound: Any = f.atom
            if bound.violation(here) > SETTINGS.ray_tol * np.linalg.norm(here):
                return False
        elif f.atom.value(there) > f.atom.value(here) * (1.0 + SETTINGS.ray_tol):
            return False
    return True
