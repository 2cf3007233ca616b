"""The k-support norm of nonnegative numbers, which are mostly the norms of groups: its value, and the shares that eliminate to it."""

from __future__ import annotations

import numpy as np

__all__ = ["half_squared_k_support", "shares_of_norms"]


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
    below = breaks[total(breaks) <= r]
    kappa = below[-1]
    begun, full = np.searchsorted(starts, kappa, "right"), np.searchsorted(ends, kappa, "right")
    slope = order[full:begun].sum()  # not a difference of sums, which larger norms would round
    if slope > 0.0:
        kappa = (r - full + step * (begun - full)) / slope
    shares = np.zeros(len(a))
    shares[positive] = np.clip(kappa * b - step, 0.0, 1.0)
    return shares
