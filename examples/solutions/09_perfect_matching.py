"""Solutions of lesson 9, and mistakes that its checks have to notice."""

import numpy as np


def loss_augmented_map(d):
    """Largest with largest: every pair is crossed."""
    return list(range(d))[::-1]


loss_augmented_map.mistakes = [
    lambda d: list(range(d)),
    lambda d: [0] * d,
    lambda d: [*range(1, d), 0],
]


def prices(sigma, nu):
    """b_j - b_i = sum over k from i + 1 to j of sigma_k (nu_k - nu_(k-1)).

    Since sigma falls, that is at most sigma_i (nu_j - nu_i), and a_i = sigma_i nu_i - b_i does it.
    """
    b = np.cumsum(sigma * np.diff(nu, prepend=0.0))
    return sigma * nu - b, b


def _halves(sigma, nu):
    return sigma * nu / 2, sigma * nu / 2


prices.mistakes = [
    _halves,
    lambda sigma, nu: (0 * sigma, 0 * nu),
    lambda sigma, nu: (sigma * nu, 0 * nu),
]
