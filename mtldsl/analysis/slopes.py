"""The slopes of the losses where the weights are zero: one point where they are smooth, a convex set of points at kinks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np

from mtldsl.analysis.boxes import Boxes, flips, two_lines
from mtldsl.atoms.function import SeparableLoss
from mtldsl.compile.constants import best_constants
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


def slopes_at_zero(form: NormalForm, typed: str) -> tuple[list[Slopes], Callable[[], float]]:
    """(the sets whose sum are the slopes, what asks for the losses' value there). ModelError for a kink of which nothing is known."""
    known = best_constants(form)
    if known is None and any(loss.intercepts for loss in form.losses):
        raise ModelError(
            "the best constants of rows that are elsewhere are known for squares and losses of two classes",
            term=typed,
            write_instead="choose values by some of the rows, tasks.subsample(rows)",
        )
    x = known or form.zeros()
    sets: list[Slopes] = []
    points = []
    for losses in _sharing(form):
        at = [loss.predictions_without_weights(x) for loss in losses]
        points += zip(losses, at, strict=True)
        sets.append(_set_of(losses, at, typed))
    return sets, lambda: sum(loss.value(z) for loss, z in points)


def _sharing(form: NormalForm) -> Iterator[list[LossTerm]]:
    """The losses, those that share an intercept together."""
    left = list(form.losses)
    while left:
        names = set(left[0].intercepts)
        group = [loss for loss in left if loss is left[0] or names & set(loss.intercepts)]
        left = [loss for loss in left if all(loss is not other for other in group)]
        yield group


def _set_of(losses: list[LossTerm], at, typed: str) -> Slopes:
    ends = [_ends_of(loss, z, len(losses)) for loss, z in zip(losses, at, strict=True)]
    kinked = [
        loss
        for loss, z, own in zip(losses, at, ends, strict=True)
        if (not _is_smooth_at(loss, z) if own is None else own[1].any())
    ]
    if not kinked:
        return _Point(losses, [loss.gradient(z) for loss, z in zip(losses, at, strict=True)])
    culprit = kinked[0]
    if all(own is not None for loss, own in zip(losses, ends, strict=True) if loss in kinked):
        low, width = [], []
        for loss, z, own in zip(losses, at, ends, strict=True):
            own = (np.asarray(loss.gradient(z)), np.zeros(z.size)) if own is None else own
            low.append(own[0])
            width.append(own[1])
        return Boxes(losses, low, width, culprit.typed, _sums_of(losses))
    if isinstance(culprit, StructuredTerm) and len(losses) == 1:
        return _Planes(culprit, at[0])
    raise ModelError(
        f"known for losses that are differentiable where the weights are zero"
        f"{' and the intercepts optimal' if culprit.intercepts else ''}, and for kinks of hinge, absolute and quantile losses; "
        f"{culprit.typed} is not",
        term=typed,
    )


def _sums_of(losses: list[LossTerm]) -> np.ndarray | None:
    """What the slopes of every task sum to, where that is given."""
    loss = losses[0]
    if isinstance(loss, StructuredTerm):
        totals = [known.total for known in loss.at_constants or ()]
        return None if None in totals else loss.coefficients * np.array(totals, float)
    return np.zeros(loss.tasks.n_tasks) if loss.intercepts else None


def _ends_of(loss: LossTerm, z: np.ndarray, sharing: int) -> tuple[np.ndarray, np.ndarray] | None:
    """(low, width) of its slopes, where every sample's go from one to the other by themselves; None: not known."""
    if isinstance(loss, StructuredTerm):
        return flips(loss) if sharing == 1 and loss.at_constants is not None else None
    return two_lines(loss, z) if _is_two_lines(loss) else None


def _is_two_lines(loss: LossTerm) -> bool:
    if not (isinstance(loss.atom, SeparableLoss) and loss.shifts_apart):
        return False
    quadratic = loss.atom.dual_quadratic(loss.tasks.targets[:1])
    return quadratic is not None and quadratic[1] == 0.0


def _is_smooth_at(loss: LossTerm, z: np.ndarray) -> bool:
    """Whether the gradients on both sides of z agree; unless it is known, along the ones and a few random directions: each side of a
    kink has its own."""
    if loss.has_one_slope_at_zero is not None:
        return loss.has_one_slope_at_zero
    rng = np.random.default_rng(0)
    for direction in (1.0, *rng.normal(size=(3, z.size))):
        step = 1e-7 * (1.0 + np.abs(z)) * direction
        before, after = loss.gradient(z - step), loss.gradient(z + step)
        # over so short a step a smooth loss changes its slopes by about 1e-7 of them, a kink by a good part of one
        if np.abs(after - before).max() > 1e-4 * max(np.abs(before).max(), np.abs(after).max()):
            return False
    return True


class _Point:
    typed = ""

    def __init__(self, losses: Sequence[LossTerm], u):
        self.losses, self.u = losses, u

    def middle(self):
        return self.u

    def highest(self, scores):
        return self.u, float(sum(u @ z for u, z in zip(self.u, scores, strict=True)))


class _Planes:
    """The planes of a structured hinge that are highest at zero, and their mixtures."""

    def __init__(self, term: StructuredTerm, z: np.ndarray):
        self.losses, self.typed, self.term = (term,), term.typed, term
        offset = term.offset_predictions()
        self.origin = z if offset is None or not term.intercepts else offset
        self.origin = np.zeros_like(z) if offset is None else self.origin
        self.is_plain = offset is None
        self.constants: np.ndarray | None = None
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
