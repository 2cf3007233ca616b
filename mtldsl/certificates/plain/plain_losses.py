"""Plain formulas of the losses, one function a word.

z: predictions, y: labels; of "samples" any arrays of one shape, and what comes back is weighted and added up.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from mtldsl.certificates.plain.plain_formula import SETTINGS, defined
from mtldsl.certificates.plain.plain_metrics import definition_of

# --------------------------------------------------------------------------------------------------------------
# Losses over a graph of labels: the highest labelling of every sample, or the logarithm of the sum over all, label by label.
#
# A sample has the scores of the graph of its observed labels. Label k is eliminated by the maximum (or the sum) over its two values of
# all that depends on it, which leaves a table of its neighbours; costs of whole labellings are looked up for all of them.

#: The value of a label that is missing.
GAP = 2


@defined("clique_hinge", "labellings")
def clique_hinge(scores, truth, atom):
    """max over y of Delta(y, y_i) + s_i(y) - s_i(y_i)"""
    tables = _tables(scores, truth, atom.cliques)
    own = _score_of(tables, truth)
    loss, K = atom.loss, truth.shape[1]
    if loss == "zero_one" or hasattr(loss, "delta"):
        highest = _highest_of_all(tables, truth, loss)
    else:
        of_cliques = not isinstance(loss, str) and isinstance(loss[0], tuple)
        if of_cliques:
            tables = tables + [_costs_of_clique(clique, table, truth) for clique, table in loss]
        else:
            costs = np.ones(K) if isinstance(loss, str) else np.array(loss, float)
            wrong = (truth[:, :, None] != np.arange(2)) & (truth[:, :, None] != GAP)
            tables = tables + [((k,), costs[k] * wrong[:, k]) for k in range(K)]
        highest = _eliminated(tables, K, np.maximum.reduce)
    return None if highest is None else highest - own


@defined("pairwise_log_loss", "labellings")
def pairwise_log_loss(scores, truth, atom):
    """log sum over y of exp s_i(y), less s_i(y_i)"""
    tables = _tables(scores, truth, atom.cliques)
    total = _eliminated(tables, truth.shape[1], np.logaddexp.reduce)
    if total is None:
        return None
    # a label that is not observed was summed over too, its two values alike
    return total - np.log(2.0) * np.sum(truth == GAP, axis=1) - _score_of(tables, truth)


def _tables(scores, truth, cliques) -> list[tuple[tuple[int, ...], np.ndarray]]:
    """Return [(labels, (n, 2, ..., 2) scores of their values)] of every label and clique whose scores are not all zero."""
    n, K = truth.shape
    found: list[Any] = [((k,), scores[:, 2 * k : 2 * k + 2]) for k in range(K)]
    start = 2 * K
    for members in cliques.members:
        found.append((tuple(members), scores[:, start : start + 2 ** len(members)]))
        start += 2 ** len(members)
    tables = []
    for labels, own in found:
        if len(labels) > 1 and not np.any(own):
            continue
        seen = np.all(truth[:, list(labels)] != GAP, axis=1)
        own = own if seen.all() else np.where(seen[:, None], own, 0.0)
        tables.append((labels, own.reshape(n, *(2,) * len(labels))))
    return tables


def _score_of(tables, truth):
    """Return the scores (n,) of the true labelling; a table with a missing label is zero."""
    values, every = np.where(truth == GAP, 0, truth).astype(int), np.arange(len(truth))
    return sum(table[(every, *(values[:, k] for k in labels))] for labels, table in tables)


def _costs_of_clique(clique, table, truth):
    """Return a table of what values of some labels cost beside the true ones."""
    table, own = np.asarray(table, float), truth[:, list(clique)].astype(int)
    seen = np.all(own != GAP, axis=1)
    rows = np.where(own == GAP, 0, own) @ (2 ** np.arange(len(clique))[::-1])
    return tuple(clique), np.where(seen[:, None], table[rows], 0.0).reshape(len(own), *(2,) * len(clique))


def _eliminated(tables, n_labels: int, over):
    """Return the maximum (n,), or the sum, over all labellings; None where the tables on the way would be too large."""
    n, entries, left = len(tables[0][1]), 0.0, set(range(n_labels))
    while left:
        scopes = {k: set().union(*(labels for labels, _ in tables if k in labels)) for k in left}
        k = min(left, key=lambda k: (len(scopes[k]), k))
        scope = sorted(scopes[k])
        mine = [one for one in tables if k in one[0]]
        entries += n * 2.0 ** len(scope) * len(mine)
        if entries > SETTINGS.labelling_entries:
            return None
        total: Any = sum(_spread(labels, table, scope) for labels, table in mine)
        tables = [one for one in tables if k not in one[0]]
        tables.append((tuple(j for j in scope if j != k), over(total, axis=1 + scope.index(k))))
        left.remove(k)
    return sum(np.reshape(table, n) for _, table in tables)


def _spread(labels, table, scope):
    """Return a table of some labels as one of more, its axes in their order."""
    order = np.argsort(labels)
    table = np.transpose(table, (0, *(1 + order)))
    return table.reshape(len(table), *(2 if j in labels else 1 for j in scope))


def _highest_of_all(tables, truth, loss):
    """Return the maximum (n,) over all 2^K labellings, each with what it costs as a whole."""
    n, K = truth.shape
    if n * 2.0**K * (len(tables) + K) > SETTINGS.labelling_entries:
        return None
    every = np.array(list(product((0, 1), repeat=K)))
    total: Any = sum(
        table.reshape(n, -1)[:, every[:, list(labels)] @ (2 ** np.arange(len(labels))[::-1])]
        for labels, table in tables
    )
    own, others = truth[:, None, :], every[None, :, :]
    if loss == "zero_one":
        return np.max(total + np.any((own != others) & (own != GAP), axis=2), axis=1)
    b, c = np.sum((own == 0) & (others == 1), axis=2), np.sum((own == 1) & (others == 0), axis=2)
    sizes = np.sum(own == 1, axis=2), np.sum(own == 0, axis=2)
    known = definition_of(loss)
    with np.errstate(all="ignore"):
        delta = loss.delta(b, c, *sizes) if known is None else known.function(b, c, *sizes, loss)
    return np.max(total + np.where(b + c > 0, delta, 0.0), axis=1)


@defined("squared_loss", "samples")
def squared_loss(z, y, atom):
    """(z - y)^2 / 2"""
    return 0.5 * np.square(z - y)


@defined("sum_of_squares", "samples")
def sum_of_squares(z, y, atom):
    """(z - y)^2"""
    return np.square(z - y)


@defined("square_root_loss", "samples", of_sum=lambda total, atom: np.sqrt(total + atom.eps**2))
def square_root_loss(z, y, atom):
    """(z - y)^2, of every task's sum the root"""
    return np.square(z - y)


