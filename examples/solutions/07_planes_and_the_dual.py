"""Solutions of lesson 7, and mistakes that its checks have to notice."""

import numpy as np


def weight_of_plane(a, delta, C):
    """The parabola's top, delta / (C ||a||^2), or the end of the interval before it."""
    return min(1.0, delta / (C * (a @ a)))


weight_of_plane.mistakes = [
    lambda a, delta, C: delta / (C * (a @ a)),
    lambda a, delta, C: min(1.0, delta / (a @ a)),
    lambda a, delta, C: 1.0,
]


def bound_at(w, slopes, offsets, C):
    """The random labelling is that plane with probability beta, else the truth."""
    k = np.argmax(offsets + slopes @ w)
    beta = weight_of_plane(slopes[k], offsets[k], C)
    return C * offsets[k] * beta - C**2 / 2 * beta**2 * (slopes[k] @ slopes[k])


bound_at.mistakes = [
    lambda w, slopes, offsets, C: 0.5 * w @ w + C * np.max(offsets + slopes @ w),
    lambda w, slopes, offsets, C: 0.0,
]


def rescaled(C, factor):
    """w' = w / factor makes the same scores; the ridge is factor^2 smaller, and C with it."""
    return C / factor**2, 1 / factor


rescaled.mistakes = [
    lambda C, factor: (C, 1 / factor),
    lambda C, factor: (C / factor, 1 / factor),
    lambda C, factor: (C * factor**2, factor),
]
