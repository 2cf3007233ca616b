"""Repair of multipliers: sum_t A_t^T u_t + sum_k B_k^T v_k = 0 on every block, to rounding, with u_t kept in dom f_t*."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import cast

import numpy as np

from mtldsl.certificates.free_directions import (
    BlockLoss,
    RowKind,
    change_least,
    member_of,
    mixed_magnitudes,
    row_kinds,
)
from mtldsl.normal_form.form import Blocks, FunctionTerm, LossTerm, NormalForm
from mtldsl.normal_form.term import picks
from mtldsl.normal_form.terms.label_graph_term import LabelGraphTerm, balance_labels
from mtldsl.normal_form.terms.structured_term import StructuredTerm

# --------------------------------------------------------------------------------------------------------------
# What multipliers leave of  sum_t A_t^T u_t + sum_k B_k^T v_k = 0:  how large it is, entry by entry, and what it costs the bound.
#
# For every x,  F(x) >= D(u, v) + <r, x>  with the residual r of that sum. Nothing of it is dropped. An entry of r counts as rounding only
# beside the terms of its own sum, |A|^T |u| + |B|^T |v|, so that a feature of a large unit exempts no other; and what counts as
# rounding is paid for: over all x with |x_j| <= B_j,  F(x) >= D(u, v) - sum_j |r_j| B_j.

#: An entry of the residual this small beside the terms of its own sum is rounding, not infeasibility.
ROUNDING_SHARE = 1e-12


@dataclass(frozen=True)
class MultiplierSettings:
    """Limits of repairs of multipliers, of what a bound of them covers, and of the search for multipliers that separate constraints."""

    reach_factor: float = 100.0  # size that weights may have, of the solution's, and the residual is paid for
    clip_rounds: int = 12  # rounds of least squares and clipping before a block is given up
    # of the largest room, beside the loss's scale, below which multipliers that clipping leaves unsolved go to an end
    end_share: float = 1e-3
    patience_rounds: int = 4  # first rounds that need not halve the residual
    zero_share: float = 1e-8  # part of the objective at weights of zero below which an optimum counts as zero
    # step back from the end of an interval that tells whether a concave function rises there
    back_step_share: float = 1e-4
    lbfgs_iterations: int = (
        2000  # iterations of L-BFGS-B that look for a separation; it has twice as many evaluations
    )
    # size of weights, of the nearest ones, up to which constraints are disproven before a solver has ended
    far_factor: float = 1e6


SETTINGS = MultiplierSettings()


def stationarity(form: NormalForm, u, v) -> Blocks:
    """r = sum A^T u + sum B^T v on every block."""
    residual = form.zeros()
    for loss, dual in zip(form.losses, u, strict=True):
        loss.add_adjoint(dual, residual)
    for f, dual in zip(form.functions, v, strict=True):
        f.map.add_adjoint(dual, residual)
    return residual


def magnitudes(form: NormalForm, u, v, only: Collection[str] | None = None) -> Blocks:
    """s = sum |A|^T |u| + sum |B|^T |v| on every block: what rounding errors of `stationarity` are proportional to, entry by entry.

    only : the blocks that are asked for: intercepts alone cost no product with the inputs
    """
    size = form.zeros()
    for loss, dual in zip(form.losses, u, strict=True):
        add_magnitudes(loss, dual, size, _is_needed(loss.map, only))
    for f, dual in zip(form.functions, v, strict=True):
        if _is_needed(f.map, only):
            add_absolute(f.map, np.abs(dual), size)
    return size


def add_magnitudes(loss: LossTerm, dual, size: Blocks, on_weights: bool = True) -> None:
    """Add |A|^T |u| of one loss, `on_weights` too or on its intercepts alone."""
    if on_weights:
        add_absolute(loss.map, loss.absolute_adjoint(dual), size)
    for name in loss.intercepts:
        size[name] += loss.absolute_sums(dual)[None, :]


def _is_needed(linear_map, only: Collection[str] | None) -> bool:
    return only is None or any(name in only for name in linear_map.blocks)


def add_absolute(linear_map, Z, into: Blocks) -> None:
    """Add |A|^T Z of a map to every block."""
    for entry in linear_map.entries:
        image = Z
        if entry.left is not None:
            image = abs(entry.left).T @ image
        if entry.right is not None:
            image = image @ abs(entry.right).T
        into[entry.block] += abs(entry.coefficient) * image


def residual_shares(residual: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Entries of a residual beside the terms of their own sums; inf where one has none."""
    return np.divide(np.abs(residual), size, out=np.where(residual == 0.0, 0.0, np.inf), where=size > 0)


