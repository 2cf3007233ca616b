"""Proximal steps of functions of one nonnegative number that need not be convex, many at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["smallest_minimum"]

#: Where the derivative is looked at, as shares of the interval: near zero on a logarithmic scale, then evenly.
_GRID = np.concatenate(
    [np.geomspace(1e-30, 1e-10, 21), np.geomspace(1e-9, 0.02, 60), np.linspace(0.025, 1.0, 60)]
)

#: Halvings of a cell of the grid: to the last bit.
_HALVINGS = 60


def smallest_minimum(s, value: Callable, slope: Callable) -> np.ndarray:
    """argmin over 0 <= x <= s of value(x, s), elementwise; `slope` is its derivative, >= 0 at x = s. The smaller of equal minima.

    Every local minimum that a grid shows, where the derivative turns from falling to rising, is found by bisection, and the best of
    them is taken: values that differ by less than a grid can tell are not confused. Exact where a cell of the grid holds at most
    one local minimum, as for functions that are convex up to some point and concave from there on.

    >>> import numpy as np
    >>> smallest_minimum(np.array([3.0, 0.5]), lambda x, s: x + (x - s) ** 2 / 2, lambda x, s: 1.0 + x - s)
    array([2., 0.])
    """
    s = np.asarray(s, float)
    found = np.zeros(s.size)
    column = np.flatnonzero(s > 0)
    grid = _GRID[:, None] * s[column]
    falls = slope(grid, s[column]) < 0
    falls[-1] = False
    cell, place = np.nonzero(falls[:-1] & ~falls[1:])
    low, high, at = grid[cell, place], grid[cell + 1, place], s[column[place]]
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        down = slope(middle, at) < 0
        low, high = np.where(down, middle, low), np.where(down, high, middle)
    zero = np.flatnonzero(~falls[0])  # it rises from zero on
    x = np.concatenate([np.zeros(zero.size), high])
    owner = column[np.concatenate([zero, place])]
    best_first = np.lexsort((x, value(x, s[owner]), owner))
    columns, first = np.unique(owner[best_first], return_index=True)
    found[columns] = x[best_first][first]
    return found
