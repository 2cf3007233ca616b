"""Compiled quadratic programs over a simplex, and projections on hulls of labellings."""

from __future__ import annotations

import numpy as np

from mtldsl.atoms.inference.map_kernels import cost_of, highest
from mtldsl.atoms.inference.sum_kernels import choose, keep_gaps
from mtldsl.utils.jit import compiled

# --------------------------------------------------------------------------------------------------------------
# The quadratic program over a simplex that cutting planes lead to; an active set method, sequential by nature, so compiled.
#
# Written in small functions of plain loops with their types, callers below callees: without, numba compiles some of them three times.

#: A plane is affinely dependent on others where less than this of its square is left.
DEPENDENT_SHARE = 1e-13

#: Stands for infinity.
UNBOUNDED = 1e300


@compiled("void(f8[:, ::1], f8[::1], i8)", inside=True)
def _solve(L, b, size):
    """b <- (L L^T)^-1 b on the leading part."""
    for i in range(size):
        value = b[i]
        for k in range(i):
            value -= L[i, k] * b[k]
        b[i] = value / L[i, i]
    for i in range(size - 1, -1, -1):
        value = b[i]
        for k in range(i + 1, size):
            value -= L[k, i] * b[k]
        b[i] = value / L[i, i]


@compiled("i8(i8[::1], i8[::1], f8[:, ::1], i8, i8)", inside=True)
def _leave(support, place, L, size, s):
    """The index at place s leaves the support: its row goes, and rotations make the factor triangular again."""
    place[support[s]] = -1
    for r in range(s, size - 1):
        support[r] = support[r + 1]
        place[support[r]] = r
        for k in range(r + 2):
            L[r, k] = L[r + 1, k]
    size -= 1
    for r in range(s, size):
        a, b = L[r, r], L[r, r + 1]
        h = np.sqrt(a * a + b * b)
        cos, sin = a / h, b / h
        L[r, r] = h
        for k in range(r + 1, size):
            one, two = L[k, r], L[k, r + 1]
            L[k, r] = cos * one + sin * two
            L[k, r + 1] = cos * two - sin * one
    return size


@compiled("i8(f8[::1], i8[::1], f8[::1], i8, i8, b1)", inside=True)
def _shift_weight(beta, support, t, size, i, towards):
    """Weight from the support to i (or back) along t, until one index of the support is empty: its place, or -1 where i is."""
    sign, share, block = 1.0, UNBOUNDED, -1
    if not towards:
        sign, share = -1.0, beta[i]
    for s in range(size):
        if sign * t[s] > 0.0 and beta[support[s]] < sign * t[s] * share:
            share, block = beta[support[s]] / (sign * t[s]), s
    for s in range(size):
        rest = beta[support[s]] - sign * share * t[s]
        beta[support[s]] = rest if rest > 0.0 else 0.0
    beta[i] += sign * share
    if block < 0:
        beta[i] = 0.0
    else:
        beta[support[block]] = 0.0
    return block


@compiled(
    "i8(f8[:, ::1], f8, f8[::1], f8[::1], i8[::1], i8[::1], f8[:, ::1], f8[:, ::1], i8, i8, b1)", inside=True
)
def _enter(Q, shift, c, beta, support, place, L, work, size, i, uphill):
    """Index i joins the support; where it depends on it, weight moves along the dependence until one index has none left.

    uphill: i enters because that gains. Otherwise i has weight already, and the direction that does not lose is taken.
    """
    l, t = work[1], work[3]
    while True:
        left = Q[i, i] + shift
        for s in range(size):
            value = Q[i, support[s]] + shift
            for k in range(s):
                value -= L[s, k] * l[k]
            l[s] = value / L[s, s]
            left -= l[s] * l[s]
        if left > DEPENDENT_SHARE * (Q[i, i] + shift):
            for s in range(size):
                L[size, s] = l[s]
            L[size, size] = np.sqrt(left)
            support[size], place[i] = i, size
            return size + 1
        gain = c[i]
        for s in range(size - 1, -1, -1):  # a_i = sum of t_s a_s with sum(t) = 1
            value = l[s]
            for k in range(s + 1, size):
                value -= L[k, s] * t[k]
            t[s] = value / L[s, s]
            gain -= t[s] * c[support[s]]
        block = _shift_weight(beta, support, t, size, i, uphill or gain >= 0.0)
        if block < 0:
            return size
        size = _leave(support, place, L, size, block)


