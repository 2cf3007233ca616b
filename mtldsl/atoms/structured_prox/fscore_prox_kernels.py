"""The compiled loops of the F-score's exact proximal step: Newton's method on the survival function of the count of wrong positives.

r_l, falling, is the probability that at least l positives are flipped, those with the lowest scores first: pi_c = r_c - r_{c+1}. For
given r the negatives follow from thresholds (`fscore_table_kernels`). What is left is to maximise a concave function of r, whose gradient
is v_l - v_{l-1} with v_c the value of the best table with c at the scores that r leads to; max v - sum_c pi_c v_c is the exact gap.
"""

from __future__ import annotations

import numpy as np

from mtldsl.atoms.structured_prox.fscore_table_kernels import largest_tables, thresholds
from mtldsl.utils.jit import compiled

#: Probabilities that differ by less are equal.
PROBABILITY_TOL = 1e-13

#: Gap of a solution, relative to the terms that cancel in it.
GAP_TOL = 1e-15

#: The same where no step helps any more.
STALLED_GAP_TOL = 1e-11

#: Cuts of one step.
STEP_CUTS = 8


@compiled("void(f8[::1], f8[::1], f8[::1])", inside=True)
def isotonic(x, weights, out):
    """The nearest falling sequence in [0, 1]: neighbours that rise are pooled."""
    n = x.size
    values, sums, starts = np.empty(n), np.empty(n), np.empty(n + 1, np.int64)
    k = 0
    for i in range(n):
        values[k], sums[k], starts[k] = x[i], weights[i], i
        k += 1
        while k > 1 and values[k - 2] <= values[k - 1]:
            total = sums[k - 2] + sums[k - 1]
            values[k - 2] += (values[k - 1] - values[k - 2]) * (sums[k - 1] / total)
            sums[k - 2] = total
            k -= 1
    starts[k] = n
    for p in range(k):
        value = min(1.0, max(0.0, values[p]))
        for i in range(starts[p], starts[p + 1]):
            out[i] = value


@compiled("void(f8[::1], f8[::1])", inside=True)
def _copy(a, b):
    for i in range(a.size):
        b[i] = a[i]


@compiled("i8(f8[::1], f8, i8[::1], f8[::1], f8[::1])", inside=True)
def _tables_of(r, spare, tables, a, mass):
    """The tables c that have a weight, their right positives and the mass before each; equal probabilities are made so."""
    P, K, before = r.size, 0, 1.0
    mass[0] = 0.0
    for c in range(P + 1):
        after = r[c] if c < P else 0.0
        if before - after > PROBABILITY_TOL:
            tables[K], a[K], mass[K + 1] = c, P - c + spare, 1.0 - after
            K += 1
            before = after
        elif c < P:
            r[c] = before
    mass[K] = 1.0
    return K


@compiled("void(f8[::1], f8, f8[::1], i8, f8[::1], i8[:, ::1], f8[::1], f8[::1])", inside=True)
def _negatives(t, u, mass, n_pools, levels, pools, q, z):
    """Flip probabilities and scores of the negatives: at a pool's level within its window, constant probabilities between windows."""
    j = t.size
    for p in range(n_pools):
        while j > pools[p, 3]:
            j -= 1
            q[j] = mass[pools[p, 0]]
            z[j] = t[j] - u * q[j]
        while j > pools[p, 4]:
            j -= 1
            z[j] = levels[p]
            q[j] = min(1.0, max(0.0, (t[j] - levels[p]) / u))
    while j > 0:
        j -= 1
        q[j], z[j] = 1.0, t[j] - u


@compiled(
    "Tuple((f8, f8))(f8[::1], f8, f8[::1], f8[::1], f8[::1], i8, i8[::1], f8[::1], f8[::1])", inside=True
)
def _gap(up, u, r, z, heights, K, tables, mass, v):
    """(max v - sum of pi_c v_c, the size of the terms that cancel in it); v is filled."""
    paid, size = 0.0, 1.0
    v[0] = highest = heights[0]
    for c in range(1, up.size + 1):
        score = up[c - 1] + u * r[c - 1]
        paid += 2.0 * score
        size += 2.0 * abs(score)
        v[c] = heights[c] - paid
        highest = max(highest, v[c])
    for j in range(z.size):
        size += 2.0 * max(z[j], 0.0)
    short = 0.0
    for i in range(K):
        short += (mass[i + 1] - mass[i]) * (highest - v[tables[i]])
    return short, size


