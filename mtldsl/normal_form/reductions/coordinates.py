"""Reductions by new coordinates: labels and columns centred, the span of few samples, whitened inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import qr

from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix
from mtldsl.atoms.regularizers.quadratic import Ridge
from mtldsl.data.derived import with_inputs
from mtldsl.normal_form.form import Block, Blocks, FunctionTerm, LossTerm, NormalForm, single_block
from mtldsl.normal_form.reductions.reduction import Point, Promise
from mtldsl.normal_form.term import LinearMap, MapEntry
from mtldsl.normal_form.terms.row_compression import exact_sums

# --------------------------------------------------------------------------------------------------------------
# Labels and columns far from zero, moved there: with an intercept the model is the same, and rounding no longer hides the signal.
#
# A loss of residuals z - y takes y - c with the intercept b - c for y with b. Labels of 1e12 + signal (a time stamp, an amount of money
# in cents) leave four digits of the signal in z and y, and all of them in z - c and y - c: the subtraction is exact. Any loss takes
# X - 1 a^T with the intercept b + a^T w for X with b: of seconds since 1970 what differs stays, and a constant column becomes zeros.


@dataclass(frozen=True)
class CoordinateSettings:
    """Limits of changes of coordinates."""

    centre_ratio: float = 1e4  # least median of labels that is taken off them, relative to their width
    # the same of maxima over tasks, whose intercepts no solver eliminates
    joint_centre_ratio: float = 3.0
    # condition of a penalty, by whose root inputs are divided, up to which they keep half of the digits
    condition_ratio: float = 1e12
    # numbers that sparse inputs may become where new coordinates make them dense
    dense_entries: int = 4_000_000


SETTINGS = CoordinateSettings()


@dataclass(frozen=True, eq=False)
class InterceptShift:
    """b = b' + centre - a^T W on the rows `columns` of W = map(x): b' the intercept beside what was moved."""

    centre: np.ndarray  # (1, m)
    map: LinearMap
    columns: np.ndarray  # (k,)
    distances: np.ndarray  # (k, m), a of every task

    def applied(self, blocks: Blocks, intercept: np.ndarray, sign: float) -> np.ndarray:
        """The intercept (1, m) with `sign` times the shift added, rounded once."""
        shift = sign * self.centre
        if not self.columns.size:
            return intercept + shift
        W = self.map.forward(blocks)[self.columns]
        return exact_sums(-sign * self.distances, W, np.vstack([intercept, shift]))[None, :]


#: {intercept: by what it moves}
Moves = Mapping[str, InterceptShift]


class CenterLabels:
    """Labels far from zero lose the median of their task, columns their mean, and intercepts take it. A form that has none stays as it is."""

    promise: ClassVar[Promise] = Promise.EXACT

    def accepts(self, form: NormalForm) -> str | None:
        return None if _moves(form) else "beside an intercept of its own, nothing lies far from zero"

    def apply(self, form: NormalForm) -> tuple[NormalForm, Moves]:
        """The recipe is {intercept: by what it moves}."""
        free = _free_intercepts(form)
        known = form.remembered.get(CenterLabels)  # by all values of a path
        if known is None or known[0] != form.losses or known[1] != free:
            moves = _moves(form)
            near = _near_zero(form.losses, moves) if moves else form.losses
            known = form.remembered[CenterLabels] = (form.losses, free, near, moves, {})
        *_, near, moves, remembered = known
        if not moves:
            return form, {}
        easier = replace(form, losses=near)
        easier.share(remembered)
        return easier, moves

    def invert(self, point: Point, recipe: Moves) -> Point:
        """Residuals are the same, and so are all multipliers."""
        return replace(point, blocks=shift_intercepts(point.blocks, recipe))


def shift_intercepts(blocks: Blocks, by: Moves, sign: float = 1.0) -> Blocks:
    """A point with its intercepts moved; `sign` -1: back."""
    return blocks | {name: shift.applied(blocks, blocks[name], sign) for name, shift in by.items()}


def _free_intercepts(form: NormalForm) -> set[str]:
    """Those that no function sees."""
    names = {name for loss in form.losses for name in loss.intercepts}
    return names - {name for f in form.functions for name in f.map.blocks}


def _moves(form: NormalForm) -> dict[str, InterceptShift]:
    """Find what lies far from zero beside each free intercept that stands alone in its losses."""
    found = {}
    for name in _free_intercepts(form):
        sharing = [loss for loss in form.losses if name in loss.intercepts]
        if any(len(loss.intercepts) > 1 or not loss.tasks.in_memory for loss in sharing):
            continue
        first = sharing[0]
        far = first.tasks.near_zero if all(_has_inputs_of(first, loss) for loss in sharing) else None
        columns, distances = (np.zeros(0, int), np.zeros((0, 0))) if far is None else far[1:]
        centre = np.zeros(first.tasks.n_tasks)
        if all(loss.atom.of_residuals for loss in sharing):
            centre = _centres(sharing)
        if centre.any() or columns.size:
            found[name] = InterceptShift(centre[None, :], first.map, columns, distances)
    return found


def _near_zero(losses: Sequence[LossTerm], moves: Moves) -> tuple[LossTerm, ...]:
    """The losses with labels and columns moved; those of the same tasks keep them in common."""
    known: dict = {}

    def near(loss: LossTerm) -> LossTerm:
        shift = moves.get(loss.intercepts[0]) if loss.intercepts else None
        if shift is None:
            return loss
        key = loss.intercepts[0], id(loss.tasks)
        if key not in known:
            found = loss.tasks.near_zero if shift.columns.size else None
            known[key] = loss.tasks if found is None else found[0]
            if shift.centre.any():
                centre = np.repeat(shift.centre[0], loss.tasks.counts)
                known[key] = known[key].with_targets(loss.tasks.targets - centre)
        return replace(loss, tasks=known[key])

    return tuple(map(near, losses))


def _has_inputs_of(first: LossTerm, loss: LossTerm) -> bool:
    """Tell whether the same weights meet the same inputs in both."""
    same = loss.map is first.map or loss.map.identity_of == first.map.identity_of is not None
    return same and loss.tasks is first.tasks


def _centres(losses: list[LossTerm]) -> np.ndarray:
    """(m,) the median label of every task whose labels are far from zero, 0 for the others."""
    found = np.zeros(losses[0].tasks.n_tasks)
    are_sums = all(loss.sums_tasks for loss in losses)
    ratio = SETTINGS.centre_ratio if are_sums else SETTINGS.joint_centre_ratio
    by_task = zip(*(loss.tasks.per_task(loss.tasks.targets) for loss in losses), strict=True)
    for i, parts in enumerate(by_task):
        labels = np.concatenate(parts)
        median = np.partition(labels, labels.size // 2)[labels.size // 2]
        if abs(median) > ratio * np.abs(labels - median).max():
            found[i] = median
    return found


# --------------------------------------------------------------------------------------------------------------
# A model of fewer samples than features, in the coordinates of the samples' span: the representer theorem as a smaller model of the same kind.


@dataclass(frozen=True, eq=False)
class SpanRecovery:
    """The way back: W = Q V for the weights V of the coordinates, where X^T = Q L^T and Q has orthonormal columns."""

    block: Block
    Q: np.ndarray  # (d, n)


class SampleSpan:
    """X (n, d) becomes L (n, n) with X^T = Q L^T, and W (d, m) the V (n, m) of W = Q V.

    Losses see X W = L V; a function of W^T W, such as one of the singular values, is the same of V as of Q V, and no larger at V = Q^T W than at any
    other W of the same predictions.
    """

    promise: ClassVar[Promise] = Promise.EXACT

    def accepts(self, form: NormalForm) -> str | None:
        facts = single_block(form)
        if isinstance(facts, str):
            return facts
        tasks = facts.loss.tasks
        if not tasks.is_shared or tasks.is_sparse:
            return f"the inputs of {facts.loss.typed} are not one dense matrix"
        if tasks.X.shape[0] >= facts.shape[0]:
            return "there are no fewer samples than features"
        if facts.loss.map.offset is not None:
            return f"{facts.loss.typed} is a loss of a matrix plus a constant"
        return next((f"{f.typed} changes with the basis" for f in form.functions if not f.is_of_gram), None)

    def apply(self, form: NormalForm) -> tuple[NormalForm, SpanRecovery]:
        (block,) = form.weight_blocks
        (loss,) = form.losses
        known = form.remembered.get(SampleSpan)  # by all values of a path
        if known is None or known[0] is not loss:
            known = form.remembered[SampleSpan] = (loss, *_loss_in_span(loss, block))
        _, inside, span = known
        identity = inside.map
        smaller = replace(
            form,
            blocks=tuple(Block(b.name, identity.shape) if b.name == block.name else b for b in form.blocks),
            losses=(inside,),
            functions=tuple(replace(f, map=identity) for f in form.functions),
        )
        return smaller, span

    def restricted(self, point: Point, span: SpanRecovery) -> Point:
        """The part of a point of the form that lies in the span; multipliers of the losses are the same."""
        return _moved(point, span, span.Q.T)

    def invert(self, point: Point, span: SpanRecovery) -> Point:
        """The weights in the span; multipliers of the losses are the same, and those of the functions lie in it as well."""
        return _moved(point, span, span.Q)


def _moved(point: Any, span: SpanRecovery, factor: np.ndarray) -> Any:
    name, blocks = span.block.name, dict(point.blocks)
    blocks[name] = factor @ blocks[name]
    duals = point.function_duals
    if duals is not None:
        duals = [None if Z is None else factor @ np.asarray(Z) for Z in duals]
    blocks = {name: np.ascontiguousarray(array) for name, array in blocks.items()}
    return replace(point, blocks=blocks, function_duals=duals)


def _loss_in_span(loss: LossTerm, block: Block) -> tuple[LossTerm, SpanRecovery]:
    Q, R = qr(np.asarray(loss.tasks.X, float).T, mode="economic", check_finite=False)
    L, n = np.ascontiguousarray(R.T), len(R)
    names = tuple(map(str, range(n)))
    tasks = with_inputs(loss.tasks, [L], feature_names=names, scaling=None, kernel_map=None)
    inside = replace(loss, tasks=tasks, map=LinearMap((MapEntry(block.name),), (n, block.shape[1])))
    return inside, SpanRecovery(block, Q)


# --------------------------------------------------------------------------------------------------------------
# A quadratic penalty between features, in coordinates in which it is a plain ridge: the inputs take the matrix upon themselves.


@dataclass(frozen=True, eq=False)
class WhiteningRecovery:
    """The way back: W = A^{-1/2} V. `shares` are the parts of A that each function has, in their order; `factors` what it reads W times."""

    block: Block
    root: SpectralMatrix  # A^{1/2}
    inverse_root: SpectralMatrix
    shares: tuple[SpectralMatrix, ...]
    factors: tuple[float, ...]


class WhitenedLosses:
    """losses(X W) + 1/2 tr(W^T A W) becomes losses(X A^{-1/2} V) + 1/2 ||V||^2, V = A^{1/2} W, whatever the losses.

    A is the sum of all functions: quadratics between features, each task by itself. Ridges have solvers that a matrix in their place has not.
    """

    promise: ClassVar[Promise] = Promise.EXACT

    def accepts(self, form: NormalForm) -> str | None:
        facts = single_block(form, "multiple", several_losses=True)
        if isinstance(facts, str):
            return facts
        shares = [_share(f, facts.name) for f in form.functions]
        if all(f.atom.entry_quadratic is not None for f in form.functions):
            return "no function has a matrix between the features"
        for f, share in zip(form.functions, shares, strict=True):
            if share is None:
                return f"{f.typed} is not a quadratic between features with the same matrix for every task"
        for loss in form.losses:
            if loss.tasks.is_sparse and _size(loss.tasks) > SETTINGS.dense_entries:
                return f"the sparse inputs of {loss.typed} would become dense"
        spectrum = _total(shares).eigenvalues()
        if not spectrum[0] * SETTINGS.condition_ratio > spectrum[-1]:
            return "the matrix between the features is singular, or nearly"
        return None

    def apply(self, form: NormalForm) -> tuple[NormalForm, WhiteningRecovery]:
        (block,) = form.weight_blocks
        shares: Any = tuple(_share(f, block.name) for f in form.functions)  # there: the form was asked
        A = _total(shares)
        factors = tuple(f.map.multiple_of(block.name) for f in form.functions)
        white = WhiteningRecovery(block, A.power(0.5), A.power(-0.5), shares, factors)
        identity = LinearMap((MapEntry(block.name),), block.shape)
        typed = " + ".join(f.typed for f in form.functions)
        known: dict[int, Any] = {}

        def of_new_inputs(loss: LossTerm) -> LossTerm:
            if id(loss.tasks) not in known:
                known[id(loss.tasks)] = _turned(loss.tasks, white.inverse_root)
            return replace(loss, tasks=known[id(loss.tasks)])

        return replace(
            form,
            losses=tuple(map(of_new_inputs, form.losses)),
            functions=(FunctionTerm(Ridge(), 1.0, identity, typed),),
        ), white

    def restricted(self, point: Point, white: WhiteningRecovery) -> Point:
        """A point of the form in the new coordinates."""
        duals = point.function_duals
        if duals is not None:
            parts = [c * np.asarray(Z) for c, Z in zip(white.factors, duals, strict=True) if Z is not None]
            duals = [white.inverse_root.apply(sum(parts))] if len(parts) == len(duals) else None
        return replace(point, blocks=_whitened_center(point.blocks, white, white.root), function_duals=duals)

    def invert(self, point: Point, white: WhiteningRecovery) -> Point:
        """The losses' multipliers are the same; that of the ridge is shared out as A is, which leaves the sum of the conjugates."""
        duals = point.function_duals
        if duals is not None and duals[0] is not None:
            G = white.inverse_root.apply(np.asarray(duals[0]))  # A^{-1} times the multiplier of the whole
            shared = zip(white.shares, white.factors, strict=True)
            duals = [share.apply(G) / c for share, c in shared]
        elif duals is not None:
            duals = [None for _ in white.shares]
        return replace(
            point, blocks=_whitened_center(point.blocks, white, white.inverse_root), function_duals=duals
        )


