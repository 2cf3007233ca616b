"""Critical multiple of a norm: the smallest at which zero weights are optimal, from slopes at zero."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from mtldsl.atoms.loss import SeparableLoss
from mtldsl.certificates.multipliers import add_magnitudes, is_rounding
from mtldsl.errors import ModelError
from mtldsl.normal_form.best_constants import best_constants, lowest_constants
from mtldsl.normal_form.form import FunctionTerm, LossTerm, NormalForm
from mtldsl.normal_form.terms.structured_term import StructuredTerm

# --------------------------------------------------------------------------------------------------------------
# Slopes that lie in a box, task by task, with sums that are given: those of hinge, absolute and quantile losses at their kinks.


@dataclass(frozen=True)
class CriticalValueSettings:
    """Limits of the search for a critical value.

    rounding_share       : part of a sum below which its parts are rounding
    probe_ratio          : distance from zero at which structured hinges are looked at, in units of their scores
    probe_rounding_share : what is lost to rounding there
    kinked_share         : part below the bound of the proximal step that is the direction: most of what pulls, since slopes at a kink lie far apart
    smooth_share         : the same where slopes are one point: all lies in what pulls hardest
    segment_steps        : looks at the norm along a segment
    agreement_tol        : relative distance of bounds that are one number
    """

    rounding_share: float = 1e-12
    probe_ratio: float = 1e-8
    probe_rounding_share: float = 1e-6
    kinked_share: float = 0.8
    smooth_share: float = 0.02
    segment_steps: int = 8
    agreement_tol: float = 1e-9


SETTINGS = CriticalValueSettings()


class SubgradientBoxes:
    """u between low and low + width, sample by sample; where its sum over every task is given, that too.

    losses     : those that share an intercept
    low, width : (n,) of every loss, flat
    typed      : the loss with the kink, "" where the set is one point
    sums       : (m,) the sums over tasks, 0 where intercepts balance them; None: not given
    """

    def __init__(
        self,
        losses: Sequence[LossTerm],
        low: Sequence[np.ndarray],
        width: Sequence[np.ndarray],
        typed: str,
        sums: np.ndarray | None,
    ):
        self.losses, self.typed, self.sums = losses, typed, sums
        self.cuts = np.cumsum([one.size for one in low])[:-1]
        tasks = [np.repeat(np.arange(loss.tasks.n_tasks), loss.tasks.counts) for loss in losses]
        # samples of all losses side by side, task after task
        self.order = np.argsort(np.concatenate(tasks), kind="stable")
        self.low, self.width = self._together(low), self._together(width)
        self.starts = np.sum([loss.tasks.offsets for loss in losses], axis=0).astype(np.int64)
        if sums is not None:
            self.total = self._by_task(self.width)
            self.room = np.clip(sums - self._by_task(self.low), 0.0, self.total)
            # a sum that leaves no choice: all kinks at one end, or one kink in the task
            room = np.minimum(self.room, self.total - self.room)
            count = self._by_task(self.width > 0.0)
            is_point = (count <= 1) | (room <= SETTINGS.rounding_share * self.total)
            if is_point.all():
                self.typed = ""

    def middle(self) -> list[np.ndarray]:
        """A point of the set."""
        if self.sums is None:
            return self._apart(self.low + 0.5 * self.width)
        return self._apart(
            self.low + self._of_samples(self.room / np.maximum(self.total, 1e-300)) * self.width
        )

    def highest(self, scores: list[np.ndarray]) -> tuple[list[np.ndarray], float]:
        """(a point of the set where sum <u, scores> is largest, None where it is not at hand; an upper bound of that sum).

        The highest sum gives the room there is to the kinks with the highest scores: a fractional knapsack.
        """
        z = self._together(scores)
        if self.sums is None:
            u = self.low + np.where(z > 0, self.width, 0.0)
            return self._apart(u), float(u @ z)
        order = np.lexsort((-z, self._of_samples(np.arange(self.room.size))))
        width = self.width[order]
        above = np.cumsum(width) - width
        above -= self._of_samples(above[self.starts[:-1]])
        taken = np.clip(self._of_samples(self.room) - above, 0.0, width)
        most = float(self.low @ z + taken @ z[order])
        u = self.low.copy()
        u[order] += taken
        return self._apart(u), most

    def _by_task(self, values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values, self.starts[:-1], dtype=float)

    def _of_samples(self, values: np.ndarray) -> np.ndarray:
        return np.repeat(values, np.diff(self.starts))

    def _together(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        return np.concatenate(parts)[self.order]

    def _apart(self, flat: np.ndarray) -> list[np.ndarray]:
        back = np.empty_like(flat)
        back[self.order] = flat
        return np.split(back, self.cuts)


def two_lines(loss: LossTerm, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(low, width) of the slopes at predictions z of a loss of two lines a sample; the width is zero away from its kinks."""
    atom, y = cast(SeparableLoss, loss.atom), loss.tasks.targets
    a, b = cast(tuple, atom.zero_interval(y))
    low, high = atom.dual_interval(y)
    at_a, at_b = (np.abs(z - kink) <= SETTINGS.rounding_share * (np.abs(z) + np.abs(kink)) for kink in (a, b))
    least = np.where(at_a | (z < a), low, np.where(at_b | (z < b), 0.0, high))
    most = np.where(at_b | (z > b), high, np.where(at_a | (z > a), 0.0, low))
    scale = 1.0 if loss.scale is None else loss.scale
    return scale * least, scale * (most - least)


