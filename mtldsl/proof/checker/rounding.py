"""Float64 and fractions rounded outward: the ends of intervals."""

from __future__ import annotations

import decimal
from fractions import Fraction
from typing import Any, cast

import numpy as np

__all__ = ["OF_FUNCTIONS", "TINY", "UNIT", "as_array", "decimals", "down", "fractions", "gamma", "up"]

UNIT = 2.0**-53
TINY = np.finfo(float).tiny
#: what exp and log of float64 may be off by, relatively
OF_FUNCTIONS = 16 * UNIT
#: bits that are kept of fractions which have more
_BITS = 200
_DIGITS = decimal.Context(prec=60, Emin=-4000, Emax=4000)


def down(x):
    return _short(x, -1) if x.dtype == object else np.nextafter(x, -np.inf)


def up(x):
    return _short(x, 1) if x.dtype == object else np.nextafter(x, np.inf)


def _short(x, side: int):
    """Fractions of many digits rounded to that side, to `_BITS` bits: otherwise they grow with every operation."""
    if not x.size:
        return x
    found = np.empty(x.shape, dtype=object)
    found[...] = _SHORTEN[side](x)
    return found


def _shorten(q: Fraction, side: int) -> Fraction:
    n, d = q.numerator, q.denominator
    if d.bit_length() <= 2 * _BITS and n.bit_length() <= 4 * _BITS and not d & (d - 1):
        return q
    shift = _BITS - n.bit_length() + d.bit_length()
    n, d = (n << shift, d) if shift >= 0 else (n, d << -shift)
    whole = n // d if side < 0 else -(-n // d)
    return Fraction(whole, 1 << shift) if shift >= 0 else Fraction(whole << -shift)


_SHORTEN = {side: np.frompyfunc(lambda q, side=side: _shorten(q, side), 1, 1) for side in (-1, 1)}


def gamma(k: int) -> float:
    return 1.01 * (k + 2) * UNIT


def fractions(x) -> np.ndarray:
    """The same numbers as Fractions."""
    flat = [Fraction(v) for v in np.asarray(x).ravel().tolist()]
    found = np.empty(len(flat), dtype=object)
    found[:] = flat
    return found.reshape(np.shape(x))


def as_array(x) -> np.ndarray:
    """An array again: object arrays without axes decay to their entry."""
    x = np.asarray(x)
    return x if x.dtype == object else x.astype(float, copy=False)


def decimals(x, function: str, side: int) -> np.ndarray:
    """A monotone function of Fractions, rounded down (side -1) or up (+1)."""

    def one(q: Fraction) -> Fraction:
        if q == 0 and function == "sqrt":
            return q
        rounding = decimal.ROUND_FLOOR if side < 0 else decimal.ROUND_CEILING
        context = _DIGITS.copy()
        context.rounding = rounding
        argument = context.divide(decimal.Decimal(q.numerator), decimal.Decimal(q.denominator))
        found = getattr(argument, function)(context)  # correctly rounded, half to even
        return Fraction(found.next_minus(context) if side < 0 else found.next_plus(context))

    found = np.empty(np.shape(x), dtype=object)
    found[...] = np.vectorize(one, otypes=[object])(x) if np.size(x) else x
    if function == "sqrt" and side < 0:
        found = np.maximum(found, cast(Any, Fraction(0)))
    return found
