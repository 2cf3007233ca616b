"""Compiled loops that find the labelling with the largest score, by enumeration, elimination or message passing."""

from __future__ import annotations

import math

from mtldsl.atoms.inference.cliques import CERTIFIED_TOL
from mtldsl.utils.jit import compiled

# --------------------------------------------------------------------------------------------------------------
# The best of all 2^K labellings, through tables in which one more label doubles what is known.


@compiled(inside=True)
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


@compiled(inside=True)
def fill_tables(scores, plan, work):
    """For the labellings of all labels but the last: their scores where the last is 0, against all zeros, and what its 1 adds.

    Two tables of 2^(K-1), one behind the other, at the beginning of `work`; what follows is scratch: K + K^2 entries for pairs,
    32 for larger cliques.
    """
    if plan[plan[3]] <= 2:
        _fill_by_doubling(scores, plan, work)
    else:
        _fill_by_subsets(scores, plan, work)


@compiled(inside=True)
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


@compiled(inside=True)
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


@compiled(inside=True)
def subset_of(plan, at, number):
    """The set of labels, a bit each, that are 1 in entry `number` of the clique written at `at`."""
    size = plan[at]
    subset = 0
    for place in range(size):
        if (number >> (size - 1 - place)) & 1:
            subset |= 1 << plan[at + 2 + place]
    return subset


# A maximum has no rounding, so its order may be any; without NaN the loop runs several entries at a time.
@compiled(inside=True, fastmath={"nnan", "nsz"})
def _largest(total, change):
    best = total[0] + max(change[0], 0.0)
    for r in range(len(total)):
        value = total[r] + max(change[r], 0.0)
        best = value if value > best else best
    return best


# --------------------------------------------------------------------------------------------------------------
# The score of one labelling.


@compiled(inside=True)
def labelling_value(scores, plan, label):
    """Sum of the entries that `label` chooses, the nodes' first: the same order for every method, so equal labellings have equal values."""
    total = 0.0
    for k in range(plan[0]):
        total += scores[2 * k + label[k]]
    at = plan[2]
    for _ in range(plan[1]):
        size, entry = plan[at], plan[at + 1]
        number = 0
        for place in range(size):
            number = 2 * number + label[plan[at + 2 + place]]
        total += scores[entry + number]
        at += size + 2
    return total


# --------------------------------------------------------------------------------------------------------------
# Bucket elimination: maximise one label after the other out of the sum, then read the choices backwards.


@compiled(inside=True)
def two_sums(scores, plan, work, read, n_scores, n_messages):
    """The sums of the factors with a label, where it is 0 and where it is 1, at one setting of its neighbours."""
    zero, one = 0.0, 0.0
    for _ in range(n_scores):
        zero += scores[plan[read]]
        one += scores[plan[read + 1]]
        read += 2
    for _ in range(n_messages):
        zero += work[plan[read]]
        one += work[plan[read + 1]]
        read += 2
    return zero, one


@compiled(inside=True)
def eliminate(scores, plan, work, label):
    """The best labelling, written into `label`; `work` holds the messages. Reads the plan of `plans.elimination_plan`.

    m(neighbours) = max over y_k in {0, 1} of the sum of the factors with k. Ties go to 0.
    """
    n_labels = plan[0]
    at = plan[3]
    for _ in range(n_labels):
        width, n_scores, n_messages, message = plan[at + 1], plan[at + 2], plan[at + 3], plan[at + 4]
        at += 5 + width
        if message < 0:  # no neighbour is left: nothing to tell anyone
            at += 2 * (n_scores + n_messages)
            continue
        for setting in range(1 << width):
            zero, one = two_sums(scores, plan, work, at, n_scores, n_messages)
            at += 2 * (n_scores + n_messages)
            work[message + setting] = one if one > zero else zero
    # Backwards: the neighbours of a label are eliminated after it, so theirs are known. Only one setting of each table is needed,
    # so its two sums are made again instead of keeping all choices.
    for t in range(n_labels):
        at = plan[len(plan) - 1 - t]
        width, n_scores, n_messages = plan[at + 1], plan[at + 2], plan[at + 3]
        setting = 0
        for place in range(width):
            setting = 2 * setting + label[plan[at + 5 + place]]
        read = at + 5 + width + setting * 2 * (n_scores + n_messages)
        zero, one = two_sums(scores, plan, work, read, n_scores, n_messages)
        label[plan[at]] = 1 if one > zero else 0


