"""Shrinkage by norms and their balls: the factor of a block soft threshold, and the level that leaves a given sum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

# --------------------------------------------------------------------------------------------------------------
# What the prox of a norm N alone tells: its dual norm, and the nearest point of its balls.
#
# Write V(t) for the prox of t N at Z. By Moreau's identity Z - V(t) is the nearest point of t times the dual ball, so that the dual norm of
# Z is the least t with V(t) = 0, and the nearest point of {N <= r} is V(t) at the t where N(V(t)) = r.

_EPS = float(np.finfo(float).eps)

#: Rounding that is left of what is zero, relative to the numbers that it is made of.
_ZERO_ROUNDING_SHARE = 64.0 * _EPS


#: A level is found to this share of itself, and a norm to this share of the norm before.
_LEVEL_ROUNDING_SHARE = 4.0 * _EPS


@dataclass(frozen=True)
class ShrinkageSettings:
    """Limits of searches for levels and minima.

    newton_steps  : more steps than Newton's method takes
    search_factor : largest level that is looked for, in first guesses
    cell_halvings : halvings of a cell of the grid: to the last bit
    share_rounds  : rounds of a search for shares
    early_rounds  : rounds in which one in four halves all brackets; later one in two does
    level_tol     : relative difference at which functions stand at one level
    """

    newton_steps: int = 100
    search_factor: float = 1e30
    cell_halvings: int = 60
    share_rounds: int = 150
    early_rounds: int = 12
    level_tol: float = 1e-13


SETTINGS = ShrinkageSettings()


def dual_norm(norm: Any, Z) -> float:
    """sup of <Z, W> over N(W) <= 1; inf where N is 0 along a part of Z.

    Newton's method on the dual norm, which is convex: at the point Z - V of the sphere of radius t its slope is V / N(V), so that the next
    t is t + ||V||^2 / N(V). It comes from below, in a few steps, and for norms with straight sides ends at the number itself.
    """
    size, t = float(np.linalg.norm(Z)), 0.0
    if size == 0.0:
        return 0.0
    V = np.asarray(Z, dtype=float)
    for _ in range(SETTINGS.newton_steps):
        length = float(np.linalg.norm(V))
        if length <= _ZERO_ROUNDING_SHARE * size:
            break
        value = norm.value(V)
        if value <= _ZERO_ROUNDING_SHARE * length:
            return np.inf
        rise = length * length / value
        t += rise
        if rise <= _EPS * t:
            break
        V = norm.prox(Z, t)
    return t


def nearest_in_ball(norm: Any, W, radius: float, first: float) -> np.ndarray:
    """The nearest point of {N <= radius} to a W outside of it. first : where the level may lie, such as the dual norm of W."""
    from scipy.optimize import brentq

    def above(t: float) -> float:
        return norm.value(norm.prox(W, t)) - radius

    top = norm.value(W)
    low, high = 0.0, first if 0.0 < first < np.inf else top
    most = SETTINGS.search_factor * high
    while above(high) > _LEVEL_ROUNDING_SHARE * top and high < most:
        low, high = high, 2.0 * high
    if above(high) < 0.0 < above(low):
        high = brentq(above, low, high, xtol=_LEVEL_ROUNDING_SHARE * high, rtol=_LEVEL_ROUNDING_SHARE)
    P = norm.prox(W, high)
    value = norm.value(P)
    # what rounding left; but a seminorm does not see all of P, which is to stay where it is
    return P * (radius / value) if value > 0.0 and norm.absorbs else P


# --------------------------------------------------------------------------------------------------------------
# The k-support norm of nonnegative numbers, which are mostly the norms of groups: its value, and the shares that eliminate to it.


def half_squared_k_support(norms, k: int) -> float:
    """1/2 (sum_{j<=p} a_j^2 + (sum_{j>p} a_j)^2 / (k - p)), a the norms in descending order, p the smallest of 0, ..., k - 1 with
    a_(p+1) <= (sum_{j>p} a_j) / (k - p).

    >>> half_squared_k_support([3.0, 4.0, 1.0], 1), half_squared_k_support([3.0, 4.0, 1.0], 3)
    (32.0, 13.0)
    """
    a = np.sort(norms)[::-1]
    if a.size <= k:
        return 0.5 * float(a @ a)
    tails = np.cumsum(a[::-1])[::-1][:k] / (k - np.arange(k))
    p = int(np.argmax(a[:k] <= tails))  # true at k - 1 at the latest
    return 0.5 * float(a[:p] @ a[:p] + tails[p] ** 2 * (k - p))


def shares_of_norms(a, r: float, step: float) -> np.ndarray:
    """clip(kappa a - step, 0, 1) with the kappa that makes it sum to r; 1 wherever a > 0 where no more than r are positive."""
    positive = a > 0
    if positive.sum() <= r:
        return positive.astype(float)
    b = a[positive] / a.max()  # a factor in a is one in kappa
    with np.errstate(over="ignore"):
        starts, ends = np.sort(step / b), np.sort((1.0 + step) / b)
    order = np.sort(b)[::-1]
    breaks = np.concatenate([starts, ends])
    sums = np.concatenate([[0.0], np.cumsum(order)])

    def total(kappa):
        begun, full = np.searchsorted(starts, kappa, "right"), np.searchsorted(ends, kappa, "right")
        return kappa * (sums[begun] - sums[full]) - step * (begun - full) + full

    breaks = np.sort(breaks[np.isfinite(breaks)])
    # the first crossing: beyond it, sums round what far smaller norms add
    kappa = breaks[np.argmax(np.append(total(breaks), np.inf) > r) - 1]
    begun, full = np.searchsorted(starts, kappa, "right"), np.searchsorted(ends, kappa, "right")
    slope = order[full:begun].sum()  # not a difference of sums, which larger norms would round
    if slope > 0.0:
        kappa = max(kappa, (r - full + step * (begun - full)) / slope)
    shares = np.zeros(len(a))
    shares[positive] = np.clip(kappa * b - step, 0.0, 1.0)
    return shares


# --------------------------------------------------------------------------------------------------------------
# Proximal steps of functions of one nonnegative number that need not be convex, many at once.

#: Where the derivative is looked at, as shares of the interval: near zero on a logarithmic scale, then evenly.
_GRID = np.concatenate(
    [np.geomspace(1e-30, 1e-10, 21), np.geomspace(1e-9, 0.02, 60), np.linspace(0.025, 1.0, 60)]
)


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
    for _ in range(SETTINGS.cell_halvings):
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


# --------------------------------------------------------------------------------------------------------------
# Shares of a simplex at which decreasing functions stand at one level: what a maximum of functions asks for.


def level_shares(functions: Callable[[np.ndarray], np.ndarray], lowest: np.ndarray) -> np.ndarray:
    """(m,) p >= lowest with sum 1 at which f_i(p_i) is one level for all i with p_i > lowest_i, and no higher for the others.

    functions : p (m,) -> (m,), the i-th a continuous function of p_i alone that never rises
    lowest    : (m,) >= 0, of sum at most 1

    All that was asked is kept in a table, between whose entries functions are taken for reciprocal squares a / (b + p)^2, which they
    are where f is a share of a square. The shares that this table asks for are its next entries: a round is one call.

    >>> p = level_shares(lambda p: np.array([4.0, 9.0]) / (1.0 + p) ** 2, np.zeros(2))
    >>> p.round(6).tolist()
    [0.2, 0.8]
    """
    room = 1.0 - float(lowest.sum())
    if room <= 0.0:
        return lowest / lowest.sum()
    P = np.stack([lowest, lowest + room])
    F = np.stack([functions(P[0]), functions(P[1])])
    p = P[1]
    for k in range(1, SETTINGS.share_rounds):
        F = np.minimum.accumulate(F, axis=0)  # but for rounding it falls anyway
        p, level, low, high = _shares_of_table(P, F)
        halves = k % (4 if k <= SETTINGS.early_rounds else 2) == 0
        asked = np.where(high > low, 0.5 * (low + high), p) if halves else p
        found = functions(asked)
        if asked is p:
            apart = np.abs(found - level)[p > lowest]
            if apart.max(initial=0.0) <= SETTINGS.level_tol * max(
                abs(level), np.abs(found[p > lowest]).max(initial=0.0)
            ):
                break
        order = np.argsort(np.vstack([P, asked]), axis=0, kind="stable")
        P = np.take_along_axis(np.vstack([P, asked]), order, axis=0)
        F = np.take_along_axis(np.vstack([F, found]), order, axis=0)
    return p / p.sum()


def _shares_of_table(P, F):
    """(shares of sum 1 between the entries of a table, the level there, the entries below them, and above)."""
    idle = F[0] <= 0.0
    if (
        F.min() >= 0.0 and idle.any() and not idle.all()
    ):  # functions that are zero get no share: below all else they do not either
        F = np.where(idle, 0.5 * F[:, ~idle].min(), F)
    levels = np.unique(F)
    scale = (lambda f: 1.0 / np.sqrt(f)) if levels[0] > 0.0 else (lambda f: -f)
    x = scale(F)

    def shares(level: float, beyond: bool):
        """Return where the functions come down to the level first; `beyond` where they are flat there."""
        count = (level <= F if beyond else level < F).sum(axis=0)
        before, after = np.maximum(count - 1, 0)[None], np.minimum(count, len(F) - 1)[None]
        low, high = np.take_along_axis(P, before, 0)[0], np.take_along_axis(P, after, 0)[0]
        start, end = np.take_along_axis(x, before, 0)[0], np.take_along_axis(x, after, 0)[0]
        part = np.divide(scale(level) - start, end - start, out=np.zeros(low.size), where=end > start)
        return low + np.clip(part, 0.0, 1.0) * (high - low), low, high

    first, last = 0, levels.size - 1  # the sum is at least 1 at the lowest level, and falls
    while first < last:
        middle = (first + last + 1) // 2
        first, last = (middle, last) if shares(levels[middle], True)[0].sum() >= 1.0 else (first, middle - 1)
    bottom = levels[first]
    fewer, low, high = shares(bottom, False)
    if fewer.sum() >= 1.0 and first + 1 < levels.size:  # between two levels, where all is linear in the scale
        more, top = fewer, levels[first + 1]
        fewer, low, high = shares(top, True)
    else:  # some functions are flat at the level
        more, top = shares(bottom, True)[0], bottom
    lacking, excess = 1.0 - fewer.sum(), more.sum() - 1.0
    share = lacking / (lacking + excess) if lacking + excess > 0.0 else 0.0
    at = scale(top) + share * (scale(bottom) - scale(top))
    level = (1.0 / at**2 if levels[0] > 0.0 else -at) if top > bottom else bottom
    return fewer + share * (more - fewer), float(level), low, high


def shrinkage(norms, threshold):
    """(1 - threshold / norm)_+, elementwise (0 where the norm is 0): the factor of a block soft threshold."""
    kept = np.maximum(norms - threshold, 0.0)
    return np.divide(kept, norms, out=kept, where=norms > 0)


def squared_sum_threshold(sizes, step: float) -> np.ndarray:
    """The t with sum_j (a_j - t)_+ = t / step, for falling sizes a along the last axis: what the prox of step / 2 (sum_j a_j)^2 takes off each."""
    sums = np.cumsum(sizes, axis=-1)
    return step * (sums / (1.0 + step * np.arange(1, sums.shape[-1] + 1))).max(axis=-1, initial=0.0)


def water_level(values, total) -> np.ndarray:
    """For every column v of `values` the t with sum_j (v_j - t)_+ = total, which may be another for each.

    (sum of the k largest - total) / k rises with k exactly as long as the k-th largest is above the level:
    its maximum is the level.
    """
    descending = -np.sort(-values, axis=0)
    counts = np.arange(1, len(values) + 1)[:, None]
    above = np.argmax((np.cumsum(descending, axis=0) - total) / counts, axis=0) + 1
    # summed again, pairwise: a running sum over many entries loses digits
    return (np.where(counts <= above, descending, 0.0).sum(axis=0) - total) / above


def weighted_water_level(values, weights, total: float) -> float:
    """The t with sum_j a_j (v_j - t a_j)_+ = total, over all entries of `values`, the weights a >= 0 being one number or one an entry.

    As above, in the order of v_j / a_j; an entry of weight 0 has no say.
    """
    if np.ndim(weights) == 0:
        return float(water_level(values.reshape(-1, 1) * weights, total)[0]) / weights**2
    v, a = values[weights > 0], weights[weights > 0]
    order = np.argsort(-(v / a), kind="stable")
    products, squares = (a * v)[order], (a * a)[order]
    above = int(np.argmax((np.cumsum(products) - total) / np.cumsum(squares))) + 1
    return float((products[:above].sum() - total) / squares[:above].sum())
