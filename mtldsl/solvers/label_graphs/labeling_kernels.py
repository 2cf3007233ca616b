"""Compiled loops of dual ascent on labellings: passes over samples, weight moved between their labellings."""

from __future__ import annotations

import numpy as np

from mtldsl.atoms.inference.cliques import GAP
from mtldsl.atoms.inference.map_kernels import cost_of, highest, map_one
from mtldsl.atoms.inference.sum_kernels import choose, keep_gaps, leave_induced
from mtldsl.solvers.design.kernel_arguments import (
    CliqueArrays,
    DualLine,
    InferencePlan,
    LabelingMixtures,
    LabelingWeights,
    LabelledRows,
    PenaltyScales,
)
from mtldsl.utils.jit import compiled

# --------------------------------------------------------------------------------------------------------------
# The compiled loop of dual ascent on labellings: one pass over samples, weight moved between labellings of each.

#: A step is long enough where the dual value rises along it by no more than this share of what it did.
STEP_SLACK_SHARE = 0.1


@compiled(inside=True, nogil=True, fastmath={"reassoc", "contract"})
def multiply(Z, x, products):
    """products = Z x. Sums may be taken in any order, as BLAS does, whose binding takes longer to compile."""
    for s in range(Z.shape[0]):
        total = 0.0
        for f in range(x.size):
            total += Z[s, f] * x[f]
        products[s] = total


@compiled(nogil=True, error_model="numpy")
def shares(norms, order, r, tau, eta):
    """eta_c = clip((kappa norms_c - 1) / tau, 0, 1), kappa such that they sum to r; 1 where no more than r norms are positive.

    `order` holds the groups by falling norm; it is brought up to date by insertion, since norms change little between calls.
    """
    q = norms.size
    for j in range(1, q):
        c = order[j]
        norm, k = norms[c], j - 1
        while k >= 0 and norms[order[k]] < norm:
            order[k + 1] = order[k]
            k -= 1
        order[k + 1] = c
    if q <= r or norms[order[r]] <= 0.0:
        for c in range(q):
            eta[c] = 1.0
        return
    # groups begin (eta > 0) and fill up (eta = 1) in this order as kappa grows
    full, begun, between, kappa = 0, 0, 0.0, 0.0
    while True:
        next_begin = next_full = np.inf
        if begun < q and norms[order[begun]] > 0.0:
            next_begin = 1.0 / norms[order[begun]]
        if full < begun:
            next_full = (1.0 + tau) / norms[order[full]]
        upcoming = min(next_begin, next_full)
        if begun > full and (upcoming == np.inf or full + (upcoming * between - (begun - full)) / tau >= r):
            kappa = (tau * (r - full) + (begun - full)) / between
            break
        if next_full <= next_begin:
            between -= norms[order[full]]
            full += 1
            if full == begun:
                between = 0.0
        else:
            between += norms[order[begun]]
            begun += 1
    for place in range(q):
        c = order[place]
        if place < full:
            eta[c] = 1.0
        elif place < begun:
            eta[c] = min(max((kappa * norms[c] - 1.0) / tau, 0.0), 1.0)
        else:
            eta[c] = 0.0


@compiled(inside=True, nogil=True, error_model="numpy")
def _factors(squares, order, r, tau, norms, eta, factors):
    """Return what turns the multiplier of a clique into its weights: eta / (1 + tau eta)."""
    for c in range(squares.size):
        norms[c] = np.sqrt(max(squares[c], 0.0))
    shares(norms, order, r, tau, eta)
    for c in range(squares.size):
        factors[c] = eta[c] / (1.0 + tau * eta[c])


@compiled(inside=True, nogil=True, error_model="numpy")
def _fill_scores(products, factors, margins, starts, scores):
    nodes = margins.size
    for s in range(nodes):
        scores[s] = products[s] + margins[s]
    for c in range(factors.size):
        for s in range(starts[c], starts[c + 1]):
            scores[s] = factors[c] * products[s]