def largest_share(residual: np.ndarray, size: np.ndarray) -> float:
    return float(residual_shares(residual, size).max(initial=0.0))


def is_rounding(residual: np.ndarray, size: np.ndarray) -> bool:
    """Tell whether every entry of a residual is rounding beside the terms of its own sum."""
    return largest_share(residual, size) <= ROUNDING_SHARE


def losses_work(form: NormalForm, blocks: Blocks, u) -> Blocks:
    """For every block and column the size of what multipliers do to predictions and labels: sum of <|u_i|, max(|z_i|, |y_i|)> over
    the tasks i that the column has a part in.
    """
    work = {name: np.zeros((1, shape[1])) for name, shape in form.shapes.items()}
    for loss, dual in zip(form.losses, u, strict=True):
        by_task = loss.work(dual, blocks)[None, :]
        for entry in loss.map.entries:
            work[entry.block] += by_task if entry.right is None else by_task.sum()
        for name in loss.intercepts:
            work[name] += by_task
    return work


def region(block: str, blocks: Blocks, size: np.ndarray, work: np.ndarray) -> np.ndarray:
    """B = 100 times the size of a point's weights, entry by entry; and no less than 100 times what it takes to do the losses' work
    alone, `work` / s.
    """
    own = np.abs(blocks[block])
    alone = np.divide(work, size, out=np.zeros(size.shape), where=size > 0)
    return SETTINGS.reach_factor * np.maximum(own, alone)


def make_stationary(
    form: NormalForm, u: list[np.ndarray], v: list[np.ndarray]
) -> tuple[str | None, dict[str, tuple[np.ndarray, np.ndarray]]]:
    """Change u and v in place; (the name of a block where they cannot be made stationary, or None; {block that no term bounds: what is left of
    the equation there, `magnitudes` there}).

    On the latter they are stationary to rounding, entry by entry, and what is left is for the bound to pay.
    """
    known = form.remembered.get("takers")
    if known is None:
        found = {block.name: _taker(form, block.name) for block in form.blocks}
        weights = [block.name for block in form.weight_blocks]
        known = form.remembered["takers"] = found, weights, [name for name in found if found[name] is None]
    takers, weights, free = known
    if len(weights) < len(takers):
        _balance_intercepts(form, u)
    for name in weights if free else ():
        if takers[name] is None:
            _solve_by_least_squares(form, name, u, v)
    for taker in takers.values():
        if taker is not None:  # what it is now decides nothing, and would hide small residuals by its size
            v[taker] = np.zeros_like(v[taker])
    residual = stationarity(form, u, v)
    left: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    if free:
        size = magnitudes(form, u, v, only=free)
        left = {name: (residual[name], size[name]) for name in free}
        for name in weights:
            if name in left:
                left[name] = residual[name], mixed_magnitudes(row_kinds(form, name, v), size[name])
        for name in free:
            if not is_rounding(*left[name]):
                return name, left
    for name, taker in takers.items():
        if taker is not None:
            v[taker] = -residual[name] / form.functions[taker].map.multiple_of(name)
    return None, left


# -------------------------------------------------------------------------------------- terms that take all


def _taker(form: NormalForm, block: str) -> int | None:
    """The function that can take any multiplier on this block: one with an everywhere finite conjugate if there is one."""

    def takes_all(f: FunctionTerm) -> bool:
        # `absorbs` is said without knowing the shape: a group_norm may leave the last rows of this argument unpenalised
        return f.atom.finite_dual or (
            f.atom.absorbs and bool(np.isfinite(f.atom.dual_gauge(np.ones(f.map.shape))))
        )

    candidates = [k for k, f in enumerate(form.functions) if f.map.multiple_of(block) and takes_all(f)]
    return max(candidates, key=lambda k: form.functions[k].atom.finite_dual, default=None)