@compiled("i8(i8, i8[::1], f8[::1], i8[::1], f8[::1], i8[::1], f8[::1])", inside=True)
def _free_tables(K, tables, b, counts, v, free, free_b):
    """Those with a weight, and those that lie above the chord between the two next to them that have one."""
    n, i = 0, 0
    for c in range(v.size):
        if i < K and tables[i] == c:
            free[n], free_b[n] = c, b[i]
            n += 1
            i += 1
            continue
        if i == 0:
            chord = v[tables[0]]
        elif i == K:
            chord = v[tables[K - 1]]
        else:
            low, high = tables[i - 1], tables[i]
            chord = v[low] + (v[high] - v[low]) * float(c - low) / float(high - low)
        if v[c] > chord + 1e-16 * abs(chord):
            free[n], free_b[n] = c, float(counts[c])
            n += 1
    return n


@compiled("void(i8, i8[::1], f8[::1], i8, i8[:, ::1], f8[::1], i8[::1], f8[:, ::1])")
def overlaps(n, tables, b, n_pools, pools, sizes, first, shares):
    """For the n groups of probabilities between neighbouring tables: how many samples are in one, the first of the (at most two) pools
    without a pinned level that the flips b[i + 1] to b[i] reach into (-1: none), and how far.
    """
    start = 0
    for i in range(n):
        high, low = b[i], b[i + 1]
        alone = max(high - low, 0.0)
        first[i], shares[i, 0], shares[i, 1] = -1, 0.0, 0.0
        while start + 1 < n_pools and pools[start, 4] >= high and pools[start + 1, 3] >= high:
            start += 1
        p = start
        while p < n_pools and pools[p, 3] > low:
            reach = min(high, float(pools[p, 3])) - max(low, float(pools[p, 4]))
            if reach > 0.0 and pools[p, 3] > pools[p, 4]:
                alone -= reach
                if pools[p, 2] == 0:
                    if first[i] < 0:
                        first[i], shares[i, 0] = p, reach
                    elif p == first[i] + 1:
                        shares[i, 1] = reach
            p += 1
        sizes[i] = float(tables[i + 1] - tables[i]) + max(alone, 0.0)


@compiled("void(i8, f8[::1], f8[::1], i8[::1], f8[:, ::1], i8, i8[:, ::1], f8[::1])", inside=True)
def _newton(n, gains, sizes, first, shares, n_pools, pools, step):
    """step = (sizes + M K^-1 M^T)^-1 gains, M the shares of the groups in pools of K samples: a tridiagonal system over the pools."""
    diagonal, beside, rhs = np.empty(n_pools), np.empty(n_pools), np.empty(n_pools)
    for p in range(n_pools):
        beside[p], rhs[p] = 0.0, 0.0
        diagonal[p] = max(1.0, float(pools[p, 3] - pools[p, 4]))
    for i in range(n):
        p = first[i]
        if p >= 0:
            one, two = shares[i, 0], shares[i, 1]
            diagonal[p] += one * one / sizes[i]
            rhs[p] += one * gains[i] / sizes[i]
            if two > 0.0:
                diagonal[p + 1] += two * two / sizes[i]
                rhs[p + 1] += two * gains[i] / sizes[i]
                beside[p] += one * two / sizes[i]
    for p in range(1, n_pools):
        factor = beside[p - 1] / diagonal[p - 1]
        diagonal[p] -= factor * beside[p - 1]
        rhs[p] -= factor * rhs[p - 1]
    for p in range(n_pools - 1, -1, -1):
        if p + 1 < n_pools:
            rhs[p] -= beside[p] * rhs[p + 1]
        rhs[p] /= diagonal[p]
    for i in range(n):
        rest = gains[i]
        p = first[i]
        if p >= 0:
            rest -= shares[i, 0] * rhs[p]
            if shares[i, 1] > 0.0:
                rest -= shares[i, 1] * rhs[p + 1]
        step[i] = rest / sizes[i]


