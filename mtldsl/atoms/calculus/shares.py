"""Shares of a simplex at which decreasing functions stand at one level: what a maximum of functions asks for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["level_shares"]

#: rounds at most; of the first ones one in four halves all brackets, then one in two
_ROUNDS, _FIRST = 150, 12

#: functions stand at one level where they differ by no more than this, relatively
_EQUAL = 1e-13


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
    for k in range(1, _ROUNDS):
        F = np.minimum.accumulate(F, axis=0)  # but for rounding it falls anyway
        p, level, low, high = _shares_of_table(P, F)
        asked = np.where(high > low, 0.5 * (low + high), p) if k % (4 if k <= _FIRST else 2) == 0 else p
        found = functions(asked)
        if asked is p:
            apart = np.abs(found - level)[p > lowest]
            if apart.max(initial=0.0) <= _EQUAL * max(abs(level), np.abs(found[p > lowest]).max(initial=0.0)):
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
        """Where the functions come down to the level first; `beyond` where they are flat there."""
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