@compiled("void(f8[:, ::1], f8[::1], f8[:, ::1], i8[::1], f8[:, ::1], i8)", inside=True)
def _face_minimum(Q, c, L, support, work, size):
    """work[0] <- the minimum over the affine hull of the support, refined once with the residual of Q alone."""
    x, p, q = work[0], work[1], work[2]
    for s in range(size):
        x[s] = 0.0
    missing = 1.0
    for attempt in range(2):
        for s in range(size):  # a constant in c changes nothing but rounding
            residual = c[support[s]] - c[support[0]]
            for t in range(size):
                residual -= Q[support[s], support[t]] * x[t]
            p[s], q[s] = residual, 1.0
        _solve(L, p, size)
        _solve(L, q, size)
        total_p, total_q = 0.0, 0.0
        for s in range(size):
            total_p += p[s]
            total_q += q[s]
        nu = (total_p - missing) / total_q
        positive = True
        for s in range(size):
            p[s] = x[s] + p[s] - nu * q[s]
            positive = positive and p[s] > 0.0
        if not positive and attempt == 1:
            return
        missing = 1.0
        for s in range(size):
            x[s] = p[s]
            missing -= x[s]
        if not positive:
            return


@compiled("i8(f8[::1], i8[::1], f8[:, ::1], i8)", inside=True)
def _move(beta, support, work, size):
    """To the point work[0], or to where the first weight becomes zero: returns its place, -1 where the point is reached."""
    x = work[0]
    step, block = 1.0, -1
    for s in range(size):
        if x[s] <= 0.0:
            now = beta[support[s]]
            ratio = now / (now - x[s]) if now > x[s] else 0.0
            if ratio < step or block < 0:
                step, block = ratio, s
    for s in range(size):
        i = support[s]
        beta[i] += step * (x[s] - beta[i])
    if block >= 0:
        beta[support[block]] = 0.0
    return block


@compiled("i8(f8[:, ::1], f8[::1], f8[::1], i8[::1], i8[::1], i8, f8)", inside=True)
def _steepest(Q, c, beta, support, place, size, tol):
    """The index outside the support that gains most against the support's own slope; -1 where none gains enough."""
    level, cancels = 0.0, 0.0
    for s in range(size):
        slope = c[support[s]]
        total = slope if slope > 0.0 else -slope
        for t in range(size):
            product = Q[support[s], support[t]] * beta[support[t]]
            slope -= product
            total += product if product > 0.0 else -product
        level += beta[support[s]] * slope
        if total > cancels:
            cancels = total
    best, entering = tol * cancels, -1
    for i in range(c.size):
        if place[i] < 0:
            slope = c[i] - level
            for s in range(size):
                slope -= Q[i, support[s]] * beta[support[s]]
            if slope > best:
                best, entering = slope, i
    return entering


@compiled("f8(f8[:, ::1], f8[::1], i8[::1])", inside=True)
def _prepare(Q, beta, place):
    """The shift, of the size of Q's diagonal; weights below zero become zero, and some weight there must be."""
    shift, total = 0.0, 0.0
    for i in range(place.size):
        place[i] = -1
        shift += Q[i, i]
        if beta[i] > 0.0:
            total += beta[i]
        else:
            beta[i] = 0.0
    if not total > 0.0:
        beta[0] = 1.0
    return shift / place.size if shift > 0.0 else 1.0


