"""Solutions of lesson 14, and mistakes that its checks have to notice."""

import numpy as np


def parabola_above(s0, eps):
    """The tangent in x = s^2 of (x + eps)^(1/4): its slope is (x + eps)^(-3/4) / 4."""
    a = (s0**2 + eps) ** -0.75 / 4
    return a, (s0**2 + eps) ** 0.25 - a * s0**2


def _half(s0, eps):
    a = (s0**2 + eps) ** -0.75 / 2
    return a, (s0**2 + eps) ** 0.25 - a * s0**2


parabola_above.mistakes = [_half, lambda s0, eps: (0.0, (s0**2 + eps) ** 0.25)]


def shrink(y, mu):
    """s - y + mu / (1 + s) = 0: s^2 + (1 - y) s + mu - y = 0, its larger root."""
    return (y - 1 + np.sqrt((y + 1) ** 2 - 4 * mu)) / 2


shrink.mistakes = [
    lambda y, mu: (y - 1 - np.sqrt((y + 1) ** 2 - 4 * mu)) / 2,
    lambda y, mu: max(y - mu, 0.0),
]


def first_step(y, mu, eps):
    """s (1 + 2 mu w) = y with w = 1 / (2 sqrt(eps) (1 + sqrt(eps))): of the order of sqrt(eps)."""
    r = np.sqrt(eps)
    return y / (1 + mu / (r * (1 + r)))


first_step.mistakes = [
    lambda y, mu, eps: y,
    lambda y, mu, eps: 0.0,
    lambda y, mu, eps: y / (1 + mu / (2 * np.sqrt(eps))),
]
