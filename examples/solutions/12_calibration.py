"""Solutions of lesson 12, and mistakes that its checks have to notice."""

import numpy as np


def hidden(r):
    """-||r||^2 / (2 s^2) + 1/2 = 0 at s = ||r||; there both halves are ||r|| / 2."""
    return np.linalg.norm(r), np.linalg.norm(r)


hidden.mistakes = [
    lambda r: (r @ r, r @ r),
    lambda r: (np.linalg.norm(r), np.linalg.norm(r) / 2),
]


def mu_in_other_units(mu, c, root):
    """The loss grows with c (roots) or c^2 (squares), the norm of c W with c."""
    return mu if root else c * mu


mu_in_other_units.mistakes = [
    lambda mu, c, root: c * mu,
    lambda mu, c, root: mu,
    lambda mu, c, root: mu if root else c**2 * mu,
]
