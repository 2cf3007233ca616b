"""Linear systems whose matrix and right side are known to enclosures: an enclosure of the solution, which exists."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from mtldsl.proof.checker.interval import Interval
from mtldsl.proof.checker.products import product

__all__ = ["inverted", "pivots", "solved"]

#: the part of the largest pivot below which a row counts as a sum of others, which fractions then show
_PIVOT_SHARE = 1e-12


def inverted(matrix: Interval) -> tuple[np.ndarray, Interval] | None:
    """Return an approximate inverse R, and a bound q: |y - R matrix y| <= q max |R matrix y| for all y; None unless `matrix` is shown to be regular.

    With E = I - R matrix and ||E|| < 1 in the norm of row sums, y = R matrix y + E y, and  ||E y|| <= ||E|| / (1 - ||E||) ||R matrix y||.
    """
    try:
        R = np.linalg.inv(matrix.middle)
    except np.linalg.LinAlgError:
        return None
    if not np.isfinite(R).all():
        return None
    off = abs(product(matrix.like(R), matrix) - np.eye(len(R))).sum(axis=1).max()
    return (R, off / (1.0 - off)) if off.high < 0.5 else None


def solved(matrix: Interval, right: Interval) -> Interval | None:
    """Enclose the y with  matrix @ y = right, (k, k) and (k, c); None where it is not shown that there is one."""
    found = inverted(matrix)
    if found is None:
        return None
    R, q = found
    guess = product(matrix.like(R), right)
    slack = (abs(guess).max(axis=0) * q).high[None, :]
    return guess + Interval(-slack, slack)


def pivots(G: np.ndarray) -> tuple[np.ndarray, int]:
    """The order of a pivoted Cholesky decomposition, and its rank."""
    if not G.any() or not np.isfinite(G).all():
        return np.arange(len(G)), 0
    _, order, rank, _ = linalg.lapack.dpstrf(G, tol=_PIVOT_SHARE * float(np.diag(G).max()), lower=1)
    return order - 1, int(rank)
