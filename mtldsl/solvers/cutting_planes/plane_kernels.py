"""Programs over every task's cached planes, quadratic and linear: sequential by nature, so compiled; imported when first used."""

from __future__ import annotations

import numpy as np

from mtldsl.atoms.structured_prox.polytope_kernels import minimize_on_simplex
from mtldsl.utils.jit import compiled

# Arrays one by one, not in a named tuple: a call takes six microseconds where tasks are few, and a tuple adds one in twenty to that.


@compiled(
    "f8(f8[:, :, ::1], f8[:, :, ::1], f8[:, ::1], f8[:, ::1], i8[::1], i8[:, ::1], f8[::1], f8[:, ::1], f8, f8[:, ::1], f8[::1])",
    error_model="numpy",
)
def proximal_steps(planes, gram, deltas, beta, counts, idle, steps, B, tol, V, promised):
    """For every task i: V[i] = argmin over v of steps[i] * max_k (deltas[k] + <planes[k], v>) + 1/2 ||v - B[i]||^2.

    planes (m, K, D), gram (m, K, K), deltas, beta, idle (m, K); the first counts[i] of K are in use. beta is warm and is changed;
    idle counts rounds without weight; promised[i] = sum_k beta_k (deltas_k + <planes_k, V[i]>). Returns what it cost, about, in
    multiplications.
    """
    m, K, D = planes.shape
    work = 0.0
    for i in range(m):
        n = counts[i]
        c = np.empty(n)
        for k in range(n):
            value = deltas[i, k]
            for j in range(D):
                value += planes[i, k, j] * B[i, j]
            c[k] = value / steps[i]  # which spares a multiple of the Gram matrix, whose first n entries count
        looks = minimize_on_simplex(gram[i], c, beta[i, :n], tol) + 1
        for j in range(D):
            V[i, j] = B[i, j]
        total, used = 0.0, 0
        for k in range(n):
            weight = beta[i, k]
            if weight > 0.0:
                idle[i, k] = 0
                used += 1
                total += weight * deltas[i, k]
                for j in range(D):
                    V[i, j] -= steps[i] * weight * planes[i, k, j]
            else:
                idle[i, k] += 1
        for k in range(n):
            if beta[i, k] > 0.0:
                for j in range(D):
                    total += beta[i, k] * planes[i, k, j] * V[i, j]
        promised[i] = total
        work += float(n + used) * (D + looks * used)
    return work


# --------------------------------------------------------------------------------------------------------------
# Linear programs over a task's planes by the simplex method with bounds.


#: An entry of a column below this part of its largest does not limit a step.
PIVOT_SHARE = 1e-10
#: Two steps this close are equally long: the larger pivot leaves.
TIE_TOL = 1e-13


@compiled(
    "i8(f8[:, ::1], f8[::1], i8, f8[::1], f8[::1], i8[::1], f8[::1], f8[:, ::1], f8[::1], f8[::1], i8, f8)",
    error_model="numpy",
)
def solve_program(planes, deltas, n, scale, half, basis, place, inverse, x, y, pivots, tol):
    """The largest sum_k beta_k deltas[k] over beta >= 0, sum(beta) = 1 with |sum_k beta_k planes[k, j] scale[j]| <= half[j], k < n.

    There are D rows with a slack each (0 <= half: how far it reaches), and that of the sum. basis (D + 1,): what is basic in each, a plane k,
    or -1 - j for the slack of row j; place (D,): at which end another slack stands, +1 or -1, 0 a basic one; inverse (D + 1, D + 1) of
    the basic columns, x (D + 1,) their values, y (D + 1,) the rows' multipliers: all warm and changed. At most so many pivots; returned is
    how many are left, more than zero where the program is solved, up to tol in its reduced costs.
    """
    D = place.size
    column = np.empty(D + 1)
    while pivots > 0:
        for q in range(D + 1):
            y[q] = 0.0
        for r in range(D + 1):
            if basis[r] >= 0 and deltas[basis[r]] != 0.0:
                for q in range(D + 1):
                    y[q] += deltas[basis[r]] * inverse[r, q]
        # what enters: the largest reduced cost
        best, entering, sign = tol, -1, 1.0
        for j in range(D):
            if place[j] * y[j] > best and half[j] > 0.0:
                best, entering, sign = place[j] * y[j], j, -place[j]
        for k in range(n):
            cost = deltas[k] - y[D]
            for j in range(D):
                cost -= planes[k, j] * scale[j] * y[j]
            if cost > best:
                best, entering, sign = cost, D + k, 1.0
        if entering < 0:
            return pivots
        pivots -= 1
        longest, largest, start = np.inf, 0.0, 0.0
        if entering < D:
            longest, start = 2.0 * half[entering], place[entering] * half[entering]
        for r in range(D + 1):
            value = inverse[r, min(entering, D)]
            if entering >= D:
                for j in range(D):
                    value += inverse[r, j] * planes[entering - D, j] * scale[j]
            column[r] = value
            largest = max(largest, abs(value))
        leaving, end = -1, 0.0
        for r in range(D + 1):
            change = -sign * column[r]
            if abs(change) > PIVOT_SHARE * largest:
                bound = 0.0  # of a plane's weight from below; its others are the sum's
                if basis[r] < 0:
                    bound = half[-1 - basis[r]] if change > 0.0 else -half[-1 - basis[r]]
                elif change > 0.0:
                    bound = np.inf
                room = max((bound - x[r]) / change, 0.0)
                if room < longest - TIE_TOL or (
                    room <= longest + TIE_TOL and leaving >= 0 and abs(change) > abs(column[leaving])
                ):
                    longest, leaving = min(room, longest), r
                    end = 1.0 if change > 0.0 else -1.0
        if longest == np.inf:
            return 0
        for r in range(D + 1):
            x[r] -= sign * longest * column[r]
        if leaving < 0:  # to its other end
            place[entering] = -place[entering]
            continue
        if basis[leaving] < 0:
            place[-1 - basis[leaving]] = end
        if entering < D:
            place[entering] = 0.0
        basis[leaving] = -1 - entering if entering < D else entering - D
        x[leaving] = start + sign * longest
        for q in range(D + 1):
            inverse[leaving, q] /= column[leaving]
        for r in range(D + 1):
            if r != leaving:
                for q in range(D + 1):
                    inverse[r, q] -= column[r] * inverse[leaving, q]
    return 0
