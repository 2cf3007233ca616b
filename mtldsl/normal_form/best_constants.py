"""Best constants: the intercepts with the lowest losses where all weights are zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mtldsl.normal_form.form import Blocks, LossTerm, NormalForm
from mtldsl.normal_form.terms.joint_losses import RowTerm, WorstTaskTerm
from mtldsl.normal_form.terms.structured_term import StructuredTerm

# --------------------------------------------------------------------------------------------------------------
# The best constant of a structured hinge: one convex, piecewise linear function of one number in every task.


@dataclass(frozen=True)
class ConstantSettings:
    """Limits of searches for the best constants. Brackets grow fourfold, from 1 on."""

    plane_growths: int = 30  # growths of a bracket between planes
    plane_meetings: int = 100  # meetings of two planes; a few find the kink
    slope_growths: int = 40  # growths of a bracket between slopes: to 1e24
    max_rounds: int = 200  # looks after which every third has halved away rounding


SETTINGS = ConstantSettings()


#: A plane that is no higher than this part of the heights is the one that meets there.
_ROUNDING_SHARE = 1e-13


class BestConstants(NamedTuple):
    """constants and values (m,), coefficients included; u (N,): a subgradient there whose sum over every task is zero, where one is found;
    met (m,): whether it was."""

    constants: np.ndarray
    values: np.ndarray
    u: np.ndarray
    met: np.ndarray


def lowest_constants(term: StructuredTerm, z: np.ndarray, near=None, step: float = 1.0) -> BestConstants:
    """argmin over b of the hinge at z + b, task by task: where the planes from both sides meet, their mixture is level.

    near : (m,) where to look first (None: at zero); step: how far to go from there before going fourfold.
    """
    m = term.tasks.n_tasks
    found = BestConstants(np.zeros(m), np.zeros(m), np.zeros(z.size), np.zeros(m, dtype=bool))
    for i, (rows, c, metric, y, classes) in enumerate(term.tasks_apart):

        def look(b, own=z[rows], metric=metric, y=y, classes=classes):
            plane = metric.most_violated(own + b, y, classes)
            slope = plane.gradient(y)
            return b, plane.value, float(slope.sum()), slope

        b, value, slope, met = _lowest(look, 0.0 if near is None else float(near[i]), step)
        found.constants[i], found.values[i], found.u[rows], found.met[i] = b, c * value, c * slope, met
    return found


def _lowest(look, start: float, step: float):
    middle = look(start)
    if abs(middle[2]) <= _ROUNDING_SHARE * np.abs(middle[3]).sum():  # rankings, too
        return start, middle[1], middle[3], True
    side, far = (-1.0 if middle[2] > 0 else 1.0), middle
    near = middle
    for k in range(SETTINGS.plane_growths):
        far = look(start + side * step * 4.0**k)
        if far[2] * near[2] <= 0:
            break
        near = far
    else:  # the constant may grow without end
        return far[0], far[1], far[3], False
    left, right = (far, near) if side < 0 else (near, far)
    at = left
    for _ in range(SETTINGS.plane_meetings):
        meeting = (left[1] - right[1] + right[2] * right[0] - left[2] * left[0]) / (right[2] - left[2])
        height = left[1] + left[2] * (meeting - left[0])
        at = look(meeting)
        if at[2] == 0.0 or at[1] <= height + _ROUNDING_SHARE * max(
            abs(height), abs(left[2] * meeting), 1e-300
        ):
            break
        left, right = (at, right) if at[2] < 0 else (left, at)
    if at[2] == 0.0:
        return at[0], at[1], at[3], True
    share = right[2] / (right[2] - left[2])
    return at[0], at[1], share * left[3] + (1.0 - share) * right[3], True


# --------------------------------------------------------------------------------------------------------------
# The best constant predictions of a model: intercepts at their optimum, weights that are zero.


Slopes = Callable[[np.ndarray], np.ndarray]


def best_constants(form: NormalForm) -> Blocks | None:
    """The point, None where no loss has an intercept. Intercepts are touched by no regularizer and no constraint, and tasks are apart there:
    in every task the slopes of the losses rise with the constant, and the best one is where their sum changes sign. In a task where it
    never does, the constant is 0 if the slope is 0 everywhere, else the end of what was searched.
    """
    names = [block.name for block in form.blocks if block.intercept_of is not None]
    if not names:
        return None
    known = [loss for loss in (one.constant_statistics() for one in form.losses) if loss is not None]
    if len(known) < len(form.losses):
        return None
    x = form.zeros()
    for name in names:
        sharing = [loss for loss in known if name in loss.intercepts]
        if sharing:
            x[name] = _best_of(sharing, x)[None, :]
    return x


def _best_of(sharing: Sequence[LossTerm], x: Blocks) -> np.ndarray:
    # constants that are best for every task are so for the worst one
    sharing = [loss.each if isinstance(loss, WorstTaskTerm) else loss for loss in sharing]
    at = [loss.predictions(x) for loss in sharing]
    if len(sharing) == 1:
        (loss,), (z,) = sharing, at
        if loss.atom.radial:
            return _means(loss.tasks.targets - z, loss.tasks.sample_weights, loss.tasks)
        if isinstance(loss, RowTerm) and loss.map.offset is None:
            return loss.best_constants()
        if isinstance(loss, StructuredTerm):
            if loss.at_constants is not None:
                return np.array([known.constant for known in loss.at_constants]) - z[loss.tasks.offsets[:-1]]
            return lowest_constants(loss, z).constants
    if all(loss.is_piecewise_linear for loss in sharing):  # absolute, quantile, hinge
        return _at_kinks(sharing, at)
    return _root(sharing, at)


def _means(values, weights, tasks) -> np.ndarray:
    if weights is None:
        return tasks.sums(values) / tasks.counts
    return tasks.sums(weights * values) / tasks.sums(weights)


# ------------------------------------------------------------------------------------------------- piecewise linear


def _at_kinks(sharing: Sequence[LossTerm], at) -> np.ndarray:
    """A weighted quantile of the kinks: exactly one of them, or the middle between two where the slope there is zero."""
    kinks = []
    for loss, z in zip(sharing, at, strict=True):
        atom: Any = loss.atom
        a, b = atom.zero_interval(loss.tasks.targets)
        low, high = loss.dual_interval()
        if b is a:
            kinks.append((loss.tasks.offsets, a - z, low, high))
        else:  # two kinks, the slope between them is zero
            zero = np.zeros(z.size)
            kinks += [(loss.tasks.offsets, a - z, low, zero), (loss.tasks.offsets, b - z, zero, high)]
    m = sharing[0].tasks.n_tasks
    best = np.empty(m)
    for i in range(m):
        parts = [tuple(one[offsets[i] : offsets[i + 1]] for one in own) for offsets, *own in kinks]
        best[i] = _quantile(*(p[0] if len(p) == 1 else np.concatenate(p) for p in zip(*parts, strict=True)))
    return best


def _quantile(kinks: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
    """Return where the sum of the slopes, `low` left of each kink and `high` right of it, changes sign."""
    order, last = np.argsort(kinks), len(kinks) - 1
    places, widths = kinks[order], (high - low)[order]
    slopes, rounding = float(low.sum()) + np.cumsum(widths), 1e-11 * float(widths.sum())
    first = min(int(np.count_nonzero(slopes < -rounding)), last)
    if abs(slopes[first]) <= rounding:
        return 0.5 * float(places[first] + places[min(first + 1, last)])
    return float(places[first])


# ----------------------------------------------------------------------------------------------------- by a search


def _root(sharing: Sequence[LossTerm], at: Sequence[np.ndarray]) -> np.ndarray:
    sizes = np.zeros(sharing[0].tasks.n_tasks)  # of the slopes that were asked for last

    def slopes(b: np.ndarray) -> np.ndarray:
        total, sizes[:] = np.zeros(b.size), 0.0
        # exp of a far bracket: infinite is as good as large
        with np.errstate(over="ignore", invalid="ignore"):
            for loss, z in zip(sharing, at, strict=True):
                u = np.asarray(loss.gradient(z + np.repeat(b, loss.tasks.counts)))
                total += loss.tasks.sums(u)
                sizes[:] += loss.tasks.sums(np.abs(u))
        return total

    low, high = (
        _bracket(slopes, np.full(sizes.size, -1.0)),
        -_bracket(lambda b: -slopes(-b), np.full(sizes.size, -1.0)),
    )
    below, above = slopes(low), slopes(high)
    best = _regula_falsi(slopes, sizes, low, high, below, above)
    return np.where(below == above, 0.0, best)


def _regula_falsi(slopes: Slopes, sizes, low, high, below, above) -> np.ndarray:
    """Regula falsi with the end that stays halved in weight (Illinois), every third step a bisection: slopes may have steps."""
    best = at = 0.5 * (low + high)
    smallest, side = np.full(low.size, np.inf), np.zeros(low.size)
    slope = np.fmin(np.abs(below), np.abs(above))
    for k in range(SETTINGS.max_rounds):
        with np.errstate(all="ignore"):
            secant = (low * above - high * below) / (above - below)
        at = np.where(np.isfinite(secant) & (k % 3 != 2), np.clip(secant, low, high), 0.5 * (low + high))
        found = slopes(at)
        best = np.where(np.abs(found) < smallest, at, best)
        smallest = np.fmin(np.abs(found), smallest)
        met = (np.abs(found) <= _ROUNDING_SHARE * sizes) | (0.5 * (high - low) <= 4e-16 * np.abs(at))
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
    for _ in range(SETTINGS.slope_growths):
        rising = ~(slopes(b) <= 0)
        if not rising.any():
            break
        b = np.where(rising, 4.0 * b, b)
    return b
