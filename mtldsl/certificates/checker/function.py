"""The checker's own formulas of regularizers and sets: what they cost at a point, and what a multiplier costs.

A word's class is made of its parameters and the shape of its argument. It says, with W and Z Intervals that hold real matrices:

value(W)     an enclosure, or an upper bound, of g(W); of a set 0
violation(W) an upper bound of how far W is outside, of a set
inside(Z)    a matrix near Z in the cone spanned by dom g*, as a real operation; `takes` the entries in which any change stays there
gauge(Z)     an upper bound of the t >= 0 with Z in t dom g* (a norm's dual norm); 0 where dom g* is a cone
span(row)    the changes of a row of Z that stay in it
conjugate(Z) an upper bound of g*(Z), for a Z that `inside` made and gauge allows
"""

from __future__ import annotations

import numpy as np

from mtldsl.certificates.checker.interval import Interval

# --------------------------------------------------------------------------------------------------------------
# What the checker has no formula for.


class UnsupportedFormula(Exception):
    """Formula that this checker lacks; the verdict names it."""


class FunctionFormula:
    is_set = False
    finite_dual = False  # the conjugate is finite everywhere
    is_cone_free = True  # any change of the entries in `takes` stays in the cone, and not only small ones
    left_out: np.ndarray | bool = False  # entries whose multipliers are to be 0
    is_spanned = True  # all rows of what `inside` makes are in `span`
    short = None  # of a quadratic form: see `QuadraticFormula`
    degree = 1  # g*(t Z) <= t^degree g*(Z) for 0 <= t <= 1

    def __init__(self, parameters, shape, exact: bool):
        self.shape, self.exact = shape, exact
        self.read(parameters)

    def read(self, parameters):
        pass

    def number(self, x) -> Interval:
        return Interval.of(x, self.exact)

    @property
    def takes(self) -> np.ndarray:
        return np.ones(self.shape, dtype=bool)

    def out_of_cone(self, Z) -> np.ndarray:
        """Entries that may have left the cone since `inside`."""
        return np.zeros(self.shape, dtype=bool)

    def span(self, row: int) -> np.ndarray:
        """(columns, s) E: multipliers of a row may be changed by E c, any c, without leaving the cone."""
        return np.eye(self.shape[1])[:, self.takes[row]]

    def taken(self, rows, columns, C: Interval) -> None:
        """Note that the multipliers of these rows were changed by C E^T, E these columns of `span`."""

    def value(self, W) -> Interval:
        return self.number(0.0)

    def inside(self, Z) -> Interval:
        return Z if self.takes.all() else Z * self.takes.astype(float)

    def gauge(self, Z) -> Interval:
        return self.number(0.0)

    def conjugate(self, Z) -> Interval:
        return self.number(0.0)


def differences(m: int) -> np.ndarray:
    """(m, m - 1): a basis of the rows that sum to zero."""
    return np.eye(m)[:, 1:] - np.eye(m)[:, :-1]
