"""Solutions of lesson 4, and mistakes that its checks have to notice."""

import numpy as np


def conjugate(v):
    """v = -1 / (1 + exp(z)) at the maximum: with p = -v it is minus an entropy."""
    p = -v
    if not 0 <= p <= 1:
        return np.inf
    return sum(q * np.log(q) for q in (p, 1 - p) if q > 0)


conjugate.mistakes = [
    lambda v: v * np.log(-v) if v < 0 else 0.0,
    lambda v: -sum(q * np.log(q) for q in (-v, 1 + v) if q > 0),
    lambda v: sum(q * np.log(q) for q in (-v, 1 + v) if q > 0),
]


def where_order_matters():
    """Two long rows, nearly parallel: their spectrum is long and short, the rows are both long."""
    return np.array([[1.0, 1.0], [1.0, 0.0]])


where_order_matters.mistakes = [
    lambda: np.eye(2),
    lambda: np.diag([3.0, 1.0]),
    lambda: np.ones((2, 2)),
]


def only_intercept(y):
    """The share of positives is 1 / (1 + exp(-b))."""
    return np.log(np.sum(y > 0) / np.sum(y < 0))


only_intercept.mistakes = [
    lambda y: np.mean(y),
    lambda y: np.log(np.mean(y > 0)),
    lambda y: np.log(np.sum(y < 0) / np.sum(y > 0)),
]
