"""What shows the conjugate of a loss of labellings to be no larger than claimed: random labellings, found where a solver keeps none."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog, minimize, nnls

from mtldsl.atoms.metrics.expectation import flip_probabilities
from mtldsl.atoms.planes.label_polytope import project
from mtldsl.compile.terms.label_graph import LabelDual, LabelGraphTerm
from mtldsl.compile.terms.label_intercepts import flipping
from mtldsl.inference import GAP

__all__ = ["labellings_of", "law_of_flips"]

#: labels of which all labellings are listed
_ENUMERATED = 14
#: labellings less probable than this are left to the true one
_RARE = 1e-17


def law_of_flips(rows, c, metric, y, classes, dual, i: int):
    """[b, c, weights] of task i, the tables of a random labelling that its multipliers stand for; None where a closed form needs none."""
    if metric.exact_conjugate:
        return None
    law = dual.laws[i] if dual.laws else None
    if law is None and metric.tells_orders:
        law = metric.law_of_slope(dual.u[rows] / c, y)
    elif law is None:
        p = flip_probabilities(dual.u[rows] / c, y)
        law = None if p is None else metric.law(p[classes.positive], p[classes.negative])
    return None if law is None else [np.asarray(part) for part in law]


def labellings_of(loss: LabelGraphTerm, dual: LabelDual) -> dict | None:
    """{"labels", "weights", "starts"}; None where a graph has too many labels to find them."""
    dual = loss.dual_project(dual)
    random = dual.labellings
    if random is not None:
        labels, weights, starts = random.labels, np.maximum(random.weights, 0.0), np.asarray(random.starts)
        return {
            "labels": np.asarray(labels, np.uint8),
            "weights": dual.share * weights,
            "starts": starts.astype(np.int64),
        }
    K = loss.cliques.n_labels
    if K > _ENUMERATED:
        return None
    every = ((np.arange(2**K)[:, None] >> np.arange(K)[::-1]) & 1).astype(np.uint8)
    own, known = loss.cliques.indicators(loss.truth), {}
    means, scores = own, None if loss.atom.max_affine else dual.scores
    if scores is None:
        whole = dual.whole()
        whole = whole.toarray() if hasattr(whole, "toarray") else np.asarray(whole)
        means = project(loss.cliques, whole / loss.weights[:, None], loss.truth) + own
    labels, weights, counts = [], [], [0]
    for i, truth in enumerate(loss.truth):
        gaps = truth == GAP
        if gaps.tobytes() not in known:
            beside = np.where(gaps, np.uint8(GAP), every[~every[:, gaps].any(axis=1)])
            known[gaps.tobytes()] = beside, loss.cliques.indicators(beside)
        beside, vertices = known[gaps.tobytes()]
        if scores is not None:
            share = _softmax(vertices @ scores[i])
            if dual.flips is not None:
                p = flipping(dual.flips, truth[None])[0]
                share = _with_flips(share, beside, truth, p, dual.flips[0])
        elif loss.atom.max_affine and loss.atom.whole is not None:
            costs = loss.atom.delta(beside, np.broadcast_to(truth, beside.shape))
            share = _dearest_mixture(vertices, means[i], costs)
        else:
            find = _mixture if loss.atom.max_affine else _of_largest_entropy
            share = find(vertices, means[i])
        kept = np.flatnonzero(share > _RARE)
        labels.append(beside[kept])
        weights.append(dual.share * share[kept])
        counts.append(len(kept))
    return {
        "labels": np.concatenate(labels),
        "weights": np.concatenate(weights),
        "starts": np.cumsum(counts).astype(np.int64),
    }


def _softmax(values) -> np.ndarray:
    weights = np.exp(values - values.max())
    return weights / weights.sum()


def _with_flips(share, every, truth, p, s) -> np.ndarray:
    """The law of labellings with flips of single labels of the truth mixed in."""
    law = (1.0 - s) * share
    for k, chance in enumerate(p):
        if truth[k] == GAP:
            continue
        flipped = truth.copy()
        flipped[k] = 1 - flipped[k]
        law[np.all(every == flipped, axis=1)] += s * chance
    law[np.all(every == truth, axis=1)] += s * max(1.0 - p.sum(), 0.0)
    return law


def _mixture(vertices, mean) -> np.ndarray:
    """Weights of labellings whose mean it is."""
    return nnls(np.vstack([vertices.T, np.ones(len(vertices))]), np.append(mean, 1.0))[0]


def _dearest_mixture(vertices, mean, costs) -> np.ndarray:
    """The same with the largest expected cost: of the labellings of the linear program's solution, weighted to more digits than it has."""
    equations, right = np.vstack([vertices.T, np.ones(len(vertices))]), np.append(mean, 1.0)
    found = linprog(-costs, A_eq=equations, b_eq=right, method="highs")
    if found.status != 0:
        return _mixture(vertices, mean)
    kept = np.flatnonzero(found.x > 0.0)
    weights, rest = nnls(equations[:, kept], right)
    if rest > 1e-10:
        return _mixture(vertices, mean)
    law = np.zeros(len(vertices))
    law[kept] = weights
    return law


def _of_largest_entropy(vertices, mean) -> np.ndarray:
    """The law of labellings of the largest entropy with this mean, near it."""

    def value(x):
        values = vertices @ x
        p = _softmax(values)
        top = values.max()
        return top + np.log(np.exp(values - top).sum()) - mean @ x, p @ vertices - mean

    found = minimize(
        value,
        np.zeros(mean.size),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 1000, "gtol": 1e-12, "ftol": 1e-16},
    )
    return _softmax(vertices @ found.x)
