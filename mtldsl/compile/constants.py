"""The best constant predictions of a model: intercepts at their optimum, weights that are zero."""

from __future__ import annotations

import numpy as np

from mtldsl.compile.normal_form import Blocks, NormalForm

__all__ = ["best_constants"]

#: Brackets grow fourfold, from 1 on, so many times at most (to 1e24); then they are halved so often: 60 leave rounding. Losses that are no
#: sum over samples cost a sort a look, and get fewer: their best constant is a candidate, no more.
_GROWTHS, _HALVINGS, _FEWER = 40, 60, 16


def best_constants(form: NormalForm) -> Blocks | None:
    """The point, None where no loss has an intercept. Intercepts are touched by no regularizer and no constraint, and tasks are apart there:
    in every task the slopes of the losses rise with the constant, and the best one is where their sum changes sign. Of a task in which it
    never does, the constant is 0 if the slope is 0 everywhere, else the end of what was searched.
    """
    names = [block.name for block in form.blocks if block.intercept_of is not None]
    if not names:
        return None
    x = form.zeros()
    for name in names:
        sharing = [loss for loss in form.losses if name in loss.intercepts]
        if sharing:
            x[name] = _best_of(form, name, sharing, x)
    return x


def _best_of(form: NormalForm, name: str, sharing, x: Blocks) -> np.ndarray:
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
    flat = slopes(low) == slopes(high)
    halvings = _HALVINGS if all(loss.atom.separable for loss in sharing) else _FEWER
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        if np.all((middle <= low) | (middle >= high)):
            break
        falls = slopes(middle) <= 0
        low, high = np.where(falls, middle, low), np.where(falls, high, middle)
    return np.where(flat, 0.0, 0.5 * (low + high))[None, :]


def _bracket(slopes, b: np.ndarray) -> np.ndarray:
    """From b < 0 on downwards, task by task, until the slope is not positive."""
    for _ in range(_GROWTHS):
        rising = ~(slopes(b) <= 0)
        if not rising.any():
            break
        b = np.where(rising, 4.0 * b, b)
    return b
