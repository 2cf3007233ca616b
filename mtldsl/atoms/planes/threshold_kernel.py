"""The compiled loops behind the F-score's exact proximal step and conjugate: one threshold a table, in pools.

With a = Pos - c right positives, b wrong negatives and m = beta^2 Pos, one more negative is worth d(a, b) = kappa a / ((a + b + m)
(a + b + m - 1)), kappa = 1 + beta^2, which falls with b. For every table c of weight pi_c there is a threshold theta_c: its count b_c
is what d(a, b) > -2 theta leaves, and the weighted counts have to be what the negatives give. These are integrals of #{t > s} over
windows [shift theta + low, shift theta + high], one beside the other. beta >= 1: the thresholds rise with c, so that the problem is an
isotonic regression, whose pools are found by halving: a pooled root, and a split where a part of the pool would rather lie lower.
"""

from __future__ import annotations

import numpy as np

from mtldsl.system.compiled import compiled

__all__ = ["largest_tables", "promised_value", "thresholds"]


@compiled("f8(f8, f8, f8, f8)", error_model="numpy")
def _rises(a, b, m, kappa):
    """Delta of b wrong negatives less Delta of b - 1, at a right positives."""
    x = a + b + m
    return kappa * a / x / (x - 1.0)


@compiled("i8(f8, f8, f8, f8, i8, b1)", inside=True, error_model="numpy")
def _count(theta, a, m, kappa, N, closed):
    """How many negatives are worth more than -2 theta, or as much where `closed`."""
    y = -2.0 * theta
    if a <= 0.0:
        return N if (y < 0.0 or (y == 0.0 and closed)) else 0
    if y <= 0.0:
        return N
    x = 0.5 + np.sqrt(0.25 + kappa * a / y)
    b = int(min(max(np.floor(x - a - m), 0.0), float(N)))
    while b < N and (_rises(a, b + 1.0, m, kappa) > y or (closed and _rises(a, b + 1.0, m, kappa) == y)):
        b += 1
    while b > 0 and (
        _rises(a, float(b), m, kappa) < y or (not closed and _rises(a, float(b), m, kappa) == y)
    ):
        b -= 1
    return b


@compiled("i8(f8[::1], f8)", inside=True, error_model="numpy")
def _above(t, s):
    """#{t > s} of descending numbers."""
    low, high = 0, t.size
    while low < high:
        middle = (low + high) // 2
        if t[middle] > s:
            low = middle + 1
        else:
            high = middle
    return low


@compiled("Tuple((f8, i8, i8))(f8[::1], f8[::1], f8, f8)", inside=True, error_model="numpy")
def _window(t, sums, low, high):
    """(the integral of #{t > s} over s in [low, high], #{t > low}, #{t > high}); sums: those of the first k of t."""
    n_low, n_high = _above(t, low), _above(t, high)
    area = n_high * (high - low)
    if n_low - n_high <= 24:
        for j in range(n_high, n_low):
            area += t[j] - low
    else:
        area += sums[n_low] - sums[n_high] - (n_low - n_high) * low
    return area, n_low, n_high


@compiled("f8(f8[::1], f8[::1], f8, f8, f8, f8, f8)", inside=True, error_model="numpy")
def _linear_root(t, sums, low, high, target, left, right):
    """theta in [left, right] with the area of the window [theta + low, theta + high] = target: falling, piecewise linear."""
    theta = 0.5 * (left + right)
    for k in range(200):
        area, n_low, n_high = _window(t, sums, theta + low, theta + high)
        if area > target:
            left = theta
        elif area < target:
            right = theta
        else:
            break
        inside = n_low - n_high
        new = 0.5 * (left + right)
        if inside > 0:
            tangent = theta + (area - target) / inside
            if left < tangent < right:
                if _above(t, tangent + low) == n_low and _above(t, tangent + high) == n_high:
                    return tangent  # the same piece
                if k % 4 != 3:
                    new = tangent
        if not left < new < right:
            break
        theta = new
    return theta