@compiled("f8(f8[::1], f8[::1], i8, i8[::1], f8[::1], f8[::1], f8[::1])", inside=True)
def _towards(r, v, n, free, sizes, step, direction):
    """direction = the isotonic r + step less r, in the metric of the groups' sizes; its slope."""
    P = r.size
    wanted, weights = np.empty(P), np.empty(P)
    for l in range(P):
        weights[l] = 1.0
        wanted[l] = 1.0 if l < free[0] else r[l]
    for i in range(n):
        weight = sizes[i] / float(free[i + 1] - free[i])
        for l in range(free[i], free[i + 1]):
            wanted[l], weights[l] = r[l] + step[i], weight
    isotonic(wanted, weights, direction)
    slope = 0.0
    for l in range(P):
        direction[l] -= r[l]
        slope += direction[l] * (v[l + 1] - v[l])
    return slope


@compiled(
    "Tuple((i8, i8, f8, f8, i8))(f8[::1], f8[::1], f8, f8, f8, f8, f8[::1], f8[::1], i8[::1], f8[::1], f8[::1], f8[::1], f8[::1], "
    "i8[:, ::1], i8)",
    inside=True,
)
def _survival_step(down, up, spare, m, kappa, u, r, q, tables, a, mass, b, levels, pools, most):
    """Minimise the F-score hinge + |z - t|^2 / u over z; returns (tables, pools, gap, the size of its terms, evaluations).

    down (N,) : scores t of the negatives, descending; up (P,): of the positives, ascending
    spare     : positives beside them that are never flipped; m: beta^2 Pos + negatives that are always flipped
    r (P,)    : flip probabilities of the positives, a start and then the answer; q (N,): those of the negatives, falling, the same
    the rest  : what `thresholds` says at the answer, in the first entries of arrays of P + 1 (mass: P + 2) entries
    most      : evaluations
    """
    N, P = down.size, up.size
    sums = np.empty(N + 1)
    sums[0] = 0.0
    for j in range(N):
        sums[j + 1] = sums[j] + down[j]
    z, v, heights, counts = np.empty(N), np.empty(P + 1), np.empty(P + 1), np.empty(P + 1, np.int64)
    free, free_b, gains, step = np.empty(P + 1, np.int64), np.empty(P + 1), np.empty(P + 1), np.empty(P + 1)
    sizes, first, shares = np.empty(P + 1), np.empty(P + 1, np.int64), np.empty((P + 1, 2))
    direction, base, best_r = np.empty(P), np.empty(P), np.empty(P)
    for l in range(P):  # loops compile in a third of the time that slices take
        direction[l], base[l], best_r[l] = 0.0, r[l], r[l]
    best, since, asked = np.inf, 0, 0
    t, low, at_low, high, high_slope, first_slope, cuts = 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, STEP_CUTS
    while True:
        K = _tables_of(r, spare, tables, a, mass)
        n_pools = thresholds(down, sums, a[:K], mass[: K + 1], u, 1.0, m, kappa, b, levels, pools)
        _negatives(down, u, mass, n_pools, levels, pools, q, z)
        largest_tables(z, P, spare, m, kappa, heights, counts)
        gap, size = _gap(up, u, r, z, heights, K, tables, mass, v)
        asked += 1
        since += 1
        if gap < best:
            since = 0 if gap < 0.5 * best else since
            best = gap
            _copy(r, best_r)
        stuck = asked >= most or (since > 25 and best <= STALLED_GAP_TOL * size)
        if gap <= GAP_TOL * size or stuck:
            if not stuck or gap <= best:
                return K, n_pools, gap, size, asked
            most, best = asked, np.inf  # once more, at the best
            _copy(best_r, r)
            continue
        slope = 0.0
        for l in range(P):
            slope += (v[l + 1] - v[l]) * direction[l]
        if cuts < STEP_CUTS and (slope < -0.5 * first_slope or (slope > 0.5 * first_slope and t < 1.0)):
            if slope < 0.0:
                high, high_slope = t, slope
            else:
                low, at_low = t, slope
            t = low + (high - low) * min(0.9, max(0.1, at_low / (at_low - high_slope)))
            cuts += 1
            for l in range(P):
                r[l] = base[l] + t * direction[l]
            continue
        n = _free_tables(K, tables, b, counts, v, free, free_b) - 1
        overlaps(n, free, free_b, n_pools, pools, sizes, first, shares)
        for i in range(n):
            gains[i] = (v[free[i + 1]] - v[free[i]]) / (2.0 * u)
        _newton(n, gains, sizes, first, shares, n_pools, pools, step)
        first_slope = _towards(r, v, n, free, sizes, step, direction)
        if not first_slope > 0.0 or asked % 12 == 0:  # a diagonal that majorises
            for i in range(n):
                sizes[i] += shares[i, 0] + shares[i, 1]
                step[i] = gains[i] / sizes[i]
            first_slope = _towards(r, v, n, free, sizes, step, direction)
            if not first_slope > 0.0:
                most, best = asked, np.inf
                _copy(best_r, r)
                continue
        _copy(r, base)
        t, low, at_low, high, cuts = 1.0, 0.0, first_slope, 1.0, 0
        for l in range(P):
            r[l] = base[l] + direction[l]


