"""Compiled oracles of metrics: the most violated labelling or order of every task."""

from __future__ import annotations

import numpy as np

from mtldsl.utils.jit import compiled

# --------------------------------------------------------------------------------------------------------------
# The loops of the oracles that are sequential by nature, so compiled; imported when first used. Sorting stays in numpy.
#
# Flipping sample j costs twice its margin y_j z_j, for positives and negatives alike: `up` and `down` hold the margins of
# the positives and of the negatives, ascending where a function says so.


#: Insertions a sample, up to which they are faster than a sort.
SAMPLE_INSERTIONS = 6


@compiled("b1(f8[::1], i8[::1], i8[:, ::1], f8[:, ::1], i8[::1], f8[::1], i8[:, ::1])")
def sort_margins(z, order, starts, limits, chosen, margins, ends):
    """Every task's samples that may be flipped, from where its own begin: the positives with z <= limits[k, 0], the negatives with z >=
    limits[k, 1], and their margins, rising; ends[k]: where they end.

    From the samples in `order`, which is what comes out of it; whether that took too many insertions, so that a sort has to finish it.
    """
    is_far = False
    for k in range(starts.shape[0]):
        for side in range(2):
            sign = 1.0 - 2.0 * side
            most = sign * limits[k, side]
            first, last = starts[k, side], starts[k, side + 1]
            at, rest, left = first, last, SAMPLE_INSERTIONS * (last - first)
            for p in range(first, last):
                sample = order[p]
                margin = sign * z[sample]
                if not margin <= most:
                    rest -= 1
                    chosen[rest] = sample
                    continue
                i = at
                while i > first and margins[i - 1] > margin and left > 0:
                    margins[i], chosen[i] = margins[i - 1], chosen[i - 1]
                    i -= 1
                    left -= 1
                margins[i], chosen[i] = margin, sample
                at += 1
            is_far |= left == 0
            ends[k, side] = at
            for p in range(first, last):
                order[p] = chosen[p]
    return is_far


@compiled("void(i8[::1], i8[:, ::1], i8[:, ::1], i8[::1], f8[::1])")
def flip(chosen, starts, counts, flipped, slopes):
    """The first counts[k, 0] negatives and counts[k, 1] positives of every task k, into `flipped` from where its samples begin, and their slopes."""
    for k in range(starts.shape[0]):
        at = starts[k, 0]
        for other in range(2):
            side = 1 - other
            for i in range(starts[k, side], starts[k, side] + counts[k, other]):
                flipped[at] = chosen[i]
                slopes[chosen[i]] = -2.0 if side == 0 else 2.0
                at += 1


@compiled("void(f8[::1], i8[:, ::1], i8[:, ::1], f8[::1], i8[:, ::1])")
def best_of_auc(ordered, starts, ends, values, counts):
    """(value, (b, c)) of the highest table of bc / (Pos Neg) of every task; margins ascending.

    One more negative is worth c / (Pos Neg), whatever b: the best b for c does not decrease with c, and one pass finds all.
    """
    for k in range(starts.shape[0]):
        up, down = starts[k, 0], starts[k, 1]
        pairs = float(down - up) * float(starts[k, 2] - down)
        most = ends[k, 1] - down
        best, best_b, best_c = 0.0, 0, 0
        b, paid_b, paid_c = 0, 0.0, 0.0
        for c in range(ends[k, 0] - up + 1):
            if c > 0:
                paid_c += ordered[up + c - 1]
            while b < most and c / pairs > 2.0 * ordered[down + b]:
                paid_b += ordered[down + b]
                b += 1
            value = b * (c / pairs) - 2.0 * (paid_b + paid_c)
            if value > best:
                best, best_b, best_c = value, b, c
        values[k], counts[k, 0], counts[k, 1] = best, best_b, best_c


@compiled("void(f8[::1], i8[:, ::1], i8[:, ::1], f8, f8[::1], f8[::1], i8[:, ::1])")
def best_of_fscore(ordered, starts, ends, square, paid, values, counts):
    """(value, (b, c)) of the highest table of (b + square c) / (a + b + square Pos) of every task, a = Pos - c; margins ascending.

    At fixed a this is concave in b: with m = square Pos the b-th negative is worth t(a, b) = (1 + square) a / ((a + b - 1 + m)
    (a + b + m)), which falls with b, so that b*(a) is where t(a, b) sinks to twice the b-th margin, and walking there from
    b*(a + 1) finds it. As a grows, t(a, b) rises exactly as long as a <= b + m - 1. Hence b*(a) falls from a to a + 1 only if
    a > b*(a) + m - 1, and would rise after that only if a + 1 < b*(a + 1) + m <= b*(a) + m - 1 < a: never. So b* rises, then
    falls (for square >= 1 it only rises), and all walks together take O(n) steps. paid: scratch, (N + 1,).
    """
    for k in range(starts.shape[0]):
        up, down = starts[k, 0], starts[k, 1]
        positives, most = down - up, ends[k, 1] - down
        m = square * positives
        paid[0] = 0.0
        for b in range(most):
            paid[b + 1] = paid[b] + ordered[down + b]
        best, best_b, best_c = 0.0, 0, 0
        b, paid_c = 0, 0.0
        for c in range(ends[k, 0] - up + 1):
            if c > 0:
                paid_c += ordered[up + c - 1]
            a = float(positives - c)
            while b < most and (1.0 + square) * a / (a + b + m) / (a + b + 1.0 + m) > 2.0 * ordered[down + b]:
                b += 1
            while (
                b > 0 and (1.0 + square) * a / (a + b - 1.0 + m) / (a + b + m) <= 2.0 * ordered[down + b - 1]
            ):
                b -= 1
            value = (b + square * c) / (a + b + m) - 2.0 * (paid[b] + paid_c)
            if value > best:
                best, best_b, best_c = value, b, c
        values[k], counts[k, 0], counts[k, 1] = best, best_b, best_c