@compiled("void(f8[:, ::1], f8[::1], f8[::1])", inside=True)
def _normalize(Q, c, beta):
    """Weights that sum to one; the best vertex where sizes went beyond double precision."""
    total = 0.0
    for i in range(c.size):
        if not beta[i] > 0.0:
            beta[i] = 0.0
        total += beta[i]
    if 0.0 < total < UNBOUNDED:
        for i in range(c.size):
            beta[i] /= total
        return
    best, at = UNBOUNDED, 0
    for i in range(c.size):
        beta[i] = 0.0
        value = 0.5 * Q[i, i] - c[i]
        if value < best:
            best, at = value, i
    beta[at] = 1.0


@compiled("i8(f8[:, ::1], f8[::1], f8[::1], f8)", inside=True)
def minimize_on_simplex(Q, c, beta, tol):
    """argmin over beta >= 0, sum(beta) = 1 of 1/2 beta^T Q beta - c^T beta, in place, from a feasible beta; returns the steps.

    Done where no index gains more than tol times the terms that cancel in the slope.

    Q is a Gram matrix, possibly singular, whose first K rows and columns count, K = c.size. The support is kept affinely independent: the Cholesky factor L of Q + shift,
    which differs by a constant on the simplex, exists exactly then. A new index that depends on the support enters along the
    direction in which Q vanishes, as in the simplex method for linear programs.
    """
    K = c.size
    support, place = np.empty(K, np.int64), np.empty(K, np.int64)
    L, work = np.empty((K, K)), np.empty((4, K))
    shift = _prepare(Q, beta, place)
    size = 0
    for i in range(
        K
    ):  # the support of the start; what depends on others gives or takes its weight along the dependence
        if beta[i] > 0.0:
            size = _enter(Q, shift, c, beta, support, place, L, work, size, i, False)
    limit = 50 + 20 * K
    for steps in range(limit):  # noqa: B007  (returned)
        if size == 1:
            beta[support[0]] = 1.0
        else:
            _face_minimum(Q, c, L, support, work, size)
            block = _move(beta, support, work, size)
            if block >= 0:
                size = _leave(support, place, L, size, block)
                continue
        entering = _steepest(Q, c, beta, support, place, size, tol)
        if entering < 0:
            break
        size = _enter(Q, shift, c, beta, support, place, L, work, size, entering, True)
    _normalize(Q, c, beta)
    return steps


@compiled("i8(f8[:, ::1], f8[::1], f8[::1], f8)")
def solve_on_simplex(Q, c, beta, tol):
    """`minimize_on_simplex` for callers in Python: compiled apart, as most solves reach it from compiled loops alone."""
    return minimize_on_simplex(Q, c, beta, tol)


# --------------------------------------------------------------------------------------------------------------
# The compiled loop of `mtldsl.atoms.structured_prox.polytope`: the minimum-norm-point method, sample by sample.

#: Rounds of one projection.
MAX_ROUNDS = 10_000


@compiled(inside=True)
def _shared(a, b):
    """Return how many entries two labellings have in common: the inner product of what they choose."""
    count = 0
    for place in range(a.size):
        if a[place] == b[place]:
            count += 1
    return count


