"""The best constant predictions of a model: intercepts at their optimum, weights that are zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from mtldsl.atoms.function import SeparableLoss
from mtldsl.compile.normal_form import Blocks, LossTerm, NormalForm
from mtldsl.compile.terms.structured import StructuredTerm
from mtldsl.compile.terms.structured_constants import lowest_constants

__all__ = ["best_constants", "order_within", "without_weights"]

#: Brackets grow fourfold, from 1 on, so many times at most (to 1e24).
_GROWTHS = 40

#: Looks at the slopes that a constant which is only a candidate is worth, and those after which every third has halved away rounding.
_FEW, _MANY = 12, 200

#: A sum of slopes below this part of their size is zero.
_ROUNDING = 1e-13

Slopes = Callable[[np.ndarray], np.ndarray]


def best_constants(form: NormalForm, rough: bool = False) -> Blocks | None:
    """The point (`rough`: nearly, for the price of a few looks at the losses), None where no loss has an intercept. Intercepts are touched by no regularizer and no constraint, and tasks are apart there:
    in every task the slopes of the losses rise with the constant, and the best one is where their sum changes sign. In a task where it
    never does, the constant is 0 if the slope is 0 everywhere, else the end of what was searched.
    """
    names = [block.name for block in form.blocks if block.intercept_of is not None]
    if not names:
        return None
    x = form.zeros()
    for name in names:
        sharing = [loss for loss in form.losses if name in loss.intercepts]
        if sharing:
            x[name] = _best_of(sharing, x, rough)[None, :]
    return x


def without_weights(loss: LossTerm, x: Blocks) -> np.ndarray:
    """The predictions at a point whose weights are zero: no product with the data unless the weights have an offset."""
    if not loss.intercepts:
        return loss.predictions(x) if loss.map.offset is not None else np.zeros(loss.tasks.n_samples)
    offset = loss.offset_predictions()
    constants = cast(np.ndarray, sum(x[name][0] for name in loss.intercepts))
    z = np.repeat(constants, loss.tasks.counts)
    return z if offset is None else z + offset


def _best_of(sharing: Sequence[LossTerm], x: Blocks, rough: bool) -> np.ndarray:
    at = [without_weights(loss, x) for loss in sharing]
    if len(sharing) == 1:
        (loss,), (z,) = sharing, at
        if loss.atom.radial:
            return _means(loss.tasks.targets - z, loss.tasks.sample_weights, loss)
        if isinstance(loss, StructuredTerm) and not rough:
            return lowest_constants(loss, z).constants
        known = _of_classes(loss, z)
        if known is not None:
            return known
    if all(_kinks(loss) for loss in sharing):
        return _at_kinks(sharing, at)
    return _root([_slopes_of(loss, z) for loss, z in zip(sharing, at, strict=True)], sharing[0], rough)


def _means(values, weights, loss: LossTerm) -> np.ndarray:
    starts = loss.tasks.offsets[:-1]
    if weights is None:
        return np.add.reduceat(values, starts) / loss.tasks.counts
    return np.add.reduceat(weights * values, starts) / np.add.reduceat(weights, starts)


# ------------------------------------------------------------------------------------------------- piecewise linear


def _kinks(loss: LossTerm) -> bool:
    """Whether every sample's loss is two lines that meet at b, where its conjugate is b u on an interval: absolute, quantile, hinge."""
    if not isinstance(loss.atom, SeparableLoss):
        return False
    quadratic = loss.atom.dual_quadratic(loss.tasks.targets[:1])
    return (
        quadratic is not None
        and quadratic[1] == 0.0
        and all(np.isfinite(end).all() for end in loss.dual_interval())
    )


def _at_kinks(sharing: Sequence[LossTerm], at) -> np.ndarray:
    """A weighted quantile of the kinks: exactly one of them, or the middle between two where the slope there is zero."""
    tasks, kinks, low, high = [], [], [], []
    for loss, z in zip(sharing, at, strict=True):
        atom: Any = loss.atom
        ends = loss.dual_interval()
        tasks.append(np.repeat(np.arange(loss.tasks.n_tasks), loss.tasks.counts))
        kinks.append(np.asarray(atom.dual_quadratic(loss.tasks.targets)[0], float) - z)
        low.append(ends[0])
        high.append(ends[1])
    task, kink = np.concatenate(tasks), np.concatenate(kinks)
    lows, widths = np.concatenate(low), np.concatenate(high) - np.concatenate(low)
    order = order_within(task, kink)
    kink, widths = kink[order], widths[order]
    counts = np.bincount(task)
    ends = np.cumsum(counts)
    starts = ends - counts
    # the slope to the right of every kink, in every task by itself
    lowest, total = np.add.reduceat(lows[order], starts), np.add.reduceat(widths, starts)
    sums = np.cumsum(widths)
    before = np.repeat(sums[starts] - widths[starts], counts)
    slope = np.repeat(lowest, counts) + (sums - before)
    negative = slope < -1e-11 * np.repeat(total, counts)
    first = np.minimum(starts + np.add.reduceat(negative.astype(np.int64), starts), ends - 1)
    after = np.minimum(first + 1, ends - 1)
    is_flat = np.abs(slope[first]) <= 1e-11 * total
    return np.where(is_flat, 0.5 * (kink[first] + kink[after]), kink[first])


