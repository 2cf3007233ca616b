"""The compiled loop of dual ascent on labellings: one pass over samples, weight moved between labellings of each."""

from __future__ import annotations

import numpy as np

from mtldsl.inference.kernels.map_one import map_one
from mtldsl.inference.kernels.marginals import choose
from mtldsl.system.compiled import compiled

__all__ = ["ascend", "multiply", "shares"]

#: A step is long enough where the dual value rises along it by no more than this share of what it did.
_SLACK = 0.1


@compiled(nogil=True, fastmath={"reassoc", "contract"})
def multiply(Z, x, products):
    """products = Z x. Sums may be taken in any order, as BLAS does, whose binding takes longer to compile."""
    for s in range(Z.shape[0]):
        total = 0.0
        for f in range(x.size):
            total += Z[s, f] * x[f]
        products[s] = total


@compiled(nogil=True)
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


@compiled(nogil=True)
def _factors(squares, order, r, tau, norms, eta, factors):
    """What turns the multiplier of a clique into its weights: eta / (1 + tau eta)."""
    for c in range(squares.size):
        norms[c] = np.sqrt(max(squares[c], 0.0))
    shares(norms, order, r, tau, eta)
    for c in range(squares.size):
        factors[c] = eta[c] / (1.0 + tau * eta[c])


@compiled(nogil=True)
def _fill_scores(products, factors, margins, starts, scores):
    nodes = margins.size
    for s in range(nodes):
        scores[s] = products[s] + margins[s]
    for c in range(factors.size):
        for s in range(starts[c], starts[c + 1]):
            scores[s] = factors[c] * products[s]


@compiled(nogil=True)
def _score(scores, entries):
    total = 0.0
    for e in entries:
        total += scores[e]
    return total


@compiled(nogil=True)
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


