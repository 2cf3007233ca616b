"""Penalties of the spectrum of one's own, for `spectral_penalty`: r(x) and r'(x), x = sigma^2 + eps."""

import numpy as np


def laplace(x):
    return 1.0 - np.exp(-x)


def laplace_slope(x):
    return np.exp(-x)


def geman(x):
    return np.sqrt(x) / (1.0 + np.sqrt(x))


def geman_slope(x):
    return 0.5 / (np.sqrt(x) * (1.0 + np.sqrt(x)) ** 2)
