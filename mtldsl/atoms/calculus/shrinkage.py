"""How norms and their balls take length away: the factor of a block soft threshold, and the level that leaves a given sum."""

from __future__ import annotations

import numpy as np

__all__ = ["shrinkage", "water_level", "weighted_water_level"]


def shrinkage(norms, threshold):
    """(1 - threshold / norm)_+, elementwise (0 where the norm is 0): the factor of a block soft threshold."""
    kept = np.maximum(norms - threshold, 0.0)
    return np.divide(kept, norms, out=kept, where=norms > 0)


def water_level(values, total) -> np.ndarray:
    """For every column v of `values` the t with sum_j (v_j - t)_+ = total.

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