def _give_to_parts(form: NormalForm, block: str, u, v) -> None:
    """No term takes any multiplier on the whole block; several together may: norms of some of its rows or tasks each take the
    residual there, and W >= a, W <= b take what has their sign.
    """
    residual = stationarity(form, u, v)
    for k, f in enumerate(form.functions):
        if f.map.blocks != (block,) or len(f.map.entries) > 1:
            continue
        (entry,) = f.map.entries
        if picks(entry.left) and picks(
            None if entry.right is None else entry.right.T
        ):  # its adjoint puts them back
            part = entry.forward(residual[block]) / entry.coefficient**2
            taken = f.atom.dual_project(v[k] - part)
            f.map.add_adjoint(taken - v[k], residual)
            v[k] = taken


# ---------------------------------------------------------------------------------------------- intercepts


def _balance_intercepts(form: NormalForm, u) -> None:
    """Make u sum to zero in every task over the losses that share an intercept, staying inside dom f*."""
    for name in {name for loss in form.losses for name in loss.intercepts}:
        sharing = [t for t, loss in enumerate(form.losses) if name in loss.intercepts]
        separable = [t for t in sharing if form.losses[t].shifts_apart]
        others = [t for t in sharing if t not in separable]
        if separable and others and _shift_together(form, separable, others, u):
            continue
        mixing = [t for t in others if isinstance(form.losses[t], StructuredTerm)]
        for t in others:
            if t not in mixing:
                u[t] = form.losses[t].balanced(u[t])
        totals = sum(form.losses[t].sums(u[t]) for t in mixing)
        for t in mixing:  # of structured losses only the sum of all has to vanish
            before = form.losses[t].sums(u[t])
            u[t] = cast(StructuredTerm, form.losses[t]).balanced(u[t], totals)
            totals = totals - before + form.losses[t].sums(u[t])
        if separable:
            _shift_together(form, separable, [], u)
    for block in form.blocks:
        of_labels = [
            t for t, loss in enumerate(form.losses)
            if isinstance(loss, LabelGraphTerm) and block.name in loss.map.blocks
        ]  # fmt: skip
        if of_labels and block.intercept_of is not None:
            balanced = balance_labels([form.losses[t] for t in of_labels], [u[t] for t in of_labels])  # pyrefly: ignore[bad-argument-type]
            for t, new in zip(of_labels, balanced, strict=True):
                u[t] = new


def _shift_together(form: NormalForm, movable: list[int], fixed: list[int], u) -> bool:
    """Shift the movable multipliers of every task by one constant; False, and nothing done, where no sum becomes zero."""
    losses = [form.losses[t] for t in movable]
    if not fixed and all(loss.has_free_dual for loss in losses):  # nothing in the way
        totals = np.sum([loss.sums(u[t]) for t, loss in zip(movable, losses, strict=True)], axis=0)
        excess = totals / np.sum([loss.tasks.counts for loss in losses], axis=0)
        for t, loss in zip(movable, losses, strict=True):
            u[t] = loss.tasks.shift(np.array(u[t]), -excess)
        return True
    intervals = [loss.dual_interval() for loss in losses]
    shifted = [np.array(u[t]) for t in movable]
    done = _shifted_freely(losses[0], shifted[0], *intervals[0]) if len(movable) == 1 and not fixed else ()
    for i in range(losses[0].tasks.n_tasks):
        if i in done:
            continue
        rows = [slice(loss.tasks.offsets[i], loss.tasks.offsets[i + 1]) for loss in losses]
        rest = sum(form.losses[t].sums(u[t])[i] for t in fixed)
        kept = [np.array([rest])] if fixed else []  # an entry that cannot move
        together = shift_to_zero_sum(
            np.concatenate([u[t][r] for t, r in zip(movable, rows, strict=True)] + kept),
            np.concatenate([low[r] for (low, _), r in zip(intervals, rows, strict=True)] + kept),
            np.concatenate([high[r] for (_, high), r in zip(intervals, rows, strict=True)] + kept),
        )
        if fixed and abs(together.sum()) > ROUNDING_SHARE * np.abs(together).max(initial=0.0):
            return False
        ends = np.cumsum([r.stop - r.start for r in rows])
        for target, r, part in zip(shifted, rows, np.split(together, ends)[: len(rows)], strict=True):
            target[r] = part
    for t, new in zip(movable, shifted, strict=True):
        u[t] = new
    return True


