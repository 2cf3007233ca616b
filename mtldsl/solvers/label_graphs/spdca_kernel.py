"""The compiled loop of stochastic proximal dual coordinate ascent: one step a sample, from all it mixes towards its worst labelling."""

from __future__ import annotations

import numpy as np

from mtldsl.atoms.inference.map_kernels import map_one
from mtldsl.atoms.inference.sum_kernels import choose, keep_gaps, leave_induced
from mtldsl.solvers.design.kernel_arguments import (
    CliqueArrays,
    InferencePlan,
    LabelingMixtures,
    LabelingWeights,
    LabelledRows,
    PenaltyScales,
)
from mtldsl.solvers.label_graphs.labeling_kernels import (
    _factors,
    _fill_margins,
    _fill_scores,
    _place,
    _score,
    multiply,
)
from mtldsl.utils.jit import compiled


@compiled(nogil=True, error_model="numpy")
def step_each(visits, rows, cliques, penalty, modulus, weights, mixtures, search, accuracy):
    """One pass over the samples `visits`; returns (weighted gaps seen, weighted losses seen, samples whose cache was full).

    The dual value is b - R*(M), where R* has a gradient with the Lipschitz constant 1 / modulus. A step delta of sample i moves M by
    delta w_i d x_i, d the change of what is chosen, and raises it by at least delta w_i g - delta^2 w_i^2 |d|^2 |x_i|^2 / (2 modulus),
    g the gap of the sample: the step is the best for this bound, and at most 1. Arguments as of `labelling_ascent.ascend`.
    """
    rows, cliques, penalty = LabelledRows(*rows), CliqueArrays(*cliques), PenaltyScales(*penalty)
    weights, mixtures, search = LabelingWeights(*weights), LabelingMixtures(*mixtures), InferencePlan(*search)
    truth, costs, labels, alpha, counts = (
        rows.truth,
        rows.costs,
        mixtures.labels,
        mixtures.alpha,
        mixtures.counts,
    )
    table, sizes, starts, sought = cliques.table, cliques.sizes, cliques.starts, search.sought
    Z, squares, order = weights.Z, weights.squares, weights.order
    tau, r = penalty.tau, penalty.r
    X, lengths, of_samples = rows.X, rows.lengths, rows.weights
    eliminates, enumerates = search.eliminates, search.enumerates
    plan, work, iwork = search.plan, search.work, search.iwork
    K, q, S = truth.shape[1], sizes.size, starts[-1]
    products, scores, change, seen = np.empty(S), np.empty(S), np.empty(S), np.empty(sought.size)
    margins, label = np.zeros(2 * K), np.empty(K, np.uint8)
    norms, eta, factors = np.empty(q), np.empty(q), np.empty(q)
    entries = np.empty(K + q, np.int64)
    gap, loss, full = 0.0, 0.0, 0
    _factors(squares, order, r, tau, norms, eta, factors)
    for visit in range(visits.size):
        i = visits[visit]
        w, length, x = of_samples[i], lengths[i], X[i]
        multiply(Z, x, products)
        has_gaps = _fill_margins(truth[i], costs, margins)
        _fill_scores(products, factors, margins, starts, scores)
        if has_gaps:
            leave_induced(table, sizes, starts, truth[i], scores)
        for s in range(sought.size):
            seen[s] = scores[sought[s]]
        map_one(eliminates, enumerates, seen, plan, work, iwork, label)
        if has_gaps:
            keep_gaps(truth[i], label)
        # what is chosen by the labelling found, minus what the mixture chooses in expectation
        for s in range(S):
            change[s] = 0.0
        own, mean = 0.0, 0.0
        for j in range(counts[i]):
            choose(table, sizes, starts, labels[i, j], entries)
            value = _score(scores, entries)
            mean += alpha[i, j] * value
            if j == 0:
                own = value
            for k in range(entries.size):
                change[entries[k]] -= alpha[i, j]
        choose(table, sizes, starts, label, entries)
        found = _score(scores, entries)
        for k in range(entries.size):
            change[entries[k]] += 1.0
        if has_gaps:
            leave_induced(table, sizes, starts, truth[i], change)
        loss += w * max(found - own, 0.0)
        rise = found - mean
        gap += w * max(rise, 0.0)
        if w == 0.0 or rise <= accuracy * (1.0 + abs(found)):
            continue
        slot, new = _place(label, labels[i], alpha[i], counts[i])
        if slot < 0:
            full += 1
            continue
        if new:
            for k in range(K):  # an assignment of slices takes seconds to compile
                labels[i, slot, k] = label[k]
            alpha[i, slot] = 0.0
            counts[i] = max(counts[i], slot + 1)
        square = 0.0
        for s in range(S):
            square += change[s] * change[s]
        curvature = w * length * square / modulus
        delta = min(rise / curvature, 1.0) if curvature > rise else 1.0
        for j in range(counts[i]):
            alpha[i, j] *= 1.0 - delta
        alpha[i, slot] += delta
        for c in range(q):
            for s in range(starts[c], starts[c + 1]):
                step = -delta * w * penalty.per_clique * change[s]
                squares[c] += step * (2.0 * products[s] + step * length)
        for s in range(S):
            if change[s] != 0.0:
                step = -delta * w * change[s] * (penalty.per_node if s < 2 * K else penalty.per_clique)
                for f in range(x.size):
                    Z[s, f] += step * x[f]
        _factors(squares, order, r, tau, norms, eta, factors)
    return gap, loss, full
