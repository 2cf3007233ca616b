"""A random labelling for every sample: what multipliers of a hinge over labellings stand for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["RandomLabellings"]


@dataclass(frozen=True, eq=False)
class RandomLabellings:
    """For every sample a random labelling: `labels[j]` with probability `weights[j]`, j from starts[i] on; the true one with the rest.

    labels (L, K) of 0 and 1; weights (L,) >= 0 with a sum of at most 1 for every sample; starts (n + 1,).
    """

    labels: np.ndarray
    weights: np.ndarray
    starts: np.ndarray