# --------------------------------------------------------------------------------------------------------------
# Better labellings by flipping one label at a time, with a short memory against going back (tabu search).


@compiled(inside=True)
def improve(scores, plan, patience, scale, work, iwork, label):
    """Flips labels of `label` until `patience` flips in a row brought nothing new; leaves the best labelling met in `label`.

    Each step flips the label that gains most (or loses least) among those not flipped in the last 1 + K/4 steps, or any that
    leads to a new best. With `patience` 0 only gaining flips are made: iterated conditional modes, steepest first. `scale` is the
    largest score in size.

    Reads the plan of `plans.message_passing_plan`. work[K : 2K] holds what flipping each label gains; iwork holds the entry that
    each clique has now (q,), until which step a label waits (K,), the best labelling met (K,).
    """
    n_labels, n_cliques = plan[0], plan[1]
    gain, wait, best = n_labels, n_cliques, n_cliques + n_labels
    for k in range(n_labels):
        work[gain + k] = scores[2 * k + 1 - label[k]] - scores[2 * k + label[k]]
        iwork[wait + k] = 0
        iwork[best + k] = label[k]
    at = plan[2]
    for c in range(n_cliques):
        size, entry = plan[at], plan[at + 1]
        number = 0
        for place in range(size):
            number = 2 * number + label[plan[at + 2 + place]]
        iwork[c] = number
        for place in range(size):
            flipped = number ^ (1 << (size - 1 - place))
            work[gain + plan[at + 2 + place]] += scores[entry + flipped] - scores[entry + number]
        at += size + 2
    noise = 1e-13 * (
        1.0 + scale
    )  # gains are kept by additions: a flip there and back must not look like a new best
    now = 0.0  # against the labelling that came in
    record = 0.0
    since = 0
    for step in range(
        1, 100 * n_labels
    ):  # far more than it takes; an end even where rounding makes gains out of nothing
        chosen = -1
        for k in range(n_labels):
            allowed = iwork[wait + k] < step or now + work[gain + k] > record + noise
            if allowed and (chosen < 0 or work[gain + k] > work[gain + chosen]):
                chosen = k
        if chosen < 0 or (patience == 0 and work[gain + chosen] <= noise):
            break
        now += work[gain + chosen]
        _flip(scores, plan, chosen, work, iwork, label)
        iwork[wait + chosen] = step + 1 + n_labels // 4
        if now > record + noise:
            record = now
            since = 0
            for k in range(n_labels):
                iwork[best + k] = label[k]
        else:
            since += 1
            if since >= patience:
                break
    for k in range(n_labels):
        label[k] = iwork[best + k]


@compiled(inside=True)
def _flip(scores, plan, k, work, iwork, label):
    """Flips label k and brings the gains of all labels that share a clique with it up to date."""
    gain = plan[0]
    own = -work[gain + k]
    index = plan[3]
    first = index + plan[0] + 1
    for p in range(first + 4 * plan[index + k], first + 4 * plan[index + k + 1], 4):
        c, at = plan[p], plan[p + 2]
        size, entry = plan[at], plan[at + 1]
        old = iwork[c]
        new = old ^ (1 << (size - 1 - plan[p + 1]))
        iwork[c] = new
        base = scores[entry + old] - scores[entry + new]
        for place in range(size):
            bit = 1 << (size - 1 - place)
            work[gain + plan[at + 2 + place]] += (
                scores[entry + (new ^ bit)] - scores[entry + (old ^ bit)] + base
            )
    work[gain + k] = own
    label[k] = 1 - label[k]


# --------------------------------------------------------------------------------------------------------------
# Max-product linear programming: messages that lower a bound of the best score, and labellings read off them.

#: Sweeps between two looks at the bound.
SWEEPS_PER_LOOK = 5

#: Most sweeps.
MAX_SWEEPS = 200

#: A look that closes less than this part of what is open between bound and labelling is the last.
STALL_SHARE = 0.02

#: Longer searches for a better labelling once the bound stands. On 20 labels with all edges and normal scores: one finds the maximum
#: in 98.5 % of cases, two in 99.5 %.
LONG_SEARCHES = 2


