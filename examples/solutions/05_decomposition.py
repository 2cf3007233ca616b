"""Solutions of lesson 5, and mistakes that its checks have to notice."""

import numpy as np


def largest_ratios(m):
    """A column is G e_i: no longer than the largest singular value. And ||G||_2 <= ||G||_F, which
    is at most sqrt(m) columns of length 1; m equal columns reach it.

    So for b > a the columns never reach b, and S = 0; for b < a / sqrt(m) L = 0.
    """
    return 1.0, np.sqrt(m)


largest_ratios.mistakes = [
    lambda m: (1.0, m),
    lambda m: (np.sqrt(m), 1.0),
    lambda m: (1.0, 1.0),
]


def outliers_from(G, a, b):
    """Where <g_i, s_i> has to cancel b ||s_i||, the column of G is b long."""
    return np.flatnonzero(np.linalg.norm(G, axis=0) > (1 - 1e-5) * b)


outliers_from.mistakes = [
    lambda G, a, b: np.argsort(-np.linalg.norm(G, axis=0))[:3],
    lambda G, a, b: np.flatnonzero(np.linalg.norm(G, axis=0) > (1 - 1e-5) * a),
    lambda G, a, b: np.flatnonzero(np.linalg.norm(G, axis=0) > 0.5 * b),
    lambda G, a, b: [],
]