@compiled(inside=True, nogil=True, error_model="numpy")
def _fill_margins(truth, costs, margins):
    """Tell whether the true labelling has a gap."""
    has_gaps = False
    for k in range(truth.size):
        margins[2 * k] = costs[k] if truth[k] == 1 else 0.0
        margins[2 * k + 1] = costs[k] if truth[k] == 0 else 0.0
        has_gaps = has_gaps or truth[k] == GAP
    return has_gaps


@compiled(inside=True, nogil=True, error_model="numpy")
def _score(scores, entries):
    total = 0.0
    for k in range(entries.size):
        total += scores[entries[k]]
    return total


@compiled(inside=True, nogil=True, error_model="numpy")
def _place(label, labels, alpha, count):
    """(slot, new): where the labelling is in the cache, or the slot that it may have; -1 where the cache is full."""
    for j in range(count):
        same = True
        for k in range(label.size):
            if labels[j, k] != label[k]:
                same = False
                break
        if same:
            return j, False
    for j in range(1, count):
        if alpha[j] == 0.0:
            return j, True
    return (count, True) if count < alpha.size else (-1, True)


@compiled(inside=True, nogil=True, error_model="numpy")
def _keep(label, found, labels, alpha, values, paid, entries, count):
    """Into the cache of a sample, without weight: a labelling, its score, its cost and its entries, the last rows of `paid` and `entries`. Returns (the
    labellings that it holds now, whether there was room)."""
    slot, new = _place(label, labels, alpha, count)
    if not new:
        return count, slot >= 0
    if slot < 0:
        return count, False
    for k in range(label.size):
        labels[slot, k] = label[k]
    alpha[slot] = 0.0
    values[slot], paid[slot] = found, paid[-1]
    for e in range(entries.shape[1]):
        entries[slot, e] = entries[-1, e]
    return max(count, slot + 1), True


@compiled(inside=True, nogil=True, error_model="numpy")
def _two_of(values, alpha, count):
    """(the highest labelling, the lowest one that has weight; -1 where none has)."""
    high, low = 0, -1
    for j in range(count):
        if values[j] > values[high]:
            high = j
        if alpha[j] > 0.0 and (low < 0 or values[j] < values[low]):
            low = j
    return high, low


@compiled(inside=True, nogil=True, error_model="numpy")
def _changed_cliques(higher, lower, scores, of_a_node, groups, up, down):
    """(n, base, fall): the first n of groups, up and down say which cliques choose another entry; what nodes add to the derivative along
    the step, and how much of that a unit of the step takes, `of_a_node` for each that changes."""
    q = groups.size
    K = higher.size - q
    n, base, fall = 0, 0.0, 0.0
    for k in range(K):
        a, b = higher[k], lower[k]
        if a != b:
            fall += of_a_node
            base += scores[a] - scores[b]
    for c in range(q):
        a, b = higher[K + c], lower[K + c]
        if a != b:
            groups[n], up[n], down[n] = c, a, b
            n += 1
    return n, base, fall


@compiled(inside=True, nogil=True, error_model="numpy")
def _moved_squares(gamma, line, squares, products, moved):
    """Into `moved`, the squared norms of the cliques after a step gamma; the derivatives need no more of them than these."""
    n, groups, ups, downs, g, length = line.n, line.groups, line.up, line.down, line.g, line.length
    for c in range(squares.size):
        moved[c] = squares[c]
    for j in range(n):
        difference = products[downs[j]] - products[ups[j]]
        moved[groups[j]] += 2.0 * gamma * g * (difference + gamma * g * length)


