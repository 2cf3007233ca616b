"""Intercepts of labels over a graph: a column of ones of which the weights of edges see nothing, and multipliers that balance there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import sparse

from mtldsl.compile.linear_map import Entry, LinearMap
from mtldsl.compile.terms.random_labellings import RandomLabellings
from mtldsl.inference import GAP
from mtldsl.tasks import Tasks

__all__ = ["Flips", "each_flipped", "flipping", "flips_for", "mixed_with_flips", "with_constant"]

#: What the sums of multipliers may miss zero by, beside the weights of all samples.
_ROUNDING = 1e-16

#: (share of the flips, (K,) probability of flipping each label where it is true, where it is false).
Flips = tuple[float, np.ndarray, np.ndarray]


def with_constant(tasks: Tasks, map: LinearMap, name: str, n_labels: int) -> tuple[Tasks, LinearMap]:
    """The entries of a graph with a last feature that is 1, and the map whose last row is the intercepts, block `name` (1, 2K)."""
    X = tasks.X
    n, d = X.shape
    ones = np.ones((n, 1))
    wider = sparse.hstack([X, ones], format="csr") if sparse.issparse(X) else np.hstack([X, ones])
    embed = sparse.eye_array(d + 1, d, format="csr")
    last = sparse.csr_array(([1.0], ([d], [0])), shape=(d + 1, 1))
    entries = [
        replace(entry, left=embed if entry.left is None else sparse.csr_array(embed @ entry.left))
        for entry in map.entries
    ]
    entries.append(Entry(name, 1.0, last, sparse.eye_array(2 * n_labels, tasks.n_tasks, format="csr")))
    offset = None if map.offset is None else np.vstack([map.offset, np.zeros((1, tasks.n_tasks))])
    own = Tasks(
        targets=tasks.targets, counts=tasks.counts, task_names=tasks.task_names,
        feature_names=(*tasks.feature_names, "(intercept)") if tasks.feature_names else tasks.feature_names,
        shared=wider, sample_weights=tasks.sample_weights,
    )  # fmt: skip
    return own, LinearMap(tuple(entries), (d + 1, tasks.n_tasks), offset)


def flips_for(sums: np.ndarray, truths: Sequence[np.ndarray], weights: Sequence[np.ndarray]) -> Flips | None:
    """The random labellings that balance others, where those expect `sums` (K,) more ones than are true, weighted, over these samples.

    Mixed into every sample with the share s: one label k is flipped with the probability p_k where it is what there is too much of, so
    that  (1 - s) sums_k = s p_k (weight of those samples),  and the p_k sum to 1. None where nothing is left to balance, or a label has
    one class alone.

    >>> flips_for(np.array([0.5, 0.0]), [np.array([[1, 0], [0, 1]])], [np.array([1.0, 1.0])])
    (0.3333333333333333, array([1., 0.]), array([0., 0.]))
    """
    positive = sum(w @ (truth == 1) for truth, w in zip(truths, weights, strict=True))
    missing = sum(w @ (truth == GAP) for truth, w in zip(truths, weights, strict=True))
    total = sum(float(np.sum(w)) for w in weights)
    room = np.where(sums > 0, positive, total - missing - positive)
    needed = np.abs(sums) > _ROUNDING * total
    if not needed.any() or not np.all(room[needed] > 0.0):
        return None
    shares = np.divide(np.abs(sums), room, out=np.zeros(len(sums)), where=needed)
    q = float(shares.sum())
    p = shares / q
    return q / (1.0 + q), np.where(sums > 0, p, 0.0), np.where(sums > 0, 0.0, p)


def flipping(flips: Flips, truth: np.ndarray) -> np.ndarray:
    """(n, K) with what probability every label of every sample is flipped; a gap never."""
    _, where_true, where_false = flips
    return np.where(truth == GAP, 0.0, np.where(truth == 1, where_true, where_false))


def each_flipped(truth: np.ndarray) -> np.ndarray:
    """(n, K, K) for every label of every sample the true labelling with it flipped; itself where there is a gap.

    >>> each_flipped(np.array([[1, GAP]], dtype=np.uint8)).tolist()
    [[[0, 2], [1, 2]]]
    """
    return truth[:, None, :] ^ (np.eye(truth.shape[1], dtype=truth.dtype)[None] * (truth != GAP)[:, :, None])


def mixed_with_flips(random: RandomLabellings, flips: Flips, truth: np.ndarray, share: float = 1.0):
    """A random labelling, itself with the probability `share`, else the true one, mixed with flips of single labels of the truth."""
    s, n = flips[0], len(truth)
    probabilities = flipping(flips, truth)
    flipped = each_flipped(truth)
    labels, weights, counts = [], [], []
    used = probabilities > 0.0
    totals = _totals(random)
    for i in range(n):
        own = slice(int(random.starts[i]), int(random.starts[i + 1]))
        labels += [random.labels[own], flipped[i, used[i]]]
        weights += [
            (1.0 - s) * share * np.maximum(random.weights[own], 0.0) / max(totals[i], 1.0),
            s * probabilities[i, used[i]],
        ]
        counts.append(own.stop - own.start + int(used[i].sum()))
    return replace(
        random,
        labels=np.concatenate(labels),
        weights=np.concatenate(weights),
        starts=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
    )


def _totals(random: RandomLabellings) -> np.ndarray:
    counts = np.diff(random.starts)
    weights = np.append(np.maximum(random.weights, 0.0), 0.0)
    return np.add.reduceat(weights, np.asarray(random.starts[:-1])) * (counts > 0)
