"""The loops of the oracles that are sequential by nature, so compiled; imported when first used. Sorting stays in numpy.

Flipping sample j costs twice its margin y_j z_j, for positives and negatives alike: `up` and `down` hold the margins of
the positives and of the negatives, ascending where a function says so.
"""

from __future__ import annotations

import numpy as np

from mtldsl.system.compiled import compiled

__all__ = ["best_of_auc", "best_of_fscore", "flippable", "flips", "overlapping", "pairs_in_wrong_order"]


def flippable(z, positive, negative, high, low):
    """(samples, margins) of the positives with z <= high, then of the negatives with z >= low."""
    up, up_margins = np.empty(positive.size, np.int64), np.empty(positive.size)
    down, down_margins = np.empty(negative.size, np.int64), np.empty(negative.size)
    k = _chosen(z, positive, 1.0, high, up, up_margins)
    l = _chosen(z, negative, -1.0, -low, down, down_margins)
    return up[:k], up_margins[:k], down[:l], down_margins[:l]


@compiled(error_model="numpy")
def _chosen(z, samples, sign, most, chosen, margins):
    """Those with sign z <= most, and what that is; returns how many. Arrays are made outside: boxing them takes long to compile."""
    k = 0
    for p in range(samples.size):
        i = samples[p]
        margin = sign * z[i]
        chosen[k], margins[k] = i, margin
        k += margin <= most
    return k


@compiled(error_model="numpy")
def flips(down, down_margins, down_ordered, b, up, up_margins, up_ordered, c):
    """The b samples of `down` and the c samples of `up` with the smallest margins; the ordered margins give the threshold."""
    flipped = np.empty(b + c, np.int64)
    _smallest(down, down_margins, down_ordered, b, flipped[:b])
    _smallest(up, up_margins, up_ordered, c, flipped[b:])
    return flipped


@compiled(inside=True, error_model="numpy")
def _smallest(samples, margins, ordered, count, out):
    if count == 0:
        return
    level = ordered[count - 1]
    ties = 0
    while ties < count and ordered[count - 1 - ties] == level:
        ties += 1
    k = 0
    for i in range(samples.size):
        if margins[i] < level or (margins[i] == level and ties > 0):
            ties -= margins[i] == level
            out[k] = samples[i]
            k += 1


@compiled(error_model="numpy")
def best_of_auc(up, down, positives, negatives):
    """(value, b, c) of the highest table of bc / (Pos Neg); margins ascending.

    One more negative is worth c / (Pos Neg), whatever b: the best b for c does not decrease with c, and one pass finds all.
    """
    pairs = float(positives) * float(negatives)
    best, best_b, best_c = 0.0, 0, 0
    b, paid_b, paid_c = 0, 0.0, 0.0
    for c in range(up.size + 1):
        if c > 0:
            paid_c += up[c - 1]
        while b < down.size and c / pairs > 2.0 * down[b]:
            paid_b += down[b]
            b += 1
        value = b * (c / pairs) - 2.0 * (paid_b + paid_c)
        if value > best:
            best, best_b, best_c = value, b, c
    return best, best_b, best_c


@compiled(error_model="numpy")
def best_of_fscore(up, down, positives, square):
    """(value, b, c) of the highest table of (b + square c) / (a + b + square Pos), a = Pos - c; margins ascending.

    At fixed a this is concave in b: with m = square Pos the b-th negative is worth t(a, b) = (1 + square) a / ((a + b - 1 + m)
    (a + b + m)), which falls with b, so that b*(a) is where t(a, b) sinks to twice the b-th margin, and walking there from
    b*(a + 1) finds it. As a grows, t(a, b) rises exactly as long as a <= b + m - 1. Hence b*(a) falls from a to a + 1 only if
    a > b*(a) + m - 1, and would rise after that only if a + 1 < b*(a + 1) + m <= b*(a) + m - 1 < a: never. So b* rises, then
    falls (for square >= 1 it only rises), and all walks together take O(n) steps.
    """
    m = square * positives
    paid = np.empty(down.size + 1)
    paid[0] = 0.0
    for b in range(down.size):
        paid[b + 1] = paid[b] + down[b]
    best, best_b, best_c = 0.0, 0, 0
    b, paid_c = 0, 0.0
    for c in range(up.size + 1):
        if c > 0:
            paid_c += up[c - 1]
        a = float(positives - c)
        while b < down.size and (1.0 + square) * a / (a + b + m) / (a + b + 1.0 + m) > 2.0 * down[b]:
            b += 1
        while b > 0 and (1.0 + square) * a / (a + b - 1.0 + m) / (a + b + m) <= 2.0 * down[b - 1]:
            b -= 1
        value = (b + square * c) / (a + b + m) - 2.0 * (paid[b] + paid_c)
        if value > best:
            best, best_b, best_c = value, b, c
    return best, best_b, best_c


@compiled(error_model="numpy")
def overlapping(z, positive, negative):
    """(samples, scores) of the positives, then of the negatives, that are in a pair with z_i - z_j < 1/2."""
    lowest, highest = np.inf, -np.inf
    for p in range(positive.size):
        lowest = min(lowest, z[positive[p]])
    for p in range(negative.size):
        highest = max(highest, z[negative[p]])
    up, up_scores = np.empty(positive.size, np.int64), np.empty(positive.size)
    k = 0
    for p in range(positive.size):
        i = positive[p]
        up[k], up_scores[k] = i, z[i]
        k += z[i] - highest < 0.5
    down, down_scores = np.empty(negative.size, np.int64), np.empty(negative.size)
    l = 0
    for p in range(negative.size):
        j = negative[p]
        down[l], down_scores[l] = j, z[j]
        l += lowest - z[j] < 0.5
    return up[:k], up_scores[:k], down[:l], down_scores[:l]


@compiled(error_model="numpy")
def pairs_in_wrong_order(up, up_scores, up_order, down, down_scores, down_order, pairs, slope):
    """(value, delta) of the plane of all pairs with z_i - z_j < 1/2, by a merge; `slope` (n,), zeros, is filled.

    A rounded difference is monotone in both scores, so that rows and columns of the pairs agree on every tie. The slope sums
    to zero, and <slope, z> loses less where scores are measured from one of them.
    """
    total, product = 0, 0.0
    origin = up_scores[0] if up.size > 0 else 0.0
    passed = 0  # negatives, ascending, that are low enough to be in the right order
    for s in range(up.size):
        i = up_order[s]
        score = up_scores[i]
        while passed < down.size and score - down_scores[down_order[passed]] >= 0.5:
            j = down_order[passed]
            slope[down[j]] = 2.0 * s / pairs
            product += slope[down[j]] * (down_scores[j] - origin)
            passed += 1
        wrong = down.size - passed
        total += wrong
        slope[up[i]] = -2.0 * wrong / pairs
        product += slope[up[i]] * (score - origin)
    for t in range(passed, down.size):
        j = down_order[t]
        slope[down[j]] = 2.0 * up.size / pairs
        product += slope[down[j]] * (down_scores[j] - origin)
    return total / pairs + product, total / pairs
