"""Intervals that hold the exact result: float64 with outward rounding, or fractions, rounded to 200 bits, roots, exp and log to 60 digits.

An `Interval` is two arrays, low <= x <= high entry by entry. With float64 every operation widens its result by a unit in the last
place; a matrix product widens it by gamma_k |A| |B|, which bounds the rounding of k products summed in any order (Higham, "Accuracy and
stability of numerical algorithms", 2nd ed., section 3.5). With `fractions.Fraction` (object arrays) sums and products are exact
up to 400 bits, and rounded outward to 200 where they are longer; square roots, exp and log are those of `decimal`, correct to 60 digits. Taken for granted with float64: IEEE arithmetic, and an exp and a log
that are right to 8 units in the last place.

>>> from fractions import Fraction
>>> third = Interval.of(1.0) / Interval.of(3.0)
>>> bool(third.low < Fraction(1, 3) < third.high)
True
"""

from __future__ import annotations

import decimal
import math
from fractions import Fraction
from functools import reduce
from typing import Any, cast

import numpy as np
from scipy import sparse

from mtldsl.certificates.checker.limits import SETTINGS

# --------------------------------------------------------------------------------------------------------------
# Float64 and fractions rounded outward: the ends of intervals.

#: Rounding unit of float64.
UNIT = 2.0**-53

TINY = np.finfo(float).tiny
#: Rounding of exp and log of float64.
FUNCTION_ROUNDING = 16 * UNIT

_DIGITS = decimal.Context(prec=60, Emin=-4000, Emax=4000)


def down(x):
    return _short(x, -1) if x.dtype == object else np.nextafter(x, -np.inf)


def up(x):
    return _short(x, 1) if x.dtype == object else np.nextafter(x, np.inf)


def _short(x, side: int):
    """Fractions of many digits rounded to that side, to `SETTINGS.kept_bits` bits: otherwise they grow with every operation."""
    if not x.size:
        return x
    found = np.empty(x.shape, dtype=object)
    found[...] = _SHORTEN[side](x)
    return found


def _shorten(q: Fraction, side: int) -> Fraction:
    n, d = q.numerator, q.denominator
    bits = SETTINGS.kept_bits
    if d.bit_length() <= 2 * bits and n.bit_length() <= 4 * bits and not d & (d - 1):
        return q
    shift = bits - n.bit_length() + d.bit_length()
    n, d = (n << shift, d) if shift >= 0 else (n, d << -shift)
    whole = n // d if side < 0 else -(-n // d)
    return Fraction(whole, 1 << shift) if shift >= 0 else Fraction(whole << -shift)


_SHORTEN = {side: np.frompyfunc(lambda q, side=side: _shorten(q, side), 1, 1) for side in (-1, 1)}


def round_to_float(x, side: int) -> np.ndarray:
    """The same numbers in float64; Fractions that it lacks rounded down (side -1) or up (+1)."""
    x = np.asarray(x)
    near = x.astype(float)
    if x.dtype != object:
        return near
    beyond = near >= x if side > 0 else near <= x  # a difference would be rounded
    return np.where(np.asarray(beyond, bool), near, np.nextafter(near, side * np.inf))


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
    if type(x) is np.ndarray and x.dtype.char in "dO":  # of the millions of calls of one check nearly all
        return x
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


