"""Where zero weights are optimal: the smallest multiple of a norm's dual ball that meets the slopes of the losses, from both sides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from mtldsl.analysis.slopes import Slopes
from mtldsl.compile.normal_form import FunctionTerm, LossTerm, NormalForm
from mtldsl.errors import ModelError
from mtldsl.proof.residual import add_magnitudes, is_rounding

__all__ = ["Bounds", "Signs", "critical_multiple", "pull_of", "scale_of"]

#: The direction is a proximal step this part below the bound, most of what pulls: the slopes at a kink lie far apart. One direction is three
#: products with the data, and what else is done takes up to two. Where slopes are one point, all lies in what pulls hardest.
_BELOW, _BELOW_POINT = 0.8, 0.02

#: Looks at the norm along a segment.
_LOOKS = 8

#: Bounds this close to one another are one number.
_SAME = 1e-9


class Signs(NamedTuple):
    """What bounds on the weights leave of a step from zero: entries that may rise, entries that may fall; None: all of them."""

    rise: np.ndarray | None = None
    fall: np.ndarray | None = None

    def allowed(self, D: np.ndarray) -> np.ndarray:
        if self.rise is not None:
            D = np.where(self.rise, D, np.minimum(D, 0.0))
        return D if self.fall is None else np.where(self.fall, D, np.maximum(D, 0.0))

    @property
    def bind(self) -> bool:
        return self.rise is not None or self.fall is not None


class Bounds(NamedTuple):
    """Zero is optimal from `high` times the norm on, and is not below `low` times it; `kinked`: the loss to which a gap is due."""

    low: float
    high: float
    kinked: str

    @property
    def exact(self) -> bool:
        return self.high - self.low <= _SAME * self.high


def critical_multiple(sets: Sequence[Slopes], norm: FunctionTerm, block: str, zeros, signs: Signs) -> Bounds:
    """The smallest t such that -X^T u, without what bounds hold, is in t times the dual ball for some slopes u.

    Any u gives an upper bound. Any direction D gives a lower one: zero is not optimal where the losses fall faster along D than
    t norm(D) rises. The two are a saddle point: the best D for one u is a proximal step, the best u for one D a selection.
    """
    pull = pull_of(sets, block, zeros)
    held = signs.allowed(pull)
    high, low = norm.dual_gauge(held), 0.0
    if high == 0.0:
        return Bounds(0.0, 0.0, "")
    kinked = next((s.typed for s in sets if s.typed), "")
    if not kinked and (not signs.bind or norm.atom.monotone):
        return Bounds(high, high, "")
    if not norm.atom.monotone:
        high = min(high, norm.dual_gauge(pull))
    # any direction is right; what pulls is the one of a norm without a proximal step, such as max_norm
    step = (1.0 - (_BELOW if kinked else _BELOW_POINT)) * high
    D = signs.allowed(norm.prox(held, step)) if norm.atom.exact_prox else held
    length = norm.coefficient * norm.atom.value(D)
    if not 0.0 < length < np.inf:
        return Bounds(low, high, kinked)
    if not kinked:
        return Bounds(max(float(np.vdot(pull, D)) / length, 0.0), high, "")
    looks = [s.highest([_scores(loss, {**zeros, block: D}) for loss in s.losses]) for s in sets]
    low = max(low, -sum(rise for _, rise in looks) / length)
    points = [u for u, _ in looks]
    if high - low > _SAME * high and all(u is not None for u in points):
        _, high = _lowest_between(pull, -_adjoint(sets, points, block, zeros), high, norm, signs)
    return Bounds(min(low, high), high, kinked)


def pull_of(sets: Sequence[Slopes], block: str, zeros) -> np.ndarray:
    """Minus the losses' slope at zero, where it is one: zero where it is no more than the rounding of its own sums."""
    slopes = [s.middle() for s in sets]
    pull, size = (
        -_adjoint(sets, slopes, block, zeros),
        {name: np.zeros_like(part) for name, part in zeros.items()},
    )
    for s, u in zip(sets, slopes, strict=True):
        for loss, own in zip(s.losses, u, strict=True):
            add_magnitudes(loss, own, size)
    return np.zeros_like(pull) if is_rounding(pull, size[block]) else pull


def scale_of(
    sets: Sequence[Slopes],
    norm: FunctionTerm,
    block: str,
    form: NormalForm,
    value_at_zero: Callable[[], float],
    typed: str,
) -> float:
    """g*(X^T u) / (f(0) - inf f) of a g that is half a squared norm: beside t times g the losses fall by at most that over t, of what
    there is to fall. ModelError where the losses have no lower bound."""
    least = sum(loss.atom.bounded_below for loss in form.losses)
    if not np.isfinite(least):
        culprit = next(loss for loss in form.losses if not np.isfinite(loss.atom.bounded_below))
        raise ModelError(
            f"{norm.typed} is flat at zero, and {culprit.typed} has no lower bound to measure by", term=typed
        )
    pull = pull_of(sets, block, form.zeros())
    at_zero = value_at_zero()
    return float(norm.conjugate(pull)) / at_zero if at_zero > 0 else 0.0


def _scores(loss: LossTerm, x) -> np.ndarray:
    """The predictions at a point, without intercepts and what is added to the weights."""
    z, offset = loss.tasks.forward(loss.map.forward(x)), loss.offset_predictions()
    return z if offset is None else z - offset


def _adjoint(sets, points, block: str, zeros) -> np.ndarray:
    into = {name: np.zeros_like(part) for name, part in zeros.items()}
    for s, u in zip(sets, points, strict=True):
        for loss, own in zip(s.losses, u, strict=True):
            loss.add_adjoint(own, into)
    return into[block]


def _lowest_between(pull, other, high: float, norm: FunctionTerm, signs: Signs) -> tuple[np.ndarray, float]:
    """The point of a segment where the dual norm is least, nearly: it is convex there (golden section)."""
    golden, ends = 0.5 * (np.sqrt(5.0) - 1.0), [0.0, 1.0]
    best = (high, pull)

    def look(share):
        nonlocal best
        at = pull + share * (other - pull)
        value = norm.dual_gauge(signs.allowed(at))
        if value < best[0]:
            best = value, at
        return value

    inner = [1.0 - golden, golden]
    values = [look(share) for share in inner]
    for _ in range(_LOOKS - 2):
        k = int(values[1] < values[0])
        ends[1 - k] = inner[1 - k]
        kept, value = inner[k], values[k]
        new = ends[0] + ends[1] - kept
        inner, values = ([kept, new], [value, look(new)]) if new > kept else ([new, kept], [look(new), value])
    return best[1], best[0]
