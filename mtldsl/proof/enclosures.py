"""Intervals that hold the exact result: float64 with outward rounding, or fractions, rounded to 200 bits, roots, exp and log to 60 digits.

An `Interval` is two arrays, low <= x <= high entry by entry. With float64 every operation widens its result by a unit in the last
place; a matrix product widens it by gamma_k |A| |B|, which bounds the rounding of k products summed in any order (Higham, "Accuracy and
stability of numerical algorithms", 2nd ed., section 3.5). With `fractions.Fraction` (object arrays) sums and products are exact
up to 400 bits, and rounded outward to 200 where they are longer; square roots, exp and log are those of `decimal`, correct to 60 digits. Taken for granted with float64: IEEE arithmetic, and an exp and a log
that are right to 8 units in the last place.

>>> third = Interval.of(1.0) / Interval.of(3.0)
>>> bool(third.low < Fraction(1, 3) < third.high)
True
"""

from __future__ import annotations

import decimal
import math
from fractions import Fraction

import numpy as np
from scipy import sparse

__all__ = ["Interval", "maximum", "minimum", "product", "tighter"]

_UNIT = 2.0**-53
_TINY = np.finfo(float).tiny
#: what exp and log of float64 may be off by, relatively
_OF_FUNCTIONS = 16 * _UNIT
#: bits that are kept of fractions which have more
_BITS = 200
_DIGITS = decimal.Context(prec=60, Emin=-4000, Emax=4000)


def _down(x):
    return _short(x, -1) if x.dtype == object else np.nextafter(x, -np.inf)


def _up(x):
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


def _gamma(k: int) -> float:
    return 1.01 * (k + 2) * _UNIT


def _fractions(x) -> np.ndarray:
    """The same numbers as Fractions."""
    flat = [Fraction(v) for v in np.asarray(x).ravel().tolist()]
    found = np.empty(len(flat), dtype=object)
    found[:] = flat
    return found.reshape(np.shape(x))


def _array(x) -> np.ndarray:
    """An array again: object arrays without axes decay to their entry."""
    x = np.asarray(x)
    return x if x.dtype == object else x.astype(float, copy=False)