@compiled(
    "void(i8[::1], f8[::1], i8[::1], i8[:, ::1], i8[:, ::1], f8, f8[::1], i8[::1], i8, f8[::1], i8[::1], f8[::1], f8[::1], f8[::1], "
    "f8[::1], i8[:, ::1], i8[:, ::1], f8[::1])"
)
def fscore_steps(
    chosen,
    margins,
    samples,
    starts,
    ends,
    square,
    u,
    warm,
    most,
    flips,
    tables,
    a,
    mass,
    b,
    levels,
    pools,
    found,
    gaps,
):
    """The flip probabilities of every task's step, u its length twice; from those in `flips` where the task is warm.

    samples, starts : the tasks' positives and negatives; chosen, margins: those that may be flipped, margins ascending, up to ends
    tables ... pools : what `thresholds` says at the answer, of task i from starts[i, 0] + 2 i on
    found (k, 5) : tables, pools, positives and negatives that are surely flipped, evaluations; gaps (k,): relative to the terms
    """
    kappa = 1.0 + square
    for i in range(starts.shape[0]):
        up, down, at = starts[i, 0], starts[i, 1], starts[i, 0] + 2 * i
        while up < ends[i, 0] and margins[up] < -u[i]:
            up += 1
        while down < ends[i, 1] and margins[down] < -u[i]:
            down += 1
        found[i, 2], found[i, 3] = up - starts[i, 0], down - starts[i, 1]
        P, N = ends[i, 0] - up, ends[i, 1] - down
        spare = float(starts[i, 1] - starts[i, 0] - found[i, 2] - P)
        m = square * float(starts[i, 1] - starts[i, 0]) + float(found[i, 3])
        falling, q = np.empty(N), np.empty(N)
        scores, r, wanted, ones = np.empty(P), np.empty(P), np.empty(P), np.empty(P)
        for j in range(N):
            falling[j] = -margins[down + j]
        for l in range(P):
            scores[l], ones[l] = margins[up + l], 1.0
            wanted[l] = flips[chosen[up + l]]
        if warm[i] == 0:
            heights, counts = np.empty(P + 1), np.empty(P + 1, np.int64)
            for j in range(N):
                q[j] = falling[j] - 0.5 * u[i]
            largest_tables(q, P, spare, m, kappa, heights, counts)
            for l in range(P):
                wanted[l] = (heights[l + 1] - heights[l] - 2.0 * scores[l]) / (2.0 * u[i])
        isotonic(wanted, ones, r)
        K, n_pools, gap, size, found[i, 4] = _survival_step(
            falling, scores, spare, m, kappa, u[i], r, q, tables[at : at + P + 1], a[at : at + P + 1], mass[at : at + P + 2],
            b[at : at + P + 1], levels[at : at + P + 1], pools[at : at + P + 1], most,
        )  # fmt: skip
        found[i, 0], found[i, 1], gaps[i] = K, n_pools, gap / size
        for s in range(starts[i, 0], starts[i, 2]):
            flips[samples[s]] = 0.0
        for s in range(starts[i, 0], up):
            flips[chosen[s]] = 1.0
        for s in range(starts[i, 1], down):
            flips[chosen[s]] = 1.0
        for l in range(P):
            flips[chosen[up + l]] = r[l]
        for j in range(N):
            flips[chosen[down + j]] = q[j]