def flips(term: StructuredTerm) -> tuple[np.ndarray, np.ndarray]:
    """(low, width) of the slopes that its metrics know of the best constants."""
    low, width = np.empty(term.tasks.n_samples), np.empty(term.tasks.n_samples)
    for (own, c, _, y, _), known in zip(term.tasks_apart, term.at_constants or (), strict=True):
        positive = y > 0
        (up, up_end), (down, down_end) = known.positive, known.negative
        low[own] = np.where(positive, c * up, c * down)
        width[own] = np.where(positive, c * (up_end - up), c * (down_end - down))
    return low, width


# --------------------------------------------------------------------------------------------------------------
# The slopes of the losses where the weights are zero: one point where they are smooth, a convex set of points at kinks.


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
        at = [loss.predictions(x) for loss in losses]
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
        return SinglePoint(losses, [loss.gradient(z) for loss, z in zip(losses, at, strict=True)])
    culprit = kinked[0]
    if all(own is not None for loss, own in zip(losses, ends, strict=True) if loss in kinked):
        boxes = [
            (np.asarray(loss.gradient(z)), np.zeros(z.size)) if own is None else own
            for loss, z, own in zip(losses, at, ends, strict=True)
        ]
        low, width = zip(*boxes, strict=True)
        return SubgradientBoxes(losses, low, width, culprit.typed, _sums_of(losses))
    if isinstance(culprit, StructuredTerm) and len(losses) == 1:
        return PlaneMixtures(culprit, at[0])
    raise ModelError(
        f"known for losses that are differentiable where the weights are zero"
        f"{' and the intercepts optimal' if culprit.intercepts else ''}, and for kinks of hinge, absolute and quantile losses; "
        f"{culprit.typed} is not",
        term=typed,
    )


def _sums_of(losses: list[LossTerm]) -> np.ndarray | None:
    """Return what the slopes of every task sum to, where that is given."""
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
    return loss.atom.zero_interval(loss.tasks.targets[:1]) is not None