def _shifted_freely(loss: LossTerm, u, low, high) -> set[int]:
    """The tasks whose multipliers stay inside their intervals when their mean is taken off, which is done in place."""
    tasks = loss.tasks
    moved = tasks.shift(u.copy(), -tasks.sums(u) / tasks.counts)
    inside = np.logical_and.reduceat((moved >= low) & (moved <= high), tasks.offsets[:-1])
    np.copyto(u, moved, where=np.repeat(inside, tasks.counts))
    return set(np.flatnonzero(inside).tolist())


def shift_to_zero_sum(u, low, high) -> np.ndarray:
    """clip(u + c, low, high) with the c that makes it sum to zero: the sum is monotone and piecewise linear in c.

    Where no c does (an interval without 0 among them), the sum comes as near to zero as it can.
    """
    bounded_below, bounded_above = np.isfinite(low), np.isfinite(high)
    if not bounded_below.any() and not bounded_above.any():
        return u - u.mean()
    excess, inside = float(u.sum()), np.flatnonzero((u > low) & (u < high))
    if inside.size and abs(excess) <= ROUNDING_SHARE * float(np.abs(u).max()):  # it is zero but for rounding
        near = u.copy()
        near[inside] -= excess / inside.size
        if (near[inside] > low[inside]).all() and (near[inside] < high[inside]).all():
            return np.clip(near, low, high)

    def total(c: float) -> float:
        return float(
            np.minimum(np.maximum(u + c, low), high).sum()
        )  # on short arrays `clip` takes three times as long

    breaks = np.unique(np.concatenate([(low - u)[bounded_below], (high - u)[bounded_above], [0.0]]))
    first, last = 0, breaks.size - 1
    while last - first > 1:  # the neighbouring breakpoints between which the sum changes sign
        middle = (first + last) // 2
        first, last = (middle, last) if total(breaks[middle]) <= 0 else (first, middle)
    a, b = total(breaks[first]), total(breaks[last])
    if a > 0:  # only the entries without a lower limit move further down
        c = breaks[first] - a / max(np.sum(~bounded_below), 1)
    elif b <= 0:
        c = breaks[last] - b / max(np.sum(~bounded_above), 1)
    else:
        c = breaks[first] - a * (breaks[last] - breaks[first]) / (b - a)
    shifted = np.clip(u + c, low, high)
    # the interpolation is exact but for rounding, which entries strictly inside take up
    free = (shifted > low) & (shifted < high)
    if free.any():
        shifted[free] -= shifted.sum() / free.sum()
    return np.clip(shifted, low, high)


# ----------------------------------------------------------------------------------------- unpenalised blocks


def _solve_by_least_squares(form: NormalForm, block: str, u, v) -> None:
    """Change u of the block's losses little, inside their domain, until what functions cannot take of the block's residual is rounding. The
    sums that intercepts ask for are kept at zero in the same systems.

    Where that does not end, entries near an end of their domain go there. Else all go a part of the way to an interior point.
    """
    n_tasks = form.shapes[block][1]
    found = [member_of(loss, t, block, n_tasks, u[t]) for t, loss in enumerate(form.losses)]
    members = [one for one in found if one is not None]
    given = {one.index: np.asarray(u[one.index]) for one in members}
    is_solved = _correct(form, block, members, u, v)
    if not is_solved:
        # where the equations ask for an end, steps that shrink with the room come near it and no further
        for one in members:
            u[one.index] = one.loss.at_ends(u[one.index], SETTINGS.end_share)
        is_solved = _correct(form, block, members, u, v)
    if not is_solved and (inside := _interior(form, block, members, u, v)) is not None:
        u[:] = [given.get(t, own) for t, own in enumerate(u)]
        rooms = {t: form.losses[t].room(own) for t, own in inside.items()}
        residual, kinds, _ = _residual(form, block, members, u, v)
        changes = change_least(members, kinds, residual, block, rooms)
        longest = max(np.max(np.abs(change) / rooms[t]) for t, change in changes.items())
        share = longest / (1.0 + longest)
        for t, change in changes.items():
            u[t] = (1.0 - share) * (given[t] + change) + share * inside[t]
        _correct(form, block, members, u, v)
    for t, own in given.items():
        if u[t] is not own:
            u[t] = form.losses[t].dual_project(u[t])