@compiled(inside=True, nogil=True, error_model="numpy")
def _line_search(gamma, line, products, squares, order, r, tau, norms, eta, moved, tried):
    """The step at which the dual value stops rising, from a first guess on, by regula falsi (Illinois)."""
    n, groups, ups, downs = line.n, line.groups, line.up, line.down
    longest, rise = line.longest, line.rise
    bend = 2.0 * line.g * line.length
    lower, upper_end, at_lower, at_upper = 0.0, longest, rise, 0.0
    bracketed = False
    for attempt in range(20):
        _moved_squares(gamma, line, squares, products, moved)
        _factors(moved, order, r, tau, norms, eta, tried)
        slope = line.base - gamma * line.fall
        for j in range(n):
            slope += tried[groups[j]] * (products[ups[j]] - products[downs[j]] - gamma * bend)
        if abs(slope) <= STEP_SLACK_SHARE * rise or (slope > 0.0 and gamma == longest):
            break
        if slope > 0.0:
            lower, at_lower = gamma, slope
            if bracketed:
                at_upper *= 0.5
        else:
            upper_end, at_upper, bracketed = gamma, slope, True
            at_lower *= 0.7
        if bracketed:
            gamma = lower + (upper_end - lower) * at_lower / (at_lower - at_upper)
        else:
            gamma = min(4.0 * gamma, longest)
        if attempt == 18 and lower > 0.0:
            gamma = lower
    return gamma


@compiled(inside=True, nogil=True, error_model="numpy")
def _take(gamma, w, per_node, of_nodes, line, higher, lower, squares, products, changes):
    """The step: `changes` says what it adds to the weights, in units of the sample's inputs, whose length squared `of_nodes` labels see."""
    n, groups, ups, downs, g, length = line.n, line.groups, line.up, line.down, line.g, line.length
    for k in range(higher.size - squares.size):
        a, b = higher[k], lower[k]
        if a != b:
            step = gamma * w * per_node
            products[a] -= step * of_nodes
            products[b] += step * of_nodes
            changes[a] -= step
            changes[b] += step
    for j in range(n):
        up, down = ups[j], downs[j]
        difference = products[down] - products[up]
        squares[groups[j]] += 2.0 * gamma * g * (difference + gamma * g * length)
        products[up] -= gamma * g * length
        products[down] += gamma * g * length
        changes[up] -= gamma * g
        changes[down] += gamma * g


@compiled(inside=True, nogil=True, error_model="numpy")
def _add(Z, changes, x, nodes, seen):
    """Z += changes x^T, of which rows behind the first `nodes` get `seen` features; changes are zero again."""
    for s in range(changes.size):
        if changes[s] != 0.0:
            step = changes[s]
            for f in range(x.size if s < nodes else seen):
                Z[s, f] += step * x[f]
            changes[s] = 0.0