@compiled(inside=True)
def pass_messages(scores, plan, work, iwork, label):
    """(value, upper) of the labelling written into `label`: value <= the maximum <= upper.

    A message of clique c to its member i is the one number delta_ci = lambda_ci(1) - lambda_ci(0); with beliefs
    beta_i = theta_i(1) - theta_i(0) + sum over c of delta_ci

        upper = sum_i max(theta_i(0), theta_i(0) + beta_i) + sum_c max over y_c of ( theta_c(y_c) - sum over i with y_i = 1 of delta_ci )

    bounds the maximum for any messages. The update of a clique sets all its messages so that this is least in them:
    beta_i = (mu_i(1) - mu_i(0)) / |c|, mu_i the max-marginals of theta_c plus the beliefs without c.
    Labellings are the signs of the beliefs, improved by flips.

    work holds, from 0: the beliefs (K,), the gains of flips (K,), scratch of a clique (15,), the messages (sum of the cliques' sizes,).

    Source: Globerson and Jaakkola 2008, Fixing max-product, the algorithm MPLP.
    """
    n_labels, n_cliques = plan[0], plan[1]
    kept = n_cliques + 2 * n_labels  # in iwork, after what `improve` needs: the best labelling so far
    for m in range(plan[plan[3] + n_labels]):
        work[2 * n_labels + 15 + m] = 0.0
    for k in range(n_labels):
        work[k] = scores[2 * k + 1] - scores[2 * k]
    scale = 0.0
    for k in range(scores.size):
        scale = max(scale, abs(scores[k]))
    upper = math.inf
    value = -math.inf
    look = 0
    search = 0  # the longer searches, after the last look
    while search <= LONG_SEARCHES:
        before = upper
        if search == 0:
            for _ in range(SWEEPS_PER_LOOK):
                _sweep(scores, plan, work)
            look += 1
            upper = min(upper, _bound(scores, plan, work))
            for k in range(n_labels):
                label[k] = 1 if work[k] > 0.0 else 0
        else:  # from the best labelling so far, then from the best one with its less certain labels turned round
            for k in range(n_labels):
                label[k] = iwork[kept + k]
            if search == 2:
                middle = 0.0
                for k in range(n_labels):
                    middle += abs(work[k]) / n_labels
                for k in range(n_labels):
                    if abs(work[k]) <= middle:
                        label[k] = 1 - label[k]
        improve(scores, plan, 3 * n_labels if search > 0 else 0, scale, work, iwork, label)
        reached = labelling_value(scores, plan, label)
        if reached > value:
            value = reached
            for k in range(n_labels):
                iwork[kept + k] = label[k]
        if upper - value <= CERTIFIED_TOL * (1.0 + abs(value)):
            break
        if (
            search > 0
            or look == MAX_SWEEPS // SWEEPS_PER_LOOK
            or before - upper < STALL_SHARE * (upper - value)
        ):
            search += 1
    for k in range(n_labels):
        label[k] = iwork[kept + k]
    return value, max(upper, value)


@compiled(inside=True)
def _sweep(scores, plan, work):
    """One update of every clique."""
    at = plan[2]
    m = 2 * plan[0] + 15
    for _ in range(plan[1]):
        size, entry = plan[at], plan[at + 1]
        if size == 2:
            i, j = plan[at + 2], plan[at + 3]
            without_i = work[i] - work[m]
            without_j = work[j] - work[m + 1]
            zero_zero = scores[entry]
            zero_one = scores[entry + 1] + without_j
            one_zero = scores[entry + 2] + without_i
            one_one = scores[entry + 3] + without_i + without_j
            work[i] = 0.5 * (max(one_zero, one_one) - max(zero_zero, zero_one))
            work[j] = 0.5 * (max(zero_one, one_one) - max(zero_zero, one_zero))
            work[m] = work[i] - without_i
            work[m + 1] = work[j] - without_j
        else:
            _update_clique(scores, plan, at, m, work)
        m += size
        at += size + 2


@compiled(inside=True)
def _update_clique(scores, plan, at, m, work):
    size, entry = plan[at], plan[at + 1]
    scratch = 2 * plan[0]
    for place in range(size):
        work[scratch + place] = work[plan[at + 2 + place]] - work[m + place]
        work[scratch + 5 + place] = -1e308
        work[scratch + 10 + place] = -1e308
    for number in range(1 << size):
        value = scores[entry + number]
        for place in range(size):
            if (number >> (size - 1 - place)) & 1:
                value += work[scratch + place]
        for place in range(size):
            side = 10 if (number >> (size - 1 - place)) & 1 else 5
            work[scratch + side + place] = max(work[scratch + side + place], value)
    for place in range(size):
        k = plan[at + 2 + place]
        work[k] = (work[scratch + 10 + place] - work[scratch + 5 + place]) / size
        work[m + place] = work[k] - work[scratch + place]


