"""The compiled loops behind the F-score's exact proximal step and conjugate: one threshold a table, in pools.

With a = Pos - c right positives, b wrong negatives and m = beta^2 Pos, one more negative is worth d(a, b) = kappa a / ((a + b + m)
(a + b + m - 1)), kappa = 1 + beta^2, which falls with b. For every table c of weight pi_c there is a threshold theta_c: its count b_c
is what d(a, b) > -2 theta leaves, and the weighted counts have to be what the negatives give. These are integrals of #{t > s} over
windows [shift theta + low, shift theta + high], one beside the other. beta >= 1: the thresholds rise with c, so that the problem is an
isotonic regression. All tables are one pool at first, which falls apart, a pooled root at a time, where a part of it would rather lie lower.
"""

from __future__ import annotations

import numpy as np

from mtldsl.utils.jit import compiled


@compiled("f8(f8, f8, f8, f8)", inside=True)
def _rises(a, b, m, kappa):
    """Delta of b wrong negatives less Delta of b - 1, at a right positives."""
    x = a + b + m
    return kappa * a / x / (x - 1.0)


@compiled("i8(f8, f8, f8, f8, i8, b1)", inside=True)
def _count(theta, a, m, kappa, N, closed):
    """Return how many negatives are worth more than -2 theta, or as much where `closed`."""
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


@compiled("i8(f8[::1], f8, i8, i8)", inside=True)
def _above(t, s, low, high):
    """#{t > s} of descending numbers, known to lie in [low, high]."""
    while low < high:
        middle = (low + high) // 2
        if t[middle] > s:
            low = middle + 1
        else:
            high = middle
    return low


@compiled("Tuple((f8, i8, i8))(f8[::1], f8[::1], f8, f8, i8, i8)", inside=True)
def _window(t, sums, low, high, least, most):
    """(the integral of #{t > s} over s in [low, high], #{t > low}, #{t > high}), both known to lie in [least, most]; sums: those of the
    first k of t.
    """
    n_high = _above(t, high, least, most)
    n_low = _above(t, low, n_high, most)
    area = n_high * (high - low)
    if n_low - n_high <= 24:
        for j in range(n_high, n_low):
            area += t[j] - low
    else:
        area += sums[n_low] - sums[n_high] - (n_low - n_high) * low
    return area, n_low, n_high


@compiled("f8(f8[::1], f8[::1], f8, f8, f8, f8, f8, i8, i8)", inside=True)
def _linear_root(t, sums, low, high, target, left, right, least, most):
    """theta in [left, right] with the area of the window [theta + low, theta + high] = target: falling, piecewise linear."""
    theta = 0.5 * (left + right)
    for k in range(200):
        area, n_low, n_high = _window(t, sums, theta + low, theta + high, least, most)
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
                if (
                    _above(t, tangent + low, least, most) == n_low
                    and _above(t, tangent + high, least, most) == n_high
                ):
                    return tangent  # the same piece
                if k % 4 != 3:
                    new = tangent
        if not left < new < right:
            break
        theta = new
    return theta


@compiled("Tuple((i8, i8))(f8, f8, f8, f8, i8)", inside=True)
def _count_around(theta, a, m, kappa, N):
    """The counts of a table left and right of theta."""
    right = _count(theta, a, m, kappa, N, True)
    if a <= 0.0:
        return _count(theta, a, m, kappa, N, False), right
    if right > 0 and _rises(a, float(right), m, kappa) == -2.0 * theta:
        return right - 1, right
    return right, right