@compiled(nogil=True, error_model="numpy")
def ascend(visits, rows, cliques, penalty, weights, mixtures, search, steps, accuracy):
    """One pass over the samples `visits`; returns (the sum of weighted gaps seen, samples whose cache was full).

    rows, cliques, penalty, weights, mixtures, search: `LabelledRows`, `CliqueArrays`, `PenaltyScales`, `LabelingWeights`, `LabelingMixtures` and
    `InferencePlan` as plain tuples. Changed are weights and mixtures.
    """
    rows, cliques, penalty = LabelledRows(*rows), CliqueArrays(*cliques), PenaltyScales(*penalty)
    weights, mixtures, search = LabelingWeights(*weights), LabelingMixtures(*mixtures), InferencePlan(*search)
    # read once: arrays that are read from a tuple in a loop are counted by reference at every turn
    truth, costs, labels, alpha, counts = (
        rows.truth,
        rows.costs,
        mixtures.labels,
        mixtures.alpha,
        mixtures.counts,
    )
    table, sizes, starts, sought = cliques.table, cliques.sizes, cliques.starts, search.sought
    Z, squares, order = weights.Z, weights.squares, weights.order
    tau, r, slots = penalty.tau, penalty.r, alpha.shape[1]
    per_node, per_clique = penalty.per_node, penalty.per_clique
    X, lengths, of_samples = rows.X, rows.lengths, rows.weights
    lengths_seen, features_seen = rows.lengths_seen, rows.seen
    eliminates, enumerates = search.eliminates, search.enumerates
    plan, work, iwork = search.plan, search.work, search.iwork
    patterns, dear = search.patterns, search.dear
    K, q, S = truth.shape[1], sizes.size, starts[-1]
    products, scores, changes, seen = np.empty(S), np.empty(S), np.empty(S), np.empty(sought.size)
    margins, label = np.empty(2 * K), np.empty(K, np.uint8)
    # of every labelling of a sample's mixture, and of the one found: its score, what it costs as a whole, and its entries
    values, paid, entries = np.empty(slots), np.empty(slots + 1), np.empty((slots + 1, K + q), np.int64)
    factors, norms, eta, moved, tried = np.empty(q), np.empty(q), np.empty(q), np.empty(q), np.empty(q)
    groups, up, down = np.empty(q, np.int64), np.empty(q, np.int64), np.empty(q, np.int64)
    for s in range(S):
        changes[s] = 0.0
    gap, full = 0.0, 0
    _factors(squares, order, r, tau, norms, eta, factors)
    for visit in range(visits.size):
        i = visits[visit]
        w, of_nodes, length, x = of_samples[i], lengths[i], lengths_seen[i], X[i]
        multiply(Z, x, products)
        has_gaps = _fill_margins(truth[i], costs, margins)
        _fill_scores(products, factors, margins, starts, scores)
        if has_gaps:
            leave_induced(table, sizes, starts, truth[i], scores)
        for s in range(sought.size):
            seen[s] = scores[sought[s]]
        _, upper = highest(eliminates, enumerates, seen, plan, work, iwork, patterns, dear, i, 1.0, label)
        if has_gaps:
            keep_gaps(truth[i], label)
        count = counts[i]
        best, mean = -np.inf, 0.0
        for j in range(count):
            choose(table, sizes, starts, labels[i, j], entries[j])
            paid[j] = cost_of(patterns, dear, i, labels[i, j])
            values[j] = _score(scores, entries[j]) + paid[j]
            best = max(best, values[j])
            mean += alpha[i, j] * values[j]
        gap += w * max(upper - mean, 0.0)
        choose(table, sizes, starts, label, entries[slots])
        paid[slots] = cost_of(patterns, dear, i, label)
        found = _score(scores, entries[slots]) + paid[slots]
        if found > best:
            count, kept = _keep(label, found, labels[i], alpha[i], values, paid, entries, count)
            counts[i] = count
            full += not kept
        changed = False
        for _ in range(steps):
            high, low = _two_of(values, alpha[i], count)
            rise = values[high] - values[low]
            if high == low or rise <= accuracy * (1.0 + abs(values[high])):
                break
            higher, lower, longest = entries[high], entries[low], alpha[i, low]
            n, base, fall = _changed_cliques(
                higher, lower, scores, 2.0 * w * of_nodes * per_node, groups, up, down
            )
            base += paid[high] - paid[low]
            g = w * per_clique
            line = DualLine(n, groups, up, down, g, length, longest, rise, base, fall)
            # the best step were the shares of the cliques what they are
            for j in range(n):
                fall += factors[groups[j]] * (2.0 * g * length)
            gamma = min(rise / fall, longest) if fall > 0.0 else longest
            if q > r:
                gamma = _line_search(gamma, line, products, squares, order, r, tau, norms, eta, moved, tried)
            # the whole weight goes, to the last bit, where the step is the longest
            if gamma >= longest:
                gamma = longest
                alpha[i, low] = 0.0
            else:
                alpha[i, low] -= gamma
            alpha[i, high] += gamma
            changed = True
            _take(gamma, w, per_node, of_nodes, line, higher, lower, squares, products, changes)
            _factors(squares, order, r, tau, norms, eta, factors)
            _fill_scores(products, factors, margins, starts, scores)
            if has_gaps:
                leave_induced(table, sizes, starts, truth[i], scores)
            for j in range(count):
                values[j] = _score(scores, entries[j]) + paid[j]
        if changed:
            _add(Z, changes, x, 2 * K, features_seen)
    return gap, full


# --------------------------------------------------------------------------------------------------------------
# The steps of the paper's own ascent: one a sample, from all it mixes towards its worst labelling.


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