@compiled(nogil=True)
def ascend(
    visits, X, lengths, weights, truth, costs, table, sizes, starts, per_node, per_clique, tau, r,
    Z, squares, order, labels, alpha, counts, sought, code, plan, work, iwork, steps, accuracy,
):  # fmt: skip
    """One pass over the samples `visits`; returns (the sum of weighted gaps seen, samples whose cache was full).

    Z (S, d): the weights of labels, and of cliques the multipliers over their coefficient plus tau times the centre; squares (q,) the
    squared norms of the latter. labels (n, slots, K), alpha (n, slots), counts (n,): the random labelling of every sample, slot 0 the true
    one. sought: the entries that inference sees, in the order of its plan. per_node, per_clique: how much Z moves for a unit of weight, 1 / coefficient.
    """
    K, q, S = truth.shape[1], sizes.size, starts[-1]
    products, scores, changes, seen = np.empty(S), np.empty(S), np.zeros(S), np.empty(sought.size)
    margins, label = np.zeros(2 * K), np.empty(K, np.uint8)
    norms, eta, factors, moved = np.empty(q), np.empty(q), np.empty(q), np.empty(q)
    tried = np.empty(q)
    groups, up, down = np.empty(q, np.int64), np.empty(q, np.int64), np.empty(q, np.int64)
    values, entries = np.empty(alpha.shape[1]), np.empty((alpha.shape[1] + 1, K + q), np.int64)
    gap, full = 0.0, 0
    _factors(squares, order, r, tau, norms, eta, factors)
    for i in visits:
        w, length = weights[i], lengths[i]
        x = X[i]
        multiply(Z, x, products)
        for k in range(K):
            margins[2 * k + truth[i, k]] = 0.0
            margins[2 * k + 1 - truth[i, k]] = costs[k]
        _fill_scores(products, factors, margins, starts, scores)
        for s in range(sought.size):
            seen[s] = scores[sought[s]]
        _, upper = map_one(code, seen, plan, work, iwork, label)
        count = counts[i]
        best, mean = -np.inf, 0.0
        for j in range(count):
            choose(table, sizes, starts, labels[i, j], entries[j])
            values[j] = _score(scores, entries[j])
            best = max(best, values[j])
            mean += alpha[i, j] * values[j]
        gap += w * max(upper - mean, 0.0)
        choose(table, sizes, starts, label, entries[alpha.shape[1]])
        found = _score(scores, entries[alpha.shape[1]])
        if found > best:
            slot, new = _place(label, labels[i], alpha[i], count)
            if slot < 0:
                full += 1
            elif new:
                for k in range(K):
                    labels[i, slot, k] = label[k]
                alpha[i, slot] = 0.0
                values[slot] = found
                for e in range(K + q):
                    entries[slot, e] = entries[alpha.shape[1], e]
                if slot == count:
                    count += 1
                    counts[i] = count
        changed = False
        for _ in range(steps):
            high, low = 0, -1
            for j in range(count):
                if values[j] > values[high]:
                    high = j
                if alpha[i, j] > 0.0 and (low < 0 or values[j] < values[low]):
                    low = j
            rise = values[high] - values[low]
            if high == low or rise <= accuracy * (1.0 + abs(values[high])):
                break
            # what changes between the two labellings, and how the derivative falls along the step
            fall, n_changed, base = 0.0, 0, 0.0
            for k in range(K):
                a, b = entries[high, k], entries[low, k]
                if a != b:
                    fall += 2.0 * w * length * per_node
                    base += scores[a] - scores[b]
            for c in range(q):
                a, b = entries[high, K + c], entries[low, K + c]
                if a != b:
                    groups[n_changed], up[n_changed], down[n_changed] = c, a, b
                    n_changed += 1
            g = w * per_clique
            bend = 2.0 * g * length
            with_shares = fall
            for j in range(n_changed):
                with_shares += factors[groups[j]] * bend
            longest = alpha[i, low]
            gamma = min(rise / with_shares, longest) if with_shares > 0.0 else longest
            if q > r:
                lower, upper_end, at_lower, at_upper = 0.0, longest, rise, 0.0
                bracketed = False
                for attempt in range(20):
                    for c in range(q):
                        moved[c] = squares[c]
                    for j in range(n_changed):
                        difference = products[down[j]] - products[up[j]]
                        moved[groups[j]] += 2.0 * gamma * g * (difference + gamma * g * length)
                    _factors(moved, order, r, tau, norms, eta, tried)
                    slope = base - gamma * fall
                    for j in range(n_changed):
                        slope += tried[groups[j]] * (products[up[j]] - products[down[j]] - gamma * bend)
                    if abs(slope) <= _SLACK * rise or (slope > 0.0 and gamma == longest):
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
            # the whole weight goes, to the last bit, where the step is the longest
            if gamma >= longest:
                gamma = longest
                alpha[i, low] = 0.0
            else:
                alpha[i, low] -= gamma
            alpha[i, high] += gamma
            changed = True
            for k in range(K):
                a, b = entries[high, k], entries[low, k]
                if a != b:
                    step = gamma * w * per_node
                    products[a] -= step * length
                    products[b] += step * length
                    changes[a] -= step
                    changes[b] += step
            for j in range(n_changed):
                difference = products[down[j]] - products[up[j]]
                squares[groups[j]] += 2.0 * gamma * g * (difference + gamma * g * length)
                products[up[j]] -= gamma * g * length
                products[down[j]] += gamma * g * length
                changes[up[j]] -= gamma * g
                changes[down[j]] += gamma * g
            _factors(squares, order, r, tau, norms, eta, factors)
            _fill_scores(products, factors, margins, starts, scores)
            for j in range(count):
                values[j] = _score(scores, entries[j])
        if changed:
            for s in range(S):
                if changes[s] != 0.0:
                    step = changes[s]
                    for f in range(x.size):
                        Z[s, f] += step * x[f]
                    changes[s] = 0.0
    return gap, full
