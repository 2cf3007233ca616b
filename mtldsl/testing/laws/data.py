"""Random data for an example of an atom: predictions and labels for a loss, matrices for a function of weights."""

from __future__ import annotations

import zlib

import numpy as np

from mtldsl.reference.label_graph import GAP, choices

__all__ = [
    "LABELLED",
    "SHAPE",
    "WEIGHTINGS",
    "N",
    "fewest",
    "heaviest",
    "loss_data",
    "matrix",
    "random",
    "samples",
    "targets",
    "weights",
]

N, SHAPE = 12, (5, 4)

#: samples of a loss of labellings, each with the scores of all entries of its graph
LABELLED = 3


def random(atom, salt=0):
    """A generator of its own for every atom and purpose."""
    return np.random.default_rng([zlib.crc32(atom.name.encode()), salt])


def targets(atom, rng, n=None):
    """One a prediction: n of them, but of a loss of labellings the indicators of those of n samples, entry after entry."""
    n = n or (LABELLED if atom.labels == "indicators" else N)
    if atom.labels == "indicators":
        labels = rng.integers(0, 2, size=(n, atom.cliques.n_labels))
        labels[1::3, 0] = GAP  # some rows observe some labels, one row none
        labels[4::6, -1] = GAP
        labels[max(n - 1, 1) :] = GAP
        return choices(atom.cliques.members, labels).T.toarray().ravel()
    if atom.labels == "classes":
        own = rng.permutation(np.arange(n) % atom.n_classes)
        return np.where(np.arange(atom.n_classes)[:, None] == own, 1.0, -1.0).ravel()
    if atom.labels == "sign":
        return np.where(np.arange(n) % 3 == 0, -1.0, 1.0)[rng.permutation(n)]
    if atom.labels == "positive":
        return rng.gamma(2.0, size=n)
    return rng.poisson(2.0, n).astype(float) if atom.labels == "count" else rng.normal(size=n)


def samples(atom, size) -> np.ndarray:
    """(samples, predictions of one) positions in a flat vector of that size."""
    each = atom.cliques.n_entries if atom.labels == "indicators" else 1
    each = atom.n_classes if atom.labels == "classes" else each
    return np.arange(size).reshape(each, -1).T


#: how samples may be weighted: closed forms branch on it
WEIGHTINGS = {
    "unweighted": lambda rng: None,
    "weighted": lambda rng: rng.uniform(0.5, 2.0, size=N),
    "uniform weights": lambda rng: np.full(N, 2.5),
}


def heaviest(atom) -> str:
    """The weighting that tells most: weights where the loss takes them."""
    return "weighted" if atom.weighs_samples else "unweighted"


def fewest(atom, y) -> np.ndarray:
    """Where the predictions of as few samples are as a loss needs: one, or enough for both classes and for the metric."""
    if atom.weighs_samples or atom.labels in ("indicators", "classes"):
        return samples(atom, len(y))[0]
    sizes = [(n, np.sum(y[:n] > 0), np.sum(y[:n] < 0)) for n in range(2, N)]
    return np.arange(next(n for n, p, q in sizes if p and q and atom.metric.check(int(p), int(q)) is None))


def loss_data(atom, weighting, salt=0):
    """(rng, z, y, s)"""
    rng = random(atom, salt)
    y = targets(atom, rng)
    return rng, 1.5 * rng.normal(size=len(y)), y, WEIGHTINGS[weighting](rng)


def matrix(atom, salt=0, size=1.0):
    return size * random(atom, salt).normal(size=SHAPE)


def weights(atom, salt=0, shape=SHAPE) -> dict[str, np.ndarray]:
    """Weights of full rank and many sizes, of rank one, with a feature or a task that is zero, zero."""
    rng = random(atom, salt)
    W = rng.normal(size=shape)
    rank_one = np.outer(rng.normal(size=shape[0]), rng.normal(size=shape[1]))
    return {
        "middling": W,
        "small": 1e-2 * W,
        "large": 50.0 * W,
        "of many scales": W * 10.0 ** np.linspace(-3, 2, shape[1]),
        "rank one": rank_one,
        "zero column": W * (np.arange(shape[1]) != shape[1] - 1),
        "zero row": W * (np.arange(shape[0]) != 0)[:, None],
        "zero": np.zeros(shape),
    }