@compiled()
def project_each(
    points,
    truth,
    table,
    sizes,
    starts,
    eliminates,
    enumerates,
    plan,
    work,
    iwork,
    slots,
    exact,
    found,
    patterns,
    dear,
    tilts,
    expected,
):
    """found[i] = the nearest point to points[i] among expected Upsilon(y) - Upsilon(truth[i]); `slots` vertices are kept at most. With costs
    of whole labellings, `dear`, the one that maximises tilts[i] * expected[i], the expected cost, minus half its squared distance."""
    n, S = points.shape
    E = truth.shape[1] + sizes.size
    label, left = np.empty(truth.shape[1], np.uint8), np.empty(S)
    entries = np.empty((slots, E), np.int64)
    heights, beta, paid = np.empty(slots), np.empty(slots), np.empty(slots)
    for i in range(n):
        choose(table, sizes, starts, truth[i], entries[0])
        beta[0], heights[0], paid[0], count, tilt = 1.0, 0.0, 0.0, 1, tilts[i]
        expected[i] = 0.0
        for s in range(S):
            found[i, s] = 0.0
        for _ in range(MAX_ROUNDS):
            size, along = 0.0, 0.0
            for s in range(S):
                left[s] = points[i, s] - found[i, s]
                along += left[s] * found[i, s]
                size += abs(left[s]) * abs(found[i, s])
            size += tilt * expected[i]
            highest(eliminates, enumerates, left, plan, work, iwork, patterns, dear, i, tilt, label)
            keep_gaps(truth[i], label)
            if count == slots:  # those without weight make room
                kept = 1
                for j in range(1, count):
                    if beta[j] > 0.0:
                        for e in range(E):
                            entries[kept, e] = entries[j, e]
                        beta[kept], heights[kept], paid[kept] = beta[j], heights[j], paid[j]
                        kept += 1
                if kept == count:
                    return False
                count = kept
            new = entries[count]
            choose(table, sizes, starts, label, new)
            paid[count] = cost_of(patterns, dear, i, label)
            rise, height = tilt * (paid[count] - expected[i]) - along, tilt * paid[count]
            for e in range(E):
                if new[e] != entries[0, e]:
                    rise += left[new[e]] - left[entries[0, e]]
                    size += abs(left[new[e]]) + abs(left[entries[0, e]])
                    height += points[i, new[e]] - points[i, entries[0, e]]
            known = False
            for j in range(count):
                known = known or _shared(new, entries[j]) == E
            if rise <= exact * size or known:
                break
            heights[count], beta[count] = height, 0.0
            count += 1
            gram = np.empty((count, count))
            for a in range(count):
                for b in range(a + 1):
                    gram[a, b] = _shared(entries[a], entries[b]) - _shared(entries[a], entries[0])
                    gram[a, b] += E - _shared(entries[b], entries[0])
                    gram[b, a] = gram[a, b]
            minimize_on_simplex(gram, heights[:count], beta[:count], 1e-15)
            for s in range(S):
                found[i, s] = 0.0
            expected[i] = 0.0
            for j in range(1, count):
                if beta[j] > 0.0:
                    expected[i] += beta[j] * paid[j]
                    for e in range(E):
                        found[i, entries[j, e]] += beta[j]
                        found[i, entries[0, e]] -= beta[j]
    return True


# --------------------------------------------------------------------------------------------------------------
# The compiled loops of the AUC's exact proximal step: its flip probabilities are constant on groups, found as nested level sets.
#
# The samples with a flip probability above a level are, for every level by itself, the b first negatives and c first positives that
# maximise  k b c + sum_{j <= b} (A_j - level) + sum_{l <= c} (B_l - level),  with gains A, B in descending order. A rectangle of samples
# that have not been told apart yet is split at the level at which all of it and nothing of it are worth the same.

#: what rounding leaves of a gain, relative to the terms that cancel in it
GAIN_ROUNDING_SHARE = 1e-14


@compiled("Tuple((i8, i8, f8))(f8[::1], f8[::1], i8, i8, i8, i8, f8, f8)", inside=True)
def _best(A, B, b0, c0, b1, c1, level, k):
    """(b, c, gain over (b0, c0)) of the best corner in the rectangle: the best b does not fall as c grows."""
    b, of_b, of_c = b0, 0.0, 0.0
    best_b, best_c, best = b0, c0, 0.0
    for c in range(c0, c1 + 1):
        if c > c0:
            of_c += B[c - 1] - level + k * b0
        while b < b1 and A[b] - level + k * c > 0.0:
            of_b += A[b] - level + k * c0
            b += 1
        gain = of_b + of_c + k * float(b - b0) * float(c - c0)
        if gain > best:
            best_b, best_c, best = b, c, gain
    return best_b, best_c, best


