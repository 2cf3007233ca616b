"""Compiled loops that sum over labellings: log-partition, marginals, and what gaps in the labels change."""

from __future__ import annotations

import math

from mtldsl.atoms.inference.cliques import GAP
from mtldsl.atoms.inference.map_kernels import (
    fill_tables,
    subset_of,
    two_sums,
)
from mtldsl.utils.jit import compiled

# --------------------------------------------------------------------------------------------------------------
# Bucket elimination with sums: the log-partition forwards, its derivatives (the marginals) backwards.


@compiled(inside=True)
def sum_eliminate(scores, plan, n_messages_in_all, work, marginals):
    """log Z; P(entry chosen) = d log Z / d score is written into `marginals` (S,). Reads the plan of `plans.elimination_plan`.

    With t_0, t_1 the sums of the factors with label k where it is 0 and 1: m(neighbours) = log(e^t_0 + e^t_1), of which the
    derivative is 1/(1 + e^(t_0 - t_1)) in t_1; backwards each factor's entries get it times the derivative in m.
    work holds, each as long as all messages: the messages, the shares of t_1, the derivatives in the messages.
    """
    n_labels = plan[0]
    share, slope = n_messages_in_all, 2 * n_messages_in_all
    for a in range(n_messages_in_all):
        work[slope + a] = 0.0
    for entry in range(len(marginals)):
        marginals[entry] = 0.0
    log_z = 0.0
    for t in range(n_labels):
        at = plan[len(plan) - n_labels + t]
        width, n_scores, n_messages, message = plan[at + 1], plan[at + 2], plan[at + 3], plan[at + 4]
        read = at + 5 + width
        for setting in range(1 << width):
            zero, one = two_sums(scores, plan, work, read, n_scores, n_messages)
            read += 2 * (n_scores + n_messages)
            small = math.exp(-abs(one - zero))
            both = max(zero, one) + math.log(1.0 + small)  # absolute accuracy is what a sum of logs keeps
            part = (1.0 if one > zero else small) / (1.0 + small)
            if message >= 0:
                work[message + setting] = both
                work[share + message + setting] = part
            else:  # no neighbour: a component is finished, and the labels of its own table are the last of it
                log_z += both
                marginals[2 * plan[at] + 1] = part
    for t in range(n_labels - 1, -1, -1):
        at = plan[len(plan) - n_labels + t]
        width, n_scores, n_messages, message = plan[at + 1], plan[at + 2], plan[at + 3], plan[at + 4]
        read = at + 5 + width
        for setting in range(1 << width):
            if message >= 0:
                whole = work[slope + message + setting]
                one = whole * work[share + message + setting]
            else:
                whole = 1.0
                one = marginals[2 * plan[at] + 1]
                marginals[2 * plan[at] + 1] = 0.0
            zero = whole - one
            for _ in range(n_scores):
                marginals[plan[read]] += zero
                marginals[plan[read + 1]] += one
                read += 2
            for _ in range(n_messages):
                work[slope + plan[read]] += zero
                work[slope + plan[read + 1]] += one
                read += 2
    return log_z


# --------------------------------------------------------------------------------------------------------------
# The log-partition and the marginals from the table of all 2^K scores.


@compiled(inside=True)
def sum_enumerate(scores, plan, work, marginals):
    """log Z; P(entry chosen) is written into `marginals` (S,). Reads the plan of `plans.enumeration_plan`.

    The moments E[product of some y_k] come out of the table of probabilities as it was built, backwards; the marginals are sums of them.
    """
    origin = 0.0  # the score of the labelling of zeros: the tables count from there
    for k in range(plan[0]):
        origin += scores[2 * k]
    at = plan[2]
    for _ in range(plan[1]):
        origin += scores[plan[at + 1]]
        at += plan[at] + 2
    fill_tables(scores, plan, work)
    half = 1 << (plan[0] - 1)
    best = 0.0
    for r in range(half):
        work[half + r] += work[r]
        best = max(best, work[r], work[half + r])
    z = 0.0
    for r in range(2 * half):
        work[r] = math.exp(work[r] - best)
        z += work[r]
    for r in range(2 * half):
        work[r] /= z
    _sum_into_marginals(plan, work, marginals)
    return origin + best + math.log(z)


