"""Products of matrices of which enclosures are known."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mtldsl.proof.checker.interval import Interval
from mtldsl.proof.checker.rounding import TINY, UNIT, as_array, down, gamma, up

__all__ = ["product"]


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
    size = gamma(k) * np.abs(middle) if radius is None else gamma(k) * np.abs(middle) + radius
    centre = np.asarray(A @ middle)
    slack = np.asarray(abs(A) @ size) * (1.0 + 4 * gamma(k)) + (k + 1) * TINY
    return Interval(down(centre - slack), up(centre + slack))


def _of_two(A: Interval, B: Interval) -> Interval:
    if A.exact:
        if A.is_point and B.is_point:
            whole = as_array(A.low @ B.low)
            return Interval(down(whole), up(whole))
        (a, r), (b, s) = (((x.low + x.high) / 2, (x.high - x.low) / 2) for x in (A, B))
        centre, slack = a @ b, np.abs(a) @ s + r @ (np.abs(b) + s)
        return Interval(down(as_array(centre - slack)), up(as_array(centre + slack)))
    k = A.shape[-1]
    (a, r), (b, s) = _middle_and_radius(A), _middle_and_radius(B)
    size = gamma(k) * np.abs(b) if s is None else gamma(k) * np.abs(b) + s
    centre, slack = a @ b, np.abs(a) @ size
    if r is not None:
        slack = slack + r @ (np.abs(b) + size)
    slack = slack * (1.0 + 4 * gamma(k)) + (k + 1) * TINY
    return Interval(down(centre - slack), up(centre + slack))


def _middle_and_radius(x: Interval):
    if x.is_point:
        return x.low, None
    middle = 0.5 * (x.low + x.high)
    return middle, np.nextafter(np.maximum(x.high - middle, middle - x.low), np.inf) * (1.0 + 4 * UNIT) + TINY
