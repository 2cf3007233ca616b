"""The compiled loops behind the F-score's exact proximal step and conjugate: one threshold a table, in pools.

With a = Pos - c right positives, b wrong negatives and m = beta^2 Pos, one more negative is worth d(a, b) = kappa a / ((a + b + m)
(a + b + m - 1)), kappa = 1 + beta^2, which falls with b. For every table c of weight pi_c there is a threshold theta_c: its count b_c
is what d(a, b) > -2 theta leaves, and the weighted counts have to be what the negatives give. These are integrals of #{t > s} over
windows [shift theta + low, shift theta + high], one beside the other. beta >= 1: the thresholds rise with c, so that the problem is an
isotonic regression. Its pools grow from neighbours that lie in the wrong order, for a few rounds; what is then not in order is one pool that
falls apart again, a pooled root at a time, where a part of it would rather lie lower.
"""

from __future__ import annotations

import numpy as np

from mtldsl.utils.jit import compiled

__all__ = [
    "largest_tables",
    "promised_value",
    "thresholds",
]

#: Rounds of merging neighbours.
MERGE_ROUNDS = 8


@compiled("f8(f8, f8, f8, f8)", inside=True, error_model="numpy")
def _rises(a, b, m, kappa):
    """Delta of b wrong negatives less Delta of b - 1, at a right positives."""
    x = a + b + m
    return kappa * a / x / (x - 1.0)


@compiled("i8(f8, f8, f8, f8, i8, b1)", inside=True, error_model="numpy")
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


@compiled("i8(f8[::1], f8, i8, i8, i8)", inside=True, error_model="numpy")
def _above(t, s, low, high, near):
    """#{t > s} of descending numbers, known to lie in [low, high]: looked for around `near` with growing strides, then by halves."""
    at, stride = near, 1
    while low <= at < high:
        if t[at] > s:
            low = at + 1
            if at < near:
                break
            at += stride
        else:
            high = at
            if at > near:
                break
            at -= stride
        stride *= 2
    while low < high:
        middle = (low + high) // 2
        if t[middle] > s:
            low = middle + 1
        else:
            high = middle
    return low


@compiled("Tuple((f8, i8, i8))(f8[::1], f8[::1], f8, f8, i8, i8, i8, i8)", inside=True, error_model="numpy")
def _window(t, sums, low, high, least, most, near_low, near_high):
    """(the integral of #{t > s} over s in [low, high], #{t > low}, #{t > high}), both known to lie in [least, most] and guessed; sums:
    those of the first k of t.
    """
    n_high = _above(t, high, least, most, near_high)
    n_low = _above(t, low, n_high, most, near_low)
    area = n_high * (high - low)
    if n_low - n_high <= 24:
        for j in range(n_high, n_low):
            area += t[j] - low
    else:
        area += sums[n_low] - sums[n_high] - (n_low - n_high) * low
    return area, n_low, n_high


@compiled("f8(f8[::1], f8[::1], f8, f8, f8, f8, f8, i8, i8, i8, i8)", inside=True, error_model="numpy")
def _linear_root(t, sums, low, high, target, left, right, least, most, n_low, n_high):
    """theta in [left, right] with the area of the window [theta + low, theta + high] = target: falling, piecewise linear; n_low, n_high:
    guesses of what lies above its ends.
    """
    theta = 0.5 * (left + right)
    for k in range(200):
        area, n_low, n_high = _window(t, sums, theta + low, theta + high, least, most, n_low, n_high)
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
                    _above(t, tangent + low, least, most, n_low) == n_low
                    and _above(t, tangent + high, least, most, n_high) == n_high
                ):
                    return tangent  # the same piece
                if k % 4 != 3:
                    new = tangent
        if not left < new < right:
            break
        theta = new
    return theta


@compiled("Tuple((i8, i8))(f8, f8, f8, f8, i8)", inside=True, error_model="numpy")
def _count_around(theta, a, m, kappa, N):
    """The counts of a table left and right of theta."""
    right = _count(theta, a, m, kappa, N, True)
    if a <= 0.0:
        return _count(theta, a, m, kappa, N, False), right
    if right > 0 and _rises(a, float(right), m, kappa) == -2.0 * theta:
        return right - 1, right
    return right, right