def order_within(task: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The order of the entries by task, and within every task by their values."""
    if np.any(task[1:] < task[:-1]):
        return np.lexsort((values, task))
    ends = np.flatnonzero(np.r_[task[1:] != task[:-1], True]) + 1
    order, start = np.empty(task.size, np.int64), 0
    for end in ends:
        np.add(np.argsort(values[start:end]), start, out=order[start:end])
        start = end
    return order


# ----------------------------------------------------------------------------------------------------- by a search


def _counts_classes(loss: LossTerm) -> bool:
    """Whether all samples of a class are the same as long as weights are zero."""
    return isinstance(loss.atom, SeparableLoss) and loss.atom.labels == "sign" and loss.map.offset is None


def _class_weights(loss: LossTerm) -> np.ndarray:
    """(2, m): what the samples of labels +1, and of labels -1, weigh in every task."""
    y, s = loss.tasks.targets, 1.0 if loss.scale is None else loss.scale
    up = np.add.reduceat(np.where(y > 0, s, 0.0), loss.tasks.offsets[:-1])
    down = np.add.reduceat(np.where(y < 0, s, 0.0), loss.tasks.offsets[:-1])
    return np.stack([up, down])


def _of_classes(loss: LossTerm, z) -> np.ndarray | None:
    """Where the loss knows its best constants by a formula, and no task is without one of the classes."""
    if not _counts_classes(loss):
        return None
    weights, atom = _class_weights(loss), cast(Any, loss.atom)
    known = atom.constant_of_classes(*weights) if np.all(weights > 0) else None
    return None if known is None else known - z[loss.tasks.offsets[:-1]]


def _slopes_of(loss: LossTerm, z: np.ndarray) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """constants (m,) -> (sums of the slopes, sums of their sizes), task by task."""
    starts, counts = loss.tasks.offsets[:-1], loss.tasks.counts
    if _counts_classes(loss):
        # all samples of a class have the same slope: two numbers a task
        weights = _class_weights(loss)
        atom: Any = loss.atom
        labels, origin = np.array([[1.0], [-1.0]]), z[starts]

        def of_classes(b):
            u = weights * atom.slope(
                np.broadcast_to(origin + b, weights.shape), np.broadcast_to(labels, weights.shape)
            )
            return u.sum(axis=0), np.abs(u).sum(axis=0)

        return of_classes

    def of_samples(b):
        u = np.asarray(loss.gradient(z + np.repeat(b, counts)))
        return np.add.reduceat(u, starts), np.add.reduceat(np.abs(u), starts)

    return of_samples


def _root(parts, loss: LossTerm, rough: bool) -> np.ndarray:
    sizes = np.zeros(loss.tasks.n_tasks)

    def slopes(b: np.ndarray) -> np.ndarray:
        total, size = np.zeros(b.size), np.zeros(b.size)
        # exp of a far bracket: infinite is as good as large
        with np.errstate(over="ignore", invalid="ignore"):
            for part in parts:
                one, its_size = part(b)
                total, size = total + one, size + its_size
        sizes[:] = size
        return total

    low, high = (
        _bracket(slopes, np.full(sizes.size, -1.0)),
        -_bracket(lambda b: -slopes(-b), np.full(sizes.size, -1.0)),
    )
    below, above = slopes(low), slopes(high)
    best = _between(slopes, sizes, low, high, below, above, rough)
    return np.where(below == above, 0.0, best)


def _between(slopes: Slopes, sizes, low, high, below, above, rough: bool) -> np.ndarray:
    """Regula falsi with the end that stays halved in weight (Illinois), every third step a bisection: slopes may have steps."""
    best = at = 0.5 * (low + high)
    smallest, side = np.full(low.size, np.inf), np.zeros(low.size)
    slope = np.fmin(np.abs(below), np.abs(above))
    for k in range(_FEW if rough else _MANY):
        with np.errstate(all="ignore"):
            secant = (low * above - high * below) / (above - below)
        at = np.where(np.isfinite(secant) & (k % 3 != 2), np.clip(secant, low, high), 0.5 * (low + high))
        found = slopes(at)
        best = np.where(np.abs(found) < smallest, at, best)
        smallest = np.fmin(np.abs(found), smallest)
        met = (np.abs(found) <= _ROUNDING * sizes) | (0.5 * (high - low) <= 4e-16 * np.abs(at))
        if met.all():
            break
        # a task that has met its constant stays there
        falls = (found <= 0) & ~met
        rises = (found > 0) & ~met
        above = np.where(falls & (side < 0), 0.5 * above, above)
        below = np.where(rises & (side > 0), 0.5 * below, below)
        low, below = np.where(falls | met, at, low), np.where(falls, found, below)
        high, above = np.where(rises | met, at, high), np.where(rises, found, above)
        side = np.where(falls, -1.0, 1.0)
    return np.where(smallest <= 1e-6 * slope, best, at)  # at a kink the slope does not become small


def _bracket(slopes: Slopes, b: np.ndarray) -> np.ndarray:
    """From b < 0 on downwards, task by task, until the slope is not positive."""
    for _ in range(_GROWTHS):
        rising = ~(slopes(b) <= 0)
        if not rising.any():
            break
        b = np.where(rising, 4.0 * b, b)
    return b