class Interval:
    """low <= x <= high, entry by entry."""

    __array_ufunc__ = None  # arrays on the left defer to the operators here
    __slots__ = ("high", "low")

    def __init__(self, low, high):
        self.low, self.high = _array(low), _array(high)

    @classmethod
    def of(cls, x, exact: bool = False) -> Interval:
        """The numbers themselves; as Fractions where `exact`."""
        if isinstance(x, Interval):
            return x
        x = _fractions(x) if exact else _array(x)
        return cls(x, x)

    # ------------------------------------------------------------------------------------------- what it is

    @property
    def shape(self):
        return self.low.shape

    @property
    def exact(self) -> bool:
        return self.low.dtype == object

    @property
    def is_point(self) -> bool:
        return self.low is self.high

    @property
    def middle(self) -> np.ndarray:
        """A float64 number near, for choices that need not be exact."""
        return (
            np.asarray(self.low, float)
            if self.is_point
            else 0.5 * (np.asarray(self.low, float) + np.asarray(self.high, float))
        )

    def like(self, x) -> Interval:
        """Other numbers, in the same arithmetic."""
        return Interval.of(x, self.exact)

    # ------------------------------------------------------------------------------------------- parts

    def _each(self, change) -> Interval:
        if self.is_point:
            both = change(self.low)
            return Interval._point(both)
        return Interval(change(self.low), change(self.high))

    @staticmethod
    def _point(x) -> Interval:
        x = _array(x)
        return Interval(x, x)

    def __getitem__(self, key) -> Interval:
        return self._each(lambda x: x[key])

    def with_entries(self, key, new: Interval) -> Interval:
        low, high = self.low.copy(), self.high.copy()
        low[key], high[key] = new.low, new.high
        return Interval(low, high)

    def reshape(self, *shape) -> Interval:
        return self._each(lambda x: x.reshape(*shape))

    def repeat(self, counts) -> Interval:
        return self._each(lambda x: np.repeat(x, counts))

    def broadcast(self, shape) -> Interval:
        return self._each(lambda x: np.broadcast_to(x, shape))

    @property
    def T(self) -> Interval:
        return self._each(lambda x: x.T)

    # ------------------------------------------------------------------------------------------- arithmetic

    def __neg__(self) -> Interval:
        return Interval._point(-self.low) if self.is_point else Interval(-self.high, -self.low)

    def __add__(self, other) -> Interval:
        other = self.like(other)
        return Interval(_down(_array(self.low + other.low)), _up(_array(self.high + other.high)))

    __radd__ = __add__

    def __sub__(self, other) -> Interval:
        return self + (-self.like(other))

    def __rsub__(self, other) -> Interval:
        return self.like(other) + (-self)

    def __mul__(self, other) -> Interval:
        other = self.like(other)
        if self.is_point and other.is_point:
            both = _array(self.low * other.low)
            return Interval(_down(both), _up(both))
        corners = [_array(a * b) for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(_down(_array(_least(corners))), _up(_array(_most(corners))))

    __rmul__ = __mul__

    def __truediv__(self, other) -> Interval:
        """Of intervals that do not hold 0."""
        other = self.like(other)
        corners = [_array(a / b) for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(_down(_array(_least(corners))), _up(_array(_most(corners))))

    def __rtruediv__(self, other) -> Interval:
        return self.like(other) / self

    def square(self) -> Interval:
        size = abs(self)
        return Interval(np.maximum(_down(_array(size.low * size.low)), 0), _up(_array(size.high * size.high)))

    def __abs__(self) -> Interval:
        if self.is_point:
            return Interval._point(np.abs(self.low))
        return Interval(
            np.maximum(np.maximum(self.low, -self.high), 0), np.maximum(np.abs(self.low), np.abs(self.high))
        )

    def sum(self, axis=None) -> Interval:
        if self.exact:
            ends = [
                _array(np.sum(x, axis=axis)) if x.size else _fractions(np.sum(np.zeros(x.shape), axis=axis))
                for x in (self.low, self.high)
            ]
            return Interval(_down(ends[0]), _up(ends[1]))
        if axis is None:
            return Interval(
                _down(_array(math.fsum(self.low.ravel()))), _up(_array(math.fsum(self.high.ravel())))
            )
        slack = _gamma(self.low.shape[axis]) * np.sum(abs(self).high, axis=axis) + _TINY
        return Interval(_down(np.sum(self.low, axis=axis) - slack), _up(np.sum(self.high, axis=axis) + slack))

    def sums(self, starts) -> Interval:
        """Of neighbours, from every start to the next."""
        starts = np.asarray(starts)
        if self.exact:
            return self._each(lambda x: np.add.reduceat(x, starts))
        longest = int(np.diff(np.append(starts, len(self.low))).max())
        slack = _gamma(longest) * np.add.reduceat(abs(self).high, starts) + _TINY
        return Interval(
            _down(np.add.reduceat(self.low, starts) - slack), _up(np.add.reduceat(self.high, starts) + slack)
        )

    def max(self, axis=None) -> Interval:
        """0 where there is nothing; of numbers that are all >= 0, or where there is something."""
        if not self.low.size:
            return self.like(0.0)
        return self._each(lambda x: np.max(x, axis=axis))

    def cumsum(self, axis: int) -> Interval:
        if self.exact:
            return self._each(lambda x: np.cumsum(x, axis=axis))
        slack = _gamma(self.low.shape[axis]) * np.cumsum(abs(self).high, axis=axis) + _TINY
        return Interval(
            _down(np.cumsum(self.low, axis=axis) - slack), _up(np.cumsum(self.high, axis=axis) + slack)
        )

    # ------------------------------------------------------------------------------------------- functions

    def sqrt(self) -> Interval:
        low = np.maximum(self.low, 0)
        high = np.maximum(self.high, 0)
        if self.exact:
            return Interval(_decimals(low, "sqrt", -1), _decimals(high, "sqrt", 1))
        return Interval(np.maximum(_down(np.sqrt(low)), 0.0), _up(np.sqrt(high)))

    def exp(self) -> Interval:
        if self.exact:
            return Interval(_decimals(self.low, "exp", -1), _decimals(self.high, "exp", 1))
        low, high = np.exp(self.low), np.exp(self.high)
        return Interval(
            np.maximum(low - _OF_FUNCTIONS * low - _TINY, 0.0), high + _OF_FUNCTIONS * high + _TINY
        )

    def log(self) -> Interval:
        """Of numbers > 0."""
        if self.exact:
            return Interval(_decimals(self.low, "ln", -1), _decimals(self.high, "ln", 1))
        low, high = np.log(self.low), np.log(self.high)
        return Interval(
            low - _OF_FUNCTIONS * np.abs(low) - _TINY, high + _OF_FUNCTIONS * np.abs(high) + _TINY
        )

    def log1p(self) -> Interval:
        """log(1 + x) of numbers >= 0."""
        if self.exact:
            return (self + 1).log()
        low, high = np.log1p(self.low), np.log1p(self.high)
        return Interval(
            np.maximum(low - _OF_FUNCTIONS * low - _TINY, 0.0), high + _OF_FUNCTIONS * high + _TINY
        )

    def times_log(self) -> Interval:
        """x log x of numbers >= 0 (0 at 0): convex, lowest at 1/e."""
        ends = [_x_log_x(Interval(np.maximum(x, 0), np.maximum(x, 0))) for x in (self.low, self.high)]
        low, high = np.minimum(ends[0].low, ends[1].low), np.maximum(ends[0].high, ends[1].high)
        if not self.is_point:
            holds = (self.low <= 0.36788) & (self.high >= 0.36787)
            floor = _fractions(-0.3678795) if self.exact else -0.3678795  # below -1/e
            low = np.where(holds, np.minimum(low, floor), low)
        return Interval(low, high)


def _x_log_x(point: Interval) -> Interval:
    zero = np.asarray(point.low == 0, bool)
    one = _fractions(1) if point.exact else 1.0
    inner = Interval._point(np.where(zero, one, point.low))
    found = inner * inner.log()
    return Interval(np.where(zero, 0 * one, found.low), np.where(zero, 0 * one, found.high))


def _least(corners):
    return np.minimum(np.minimum(corners[0], corners[1]), np.minimum(corners[2], corners[3]))


def _most(corners):
    return np.maximum(np.maximum(corners[0], corners[1]), np.maximum(corners[2], corners[3]))


def _decimals(x, function: str, side: int) -> np.ndarray:
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
        found = np.maximum(found, Fraction(0))
    return found


def maximum(a, b) -> Interval:
    a = a if isinstance(a, Interval) else b.like(a)
    b = a.like(b)
    return Interval(np.maximum(a.low, b.low), np.maximum(a.high, b.high))


def minimum(a, b) -> Interval:
    return -maximum(
        -a if isinstance(a, Interval) else -b.like(a), -b if isinstance(b, Interval) else -a.like(b)
    )


def tighter(x: Interval, low, high) -> Interval:
    """The same, where it is known to lie between low and high as well."""
    low, high = x.like(low), x.like(high)
    return Interval(
        np.minimum(np.maximum(x.low, low.low), high.high), np.maximum(np.minimum(x.high, high.high), low.low)
    )


def product(A, B) -> Interval:
    """A @ B; one of them an Interval, the other one too, or a matrix of float64 numbers, dense or CSR."""
    if isinstance(B, Interval):
        if isinstance(A, Interval):
            return _of_two(A, B)
        if B.exact:
            return _of_two(Interval.of(A.toarray() if sparse.issparse(A) else A, True), B)
        return _by_numbers(A, B)
    return product(B.T, A.T).T


def _by_numbers(A, B: Interval) -> Interval:
    k = A.shape[1]
    middle, radius = _middle_and_radius(B)
    size = _gamma(k) * np.abs(middle) if radius is None else _gamma(k) * np.abs(middle) + radius
    centre = np.asarray(A @ middle)
    slack = np.asarray(abs(A) @ size) * (1.0 + 4 * _gamma(k)) + (k + 1) * _TINY
    return Interval(_down(centre - slack), _up(centre + slack))


def _of_two(A: Interval, B: Interval) -> Interval:
    if A.exact:
        if A.is_point and B.is_point:
            whole = _array(A.low @ B.low)
            return Interval(_down(whole), _up(whole))
        (a, r), (b, s) = (((x.low + x.high) / 2, (x.high - x.low) / 2) for x in (A, B))
        centre, slack = a @ b, np.abs(a) @ s + r @ (np.abs(b) + s)
        return Interval(_down(_array(centre - slack)), _up(_array(centre + slack)))
    k = A.shape[-1]
    (a, r), (b, s) = _middle_and_radius(A), _middle_and_radius(B)
    size = _gamma(k) * np.abs(b) if s is None else _gamma(k) * np.abs(b) + s
    centre, slack = a @ b, np.abs(a) @ size
    if r is not None:
        slack = slack + r @ (np.abs(b) + size)
    slack = slack * (1.0 + 4 * _gamma(k)) + (k + 1) * _TINY
    return Interval(_down(centre - slack), _up(centre + slack))


def _middle_and_radius(x: Interval):
    if x.is_point:
        return x.low, None
    middle = 0.5 * (x.low + x.high)
    return middle, np.nextafter(np.maximum(x.high - middle, middle - x.low), np.inf) * (
        1.0 + 4 * _UNIT
    ) + _TINY