@compiled(
    "f8(f8[::1], f8[::1], i8, i8, f8[::1], f8[::1], f8, f8, f8, f8, f8, f8, i8[:, ::1], i8[:, ::1])",
    inside=True,
    error_model="numpy",
)
def _pooled_root(t, sums, i0, i1, a, mass, u, shift, m, kappa, left, right, ends, near):
    """theta where the window's area, falling, crosses the weighted counts, rising with jumps; it lies in [left, right].

    Bisection in theta, or in the counts of the table that has most of them in between, until no count lies in between. Tables whose count
    is known are asked no more. ends (K, 5): scratch.
    """
    N = t.size
    low, high = u * mass[i0], u * mass[i1]
    least = n_high = _above(t, shift * right + high, 0, N, near[i1 - 1, 0])
    most = n_low = _above(t, shift * left + low, least, N, near[i0, 1])
    known, n = (
        0.0,
        0,
    )  # the weighted counts that are known, and how many tables are open: their numbers are in ends[:, 4]
    for i in range(i0, i1):
        # what jumps at an end lies in between as well: a part of a pool may have its root there
        ends[i, 0], ends[i, 1] = _count_around(left, a[i], m, kappa, N)
        _, ends[i, 1] = _count_around(right, a[i], m, kappa, N)
        ends[n, 4] = i
        n += 1
    above, below = (
        0.0,
        0.0,
    )  # how far the area lies above the counts at the left end, below them at the right; 0: not known
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
            theta = (
                -0.5 * _rises(a[at], float(ends[at, 0] + (widest + 1) // 2), m, kappa) if a[at] > 0.0 else 0.0
            )
        area, n_low, n_high = _window(
            t, sums, shift * theta + low, shift * theta + high, least, most, n_low, n_high
        )
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
    return _linear_root(t, sums, low, high, u * known, left, right, least, most, n_low, n_high)


@compiled("f8(f8[::1], f8[::1], f8, f8, f8, f8, f8, f8, f8, i8[::1])", inside=True, error_model="numpy")
def _own_root(t, sums, low, high, weight, shift, a, m, kappa, near):
    """theta of one table alone, whose window ends at low and high at zero: found among the counts, from a guess on.

    near (3,) : guesses of #{t > the window's high end}, of #{t > its low end}, and of the count where the table's is not enough any more
    """
    if a <= 0.0:
        return 0.0
    # the first count b whose threshold, where b - 1 becomes b, leaves no more area than b asks for
    first, last, found, N = 1, t.size + 1, -1.0, t.size
    b, stride, n_high, n_low = min(max(near[2], 1), N), 1, near[0], near[1]
    while first < last:
        theta = -0.5 * _rises(a, float(b), m, kappa)
        area, n_low, n_high = _window(t, sums, shift * theta + low, shift * theta + high, 0, N, n_low, n_high)
        if area <= weight * b:
            last, found = b, area
            b -= stride
        else:
            first = b + 1
            b += stride
        stride *= 2
        if not first <= b < last:
            b = (first + last) // 2
    theta = -0.5 * _rises(a, float(first), m, kappa) if first <= N else 0.0
    if found < 0.0:
        found, n_low, n_high = _window(
            t, sums, shift * theta + low, shift * theta + high, 0, N, n_low, n_high
        )
    if shift > 0.0 and first > 1 and found < weight * (first - 1):  # the count stays at first - 1 up to there
        left = -0.5 * _rises(a, float(first - 1), m, kappa)
        return _linear_root(t, sums, low, high, weight * (first - 1), left, theta, 0, N, n_low, n_high)
    return theta


@compiled("void(f8[::1], f8[::1], i8[:, ::1])", inside=True, error_model="numpy")
def _guess(q, mass, near):
    """Return what `_own_root` starts from, for every table, at flip probabilities q of the negatives, falling, near the answer's."""
    j = 0
    for i in range(mass.size - 2, -1, -1):
        while j < q.size and q[j] >= mass[i + 1]:
            j += 1
        near[i, 0], inside = j, 0.0
        while j < q.size and q[j] > mass[i]:
            inside += q[j] - mass[i]
            j += 1
        near[i, 1] = j
        near[i, 2] = near[i, 0] + 1 + int(inside / (mass[i + 1] - mass[i]) + 1e-9)


@compiled(
    "i8(f8[::1], f8[::1], i8, i8, f8[::1], f8[::1], f8, f8, f8, f8, f8, f8[::1], i8[:, ::1], i8[:, ::1], i8[:, ::1])",
    inside=True,
    error_model="numpy",
)
def _first_to_split(t, sums, i0, i1, a, mass, u, shift, m, kappa, theta, b, pools, ends, near):
    """Counts b of a pool at its level theta, and where it falls apart: the first table of the part that would rather lie higher, at the start of
    a group (pools[:, 5] != 0); -1: nowhere.
    """
    N = t.size
    area, n_low, n_high = _window(
        t,
        sums,
        shift * theta + u * mass[i0],
        shift * theta + u * mass[i1],
        0,
        N,
        near[i0, 1],
        near[i1 - 1, 0],
    )
    near[i0, 1], near[i1 - 1, 0] = n_low, n_high
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
        own = area  # of a pool of one table
        if i1 - i0 > 1:
            own, near[i, 1], near[i, 0] = _window(
                t,
                sums,
                shift * theta + u * mass[i],
                shift * theta + u * mass[i + 1],
                0,
                N,
                near[i, 1],
                near[i, 0],
            )
        if i > i0 and pools[i, 5] != 0 and ahead > most:
            most, at = ahead, i
        ahead += u * (mass[i + 1] - mass[i]) * b[i] - own
    return at


@compiled(
    "i8(f8[::1], f8[::1], f8[::1], f8, f8, f8, i8[:, ::1], f8[::1], i8[:, ::1])",
    inside=True,
    error_model="numpy",
)
def _guessed_pools(own, a, mass, u, shift, m, near, levels, pools):
    """Pools of tables whose own levels are not in order, as they were if areas and counts were linear around these; returns how many."""
    found, slopes = 0, np.empty(a.size)
    for i in range(a.size):
        slope = shift * float(near[i, 1] - near[i, 0]) + 1e-300
        if own[i] < 0.0:  # counts grow by (a + b + m) / 2 |theta|
            slope += 0.5 * u * (mass[i + 1] - mass[i]) * (a[i] + m + near[i, 2]) / -own[i]
        levels[found], slopes[found] = own[i], slope
        pools[found, 0], pools[found, 1] = i, i + 1
        found += 1
        while found > 1 and levels[found - 2] > levels[found - 1]:
            found -= 1
            slopes[found - 1] += slopes[found]
            levels[found - 1] += (levels[found] - levels[found - 1]) * (slopes[found] / slopes[found - 1])
            pools[found - 1, 1] = pools[found, 1]
    return found


@compiled(
    "i8(f8[::1], f8[::1], f8[::1], f8[::1], f8, f8, f8, f8, f8[::1], f8[::1], f8[::1], i8[:, ::1])",
    error_model="numpy",
)
def thresholds(t, sums, a, mass, u, shift, m, kappa, q, b, levels, pools):
    """Counts b (K,) of the tables with a (falling) right positives, pools of equal thresholds with their levels; returns how many.

    t : descending scores of the negatives, sums (N + 1,) of the first of them
    mass : (K + 1,) from 0 to 1, rising strictly: mass[i + 1] - mass[i] is the weight of table i, u mass the windows' ends
    q : (N,) falling flip probabilities of the negatives near those of the answer, where its search begins; they change no answer
    pools : (K, 6) first and last table (excluded), whether its level is where a count jumps, #{t > the window's low and high end}, scratch
    """
    K = a.size
    ends, near, own = np.empty((K, 5), np.int64), np.empty((K, 3), np.int64), np.empty(K)
    _guess(q, mass, near)
    lowest = 0.0
    for i in range(K):
        low, high = u * mass[i], u * mass[i + 1]
        own[i] = _own_root(t, sums, low, high, u * (mass[i + 1] - mass[i]), shift, a[i], m, kappa, near[i])
        lowest = min(lowest, own[i])
        pools[i, 5] = 1
    guessed, found = _guessed_pools(own, a, mass, u, shift, m, near, levels, pools), 0
    stack, bracket = np.empty((K + 1, 2), np.int64), np.empty((K + 1, 2))
    for p in range(guessed):
        stack[p, 0], stack[p, 1] = pools[p, 0], pools[p, 1]
    for p in range(guessed):
        i0, i1 = stack[p, 0], stack[p, 1]
        theta, stays = own[i0], True
        if i1 - i0 > 1:
            low = high = theta
            for i in range(i0 + 1, i1):
                low, high = min(low, own[i]), max(high, own[i])
            theta = _pooled_root(t, sums, i0, i1, a, mass, u, shift, m, kappa, low, high, ends, near)
            stays = (
                _first_to_split(t, sums, i0, i1, a, mass, u, shift, m, kappa, theta, b, pools, ends, near) < 0
            )
        if stays:
            pools[found, 0], pools[found, 1], levels[found] = i0, i1, theta
            found += 1
            continue
        for i in range(i0, i1):
            pools[found, 0], pools[found, 1], levels[found] = i, i + 1, own[i]
            found += 1
    for rounds in range(MERGE_ROUNDS + 1):
        kept, p = 0, 0
        while p < found:
            last = p
            while last + 1 < found and levels[last] >= levels[last + 1]:
                last += 1
            i0, i1, theta = pools[p, 0], pools[last, 1], levels[p]
            if last > p and rounds < MERGE_ROUNDS:
                theta = _pooled_root(
                    t, sums, i0, i1, a, mass, u, shift, m, kappa, levels[last], theta, ends, near
                )
            elif last > p:  # a pool that grows by one table at a time: from here on pools fall apart instead
                kept = -1
                break
            pools[kept, 0], pools[kept, 1], levels[kept] = i0, i1, theta
            kept, p = kept + 1, last + 1
        if kept < 0 or kept == found:
            break
        found = kept
    if kept < 0:
        for i in range(K):
            pools[i, 5] = 0
        highest = levels[0]
        for p in range(found):
            pools[pools[p, 0], 5] = 1
            highest = max(highest, levels[p])
        stack[0, 0], stack[0, 1], bracket[0, 0], bracket[0, 1] = 0, K, lowest, highest
        size, found = 1, 0
        while size > 0:
            size -= 1
            i0, i1, left, right = stack[size, 0], stack[size, 1], bracket[size, 0], bracket[size, 1]
            theta = _pooled_root(t, sums, i0, i1, a, mass, u, shift, m, kappa, left, right, ends, near)
            at = _first_to_split(t, sums, i0, i1, a, mass, u, shift, m, kappa, theta, b, pools, ends, near)
            if at < 0:
                pools[found, 0], pools[found, 1], levels[found] = i0, i1, theta
                found += 1
                continue
            stack[size, 0], stack[size, 1], bracket[size, 0], bracket[size, 1] = at, i1, theta, right
            stack[size + 1, 0], stack[size + 1, 1] = i0, at
            bracket[size + 1, 0], bracket[size + 1, 1] = left, theta
            size += 2
    for p in range(found):
        i0, i1 = pools[p, 0], pools[p, 1]
        _first_to_split(t, sums, i0, i1, a, mass, u, shift, m, kappa, levels[p], b, pools, ends, near)
        pools[p, 2], pools[p, 3], pools[p, 4] = 0, near[i0, 1], near[i1 - 1, 0]
        for i in range(i0, i1):
            if ends[i, 1] > ends[i, 0]:
                pools[p, 2] = 1
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


@compiled("void(f8[::1], i8, f8, f8, f8, f8[::1], i8[::1])", inside=True, error_model="numpy")
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