class Interval:
    """low <= x <= high, entry by entry."""

    __array_ufunc__ = None  # arrays on the left defer to the operators here
    __slots__ = ("high", "low")

    def __init__(self, low, high):
        self.low, self.high = as_array(low), as_array(high)

    @classmethod
    def of(cls, x, exact: bool = False) -> Interval:
        """The numbers themselves; as Fractions where `exact`."""
        if isinstance(x, Interval):
            return x
        x = fractions(x) if exact else as_array(x)
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
    def _ends(self) -> tuple[np.ndarray, ...]:
        return (self.low,) if self.is_point else (self.low, self.high)

    @property
    def is_finite(self) -> bool:
        """Tell whether no end is infinite or NaN: maxima and comparisons of such numbers need not show it."""
        return self.exact or bool(np.isfinite(self.low).all() and np.isfinite(self.high).all())

    @property
    def middle(self) -> np.ndarray:
        """A float64 number near, for choices that need not be exact."""
        low, high = np.asarray(self.low, float), np.asarray(self.high, float)
        return low if self.is_point else 0.5 * (low + high)

    def like(self, x) -> Interval:
        """Other numbers, in the same arithmetic."""
        return Interval.of(x, self.exact)

    # ------------------------------------------------------------------------------------------- parts

    def _each(self, change) -> Interval:
        if self.is_point:
            return Interval._point(change(self.low))
        return Interval(change(self.low), change(self.high))

    @staticmethod
    def _point(x) -> Interval:
        x = as_array(x)
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
        return Interval(down(as_array(self.low + other.low)), up(as_array(self.high + other.high)))

    __radd__ = __add__

    def __sub__(self, other) -> Interval:
        return self + (-self.like(other))

    def __rsub__(self, other) -> Interval:
        return self.like(other) + (-self)

    def __mul__(self, other) -> Interval:
        other = self.like(other)
        if self.is_point and other.is_point:
            both = as_array(self.low * other.low)
            return Interval(down(both), up(both))
        return _hull([as_array(a * b) for a in self._ends for b in other._ends])

    __rmul__ = __mul__

    def __truediv__(self, other) -> Interval:
        """Anything where the other holds 0; of fractions ZeroDivisionError."""
        other = self.like(other)
        zero = np.asarray((other.low <= 0) & (other.high >= 0), dtype=bool)
        if zero.any() and (self.exact or other.exact):
            raise ZeroDivisionError("a division by what may be zero")
        found = _hull([as_array(a / b) for a in self._ends for b in other._ends])
        if not zero.any():
            return found
        return Interval(np.where(zero, -np.inf, found.low), np.where(zero, np.inf, found.high))

    def __rtruediv__(self, other) -> Interval:
        return self.like(other) / self

    def square(self) -> Interval:
        size = abs(self)
        return Interval(
            np.maximum(down(as_array(size.low * size.low)), 0), up(as_array(size.high * size.high))
        )

    def __abs__(self) -> Interval:
        if self.is_point:
            return Interval._point(np.abs(self.low))
        return Interval(
            np.maximum(np.maximum(self.low, -self.high), 0), np.maximum(np.abs(self.low), np.abs(self.high))
        )

    def sum(self, axis=None) -> Interval:
        if self.exact:
            ends = [
                as_array(np.sum(x, axis=axis)) if x.size else fractions(np.sum(np.zeros(x.shape), axis=axis))
                for x in (self.low, self.high)
            ]
            return Interval(down(ends[0]), up(ends[1]))
        if axis is None:
            low, high = (as_array(math.fsum(end.ravel())) for end in (self.low, self.high))
            return Interval(down(low), up(high))
        return self._added(lambda x: np.sum(x, axis=axis), self.low.shape[axis])

    def _added(self, add, count: int) -> Interval:
        """Sums of at most so many float64 numbers each."""
        slack = gamma(count) * add(abs(self).high) + TINY
        return Interval(down(add(self.low) - slack), up(add(self.high) + slack))

    def sums(self, starts) -> Interval:
        """Sums of neighbours, from every start to the next."""
        starts = np.asarray(starts)
        if not len(starts) or starts[0] != 0 or np.any(np.diff(np.append(starts, len(self.low))) <= 0):
            raise ValueError("sums of nothing")  # of which numpy makes a number

        def add(x):
            return np.add.reduceat(x, starts)

        longest = int(np.diff(np.append(starts, len(self.low))).max())
        return self._each(add) if self.exact else self._added(add, longest)

    def max(self, axis=None) -> Interval:
        """0 where there is nothing; of numbers that are all >= 0, or where there is something."""
        if not self.low.size:
            return self.like(0.0)
        return self._each(lambda x: np.asarray(np.max(x, axis=axis), dtype=x.dtype))

    def cumsum(self, axis: int) -> Interval:
        def add(x):
            return np.cumsum(x, axis=axis)

        return self._each(add) if self.exact else self._added(add, self.low.shape[axis])

    # ------------------------------------------------------------------------------------------- functions

    def sqrt(self) -> Interval:
        low = np.maximum(self.low, 0)
        high = np.maximum(self.high, 0)
        if self.exact:
            return Interval(decimals(low, "sqrt", -1), decimals(high, "sqrt", 1))
        return Interval(np.maximum(down(np.sqrt(low)), 0.0), up(np.sqrt(high)))

    def exp(self) -> Interval:
        return self._rounded(np.exp, "exp", 0.0)

    def log(self) -> Interval:
        """Only for numbers > 0."""
        return self._rounded(np.log, "ln", -np.inf)

    def log1p(self) -> Interval:
        """log(1 + x) of numbers >= 0."""
        return (self + 1).log() if self.exact else self._rounded(np.log1p, "", 0.0)

    def _rounded(self, function, exactly: str, least: float) -> Interval:
        """A function that rises, and is nowhere below `least`; `exactly`: its name in `decimal`."""
        if self.exact:
            return Interval(decimals(self.low, exactly, -1), decimals(self.high, exactly, 1))
        low, high = function(self.low), function(self.high)
        return Interval(
            np.maximum(low - FUNCTION_ROUNDING * np.abs(low) - TINY, least),
            high + FUNCTION_ROUNDING * np.abs(high) + TINY,
        )

    def times_log(self) -> Interval:
        """x log x of numbers >= 0 (0 at 0): convex, lowest at 1/e."""
        ends = [_x_log_x(Interval(np.maximum(x, 0), np.maximum(x, 0))) for x in (self.low, self.high)]
        low, high = np.minimum(ends[0].low, ends[1].low), np.maximum(ends[0].high, ends[1].high)
        if not self.is_point:
            holds = (self.low <= 0.36788) & (self.high >= 0.36787)
            floor = fractions(-0.3678795) if self.exact else -0.3678795  # below -1/e
            low = np.where(holds, np.minimum(low, floor), low)
        return Interval(low, high)