@compiled(
    "Tuple((f8, f8))(f8, i8, i8, f8[::1], f8[::1], f8, f8, i8, i8[:, ::1])", inside=True, error_model="numpy"
)
def _counts_at(theta, i0, i1, a, mass, m, kappa, N, counts):
    """The weighted counts of the tables i0 to i1 left and right of theta, and into `counts` the counts themselves."""
    left, right = 0.0, 0.0
    for i in range(i0, i1):
        weight = mass[i + 1] - mass[i]
        counts[i, 1] = _count(theta, a[i], m, kappa, N, True)
        counts[i, 0] = counts[i, 1]
        b = counts[i, 1]
        if a[i] <= 0.0:
            counts[i, 0] = _count(theta, a[i], m, kappa, N, False)
        elif b > 0 and _rises(a[i], float(b), m, kappa) == -2.0 * theta:
            counts[i, 0] = b - 1
        left += weight * counts[i, 0]
        right += weight * counts[i, 1]
    return left, right


@compiled(
    "f8(f8[::1], f8[::1], i8, i8, f8[::1], f8[::1], f8, f8, f8, f8, f8, f8, i8[:, ::1], i8[:, ::1])",
    inside=True,
    error_model="numpy",
)
def _pooled_root(t, sums, i0, i1, a, mass, u, shift, m, kappa, left, right, counts, ends):
    """theta where the window's area, falling, crosses the weighted counts, rising with jumps; it lies in [left, right].

    Bisection in theta, or in the counts of the table that has most of them in between, until no count lies in between.
    """
    N = t.size
    low, high = u * mass[i0], u * mass[i1]
    # what jumps at an end lies in between as well: a part of a pool that was split may have its root there
    _counts_at(left, i0, i1, a, mass, m, kappa, N, counts)
    for i in range(i0, i1):
        ends[i, 0] = counts[i, 0]
    _counts_at(right, i0, i1, a, mass, m, kappa, N, counts)
    for i in range(i0, i1):
        ends[i, 1] = counts[i, 1]
    above, below = (
        0.0,
        0.0,
    )  # how far the area lies above the counts at the left end, below them at the right; 0: not known
    for k in range(400):
        between, widest, at = 0, 0, i0
        for i in range(i0, i1):
            between += ends[i, 1] - ends[i, 0]
            if ends[i, 1] - ends[i, 0] > widest:
                widest, at = ends[i, 1] - ends[i, 0], i
        if between <= 0:
            break
        theta = 0.5 * (left + right)
        if above > 0.0 and below > 0.0 and k % 3 > 0:
            theta = left + (right - left) * above / (above + below)
        if between <= 2 or k >= 60 or not left < theta < right:
            theta = (
                -0.5 * _rises(a[at], float(ends[at, 0] + (widest + 1) // 2), m, kappa) if a[at] > 0.0 else 0.0
            )
        area, _, _ = _window(t, sums, shift * theta + low, shift * theta + high)
        from_left, from_right = _counts_at(theta, i0, i1, a, mass, m, kappa, N, counts)
        if area > u * from_right:
            left, above = theta, area - u * from_right
            for i in range(i0, i1):
                ends[i, 0] = counts[i, 1]
        elif area < u * from_left:
            right, below = theta, u * from_left - area
            for i in range(i0, i1):
                ends[i, 1] = counts[i, 0]
        else:
            return theta
    target = 0.0
    for i in range(i0, i1):
        target += u * (mass[i + 1] - mass[i]) * ends[i, 0]
    if shift == 0.0:
        return 0.5 * (left + right)
    return _linear_root(t, sums, low, high, target, left, right)


@compiled(
    "i8(f8[::1], f8[::1], f8[::1], f8[::1], f8, f8, f8, f8, f8[::1], f8[::1], i8[:, ::1])",
    error_model="numpy",
)
def thresholds(t, sums, a, mass, u, shift, m, kappa, b, levels, pools):
    """Counts b (K,) of the tables with a (falling) right positives, pools of equal thresholds with their levels; returns how many.

    t : descending scores of the negatives, sums (N + 1,) of the first of them
    mass : (K + 1,) from 0 to 1, rising strictly: mass[i + 1] - mass[i] is the weight of table i, u mass the windows' ends
    pools : (K, 5) first and last table (excluded), whether its level is where a count jumps, #{t > the window's low and high end}
    """
    K, N = a.size, t.size
    counts, ends = np.empty((K, 2), np.int64), np.empty((K, 2), np.int64)
    stack, bracket = np.empty((K + 2, 2), np.int64), np.empty((K + 2, 2))
    steepest = 0.0
    for i in range(K):
        if a[i] > 0.0:
            steepest = max(steepest, _rises(a[i], 1.0, m, kappa))
    stack[0, 0], stack[0, 1], bracket[0, 0], bracket[0, 1] = 0, K, -0.5 * steepest * (1.0 + 1e-12), 1e-300
    size, found = 1, 0
    while size > 0:
        size -= 1
        i0, i1, left, right = stack[size, 0], stack[size, 1], bracket[size, 0], bracket[size, 1]
        theta = _pooled_root(t, sums, i0, i1, a, mass, u, shift, m, kappa, left, right, counts, ends)
        area, n_low, n_high = _window(t, sums, shift * theta + u * mass[i0], shift * theta + u * mass[i1])
        from_left, from_right = _counts_at(theta, i0, i1, a, mass, m, kappa, N, counts)
        jumps = from_right > from_left
        share = min(1.0, max(0.0, (area / u - from_left) / (from_right - from_left))) if jumps else 0.0
        ahead, most, at = 0.0, 1e-14 * (abs(area) + u * from_right), -1
        for i in range(i0, i1):
            b[i] = counts[i, 0] + share * (counts[i, 1] - counts[i, 0])
            if i < i1 - 1:
                own, _, _ = _window(t, sums, shift * theta + u * mass[i], shift * theta + u * mass[i + 1])
                ahead += u * (mass[i + 1] - mass[i]) * b[i] - own
                if ahead > most:
                    most, at = ahead, i + 1
        if at < 0:
            pools[found, 0], pools[found, 1], pools[found, 2] = i0, i1, jumps
            pools[found, 3], pools[found, 4] = n_low, n_high
            levels[found] = theta
            found += 1
        else:
            stack[size, 0], stack[size, 1], bracket[size, 0], bracket[size, 1] = at, i1, theta, right
            size += 1
            stack[size, 0], stack[size, 1], bracket[size, 0], bracket[size, 1] = i0, at, left, theta
            size += 1
    return found


@compiled("f8(f8[::1], f8[::1], f8[::1], f8, f8)", error_model="numpy")
def promised_value(a, b, mass, m, kappa):
    """The sum over tables of weight * Delta, which is linear between whole b."""
    total = 0.0
    for i in range(a.size):
        whole = np.floor(b[i])
        value = 1.0 - kappa * a[i] / (a[i] + whole + m)
        if a[i] > 0.0 and b[i] > whole:
            value += (b[i] - whole) * _rises(a[i], whole + 1.0, m, kappa)
        total += (mass[i + 1] - mass[i]) * value
    return total


@compiled("void(f8[::1], i8, f8, f8, f8, f8[::1], i8[::1])", error_model="numpy")
def largest_tables(z, P, spare, m, kappa, heights, counts):
    """heights[c] = max over b of Delta(b, c) + 2 (the sum of the b first of z, descending), counts[c] the b: it falls with c.

    There are P + spare positives.
    """
    b, paid = 0, 0.0
    for c in range(P, -1, -1):
        a = P - c + spare
        while b < z.size and (_rises(a, b + 1.0, m, kappa) if a > 0.0 else 0.0) + 2.0 * z[b] > 0.0:
            paid += 2.0 * z[b]
            b += 1
        heights[c] = 1.0 - kappa * a / (a + b + m) + paid
        counts[c] = b