@compiled("i8(i8[:, ::1], i8, i8, i8, i8, i8)", inside=True)
def _remember(parts, left, low_c, high_c, low_b, high_b):
    """A rectangle to look at later; returns how many there are. An assignment of slices takes seconds to compile."""
    parts[left, 0], parts[left, 1], parts[left, 2], parts[left, 3] = low_c, high_c, low_b, high_b
    return left + 1


@compiled("void(f8[::1], i8[:, ::1], i8[:, ::1], f8[::1], f8[::1], f8[::1], i8[:, ::1])")
def best_of_product(ordered, starts, ends, of_negatives, of_positives, values, counts):
    """(value, (b, c)) of the highest table of 1 - g(b) h(c) of every task; margins ascending; g and h of one task after another, from 0 up to all that
    may be flipped.

    The best b for c does not rise with c: for the c in the middle all b are looked at, for those on either side the b on their side alone.
    """
    longest = 0
    for k in range(starts.shape[0]):
        longest = max(longest, ends[k, 0] - starts[k, 0], ends[k, 1] - starts[k, 1])
    paid_b, paid_c = np.empty(longest + 1), np.empty(longest + 1)
    parts = np.empty((128, 4), np.int64)  # halves of halves: twice the binary digits of a count are enough
    g, h = 0, 0
    for k in range(starts.shape[0]):
        up, down = starts[k, 0], starts[k, 1]
        most_c, most_b = ends[k, 0] - up, ends[k, 1] - down
        paid_b[0] = paid_c[0] = 0.0
        for b in range(most_b):
            paid_b[b + 1] = paid_b[b] + 2.0 * ordered[down + b]
        for c in range(most_c):
            paid_c[c + 1] = paid_c[c] + 2.0 * ordered[up + c]
        best, best_b, best_c = 0.0, 0, 0
        left = _remember(parts, 0, 0, most_c, 0, most_b)
        while left > 0:
            left -= 1
            low_c, high_c, low_b, high_b = parts[left, 0], parts[left, 1], parts[left, 2], parts[left, 3]
            c = (low_c + high_c) // 2
            top, top_b = -np.inf, low_b
            for b in range(low_b, high_b + 1):
                value = (1.0 - of_negatives[g + b] * of_positives[h + c]) - (paid_b[b] + paid_c[c])
                if value > top:
                    top, top_b = value, b
            if top > best:
                best, best_b, best_c = top, top_b, c
            if low_c < c:
                left = _remember(parts, left, low_c, c - 1, top_b, high_b)
            if c < high_c:
                left = _remember(parts, left, c + 1, high_c, low_b, top_b)
        values[k], counts[k, 0], counts[k, 1] = best, best_b, best_c
        g += most_b + 1
        h += most_c + 1


# --------------------------------------------------------------------------------------------------------------
# The loop of the oracle of orders that is sequential by nature, so compiled; imported when first used.


@compiled("void(f8[::1], f8[::1], f8[::1], f8[::1], f8, i8[::1])")
def best_places(below, down, p, q, unit, first):
    """first[j]: above which positive (0 to P) negative j stands best: the i, counted from 1, that maximises -p[i + j - 1] - j q[i + j - 1] -
    unit (below[i] - (P - i + 1) down[j]), the smallest of several, j counted from 1. It rises with j.

    below (P + 1,): sums of the falling scores of positives from one on; down (N,): falling scores of negatives
    """
    P, N = below.shape[0] - 1, down.shape[0]
    todo = np.empty((64, 4), np.int64)  # negatives from a to b - 1, whose places are from low to high
    todo[0, 0], todo[0, 1], todo[0, 2], todo[0, 3] = 0, N, 0, P
    waiting = 1
    while waiting > 0:
        waiting -= 1
        a, b, low, high = todo[waiting, 0], todo[waiting, 1], todo[waiting, 2], todo[waiting, 3]
        if a >= b:
            continue
        j = (a + b) // 2
        best, at = -np.inf, low
        for i in range(low, high + 1):
            s = i + j + 1  # i and j are counted from 0 here
            worth = -p[s] - (j + 1.0) * q[s] - unit * (below[i] - (P - i) * down[j])
            if worth > best:
                best, at = worth, i
        first[j] = at
        todo[waiting, 0], todo[waiting, 1], todo[waiting, 2], todo[waiting, 3] = a, j, low, at
        waiting += 1
        todo[waiting, 0], todo[waiting, 1], todo[waiting, 2], todo[waiting, 3] = j + 1, b, at, high
        waiting += 1
