"""Labels, scores and every labelling of small tasks, for tests of metrics."""

from itertools import product

import numpy as np

__all__ = ["labels", "planes_of", "scores"]


def labels(rng, n, positives=None):
    """At least one of each class."""
    positives = rng.integers(1, n) if positives is None else positives
    return rng.permutation(np.where(np.arange(n) < positives, 1.0, -1.0))


def scores(rng, n, size, kind):
    """Normal, or with ties and zeros, or all alike."""
    if kind == "alike":
        return np.full(n, size * rng.normal())
    z = size * rng.normal(size=n)
    return z if kind == "normal" else size * np.round(z / size)


def planes_of(metric, y):
    """(deltas, flips) of all labellings that the metric allows, by its formula alone; the slope of a plane is -2 y flips."""
    flips = np.array(list(product((0.0, 1.0), repeat=len(y))))
    b, c = (flips[:, y == label].sum(axis=1).astype(int) for label in (-1, 1))
    deltas = np.asarray(metric.table(b, c, int(np.sum(y > 0)), int(np.sum(y < 0))), float)
    allowed = np.isfinite(deltas)
    return deltas[allowed], flips[allowed]
