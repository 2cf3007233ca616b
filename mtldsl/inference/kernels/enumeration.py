"""The best of all 2^K labellings, through tables in which one more label doubles what is known."""

from __future__ import annotations

from mtldsl.system.compiled import compiled

__all__ = ["enumerate_labellings", "fill_tables", "subset_of"]


@compiled(inside=True, nogil=True, error_model="numpy")
def enumerate_labellings(scores, plan, work, label):
    """The best labelling, written into `label`. Labelling number r has label k in bit k; ties go to the smallest number of the
    labels but the last, then to 0.

    A sum over pairs is a polynomial of degree 2 in y, so with d_k(y_0..y_(k-1)) = a_k + sum over i < k of b_ik y_i

        f(y_0..y_k) = f(y_0..y_(k-1)) + y_k d_k(y_0..y_(k-1)),

    and both tables double by one addition an entry: 2^(K+1) additions in contiguous loops. The last label is maximised on the
    way: f + max(d, 0), so its table is never written. With larger cliques the polynomial has higher powers: its coefficients,
    placed at the sets of labels that they belong to, become the values of all labellings by summing over subsets, K 2^(K-1) additions.
    """
    fill_tables(scores, plan, work)
    n_labels = plan[0]
    half = 1 << (n_labels - 1)
    total = work[:half]
    change = work[half : 2 * half]
    best = _largest(total, change)
    r = 0
    while total[r] + max(change[r], 0.0) < best:
        r += 1
    for k in range(n_labels - 1):
        label[k] = (r >> k) & 1
    label[n_labels - 1] = 1 if change[r] > 0.0 else 0


@compiled(inside=True, nogil=True, error_model="numpy")
def fill_tables(scores, plan, work):
    """For the labellings of all labels but the last: their scores where the last is 0, against all zeros, and what its 1 adds.

    Two tables of 2^(K-1), one behind the other, at the beginning of `work`; what follows is scratch: K + K^2 entries for pairs,
    32 for larger cliques.
    """
    if plan[plan[3]] <= 2:
        _fill_by_doubling(scores, plan, work)
    else:
        _fill_by_subsets(scores, plan, work)


@compiled(inside=True, nogil=True, error_model="numpy")
def _fill_by_doubling(scores, plan, work):
    n_labels = plan[0]
    half = 1 << (n_labels - 1)
    total = work[:half]
    change = work[half : 2 * half]
    slope = work[2 * half : 2 * half + n_labels]  # a
    product = work[2 * half + n_labels :]  # b, the row of the larger label
    for k in range(n_labels):
        slope[k] = scores[2 * k + 1] - scores[2 * k]
        for i in range(k):
            product[k * n_labels + i] = 0.0
    at = plan[2]
    for _ in range(plan[1]):
        entry, first, second = plan[at + 1], plan[at + 2], plan[at + 3]
        rise = scores[entry + 1] - scores[entry]
        slope[first] += scores[entry + 2] - scores[entry]
        slope[second] += rise
        product[second * n_labels + first] += (scores[entry + 3] - scores[entry + 2]) - rise
        at += 4
    total[0] = 0.0
    for k in range(n_labels):
        change[0] = slope[k]
        for i in range(k):
            amount = product[k * n_labels + i]
            low = change[: 1 << i]
            high = change[1 << i :]
            for r in range(len(low)):
                high[r] = low[r] + amount
        if k < n_labels - 1:
            low = total[: 1 << k]
            high = total[1 << k :]
            for r in range(len(low)):
                high[r] = low[r] + change[r]


@compiled(inside=True, nogil=True, error_model="numpy")
def _fill_by_subsets(scores, plan, work):
    n_labels = plan[0]
    table = work[: 1 << n_labels]
    power = work[1 << n_labels :]
    for number in range(len(table)):
        table[number] = 0.0
    for k in range(n_labels):
        table[1 << k] = scores[2 * k + 1] - scores[2 * k]
    at = plan[2]
    for _ in range(plan[1]):
        size, entry = plan[at], plan[at + 1]
        for number in range(1 << size):
            power[number] = scores[entry + number]
        for place in range(size):  # differences over each member in turn: the clique's own coefficients
            bit = 1 << place
            for number in range(1 << size):
                if number & bit:
                    power[number] -= power[number - bit]
        for number in range(1, 1 << size):
            table[subset_of(plan, at, number)] += power[number]
        at += size + 2
    for k in range(n_labels - 1):  # not over the last label: the upper half is what its 1 adds
        step = 1 << k
        for begin in range(0, 1 << n_labels, 2 * step):
            low = table[begin : begin + step]
            high = table[begin + step : begin + 2 * step]
            for r in range(step):
                high[r] += low[r]


@compiled(inside=True, nogil=True, error_model="numpy")
def subset_of(plan, at, number):
    """The set of labels, a bit each, that are 1 in entry `number` of the clique written at `at`."""
    size = plan[at]
    subset = 0
    for place in range(size):
        if (number >> (size - 1 - place)) & 1:
            subset |= 1 << plan[at + 2 + place]
    return subset


# A maximum has no rounding, so its order may be any; without NaN the loop runs several entries at a time.
@compiled(inside=True, nogil=True, fastmath={"nnan", "nsz"})
def _largest(total, change):
    best = total[0] + max(change[0], 0.0)
    for r in range(len(total)):
        value = total[r] + max(change[r], 0.0)
        best = value if value > best else best
    return best
