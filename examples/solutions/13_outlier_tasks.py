"""Solutions of lesson 13, and mistakes that its checks have to notice."""

import numpy as np


def no_outliers_from(g):
    """With S = 0 the optimum is the low-rank one; it stays one while no column is too long."""
    return np.linalg.norm(g, axis=0).max()


no_outliers_from.mistakes = [
    lambda g: np.linalg.norm(g, 2),
    lambda g: np.linalg.norm(g, axis=1).max(),
    lambda g: np.median(np.linalg.norm(g, axis=0)),
]


def radius_of(gap):
    """1/2 ||z - y||^2 has modulus mu = 1: gap >= 1/2 ||z - z*||^2."""
    return np.sqrt(2 * gap)


radius_of.mistakes = [
    lambda gap: np.sqrt(gap),
    lambda gap: 2 * np.sqrt(gap),
    lambda gap: gap,
]
