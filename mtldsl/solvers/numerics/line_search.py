"""Exact line search: predictions move along a line with the weights, so that one product with the data serves all of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import minimize_scalar

from mtldsl.normal_form.best_constants import best_constants
from mtldsl.normal_form.form import Blocks, LossTerm, NormalForm
from mtldsl.normal_form.term import MapEntry
from mtldsl.solvers.linear_systems.task_matrices import BlockLayout
from mtldsl.solvers.numerics.conjugate_gradients import conjugate_gradients
from mtldsl.solvers.numerics.operator_splitting import project_blocks

#: A change of a value below this, relative to its size, is rounding.
VALUE_ROUNDING_SHARE = 1e-13


@dataclass(frozen=True)
class LineSearchSettings:
    """Limits of the search along a line.

    bracket_factor : from one c to the next, from 1 on, until the objective rises
    bracket_steps  : of these
    log_tol        : to which log c is found, then
    fit_steps      : of conjugate gradients towards a least-squares fit, each worth two products with the data
    """

    bracket_factor: float = 16.0
    bracket_steps: int = 15
    log_tol: float = 1e-8
    fit_steps: int = 8


SETTINGS = LineSearchSettings()


class RaySearch:
    """Lines that are searched in a run, and when: at the 8th, 16th, 32nd ... look."""

    def __init__(self, form: NormalForm):
        self.form = form
        self.can_be_searched = form.is_convex and all(loss.has_cheap_lines for loss in form.losses)
        self._looks, self._next, self._plain_is_done = 0, 8, False

    def are_due(self) -> bool:
        """Tell whether it is time; to be asked once a look."""
        self._looks += 1
        due = self.can_be_searched and self._looks >= self._next
        self._next = 2 * self._looks if due else self._next
        return due

    def plain(self) -> Iterator[Blocks]:
        """The best points of rays that ask for no solver; once."""
        if not self._plain_is_done:
            self._plain_is_done = True
            yield from plain_points(self.form)


def best_of_ray(form: NormalForm, x: Blocks, v: Blocks) -> Blocks | None:
    """x + c v for the c > 0 with the lowest objective within the constraints; None where none that was tried lies below x."""
    return _ObjectiveLine(form, x, v).lowest(bounded=False)


def best_between(form: NormalForm, x: Blocks, other: Blocks) -> Blocks | None:
    """The same with c <= 1, on the way from x to another point: of two feasible points it is feasible."""
    return _ObjectiveLine(form, x, {name: other[name] - x[name] for name in x}).lowest(bounded=True)


def plain_points(form: NormalForm) -> Iterator[Blocks]:
    """The best points of the plain rays within the constraints; a direction that leaves a set at once is moved into it."""
    for x, v in plain_rays(form):
        if form.violation(x) > 0.0:
            return
        found = best_of_ray(form, x, v)
        if found is None and form.violation(v) > 0.0:
            found = best_of_ray(form, x, project_blocks(form, v))
        if found is not None:
            yield found


def plain_rays(form: NormalForm) -> Iterator[tuple[Blocks, Blocks]]:
    """(origin, direction) of rays that ask for no solver. The origin is zero, with the best constants as intercepts.

    Minus the losses' gradient there, read as labels, says where the predictions u should go. The first direction is A^T u, every
    entry divided by the squared length of its column of A, so that units do not matter (of sign labels: the difference of the class
    means); the second a least-squares fit of u, as far as a few steps of conjugate gradients in the same units come. A
    subgradient at a kink says little, of hinges at the best constants that only one class counts: the third fits the true labels
    in its place, a fourth from zero itself.
    """
    x = best_constants(form) or form.zeros()
    labels = [-np.asarray(loss.gradient(loss.predictions(x))) for loss in form.losses]
    largest = max((np.max(np.abs(u), initial=0.0) for u in labels), default=0.0)
    if not 0.0 < largest < np.inf:
        return
    lengths = _squared_lengths(form)
    inverse = {
        name: np.divide(1.0, h, out=np.zeros_like(h), where=(h > 1e-300) & (h < np.inf))
        for name, h in lengths.items()
    }
    labels = [u / largest for u in labels]
    true = [_true_labels(loss, u) for loss, u in zip(form.losses, labels, strict=True)]
    yield x, {name: inverse[name] * g for name, g in _adjoint(form, labels).items()}
    yield x, _fit(form, labels, inverse)
    if any(u is not other for u, other in zip(labels, true, strict=True)):
        yield x, _fit(form, true, inverse)
        if any(block.any() for block in x.values()):
            # true labels lie around zero, not around the constant that is best by itself
            yield form.zeros(), _fit(form, true, inverse)


def _true_labels(loss: LossTerm, u: np.ndarray) -> np.ndarray:
    """u itself, or labels of the same length."""
    if loss.atom.smooth or loss.atom.labels != "sign":
        return u
    y = loss.tasks.targets
    return y * (np.linalg.norm(u) / np.linalg.norm(y))


def _fit(form: NormalForm, labels: list[np.ndarray], inverse: Blocks) -> Blocks:
    """v near argmin sum ||A v - labels||^2."""
    layout = BlockLayout(form)
    nothing = [loss.predictions(form.zeros()) for loss in form.losses]  # of the maps' constant parts
    scale = layout.flat(inverse)

    def apply(v: np.ndarray) -> np.ndarray:
        x = layout.blocks(v)
        images = [loss.predictions(x) - z for loss, z in zip(form.losses, nothing, strict=True)]
        return layout.flat(_adjoint(form, images))

    rhs, most = layout.flat(_adjoint(form, labels)), SETTINGS.fit_steps
    found = conjugate_gradients(apply, rhs, tol=1e-6, most=most, precondition=lambda r: scale * r)
    return layout.blocks(found)


def _adjoint(form: NormalForm, u: list[np.ndarray]) -> Blocks:
    g = form.zeros()
    for loss, part in zip(form.losses, u, strict=True):
        loss.add_adjoint(part, g)
    return g


def _squared_lengths(form: NormalForm) -> Blocks:
    """The squared lengths of A's columns, one for every entry of the blocks; where matrices mix rows, the sum of what each brings by itself."""
    lengths = form.zeros()
    for loss in form.losses:
        squares = loss.column_lengths**2
        for entry in loss.map.entries:
            squared = MapEntry(entry.block, entry.coefficient**2, _squared(entry.left), _squared(entry.right))
            lengths[entry.block] += squared.adjoint(squares)
        for name in loss.intercepts:
            lengths[name] += loss.tasks.counts
    return lengths