@compiled("f8(f8[::1], f8[::1], i8, i8, f8[::1], f8[::1], f8, f8, f8, f8, f8, f8, i8[:, ::1])", inside=True)
def _pooled_root(t, sums, i0, i1, a, mass, u, shift, m, kappa, left, right, ends):
    """theta where the window's area, falling, crosses the weighted counts, rising with jumps; it lies in [left, right].

    Bisection in theta, or in the counts of the table that has most of them in between, until no count lies in between. Tables whose count
    is known are asked no more. ends (K, 5): scratch.
    """
    N = t.size
    low, high = u * mass[i0], u * mass[i1]
    least = _above(t, shift * right + high, 0, N)
    most = _above(t, shift * left + low, least, N)
    # the weighted counts that are known, and how many tables are open: their numbers are in ends[:, 4]
    known, n = 0.0, 0
    for i in range(i0, i1):
        # what jumps at an end lies in between as well: a part of a pool may have its root there
        ends[i, 0], ends[i, 1] = _count_around(left, a[i], m, kappa, N)
        _, ends[i, 1] = _count_around(right, a[i], m, kappa, N)
        ends[n, 4] = i
        n += 1
    # how far the area lies above the counts at the left end, below them at the right; 0: not known
    above, below = 0.0, 0.0
    for k in range(400):
        still, between, widest, at = 0, 0, 0, i0
        for o in range(n):
            i = ends[o, 4]
            width = ends[i, 1] - ends[i, 0]
            if width <= 0:
                known += (mass[i + 1] - mass[i]) * ends[i, 0]
                continue
            ends[still, 4] = i
            still += 1
            between += width
            if width > widest:
                widest, at = width, i
        n = still
        if n == 0:
            break
        theta = 0.5 * (left + right)
        if above > 0.0 and below > 0.0 and k % 3 > 0:
            theta = left + (right - left) * above / (above + below)
        if between <= 2 or k >= 60 or not left < theta < right:
            theta = 0.0
            if a[at] > 0.0:
                theta = -0.5 * _rises(a[at], float(ends[at, 0] + (widest + 1) // 2), m, kappa)
        area, _, _ = _window(t, sums, shift * theta + low, shift * theta + high, least, most)
        from_left, from_right = known, known
        for o in range(n):
            i = ends[o, 4]
            ends[i, 2], ends[i, 3] = _count_around(theta, a[i], m, kappa, N)
            from_left += (mass[i + 1] - mass[i]) * ends[i, 2]
            from_right += (mass[i + 1] - mass[i]) * ends[i, 3]
        if area > u * from_right:
            left, above = theta, area - u * from_right
            for o in range(n):
                ends[ends[o, 4], 0] = ends[ends[o, 4], 3]
        elif area < u * from_left:
            right, below = theta, u * from_left - area
            for o in range(n):
                ends[ends[o, 4], 1] = ends[ends[o, 4], 2]
        else:
            return theta
    if shift == 0.0:
        return 0.5 * (left + right)
    return _linear_root(t, sums, low, high, u * known, left, right, least, most)


@compiled(
    "i8(f8[::1], f8[::1], i8, i8, f8[::1], f8[::1], f8, f8, f8, f8, f8, f8[::1], i8[:, ::1])", inside=True
)
def _first_to_split(t, sums, i0, i1, a, mass, u, shift, m, kappa, theta, b, ends):
    """Counts b of a pool at its level theta, and where it falls apart: the first table of the part that would rather lie higher; -1: nowhere."""
    N, at_level = t.size, shift * theta
    area, _, _ = _window(t, sums, at_level + u * mass[i0], at_level + u * mass[i1], 0, N)
    from_left, from_right = 0.0, 0.0
    for i in range(i0, i1):
        ends[i, 0], ends[i, 1] = _count_around(theta, a[i], m, kappa, N)
        from_left += (mass[i + 1] - mass[i]) * ends[i, 0]
        from_right += (mass[i + 1] - mass[i]) * ends[i, 1]
    share = 0.0
    if from_right > from_left:
        share = min(1.0, max(0.0, (area / u - from_left) / (from_right - from_left)))
    ahead, most, at = 0.0, 1e-14 * (abs(area) + u * from_right), -1
    for i in range(i0, i1):
        b[i] = ends[i, 0] + share * (ends[i, 1] - ends[i, 0])
        if i > i0 and ahead > most:
            most, at = ahead, i
        own, _, _ = _window(t, sums, at_level + u * mass[i], at_level + u * mass[i + 1], 0, N)
        ahead += u * (mass[i + 1] - mass[i]) * b[i] - own
    return at


@compiled("i8(f8[::1], f8[::1], f8[::1], f8[::1], f8, f8, f8, f8, f8[::1], f8[::1], i8[:, ::1])")
def thresholds(t, sums, a, mass, u, shift, m, kappa, b, levels, pools):
    """Counts b (K,) of the tables with a (falling) right positives, pools of equal thresholds with their levels; returns how many.

    t : descending scores of the negatives, sums (N + 1,) of the first of them
    mass : (K + 1,) from 0 to 1, rising strictly: mass[i + 1] - mass[i] is the weight of table i, u mass the windows' ends
    pools : (K, 5) first and last table (excluded), whether its level is where a count jumps, #{t > the window's low and high end}
    """
    K, N = a.size, t.size
    ends = np.empty((K, 5), np.int64)
    stack, bracket = np.empty((K + 1, 2), np.int64), np.empty((K + 1, 2))
    stack[0, 0], stack[0, 1], bracket[0, 0], bracket[0, 1] = 0, K, 0.0, 0.0
    for i in range(K):
        if a[i] > 0.0:
            bracket[0, 0] = min(bracket[0, 0], -0.5 * _rises(a[i], 1.0, m, kappa))
    size, found = 1, 0
    while size > 0:
        size -= 1
        i0, i1, left, right = stack[size, 0], stack[size, 1], bracket[size, 0], bracket[size, 1]
        theta = _pooled_root(t, sums, i0, i1, a, mass, u, shift, m, kappa, left, right, ends)
        at = _first_to_split(t, sums, i0, i1, a, mass, u, shift, m, kappa, theta, b, ends)
        if at >= 0:
            stack[size, 0], stack[size, 1], bracket[size, 0], bracket[size, 1] = at, i1, theta, right
            stack[size + 1, 0], stack[size + 1, 1] = i0, at
            bracket[size + 1, 0], bracket[size + 1, 1] = left, theta
            size += 2
            continue
        pools[found, 0], pools[found, 1], levels[found], pools[found, 2] = i0, i1, theta, 0
        pools[found, 3] = _above(t, shift * theta + u * mass[i0], 0, N)
        pools[found, 4] = _above(t, shift * theta + u * mass[i1], 0, N)
        for i in range(i0, i1):
            if ends[i, 1] > ends[i, 0]:
                pools[found, 2] = 1
        found += 1
    return found


@compiled("f8(f8[::1], f8[::1], f8[::1], f8, f8)")
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


@compiled("void(f8[::1], i8, f8, f8, f8, f8[::1], i8[::1])", inside=True)
def largest_tables(z, P, spare, m, kappa, heights, counts):
    """heights[c] = max over b of Delta(b, c) + 2 (the sum of the b first of z, descending), counts[c] the b: it falls with c.

    There are P + spare positives.
    """
    b, paid = 0, 0.0
    for c in range(P, -1, -1):
        a = P - c + spare
        x = a + b + m  # one more rises by kappa a / x / (x + 1)
        while b < z.size and (2.0 * z[b] * x * (x + 1.0) > -kappa * a if a > 0.0 else z[b] > 0.0):
            paid += 2.0 * z[b]
            b += 1
            x += 1.0
        heights[c] = 1.0 - kappa * a / (a + b + m) + paid
        counts[c] = b