@compiled(inside=True)
def _sum_into_marginals(plan, work, marginals):
    n_labels = plan[0]
    table = work[: 1 << n_labels]
    for k in range(n_labels):
        # sums over supersets: at a set of labels, the probability that all of them are 1
        step = 1 << k
        for begin in range(0, 1 << n_labels, 2 * step):
            low = table[begin : begin + step]
            high = table[begin + step : begin + 2 * step]
            for r in range(step):
                low[r] += high[r]
    for k in range(n_labels):
        marginals[2 * k] = max(1.0 - table[1 << k], 0.0)
        marginals[2 * k + 1] = table[1 << k]
    at = plan[2]
    for _ in range(plan[1]):
        size, entry = plan[at], plan[at + 1]
        for number in range(1 << size):
            marginals[entry + number] = table[subset_of(plan, at, number)]
        for place in range(size):  # "at least these" to "exactly these", over each member in turn
            bit = 1 << place
            for number in range(1 << size):
                if not number & bit:
                    marginals[entry + number] -= marginals[entry + number + bit]
        for number in range(1 << size):
            marginals[entry + number] = max(marginals[entry + number], 0.0)
        at += size + 2


# --------------------------------------------------------------------------------------------------------------
# Whole batches: what is None is known from its type, so that only the method that is used is compiled.


@compiled()
def sum_each(scores, plan, n_messages_in_all, work, log_z, marginals):
    """`sum_eliminate` on every row of `scores` (n, S), or without messages `sum_enumerate`."""
    for i in range(len(scores)):
        if n_messages_in_all is None:
            log_z[i] = sum_enumerate(scores[i], plan, work, marginals[i])
        else:
            log_z[i] = sum_eliminate(scores[i], plan, n_messages_in_all, work, marginals[i])


# --------------------------------------------------------------------------------------------------------------
# The compiled loop of `mtldsl.atoms.inference.decoder`.


@compiled(inside=True)
def entry_of(table, sizes, starts, c, label):
    """The entry of clique c that a labelling chooses; the first one where it has a gap there, as all labellings beside it have."""
    number = 0
    for place in range(sizes[c]):
        value = label[table[c, place]]
        if value == GAP:
            return starts[c]
        number = 2 * number + value
    return starts[c] + number


@compiled(inside=True)
def choose(table, sizes, starts, label, entries):
    """The entries that a labelling chooses: the nodes', then the cliques'."""
    K = label.size
    for k in range(K):
        entries[k] = 2 * k + (label[k] == 1)
    for c in range(sizes.size):
        entries[K + c] = entry_of(table, sizes, starts, c, label)


@compiled(inside=True)
def leave_induced(table, sizes, starts, label, scores):
    """scores are 0 where they are not of the graph that the observed labels of a labelling induce."""
    for k in range(label.size):
        if label[k] == GAP:
            scores[2 * k] = 0.0
            scores[2 * k + 1] = 0.0
    for c in range(sizes.size):
        for place in range(sizes[c]):
            if label[table[c, place]] == GAP:
                for s in range(starts[c], starts[c + 1]):
                    scores[s] = 0.0
                break


@compiled(inside=True)
def keep_gaps(truth, label):
    """A labelling that inference found has the gaps of the true one."""
    for k in range(label.size):
        if truth[k] == GAP:
            label[k] = GAP


@compiled()
def fill_changes(table, sizes, starts, begins, holders, truth, labels, weights, first, changes):
    """changes (n, S), zero before: what the labellings of each sample change, in nodes and in the cliques that hold a changed label."""
    n, K = truth.shape
    for i in range(n):
        for j in range(first[i], first[i + 1]):
            w = weights[j]
            if w == 0.0:
                continue
            for k in range(K):
                if labels[j, k] == truth[i, k]:
                    continue
                changes[i, 2 * k + labels[j, k]] += w
                changes[i, 2 * k + truth[i, k]] -= w
                for h in range(begins[k], begins[k + 1]):
                    c = holders[h]
                    earlier = False  # a clique is changed once, by its first changed label
                    for place in range(sizes[c]):
                        other = table[c, place]
                        if other == k:
                            break
                        if labels[j, other] != truth[i, other]:
                            earlier = True
                            break
                    if earlier:
                        continue
                    up = entry_of(table, sizes, starts, c, labels[j])
                    down = entry_of(table, sizes, starts, c, truth[i])
                    if up != down:  # equal where another label of the clique is a gap
                        changes[i, up] += w
                        changes[i, down] -= w