@defined("absolute_loss", "samples")
def absolute_loss(z, y, atom):
    """|z - y|"""
    return np.abs(z - y)


@defined("quantile_loss", "samples")
def quantile_loss(z, y, atom):
    """q (y - z) where the label is above, (1 - q) (z - y) below"""
    return np.where(y > z, atom.q, atom.q - 1.0) * (y - z)


@defined("epsilon_insensitive_loss", "samples")
def epsilon_insensitive_loss(z, y, atom):
    """(|z - y| - epsilon)_+"""
    return np.maximum(np.abs(z - y) - atom.epsilon, 0.0)


@defined("huber_loss", "samples")
def huber_loss(z, y, atom):
    """r^2 / 2 up to delta, then delta (r - delta / 2), r = |z - y|"""
    r, delta = np.abs(z - y), atom.delta
    return np.where(r <= delta, 0.5 * np.square(np.minimum(r, delta)), delta * (r - 0.5 * delta))


@defined("hinge_loss", "samples")
def hinge_loss(z, y, atom):
    """(1 - y z)_+"""
    return np.maximum(1.0 - y * z, 0.0)


@defined("squared_hinge_loss", "samples")
def squared_hinge_loss(z, y, atom):
    """(1 - y z)_+^2"""
    return np.square(np.maximum(1.0 - y * z, 0.0))


@defined("logistic_loss", "samples")
def logistic_loss(z, y, atom):
    """log(1 + exp(-y z))"""
    return np.logaddexp(0.0, -y * z)


@defined("exponential_loss", "samples")
def exponential_loss(z, y, atom):
    """exp(-y z)"""
    return np.exp(-y * z)


@defined("poisson_loss", "samples", size=lambda z, y, atom: np.exp(z) + np.abs(y * z))
def poisson_loss(z, y, atom):
    """exp(z) - y z"""
    return np.exp(z) - y * z


@defined(
    "gamma_loss", "samples", size=lambda z, y, atom: y * np.exp(-z) + np.abs(z) + np.abs(np.log(y)) + 1.0
)
def gamma_loss(z, y, atom):
    """y exp(-z) + z - log y - 1, which is e^t - t - 1 with t = log y - z"""
    t = np.log(y) - z
    return np.expm1(t) - t


def _largest_of_risks(z, y, s, atom):
    """The logarithms that every event takes the difference of, at most."""
    s = np.ones(len(y)) if s is None else s
    return float(s[y > 0].sum() * (np.log(len(y)) + np.abs(np.log(s)).max() + np.abs(z).max()))


@defined("cox_loss", "task", size=_largest_of_risks)
def cox_loss(z, y, s, atom):
    """sum over events of s_j (log sum_{k: |y_k| >= y_j} s_k exp(z_k) - z_j): the longest times first, whose sums the next ones extend"""
    s = np.ones(len(y)) if s is None else s
    order = np.argsort(-np.abs(y), kind="stable")
    times, sums = -np.abs(y)[order], np.logaddexp.accumulate((z + np.log(s))[order])
    event = y > 0
    last = np.searchsorted(times, -y[event], side="right") - 1
    return float(s[event] @ (sums[last] - z[event]))


def _largest(scores, true, atom):
    return 1.0 + np.abs(scores).max(axis=1)


@defined("softmax_loss", "classes", size=_largest)
def softmax_loss(scores, true, atom):
    """log sum_k exp z_k - z_c"""
    others = scores - np.take_along_axis(scores, true[:, None], 1)
    return np.logaddexp.reduce(others, axis=1)


@defined("crammer_singer_loss", "classes", size=_largest)
def crammer_singer_loss(scores, true, atom):
    """max_k [k != c] + z_k - z_c"""
    others = 1.0 + scores - np.take_along_axis(scores, true[:, None], 1)
    np.put_along_axis(others, true[:, None], 0.0, 1)
    return others.max(axis=1)
