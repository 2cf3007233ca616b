"""The best constant predictions of a model: intercepts at their optimum, weights that are zero."""

from __future__ import annotations

import numpy as np

from mtldsl.compile.normal_form import Blocks, NormalForm

__all__ = ["best_constants"]

#: Brackets grow fourfold, from 1 on, so many times at most (to 1e24); then they are halved so often: 60 leave rounding.
_GROWTHS, _HALVINGS = 40, 60

#: Looks at the slopes that a constant which is only a candidate is worth.
_FEW = 12


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
            x[name] = _best_of(form, name, sharing, x, rough)
    return x


def _best_of(form: NormalForm, name: str, sharing, x: Blocks, rough: bool) -> np.ndarray:
    at = [loss.predictions(x) for loss in sharing]

    def slopes(b: np.ndarray) -> np.ndarray:
        total = np.zeros(b.size)
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # exp of a far bracket: infinite is as good as large
            for loss, z in zip(sharing, at, strict=True):
                u = np.asarray(loss.gradient(z + np.repeat(b, loss.tasks.counts)))
                total += np.add.reduceat(u, loss.tasks.offsets[:-1])
        return total

    m = form.shapes[name][1]
    low, high = _bracket(slopes, np.full(m, -1.0)), _bracket(lambda b: -slopes(-b), np.full(m, -1.0))
    high = -high
    below, above = slopes(low), slopes(high)
    flat = below == above
    best = _between(slopes, low, high, below, above) if rough else _halved(slopes, low, high)
    return np.where(flat, 0.0, best)[None, :]


def _halved(slopes, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if np.all((middle <= low) | (middle >= high)):
            break
        falls = slopes(middle) <= 0
        low, high = np.where(falls, middle, low), np.where(falls, high, middle)
    return 0.5 * (low + high)


def _between(slopes, low, high, below, above) -> np.ndarray:
    """Regula falsi with the end that stays halved in weight (Illinois), every third step a bisection: slopes may have steps."""
    best = at = 0.5 * (low + high)
    smallest, side = np.full(low.size, np.inf), np.zeros(low.size)
    slope = np.fmin(np.abs(below), np.abs(above))
    for k in range(_FEW):
        with np.errstate(all="ignore"):
            secant = (low * above - high * below) / (above - below)
        at = np.where(np.isfinite(secant) & (k % 3 != 2), np.clip(secant, low, high), 0.5 * (low + high))
        found = slopes(at)
        best = np.where(np.abs(found) < smallest, at, best)
        smallest = np.fmin(np.abs(found), smallest)
        if not found.any():
            break
        falls = found <= 0
        above = np.where(falls & (side < 0), 0.5 * above, above)
        below = np.where(~falls & (side > 0), 0.5 * below, below)
        low, below = np.where(falls, at, low), np.where(falls, found, below)
        high, above = np.where(falls, high, at), np.where(falls, above, found)
        side = np.where(falls, -1.0, 1.0)
    return np.where(smallest <= 1e-6 * slope, best, at)  # at a kink the slope does not become small


def _bracket(slopes, b: np.ndarray) -> np.ndarray:
    """From b < 0 on downwards, task by task, until the slope is not positive."""
    for _ in range(_GROWTHS):
        rising = ~(slopes(b) <= 0)
        if not rising.any():
            break
        b = np.where(rising, 4.0 * b, b)
    return b
