"""The slopes of the losses where the weights are zero: one point where they are smooth, a convex set of points at kinks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from mtldsl.atoms.function import SeparableLoss
from mtldsl.compile.constants import best_constants, order_within, without_weights
from mtldsl.compile.normal_form import LossTerm, NormalForm
from mtldsl.compile.terms.structured import StructuredTerm
from mtldsl.compile.terms.structured_constants import lowest_constants
from mtldsl.errors import ModelError

__all__ = ["Slopes", "slopes_at_zero"]

#: Structured hinges are looked at so far from zero, in units of their scores; what is lost to rounding there, relatively.
_STEP, _LOST = 1e-8, 1e-6


class Slopes(Protocol):
    """A convex set of u = (one flat array a loss): the subgradients at zero weights that balance every intercept."""

    @property
    def losses(self) -> Sequence[LossTerm]: ...

    @property
    def typed(self) -> str:
        """The loss with the kink, "" where the set is one point."""
        ...

    def middle(self) -> list[np.ndarray]:
        """A point of the set."""
        ...

    def highest(self, scores: list[np.ndarray]) -> tuple[list[np.ndarray] | None, float]:
        """(a point of the set where sum <u, scores> is largest, None where it is not at hand; an upper bound of that sum)."""
        ...


def slopes_at_zero(form: NormalForm, typed: str) -> tuple[list[Slopes], float]:
    """(the sets whose sum are the slopes, the losses' value there). ModelError for a kink of which nothing is known."""
    x = best_constants(form) or form.zeros()
    sets, value = [], 0.0
    for losses in _sharing(form):
        at = [without_weights(loss, x) for loss in losses]
        value += sum(loss.value(z) for loss, z in zip(losses, at, strict=True))
        sets.append(_set_of(losses, at, typed))
    return sets, value


def _sharing(form: NormalForm) -> Iterator[list[LossTerm]]:
    """The losses, those that share an intercept together."""
    left = list(form.losses)
    while left:
        names = set(left[0].intercepts)
        group = [loss for loss in left if loss is left[0] or names & set(loss.intercepts)]
        left = [loss for loss in left if all(loss is not other for other in group)]
        yield group


def _set_of(losses: list[LossTerm], at, typed: str) -> Slopes:
    kinked = [loss for loss, z in zip(losses, at, strict=True) if not _is_smooth_at(loss, z)]
    if not kinked:
        return _Point(losses, [loss.gradient(z) for loss, z in zip(losses, at, strict=True)])
    (culprit, *others) = kinked
    if all(_is_two_lines(loss) for loss in kinked):
        return _Intervals(losses, at, kinked)
    if isinstance(culprit, StructuredTerm) and len(losses) == 1:
        return _Planes(culprit, at[0])
    raise ModelError(
        f"known for losses that are differentiable where the weights are zero"
        f"{' and the intercepts optimal' if culprit.intercepts else ''}, and for kinks of hinge, absolute and quantile losses; "
        f"{culprit.typed} is not",
        term=typed,
    )


def _is_two_lines(loss: LossTerm) -> bool:
    if not isinstance(loss.atom, SeparableLoss):
        return False
    quadratic = loss.atom.dual_quadratic(loss.tasks.targets[:1])
    return quadratic is not None and quadratic[1] == 0.0


def _is_smooth_at(loss: LossTerm, z: np.ndarray) -> bool:
    """Whether the gradients on both sides of z agree; unless it is known, along the ones and a few random directions: each side of a
    kink has its own."""
    if loss.atom.smooth:
        return True
    if _is_two_lines(loss):
        return not np.any(_at_kink(loss, z))
    if isinstance(loss, StructuredTerm) and loss.intercepts and loss.atom.takes_intercept:
        return False
    rng = np.random.default_rng(0)
    for direction in (1.0, *rng.normal(size=(3, z.size))):
        step = 1e-7 * (1.0 + np.abs(z)) * direction
        before, after = loss.gradient(z - step), loss.gradient(z + step)
        # over so short a step a smooth loss changes its slopes by about 1e-7 of them, a kink by a good part of one
        if np.abs(after - before).max() > 1e-4 * max(np.abs(before).max(), np.abs(after).max()):
            return False
    return True


def _at_kink(loss: LossTerm, z: np.ndarray) -> np.ndarray:
    atom: Any = loss.atom
    kinks = np.asarray(atom.dual_quadratic(loss.tasks.targets)[0], float)
    return np.abs(z - kinks) <= 1e-12 * (np.abs(z) + np.abs(kinks))


class _Point:
    typed = ""

    def __init__(self, losses: Sequence[LossTerm], u):
        self.losses, self.u = losses, u

    def middle(self):
        return self.u

    def highest(self, scores):
        return self.u, float(sum(u @ z for u, z in zip(self.u, scores, strict=True)))


class _Intervals:
    """u between two ends, which differ at kinks only; with intercepts, their sum over a task is zero."""

    def __init__(self, losses: list[LossTerm], at, kinked: list[LossTerm]):
        self.losses, self.typed = losses, kinked[0].typed
        low, high, tasks = [], [], []
        for loss, z in zip(losses, at, strict=True):
            u = np.asarray(loss.gradient(z))
            ends: tuple[np.ndarray, np.ndarray] = (u, u)
            if loss in kinked:
                met = _at_kink(loss, z)
                ends = tuple(np.where(met, end, u) for end in loss.dual_interval())  # type: ignore[assignment]
            low.append(ends[0])
            high.append(ends[1])
            tasks.append(np.repeat(np.arange(loss.tasks.n_tasks), loss.tasks.counts))
        self.low, self.width = np.concatenate(low), np.concatenate(high) - np.concatenate(low)
        self.task, self.m = np.concatenate(tasks), losses[0].tasks.n_tasks
        self.cuts = np.cumsum([loss.tasks.n_samples for loss in losses])[:-1]
        self.room = None
        if losses[0].intercepts:
            widths = np.bincount(self.task, self.width, self.m)
            self.room = np.clip(-np.bincount(self.task, self.low, self.m), 0.0, widths)
            # a sum that leaves no choice: one kink in the task, or all of them at one end
            kinks = np.bincount(self.task, self.width > 0, self.m)
            given = (kinks <= 1) | (self.room <= 1e-12 * widths) | (self.room >= (1.0 - 1e-12) * widths)
            if given.all():
                self.typed = ""

    def middle(self):
        if self.room is None:
            return np.split(self.low + 0.5 * self.width, self.cuts)
        widths = np.bincount(self.task, self.width, self.m)
        share = np.divide(self.room, widths, out=np.zeros(self.m), where=widths > 0)
        return np.split(self.low + share[self.task] * self.width, self.cuts)

    def highest(self, scores):
        """With a sum that is given, the kinks with the highest scores take the room there is (a fractional knapsack)."""
        z = np.concatenate(scores)
        if self.room is None:
            u = self.low + np.where(z > 0, self.width, 0.0)
            return np.split(u, self.cuts), float(u @ z)
        u = self.low.copy()
        free = np.flatnonzero(self.width > 0)
        order = free[order_within(self.task[free], -z[free])]
        task, width = self.task[order], self.width[order]
        sums = np.cumsum(width) - width
        first = np.r_[True, task[1:] != task[:-1]]
        before = sums - np.repeat(sums[first], np.diff(np.r_[np.flatnonzero(first), task.size]))
        u[order] += np.clip(self.room[task] - before, 0.0, width)
        return np.split(u, self.cuts), float(u @ z)


class _Planes:
    """The planes of a structured hinge that are highest at zero, and their mixtures."""

    def __init__(self, term: StructuredTerm, z: np.ndarray):
        self.losses, self.typed, self.term = (term,), term.typed, term
        offset = term.offset_predictions()
        self.origin = z if offset is None or not term.intercepts else offset
        self.origin = np.zeros_like(z) if offset is None else self.origin
        self.is_plain, self.constants = offset is None, None
        self.value, self.u, _ = self._at(np.zeros_like(z))
        if self.is_plain:  # all samples of a class are alike: so may be their slopes
            for rows, _, _, _, classes in term.tasks_apart:
                own = self.u[rows]
                for members in classes:
                    own[members] = own[members].mean()

    def _at(self, scores, near=None) -> tuple[float, np.ndarray, bool]:
        """(value, a subgradient with balanced intercepts, whether it is balanced) at these scores beside the origin.

        near : constants that are nearly the best.
        """
        if self.term.intercepts and self.term.atom.takes_intercept:
            found = lowest_constants(
                self.term, self.origin + scores, near, 4.0 * _STEP if near is not None else 1.0
            )
            self.constants = found.constants if near is None else self.constants
            return float(found.values.sum()), found.u, bool(found.met.all())
        z = self.origin + scores
        return self.term.value(z), self.term.gradient(z), True

    def middle(self):
        return [self.u]

    def highest(self, scores):
        (z,) = scores
        largest = float(np.abs(z).max(initial=0.0))
        if largest == 0.0:
            return [self.u], 0.0
        step = _STEP / largest
        value, u, met = self._at(step * z, self.constants)
        # convexity: a difference quotient is above the derivative
        rise = (value - self.value) / step
        back = value - step * float(u @ z)  # the height of that plane, or mixture, at zero
        is_member = met and back >= self.value - 1e-13 * max(abs(self.value), 1.0)
        return ([u] if is_member else None), rise + _LOST * abs(rise)
