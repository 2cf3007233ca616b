"""Solutions of lesson 6, and mistakes that its checks have to notice."""

import numpy as np


def f1_by_dice(p, q):
    """A share p q is rightly +1: F1 = 2 p q / (p + q)."""
    return 2 * p * q / (p + q)


f1_by_dice.mistakes = [
    lambda p, q: p,
    lambda p, q: 2 * p / (1 + p),
    lambda p, q: p * q / (p + q),
]


def most_violated(z, y):
    """Flip the b negatives with the highest scores and the c positives with the lowest."""
    up, down = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    up, down = up[np.argsort(z[up])], down[np.argsort(-z[down])]
    best, found = -np.inf, y
    for c in range(len(up) + 1):
        for b in range(len(down) + 1):
            other = y.copy()
            other[up[:c]], other[down[:b]] = -1, 1
            right = len(up) - c
            value = 1 - 2 * right / (right + b + len(up)) - (y - other) @ z
            if value > best:
                best, found = value, other
    return found


most_violated.mistakes = [
    lambda z, y: 100 * np.sign(z),
    lambda z, y: -y,
    lambda z, y: np.where(z > 0, 1.0, -1.0),
    lambda z, y: y,
]