@compiled("i8(f8[::1], f8[::1], f8, f8, f8[::1], f8[::1], i8[::1], i8[::1])", inside=True)
def _level_sets(A, B, k, price, q, r, group_q, group_r):
    """Fill the flip probabilities q of negatives and r of positives that maximise the expected  k b c + <A, q> + <B, r>  less
    price / 2 (|q|^2 + |r|^2), and their groups, -1 where they are 0 or 1; returns the number of groups.

    A, B: descending; q, r in [0, 1].
    """
    N, P = A.size, B.size
    high_b, high_c, _ = _best(A, B, 0, 0, N, P, 0.0, k)
    low_b, low_c, _ = _best(A, B, 0, 0, high_b, high_c, price, k)
    for j in range(N):
        q[j], group_q[j] = (1.0 if j < low_b else 0.0), -1
    for l in range(P):
        r[l], group_r[l] = (1.0 if l < low_c else 0.0), -1
    stack = np.empty((high_b - low_b + high_c - low_c + 2, 4), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = low_b, low_c, high_b, high_c
    size, groups = int(high_b + high_c > low_b + low_c), 0
    while size > 0:
        size -= 1
        b0, c0, b1, c1 = stack[size, 0], stack[size, 1], stack[size, 2], stack[size, 3]
        count = b1 - b0 + c1 - c0
        total = k * float(b1 - b0) * float(c1 - c0)
        terms = total
        for j in range(b0, b1):
            total += A[j] + k * c0
            terms += abs(A[j]) + k * c0
        for l in range(c0, c1):
            total += B[l] + k * b0
            terms += abs(B[l]) + k * b0
        level = total / count
        b, c, gain = b0, c0, 0.0
        if count > 1:
            b, c, gain = _best(A, B, b0, c0, b1, c1, level, k)
        whole = (b == b0 and c == c0) or (b == b1 and c == c1)
        if whole or gain <= GAIN_ROUNDING_SHARE * (terms + abs(level) * count):
            p = min(1.0, max(0.0, level / price))
            group = groups if 0.0 < p < 1.0 else -1
            groups += group >= 0
            for j in range(b0, b1):
                q[j], group_q[j] = p, group
            for l in range(c0, c1):
                r[l], group_r[l] = p, group
        else:
            stack[size, 0], stack[size, 1], stack[size, 2], stack[size, 3] = b0, c0, b, c
            size += 1
            stack[size, 0], stack[size, 1], stack[size, 2], stack[size, 3] = b, c, b1, c1
            size += 1
    return groups


@compiled("void(i8[::1], f8[::1], i8[::1], i8[:, ::1], i8[:, ::1], f8[::1], f8[::1], i8[::1], i8[::1])")
def auc_steps(chosen, margins, samples, starts, ends, u, flips, groups, n_groups):
    """The flip probabilities of every task's step, u its length twice, their groups, and how many of these a task has.

    samples, starts : the tasks' positives and negatives; chosen, margins: those that may be flipped, margins ascending, up to ends
    """
    for i in range(starts.shape[0]):
        up, down = starts[i, 0], starts[i, 1]
        k = 1.0 / (float(down - up) * float(starts[i, 2] - down))
        for s in range(up, starts[i, 2]):
            flips[samples[s]], groups[samples[s]] = 0.0, -1
        while up < ends[i, 0] and margins[up] < -u[i]:  # surely flipped
            flips[chosen[up]] = 1.0
            up += 1
        while down < ends[i, 1] and margins[down] < -u[i]:
            flips[chosen[down]] = 1.0
            down += 1
        P, N = ends[i, 0] - up, ends[i, 1] - down
        A, B, q, r = np.empty(N), np.empty(P), np.empty(N), np.empty(P)
        of_q, of_r = np.empty(N, np.int64), np.empty(P, np.int64)
        for j in range(N):
            A[j] = k * float(up - starts[i, 0]) - 2.0 * margins[down + j]
        for l in range(P):
            B[l] = k * float(down - starts[i, 1]) - 2.0 * margins[up + l]
        n_groups[i] = _level_sets(A, B, k, 2.0 * u[i], q, r, of_q, of_r)
        for j in range(N):
            flips[chosen[down + j]], groups[chosen[down + j]] = q[j], of_q[j]
        for l in range(P):
            flips[chosen[up + l]], groups[chosen[up + l]] = r[l], of_r[l]