def _squared(factor):
    if factor is None:
        return None
    return factor.power(2) if sparse.issparse(factor) else np.asarray(factor) ** 2


class _ObjectiveLine:
    """F(x + c v) as a function of c >= 0, inf where a constraint is violated (by more than x does)."""

    def __init__(self, form: NormalForm, x: Blocks, v: Blocks):
        self.x, self.v = x, v
        self.allowed = form.violation(x)
        end = {name: x[name] + v[name] for name in x}
        at = [(loss, loss.predictions(x)) for loss in form.losses]
        self.losses = [(loss, z, loss.predictions(end) - z) for loss, z in at]
        self.functions, self.slope = [], 0.0
        for f in form.functions:
            image, step = f.map.forward(x), f.map.linear(v)
            if f.atom.norm and not image.any():  # c times a number
                self.slope += f.coefficient * f.atom.value(step)
            else:
                self.functions.append((f, image, step))

    def __call__(self, c: float) -> float:
        total = c * self.slope
        for f, image, step in self.functions:
            at = image + c * step
            if not np.all(np.isfinite(at)) or (f.is_constraint and f.atom.violation(at) > self.allowed):
                return np.inf
            if not f.is_constraint:
                total += f.coefficient * f.atom.value(at)
        total += sum(loss.value(z + c * dz) for loss, z, dz in self.losses)
        return np.inf if np.isnan(total) else float(total)

    def lowest(self, bounded: bool) -> Blocks | None:
        """x + c v at the lowest value found, c to eight digits; None where that is not below x. `bounded`: c <= 1.

        What is convex in c and falls at first, falls and then rises in log c too.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # far out, the value is inf
            here = self(0.0)
            c, value, factor = 1.0, self(1.0), 1.0 / SETTINGS.bracket_factor
            if not bounded and (up := self(SETTINGS.bracket_factor)) < min(value, here):
                c, value, factor = SETTINGS.bracket_factor, up, SETTINGS.bracket_factor
            for _ in range(SETTINGS.bracket_steps):
                following = self(c * factor)
                if following >= value and value < here:
                    break
                c, value = c * factor, following
            if not value < here:
                return None
            low, high = c / SETTINGS.bracket_factor, c * SETTINGS.bracket_factor
            ends = np.log(low), np.log(min(high, 1.0) if bounded else high)
            found: Any = minimize_scalar(
                lambda log_c: self(np.exp(log_c)),
                bounds=ends,
                method="bounded",
                options={"xatol": SETTINGS.log_tol},
            )
        at = c if value <= found.fun else np.exp(found.x)
        return {name: self.x[name] + at * self.v[name] for name in self.x}