def _share(f: FunctionTerm, block: str) -> SpectralMatrix | None:
    """A where the function is 1/2 tr(W^T A W), coefficients included; None where it is not."""
    if f.is_constraint:
        return None
    c = f.coefficient * f.map.multiple_of(block) ** 2
    both = f.atom.two_sided_quadratic()
    if both is None:
        square = f.atom.entry_quadratic
        if square is None or np.ndim(square):
            return None
        return SpectralMatrix.multiple_of_identity(c * float(square), f.map.shape[0])
    rows, columns = both
    every = columns.eigenvalues()
    if not 0.0 < every[-1] - 1e-14 * every[-1] <= every[0]:  # not a multiple of the identity
        return None
    return rows.scaled(c * every[0])


def _total(shares) -> SpectralMatrix:
    one, *more = shares
    return one if not more else SpectralMatrix.of(sum(share.dense() for share in shares))


def _size(tasks) -> int:
    rows, features = (tasks.X if tasks.is_shared else tasks.stacked).shape
    return rows * features


def _turned(tasks, inverse_root: SpectralMatrix):
    """The same tasks, their inputs X A^{-1/2}."""
    dense = inverse_root.dense() if tasks.is_sparse else None

    def turned(X):
        new = inverse_root.apply(np.asarray(X, float).T).T if dense is None else X @ dense
        return np.ascontiguousarray(new)

    inputs = [tasks.X] if tasks.is_shared else tasks.inputs
    return with_inputs(tasks, [turned(X) for X in inputs], scaling=None, kernel_map=None)


def _whitened_center(blocks: Blocks, white: WhiteningRecovery, by: SpectralMatrix) -> Blocks:
    name = white.block.name
    return blocks | {name: np.ascontiguousarray(by.apply(blocks[name]))}
