r"""What the prox of a norm N alone tells: its dual norm, and the nearest point of its balls.

Write V(t) for the prox of t N at Z. By Moreau's identity Z - V(t) is the nearest point of t times the dual ball, so that the dual norm of
Z is the least t with V(t) = 0, and the nearest point of {N <= r} is V(t) at the t where N(V(t)) = r.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Protocol

import numpy as np

__all__ = ["dual_norm", "nearest_in_ball"]

_EPS = float(np.finfo(float).eps)

#: Rounding that is left of what is zero, relative to the numbers that it is made of.
_ZERO = 64.0 * _EPS

#: A level is found to so many units in the last place, and a norm to so many of the norm before.
_UNITS = 4.0 * _EPS

#: More steps than Newton's method takes.
_MOST = 100

#: A level is looked for up to so many times the first guess.
_FARTHEST = 1e30


class _Norm(Protocol):
    absorbs: ClassVar[bool]

    def value(self, W) -> float: ...

    def prox(self, W, step) -> np.ndarray: ...


def dual_norm(norm: _Norm, Z) -> float:
    """sup of <Z, W> over N(W) <= 1; inf where N is 0 along a part of Z.

    Newton's method on the dual norm, which is convex: at the point Z - V of the sphere of radius t its slope is V / N(V), so that the next
    t is t + ||V||^2 / N(V). It comes from below, in a few steps, and for norms with straight sides ends at the number itself.
    """
    size, t = float(np.linalg.norm(Z)), 0.0
    if size == 0.0:
        return 0.0
    V = np.asarray(Z, dtype=float)
    for _ in range(_MOST):
        length = float(np.linalg.norm(V))
        if length <= _ZERO * size:
            break
        value = norm.value(V)
        if value <= _ZERO * length:
            return np.inf
        rise = length * length / value
        t += rise
        if rise <= _EPS * t:
            break
        V = norm.prox(Z, t)
    return t


def nearest_in_ball(norm: _Norm, W, radius: float, first: float) -> np.ndarray:
    """The nearest point of {N <= radius} to a W outside of it. first : where the level may lie, such as the dual norm of W."""
    found: list[tuple[float, np.ndarray]] = []  # (value, point) of the last look

    def above(t: float) -> float:
        P = norm.prox(W, t)
        found[:] = [(norm.value(P), P)]
        return found[0][0] - radius

    top = norm.value(W)
    _root(above, top - radius, first if 0.0 < first < np.inf else top, _UNITS * top)
    value, P = found[0]
    # what rounding left; but a seminorm does not see all of P, which is to stay where it is
    return P * (radius / value) if value > 0.0 and norm.absorbs else P


def _root(f: Callable[[float], float], at_zero: float, first: float, rounding: float) -> None:
    """Looks for the zero of a continuous f that does not rise, f(0) = at_zero > 0; the last look is at it.

    Secants, which are exact as soon as both ends lie on one straight piece of f, an end that stays twice counting for less (Anderson and
    Bjorck, "A new high order method of regula falsi type", BIT 13, 1973), and a bisection where three of them have not halved the interval.
    """
    a, f_a, b = 0.0, at_zero, first
    f_b = f(b)
    while f_b > rounding and b < _FARTHEST * first:
        a, f_a, b = b, f_b, 2.0 * b
        f_b = f(b)
    width, secants = abs(b - a), 0
    while abs(f_b) > rounding and abs(b - a) > _UNITS * max(a, b) and f_a * f_b < 0.0:
        c = b - f_b * (b - a) / (f_b - f_a)
        if secants == 3 or not min(a, b) < c < max(a, b):
            c, secants = 0.5 * (a + b), -1
        f_c = f(c)
        if (f_c > 0.0) == (f_b > 0.0):
            share = 1.0 - f_c / f_b
            f_a *= share if share > 0.0 else 0.5
        else:
            a, f_a = b, f_b
        b, f_b, secants = c, f_c, secants + 1
        if abs(b - a) <= 0.5 * width:
            width, secants = abs(b - a), 0
