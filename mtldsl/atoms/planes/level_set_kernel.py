"""The compiled loops of the AUC's exact proximal step: its flip probabilities are constant on groups, found as nested level sets.

The samples with a flip probability above a level are, for every level by itself, the b first negatives and c first positives that
maximise  k b c + sum_{j <= b} (A_j - level) + sum_{l <= c} (B_l - level),  with gains A, B in descending order. A rectangle of samples
that have not been told apart yet is split at the level at which all of it and nothing of it are worth the same.
"""

from __future__ import annotations

import numpy as np

from mtldsl.system.compiled import compiled

__all__ = ["auc_steps"]

#: what rounding leaves of a gain, relative to the terms that cancel in it
_ROUNDING = 1e-14


@compiled("Tuple((i8, i8, f8))(f8[::1], f8[::1], i8, i8, i8, i8, f8, f8)", inside=True, error_model="numpy")
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


@compiled(
    "i8(f8[::1], f8[::1], f8, f8, f8[::1], f8[::1], i8[::1], i8[::1])", inside=True, error_model="numpy"
)
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
        if whole or gain <= _ROUNDING * (terms + abs(level) * count):
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


@compiled(
    "void(i8[::1], f8[::1], i8[::1], i8[:, ::1], i8[:, ::1], f8[::1], f8[::1], i8[::1], i8[::1])",
    error_model="numpy",
)
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