def _correct(form: NormalForm, block: str, members: list[BlockLoss], u, v) -> bool:
    """Least squares on entries strictly inside their domain, and clipping, until the residual is rounding or the rounds are used up."""
    before = np.inf
    for round_ in range(SETTINGS.clip_rounds):
        residual, kinds, worst = _residual(form, block, members, u, v)
        if not members or worst <= 0.01 * ROUNDING_SHARE:
            return True
        if round_ >= SETTINGS.patience_rounds and worst > 0.5 * before:
            return False
        before = worst
        rooms = {one.index: one.loss.room(u[one.index]) for one in members}
        for t, change in change_least(members, kinds, residual, block, rooms).items():
            own = np.asarray(u[t])
            moved = own + change
            # it was rounding, of which the rest is no less so
            moved[np.abs(moved) <= ROUNDING_SHARE * np.abs(own)] = 0.0
            u[t] = form.losses[t].clip(moved)
    return False


def _residual(
    form: NormalForm, block: str, members: list[BlockLoss], u, v
) -> tuple[Blocks, list[RowKind], float]:
    """(residual of the equations after functions took their part, the kinds of rows, the largest share of the residual)."""
    _give_to_parts(form, block, u, v)
    kinds = row_kinds(form, block, v)
    _give_together(form, block, kinds, u, v)
    residual, size = stationarity(form, u, v), magnitudes(form, u, v)
    size[block] = mixed_magnitudes(kinds, size[block])
    watched = [block, *{name for one in members for name in one.loss.intercepts}]
    return residual, kinds, max(largest_share(residual[name], size[name]) for name in watched)


def _interior(form: NormalForm, block: str, members: list[BlockLoss], u, v) -> dict[int, np.ndarray] | None:
    """{index of a loss: multipliers strictly inside their domain that solve the same equations}; None where none were found.

    They are looked for once for all strengths of the penalties, which the equations do not have.
    """
    sizes = np.concatenate([one.loss.coefficients for one in members])
    size = sizes.max() or 1.0
    key = "interior", block, (sizes / size).tobytes()
    if key not in form.remembered:
        form.remembered[key] = _found_inside(form, block, members, u, v, size)
    found = form.remembered[key]
    return None if found is None else {t: size * own for t, own in found.items()}


def _found_inside(
    form: NormalForm, block: str, members: list[BlockLoss], u, v, size: float
) -> dict[int, np.ndarray] | None:
    """`_interior` over `size`, by least squares from the middles of all intervals."""
    inside = list(u)
    for one in members:
        middle = one.loss.middle
        if middle is None:
            return None
        inside[one.index] = middle
    is_solved = _correct(form, block, members, inside, [np.zeros_like(dual) for dual in v])
    if not is_solved or any((one.loss.room(inside[one.index]) <= 0.0).any() for one in members):
        return None
    return {one.index: inside[one.index] / size for one in members}


def _give_together(form: NormalForm, block: str, kinds: list[RowKind], u, v) -> None:
    """Functions that span a row's multipliers together share its residual."""
    residual = None
    for kind in kinds:
        for k, places, share in kind.takers:
            residual = stationarity(form, u, v)[block] if residual is None else residual
            v[k] = np.array(v[k])
            v[k][places] -= residual[kind.rows] @ share.T
            v[k] = form.functions[k].atom.dual_project(v[k])
