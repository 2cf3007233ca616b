"""The log-partition and the marginals from the table of all 2^K scores."""

from __future__ import annotations

import math

from mtldsl.inference.kernels.enumeration import fill_tables, subset_of
from mtldsl.system.compiled import compiled

__all__ = ["sum_enumerate"]


@compiled(inside=True, nogil=True, error_model="numpy")
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
    if plan[plan[3]] <= 2:
        _moments_of_pairs(plan, work, marginals)
    else:
        _moments_of_cliques(plan, work, marginals)
    return origin + best + math.log(z)


@compiled(inside=True, nogil=True, error_model="numpy")
def _moments_of_pairs(plan, work, marginals):
    n_labels = plan[0]
    total = work[: 1 << n_labels]
    moment = work[1 << n_labels : (1 << n_labels) + n_labels]
    product = work[(1 << n_labels) + n_labels :]
    # one label after the other is folded away, from the last; on the way its moments with the smaller ones are summed
    for k in range(n_labels - 1, -1, -1):
        size = 1 << k
        low = total[:size]
        high = total[size : 2 * size]
        for r in range(size):
            low[r] += high[r]
        for i in range(k - 1, -1, -1):
            product[k * n_labels + i] = _folded(high, 1 << i)
        moment[k] = high[0]
    for k in range(n_labels):
        marginals[2 * k] = max(1.0 - moment[k], 0.0)
        marginals[2 * k + 1] = moment[k]
    at = plan[2]
    for _ in range(plan[1]):
        entry, i, j = plan[at + 1], plan[at + 2], plan[at + 3]
        both = product[j * n_labels + i]
        marginals[entry + 3] = both
        marginals[entry + 2] = max(moment[i] - both, 0.0)
        marginals[entry + 1] = max(moment[j] - both, 0.0)
        marginals[entry] = max(1.0 - moment[i] - moment[j] + both, 0.0)
        at += 4


@compiled(inside=True, nogil=True, error_model="numpy")
def _moments_of_cliques(plan, work, marginals):
    n_labels = plan[0]
    table = work[: 1 << n_labels]
    for k in range(
        n_labels
    ):  # sums over supersets: at a set of labels, the probability that all of them are 1
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


@compiled(inside=True, nogil=True, error_model="numpy")
def _folded(table, size):
    """The sum of the upper half of the first 2 size entries, which is added to the lower half."""
    total = 0.0
    for r in range(size):
        total += table[size + r]
        table[r] += table[size + r]
    return total