def _x_log_x(point: Interval) -> Interval:
    zero = np.asarray(point.low == 0, bool)
    one = fractions(1) if point.exact else 1.0
    inner = Interval._point(np.where(zero, one, point.low))
    found = inner * inner.log()
    return Interval(np.where(zero, 0 * one, found.low), np.where(zero, 0 * one, found.high))


def _hull(corners) -> Interval:
    """All from the least corner to the largest, rounded outward."""
    return Interval(down(as_array(reduce(np.minimum, corners))), up(as_array(reduce(np.maximum, corners))))


def maximum(a, b) -> Interval:
    return _of_ends(np.maximum, a, b)


def minimum(a, b) -> Interval:
    return _of_ends(np.minimum, a, b)


def _of_ends(function, a, b) -> Interval:
    a = a if isinstance(a, Interval) else b.like(a)
    b = a.like(b)
    return Interval(function(a.low, b.low), function(a.high, b.high))


def clip_to_unit(x: Interval) -> Interval:
    """Clipped to [0, 1], as a real operation; the same numbers where they are known to lie there."""
    return minimum(maximum(x, 0.0), 1.0)


def falling(x: Interval) -> Interval:
    """In falling order: the k-th largest number lies between the k-th largest ends."""
    return Interval(np.sort(x.low)[::-1], np.sort(x.high)[::-1])


def join_intervals(parts) -> Interval:
    """One after the other along the first axis."""
    parts = list(parts)
    return Interval(np.concatenate([p.low for p in parts]), np.concatenate([p.high for p in parts]))


# --------------------------------------------------------------------------------------------------------------
# Products of matrices of which enclosures are known.


def product(A, B) -> Interval:
    """A @ B; one of them an Interval, the other one too, or a matrix of float64 numbers, dense or CSR."""
    if not isinstance(B, Interval):
        return product(B.T, A.T).T
    if B.exact:
        A = Interval.of(A.toarray() if sparse.issparse(A) else A, True)
        return _exact_product(A, B)
    k = A.shape[-1]
    a, r = _middle_and_radius(A) if isinstance(A, Interval) else (A, None)
    b, s = _middle_and_radius(B)
    centre, slack = np.asarray(a @ b), _slack(abs(a), np.abs(b), s)
    if r is not None:
        slack = slack + r @ (np.abs(b) if s is None else np.abs(b) + s) * (1.0 + gamma(k))
    return _around(centre, slack * (1.0 + 4 * gamma(k)) + (k + 1) * TINY)


def _exact_product(A: Interval, B: Interval) -> Interval:
    if A.is_point and B.is_point:
        whole = _sums_of_products(A.low, B.low)
        return Interval(down(whole), up(whole))
    (a, r), (b, s) = (((x.low + x.high) / 2, (x.high - x.low) / 2) for x in (A, B))
    centre = _sums_of_products(a, b)
    slack = _sums_of_products(np.abs(a), s) + _sums_of_products(r, np.abs(b) + s)
    return Interval(down(as_array(centre - slack)), up(as_array(centre + slack)))


def _sums_of_products(a, b) -> np.ndarray:
    """a @ b of Fractions; in whole numbers where denominators are powers of two, since a Fraction is reduced at every step."""
    m, n = _as_integers(a), _as_integers(b)
    if m is None or n is None:
        return as_array(a @ b)
    scale = m[1] * n[1]
    return as_array(np.frompyfunc(lambda x: Fraction(x, scale), 1, 1)(m[0] @ n[0]))