@compiled(inside=True)
def _bound(scores, plan, work):
    """The bound of these messages. The beliefs are summed afresh, so that it holds whatever rounding the sweeps left in them."""
    for k in range(plan[0]):
        work[k] = scores[2 * k + 1] - scores[2 * k]
    total = 0.0
    at = plan[2]
    m = 2 * plan[0] + 15
    for _ in range(plan[1]):
        size, entry = plan[at], plan[at + 1]
        best = -1e308
        for number in range(1 << size):
            value = scores[entry + number]
            for place in range(size):
                if (number >> (size - 1 - place)) & 1:
                    value -= work[m + place]
            best = max(best, value)
        total += best
        for place in range(size):
            work[plan[at + 2 + place]] += work[m + place]
        m += size
        at += size + 2
    for k in range(plan[0]):
        total += scores[2 * k] + max(work[k], 0.0)
    return total


# --------------------------------------------------------------------------------------------------------------
# The best labelling of one instance, by whichever method its plan is for: what other compiled loops call.


@compiled(inside=True)
def map_one(eliminates, enumerates, scores, plan, work, iwork, label):
    """(value, upper) of the labelling written into `label` (K,) uint8: value <= the maximum <= upper, equal where the method is exact.

    (eliminates, enumerates) is the `choice` of a `Decoder`; `plan`, `work` (float64) and `iwork` (int64) are its own too; `scores` (S,)
    is one contiguous row. What is None is known from its type: so no method is compiled but the one that is used.
    """
    if iwork is not None:
        return pass_messages(scores, plan, work, iwork, label)
    if eliminates is not None:
        eliminate(scores, plan, work, label)
    if enumerates is not None:
        enumerate_labellings(scores, plan, work, label)
    value = labelling_value(scores, plan, label)
    return value, value


# --------------------------------------------------------------------------------------------------------------
# The best of all 2^K labellings where each has a cost of its own beside its score.


@compiled(inside=True)
def loss_augmented_map(scores, plan, work, costs, tilt, label):
    """The value, cost included, of the labelling with the largest score + tilt * cost, written into `label`; costs (2^K,) by number, label
    k in bit k. The plan is that of enumeration."""
    fill_tables(scores, plan, work)
    n_labels = plan[0]
    half = 1 << (n_labels - 1)
    total, change = work[:half], work[half : 2 * half]
    best, number = total[0] + tilt * costs[0], 0
    for r in range(half):
        value = total[r] + tilt * costs[r]
        if value > best:
            best, number = value, r
        value = total[r] + change[r] + tilt * costs[half + r]
        if value > best:
            best, number = value, half + r
    for k in range(n_labels):
        label[k] = (number >> k) & 1
    return labelling_value(scores, plan, label) + tilt * costs[number]


@compiled(inside=True)
def highest(eliminates, enumerates, scores, plan, work, iwork, patterns, dear, i, tilt, label):
    """(value, upper) of the best labelling of sample i: `map_one`, or with costs of whole labellings, times a tilt, `loss_augmented_map`. Where there are none,
    `patterns` and `dear` are None."""
    if dear is None:
        return map_one(eliminates, enumerates, scores, plan, work, iwork, label)
    else:  # numba leaves out the branch that its types rule out
        value = loss_augmented_map(scores, plan, work, dear[patterns[i]], tilt, label)
        return value, value


@compiled(inside=True)
def cost_of(patterns, dear, i, label):
    """Return what a labelling of sample i costs as a whole; 0 where costs are those of labels, which stand in the scores."""
    if dear is None:
        return 0.0
    else:
        number = 0
        for k in range(label.size):
            if label[k] == 1:
                number += 1 << k
        return dear[patterns[i], number]


@compiled()
def highest_each(eliminates, enumerates, scores, plan, work, iwork, patterns, dear, labels, values, upper):
    """`highest` for every row of `scores` (n, S)."""
    for i in range(len(scores)):
        values[i], upper[i] = highest(
            eliminates, enumerates, scores[i], plan, work, iwork, patterns, dear, i, 1.0, labels[i]
        )