def _is_smooth_at(loss: LossTerm, z: np.ndarray) -> bool:
    """Tell whether the gradients on both sides of z agree; unless it is known, along the ones and a few random directions: each side of a
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


@dataclass(frozen=True)
class SinglePoint:
    """The slopes u of smooth losses, one each, also of rows elsewhere; its members are those of `SubgradientBoxes`."""

    losses: Sequence[LossTerm]
    u: list
    typed: str = ""

    def middle(self):
        return self.u

    def highest(self, scores):
        return self.u, float(sum(u @ z for u, z in zip(self.u, scores, strict=True)))


class PlaneMixtures:
    """The planes of a structured hinge that are highest at zero, and their mixtures; its members are those of `SubgradientBoxes`."""

    def __init__(self, term: StructuredTerm, z: np.ndarray):
        self.losses, self.typed, self.term = (term,), term.typed, term
        offset = term.offset_predictions()
        self.origin = np.zeros_like(z) if offset is None else offset
        self.constants: np.ndarray | None = None
        self.value, self.u, _ = self._at(np.zeros_like(z))
        if offset is None:  # all samples of a class are alike: so may be their slopes
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
                self.term, self.origin + scores, near, 4.0 * SETTINGS.probe_ratio if near is not None else 1.0
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
        step = SETTINGS.probe_ratio / largest
        value, u, met = self._at(step * z, self.constants)
        # convexity: a difference quotient is above the derivative
        rise = (value - self.value) / step
        back = value - step * float(u @ z)  # the height of that plane, or mixture, at zero
        is_member = met and back >= self.value - 1e-13 * max(abs(self.value), 1.0)
        return ([u] if is_member else None), rise + SETTINGS.probe_rounding_share * abs(rise)


#: the convex set of u = (one flat array a loss): the subgradients at zero weights that balance every intercept
Slopes = SinglePoint | SubgradientBoxes | PlaneMixtures


# --------------------------------------------------------------------------------------------------------------
# Where zero weights are optimal: the smallest multiple of a norm's dual ball that meets the slopes of the losses, from both sides.


class AllowedSigns(NamedTuple):
    """Entries that bounds on the weights leave of a step from zero: those that may rise, those that may fall; None: all of them."""

    rise: np.ndarray | None = None
    fall: np.ndarray | None = None

    def allowed(self, D: np.ndarray) -> np.ndarray:
        if self.rise is not None:
            D = np.where(self.rise, D, np.minimum(D, 0.0))
        return D if self.fall is None else np.where(self.fall, D, np.maximum(D, 0.0))

    @property
    def bind(self) -> bool:
        return self.rise is not None or self.fall is not None


def critical_multiple(
    sets: Sequence[Slopes], norm: FunctionTerm, block: str, zeros, signs: AllowedSigns
) -> tuple[float, float, str]:
    """(low, high, the loss whose kink sets them apart): zero is optimal from `high` times the norm on, and is not below `low` times it.

    That is the smallest t such that -X^T u, without what bounds hold, is in t times the dual ball for some slopes u.

    Any u gives an upper bound. Any direction D gives a lower one: zero is not optimal where the losses fall faster along D than
    t norm(D) rises. The two are a saddle point: the best D for one u is a proximal step, the best u for one D a selection.
    """
    pull = pull_of(sets, block, zeros)
    held = signs.allowed(pull)
    high, low = norm.dual_gauge(held), 0.0
    if high == 0.0:
        return 0.0, 0.0, ""
    kinked = next((s.typed for s in sets if s.typed), "")
    if not kinked and (not signs.bind or norm.atom.monotone):
        return high, high, ""
    if not norm.atom.monotone:
        high = min(high, norm.dual_gauge(pull))
    # any direction is right; what pulls is the one of a norm without a proximal step, such as max_norm
    step = (1.0 - (SETTINGS.kinked_share if kinked else SETTINGS.smooth_share)) * high
    D = signs.allowed(norm.prox(held, step)) if norm.atom.exact_prox else held
    length = norm.coefficient * norm.atom.value(D)
    if not 0.0 < length < np.inf:
        return low, high, kinked
    if not kinked:
        return max(float(np.vdot(pull, D)) / length, 0.0), high, ""
    looks = [s.highest([_scores(loss, {**zeros, block: D}) for loss in s.losses]) for s in sets]
    low = max(low, -sum(rise for _, rise in looks) / length)
    points = [u for u, _ in looks]
    if high - low > SETTINGS.agreement_tol * high and all(u is not None for u in points):
        high = _lowest_between(pull, -_adjoint(sets, points, block, zeros), high, norm, signs)
    return min(low, high), high, kinked


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


def _lowest_between(pull, other, high: float, norm: FunctionTerm, signs: AllowedSigns) -> float:
    """The least dual norm on a segment, where it is convex, nearly; at most `high`."""
    from scipy.optimize import minimize_scalar

    found: Any = minimize_scalar(
        lambda share: norm.dual_gauge(signs.allowed(pull + share * (other - pull))),
        bounds=(0.0, 1.0),
        method="bounded",
        options={"maxiter": SETTINGS.segment_steps},
    )
    return min(high, float(found.fun))