def _as_integers(x) -> tuple[np.ndarray, int] | None:
    """(the numbers times a power of two, which makes all of them whole; that power); None where none does."""
    flat = x.ravel().tolist()
    scale = max((q.denominator for q in flat), default=1)
    if any(q.denominator & (q.denominator - 1) for q in flat):
        return None
    found = np.empty(len(flat), dtype=object)
    found[:] = [q.numerator * (scale // q.denominator) for q in flat]
    return found.reshape(x.shape), scale


def _slack(A, middle, radius):
    """Bound of the rounding of A @ middle, both absolute values: its share comes last, since of one number it may be nothing."""
    k = A.shape[-1]
    return (
        np.asarray(A @ middle) * gamma(k) if radius is None else np.asarray(A @ (gamma(k) * middle + radius))
    )


def _around(centre, slack) -> Interval:
    """Anything where a sum of products left float64 on its way: its infinite centre bounds nothing from below."""
    known = np.isfinite(centre)
    centre, slack = np.where(known, centre, 0.0), np.where(known, slack, np.inf)
    return Interval(down(centre - slack), up(centre + slack))


def _middle_and_radius(x: Interval):
    if x.is_point:
        return x.low, None
    middle = 0.5 * (x.low + x.high)
    return middle, np.nextafter(np.maximum(x.high - middle, middle - x.low), np.inf) * (1.0 + 4 * UNIT) + TINY


# --------------------------------------------------------------------------------------------------------------
# Enclosures of spectral and trace norms, and lower bounds of eigenvalues, that hold for every matrix in an enclosure.
#
# A float decomposition is a guess; what it misses is enclosed and added. With W = U diag(s) V^T + E:
# ||W||_2 <= ||U|| max(s) ||V|| + ||E||_F and ||W||_* <= ||U|| ||V|| sum(s) + sqrt(rank) ||E||_F, where ||U||^2 <= 1 + ||U^T U - I||_F.


def spectral_norm(W: Interval) -> Interval:
    """Encloses the largest singular value; from below, what the leading pair of vectors shows."""
    U, s, Vt, sizes, rest = enclose_svd(W)
    top = Interval.of(s.max(initial=0.0), W.exact) * sizes + rest
    u, v = (Interval.of(x, W.exact) for x in (U[:, :1], Vt[:1].T))
    shown = (product(u.T, product(W, v)) / (u.square().sum() * v.square().sum()).sqrt()).reshape(-1)[0]
    return Interval(np.maximum(shown.low, 0), top.high)


def trace_norm(W: Interval) -> Interval:
    """Encloses the sum of singular values; from below, <W, U V^T> / (||U|| ||V||)."""
    U, s, Vt, sizes, rest = enclose_svd(W)
    total = (
        Interval.of(s, W.exact).sum() * sizes
        + rest * Interval.of(float(max(1, min(W.shape))), W.exact).sqrt()
    )
    shown = (W * product(Interval.of(U, W.exact), Interval.of(Vt, W.exact))).sum() / sizes
    return Interval(np.maximum(shown.low, 0), total.high)


def enclose_svd(W: Interval):
    """(U, s, V^T, an upper bound of ||U|| ||V||, an upper bound of ||W - U diag(s) V^T||_F)."""
    U, s, Vt = np.linalg.svd(W.middle, full_matrices=False)
    u, vt = Interval.of(U, W.exact), Interval.of(Vt, W.exact)
    rest = (W - product(u * s, vt)).square().sum().sqrt()
    return U, s, Vt, (_size(u) * _size(vt.T)).sqrt(), rest


def _size(U: Interval) -> Interval:
    """Enclosure of 1 + ||U^T U - I||_F, which is at least ||U||_2^2."""
    return _defect(U) + 1.0


def _defect(U: Interval) -> Interval:
    return (product(U.T, U) - np.eye(U.shape[1])).square().sum().sqrt()


def least_eigenvalue(A, exact: bool) -> Interval:
    """An interval whose lower end is below all eigenvalues of a symmetric matrix."""
    A = np.asarray(A, float)
    values, basis = np.linalg.eigh(A)
    q = Interval.of(basis, exact)
    rest = (Interval.of(A, exact) - product(q * values, q.T)).square().sum().sqrt()
    least = Interval.of(min(float(values[0]), 0.0) if values[0] <= 0 else float(values[0]), exact)
    return least * (1.0 - _defect(q)) - rest if values[0] > 0 else least * _size(q) - rest
